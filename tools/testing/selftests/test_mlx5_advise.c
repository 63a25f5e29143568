// SPDX-License-Identifier: GPL-2.0
/*
 * ibv_advise_mr() of dma-buf MRs: each advice, waiting and not, on a buffer that is
 * mapped, has moved, is busy, is gone, is not the caller's; and on MRs that are pinned.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "mlx5_rig.h"
#include "sim.h"
#include "tap.h"

#define OTHER_DEVICE	"mlx5_1"
#define SIZE		(256 * KIB)
#define IOVA		0x8800000100ull
#define OFFSET		0x100ull
#define LENGTH		(SIZE - 2 * OFFSET)
#define FENCE_MS	700
#define BUSY_MS		8000
#define LONG_MS		30000
#define ALARM_MS	100

#define READ		IBV_ADVISE_MR_ADVICE_PREFETCH
#define WRITE		IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE
#define NO_FAULT	IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT

static const struct advice {
	const char *name;
	uint64_t advice;
	uint32_t flags;
} advices[] = {
	{ "PREFETCH", READ, IBV_ADVISE_MR_FLAG_FLUSH },
	{ "PREFETCH_WRITE", WRITE, IBV_ADVISE_MR_FLAG_FLUSH },
	{ "PREFETCH_NO_FAULT", NO_FAULT, IBV_ADVISE_MR_FLAG_FLUSH },
	{ "PREFETCH, not waiting", READ, 0 },
	{ "PREFETCH_WRITE, not waiting", WRITE, 0 },
	{ "PREFETCH_NO_FAULT, not waiting", NO_FAULT, 0 },
};

#define ADVICES (sizeof(advices) / sizeof(*advices))

static struct rig rig;

static struct dmabuf *buffer_on(struct rig *on, struct mr *mr, uint32_t access)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct mr_reg reg = rig_reg_args(on, dmabuf_fd(buf), OFFSET, LENGTH, IOVA, access);
	int ret = mr_reg(&reg, mr);

	if (ret)
		bail("register: %s", strerror(ret));
	return buf;
}

static struct dmabuf *buffer(struct mr *mr, uint32_t access)
{
	return buffer_on(&rig, mr, access);
}

static void done(struct dmabuf *buf, struct mr *mr, const char *name)
{
	is(mr_dereg(mr), 0, "%s: deregister", name);
	dmabuf_free(buf);
}

static int advise(const struct advice *a, struct ibv_pd *pd, const struct ibv_sge *list,
		  uint32_t count)
{
	struct mr_advice how = {
		.pd = pd, .driver_id = rig.driver_id, .advice = a->advice, .flags = a->flags,
	};

	return mr_advise_as(&how, list, count);
}

static int advise_all(const struct advice *a, const struct mr *mr)
{
	struct ibv_sge sge = { .addr = IOVA, .length = LENGTH, .lkey = mr->lkey };

	return advise(a, rig.pair.b.pd, &sge, 1);
}

static void move(struct dmabuf *buf, uint32_t fence_ms)
{
	int ret = sim_move(buf, VRAMSIM_PLACEMENT_VRAM, VRAMSIM_MOVE_SHUFFLE, fence_ms);

	if (ret)
		bail("move: %s", strerror(ret));
}

static bool leads_to_buffer(const struct mr *mr, const struct dmabuf *buf)
{
	struct place place = place_of(buf);
	bool good = mlx5_leads_to(mr, IOVA, &place, OFFSET, LENGTH);

	place_free(&place);
	return good;
}

/* What does not wait is there a moment later. */
static bool mapped_within(const struct dmabuf *buf, int ms)
{
	for (; !sim_gem(buf).mapped && ms > 0; ms -= 10)
		usleep(10000);
	return sim_gem(buf).mapped;
}

static bool write_without_fault(const struct mr *mr, struct dmabuf *buf)
{
	struct spot spot = { &rig, mr, IOVA, buf, OFFSET, 16 * KIB };
	uint64_t faults = mlx5sim_stat(MLX5_LID, MLX5SIM_FAULTS);

	return transfers[0].run(&spot) && mlx5sim_stat(MLX5_LID, MLX5SIM_FAULTS) == faults;
}

/*
 * What has moved is fetched, and later faults by nobody; what is mapped needs nothing.
 * That comes last: an advice that nobody waits for may be followed after a next move.
 */
