// SPDX-License-Identifier: GPL-2.0
/*
 * How many translation entries an MR takes, that each of them is right, in buffers of
 * all sizes up to 1 TiB and with segments around 2 GiB and 4 GiB; what a key of the
 * cache still holds of the one before; and layouts that need more entries than a key
 * has room for.
 *
 * Needs 16 GiB of VRAM, of which hardly any is written to.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "mlx5_rig.h"
#include "sim.h"
#include "tap.h"

#define PAGE		(4 * KIB)
#define TIB		(1024 * GIB)
#define IOVA		0x400000000000ull
#define WRITTEN_IN	8	/* entries at a time, as the device's format has it */
#define SPOT		(64 * KIB)
#define BACK		(64 * MIB)
#define LONGEST_SEGMENT	(4 * GIB - PAGE)

static struct rig rig;

static bool register_window(const char *what, const struct dmabuf *buf, uint64_t offset,
			    uint64_t length, uint64_t iova, struct mr *mr)
{
	return is(rig_reg(&rig, dmabuf_fd(buf), offset, length, iova, mr), 0, "%s: register", what);
}

static void deregister(const char *what, struct mr *mr, const struct place *place)
{
	is(mr_dereg(mr), 0, "%s: deregister", what);
	ok(place_unmapped(place), "%s: no key maps it any more", what);
}

/* Registers a whole buffer and looks at what was written for it. */
static void test_count(const char *what, uint64_t size, uint64_t segment, uint64_t large_pages)
{
	struct dmabuf_opts opts = {
		.flags = VRAMSIM_CREATE_UNCLEARED | VRAMSIM_CREATE_SCATTER,
		.segment_size = segment, .seed = 5,
	};
	uint64_t want = mlx5_small_pages() ? size / PAGE : large_pages;
	struct dmabuf *buf = rig_vram(size, &opts);
	struct place place = place_of(buf);
	uint64_t written = mlx5sim_stat(MLX5_LID, MLX5SIM_XLT_ENTRIES);
	struct mr mr;

	if (register_window(what, buf, 0, size, IOVA, &mr)) {
		written = mlx5sim_stat(MLX5_LID, MLX5SIM_XLT_ENTRIES) - written;
		is(mlx5_entries(&mr), want, "%s: entries", what);
		is(written, (want + WRITTEN_IN - 1) / WRITTEN_IN * WRITTEN_IN, "%s: written", what);
		ok(mlx5_leads_to(&mr, IOVA, &place, 0, size), "%s: each is right", what);
		deregister(what, &mr, &place);
	}
	place_free(&place);
	dmabuf_free(buf);
}

/*
 * The MR's key was zapped; the next access maps it again.  Where the buffer is pinned,
 * nobody tells the driver anything.
 */
static void test_refault(const char *what, const struct mr *mr, const struct dmabuf *buf,
			 uint64_t iova, const struct place *place, uint64_t offset, uint64_t length)
{
	uint64_t word = 1;

	if (!mlx5_follows_moves())
		return;
	is(sim_move(buf, 0, VRAMSIM_MOVE_NOTIFY_ONLY, 0), 0, "%s: move_notify", what);
	ok(place_unmapped(place), "%s: no key maps any of it", what);
	is(rig_write(&rig, mr, iova + length - 8, &word, 8), 0, "%s: page fault", what);
	ok(mlx5_leads_to(mr, iova, place, offset, length), "%s: each entry is right again", what);
}

/* For translation only: a TiB that shares what VRAM there is. */
static void test_tib(void)
{
	static const struct dmabuf_opts opts = {
		.flags = VRAMSIM_CREATE_SPARSE, .segment_size = 2 * MIB,
	};
	struct dmabuf *buf = rig_vram(TIB, &opts);
	struct place place = place_of(buf);
	uint64_t word = 1;
	struct mr mr;

	is(place.count, TIB / (2 * MIB), "1 TiB: segments");
	if (!mlx5_is_ours()) {
		/* Its tables have room for pages of 4 KiB: 2 GiB for this one. */
		is(rig_reg(&rig, dmabuf_fd(buf), 0, TIB, IOVA, &mr), ENOMEM,
		   "1 TiB: the kernel's own driver asks for more than this device has");
	} else if (register_window("1 TiB", buf, 0, TIB, IOVA, &mr)) {
		is(mlx5_entries(&mr), TIB / (2 * MIB), "1 TiB: entries");
		ok(mlx5_leads_to(&mr, IOVA, &place, 0, TIB), "1 TiB: each is right");
		is(rig_write(&rig, &mr, IOVA + TIB - 8, &word, 8), 0, "1 TiB: WRITE to its end");
		test_refault("1 TiB", &mr, buf, IOVA, &place, 0, TIB);
		deregister("1 TiB", &mr, &place);
	}
	place_free(&place);
	dmabuf_free(buf);
}

