// SPDX-License-Identifier: GPL-2.0
/*
 * A buffer that moves a thousand times, each time a millisecond after the last one,
 * under traffic of eight queue pairs that look at every byte; one that is pinned and
 * refuses; and a revoke in the middle of traffic.
 *
 *	test_mlx5_churn [--moves N] [--mib N] [--part-kib N] [--seed N]
 *
 * At least N moves and N MiB of bytes that came back; parts of the buffer of N KiB, one
 * for each queue pair: from 65536 on, a table of small pages takes more than one UMR.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mlx5_rig.h"
#include "sim.h"
#include "tap.h"

#define PAIRS		4
#define LANES		(2 * PAIRS)	/* each end of each pair posts */
#define LONGEST		(64 * KIB)
#define WHOLE		0
#define IOVA		0x780000000000ull
#define GAP_US		1000
#define DEADLINE_MS	(20 * 60 * 1000)
#define REFUSALS	200

/*
 * One posting queue pair and its part of the buffer.  The MR is on side b of its pair:
 * what side a posts reaches it as remote memory, what side b posts as local memory.
 */
struct lane {
	struct rc_end *end;
	const struct mr *mr;
	bool local;
	uint64_t offset;		/* of its part, in the buffer and in the MR */
	uint8_t host[LONGEST];
	struct ibv_mr *host_mr;
	uint8_t *shadow;		/* what its part holds */
	uint64_t random;

	uint64_t at;			/* what is under way */
	uint32_t length;
	bool gets;

	int status;			/* that ended it, if not 0 */
	bool differs;
	atomic_ullong verified;		/* bytes */
};

static struct rig rig;
static struct rc_pair pairs[PAIRS];
static struct mr mrs[PAIRS];
static struct lane lanes[LANES];
static atomic_bool stop;
static uint64_t part;			/* bytes of the buffer for each lane */

static void post_next(struct lane *lane)
{
	struct ibv_sge host = { (uintptr_t)lane->host, 0, lane->host_mr->lkey };
	struct ibv_sge mr = { .lkey = lane->mr->lkey };
	enum ibv_wr_opcode opcode;
	int ret;

	/* A put, and then a get of the same or of other bytes */
	lane->gets = !lane->gets;
	lane->length = 1 + random_next(&lane->random) % LONGEST;
	lane->at = random_next(&lane->random) % (part - lane->length + 1);
	if (!lane->gets) {
		for (uint32_t i = 0; i < lane->length; i++)
			lane->host[i] = random_next(&lane->random);
		memcpy(lane->shadow + lane->at, lane->host, lane->length);
	}
	host.length = lane->length;
	mr.length = lane->length;
	mr.addr = IOVA + lane->offset + lane->at;
	opcode = lane->gets != lane->local ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
	if (lane->local)
		ret = rc_post(lane->end, opcode, &mr, host.addr, lane->host_mr->rkey);
	else
		ret = rc_post(lane->end, opcode, &host, mr.addr, lane->mr->rkey);
	if (ret)
		bail("%s: %s", rc_failed_call(), strerror(errno));
}

static bool under_way(const struct lane *lane)
{
	return lane->length;
}

/* Looks once for the lane's completion. */
static void poll_lane(struct lane *lane)
{
	struct ibv_wc wc;
	int ret = ibv_poll_cq(lane->end->cq, 1, &wc);

	if (ret < 0)
		bail("ibv_poll_cq: %s", strerror(errno));
	if (!ret)
		return;
	if (wc.status)
		lane->status = wc.status;
	else if (lane->gets && memcmp(lane->host, lane->shadow + lane->at, lane->length))
		lane->differs = true;
	else if (lane->gets)
		lane->verified += lane->length;
	lane->length = 0;
	if (!lane->status && !lane->differs && !stop)
		post_next(lane);
}

static void *run_traffic(void *arg)
{
	bool busy = true;

	(void)arg;
	for (int i = 0; i < LANES; i++)
		post_next(&lanes[i]);
	while (busy) {
		busy = false;
		for (int i = 0; i < LANES; i++) {
			if (under_way(&lanes[i]))
				poll_lane(&lanes[i]);
			busy |= under_way(&lanes[i]);
		}
		sched_yield();
	}
	return NULL;
}

static pthread_t traffic_start(void)
{
	pthread_t thread;

	stop = false;
	if (pthread_create(&thread, NULL, run_traffic, NULL))
		bail("no thread");
	return thread;
}

static void lane_up(struct lane *lane, int number, struct dmabuf *buf, uint64_t *random)
{
	struct rc_pair *pair = &pairs[number / 2];

	*lane = (struct lane){
		.local = number % 2,
		.end = number % 2 ? &pair->b : &pair->a,
		.mr = &mrs[number / 2],
		.offset = number * part,
		.shadow = malloc(part),
		.random = random_next(random),
	};
	if (!lane->shadow)
		bail("no memory");
	for (uint64_t i = 0; i < part; i += 4) {
		uint32_t bytes = random_next(random);

		memcpy(lane->shadow + i, &bytes, 4);
	}
	if (dmabuf_write(buf, lane->offset, lane->shadow, part))
		bail("exporter: %s", strerror(errno));
	lane->host_mr = ibv_reg_mr(pair->a.pd, lane->host, LONGEST, RIG_ACCESS);
	if (!lane->host_mr)
		bail("ibv_reg_mr: %s", strerror(errno));
}