static void test_advice(const struct advice *a)
{
	bool fetches = a->advice != NO_FAULT || !rig.traits.ours;
	struct mr mr;
	struct dmabuf *buf = buffer(&mr, RIG_ACCESS);
	uint64_t umrs;

	move(buf, 0);
	is(mlx5_entries(&mr), 0, "%s: the buffer has moved", a->name);
	if (fetches) {
		is(advise_all(a, &mr), 0, "%s: of what has moved", a->name);
		ok(mapped_within(buf, a->flags ? 0 : RC_PATIENCE_MS), "%s: maps it", a->name);
		for (int ms = 0; !a->flags && ms < RC_PATIENCE_MS && !mlx5_entries(&mr); ms += 10)
			usleep(10000);
		ok(leads_to_buffer(&mr, buf), "%s: the key leads there", a->name);
		ok(write_without_fault(&mr, buf), "%s: a WRITE has no fault then", a->name);
	} else {
		advise_all(a, &mr);
		usleep(a->flags ? 0 : 300 * 1000);
		ok(!sim_gem(buf).mapped && !mlx5_entries(&mr), "%s: maps nothing", a->name);
		ok(rig_works(&rig, &mr, IOVA, buf, OFFSET, LENGTH), "%s: the MR works", a->name);
	}
	umrs = mlx5sim_stat(MLX5_LID, MLX5SIM_UMRS);
	is(advise_all(a, &mr), 0, "%s: of what is mapped", a->name);
	/* The kernel's own code writes all of it again. */
	ok(mlx5sim_stat(MLX5_LID, MLX5SIM_UMRS) == umrs || !rig.traits.ours,
	   "%s: is no work for the adapter", a->name);
	done(buf, &mr, a->name);
}

/* Several ranges of several MRs in one call */
static void test_list(void)
{
	struct dmabuf *bufs[2];
	struct mr mrs[2];
	struct ibv_sge list[4];
	int wrong = 0;

	for (int i = 0; i < 2; i++) {
		bufs[i] = buffer(&mrs[i], RIG_ACCESS);
		move(bufs[i], 0);
		list[i] = (struct ibv_sge){ IOVA, 4096, mrs[i].lkey };
		list[2 + i] = (struct ibv_sge){ IOVA + LENGTH - 1, 1, mrs[i].lkey };
	}
	is(advise(&advices[1], rig.pair.b.pd, list, 4), 0, "list: four ranges of two MRs");
	for (int i = 0; i < 2; i++) {
		wrong += !leads_to_buffer(&mrs[i], bufs[i]);
		done(bufs[i], &mrs[i], "list");
	}
	is(wrong, 0, "list: both keys lead to their buffers");
}

/* A range or an MR that is not the caller's brings an error and maps nothing. */
static void test_refused(void)
{
	struct mr mr, gone;
	struct dmabuf *buf = buffer(&mr, RIG_ACCESS), *other = buffer(&gone, RIG_ACCESS);
	const struct {
		const char *name;
		struct ibv_pd *pd;
		struct ibv_sge sge;
		bool end;	/* which the kernel's own code does not look at */
	} rows[] = {
		{ "another PD", rig.pair.a.pd, { IOVA, 4096, mr.lkey }, false },
		{ "before the MR", rig.pair.b.pd, { IOVA - 4096, 4096, mr.lkey }, false },
		{ "from before the MR on", rig.pair.b.pd, { IOVA - 1, 4096, mr.lkey }, false },
		{ "behind the MR", rig.pair.b.pd, { IOVA + LENGTH, 4096, mr.lkey }, true },
		{ "over the end of the MR", rig.pair.b.pd, { IOVA + LENGTH - 1, 2, mr.lkey }, true },
		{ "over the end of all numbers", rig.pair.b.pd, { -4096ull, 8192, mr.lkey }, true },
		{ "a key that is gone", rig.pair.b.pd, { IOVA, 4096, gone.lkey }, false },
	};

	move(buf, 0);
	done(other, &gone, "refused");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (rows[i].end && !rig.traits.ours)
			continue;
		for (size_t a = 0; a < ADVICES; a++) {
			int ret = advise(&advices[a], rows[i].pd, &rows[i].sge, 1);

			/* What does not wait need not tell, but must not do it either. */
			ok(ret || !advices[a].flags, "refused: %s: %s", advices[a].name,
			   rows[i].name);
		}
	}
	usleep(300 * 1000);
	ok(!sim_gem(buf).mapped, "refused: none of them has mapped the buffer");
	ok(rig_works(&rig, &mr, IOVA, buf, OFFSET, LENGTH), "refused: the MR works");
	done(buf, &mr, "refused");
}

