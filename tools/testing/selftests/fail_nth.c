// SPDX-License-Identifier: GPL-2.0
/*
 * /proc/thread-self/fail-nth.  The file is opened once, before anything is armed:
 * what opens, reads and writes it can itself be what fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fail_nth.h"

static int fd = -1;

bool fail_nth_there(void)
{
	if (fd < 0)
		fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	return fd >= 0;
}

void fail_nth_arm(unsigned int nth)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%u", nth);

	/* A write that is made to fail leaves nothing armed. */
	for (int tries = 0; fail_nth_there() && tries < 2; tries++)
		if (pwrite(fd, text, length, 0) == length)
			return;
	printf("Bail out! fail-nth: %s\n", strerror(errno));
	exit(1);
}

bool fail_nth_fired(void)
{
	char text[16] = "";
	ssize_t length = pread(fd, text, sizeof(text) - 1, 0);
	/* The copy of the answer was what failed. */
	bool left = length < 0 || atoi(text) > 0;

	fail_nth_arm(0);
	return !left;
}
