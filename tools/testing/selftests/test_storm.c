// SPDX-License-Identifier: GPL-2.0
/*
 * A storm: processes register, transfer, deregister, close and get killed, while
 * a thread in each plays the GPU and moves, fences and revokes the very buffers, and a
 * simulated adapter has faults.  What was transferred is checked; the kernel must not
 * complain and nothing may be left.  It ends when every column of the table has
 * reached its minimum.
 *
 *	test_storm [--seed N] [--registrations N] [--moves N] [--revokes N]
 *		   [--kills N] [--faults N] [--workers N] [--min-seconds N]
 *		   [--max-seconds N]
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "mlx5_rig.h"
#include "netdev.h"
#include "rig.h"
#include "sim.h"
#include "tap.h"

#define IOVA		0x1100000000ull
#define WORKERS_MAX	16
#define MRS_MAX		3
#define BUF_PAGES_MAX	64
#define CHUNK		4096
#define PATIENCE_MS	90000	/* a debug kernel beside a build is slow */
#define PENDING_MAX	12	/* faults ordered that have not happened yet */
#define PENDING_RARE	4	/* of those to which it may take long */

enum column {
	REGISTRATIONS, MOVES, REVOKES, KILLS, DEREGISTRATIONS, REG_REFUSED, MOVES_REFUSED,
	FENCES, WRITES, READS, ERRORS_AFTER_REVOKE, HOST_MRS, PROCESSES, DUMPS,
	DEVICE_FAULTS, PAGE_FAULTS,
	COLUMNS,
	/* These are to be zero. */
	WRONG_DATA = COLUMNS, WRONG_STATUS, WRONG_ERRNO,
	ALL_COLUMNS
};

static const char *const column_names[ALL_COLUMNS] = {
	[REGISTRATIONS] = "registrations",
	[MOVES] = "moves",
	[REVOKES] = "revokes",
	[KILLS] = "kill -9",
	[DEREGISTRATIONS] = "deregistrations",
	[REG_REFUSED] = "registrations refused",
	[MOVES_REFUSED] = "moves refused",
	[FENCES] = "fences",
	[WRITES] = "WRITEs checked",
	[READS] = "READs checked",
	[ERRORS_AFTER_REVOKE] = "errors after revoke",
	[HOST_MRS] = "host MRs between",
	[PROCESSES] = "processes",
	[DUMPS] = "resource dumps",
	[DEVICE_FAULTS] = "faults of the device",
	[PAGE_FAULTS] = "page faults",
	[WRONG_DATA] = "wrong data",
	[WRONG_STATUS] = "wrong status",
	[WRONG_ERRNO] = "wrong errno",
};

/* Shared with all processes */
static struct {
	_Atomic uint64_t count[ALL_COLUMNS];
	_Atomic uint64_t failed_resumes;	/* page faults that the device took for failed */
	_Atomic uint64_t failed_accesses;	/* and what came of them */
	_Atomic bool stop;
	_Atomic bool busy[WORKERS_MAX];	/* the worker has MRs: time to die */
} *storm;

static void count(enum column column)
{
	atomic_fetch_add(&storm->count[column], 1);
}

/* A worker's buffer, and what its GPU thread may do to it */
struct target {
	pthread_mutex_t lock;	/* protects @buf against the worker that replaces it */
	struct dmabuf *buf;
	_Atomic bool revoked;	/* set before the revoke */
	uint64_t random;
};

static void gpu_step(struct target *target)
{
	uint32_t dice = random_next(&target->random) % 100;
	int err = 0;

	if (dice < 60) {
		uint32_t where = dice & 1 ? VRAMSIM_PLACEMENT_VRAM : VRAMSIM_PLACEMENT_SYSTEM;

		err = sim_move(target->buf, where, VRAMSIM_MOVE_SHUFFLE, dice % 8 ? 0 : 2);
		count(err ? MOVES_REFUSED : MOVES);
		if (err && err != EBUSY && err != ENODEV && err != ENOSPC && err != ENOMEM)
			count(WRONG_ERRNO);
	} else if (dice < 75) {
		if (!sim_fence(target->buf, dice % 5))
			count(FENCES);
	} else if (dice < 80 && !atomic_load(&target->revoked)) {
		atomic_store(&target->revoked, true);
		if (!sim_revoke(target->buf))
			count(REVOKES);
	}
}

