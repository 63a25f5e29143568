// SPDX-License-Identifier: GPL-2.0
/*
 * Windows of any offset and length in buffers of any cut: translation, largest
 * page size and data; and what a thousand odd windows leave behind on an
 * exporter that keeps its table.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "importer.h"
#include "rig.h"
#include "sim.h"
#include "tap.h"

#define PAGE		(4 * KIB)
#define SIZE		(8 * MIB)

static const struct layout {
	const char *name;
	struct dmabuf_opts opts;
} layouts[] = {
	{ "VRAM in one piece", {} },
	{ "adjacent 64 KiB", { .segment_size = 64 * KIB } },
	{ "scattered 4 KiB", { .flags = VRAMSIM_CREATE_SCATTER, .segment_size = 4 * KIB } },
	{ "scattered 12 KiB", { .flags = VRAMSIM_CREATE_SCATTER, .segment_size = 12 * KIB } },
	{ "scattered 64 KiB", { .flags = VRAMSIM_CREATE_SCATTER, .segment_size = 64 * KIB } },
	{ "scattered 2 MiB", { .flags = VRAMSIM_CREATE_SCATTER, .segment_size = 2 * MIB } },
	{ "system memory", { .system = true } },
	{ "scattered system memory", { .system = true, .flags = VRAMSIM_CREATE_SCATTER,
				       .segment_size = 16 * KIB } },
};

/* Edges of pages and segments, and both sides of them. */
static const struct window {
	uint64_t offset, length;
} windows[] = {
	{ 0, SIZE },
	{ 0, 1 },
	{ SIZE - 1, 1 },
	{ 1, SIZE - 2 },
	{ 1, SIZE - 1 },
	{ 0, SIZE - 1 },
	{ PAGE - 1, 1 },
	{ PAGE - 1, 2 },
	{ PAGE, PAGE },
	{ PAGE + 1, PAGE },
	{ 64 * KIB - 1, 2 },
	{ 64 * KIB, 64 * KIB },
	{ 64 * KIB - PAGE, 2 * PAGE },
	{ 60 * KIB + 123, 200 * KIB },
	{ 2 * MIB - 1, 2 },
	{ 2 * MIB, 2 * MIB },
	{ 2 * MIB + 64 * KIB, 4 * MIB },
	{ 2 * MIB - PAGE, 2 * MIB + 2 * PAGE },
};

#define RANDOM_WINDOWS	30

/* iovas that are congruent to the offset, as a registration demands. */
static uint64_t iova_for(uint64_t offset, unsigned int how)
{
	switch (how % 4) {
	case 0:
		return offset;
	case 1:
		return offset % PAGE;
	case 2:
		return offset + 0x7f0000001000ull;
	default:
		return offset % (2 * MIB) + (1ull << 40);
	}
}

static bool try_window(struct dmabuf *buf, uint32_t contract,
		       const struct drm_vramsim_segment *cut, size_t count,
		       struct window window, uint32_t seed)
{
	int imp = imp_open();
	bool right = !imp_import(imp, buf, contract, window.offset, window.length);

	for (unsigned int how = 0; right && how < 4; how++)
		right = imp_translation_right(imp, cut, count, window.offset, window.length,
					      iova_for(window.offset, how));
	/* Data page by page: the long ones at their ends only. */
	if (right && window.length <= 256 * KIB)
		right = imp_works(imp, buf, window.offset, window.length, seed);
	if (!right)
		diag("  %s, offset 0x%llx, length 0x%llx", imp_contract(contract),
		     (unsigned long long)window.offset, (unsigned long long)window.length);
	close(imp);
	return right;
}

static void try_layout(const struct layout *layout, uint64_t *random)
{
	struct dmabuf *buf = rig_vram(SIZE, &layout->opts);
	const unsigned int total = sizeof(windows) / sizeof(*windows) + RANDOM_WINDOWS;
	struct drm_vramsim_segment *cut;
	unsigned int wrong = 0;
	size_t count;

	cut = sim_segments(buf, &count);
	for (unsigned int i = 0; i < total; i++) {
		struct window window;

		if (i < sizeof(windows) / sizeof(*windows)) {
			window = windows[i];
		} else {
			window.offset = random_next(random) % SIZE;
			window.length = 1 + random_next(random) % (i & 1 ? 3 * PAGE : SIZE);
			if (window.length > SIZE - window.offset)
				window.length = SIZE - window.offset;
		}
		wrong += !try_window(buf, i % IMP_CONTRACTS, cut, count, window, i);
	}
	is(wrong, 0, "%s, %zu segments: %u windows", layout->name, count, total);
	free(cut);
	dmabuf_free(buf);
}

#define VGEM_SIZE	(256 * KIB)
#define VGEM_IMPORTS	1000

/* vgem gives the same table each time: a window that is not put back shows in the next. */
static void table_is_kept(uint64_t *random)
{
	struct dmabuf *buf = rig_vgem(VGEM_SIZE);
	unsigned int failed = 0, wrong = 0;

	if (!buf) {
		skip("an exporter that keeps its table", "no vgem in this kernel");
		return;
	}
	for (unsigned int i = 0; i < VGEM_IMPORTS; i++) {
		uint64_t offset = random_next(random) % VGEM_SIZE;
		uint64_t length = 1 + random_next(random) % (VGEM_SIZE - offset);
		int imp = imp_open();

		if (imp_import(imp, buf, i % IMP_CONTRACTS, offset, length))
			failed++;
		else if (i % 20 == 0)
			wrong += !imp_works(imp, buf, offset, length, i);
		close(imp);
	}
	is(failed, 0, "vgem: %d imports of odd windows", VGEM_IMPORTS);
	is(wrong, 0, "vgem: data both ways");
	for (uint32_t contract = 0; contract < IMP_CONTRACTS; contract++) {
		int imp = imp_open();

		is(imp_import(imp, buf, contract, 0, VGEM_SIZE), 0, "vgem, %s: all of it",
		   imp_contract(contract));
		ok(imp_works(imp, buf, 0, VGEM_SIZE, contract), "vgem, %s: the table is whole",
		   imp_contract(contract));
		close(imp);
	}
	dmabuf_free(buf);
}

/* Two imports with different windows of one buffer at the same time. */
static void two_windows(void)
{
	static const struct window pair[] = {
		{ 5 * PAGE + 17, 9 * PAGE }, { 9 * PAGE + 3, 20 * PAGE },
	};
	struct dmabuf_opts opts = { .flags = VRAMSIM_CREATE_SCATTER, .segment_size = 8 * KIB };
	struct dmabuf *buf = rig_vram(1 * MIB, &opts);
	int imp[2];

	for (int i = 0; i < 2; i++) {
		imp[i] = imp_open();
		is(imp_import(imp[i], buf, DMABUF_IMPORTER_PINNED, pair[i].offset, pair[i].length),
		   0, "overlapping windows: import %d", i);
	}
	for (int i = 0; i < 2; i++)
		ok(imp_works(imp[i], buf, pair[i].offset, pair[i].length, i),
		   "overlapping windows: %d is right", i);
	close(imp[0]);
	ok(imp_works(imp[1], buf, pair[1].offset, pair[1].length, 2),
	   "overlapping windows: also when the other is gone");
	close(imp[1]);
	dmabuf_free(buf);
}

int main(int argc, char **argv)
{
	uint64_t random = random_seed(argc, argv);
	struct counters start;

	imp_setup();
	counters_get(&start);
	for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++)
		try_layout(&layouts[i], &random);
	two_windows();
	table_is_kept(&random);
	ok(counters_back(&start, 0), "counters are back");
	return tap_done();
}
