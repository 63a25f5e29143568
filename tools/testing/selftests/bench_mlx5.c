// SPDX-License-Identifier: GPL-2.0
/*
 * What dma-buf MRs of the mlx5 driver cost, on a simulated ConnectX: what the driver
 * has to do (work for the adapter, as the adapter counts it) and how many instructions
 * the kernel takes for that, if the guest's clock counts them (--icount 0).
 *
 * One line for each size and step, fields separated by blanks:
 *
 *	BYTES STEP ENTRIES UMRS COMMANDS FAULTS INSTRUCTIONS EXPORTER
 *
 * Medians of the rounds.  COMMANDS has the first round's in front of a comma, where
 * the driver's cache of keys is empty.  EXPORTER is how many of the instructions were
 * the exporter's.  What this kernel does not have, or the clock does not tell, is "-".
 * tools/rdma-dmabuf/bench-mlx5 makes a table of them.
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "../../rdma-dmabuf/stats.h"
#include "mlx5_rig.h"
#include "sim.h"
#include "tap.h"

#define ROUNDS		11
#define SEGMENT		(2 * MIB)
#define QUIET_SECONDS	3

enum step {
	REGISTER,
	FIRST_WRITE,
	MOVE,
	REFAULT,
	WRITE_AGAIN,
	DEREGISTER,
	STEPS,
};

static const char *const step_names[STEPS] = {
	"register", "first-write", "move", "refault", "write", "deregister",
};

enum count {
	ENTRIES,
	UMRS,
	COMMANDS,
	FAULTS,
	INSTRUCTIONS,
	EXPORTER,
	COUNTS,
};

static struct rig rig;
static bool follows;		/* the MRs of this kernel follow moves */
static double costs[STEPS][COUNTS][ROUNDS];

static void read_counts(uint64_t counts[COUNTS])
{
	counts[ENTRIES] = mlx5sim_stat(MLX5_LID, MLX5SIM_XLT_ENTRIES);
	counts[UMRS] = mlx5sim_stat(MLX5_LID, MLX5SIM_UMRS);
	counts[COMMANDS] = mlx5sim_stat(MLX5_LID, MLX5SIM_COMMANDS);
	counts[FAULTS] = mlx5sim_stat(MLX5_LID, MLX5SIM_FAULTS);
	counts[EXPORTER] = sim_callback_ns();
}

/* A WRITE of 8 bytes, waited for without sleep: the clock would run on. */
static void write_once(uint64_t addr, const struct mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)rig.host, 8, rig.host_mr->lkey };
	struct ibv_wc wc;
	int ret;

	if (rc_post(&rig.pair.a, IBV_WR_RDMA_WRITE, &sge, addr, mr->rkey))
		bail("%s: %s", rc_failed_call(), strerror(errno));
	while (!(ret = ibv_poll_cq(rig.pair.a.cq, 1, &wc)))
		sched_yield();
	if (ret < 0 || wc.status)
		bail("WRITE: %s", ret < 0 ? "no completion" : ibv_wc_status_str(wc.status));
}

static void take(enum step step, struct dmabuf *buf, struct mr *mr)
{
	int ret = 0;

	switch (step) {
	case REGISTER:
		ret = rig_reg(&rig, dmabuf_fd(buf), 0, dmabuf_size(buf), 0, mr);
		break;
	case MOVE:
		/* The importer's part of it: no memory is copied. */
		ret = sim_move(buf, 0, VRAMSIM_MOVE_NOTIFY_ONLY, 0);
		break;
	case DEREGISTER:
		ret = mr_dereg(mr);
		break;
	default:
		write_once(0, mr);
		break;
	}
	if (ret)
		bail("%s: %s", step_names[step], strerror(ret));
}

static bool has_step(enum step step)
{
	return follows || (step != MOVE && step != REFAULT);
}

/* What a move costs the exporter itself: one of a buffer that nobody has imported */
static uint64_t move_alone(struct dmabuf *buf)
{
	uint64_t start = now_ns();

	take(MOVE, buf, NULL);
	return now_ns() - start;
}

static void measure(uint64_t bytes)
{
	static const struct dmabuf_opts opts = {
		.flags = VRAMSIM_CREATE_UNCLEARED | VRAMSIM_CREATE_SCATTER,
		.segment_size = SEGMENT, .seed = 1,
	};
	struct dmabuf *buf = rig_vram(bytes, &opts);
	uint64_t alone = move_alone(buf);
	struct mr mr;

	for (int round = 0; round < ROUNDS; round++) {
		for (enum step step = 0; step < STEPS; step++) {
			uint64_t before[COUNTS], after[COUNTS], start;

			if (!has_step(step))
				continue;
			read_counts(before);
			start = now_ns();
			take(step, buf, &mr);
			after[INSTRUCTIONS] = now_ns();
			before[INSTRUCTIONS] = start;
			read_counts(after);
			if (step == MOVE)
				after[EXPORTER] += alone;
			for (int i = 0; i < COUNTS; i++)
				costs[step][i][round] = after[i] - before[i];
		}
	}
	dmabuf_free(buf);
}

static double median(enum step step, enum count count)
{
	return summarize(costs[step][count], ROUNDS).median;
}

static void print(uint64_t bytes, bool instructions)
{
	for (enum step step = 0; step < STEPS; step++) {
		printf("%" PRIu64 " %s ", bytes, step_names[step]);
		if (!has_step(step)) {
			printf("- - - - - -\n");
			continue;
		}
		printf("%.0f %.0f %.0f,%.0f %.0f ", median(step, ENTRIES), median(step, UMRS),
		       costs[step][COMMANDS][0], median(step, COMMANDS), median(step, FAULTS));
		if (instructions)
			printf("%.0f %.0f\n", median(step, INSTRUCTIONS), median(step, EXPORTER));
		else
			printf("- -\n");
	}
	fflush(stdout);
}

/* The driver of a physical function makes keys in reserve, behind our back. */
static void wait_for_reserve(void)
{
	uint64_t before, now = mlx5sim_stat(MLX5_LID, MLX5SIM_COMMANDS);

	do {
		before = now;
		sleep(QUIET_SECONDS);
		now = mlx5sim_stat(MLX5_LID, MLX5SIM_COMMANDS);
	} while (now != before);
}

int main(void)
{
	static const uint64_t sizes[] = { 4 * KIB, 2 * MIB, 64 * MIB, 1 * GIB };

	bool instructions = clock_counts_instructions();

	mlx5_rig_up(&rig);
	follows = mlx5_follows_moves();
	wait_for_reserve();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		measure(sizes[i]);
		print(sizes[i], instructions);
	}
	rig_down(&rig);
	return 0;
}
