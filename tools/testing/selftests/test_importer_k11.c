// SPDX-License-Identifier: GPL-2.0
/*
 * K11: buffers around and beyond 4 GiB, in segments of any length.  The sparse
 * ones are for their translation; where VRAM is large enough, data is looked at
 * on both sides of each border as well.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "importer.h"
#include "rig.h"
#include "sim.h"
#include "tap.h"

#define PAGE		(4 * KIB)
#define TIB		(1024 * GIB)
#define LONGEST		(4 * GIB - PAGE)	/* a scatter list has 32 bits for a length */

static uint64_t vram_free(void)
{
	struct counters now;

	counters_get(&now);
	return now.vram_free;
}

/* A window over each border that arithmetic could stumble on. */
static void windows_at(struct dmabuf *buf, const struct drm_vramsim_segment *cut, size_t count,
		       uint64_t size, uint64_t segment)
{
	const uint64_t borders[] = { segment, 2 * GIB, 4 * GIB, 8 * GIB, size - PAGE };
	unsigned int tried = 0, wrong = 0;

	for (size_t i = 0; i < sizeof(borders) / sizeof(*borders); i++) {
		int imp;

		if (borders[i] >= size)
			continue;
		imp = imp_open();
		wrong += imp_import(imp, buf, i % IMP_CONTRACTS, borders[i] - 1, 2) ||
			 !imp_translation_right(imp, cut, count, borders[i] - 1, 2, borders[i] - 1);
		close(imp);
		tried++;
	}
	ok(tried && !wrong, "  %u windows over a border", tried);
}

static void try_sparse(uint64_t size, uint64_t segment)
{
	struct dmabuf_opts opts = { .flags = VRAMSIM_CREATE_SPARSE, .segment_size = segment };
	struct drm_vramsim_segment *cut;
	struct counters start;
	struct dmabuf *buf;
	size_t count;
	int imp;

	if (segment > vram_free()) {
		skip("translation", "segments of 0x%" PRIx64 " need that much VRAM", segment);
		return;
	}
	counters_get(&start);
	buf = rig_vram(size, &opts);
	is(dmabuf_size(buf), size, "0x%" PRIx64 " in segments of 0x%" PRIx64, size, segment);
	cut = sim_segments(buf, &count);
	is(count, (size + segment - 1) / segment, "  %zu segments", count);
	for (uint32_t contract = 0; contract < IMP_CONTRACTS; contract++) {
		imp = imp_open();
		/* ENOMEM while the exporter maps: all is undone, then all is well. */
		sim_inject(buf, VRAMSIM_INJECT_MAP, 1, ENOMEM);
		is(imp_import(imp, buf, contract, 0, size), ENOMEM, "  %s: no memory for the map",
		   imp_contract(contract));
		is(sim_gem(buf).attached + sim_gem(buf).mapped + sim_gem(buf).pinned, 0,
		   "  %s: all undone", imp_contract(contract));
		is(imp_import(imp, buf, contract, 0, size), 0, "  %s: import",
		   imp_contract(contract));
		ok(imp_translation_right(imp, cut, count, 0, size, 0), "  %s: translation",
		   imp_contract(contract));
		close(imp);
	}
	windows_at(buf, cut, count, size, segment);
	imp = imp_open();
	is(imp_import(imp, buf, DMABUF_IMPORTER_PINNED, size - 1, 2), EINVAL, "  beyond the end");
	close(imp);
	free(cut);
	dmabuf_free(buf);
	ok(counters_back(&start, 0), "  counters are back");
}

/* Both sides of each border in real memory, of which the host has little. */
static void try_real(uint64_t size, uint64_t segment)
{
	struct dmabuf_opts opts = {
		.flags = VRAMSIM_CREATE_UNCLEARED | VRAMSIM_CREATE_SCATTER,
		.segment_size = segment,
	};
	struct drm_vramsim_segment *cut;
	unsigned int borders = 0, wrong = 0;
	struct dmabuf *buf;
	uint64_t at = 0;
	size_t count, step;
	int imp;

	if (size > vram_free()) {
		skip("data", "0x%" PRIx64 " bytes need a guest with more VRAM (--gpu)", size);
		return;
	}
	buf = rig_vram(size, &opts);
	cut = sim_segments(buf, &count);
	step = count / 64 + 1;
	imp = imp_open();
	is(imp_import(imp, buf, DMABUF_IMPORTER_PINNED, 0, size), 0,
	   "data: 0x%" PRIx64 " in segments of 0x%" PRIx64, size, segment);
	for (size_t i = 0; i + 1 < count; i++) {
		uint64_t stamp[2] = { ~at, 0 }, got[2] = { 0 };

		at += cut[i].length;
		if (i % step)
			continue;
		/* 8 bytes before the border and 8 behind it, as one access */
		stamp[1] = at;
		wrong += imp_write(imp, at - 8, stamp, 16) ||
			 dmabuf_read(buf, at - 8, got, 16) || memcmp(stamp, got, 16);
		/* and a page away from it */
		wrong += dmabuf_write(buf, at - PAGE, stamp, 16) ||
			 imp_read(imp, at - PAGE, got, 16) || memcmp(stamp, got, 16);
		borders++;
	}
	ok(borders || count == 1, "  %u borders", borders);
	is(wrong, 0, "  data on both sides of them");
	close(imp);
	free(cut);
	dmabuf_free(buf);
}

int main(void)
{
	static const uint64_t sizes[] = { LONGEST, 4 * GIB, 4 * GIB + PAGE, 12 * GIB };
	static const uint64_t segments[] = { 4 * KIB, 64 * KIB, 2 * MIB, LONGEST };
	struct counters start;

	imp_setup();
	counters_get(&start);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		for (size_t j = 0; j < sizeof(segments) / sizeof(*segments); j++) {
			/* A million segments take their time: once is enough. */
			if (segments[j] == 4 * KIB && sizes[i] != 4 * GIB + PAGE)
				continue;
			try_sparse(sizes[i], segments[j]);
		}
	}
	try_sparse(1 * TIB, 2 * MIB);
	try_sparse(1 * TIB, LONGEST);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		try_real(sizes[i], 2 * MIB);
		try_real(sizes[i], LONGEST);
	}
	ok(counters_back(&start, 0), "counters are back");
	return tap_done();
}