static void *gpu(void *arg)
{
	struct target *target = arg;

	for (;;) {
		pthread_mutex_lock(&target->lock);
		if (target->buf)
			gpu_step(target);
		pthread_mutex_unlock(&target->lock);
		usleep(random_next(&target->random) % 3000);
	}
	return NULL;
}

static void replace(struct target *target, uint64_t *random)
{
	static const uint64_t segments[] = { 0, 4096, 8192, 65536 };
	uint64_t dice = random_next(random);
	struct dmabuf_opts opts = {
		.system = dice & 1,
		.segment_size = segments[dice >> 1 & 3],
		.seed = dice,
	};

	if (dice >> 3 & 1)
		opts.flags |= VRAMSIM_CREATE_STATIC;
	pthread_mutex_lock(&target->lock);
	dmabuf_free(target->buf);
	target->buf = dmabuf_alloc("vramsim", (1 + (dice >> 8) % BUF_PAGES_MAX) * 4096, &opts);
	atomic_store(&target->revoked, false);
	pthread_mutex_unlock(&target->lock);
}

/*
 * Data through one MR.  Nobody else writes to the buffer, and a pinned one does
 * not move: what comes back is what was sent, unless the GPU has revoked it.
 */
static void transfer(struct rig *rig, struct target *target, const struct mr *mr,
		     uint64_t iova, uint64_t length, uint64_t *random)
{
	uint8_t sent[CHUNK], got[CHUNK];
	int status;

	if (length > CHUNK)
		length = CHUNK;
	for (uint64_t i = 0; i < length; i++)
		sent[i] = random_next(random);
	status = rig_write(rig, mr, iova, sent, length);
	if (!status) {
		count(WRITES);
		status = rig_read(rig, mr, iova, got, length);
		if (!status && memcmp(sent, got, length))
			count(WRONG_DATA);
		else if (!status)
			count(READS);
	}
	if (!status)
		return;
	if (status == IBV_WC_REM_ACCESS_ERR && atomic_load(&target->revoked)) {
		count(ERRORS_AFTER_REVOKE);
	} else if (status == IBV_WC_REM_ACCESS_ERR &&
		   atomic_fetch_add(&storm->failed_accesses, 1) <
		   atomic_load(&storm->failed_resumes)) {
		/* That was the device. */
	} else {
		diag("  status %d (%s), revoked %d", status, ibv_wc_status_str(status),
		     atomic_load(&target->revoked));
		count(WRONG_STATUS);
	}
}

static void round_of_mrs(struct rig *rig, struct target *target, uint64_t *random)
{
	uint64_t size = dmabuf_size(target->buf), windows[MRS_MAX][2];
	struct mr mrs[MRS_MAX];
	int mr_count = 0, wanted = 1 + random_next(random) % MRS_MAX;

	while (mr_count < wanted) {
		uint64_t offset = random_next(random) % size;
		uint64_t length = 1 + random_next(random) % (size - offset);
		int err = rig_reg(rig, dmabuf_fd(target->buf), offset, length,
				  IOVA + offset, &mrs[mr_count]);

		if (err) {
			count(REG_REFUSED);
			if (err != ENODEV && err != ENOMEM && err != EBUSY)
				count(WRONG_ERRNO);
			break;
		}
		count(REGISTRATIONS);
		windows[mr_count][0] = IOVA + offset;
		windows[mr_count][1] = length;
		mr_count++;
	}
	if (random_next(random) % 4 == 0) {
		pthread_mutex_lock(&target->lock);
		dmabuf_close_fd(target->buf);
		pthread_mutex_unlock(&target->lock);
	}
	for (int i = 0; i < mr_count; i++)
		transfer(rig, target, &mrs[i], windows[i][0], windows[i][1], random);
	/* Some are left to the end of the process, or to nobody. */
	while (mr_count--) {
		if (random_next(random) % 16 == 0)
			continue;
		if (mr_dereg(&mrs[mr_count]))
			count(WRONG_ERRNO);
		count(DEREGISTRATIONS);
	}
}

