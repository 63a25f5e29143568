// SPDX-License-Identifier: GPL-2.0
/*
 * Buffers that move, and dma-buf MRs of mlx5 on them.
 *
 * Where driver and adapter follow moves: the adapter forgets the old place before the
 * exporter gives it away, a page fault brings the new one, and no byte gets lost.
 * Where the buffer is pinned, it does not move.  A revoke ends both.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mlx5_rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE		(1 * MIB)
#define IOVA		0x5600000100ull
#define OFFSET		0x100ull
#define LENGTH		(SIZE - 0x200)
#define MOVES		40
#define FENCE_MS	400

#define VRAM		VRAMSIM_PLACEMENT_VRAM
#define SYSTEM		VRAMSIM_PLACEMENT_SYSTEM

static struct rig rig;

static struct dmabuf *buffer(struct mr *mr)
{
	static const struct dmabuf_opts opts = {
		.flags = VRAMSIM_CREATE_SCATTER, .segment_size = 16 * KIB, .seed = 11,
	};
	struct dmabuf *buf = rig_vram(SIZE, &opts);
	int ret = rig_reg(&rig, dmabuf_fd(buf), OFFSET, LENGTH, IOVA, mr);

	if (ret)
		bail("register: %s", strerror(ret));
	return buf;
}

static bool leads_to_buffer(const struct mr *mr, const struct dmabuf *buf)
{
	struct place place = place_of(buf);
	bool good = mlx5_leads_to(mr, IOVA, &place, OFFSET, LENGTH);

	place_free(&place);
	return good;
}

/* Each kind of transfer is the first one after a move, and brings the page fault. */
static void test_refault(void)
{
	static const uint32_t ways[] = { SYSTEM, SYSTEM, VRAM, VRAM };
	struct mr mr;
	struct dmabuf *buf = buffer(&mr);
	struct spot spot = { &rig, &mr, IOVA + 64 * KIB, buf, OFFSET + 64 * KIB, 32 * KIB };

	ok(mlx5_says_mode(MLX5_DYNAMIC), "the MR is dynamic");
	is(sim_gem(buf).pinned, 0, "a registered buffer is not pinned");
	for (size_t i = 0; i < TRANSFERS * sizeof(ways) / sizeof(*ways); i++) {
		uint32_t to = ways[i % (sizeof(ways) / sizeof(*ways))];
		const struct transfer *t = &transfers[i / (sizeof(ways) / sizeof(*ways))];
		const char *where = to == VRAM ? "VRAM" : "system memory";
		struct place old = place_of(buf);
		uint64_t faults, resumes;

		is(sim_move(buf, to, VRAMSIM_MOVE_SHUFFLE, 0), 0, "%s: move to %s", t->name, where);
		ok(place_unmapped(&old), "%s: no key maps the old place", t->name);
		is(mlx5_entries(&mr), 0, "%s: the key has no entry at all", t->name);
		place_free(&old);

		faults = mlx5sim_stat(MLX5_LID, MLX5SIM_FAULTS);
		resumes = mlx5sim_stat(MLX5_LID, MLX5SIM_RESUMES);
		ok(t->run(&spot), "%s: data right in %s", t->name, where);
		is(mlx5sim_stat(MLX5_LID, MLX5SIM_FAULTS) - faults, 1, "%s: one page fault",
		   t->name);
		is(mlx5sim_stat(MLX5_LID, MLX5SIM_RESUMES) - resumes, 1, "%s: and resumed",
		   t->name);
		ok(leads_to_buffer(&mr, buf), "%s: the key leads to the new place", t->name);
	}
	is(sim_gem(buf).notifies, sim_gem(buf).moves, "an invalidation for each move");
	is(mr_dereg(&mr), 0, "deregister");
	dmabuf_free(buf);
}

/* An MR that has fewer bytes than a page, and lies in two of them */
static void test_few_bytes(void)
{
	enum { AT = 64 * KIB - 8, BYTES = 16 };
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct mr mr;
	struct spot spot = { &rig, &mr, IOVA - OFFSET + AT, buf, AT, BYTES };

	is(rig_reg(&rig, dmabuf_fd(buf), AT, BYTES, spot.iova, &mr), 0, "few bytes: register");
	for (size_t i = 0; i < TRANSFERS; i++) {
		is(sim_move(buf, VRAM, VRAMSIM_MOVE_SHUFFLE, 0), 0, "few bytes: move");
		ok(transfers[i].run(&spot), "few bytes: %s across the end of a page",
		   transfers[i].name);
	}
	is(mr_dereg(&mr), 0, "few bytes: deregister");
	dmabuf_free(buf);
}

