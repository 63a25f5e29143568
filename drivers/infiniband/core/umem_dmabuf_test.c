// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit test of the window of an imported dma-buf: what is cut out of the
 * exporter's list, in which runs, and which page size it allows.
 *
 * A layout is a table of (bus address, length).  The code under test gets it as
 * a scatter list; the reference keeps the table and answers one question, where
 * a byte of the dma-buf is on the bus, by counting from the start.  Everything
 * that is claimed is checked byte by byte against that: really each byte where
 * the window is small, else the first and the last byte of each entry, between
 * which a layout is a straight line.
 */

#include <kunit/test.h>
#include <linux/bitops.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>

#include "umem_dmabuf.h"

#define MAX_ENTRIES	300
#define MAX_SAMPLES	(2 * MAX_ENTRIES)
#define SMALL_WINDOW	512
#define SZ_4G_4K	(SZ_4G - SZ_4K)

static_assert(SMALL_WINDOW <= MAX_SAMPLES);

static unsigned int seed;
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "Seed of the random layouts (0: a new one)");

static unsigned int layouts = 20000;
module_param(layouts, uint, 0444);
MODULE_PARM_DESC(layouts, "Number of random layouts");

struct entry {
	u64 dma;
	u32 length;
};

struct layout {
	struct entry entries[MAX_ENTRIES];
	unsigned int nr;
	u64 total;
	struct ib_umem_dmabuf umem_dmabuf;
	/* One more for the link of a chained list. */
	struct scatterlist list[MAX_ENTRIES + 1];
	struct sg_table sgt;
	/* Positions in the window that are compared with the reference. */
	u64 samples[MAX_SAMPLES];
	unsigned int nr_samples;
};

/* Building a layout */

static void add_entry(struct layout *layout, u64 dma, u32 length)
{
	layout->entries[layout->nr++] = (struct entry){ dma, length };
	layout->total += length;
}

/* An entry that starts where the last one ends. */
static void add_next(struct layout *layout, u32 length)
{
	const struct entry *last = &layout->entries[layout->nr - 1];

	add_entry(layout, last->dma + last->length, length);
}

/* Makes the scatter list; with @link > 0 it is chained after so many entries. */
static void make_list(struct layout *layout, unsigned int link)
{
	struct scatterlist *sg;
	unsigned int i;

	sg_init_table(layout->list, layout->nr + !!link);
	if (link)
		sg_chain(layout->list, link + 1, layout->list + link + 1);

	layout->sgt = (struct sg_table){
		.sgl = layout->list,
		.nents = layout->nr,
		.orig_nents = layout->nr,
	};
	for_each_sgtable_dma_sg(&layout->sgt, sg, i) {
		sg_dma_address(sg) = layout->entries[i].dma;
		sg_dma_len(sg) = layout->entries[i].length;
	}
}

static void set_window(struct layout *layout, u64 offset, u64 length)
{
	layout->umem_dmabuf.umem.address = offset;
	layout->umem_dmabuf.umem.length = length;
}

static int trim(struct layout *layout, u64 offset, u64 length)
{
	set_window(layout, offset, length);
	return umem_dmabuf_trim(&layout->umem_dmabuf, &layout->sgt);
}

static struct layout *new_layout(struct kunit *test)
{
	struct layout *layout;

	layout = kunit_kzalloc(test, sizeof(*layout), GFP_KERNEL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, layout);
	return layout;
}

/* The reference */

static u64 reference_dma(const struct layout *layout, u64 pos)
{
	const struct entry *entry = layout->entries;

	while (pos >= entry->length) {
		pos -= entry->length;
		entry++;
	}
	return entry->dma + pos;
}

static void take_samples(struct layout *layout)
{
	u64 offset = layout->umem_dmabuf.umem.address;
	u64 length = layout->umem_dmabuf.umem.length;
	u64 pos = 0;
	unsigned int i;

	layout->nr_samples = 0;
	if (length <= SMALL_WINDOW) {
		for (i = 0; i < length; i++)
			layout->samples[layout->nr_samples++] = i;
		return;
	}
	for (i = 0; i < layout->nr; i++) {
		u64 from = max(pos, offset);
		u64 to;

		pos += layout->entries[i].length;
		to = min(pos, offset + length);
		if (from >= to)
			continue;
		layout->samples[layout->nr_samples++] = from - offset;
		if (to - 1 > from)
			layout->samples[layout->nr_samples++] = to - 1 - offset;
	}
}