/* Its key may have been a dma-buf MR's, which the GPU has not forgotten yet. */
static void host_mr(struct rig *rig, uint64_t *random)
{
	static uint8_t memory[64 * 1024];
	struct ibv_mr *mr = ibv_reg_mr(rig->pair.b.pd, memory, sizeof(memory), RIG_ACCESS);
	struct mr view = { .rkey = mr ? mr->rkey : 0 };
	uint8_t sent[CHUNK];
	int status;

	if (!mr)
		return;
	count(HOST_MRS);
	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = random_next(random);
	for (size_t at = 0; at < sizeof(memory); at += sizeof(memory) / 4) {
		status = rig_write(rig, &view, (uintptr_t)memory + at, sent, sizeof(sent));
		if (status) {
			diag("  host MR: status %d (%s)", status, ibv_wc_status_str(status));
			count(WRONG_STATUS);
		} else if (memcmp(memory + at, sent, sizeof(sent))) {
			count(WRONG_DATA);
		}
	}
	ibv_dereg_mr(mr);
}

struct worker {
	int number;
	uint64_t seed;
};

static int work(void *arg)
{
	const struct worker *worker = arg;
	uint64_t random = worker->seed;
	struct target target = {
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.random = random_next(&random),
	};
	struct rig rig;
	pthread_t thread;

	rig_up(&rig);
	if (pthread_create(&thread, NULL, gpu, &target))
		bail("pthread_create");
	count(PROCESSES);
	while (!atomic_load(&storm->stop)) {
		replace(&target, &random);
		if (!target.buf)
			continue;	/* VRAM is full of what others have left */
		for (int i = 0; i < 3 && dmabuf_fd(target.buf) >= 0; i++) {
			round_of_mrs(&rig, &target, &random);
			atomic_store(&storm->busy[worker->number], true);
		}
		if (random_next(&random) % 4 == 0)
			host_mr(&rig, &random);
	}
	/* As an application that just ends: the kernel cleans up. */
	return 0;
}

/* An administrator who looks all the time */
static int dump(void *arg)
{
	(void)arg;
	while (!atomic_load(&storm->stop)) {
		if (run("rdma -dd resource show mr > /dev/null"))
			count(DUMPS);
		usleep(300 * 1000);
	}
	return 0;
}

/*
 * What a simulated adapter can be told to have, and the driver has to bear: requests
 * and commands that are late, keys that it does not make, page faults that it takes for
 * failed.  Requests come all the time, keys and page faults only now and then.
 */
static void order_fault(uint64_t dice, bool rare, bool resume)
{
	static const char *const faults[] = {
		"cqe-delay:0x25:%u:20000000", "cqe-delay:8:%u:20000000",
		"cqe-delay:0x10:%u:20000000", "0x200:%u:0x8", "cmd-delay:0x200:%u:5000000",
		"cmd-delay:0x202:%u:5000000", "cmd-delay:0x204:%u:20000000", "resume-error:%u",
	};
	size_t last = sizeof(faults) / sizeof(*faults) - 1;
	size_t which = dice % (rare ? last + resume : 3);
	char order[64];

	if (which == last)
		atomic_fetch_add(&storm->failed_resumes, 1);
	snprintf(order, sizeof(order), faults[which],
		 (unsigned int)(1 + dice / 16 % (which < 3 ? 20 : 4)));
	mlx5sim_order(MLX5_LID, order);
}

/* @ordered faults so far, @page_faults and @injected ones before the storm */
static void device_step(const struct rig_traits *traits, uint64_t dice, uint64_t *ordered,
			uint64_t page_faults, uint64_t injected)
{
	uint64_t happened = mlx5sim_stat(MLX5_LID, MLX5SIM_INJECTED) - injected;

	atomic_store(&storm->count[DEVICE_FAULTS], happened);
	atomic_store(&storm->count[PAGE_FAULTS],
		     mlx5sim_stat(MLX5_LID, MLX5SIM_FAULTS) - page_faults);
	if (*ordered - happened >= PENDING_MAX)
		return;
	order_fault(dice, *ordered - happened < PENDING_RARE, traits->follows);
	++*ordered;
}

static bool killed(pid_t pid, uint64_t *slowest)
{
	uint64_t start = now_ms(), took;
	int status;

	kill(pid, SIGKILL);
	status = child_wait(pid, PATIENCE_MS);
	took = now_ms() - start;
	if (took > *slowest)
		*slowest = took;
	if (status != CHILD_SIGNAL(SIGKILL)) {
		diag("  a process ended with %d", status);
		return false;
	}
	count(KILLS);
	return true;
}

static bool reached(const uint64_t *minimum)
{
	for (int i = 0; i < COLUMNS; i++)
		if (atomic_load(&storm->count[i]) < minimum[i])
			return false;
	return true;
}

