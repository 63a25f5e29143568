// SPDX-License-Identifier: GPL-2.0
/* rdma-dmabuf: dma-bufs as RDMA memory, seen and measured from user space. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary;
} commands[] = {
	{ "demo", cmd_demo, "write, read and update dma-bufs over RDMA, and check every byte" },
	{ "bench", cmd_bench, "compare a dma-buf MR with host memory and with staging" },
	{ }
};

static void print_usage(FILE *to)
{
	const struct command *command;

	fprintf(to, "usage: rdma-dmabuf COMMAND [OPTION]...\n");
	for (command = commands; command->name; command++)
		fprintf(to, "  %-8s %s\n", command->name, command->summary);
	fprintf(to, "COMMAND --help tells its options, rdma-dmabuf(8) more.\n");
	fprintf(to, "status: 0 pass, 1 fail, 2 usage, 4 skip (something is not there)\n");
}

int main(int argc, char **argv)
{
	const struct command *command;

	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		print_usage(stdout);
		return RESULT_PASS;
	}
	for (command = commands; argc > 1 && command->name; command++) {
		if (!strcmp(command->name, argv[1]))
			return command->run(argc - 1, argv + 1);
	}
	if (argc > 1)
		fprintf(stderr, "rdma-dmabuf: no command '%s'\n", argv[1]);
	print_usage(stderr);
	return RESULT_USAGE;
}

int call_failed(const char *what, const char *call)
{
	const char *name = strerrorname_np(errno);
	int error = errno;

	fprintf(stderr, "rdma-dmabuf: %s: %s failed: %s (%s)\n", what, call,
		name ? name : "unknown error", strerror(error));
	if (error == ENODEV || error == EOPNOTSUPP) {
		fprintf(stderr, "rdma-dmabuf: skipped, since %s is not available here\n", what);
		return RESULT_SKIP;
	}
	return RESULT_FAIL;
}

int parse_size(const char *text, uint64_t *bytes)
{
	static const char suffixes[] = "KMGT";
	const char *suffix;
	int shift = 0;
	char *end;

	errno = 0;
	*bytes = strtoull(text, &end, 0);
	if (errno || end == text || *text == '-')
		return -1;
	if (*end) {
		suffix = strchr(suffixes, *end);
		if (!suffix || end[1])
			return -1;
		shift = 10 * (suffix - suffixes + 1);
	}
	if (*bytes > UINT64_MAX >> shift)
		return -1;
	*bytes <<= shift;
	return 0;
}

const char *print_size(uint64_t bytes)
{
	static char buffers[8][24];
	static unsigned int next;
	char *buffer = buffers[next++ % 8];
	const char *suffix = "\0KMGT";

	while (bytes && bytes % 1024 == 0 && *(suffix + 1)) {
		bytes /= 1024;
		suffix++;
	}
	if (*suffix)
		snprintf(buffer, sizeof(buffers[0]), "%" PRIu64 "%c", bytes, *suffix);
	else
		snprintf(buffer, sizeof(buffers[0]), "%" PRIu64, bytes);
	return buffer;
}

void fill_pattern(void *to, size_t length, uint32_t seed)
{
	uint32_t x = seed * 2654435761u + 1;
	uint8_t *p = to;
	size_t i;

	for (i = 0; i < length; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		p[i] = x;
	}
}

void mr_attribute(const char *device, uint32_t rkey, const char *name,
		  char *value, size_t size)
{
	char command[128], line[1024], key[32];
	bool ours = false;
	char *found;
	FILE *rdma;

	snprintf(value, size, "unknown");
	snprintf(command, sizeof(command), "rdma -d -d resource show mr dev %s 2> /dev/null",
		 device);
	snprintf(key, sizeof(key), " rkey 0x%x ", rkey);
	rdma = popen(command, "r");
	if (!rdma)
		return;
	while (fgets(line, sizeof(line), rdma)) {
		/* An MR begins with "dev"; what its driver adds comes on indented lines. */
		if (*line != ' ')
			ours = strstr(line, key);
		found = ours ? strstr(line, name) : NULL;
		if (found) {
			found += strlen(name) + 1;
			snprintf(value, size, "%.*s", (int)strcspn(found, "\n "), found);
		}
	}
	pclose(rdma);
}