/* The page size of the key follows the segments, at a fault. */
static void test_segments(void)
{
	static const uint64_t cuts[] = { 4 * KIB, 256 * KIB, 64 * KIB, 1 * MIB, 4 * KIB };
	struct mr mr;
	struct dmabuf *buf = buffer(&mr);
	struct spot spot = { &rig, &mr, IOVA, buf, OFFSET, LENGTH };

	for (size_t i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
		struct place old = place_of(buf);

		is(sim_move_cut(buf, VRAM, cuts[i]), 0, "move to segments of %llu KiB",
		   cuts[i] / KIB);
		ok(place_unmapped(&old), "no key maps the old place");
		place_free(&old);
		ok(transfers[0].run(&spot), "WRITE of all of it");
		ok(leads_to_buffer(&mr, buf), "the key leads to all of it, with %zu entries",
		   mlx5_entries(&mr));
	}
	is(mr_dereg(&mr), 0, "deregister");
	dmabuf_free(buf);
}

static void test_prefetch(void)
{
	struct mr mr;
	struct dmabuf *buf = buffer(&mr);
	struct spot spot = { &rig, &mr, IOVA, buf, OFFSET, 64 * KIB };
	uint64_t faults;

	is(sim_move(buf, SYSTEM, VRAMSIM_MOVE_SHUFFLE, 0), 0, "prefetch: move");
	is(mr_advise(&mr, rig.pair.b.pd, IOVA, LENGTH), 0, "prefetch: advise");
	ok(leads_to_buffer(&mr, buf), "prefetch: the key leads to the new place");
	faults = mlx5sim_stat(MLX5_LID, MLX5SIM_FAULTS);
	ok(transfers[0].run(&spot), "prefetch: WRITE");
	is(mlx5sim_stat(MLX5_LID, MLX5SIM_FAULTS), faults, "prefetch: without page fault");
	is(mr_dereg(&mr), 0, "deregister");
	dmabuf_free(buf);
}

/* Until the exporter's copy has ended, nobody looks at the new place. */
static void test_fence(void)
{
	static uint8_t before[64 * KIB], got[64 * KIB];
	struct mr mr;
	struct dmabuf *buf = buffer(&mr);
	uint64_t started, took;

	memset(before, 0x3c, sizeof(before));
	if (dmabuf_write(buf, OFFSET, before, sizeof(before)))
		bail("exporter: %s", strerror(errno));
	is(sim_move(buf, SYSTEM, VRAMSIM_MOVE_SHUFFLE, FENCE_MS), 0, "fence: move");
	started = now_ms();
	is(rig_read(&rig, &mr, IOVA, got, sizeof(got)), IBV_WC_SUCCESS, "fence: READ");
	took = now_ms() - started;
	ok(took > FENCE_MS / 2, "fence: it waited (%" PRIu64 " ms)", took);
	ok(!memcmp(before, got, sizeof(got)), "fence: READ brings what was there before");
	is(mr_dereg(&mr), 0, "deregister");
	dmabuf_free(buf);
}

/*
 * What an exporter cannot do just now it is asked for again, what it never can ends the
 * access.  The kernel's own code asks again only if it is told to.
 */
static const struct answer {
	int error;
	bool asked_again;
	bool revokes;		/* the memory will not be back */
} answers[] = {
	{ .error = EAGAIN, .asked_again = true },
	{ .error = EBUSY, .asked_again = true },
	{ .error = EINTR, .asked_again = true },
	{ .error = ENOMEM, .asked_again = true },
	{ .error = ENOSPC, .asked_again = true },
	{ .error = ETIMEDOUT, .asked_again = true },
	{ .error = EINVAL },
	{ .error = EOPNOTSUPP },
	{ .error = ENODEV, .revokes = true },
};

