// SPDX-License-Identifier: GPL-2.0
/*
 * Buffers that get another layout when they move, and with it the MR's key another
 * page size: pieces of 2 MiB, scattered pages, one piece, system memory.  All bytes are
 * looked at after each move, and all entries of the key.
 *
 * Where buffers are pinned, they move between two registrations.
 *
 *	test_mlx5_layouts [--mib N | --umrs N]
 *
 * --mib makes it that buffer only; from 512 on, a table of small pages takes more than
 * one UMR work request.  --umrs looks only at what is between these.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "mlx5_rig.h"
#include "sim.h"
#include "tap.h"

/* The window keeps away from the ends of the buffer. */
#define BEFORE		(8 * KIB)
#define BEHIND		(12 * KIB)
#define IOVA		(0x66000000000ull + BEFORE)

#define VRAM		VRAMSIM_PLACEMENT_VRAM
#define SYSTEM		VRAMSIM_PLACEMENT_SYSTEM
#define WHOLE		0

#define LATE_MS		250
#define PATIENCE_MS	60000

struct layout {
	const char *name;
	uint32_t placement;
	uint64_t cut;		/* or WHOLE */
};

static const struct layout all_layouts[] = {
	{ "pages", VRAM, 4 * KIB },
	{ "one piece", VRAM, WHOLE },
	{ "pages again", VRAM, 4 * KIB },
	{ "blocks", VRAM, 2 * MIB },
	{ "pages of system memory", SYSTEM, 4 * KIB },
	{ "64 KiB", VRAM, 64 * KIB },
	{ "system memory", SYSTEM, WHOLE },
	{ "one piece at last", VRAM, WHOLE },
};

/* From one layout to another, with a key that another MR had before */
struct change {
	struct layout from, to;
	bool used_key;
};

static const struct change changes[] = {
	{ { "blocks", VRAM, 2 * MIB }, { "pages", VRAM, 4 * KIB }, true },
	{ { "pages", VRAM, 4 * KIB }, { "blocks", VRAM, 2 * MIB }, true },
};

static const struct change big_change = {
	{ "blocks", VRAM, 2 * MIB }, { "pages", VRAM, 4 * KIB }, false,
};

static const struct layout vram_layouts[] = {
	{ "pages", VRAM, 4 * KIB },
	{ "one piece", VRAM, WHOLE },
	{ "pages again", VRAM, 4 * KIB },
	{ "blocks", VRAM, 2 * MIB },
};

static struct rig rig;

/* All of a fresh buffer but some bytes at its ends */
static struct spot spot_on(uint64_t mib, const struct dmabuf_opts *opts)
{
	return (struct spot){
		.rig = &rig,
		.iova = IOVA,
		.buf = rig_vram(mib * MIB, opts),
		.offset = BEFORE,
		.length = mib * MIB - BEFORE - BEHIND,
	};
}

static void register_spot(const char *name, struct spot *spot, struct mr *mr)
{
	int ret = rig_reg(&rig, dmabuf_fd(spot->buf), spot->offset, spot->length, spot->iova, mr);

	if (ret)
		bail("%s: register: %s", name, strerror(ret));
	spot->mr = mr;
}

static void move(const char *name, struct spot *spot, struct mr *mr, const struct layout *to)
{
	uint64_t cut = to->cut == WHOLE ? dmabuf_size(spot->buf) : to->cut;
	struct place old = place_of(spot->buf);

	if (!mlx5_follows_moves())
		is(mr_dereg(mr), 0, "%s: deregister", name);
	is(sim_move_cut(spot->buf, to->placement, cut), 0, "%s: move", name);
	ok(place_unmapped(&old), "%s: no key maps the old place", name);
	place_free(&old);
	if (mlx5_follows_moves())
		is(mlx5_entries(mr), 0, "%s: the key has no entry", name);
	else
		register_spot(name, spot, mr);
}