/*
 * A page table can express a window if a byte is at the same place of its page
 * in both address spaces, and bytes of the same page are as far from each other
 * in both.
 */
static bool reference_fits(const struct layout *layout, u64 pgsz, u64 iova)
{
	u64 offset = layout->umem_dmabuf.umem.address;
	u64 last_dma = 0, last_va = 0;
	unsigned int i;

	for (i = 0; i < layout->nr_samples; i++) {
		u64 va = iova + layout->samples[i];
		u64 dma = reference_dma(layout, offset + layout->samples[i]);

		if ((dma & (pgsz - 1)) != (va & (pgsz - 1)))
			return false;
		if (i && (va & ~(pgsz - 1)) == (last_va & ~(pgsz - 1)) &&
		    dma - last_dma != va - last_va)
			return false;
		last_dma = dma;
		last_va = va;
	}
	return true;
}

static u64 reference_pgsz(const struct layout *layout, u64 bitmap, u64 iova)
{
	int bit;

	for (bit = 63; bit >= 0; bit--)
		if (bitmap & BIT_ULL(bit) &&
		    reference_fits(layout, BIT_ULL(bit), iova))
			return BIT_ULL(bit);
	return 0;
}

/* Comparing */

static bool list_is_whole(const struct layout *layout)
{
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_dma_sg(&layout->sgt, sg, i)
		if (sg_dma_address(sg) != layout->entries[i].dma ||
		    sg_dma_len(sg) != layout->entries[i].length)
			return false;
	return true;
}

/* The trimmed list holds the pages of the window and nothing else. */
static bool trim_is_right(const struct layout *layout)
{
	const struct ib_umem *umem = &layout->umem_dmabuf.umem;
	u64 start = ALIGN_DOWN((u64)umem->address, PAGE_SIZE);
	u64 end = ALIGN((u64)umem->address + umem->length, PAGE_SIZE);
	struct scatterlist *sg = NULL;
	u64 sg_start = start, sg_end = start;
	unsigned int i;
	int used = 0;

	for (i = 0; i < layout->nr_samples; i++) {
		u64 pos = umem->address + layout->samples[i];

		while (pos >= sg_end) {
			if (used++ == umem->nmap)
				return false;
			sg = sg ? sg_next(sg) : umem->sg_head.sgl;
			sg_start = sg_end;
			sg_end += sg_dma_len(sg);
		}
		if (sg_dma_address(sg) + pos - sg_start !=
		    reference_dma(layout, pos))
			return false;
	}
	for (; used < umem->nmap; used++) {
		sg = sg_next(sg);
		sg_end += sg_dma_len(sg);
	}
	return sg_end == min(end, layout->total) &&
	       sg_dma_address(umem->sg_head.sgl) ==
		       reference_dma(layout, start) &&
	       umem->sg_head.nents == umem->nmap;
}

/* The runs are the window: in order, none left out, none longer than it is. */
static bool runs_are_right(const struct layout *layout)
{
	const struct ib_umem *umem = &layout->umem_dmabuf.umem;
	struct ib_umem_dmabuf_run run = {};
	u64 end = 0, end_dma = 0;
	unsigned int i = 0;

	while (ib_umem_dmabuf_next_run(&layout->umem_dmabuf, &run)) {
		if (run.pos != end || !run.length ||
		    run.dma != reference_dma(layout, umem->address + run.pos))
			return false;
		if (run.pos && run.dma == end_dma)
			return false;
		end = run.pos + run.length;
		end_dma = run.dma + run.length;
		for (; i < layout->nr_samples && layout->samples[i] < end; i++)
			if (run.dma + layout->samples[i] - run.pos !=
			    reference_dma(layout,
					  umem->address + layout->samples[i]))
				return false;
	}
	return end == umem->length && i == layout->nr_samples;
}

/* Everything about one window of one layout. */
static void compare(struct kunit *test, struct layout *layout, u64 offset,
		    u64 length, u64 bitmap, u64 iova, unsigned int number)
{
	u64 pgsz;

	KUNIT_ASSERT_EQ_MSG(test, trim(layout, offset, length), 0,
			    "layout %u", number);
	take_samples(layout);
	KUNIT_ASSERT_TRUE_MSG(test, trim_is_right(layout), "layout %u", number);
	KUNIT_ASSERT_TRUE_MSG(test, runs_are_right(layout), "layout %u",
			      number);
	pgsz = ib_umem_dmabuf_find_best_pgsz(&layout->umem_dmabuf, bitmap,
					     iova);
	KUNIT_ASSERT_EQ_MSG(test, pgsz, reference_pgsz(layout, bitmap, iova),
			    "layout %u", number);
	umem_dmabuf_untrim(&layout->umem_dmabuf);
	KUNIT_ASSERT_TRUE_MSG(test, list_is_whole(layout), "layout %u", number);
}