/* Each pair has an MR of its own on the whole buffer. */
static struct dmabuf *set_up(const struct dmabuf_opts *opts, uint64_t *random)
{
	uint64_t size = LANES * part;
	struct dmabuf *buf = rig_vram(size, opts);

	for (int i = 0; i < PAIRS; i++) {
		struct mr_reg reg = rig_reg_args(&rig, dmabuf_fd(buf), 0, size, IOVA, RIG_ACCESS);
		int ret;

		if (rc_pair_init(&pairs[i], rig.ctx))
			bail("%s: %s", rc_failed_call(), strerror(errno));
		reg.pd = pairs[i].b.pd;
		ret = mr_reg(&reg, &mrs[i]);
		if (ret)
			bail("register: %s", strerror(ret));
	}
	for (int i = 0; i < LANES; i++)
		lane_up(&lanes[i], i, buf, random);
	return buf;
}

static void tear_down(const char *what, struct dmabuf *buf)
{
	int failed = 0;

	for (int i = 0; i < LANES; i++) {
		ibv_dereg_mr(lanes[i].host_mr);
		free(lanes[i].shadow);
	}
	for (int i = 0; i < PAIRS; i++) {
		failed += !!mr_dereg(&mrs[i]);
		rc_pair_destroy(&pairs[i]);
	}
	is(failed, 0, "%s: deregister", what);
	dmabuf_free(buf);
}

/* All lanes good, and the exporter sees what they wrote. */
static void check_lanes(const char *what, struct dmabuf *buf, uint64_t least)
{
	uint8_t *seen = malloc(part);
	uint64_t verified = 0;

	if (!seen)
		bail("no memory");

	for (int i = 0; i < LANES; i++) {
		struct lane *lane = &lanes[i];

		is(lane->status, 0, "%s: lane %d: no error", what, i);
		ok(!lane->differs, "%s: lane %d: every byte got is the one put", what, i);
		ok(lane->verified >= least, "%s: lane %d: %llu KiB verified", what, i,
		   lane->verified / KIB);
		if (dmabuf_read(buf, lane->offset, seen, part))
			bail("exporter: %s", strerror(errno));
		ok(!memcmp(seen, lane->shadow, part), "%s: lane %d: the exporter sees it, too",
		   what, i);
		verified += lane->verified;
	}
	free(seen);
	diag("%s: %llu MiB verified", what, verified / MIB);
}

static uint64_t least_verified(void)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < LANES; i++)
		if (lanes[i].verified < least)
			least = lanes[i].verified;
	return least;
}

static bool all_good(void)
{
	bool good = true;

	for (int i = 0; i < LANES; i++)
		good &= !lanes[i].status && !lanes[i].differs;
	return good;
}

/* Anywhere, in pieces of any size */
static int move_somewhere(struct dmabuf *buf, uint64_t *random)
{
	static const uint64_t cuts[] = { 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, 2 * MIB, WHOLE };
	uint64_t cut = cuts[random_next(random) % (sizeof(cuts) / sizeof(*cuts))];
	bool vram = random_next(random) % 2;

	return sim_move_cut(buf, vram ? VRAMSIM_PLACEMENT_VRAM : VRAMSIM_PLACEMENT_SYSTEM,
			    cut == WHOLE ? dmabuf_size(buf) : cut);
}