static void check_key(const char *name, const struct spot *spot)
{
	struct place place = place_of(spot->buf);

	ok(mlx5_leads_to(spot->mr, spot->iova, &place, spot->offset, spot->length),
	   "%s: the key leads to the buffer", name);
	is(mlx5_entries(spot->mr), mlx5_fewest_entries(spot->mr, spot->iova, &place, spot->offset,
						       spot->length), "%s: entries", name);
	place_free(&place);
}

static void test_layouts(uint64_t mib, const struct layout *layouts, size_t count)
{
	static const struct dmabuf_opts blocks = {
		.flags = VRAMSIM_CREATE_SCATTER, .segment_size = 2 * MIB, .seed = 29,
	};
	struct mr mr;
	struct spot spot = spot_on(mib, &blocks);
	char name[128];

	register_spot("first", &spot, &mr);
	snprintf(name, sizeof(name), "%" PRIu64 " MiB, blocks first", mib);
	ok(words_exporter_puts(&spot, 0) && words_read(&spot, 0), "%s: READ of all bytes", name);
	check_key(name, &spot);
	for (size_t i = 0; i < count; i++) {
		uint64_t umrs;

		snprintf(name, sizeof(name), "%" PRIu64 " MiB, %s", mib, layouts[i].name);
		move(name, &spot, &mr, &layouts[i]);
		umrs = mlx5sim_stat(MLX5_LID, MLX5SIM_UMRS);
		ok(words_read(&spot, i), "%s: READ of all bytes", name);
		diag("%" PRIu64 " UMRs", mlx5sim_stat(MLX5_LID, MLX5SIM_UMRS) - umrs);
		check_key(name, &spot);
		ok(words_write(&spot, i + 1) && words_exporter_sees(&spot, i + 1),
		   "%s: WRITE of all bytes", name);
	}
	is(mr_dereg(&mr), 0, "%" PRIu64 " MiB: deregister", mib);
	dmabuf_free(spot.buf);
}

/*
 * Registers a spot with a key whose last MR had an entry for each page of another buffer:
 * all of them are still in its table.
 */
static void register_with_used_key(const char *name, struct spot *spot, struct mr *mr)
{
	enum { KEYS = 2 };
	static const struct dmabuf_opts pages = {
		.flags = VRAMSIM_CREATE_SPARSE | VRAMSIM_CREATE_SCATTER, .segment_size = 4 * KIB,
	};
	struct dmabuf *other = rig_vram(dmabuf_size(spot->buf), &pages);
	struct spot others = { &rig, NULL, spot->iova, other, spot->offset, spot->length };
	struct mr old[KEYS];
	bool used = false;

	for (int i = 0; i < KEYS; i++)
		register_spot(name, &others, &old[i]);
	for (int i = 0; i < KEYS; i++)
		if (mr_dereg(&old[i]))
			bail("%s: deregister", name);
	dmabuf_free(other);
	register_spot(name, spot, mr);
	for (int i = 0; i < KEYS; i++)
		used |= mr->lkey >> 8 == old[i].lkey >> 8;
	ok(used, "%s: the key was another MR's", name);
}

/*
 * Serves one page fault, @late_ms after UMR @nth of it is carried out, and looks at the
 * key meanwhile.  False if it was too late to look.
 */
static bool look_after_umr(const char *name, const struct spot *spot, uint64_t nth,
			   uint64_t late_ms)
{
	struct ibv_sge sge = { (uintptr_t)rig.host, 8, rig.host_mr->lkey };
	uint64_t before = mlx5sim_stat(MLX5_LID, MLX5SIM_UMRS);
	struct place place = place_of(spot->buf);
	bool good, in_time;
	char order[64];
	struct ibv_wc wc;

	snprintf(order, sizeof(order), "cqe-delay:0x25:%" PRIu64 ":%" PRIu64 "000000", nth,
		 late_ms);
	mlx5sim_order(MLX5_LID, order);
	if (rc_post(&rig.pair.a, IBV_WR_RDMA_WRITE, &sge, spot->iova, spot->mr->rkey))
		bail("%s: %s", rc_failed_call(), strerror(errno));
	for (int ms = 0; ms < PATIENCE_MS; ms++) {
		if (mlx5sim_stat(MLX5_LID, MLX5SIM_UMRS) >= before + nth)
			break;
		usleep(1000);
	}
	good = mlx5_leads_nowhere_else(spot->mr, spot->iova, &place, spot->offset, spot->length);
	in_time = mlx5sim_stat(MLX5_LID, MLX5SIM_UMRS) == before + nth;
	is(rc_wait(&rig.pair.a, &wc, PATIENCE_MS), IBV_WC_SUCCESS, "%s: WRITE", name);
	if (in_time)
		ok(good, "%s: no entry leads to other memory", name);
	ok(mlx5_leads_to(spot->mr, spot->iova, &place, spot->offset, spot->length),
	   "%s: the key leads to the buffer in the end", name);
	place_free(&place);
	return in_time;
}

