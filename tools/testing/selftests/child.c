// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "rig.h"
#include "tap.h"

pid_t child_start(int (*work)(void *arg), void *arg)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		bail("fork: %s", strerror(errno));
	if (!pid) {
		int status = work(arg);

		fflush(stdout);
		_exit(status);
	}
	return pid;
}

int child_wait(pid_t pid, int timeout_ms)
{
	uint64_t deadline = now_ms() + timeout_ms;
	int status;

	while (!waitpid(pid, &status, WNOHANG)) {
		if (now_ms() > deadline) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return -1;
		}
		usleep(2000);
	}
	return WIFSIGNALED(status) ? CHILD_SIGNAL(WTERMSIG(status)) : WEXITSTATUS(status);
}

bool child_ended(pid_t pid)
{
	char path[64], state = 'X';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 'X';
	if (f)
		fclose(f);
	return state == 'X' || state == 'Z';
}

int child_run(int (*work)(void *arg), void *arg, int timeout_ms)
{
	return child_wait(child_start(work, arg), timeout_ms);
}
