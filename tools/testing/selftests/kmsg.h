/* SPDX-License-Identifier: GPL-2.0 */
/* What the kernel says, for tests. */
#ifndef SELFTESTS_KMSG_H
#define SELFTESTS_KMSG_H

/* The kernel log from now on: a file descriptor.  Bails out if there is none. */
int kmsg_open(void);
/* How many records since the last call, or since kmsg_open(), have @what in them */
int kmsg_count(int fd, const char *what);

#endif /* SELFTESTS_KMSG_H */
