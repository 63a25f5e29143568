/* SPDX-License-Identifier: GPL-2.0 */
/* What the subcommands of rdma-dmabuf share. */
#ifndef RDMA_DMABUF_CMD_H
#define RDMA_DMABUF_CMD_H

#include <stddef.h>
#include <stdint.h>

#define __printf(a, b)	__attribute__((__format__(printf, a, b)))

/* Exit codes */
enum {
	RESULT_PASS	= 0,
	RESULT_FAIL	= 1,
	RESULT_USAGE	= 2,
	RESULT_SKIP	= 4,	/* what was asked for is not there */
};

/* Each takes the arguments from its own name on, and returns an exit code. */
int cmd_demo(int argc, char **argv);
int cmd_bench(int argc, char **argv);

/*
 * Tells on stderr which call failed, and why, by errno's name.  Returns the exit
 * code for it: RESULT_SKIP where a device or a feature is missing, else
 * RESULT_FAIL.
 */
int call_failed(const char *what, const char *call);

/* "64", "64K", "1M", "2G" in bytes; -1 if it is not such a number */
int parse_size(const char *text, uint64_t *bytes);
/* "64", "64K" or "1M" from bytes, in a buffer that the next eight calls reuse */
const char *print_size(uint64_t bytes);

/* Bytes that look like noise and are the same for the same @seed */
void fill_pattern(void *to, size_t length, uint32_t seed);

/*
 * A driver attribute of the MR with @rkey, as `rdma resource show mr` of iproute2
 * tells it; "unknown" where it does not.
 */
void mr_attribute(const char *device, uint32_t rkey, const char *name,
		  char *value, size_t size);

#endif /* RDMA_DMABUF_CMD_H */