static void test_answer(const struct answer *a, uint32_t times)
{
	const char *name = strerrorname_np(a->error);
	struct mr mr;
	struct dmabuf *buf = buffer(&mr);
	struct spot spot = { &rig, &mr, IOVA, buf, OFFSET, 64 * KIB };
	uint64_t faults = mlx5sim_stat(MLX5_LID, MLX5SIM_FAULTS);

	is(sim_move(buf, VRAM, VRAMSIM_MOVE_SHUFFLE, 0), 0, "%s: move", name);
	is(sim_inject(buf, VRAMSIM_INJECT_MAP, times, a->error), 0,
	   "%s: the exporter says so, %u times", name, times);
	if (rig.traits.ours ? a->asked_again : a->error == EAGAIN) {
		ok(transfers[0].run(&spot), "%s: a WRITE goes on", name);
		faults = mlx5sim_stat(MLX5_LID, MLX5SIM_FAULTS) - faults;
		ok(faults > times, "%s: after %" PRIu64 " page faults", name, faults);
	} else {
		is(rig_write(&rig, &mr, IOVA, "x", 1), IBV_WC_REM_ACCESS_ERR,
		   "%s: a WRITE ends in an error", name);
		is(mlx5_entries(&mr), 0, "%s: the key has no entry", name);
	}
	sim_inject(buf, VRAMSIM_INJECT_MAP, 0, 0);
	if (rig.traits.ours && a->revokes) {
		is(rig_write(&rig, &mr, IOVA, "x", 1), IBV_WC_REM_ACCESS_ERR,
		   "%s: so does the next one", name);
	} else {
		ok(transfers[0].run(&spot), "%s: the next WRITE is done", name);
		ok(leads_to_buffer(&mr, buf), "%s: the key leads to the buffer", name);
	}
	is(mr_dereg(&mr), 0, "%s: deregister", name);
	dmabuf_free(buf);
}

static void test_answers(void)
{
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		test_answer(&answers[i], 1);
		if (answers[i].asked_again)
			test_answer(&answers[i], 3);
	}
}

struct traffic {
	struct mr *mr;
	uint8_t *shadow;	/* what the window holds */
	atomic_bool stop;
	atomic_uint rounds;
	int status;		/* of the transfer that ended it, if not 0 */
	bool differs;
};

static void *run_traffic(void *arg)
{
	static uint8_t got[RIG_HOST_SIZE];
	struct traffic *t = arg;
	uint64_t state = 17;

	while (!t->stop && !t->status && !t->differs) {
		uint32_t length = 1 + random_next(&state) % (64 * KIB);
		uint64_t at = random_next(&state) % (LENGTH - length);

		memset(t->shadow + at, random_next(&state), length);
		t->status = rig_write(&rig, t->mr, IOVA + at, t->shadow + at, length);
		if (t->status)
			break;
		at = random_next(&state) % (LENGTH - length);
		t->status = rig_read(&rig, t->mr, IOVA + at, got, length);
		t->differs = !t->status && memcmp(got, t->shadow + at, length);
		t->rounds++;
	}
	return NULL;
}

static void test_traffic(void)
{
	static uint8_t shadow[LENGTH], seen[LENGTH];
	struct mr mr, other;
	struct dmabuf *buf = buffer(&mr);
	struct traffic traffic = { .mr = &mr, .shadow = shadow };
	uint64_t faults = mlx5sim_stat(MLX5_LID, MLX5SIM_FAULTS);
	int failed = 0, mapped = 0;
	uint64_t state = 23;
	pthread_t thread;

	is(rig_reg(&rig, dmabuf_fd(buf), 64 * KIB, 64 * KIB, 0, &other), 0,
	   "traffic: a second MR on the buffer");
	if (pthread_create(&thread, NULL, run_traffic, &traffic))
		bail("no thread");
	for (int i = 0; i < MOVES; i++) {
		struct place old = place_of(buf);
		unsigned int rounds = traffic.rounds;

		failed += !!sim_move(buf, random_next(&state) % 2 ? VRAM : SYSTEM,
				     VRAMSIM_MOVE_SHUFFLE, 0);
		mapped += !place_unmapped(&old);
		place_free(&old);
		for (int ms = 0; ms < 5000 && traffic.rounds == rounds; ms++)
			usleep(1000);
	}
	traffic.stop = true;
	pthread_join(thread, NULL);

	is(failed, 0, "traffic: %d moves", MOVES);
	is(mapped, 0, "traffic: after none of them did a key map the old place");
	is(traffic.status, 0, "traffic: all transfers succeed");
	ok(!traffic.differs, "traffic: each READ brings what was written");
	ok(traffic.rounds >= MOVES, "traffic: there was some: %u rounds", traffic.rounds);
	ok(mlx5sim_stat(MLX5_LID, MLX5SIM_FAULTS) - faults >= MOVES / 2,
	   "traffic: it ran into the moves");
	if (dmabuf_read(buf, OFFSET, seen, LENGTH))
		bail("exporter: %s", strerror(errno));
	ok(!memcmp(shadow, seen, LENGTH), "traffic: the exporter sees every byte");
	is(mr_dereg(&other), 0, "deregister the second");
	is(mr_dereg(&mr), 0, "deregister");
	dmabuf_free(buf);
}

