/* SPDX-License-Identifier: GPL-2.0 */
/* What rdma-dmabuf bench measures, and what bench_report.c prints. */
#ifndef RDMA_DMABUF_BENCH_H
#define RDMA_DMABUF_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#define MAX_ROUNDS	101
#define MAX_ROWS	64

/* How payload gets to the exporter's memory and from there */
enum bench_path {
	PATH_HOST,	/* not at all: host memory, to compare with */
	PATH_DMABUF,	/* an MR on the dma-buf */
	PATH_STAGED,	/* an MR on host memory, and the CPU copies */
	PATHS,
};

enum bench_op {
	OP_WRITE,
	OP_READ,
	OPS,
};

struct traffic {
	enum bench_op op;
	uint64_t bytes;
	int iterations;			/* in a round */
	int rounds;
	double cost[PATHS][MAX_ROUNDS];	/* of one transfer */
};

/* Registration: PATH_HOST and PATH_DMABUF only */
struct registration {
	uint64_t bytes;
	int rounds;
	double reg[PATH_STAGED][MAX_ROUNDS];
	double dereg[PATH_STAGED][MAX_ROUNDS];
};

/* Bytes that the CPU copies for each byte that arrives */
struct copies {
	enum bench_op op;
	double device[PATHS];		/* by the RDMA device's driver */
	double staging[PATHS];		/* by the application */
};

struct results {
	const char *device;
	const char *exporter;
	const char *placement;		/* after the last transfer */
	bool instructions;		/* a cost is instructions, not nanoseconds */
	bool software;			/* the CPU is the device */
	struct traffic traffic[MAX_ROWS];
	int num_traffic;
	struct registration registration[MAX_ROWS];
	int num_registration;
	struct copies copies[OPS];
	int num_copies;
};

void print_table(const struct results *results);
/* 0, or -1 and errno */
int write_json(const struct results *results, const char *path);
/*
 * Holds the results against what a dma-buf MR is expected to reach, as far as it
 * was measured.  Returns whether it does.
 */
bool print_targets(const struct results *results);

#endif /* RDMA_DMABUF_BENCH_H */