/* Bytes around @middle, in the buffer, through the MR and from the exporter's side */
static void test_spot(const char *what, const struct mr *mr, struct dmabuf *buf, uint64_t iova,
		      uint64_t offset, uint64_t length, uint64_t middle)
{
	uint64_t begin = middle < offset + SPOT / 2 ? offset : middle - SPOT / 2;
	uint64_t end = begin + SPOT < offset + length ? begin + SPOT : offset + length;
	struct spot spot = { &rig, mr, iova + begin - offset, buf, begin, end - begin };

	ok(words_write(&spot, 1) && words_exporter_sees(&spot, 1) &&
	   words_exporter_puts(&spot, 2) && words_read(&spot, 2), "%s: bytes around %#" PRIx64,
	   what, middle);
}

static void test_edge_window(const char *segments, struct dmabuf *buf, const struct place *place,
			     uint64_t segment, uint64_t iova, uint64_t offset, uint64_t length)
{
	const uint64_t middles[] = {
		offset, 2 * GIB, segment, 4 * GIB, segment + 2 * GIB, offset + length,
	};
	char what[128];
	struct mr mr;

	snprintf(what, sizeof(what), "%s: %#" PRIx64 " + %#" PRIx64, segments, offset, length);
	if (!register_window(what, buf, offset, length, iova, &mr))
		return;
	is(mlx5_entries(&mr), mlx5_fewest_entries(&mr, iova, place, offset, length), "%s: entries",
	   what);
	ok(mlx5_leads_to(&mr, iova, place, offset, length), "%s: each is right", what);
	for (size_t i = 0; i < sizeof(middles) / sizeof(*middles); i++)
		if (middles[i] >= offset && middles[i] <= offset + length)
			test_spot(what, &mr, buf, iova, offset, length, middles[i]);
	test_refault(what, &mr, buf, iova, place, offset, length);
	deregister(what, &mr, place);
}

static void test_edge(uint64_t segment)
{
	struct dmabuf_opts opts = {
		.flags = VRAMSIM_CREATE_UNCLEARED | VRAMSIM_CREATE_SCATTER,
		.segment_size = segment, .seed = 9,
	};
	const struct {
		uint64_t offset, length;
	} windows[] = {
		{ segment - PAGE, 2 * PAGE },
		{ segment - BACK, BACK + 5 * PAGE },
		{ 3 * PAGE, 2 * segment - 5 * PAGE },
	};
	struct dmabuf *buf = rig_vram(2 * segment, &opts);
	struct place place = place_of(buf);
	char what[64];

	snprintf(what, sizeof(what), "segments of %#" PRIx64, segment);
	ok(place.count == 2 && place.segments[0].length == segment, "%s: there are two", what);
	for (size_t i = 0; i < sizeof(windows) / sizeof(*windows); i++)
		test_edge_window(what, buf, &place, segment, IOVA + windows[i].offset,
				 windows[i].offset, windows[i].length);
	place_free(&place);
	dmabuf_free(buf);
}

/*
 * One piece in pages of 2 MiB: in larger ones, address and iova do not agree.  Where it
 * is too long for one segment, a page begins in one and ends in the next.
 */
static void test_piece(uint64_t size)
{
	struct dmabuf_opts opts = {
		.flags = VRAMSIM_CREATE_UNCLEARED,
		.segment_size = size < LONGEST_SEGMENT ? size : LONGEST_SEGMENT,
	};
	struct dmabuf *buf = rig_vram(size, &opts);
	struct place place = place_of(buf);
	const struct drm_vramsim_segment *last = &place.segments[place.count - 1];
	uint64_t iova = IOVA + ((place.segments->address ^ 2 * MIB) & (4 * MIB - 1));
	char what[64];

	snprintf(what, sizeof(what), "a piece of %llu GiB", size / GIB);
	is(place.count, (size - 1) / LONGEST_SEGMENT + 1, "%s: segments", what);
	is(last->address + last->length, place.segments->address + size, "%s: one piece", what);
	test_edge_window(what, buf, &place, opts.segment_size, iova, 0, size);
	place_free(&place);
	dmabuf_free(buf);
}

/*
 * A key that comes out of the cache holds the entries of its last MR.  None of them may
 * be in reach of the new one, nor get there when that one's pages become smaller.
 */
