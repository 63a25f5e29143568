// SPDX-License-Identifier: GPL-2.0
/*
 * Faults of the device, one of each kind that the simulated ConnectX can be told to
 * have, and what mlx5 makes of them: the right errno or status and a message, all of
 * it undone, and the next one works.
 *
 * Needs --out, the faults that are named below by --mlx5 faults=... (tests.conf has
 * the list), and --icount, for the driver gives a command 60 seconds. A command's
 * number lies behind what the drivers do at boot; each test repeats its operation
 * until the device has had the fault.
 *
 * What is undone in the device shows when the drivers are unloaded: an object that is
 * left ends the run.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kmsg.h"
#include "mlx5_rig.h"
#include "tap.h"

#define PAGE		4096ul
#define SIZE		(64 * KIB)
#define ROUNDS		250	/* by then a fault has come */
#define AFTERWARDS	3	/* operations that have to work then */
#define DELAY_MS	300
#define WAIT_MS		500
#define ACCESS		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
#define HUNG_TASK	"/proc/sys/kernel/hung_task_timeout_secs"

static struct ibv_context *ctx;
static struct rc_pair pair;
static uint8_t *mem_a, *mem_b;
static struct ibv_mr *mr_a, *mr_b;
static int kmsg;

/* How often the device has noted that it had a fault: "0x200, number 40" */
static int injected(const char *fault)
{
	char line[1024], want[128];
	const char *out = getenv("OUT");
	int count = 0;
	FILE *in;

	if (!out)
		bail("what the device notes is in --out");
	snprintf(line, sizeof(line), "%s/qemu.log", out);
	in = fopen(line, "re");
	if (!in)
		bail("%s: %s", line, strerror(errno));
	snprintf(want, sizeof(want), "injected: %s\n", fault);
	while (fgets(line, sizeof(line), in))
		count += !!strstr(line, want);
	fclose(in);
	return count;
}

/* Pages that this process has pinned, in KiB */
static long pinned(void)
{
	FILE *in = fopen("/proc/self/status", "re");
	char line[256];
	long kib = -1;

	while (in && fgets(line, sizeof(line), in) && sscanf(line, "VmPin: %ld", &kib) != 1)
		;
	if (in)
		fclose(in);
	if (kib < 0)
		bail("no VmPin in /proc/self/status");
	return kib;
}

/* Operations that make an object, and the other way round */

static void *make_pd(void)
{
	return ibv_alloc_pd(ctx);
}

static int unmake_pd(void *pd)
{
	return ibv_dealloc_pd(pd);
}

static void *make_cq(void)
{
	return ibv_create_cq(ctx, 16, NULL, NULL, 0);
}

static int unmake_cq(void *cq)
{
	return ibv_destroy_cq(cq);
}

static void *make_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = pair.a.cq,
		.recv_cq = pair.a.cq,
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = 4, .max_recv_wr = 4,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};

	return ibv_create_qp(pair.a.pd, &attr);
}

static int unmake_qp(void *qp)
{
	return ibv_destroy_qp(qp);
}

static void *make_mw(void)
{
	return ibv_alloc_mw(pair.a.pd, IBV_MW_TYPE_1);
}

static int unmake_mw(void *mw)
{
	return ibv_dealloc_mw(mw);
}

/* Each has a page of its own: DMA-API debugging bears 7 mappings of one. */
static void *make_mr(void)
{
	static uint8_t *pages;
	static unsigned int next;

	if (!pages)
		pages = rig_pages(ROUNDS * PAGE);
	return ibv_reg_mr(pair.a.pd, pages + next++ % ROUNDS * PAGE, PAGE, ACCESS);
}

static int unmake_mr(void *mr)
{
	return ibv_dereg_mr(mr);
}

/**
 * struct failure - a command that fails
 * @verb: what a user wants
 * @make: does it; NULL and errno if it fails
 * @unmake: undoes it
 * @fault: as the device notes it
 * @second: the fault of the next such command, for a driver that tries twice
 * @message: what the kernel says; NULL: nothing, as of what it does for a user of DEVX
 * @error: errno
 */
struct failure {
	const char *verb;
	void *(*make)(void);
	int (*unmake)(void *object);
	const char *fault;
	const char *second;
	const char *message;
	int error;
};

static const struct failure failures[] = {
	{
		.verb = "ibv_alloc_pd",
		.make = make_pd,
		.unmake = unmake_pd,
		.fault = "0x800, number 40",
		.error = EIO,
	},
	{
		.verb = "ibv_create_cq",
		.make = make_cq,
		.unmake = unmake_cq,
		.fault = "0x400, number 40",
		.error = EINVAL,
	},
	{
		.verb = "ibv_create_qp",
		.make = make_qp,
		.unmake = unmake_qp,
		.fault = "0x500, number 40",
		.error = EAGAIN,
	},
	{
		.verb = "ibv_alloc_mw",
		.make = make_mw,
		.unmake = unmake_mw,
		.fault = "0x200, number 40",
		.message = "CREATE_MKEY(0x200)",
		.error = ENOMEM,
	},
	{
		/* Up to 6.0 a key that the cache cannot make is made without it. */
		.verb = "ibv_reg_mr",
		.make = make_mr,
		.unmake = unmake_mr,
		.fault = "0x200, number 90",
		.second = "0x200, number 91",
		.message = "CREATE_MKEY(0x200)",
		.error = ENOMEM,
	},
};