static void test_read_only(void)
{
	struct mr mr;
	struct dmabuf *buf = buffer(&mr, IBV_ACCESS_REMOTE_READ);

	move(buf, 0);
	ok(advise_all(&advices[1], &mr), "read only: PREFETCH_WRITE is refused");
	ok(!sim_gem(buf).mapped, "read only: and maps nothing");
	is(advise_all(&advices[0], &mr), 0, "read only: PREFETCH");
	ok(sim_gem(buf).mapped, "read only: maps it");
	done(buf, &mr, "read only");
}

static void no_handler(int sig)
{
	(void)sig;
}

static void alarm_in(int ms)
{
	struct sigaction action = { .sa_handler = no_handler };
	struct itimerval timer = { .it_value.tv_usec = ms * 1000 };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

/* Only a call that asks for it waits until the exporter's copy has ended. */
static void test_fence(void)
{
	struct mr mr;
	struct dmabuf *buf = buffer(&mr, RIG_ACCESS);
	uint64_t started, took;

	move(buf, FENCE_MS);
	started = now_ms();
	is(advise_all(&advices[1], &mr), 0, "fence: advise, and wait");
	took = now_ms() - started;
	ok(took >= FENCE_MS / 2, "fence: it waited (%" PRIu64 " ms)", took);
	ok(leads_to_buffer(&mr, buf), "fence: and the key leads there");

	move(buf, FENCE_MS);
	started = now_ms();
	is(advise_all(&advices[4], &mr), 0, "fence: advise, and do not wait");
	took = now_ms() - started;
	ok(took < FENCE_MS / 2, "fence: it did not wait (%" PRIu64 " ms)", took);
	ok(rig_works(&rig, &mr, IOVA, buf, OFFSET, LENGTH), "fence: the MR works in the end");

	if (rig.traits.ours) {
		move(buf, LONG_MS);
		alarm_in(ALARM_MS);
		started = now_ms();
		is(advise_all(&advices[1], &mr), EINTR, "fence: a signal ends the wait");
		ok(now_ms() - started < LONG_MS / 2, "fence: at once");
		is(mlx5_entries(&mr), 0, "fence: the key leads nowhere");
	} else {
		skip("fence: a signal ends the wait", "the kernel's own code cannot be interrupted");
	}
	done(buf, &mr, "fence");
}

/*
 * Lets an MR go while what was asked for has not begun.  Linux 5.10 begins with 512 pieces
 * of such work at once: so many keep @other waiting, another adapter.  False if it had
 * begun all the same, @busy_ms having been too short.
 */
static bool goes_before(struct rig *other, uint32_t busy_ms)
{
	enum { AT_ONCE = 512 };
	struct mr mr, busy_mr;
	struct dmabuf *buf = buffer(&mr, RIG_ACCESS);
	struct dmabuf *busy = buffer_on(other, &busy_mr, RIG_ACCESS);
	struct ibv_sge all_busy = { IOVA, LENGTH, busy_mr.lkey };
	int failed = 0;
	bool begun;

	move(buf, 0);
	move(busy, busy_ms);
	for (int i = 0; i < AT_ONCE + 100; i++)
		failed += !!advise(&advices[4], other->pair.b.pd, &all_busy, 1);
	is(failed, 0, "goes: another adapter's buffer is busy");
	is(advise_all(&advices[4], &mr), 0, "goes: advise, and do not wait");
	begun = sim_gem(buf).mapped;
	is(mr_dereg(&mr), 0, "goes: deregister");
	is(sim_gem(buf).attached, 0, "goes: the exporter has its buffer back");
	dmabuf_free(buf);
	done(busy, &busy_mr, "goes: the other adapter's");
	return !begun;
}

static void test_goes(void)
{
	struct rig other;

	if (!rig.traits.ours) {
		skip("goes", "how much is begun at once is known of Linux 5.10");
		return;
	}
	if (access("/sys/class/infiniband/" OTHER_DEVICE, F_OK)) {
		skip("goes", "takes two adapters");
		return;
	}
	setenv("RIG_DEVICE", OTHER_DEVICE, 1);
	rig_up(&other);
	setenv("RIG_DEVICE", MLX5_DEVICE, 1);
	for (uint32_t ms = BUSY_MS; !goes_before(&other, ms); ms *= 2)
		diag("goes: it had begun");
	rig_down(&other);
}

/* An exporter that fails is not asked again for ever. */
static void test_exporter_fails(void)
{
	struct mr mr;
	struct dmabuf *buf = buffer(&mr, RIG_ACCESS);

	move(buf, 0);
	sim_inject(buf, VRAMSIM_INJECT_MAP, 1, EINVAL);
	ok(advise_all(&advices[1], &mr), "exporter says EINVAL: an error");
	is(advise_all(&advices[1], &mr), 0, "exporter is well again: done");
	ok(rig_works(&rig, &mr, IOVA, buf, OFFSET, LENGTH), "exporter is well again: the MR works");
	is(sim_revoke(buf), 0, "revoke");
	for (size_t a = 0; a < ADVICES; a++)
		if (advices[a].flags && advices[a].advice != NO_FAULT)
			ok(advise_all(&advices[a], &mr), "revoked: %s: an error", advices[a].name);
	done(buf, &mr, "revoked");
}

/* There is nothing to fetch where nothing can go. */
static void test_pinned(const char *what, uint32_t flags)
{
	const struct dmabuf_opts opts = { .flags = flags };
	struct dmabuf *buf = rig_vram(SIZE, &opts);
	struct ibv_sge ranges[2];
	struct mr mr, first;
	struct dmabuf *first_buf = buffer(&first, RIG_ACCESS);

	is(rig_reg(&rig, dmabuf_fd(buf), OFFSET, LENGTH, IOVA, &mr), 0, "%s: register", what);
	ranges[0] = (struct ibv_sge){ IOVA, 4096, first.lkey };
	ranges[1] = (struct ibv_sge){ IOVA, 4096, mr.lkey };
	for (size_t a = 0; a < ADVICES; a++) {
		is(advise_all(&advices[a], &mr), EOPNOTSUPP, "%s: %s", what, advices[a].name);
		is(advise(&advices[a], rig.pair.b.pd, ranges, 2), EOPNOTSUPP,
		   "%s: %s: behind another one", what, advices[a].name);
	}
	ok(rig_works(&rig, &mr, IOVA, buf, OFFSET, LENGTH), "%s: the MR works", what);
	done(first_buf, &first, what);
	done(buf, &mr, what);
}

static int no_such_mr(const struct advice *a)
{
	if (!rig.traits.faults)
		return EOPNOTSUPP;
	return a->flags ? ENOENT : EINVAL;
}

/* Of a key that is not that of a pinned dma-buf MR, the kernel says what it always did. */
static void test_not_ours_to_answer(void)
{
	struct ibv_sge host = { (uintptr_t)rig.host, 4096, rig.host_mr->lkey };
	const struct dmabuf_opts opts = { .flags = VRAMSIM_CREATE_STATIC };
	struct dmabuf *buf = rig_vram(SIZE, &opts);
	struct ibv_sge sge = { .addr = IOVA, .length = 4096 };
	struct mr mr;

	is(rig_reg(&rig, dmabuf_fd(buf), OFFSET, LENGTH, IOVA, &mr), 0, "others: register");
	sge.lkey = mr.lkey;
	for (size_t a = 0; a < ADVICES; a++) {
		int want = no_such_mr(&advices[a]);

		is(advise(&advices[a], rig.pair.a.pd, &host, 1), want,
		   "others: %s: pinned host memory", advices[a].name);
		is(advise(&advices[a], rig.pair.a.pd, &sge, 1), want,
		   "others: %s: another PD's", advices[a].name);
		sge.lkey ^= 1;
		is(advise(&advices[a], rig.pair.b.pd, &sge, 1), want,
		   "others: %s: a key that is not there", advices[a].name);
		sge.lkey ^= 1;
	}
	done(buf, &mr, "others");
	for (size_t a = 0; a < ADVICES; a++)
		is(advise(&advices[a], rig.pair.b.pd, &sge, 1), no_such_mr(&advices[a]),
		   "others: %s: a key that is gone", advices[a].name);
}

int main(void)
{
	struct counters start;

	mlx5_rig_up(&rig);
	counters_get(&start);
	if (rig.traits.follows) {
		for (size_t a = 0; a < ADVICES; a++)
			test_advice(&advices[a]);
		test_list();
		test_refused();
		test_read_only();
		test_fence();
		test_goes();
		test_exporter_fails();
	} else if (rig.traits.ours) {
		test_pinned("pinned", 0);
	}
	if (rig.traits.ours) {
		test_pinned("static", VRAMSIM_CREATE_STATIC);
		test_not_ours_to_answer();
	} else {
		skip("static", "to the kernel's own code it is an MR that faults");
	}
	ok(counters_back(&start, LONG_MS + 5000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
