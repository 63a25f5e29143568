// SPDX-License-Identifier: GPL-2.0
/*
 * Count the bytes that a software RDMA device copies.
 *
 * Nobody counts them, so a kprobe event looks on: rxe moves payload between
 * packets and memory with one function, whose fourth argument is a length.  The
 * events go to a trace instance of our own.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "copies.h"

#define TRACING		"/sys/kernel/tracing"
#define INSTANCE	TRACING "/instances/rdma-dmabuf"
#define ENABLE		INSTANCE "/events/rdma_dmabuf/copy/enable"
#define PROBE		"p:rdma_dmabuf/copy rdma_rxe:rxe_mem_copy length=%cx:u32"

static const char *failed_call = "nothing";

const char *copies_failed_call(void)
{
	return failed_call;
}

static int write_file(const char *path, int flags, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | flags);
	ssize_t written;
	int error;

	failed_call = path;
	if (fd < 0)
		return -1;
	written = write(fd, text, strlen(text));
	error = errno;
	close(fd);
	errno = error;
	return written == (ssize_t)strlen(text) ? 0 : -1;
}

bool copies_by_cpu(const char *device)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/parent", device);
	return !access(path, F_OK);
}

int copies_init(const char *device)
{
	failed_call = "parent (rxe's link to its network device)";
	if (!copies_by_cpu(device) || access(TRACING "/kprobe_events", F_OK)) {
		errno = ENODEV;
		return -1;
	}
	copies_fini();	/* what a killed run left */
	if (write_file(TRACING "/kprobe_events", O_APPEND, PROBE))
		return -1;
	failed_call = "mkdir of a trace instance";
	if (mkdir(INSTANCE, 0700))
		return -1;
	return write_file(INSTANCE "/buffer_size_kb", 0, "4096");
}

void copies_fini(void)
{
	write_file(ENABLE, 0, "0");
	rmdir(INSTANCE);
	write_file(TRACING "/kprobe_events", O_APPEND, "-:rdma_dmabuf/copy");
}

int copies_start(void)
{
	/* Opening it to truncate empties the buffer. */
	if (write_file(INSTANCE "/trace", O_TRUNC, ""))
		return -1;
	return write_file(ENABLE, 0, "1");
}

int copies_stop(uint64_t *bytes)
{
	uint64_t in_buffer = 0, written = 0;
	unsigned int length;
	char line[512];
	char *found;
	FILE *trace;

	if (write_file(ENABLE, 0, "0"))
		return -1;
	failed_call = "reading the trace";
	trace = fopen(INSTANCE "/trace", "re");
	if (!trace)
		return -1;
	*bytes = 0;
	while (fgets(line, sizeof(line), trace)) {
		found = strstr(line, "entries-in-buffer/entries-written:");
		if (found)
			sscanf(found, "%*s %" SCNu64 "/%" SCNu64, &in_buffer, &written);
		found = strstr(line, "length=");
		if (found && sscanf(found, "length=%u", &length) == 1)
			*bytes += length;
	}
	fclose(trace);
	if (in_buffer != written) {
		failed_call = "trace buffer";
		errno = EOVERFLOW;
		return -1;
	}
	return 0;
}