static void test_cache(void)
{
	enum { BEFORE = 2, KEYS = 4 };
	static const struct dmabuf_opts blocks = {
		.flags = VRAMSIM_CREATE_SCATTER, .segment_size = 2 * MIB, .seed = 3,
	}, others[BEFORE] = {
		/* Keys with room for pages, and, of pinned MRs, for blocks only */
		{ .flags = VRAMSIM_CREATE_SCATTER, .segment_size = PAGE, .seed = 2 },
		{ .flags = VRAMSIM_CREATE_SCATTER, .segment_size = 2 * MIB, .seed = 4 },
	};
	const uint64_t size = 4 * MIB;
	struct dmabuf *before[BEFORE], *buf = rig_vram(size, &blocks);
	struct place places[BEFORE], place = place_of(buf);
	struct mr old[BEFORE * KEYS], mr;
	bool from_cache = false;
	uint8_t byte = 1;
	int failed = 0;

	for (int i = 0; i < BEFORE; i++) {
		before[i] = rig_vram(size, &others[i]);
		places[i] = place_of(before[i]);
	}
	for (int i = 0; i < BEFORE * KEYS; i++)
		failed += !!rig_reg(&rig, dmabuf_fd(before[i / KEYS]), 0, size, IOVA, &old[i]);
	for (int i = 0; i < BEFORE * KEYS && !failed; i++)
		failed += !!mr_dereg(&old[i]);
	if (failed)
		bail("cache: no keys");
	is(rig_reg(&rig, dmabuf_fd(buf), 0, size, IOVA, &mr), 0, "cache: register");
	for (int i = 0; i < BEFORE * KEYS; i++)
		from_cache |= mr.lkey >> 8 == old[i].lkey >> 8;
	ok(from_cache, "cache: the key was another MR's");
	ok(mlx5_leads_to(&mr, IOVA, &place, 0, size), "cache: it leads to its own buffer");
	if (mlx5_follows_moves()) {
		is(sim_move_cut(buf, VRAMSIM_PLACEMENT_VRAM, PAGE), 0, "cache: move to pages");
		ok(place_unmapped(&place), "cache: no key maps the old place");
		is(mlx5_entries(&mr), 0, "cache: the key has no entry");
		is(rig_write(&rig, &mr, IOVA, &byte, 1), 0, "cache: page fault");
		place_free(&place);
		place = place_of(buf);
		ok(mlx5_leads_to(&mr, IOVA, &place, 0, size), "cache: it leads to the pages");
	}
	for (int i = 0; i < BEFORE; i++) {
		ok(place_unmapped(&places[i]), "cache: no key maps what was registered before");
		place_free(&places[i]);
		dmabuf_free(before[i]);
	}
	is(mr_dereg(&mr), 0, "cache: deregister");
	place_free(&place);
	dmabuf_free(buf);
}

/*
 * A key has so much room for entries.  The kernel's own driver makes it for pages of
 * 4 KiB; this project's does so up to 16 GiB, and beyond for 64 KiB: what moves to smaller
 * pieces has to end in an error completion, and to come back with larger ones.
 */
static void test_room(void)
{
	static const struct dmabuf_opts opts = {
		.flags = VRAMSIM_CREATE_SPARSE, .segment_size = 64 * KIB,
	};
	const uint64_t size = 16 * GIB + 64 * KIB;
	struct dmabuf *buf = rig_vram(size, &opts);
	struct place place = place_of(buf);
	uint64_t word = 1;
	struct mr mr;

	if (!mlx5_follows_moves() || !register_window("room", buf, 0, size, IOVA, &mr))
		goto out;
	ok(mlx5_leads_to(&mr, IOVA, &place, 0, size), "room: 64 KiB: each entry is right");
	is(sim_move_cut(buf, VRAMSIM_PLACEMENT_VRAM, PAGE), 0, "room: move to pages");
	ok(place_unmapped(&place), "room: no key maps the old place");
	place_free(&place);
	place = place_of(buf);
	is(place.count, size / PAGE, "room: there are many");
	if (mlx5_is_ours()) {
		is(rig_write(&rig, &mr, IOVA + GIB, &word, 8), IBV_WC_REM_ACCESS_ERR,
		   "room: none for so many, an error completion");
		ok(place_unmapped(&place), "room: no key maps any of them");
	} else {
		is(rig_write(&rig, &mr, IOVA + GIB, &word, 8), 0, "room: for all of them");
		ok(mlx5_leads_to(&mr, IOVA, &place, 0, size), "room: each entry is right");
	}
	is(sim_move_cut(buf, VRAMSIM_PLACEMENT_VRAM, 64 * KIB), 0, "room: move to 64 KiB");
	place_free(&place);
	place = place_of(buf);
	is(rig_write(&rig, &mr, IOVA + GIB, &word, 8), 0, "room: WRITE again");
	ok(mlx5_leads_to(&mr, IOVA, &place, 0, size), "room: each entry is right again");
	deregister("room", &mr, &place);
out:
	place_free(&place);
	dmabuf_free(buf);
}

int main(void)
{
	static const uint64_t edges[] = { 2 * GIB - PAGE, 2 * GIB, 2 * GIB + PAGE, LONGEST_SEGMENT };
	struct counters start;

	mlx5_rig_up(&rig);
	counters_get(&start);
	test_count("64 MiB in blocks", 64 * MIB, 2 * MIB, 32);
	test_count("1 GiB in a piece", GIB, GIB, 1);
	test_count("1 GiB in blocks", GIB, 2 * MIB, 512);
	test_tib();
	for (size_t i = 0; i < sizeof(edges) / sizeof(*edges); i++)
		test_edge(edges[i]);
	test_piece(3 * GIB);
	test_piece(5 * GIB);
	test_cache();
	test_room();
	ok(counters_back(&start, 2000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
