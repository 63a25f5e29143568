// SPDX-License-Identifier: GPL-2.0
/*
 * Buffers that get another layout when they move, and with it the MR's key another
 * page size: pieces of 2 MiB, scattered pages, one piece, system memory.  All bytes are
 * looked at after each move, and all entries of the key.
 *
 * Where buffers are pinned, they move between two registrations.
 *
 *	test_mlx5_layouts [--mib N]
 *
 * --mib makes it that buffer only; from 512 on, a table of small pages takes more than
 * one UMR work request.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

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

static const struct layout vram_layouts[] = {
	{ "pages", VRAM, 4 * KIB },
	{ "one piece", VRAM, WHOLE },
	{ "pages again", VRAM, 4 * KIB },
	{ "blocks", VRAM, 2 * MIB },
};

static struct rig rig;

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
	struct spot spot = {
		.rig = &rig,
		.iova = IOVA,
		.buf = rig_vram(mib * MIB, &blocks),
		.offset = BEFORE,
		.length = mib * MIB - BEFORE - BEHIND,
	};
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

int main(int argc, char **argv)
{
	uint64_t mib = option_number(argc, argv, "mib", 0);
	struct counters start;

	mlx5_rig_up(&rig);
	counters_get(&start);
	if (mib) {
		test_layouts(mib, vram_layouts, sizeof(vram_layouts) / sizeof(*vram_layouts));
	} else {
		test_layouts(4, all_layouts, sizeof(all_layouts) / sizeof(*all_layouts));
		test_layouts(34, all_layouts, sizeof(all_layouts) / sizeof(*all_layouts));
	}
	ok(counters_back(&start, 2000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