static void test_failure(const struct failure *f)
{
	unsigned int keys = mlx5sim_live_keys(MLX5_LID);
	int faults = f->second ? 2 : 1;
	int failed = 0, wrong = 0, undone = 0, made = 0, good_after = 0;
	long pages = pinned();
	void *objects[ROUNDS];
	int messages, hits;

	kmsg_count(kmsg, "");
	for (int i = 0; i < ROUNDS && good_after < AFTERWARDS; i++) {
		long before = pinned();
		void *object = f->make();

		if (object) {
			objects[made++] = object;
			good_after += !!failed;
			continue;
		}
		failed++;
		good_after = 0;
		wrong += errno != f->error;
		undone += pinned() == before;
	}
	messages = f->message ? kmsg_count(kmsg, f->message) : 0;
	hits = injected(f->fault) + (f->second ? injected(f->second) : 0);
	is(hits, faults, "%s: the device had the fault", f->verb);
	ok(failed >= 1 && failed <= faults, "%s: failed %d times of %d", f->verb, failed,
	   made + failed);
	is(wrong, 0, "%s: %s", f->verb, strerror(f->error));
	if (f->message)
		is(messages, faults, "%s: the kernel tells", f->verb);
	is(undone, failed, "%s: no page stays pinned", f->verb);
	is(good_after, AFTERWARDS, "%s: the next ones work", f->verb);
	while (made)
		failed += !!f->unmake(objects[--made]) << 16;
	ok(failed < 1 << 16, "%s: all are given back", f->verb);
	is(pinned(), pages, "%s: pinned pages as before", f->verb);
	ok(mlx5sim_live_keys(MLX5_LID) == keys, "%s: live keys as before", f->verb);
}

static struct ibv_sge sge(void)
{
	return (struct ibv_sge){ .addr = (uintptr_t)mem_a, .length = SIZE, .lkey = mr_a->lkey };
}

/* Of fresh bytes: true if they are where they should be, completed or not */
static bool write_arrives(int *status)
{
	static uint64_t seed = 1;
	struct ibv_sge from = sge();
	struct ibv_wc wc;

	for (size_t i = 0; i < SIZE; i += 8) {
		uint64_t random = random_next(&seed);

		memcpy(mem_a + i, &random, 8);
	}
	if (rc_post(&pair.a, IBV_WR_RDMA_WRITE, &from, (uintptr_t)mem_b, mr_b->rkey))
		bail("%s: %s", rc_failed_call(), strerror(errno));
	*status = rc_wait(&pair.a, &wc, WAIT_MS);
	return !memcmp(mem_a, mem_b, SIZE);
}

static bool late_pd(void)
{
	void *pd = make_pd();

	return pd && !unmake_pd(pd);
}

static bool late_mr(void)
{
	void *mr = make_mr();

	return mr && !unmake_mr(mr);
}

static bool late_write(void)
{
	int status;

	return write_arrives(&status) && !status;
}

/* A completion that is late: the operation takes that long, and works. */
static void test_delay(const char *what, bool (*operation)(void), const char *fault)
{
	uint64_t longest = 0;
	int bad = 0, i;

	for (i = 0; i < ROUNDS && !injected(fault); i++) {
		uint64_t start = now_ms(), took;

		bad += !operation();
		took = now_ms() - start;
		longest = took > longest ? took : longest;
	}
	is(injected(fault), 1, "%s: the device is late once", what);
	is(bad, 0, "%s: all work", what);
	ok(longest >= DELAY_MS, "%s: one takes %llu ms", what, (unsigned long long)longest);
	ok(operation() && operation(), "%s: the next ones work", what);
}

/* A completion that never comes is the user's to miss; those behind it do come. */
static void test_lost_completion(const char *fault)
{
	int status = 0, arrived = 0, i;

	for (i = 0; i < ROUNDS && !status; i++)
		arrived += write_arrives(&status);
	is(injected(fault), 1, "lost completion: the device had the fault");
	is(status, -1, "lost completion: WRITE %d does not complete", i);
	is(arrived, i, "lost completion: its data arrived, too");
	ok(late_write() && late_write(), "lost completion: the next ones do complete");
	is(rc_pair_reconnect(&pair), 0, "lost completion: connect anew");
	ok(late_write(), "lost completion: WRITE");
}