/* Random layouts */

static u64 random_u64(struct rnd_state *rnd)
{
	return (u64)prandom_u32_state(rnd) << 32 | prandom_u32_state(rnd);
}

static u64 random_below(struct rnd_state *rnd, u64 ceil)
{
	u64 rest;

	div64_u64_rem(random_u64(rnd), ceil, &rest);
	return rest;
}

static void random_layout(struct rnd_state *rnd, struct layout *layout)
{
	static const u32 lengths[] = {
		SZ_4K, SZ_64K, SZ_2M, SZ_1G, SZ_2G - SZ_4K, SZ_2G,
		SZ_2G + SZ_4K, SZ_4G_4K,
	};
	unsigned int nr = 1 + random_below(rnd, 8);
	bool pages = random_below(rnd, 4);
	bool tiny = !random_below(rnd, 4);
	u64 align = BIT_ULL(random_below(rnd, 32));
	unsigned int joined = random_below(rnd, 4);

	if (!random_below(rnd, 64))
		nr = 1 + random_below(rnd, MAX_ENTRIES);

	layout->nr = 0;
	layout->total = 0;
	while (layout->nr < nr) {
		u32 length = lengths[random_below(rnd, ARRAY_SIZE(lengths))];

		if (tiny)
			length = 1 + random_below(rnd, 64);
		else if (!pages && random_below(rnd, 2))
			length = 1 + random_below(rnd, length);
		else if (!random_below(rnd, 4))
			length = SZ_4K * (1 + random_below(rnd, 64));

		if (layout->nr && random_below(rnd, 4) < joined)
			add_next(layout, length);
		else
			add_entry(layout,
				  ALIGN_DOWN(random_u64(rnd) >> 16, align),
				  length);
	}
	make_list(layout, random_below(rnd, nr));
}

static void random_layouts(struct kunit *test)
{
	struct layout *layout = new_layout(test);
	struct rnd_state rnd;
	unsigned int i;

	if (!seed)
		seed = get_random_u32();
	kunit_info(test, "seed=%u layouts=%u", seed, layouts);
	prandom_seed_state(&rnd, seed);

	for (i = 0; i < layouts; i++) {
		u64 offset, length, iova, bitmap;

		random_layout(&rnd, layout);
		offset = random_below(&rnd, layout->total);
		length = 1 + random_below(&rnd, layout->total - offset);

		/*
		 * An address that goes with the bus address in some low bits,
		 * or else hardly any page size would ever fit.
		 */
		iova = random_u64(&rnd) &
		       ~GENMASK_ULL(random_below(&rnd, 48), 0);
		iova += reference_dma(layout, offset) &
			GENMASK_ULL(random_below(&rnd, 48), 0);
		bitmap = random_u64(&rnd) | random_u64(&rnd);

		compare(test, layout, offset, length, bitmap, iova, i);

		/* One byte more than there is. */
		length = layout->total - offset + 1;
		KUNIT_ASSERT_EQ_MSG(test, trim(layout, offset, length),
				    -EINVAL, "layout %u", i);
		KUNIT_ASSERT_TRUE_MSG(test, list_is_whole(layout),
				      "layout %u", i);
	}
}

/* Edges, with answers written by hand */

static u64 best_pgsz(struct layout *layout, u64 bitmap, u64 iova)
{
	return ib_umem_dmabuf_find_best_pgsz(&layout->umem_dmabuf, bitmap,
					     iova);
}

static unsigned int count_runs(const struct layout *layout)
{
	struct ib_umem_dmabuf_run run = {};
	unsigned int nr = 0;

	while (ib_umem_dmabuf_next_run(&layout->umem_dmabuf, &run))
		nr++;
	return nr;
}

