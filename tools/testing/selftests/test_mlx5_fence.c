// SPDX-License-Identifier: GPL-2.0
/*
 * An exporter that is busy for long: the page fault that waits for it keeps nobody else
 * waiting.  Other MRs work, register and deregister, and the very MR can go, too.
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "child.h"
#include "mlx5_rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE		(128 * KIB)
#define IOVA		0xaa00000000ull
#define FENCE_MS	30000
#define SOON_MS		(FENCE_MS / 2)	/* long before the fence, on a slow machine */
#define LATEST_US	5000

static struct rig rig;

static struct dmabuf *buffer(struct rig *on, struct mr *mr)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	int ret = rig_reg(on, dmabuf_fd(buf), 0, SIZE, IOVA, mr);

	if (ret)
		bail("register: %s", strerror(ret));
	return buf;
}

static void soon(uint64_t since, const char *name)
{
	uint64_t took = now_ms() - since;

	ok(took < SOON_MS, "%s: soon (%" PRIu64 " ms)", name, took);
}

/* A WRITE that the device cannot do before the exporter's copy ends */
static void post_into_busy(struct dmabuf *buf, const struct mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)rig.host, 4096, rig.host_mr->lkey };
	uint64_t faults = mlx5sim_stat(MLX5_LID, MLX5SIM_FAULTS);

	if (sim_move(buf, VRAMSIM_PLACEMENT_SYSTEM, 0, FENCE_MS))
		bail("cannot move");
	if (rc_post(&rig.pair.a, IBV_WR_RDMA_WRITE, &sge, IOVA, mr->rkey))
		bail("%s: %s", rc_failed_call(), strerror(errno));
	for (int ms = 0; ms < RC_PATIENCE_MS && mlx5sim_stat(MLX5_LID, MLX5SIM_FAULTS) == faults;
	     ms++)
		usleep(1000);
	ok(mlx5sim_stat(MLX5_LID, MLX5SIM_FAULTS) > faults, "a WRITE faults, and waits");
}

/* Registers, works, moves, is fetched, works and goes, with queue pairs of its own */
static void test_others(void)
{
	uint8_t *pages = rig_pages(SIZE);
	uint64_t begun = now_ms();
	struct dmabuf *buf;
	struct ibv_mr *odp;
	struct rig other;
	struct mr mr;

	rig_up(&other);
	buf = buffer(&other, &mr);
	ok(rig_works(&other, &mr, IOVA, buf, 0, SIZE), "another MR works");
	is(sim_move(buf, VRAMSIM_PLACEMENT_SYSTEM, 0, 0), 0, "its buffer moves");
	ok(rig_works(&other, &mr, IOVA, buf, 0, SIZE), "its page faults are served");
	is(sim_move(buf, VRAMSIM_PLACEMENT_VRAM, 0, 0), 0, "its buffer moves back");
	is(mr_advise(&mr, other.pair.b.pd, IOVA, SIZE), 0, "it is fetched");
	is(mr_dereg(&mr), 0, "it goes");
	soon(begun, "another MR");
	dmabuf_free(buf);

	begun = now_ms();
	odp = ibv_reg_mr(other.pair.b.pd, pages, SIZE, RIG_ACCESS | IBV_ACCESS_ON_DEMAND);
	if (!odp)
		bail("ODP registration: %s", strerror(errno));
	mr.rkey = odp->rkey;
	is(rig_write(&other, &mr, (uintptr_t)pages, "x", 1), IBV_WC_SUCCESS,
	   "host memory with page faults works");
	is(ibv_dereg_mr(odp), 0, "it goes");
	soon(begun, "host memory with page faults");
	ok(rig_host_mrs_work(&other, 10), "host memory works");
	rig_down(&other);
}

/* The MR goes from under the page fault: the WRITE ends in an error. */
static void test_goes(void)
{
	struct mr mr;
	struct dmabuf *buf = buffer(&rig, &mr);
	uint64_t begun;
	struct ibv_wc wc;

	post_into_busy(buf, &mr);
	begun = now_ms();
	is(mr_dereg(&mr), 0, "the very MR goes");
	soon(begun, "the very MR");
	is(sim_gem(buf).attached, 0, "the exporter has its buffer back");
	is(rc_wait(&rig.pair.a, &wc, RC_PATIENCE_MS), IBV_WC_REM_ACCESS_ERR,
	   "the WRITE ends in an error");
	if (rc_pair_reconnect(&rig.pair))
		bail("%s: %s", rc_failed_call(), strerror(errno));
	dmabuf_free(buf);
}

