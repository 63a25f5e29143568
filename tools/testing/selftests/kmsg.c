// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "kmsg.h"
#include "tap.h"

int kmsg_open(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 || lseek(fd, 0, SEEK_END) < 0)
		bail("/dev/kmsg: %s", strerror(errno));
	return fd;
}

int kmsg_count(int fd, const char *what)
{
	char record[8192];
	int count = 0;
	ssize_t n;

	/* EPIPE: records were overwritten, the next read goes on after them */
	while ((n = read(fd, record, sizeof(record) - 1)) > 0 || errno == EPIPE) {
		if (n <= 0)
			continue;
		record[n] = '\0';
		count += !!strstr(record, what);
	}
	return count;
}