int main(int argc, char **argv)
{
	uint64_t minimum[COLUMNS], random, start_ms, deadline, earliest;
	uint64_t ordered = 0, page_faults = 0, injected = 0, slowest_end = 0;
	int worker_count = option_number(argc, argv, "workers", 3);
	int bad_ends = 0;
	struct counters start;
	struct worker workers[WORKERS_MAX];
	pid_t pids[WORKERS_MAX], dumper;
	struct rig rig;
	bool sim;

	for (int i = 0; i < COLUMNS; i++)
		minimum[i] = 1;
	minimum[REGISTRATIONS] = option_number(argc, argv, "registrations", 2000);
	minimum[MOVES] = option_number(argc, argv, "moves", 300);
	minimum[REVOKES] = option_number(argc, argv, "revokes", 100);
	minimum[KILLS] = option_number(argc, argv, "kills", 50);
	if (worker_count < 1 || worker_count > WORKERS_MAX)
		bail("--workers: 1 to %d", WORKERS_MAX);
	random = random_seed(argc, argv);

	rig_up(&rig);
	sim = !rig.traits.by_cpu && mlx5sim_there();
	minimum[DEVICE_FAULTS] = sim ? option_number(argc, argv, "faults", 100) : 0;
	minimum[PAGE_FAULTS] = sim && rig.traits.follows ? minimum[MOVES] / 4 : 0;
	rig_down(&rig);
	counters_get(&start);
	storm = mmap(NULL, sizeof(*storm), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		     -1, 0);
	if (storm == MAP_FAILED)
		bail("mmap");

	if (sim) {
		page_faults = mlx5sim_stat(MLX5_LID, MLX5SIM_FAULTS);
		injected = mlx5sim_stat(MLX5_LID, MLX5SIM_INJECTED);
	}
	start_ms = now_ms();
	earliest = start_ms + 1000 * option_number(argc, argv, "min-seconds", 0);
	deadline = start_ms + 1000 * option_number(argc, argv, "max-seconds", 330);
	dumper = child_start(dump, NULL);
	for (int i = 0; i < worker_count; i++) {
		workers[i] = (struct worker){ i, random_next(&random) };
		pids[i] = child_start(work, &workers[i]);
	}
	while (now_ms() < deadline && (now_ms() < earliest || !reached(minimum))) {
		int victim = random_next(&random) % worker_count;
		int naps = 1 + random_next(&random) % 10;

		while (naps--) {
			usleep(100 * 1000);
			if (sim)
				device_step(&rig.traits, random_next(&random), &ordered,
					    page_faults, injected);
		}
		if (!atomic_load(&storm->busy[victim]))
			continue;
		bad_ends += !killed(pids[victim], &slowest_end);
		atomic_store(&storm->busy[victim], false);
		workers[victim].seed = random_next(&random);
		pids[victim] = child_start(work, &workers[victim]);
	}
	atomic_store(&storm->stop, true);
	for (int i = 0; i < worker_count; i++)
		bad_ends += child_wait(pids[i], PATIENCE_MS) != 0;
	bad_ends += child_wait(dumper, PATIENCE_MS) != 0;

	diag("%-22s %10s %10s", "in " "the storm", "count", "minimum");
	for (int i = 0; i < COLUMNS; i++)
		diag("%-22s %10" PRIu64 " %10" PRIu64, column_names[i],
		     atomic_load(&storm->count[i]), minimum[i]);
	diag("%-22s %10" PRIu64 " %10" PRIu64, "failed accesses, resumes",
	     atomic_load(&storm->failed_accesses), atomic_load(&storm->failed_resumes));
	diag("%-22s %10" PRIu64, "slowest end, ms", slowest_end);
	diag("%-22s %10" PRIu64, "seconds", (now_ms() - start_ms) / 1000);
	for (int i = 0; i < COLUMNS; i++)
		ok(atomic_load(&storm->count[i]) >= minimum[i], "enough of it: %s",
		   column_names[i]);
	for (int i = COLUMNS; i < ALL_COLUMNS; i++)
		is(atomic_load(&storm->count[i]), 0, "none of it: %s", column_names[i]);
	is(bad_ends, 0, "processes end as they are told to");
	ok(counters_back(&start, 10000), "all counters back to the start");
	rig_up(&rig);
	ok(rig_host_mrs_work(&rig, 100), "after the storm 100 host MRs work");
	rig_down(&rig);
	return tap_done();
}