static void one_segment(struct kunit *test)
{
	struct layout *layout = new_layout(test);
	struct ib_umem *umem = &layout->umem_dmabuf.umem;

	add_entry(layout, 0x40000000, SZ_1M);
	make_list(layout, 0);

	/* From inside the second page to inside the third. */
	KUNIT_ASSERT_EQ(test, trim(layout, SZ_4K + 100, SZ_4K), 0);
	KUNIT_EXPECT_EQ(test, umem->nmap, 1);
	KUNIT_EXPECT_EQ(test, (u64)sg_dma_address(umem->sg_head.sgl),
			0x40001000ULL);
	KUNIT_EXPECT_EQ(test, (u32)sg_dma_len(umem->sg_head.sgl),
			(u32)SZ_8K);
	KUNIT_EXPECT_EQ(test, count_runs(layout), 1U);
	KUNIT_EXPECT_EQ(test, best_pgsz(layout, ~0ULL, 0x40001064),
			BIT_ULL(63));
	KUNIT_EXPECT_EQ(test, best_pgsz(layout, SZ_4K | SZ_64K | SZ_1G,
					0x7f0000011064ULL),
			(u64)SZ_64K);
	umem_dmabuf_untrim(&layout->umem_dmabuf);
	KUNIT_EXPECT_TRUE(test, list_is_whole(layout));
}

static void first_and_last_byte(struct kunit *test)
{
	struct layout *layout = new_layout(test);
	struct ib_umem *umem = &layout->umem_dmabuf.umem;

	add_entry(layout, 0x10000000, SZ_8K);
	add_entry(layout, 0x20000000, SZ_8K);
	make_list(layout, 0);

	KUNIT_ASSERT_EQ(test, trim(layout, 0, 1), 0);
	KUNIT_EXPECT_EQ(test, umem->nmap, 1);
	KUNIT_EXPECT_EQ(test, (u64)sg_dma_address(umem->sg_head.sgl),
			0x10000000ULL);
	KUNIT_EXPECT_EQ(test, (u32)sg_dma_len(umem->sg_head.sgl),
			(u32)SZ_4K);
	umem_dmabuf_untrim(&layout->umem_dmabuf);

	KUNIT_ASSERT_EQ(test, trim(layout, SZ_16K - 1, 1), 0);
	KUNIT_EXPECT_EQ(test, umem->nmap, 1);
	KUNIT_EXPECT_EQ(test, (u64)sg_dma_address(umem->sg_head.sgl),
			0x20001000ULL);
	KUNIT_EXPECT_EQ(test, (u32)sg_dma_len(umem->sg_head.sgl),
			(u32)SZ_4K);
	umem_dmabuf_untrim(&layout->umem_dmabuf);

	/* Two bytes, on both sides of the gap. */
	KUNIT_ASSERT_EQ(test, trim(layout, SZ_8K - 1, 2), 0);
	KUNIT_EXPECT_EQ(test, umem->nmap, 2);
	KUNIT_EXPECT_EQ(test, count_runs(layout), 2U);
	umem_dmabuf_untrim(&layout->umem_dmabuf);

	KUNIT_EXPECT_EQ(test, trim(layout, SZ_16K, 1), -EINVAL);
	KUNIT_EXPECT_TRUE(test, list_is_whole(layout));
}

/* Segments of one size with gaps between them: that size is the page size. */
static void segment_sizes(struct kunit *test)
{
	static const struct {
		u32 length;
		u64 pgsz;
	} sizes[] = {
		{ SZ_4K, SZ_4K },
		{ SZ_64K, SZ_64K },
		{ SZ_2M, SZ_2M },
		{ SZ_4G_4K, SZ_4K },
	};
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct layout *layout = new_layout(test);

		for (j = 0; j < 5; j++)
			add_entry(layout, 2 * j * SZ_4G, sizes[i].length);
		make_list(layout, 0);
		KUNIT_ASSERT_EQ(test, trim(layout, 0, layout->total), 0);
		KUNIT_EXPECT_EQ(test, count_runs(layout), 5U);
		KUNIT_EXPECT_EQ(test, best_pgsz(layout, ~0ULL, 0),
				sizes[i].pgsz);
		umem_dmabuf_untrim(&layout->umem_dmabuf);
		compare(test, layout, SZ_4K - 1, layout->total - SZ_4K, ~0ULL,
			SZ_4K - 1, i);
	}
}