static void test_moves(uint64_t moves, uint64_t least, uint64_t *random)
{
	static const struct dmabuf_opts opts = {
		.flags = VRAMSIM_CREATE_SCATTER, .segment_size = 16 * KIB, .seed = 3,
	};
	struct dmabuf *buf = set_up(&opts, random);
	uint64_t faults = mlx5sim_stat(MLX5_LID, MLX5SIM_FAULTS);
	uint64_t resumes = mlx5sim_stat(MLX5_LID, MLX5SIM_RESUMES);
	uint64_t begun = now_ms(), gaps = 0, asked = 0, done = 0;
	pthread_t thread = traffic_start();
	unsigned int failed = 0, mapped = 0;

	while ((done < moves || least_verified() < least) && all_good() &&
	       now_ms() - begun < DEADLINE_MS) {
		struct place old = place_of(buf);
		uint64_t ended, took;

		failed += !!move_somewhere(buf, random);
		ended = now_ns();
		mapped += !place_unmapped(&old);
		place_free(&old);
		if (!(++done % 100))
			diag("%" PRIu64 " moves, %llu KiB of the slowest lane verified", done,
			     least_verified() / KIB);
		took = (now_ns() - ended) / 1000;
		asked += took;
		if (took < GAP_US)
			usleep(GAP_US - took);
		gaps += (now_ns() - ended) / 1000;
	}
	stop = true;
	pthread_join(thread, NULL);

	diag("%" PRIu64 " moves in %" PRIu64 " ms; mean from the end of one to the next: %" PRIu64
	     " us, of them to ask: %" PRIu64, done, now_ms() - begun, gaps / (done ?: 1),
	     asked / (done ?: 1));
	ok(done >= moves, "moves: %" PRIu64 ", wanted %" PRIu64, done, moves);
	is(failed, 0, "moves: all succeed");
	is(mapped, 0, "moves: no key maps an old place, after any of them");
	is(sim_gem(buf).notifies, sim_gem(buf).moves, "moves: an invalidation for each");
	check_lanes("moves", buf, least);
	faults = mlx5sim_stat(MLX5_LID, MLX5SIM_FAULTS) - faults;
	resumes = mlx5sim_stat(MLX5_LID, MLX5SIM_RESUMES) - resumes;
	ok(faults >= done / 2, "moves: traffic ran into them: %" PRIu64 " faults", faults);
	is(resumes, faults, "moves: each fault resumed");
	tear_down("moves", buf);
}

static void test_refusal(const char *what, uint32_t flags, uint64_t *random)
{
	struct dmabuf_opts opts = { .flags = flags };
	struct dmabuf *buf = set_up(&opts, random);
	uint64_t faults = mlx5sim_stat(MLX5_LID, MLX5SIM_FAULTS);
	struct place place = place_of(buf);
	pthread_t thread = traffic_start();
	unsigned int refused = 0;

	for (int i = 0; i < REFUSALS; i++) {
		refused += sim_move(buf, i % 2 ? VRAMSIM_PLACEMENT_VRAM : VRAMSIM_PLACEMENT_SYSTEM,
				    VRAMSIM_MOVE_SHUFFLE, 0) == EBUSY;
		usleep(GAP_US);
	}
	while (!least_verified() && all_good())
		usleep(GAP_US);
	stop = true;
	pthread_join(thread, NULL);

	is(refused, REFUSALS, "%s: moves refused", what);
	ok(place_holds(&place, buf), "%s: is where it was", what);
	place_free(&place);
	check_lanes(what, buf, 1);
	is(mlx5sim_stat(MLX5_LID, MLX5SIM_FAULTS), faults, "%s: no page fault", what);
	tear_down(what, buf);
}

/*
 * The first lane of a pair to reach for the memory gets the error, and takes the other
 * one's queue pair with it: that one is flushed, or gets no answer any more.
 */
static bool pair_ended(const struct lane *remote, const struct lane *local)
{
	bool remote_denied = remote->status == IBV_WC_REM_ACCESS_ERR;
	bool local_denied = local->status == IBV_WC_LOC_PROT_ERR;

	if (remote_denied && (local_denied || local->status == IBV_WC_WR_FLUSH_ERR))
		return true;
	if (local_denied && (remote->status == IBV_WC_WR_FLUSH_ERR ||
			     remote->status == IBV_WC_RETRY_EXC_ERR))
		return true;
	diag("  remote: %s, local: %s", ibv_wc_status_str(remote->status),
	     ibv_wc_status_str(local->status));
	return false;
}

static void test_revoke(uint64_t *random)
{
	struct dmabuf *buf = set_up(NULL, random);
	struct place old = place_of(buf);
	pthread_t thread = traffic_start();
	bool unmapped;

	while (least_verified() < LONGEST && all_good())
		usleep(GAP_US);
	is(sim_revoke(buf), 0, "revoke");
	unmapped = place_unmapped(&old);
	pthread_join(thread, NULL);
	ok(unmapped, "revoke: no key maps the memory");
	for (int i = 0; i < LANES; i++)
		ok(!lanes[i].differs, "revoke: lane %d: every byte got is the one put", i);
	for (int i = 0; i < PAIRS; i++)
		ok(pair_ended(&lanes[2 * i], &lanes[2 * i + 1]),
		   "revoke: pair %d ended in an error", i);
	place_free(&old);
	tear_down("revoke", buf);
}

int main(int argc, char **argv)
{
	uint64_t moves = option_number(argc, argv, "moves", 1000);
	uint64_t mib = option_number(argc, argv, "mib", 64);
	uint64_t part_kib = option_number(argc, argv, "part-kib", 256);
	uint64_t random = random_seed(argc, argv);
	struct counters start;

	part = part_kib * KIB;
	mlx5_rig_up(&rig);
	counters_get(&start);
	if (mlx5_follows_moves())
		test_moves(moves, mib * MIB / LANES, &random);
	else
		test_refusal("dynamic buffer", 0, &random);
	test_refusal("static buffer", VRAMSIM_CREATE_STATIC, &random);
	test_revoke(&random);
	ok(counters_back(&start, 2000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