/* An MR on a buffer that has moved from one layout to the other, and was not used since */
static void register_and_move(const char *name, struct spot *spot, struct mr *mr,
			      const struct change *c)
{
	is(sim_move_cut(spot->buf, c->from.placement, c->from.cut), 0, "%s: move", name);
	if (c->used_key)
		register_with_used_key(name, spot, mr);
	else
		register_spot(name, spot, mr);
	move(name, spot, mr, &c->to);
}

/*
 * A page fault that brings another page size takes several UMRs. Whatever the device does
 * between two of them, it gets nowhere but into the buffer.
 */
static void test_umrs(uint64_t mib, const struct change *c)
{
	static const struct dmabuf_opts sparse = {
		.flags = VRAMSIM_CREATE_SPARSE | VRAMSIM_CREATE_SCATTER, .segment_size = 2 * MIB,
	};
	struct mr mr;
	struct spot spot = spot_on(mib, &sparse);
	uint64_t umrs, late_ms = LATE_MS;
	char name[128];

	snprintf(name, sizeof(name), "%" PRIu64 " MiB, %s to %s", mib, c->from.name, c->to.name);
	register_and_move(name, &spot, &mr, c);
	umrs = mlx5sim_stat(MLX5_LID, MLX5SIM_UMRS);
	is(rig_write(&rig, &mr, spot.iova, "x", 1), 0, "%s: page fault", name);
	umrs = mlx5sim_stat(MLX5_LID, MLX5SIM_UMRS) - umrs;
	ok(umrs > 0, "%s: takes %" PRIu64 " UMRs", name, umrs);
	is(mr_dereg(&mr), 0, "%s: deregister", name);
	for (uint64_t nth = 1; nth <= umrs; ) {
		snprintf(name, sizeof(name), "%" PRIu64 " MiB, %s to %s, UMR %" PRIu64, mib,
			 c->from.name, c->to.name, nth);
		register_and_move(name, &spot, &mr, c);
		if (look_after_umr(name, &spot, nth, late_ms))
			nth++;
		else
			late_ms *= 2;
		is(mr_dereg(&mr), 0, "%s: deregister", name);
	}
	dmabuf_free(spot.buf);
}

static void test_changes(uint64_t mib, const struct change *list, size_t count)
{
	if (!rig.traits.follows)
		skip("between the UMRs of a page fault", "there are none where nothing moves");
	for (size_t i = 0; i < count && rig.traits.follows; i++)
		test_umrs(mib, &list[i]);
}

int main(int argc, char **argv)
{
	uint64_t mib = option_number(argc, argv, "mib", 0);
	uint64_t umrs = option_number(argc, argv, "umrs", 0);
	struct counters start;

	mlx5_rig_up(&rig);
	counters_get(&start);
	if (umrs) {
		test_changes(umrs, &big_change, 1);
	} else if (mib) {
		test_layouts(mib, vram_layouts, sizeof(vram_layouts) / sizeof(*vram_layouts));
	} else {
		test_layouts(4, all_layouts, sizeof(all_layouts) / sizeof(*all_layouts));
		test_layouts(34, all_layouts, sizeof(all_layouts) / sizeof(*all_layouts));
		test_changes(4, changes, sizeof(changes) / sizeof(*changes));
	}
	ok(counters_back(&start, 2000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