/* In a child, for it is the wait itself that is waited for */
static int fetch(void *arg)
{
	struct dmabuf *buf = arg;
	struct ibv_context *ctx = rc_open(rig_device());
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	struct mr_reg reg = {
		.pd = pd, .driver_id = rig.driver_id, .fd = dmabuf_fd(buf), .length = SIZE,
		.iova = IOVA, .access = RIG_ACCESS,
	};
	struct mr mr;

	if (!pd || mr_reg(&reg, &mr))
		return 1;
	if (sim_move(buf, VRAMSIM_PLACEMENT_SYSTEM, 0, FENCE_MS))
		return 2;
	return mr_advise(&mr, pd, IOVA, SIZE) ? 3 : 0;
}

static void test_prefetch(void)
{
	struct mr other;
	struct dmabuf *buf = rig_vram(SIZE, NULL), *own = buffer(&rig, &other);
	uint64_t begun;
	pid_t pid = child_start(fetch, buf);

	for (int ms = 0; ms < RC_PATIENCE_MS && sim_gem(buf).placement == VRAMSIM_PLACEMENT_VRAM; ms++)
		usleep(1000);
	usleep(200 * 1000);
	ok(!child_ended(pid), "a prefetch waits");
	begun = now_ms();
	is(mr_dereg(&other), 0, "an MR of somebody else goes");
	soon(begun, "an MR of somebody else");
	is(child_wait(pid, FENCE_MS + RC_PATIENCE_MS), 0, "the prefetch ends well");
	dmabuf_free(own);
	dmabuf_free(buf);
}

/*
 * An MR goes while a page fault for it begins, at any point of it.  This process goes
 * first: with one CPU the fault waits wherever it is.
 */
static void test_goes_in_between(unsigned int rounds)
{
	const struct sched_param first = { .sched_priority = 1 }, as_others = { 0 };
	struct ibv_sge sge = { (uintptr_t)rig.host, 4096, rig.host_mr->lkey };
	unsigned int failed = 0, late = 0;
	uint64_t seed = 9;

	for (unsigned int i = 0; i < rounds; i++) {
		struct ibv_wc wc;
		struct mr mr;
		struct dmabuf *buf = buffer(&rig, &mr);
		int status;

		if (sim_move(buf, VRAMSIM_PLACEMENT_VRAM, VRAMSIM_MOVE_SHUFFLE, 0))
			bail("cannot move");
		if (sched_setscheduler(0, SCHED_FIFO, &first))
			bail("sched_setscheduler: %s", strerror(errno));
		if (rc_post(&rig.pair.a, IBV_WR_RDMA_WRITE, &sge, IOVA, mr.rkey))
			bail("%s: %s", rc_failed_call(), strerror(errno));
		usleep(random_next(&seed) % LATEST_US);
		failed += !!mr_dereg(&mr);
		if (sched_setscheduler(0, SCHED_OTHER, &as_others))
			bail("sched_setscheduler: %s", strerror(errno));
		status = rc_wait(&rig.pair.a, &wc, RC_PATIENCE_MS);
		failed += status < 0;
		late += !status;
		if (status && rc_pair_reconnect(&rig.pair))
			bail("%s: %s", rc_failed_call(), strerror(errno));
		dmabuf_free(buf);
	}
	is(failed, 0, "an MR goes, a fault of it begins: %u times, in %u the fault had ended",
	   rounds, late);
	ok(rig_host_mrs_work(&rig, 4), "host MRs work after that");
}

int main(int argc, char **argv)
{
	unsigned int rounds = option_number(argc, argv, "rounds", 100);
	struct counters start;
	struct dmabuf *busy;
	struct ibv_wc wc;
	uint64_t begun;
	struct mr mr;

	mlx5_rig_up(&rig);
	if (!rig.traits.ours)
		tap_skip_all("the kernel's own code waits to the end");
	if (!rig.traits.follows)
		tap_skip_all("nothing moves here");
	counters_get(&start);
	busy = buffer(&rig, &mr);
	begun = now_ms();
	post_into_busy(busy, &mr);
	test_others();
	is(rc_wait(&rig.pair.a, &wc, FENCE_MS + RC_PATIENCE_MS), IBV_WC_SUCCESS, "the WRITE ends well");
	ok(now_ms() - begun > FENCE_MS / 2, "when the copy does");
	is(mr_dereg(&mr), 0, "deregister");
	dmabuf_free(busy);
	test_goes();
	test_prefetch();
	test_goes_in_between(rounds);
	ok(counters_back(&start, FENCE_MS + RC_PATIENCE_MS), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
