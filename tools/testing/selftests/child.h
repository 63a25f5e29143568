/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Work in a child process, for what only another process can show: death by
 * signal, lost capabilities, inherited files.
 */
#ifndef SELFTESTS_CHILD_H
#define SELFTESTS_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

/* Forks; the child runs @work and exits with what it returns (0..255). */
pid_t child_start(int (*work)(void *arg), void *arg);
/*
 * Waits for the child's end, kills it after @timeout_ms: its exit status,
 * 256 + signal if one ended it, -1 if it had to be killed for the timeout.
 */
int child_wait(pid_t pid, int timeout_ms);
/* Whether it has ended, without waiting for it */
bool child_ended(pid_t pid);
/* Start and wait in one */
int child_run(int (*work)(void *arg), void *arg, int timeout_ms);

#define CHILD_SIGNAL(sig) (256 + (sig))

#endif /* SELFTESTS_CHILD_H */