static void test_revoke(void)
{
	struct mr mr;
	struct dmabuf *buf = buffer(&mr);
	struct place old = place_of(buf);
	int status;

	is(sim_revoke(buf), 0, "revoke");
	ok(place_unmapped(&old), "revoke: no key maps the memory");
	ok(mlx5sim_has_key(MLX5_LID, mr.lkey), "revoke: the key stays taken");
	status = rig_write(&rig, &mr, IOVA, "x", 1);
	ok(status > 0, "revoke: a WRITE ends in an error: %s",
	   status < 0 ? "none came" : ibv_wc_status_str(status));
	is(mr_dereg(&mr), 0, "revoke: deregister");
	place_free(&old);
	dmabuf_free(buf);
}

static void stays(const char *what, struct dmabuf *buf)
{
	struct place place = place_of(buf);

	is(sim_move(buf, SYSTEM, 0, 0), EBUSY, "%s: does not move", what);
	is(sim_move(buf, VRAM, VRAMSIM_MOVE_SHUFFLE, 0), EBUSY, "%s: nor within VRAM", what);
	ok(place_holds(&place, buf), "%s: is where it was", what);
	place_free(&place);
}

/*
 * @what is pinned while it is registered. A key that UMRs have brought to life, one UMR
 * stops: a second one would stop a key that has a new owner by then.
 */
static void test_pinned(const char *what, uint32_t flags, enum mlx5_mode mode)
{
	uint64_t umrs = mlx5sim_stat(MLX5_LID, MLX5SIM_UMRS);
	struct dmabuf_opts opts = { .flags = flags };
	struct dmabuf *buf = rig_vram(SIZE, &opts);
	bool by_umr;
	struct mr mr;

	is(rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, 0, &mr), 0, "%s: register", what);
	by_umr = mlx5sim_stat(MLX5_LID, MLX5SIM_UMRS) > umrs;
	ok(mlx5_says_mode(mode), "%s: the MR is %s", what, mlx5_mode_name(mode));
	ok(sim_gem(buf).pinned > 0, "%s: pinned", what);
	stays(what, buf);
	ok(rig_works(&rig, &mr, 0, buf, 0, SIZE), "%s: carries data", what);
	umrs = mlx5sim_stat(MLX5_LID, MLX5SIM_UMRS);
	is(mr_dereg(&mr), 0, "%s: deregister", what);
	if (mlx5_is_ours())
		is(mlx5sim_stat(MLX5_LID, MLX5SIM_UMRS) - umrs, by_umr, "%s: UMRs for that",
		   what);
	is(sim_move(buf, SYSTEM, 0, 0), 0, "%s: moves again", what);
	dmabuf_free(buf);
}

int main(void)
{
	struct counters start;

	mlx5_rig_up(&rig);
	counters_get(&start);
	if (rig.traits.follows) {
		test_refault();
		test_few_bytes();
		test_segments();
		test_prefetch();
		test_fence();
		test_answers();
		test_traffic();
	} else {
		test_pinned("dynamic buffer", 0, MLX5_REVOCABLE);
	}
	test_revoke();
	test_pinned("static buffer", VRAMSIM_CREATE_STATIC, MLX5_REVOCABLE);
	ok(counters_back(&start, 2000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