/* A page fault that is resumed in error: nothing arrives, and the next one does. */
static void test_failed_resume(const char *fault)
{
	struct ibv_mr *odp;
	uint8_t *pages = rig_pages(SIZE);
	struct ibv_sge from = sge();
	int status = 0, i;

	odp = ibv_reg_mr(pair.b.pd, pages, SIZE, ACCESS | IBV_ACCESS_ON_DEMAND);
	if (!odp)
		bail("ODP registration: %s", strerror(errno));
	from.length = 8;
	for (i = 0; i < ROUNDS && !status; i++) {
		if (madvise(pages, SIZE, MADV_DONTNEED))
			bail("madvise: %s", strerror(errno));
		status = rc_do(&pair.a, IBV_WR_RDMA_WRITE, &from, (uintptr_t)pages, odp->rkey);
	}
	is(injected(fault), 1, "failed resume: the device had the fault");
	is(status, IBV_WC_REM_ACCESS_ERR, "failed resume: WRITE %d: %s", i,
	   ibv_wc_status_str(IBV_WC_REM_ACCESS_ERR));
	is(*(uint64_t *)pages, 0, "failed resume: nothing arrived");
	is(rc_pair_reconnect(&pair), 0, "failed resume: connect anew");
	madvise(pages, SIZE, MADV_DONTNEED);
	is(rc_do(&pair.a, IBV_WR_RDMA_WRITE, &from, (uintptr_t)pages, odp->rkey), 0,
	   "failed resume: the next one faults, and works");
	ok(!memcmp(pages, mem_a, 8), "failed resume: its data arrived");
	is(ibv_dereg_mr(odp), 0, "failed resume: deregister");
	munmap(pages, SIZE);
}

/*
 * The driver waits for a minute, then gives the command up, and its slot for good:
 * mlx5_core can neither be unloaded nor shut down after that.
 */
static void test_lost_command(const char *fault)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = 1, .cq_period = 1 },
	};
	uint64_t took = 0;
	int ret = 0, i;

	kmsg_count(kmsg, "");
	for (i = 0; i < ROUNDS && !ret; i++) {
		uint64_t start = now_ms();

		ret = ibv_modify_cq(pair.a.cq, &attr);
		took = now_ms() - start;
	}
	is(injected(fault), 1, "lost command: the device had the fault");
	is(ret, ETIMEDOUT, "lost command: ibv_modify_cq: %s", strerror(ETIMEDOUT));
	ok(took >= 60000 && took < 120000, "lost command: after %llu ms",
	   (unsigned long long)took);
	is(kmsg_count(kmsg, "MODIFY_CQ(0x403) timeout"), 1, "lost command: the kernel tells");
	is(ibv_modify_cq(pair.a.cq, &attr), 0, "lost command: the next one");
	ok(late_write(), "lost command: WRITE");
}

/* A task that waits for a command for a minute is none of those that hang. */
static void patience(const char *seconds)
{
	int fd = open(HUNG_TASK, O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, seconds, strlen(seconds)) < 0)
		bail("%s: %s", HUNG_TASK, strerror(errno));
	if (fd >= 0)
		close(fd);
}

static void set_up(void)
{
	ctx = mlx5_open();
	if (!ctx)
		tap_skip_all("no %s that is active", MLX5_DEVICE);
	if (rc_pair_init(&pair, ctx))
		bail("%s: %s", rc_failed_call(), strerror(errno));
	mr_a = ibv_reg_mr(pair.a.pd, mem_a, SIZE, ACCESS);
	mr_b = ibv_reg_mr(pair.b.pd, mem_b, SIZE, ACCESS);
	if (!mr_a || !mr_b)
		bail("ibv_reg_mr: %s", strerror(errno));
}

static void tear_down(void)
{
	is(ibv_dereg_mr(mr_a) ?: ibv_dereg_mr(mr_b), 0, "deregister");
	rc_pair_destroy(&pair);
	is(ibv_close_device(ctx), 0, "close the device");
}

int main(void)
{
	if (!mlx5sim_there())
		tap_skip_all("no simulated ConnectX");
	mem_a = rig_pages(SIZE);
	mem_b = rig_pages(SIZE);
	set_up();
	kmsg = kmsg_open();
	for (size_t i = 0; i < sizeof(failures) / sizeof(*failures); i++)
		test_failure(&failures[i]);
	test_delay("late command", late_pd, "cmd-delay:0x800, number 60");
	test_delay("late UMR", late_mr, "cqe-delay:0x25, number 200");
	test_delay("late completion", late_write, "cqe-delay:0x8, number 5");
	test_lost_completion("cqe-drop:0x8, number 15");
	test_failed_resume("resume-error:0x0, number 3");
	kmsg_count(kmsg, "");
	tear_down();

	ok(mlx5_reload(), "unload the drivers and load them");
	is(kmsg_count(kmsg, "failed, status"), 0, "without another failed command");
	set_up();
	patience("600");
	test_lost_command("cmd-drop:0x403, number 3");
	patience("60");
	tear_down();
	return tap_done();
}