static void total_over_4g(struct kunit *test)
{
	struct layout *layout = new_layout(test);
	struct ib_umem_dmabuf_run run = {};
	u64 total = 4ULL * SZ_4G_4K;

	add_entry(layout, SZ_1G, SZ_4G_4K);
	add_next(layout, SZ_4G_4K);
	add_next(layout, SZ_4G_4K);
	add_next(layout, SZ_4G_4K);
	make_list(layout, 2);

	/* The entries end nowhere near a boundary, but it is one stretch. */
	KUNIT_ASSERT_EQ(test, trim(layout, 0, total), 0);
	KUNIT_ASSERT_TRUE(test, ib_umem_dmabuf_next_run(&layout->umem_dmabuf,
							&run));
	KUNIT_EXPECT_EQ(test, run.dma, (u64)SZ_1G);
	KUNIT_EXPECT_EQ(test, run.length, total);
	KUNIT_EXPECT_FALSE(test, ib_umem_dmabuf_next_run(&layout->umem_dmabuf,
							 &run));
	KUNIT_EXPECT_EQ(test, best_pgsz(layout, SZ_4K | SZ_2M | SZ_1G, SZ_4G),
			(u64)SZ_1G);
	umem_dmabuf_untrim(&layout->umem_dmabuf);

	/* A window that starts beyond 4 GiB and is longer than that. */
	compare(test, layout, SZ_4G + 1, 2ULL * SZ_4G, ~0ULL,
		SZ_4G + SZ_1G + 1, 0);
	KUNIT_EXPECT_EQ(test, trim(layout, 0, total + 1), -EINVAL);
}

static void list_too_short(struct kunit *test)
{
	struct layout *layout = new_layout(test);

	add_entry(layout, SZ_1M, SZ_64K);
	add_entry(layout, SZ_4M, SZ_64K);
	make_list(layout, 0);

	KUNIT_EXPECT_EQ(test, trim(layout, 0, SZ_128K + 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, trim(layout, SZ_64K, SZ_64K + 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, trim(layout, SZ_1M, SZ_4K), -EINVAL);
	layout->sgt.nents = 0;
	KUNIT_EXPECT_EQ(test, trim(layout, 0, 1), -EINVAL);
	layout->sgt.nents = 2;
	KUNIT_EXPECT_TRUE(test, list_is_whole(layout));
	KUNIT_EXPECT_EQ(test, trim(layout, 0, SZ_128K), 0);
}

/* A page table cannot express it, unless the next entry goes on there. */
static void ends_inside_a_page(struct kunit *test)
{
	struct layout *layout = new_layout(test);

	add_entry(layout, SZ_1M, SZ_4K + 512);
	add_entry(layout, SZ_4M, SZ_4K);
	make_list(layout, 0);
	KUNIT_ASSERT_EQ(test, trim(layout, 0, layout->total), 0);
	KUNIT_EXPECT_EQ(test, best_pgsz(layout, SZ_4K | SZ_2M, 0), 0ULL);
	umem_dmabuf_untrim(&layout->umem_dmabuf);

	/* Out of sight, in the first entry or before the second. */
	KUNIT_ASSERT_EQ(test, trim(layout, 0, SZ_4K + 512), 0);
	KUNIT_EXPECT_EQ(test, best_pgsz(layout, SZ_4K | SZ_2M, 0),
			(u64)SZ_4K);
	umem_dmabuf_untrim(&layout->umem_dmabuf);

	layout = new_layout(test);
	add_entry(layout, SZ_1M, SZ_4K + 512);
	add_next(layout, SZ_4K - 512);
	make_list(layout, 0);
	KUNIT_ASSERT_EQ(test, trim(layout, 0, layout->total), 0);
	KUNIT_EXPECT_EQ(test, best_pgsz(layout, SZ_4K | SZ_2M, 0),
			(u64)SZ_4K);
	umem_dmabuf_untrim(&layout->umem_dmabuf);
}

static struct kunit_case umem_dmabuf_cases[] = {
	KUNIT_CASE(one_segment),
	KUNIT_CASE(first_and_last_byte),
	KUNIT_CASE(segment_sizes),
	KUNIT_CASE(total_over_4g),
	KUNIT_CASE(list_too_short),
	KUNIT_CASE(ends_inside_a_page),
	KUNIT_CASE(random_layouts),
	{}
};

static struct kunit_suite umem_dmabuf_suite = {
	.name = "umem_dmabuf_window",
	.test_cases = umem_dmabuf_cases,
};

kunit_test_suite(umem_dmabuf_suite);

MODULE_DESCRIPTION("KUnit test of the dma-buf window logic");
MODULE_LICENSE("Dual BSD/GPL");
