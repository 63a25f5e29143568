// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of buffers: allocation in VRAM and in system memory, and the cut into
 * segments.
 */

#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/prandom.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include <drm/drm_managed.h>

#include "vramsim_drv.h"

#define SPARSE_SEGMENT	SZ_2M		/* where the user does not care */
#define MAX_SEGMENTS	BIT(24)
#define SYSTEM_ORDER	9		/* adjacent system pages we try for */

/**
 * struct vramsim_node - a part of VRAM that belongs to a buffer
 * @link: in vramsim_mem.nodes
 * @mm: which part
 */
struct vramsim_node {
	struct list_head link;
	struct drm_mm_node mm;
};

static void vramsim_vram_release(struct drm_device *drm, void *unused)
{
	struct vramsim_device *vdev = to_vramsim(drm);
	u64 i;

	drm_mm_takedown(&vdev->mm);
	if (!vdev->blocks)
		return;
	for (i = 0; i < vdev->vram_size >> VRAMSIM_BLOCK_SHIFT; i++)
		if (vdev->blocks[i])
			__free_pages(vdev->blocks[i], VRAMSIM_BLOCK_SHIFT - PAGE_SHIFT);
	kvfree(vdev->blocks);
}

/**
 * vramsim_vram_init - prepare the VRAM of an instance
 * @vdev: instance, with @bar and @vram_size set
 *
 * Allocates the plain pages if there is no BAR. Everything is given back when
 * the last user of the DRM device is gone.
 *
 * Return: 0, or -ENOMEM.
 */
int vramsim_vram_init(struct vramsim_device *vdev)
{
	u64 blocks = vdev->vram_size >> VRAMSIM_BLOCK_SHIFT;
	u64 i;
	int ret;

	drm_mm_init(&vdev->mm, 0, vdev->vram_size);
	ret = drmm_add_action_or_reset(&vdev->drm, vramsim_vram_release, NULL);
	if (ret)
		return ret;

	if (vdev->bar) {
		u64 windows = DIV_ROUND_UP(vdev->vram_size, 1 << VRAMSIM_WINDOW_SHIFT);

		vdev->windows = drmm_kcalloc(&vdev->drm, windows, sizeof(*vdev->windows),
					     GFP_KERNEL);
		return vdev->windows ? 0 : -ENOMEM;
	}

	vdev->blocks = kvcalloc(blocks, sizeof(*vdev->blocks), GFP_KERNEL);
	if (!vdev->blocks)
		return -ENOMEM;
	for (i = 0; i < blocks; i++) {
		vdev->blocks[i] = alloc_pages(GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_COMP,
					      VRAMSIM_BLOCK_SHIFT - PAGE_SHIFT);
		if (!vdev->blocks[i])
			return -ENOMEM;
	}
	return 0;
}

static bool vramsim_segment_follows(const struct vramsim_segment *prev,
				    const struct vramsim_segment *next)
{
	/* while the segments are put in order, @start holds their length */
	return next->addr == prev->addr + prev->start;
}

static int vramsim_segment_compare(const void *a, const void *b)
{
	const struct vramsim_segment *x = a, *y = b;

	return x->addr < y->addr ? 1 : -1;
}

/* Put @count segments in pseudo-random order, none right after its neighbour. */
static void vramsim_shuffle(struct vramsim_segment *segments, u32 count, u32 seed)
{
	struct rnd_state random;
	u32 i, j;

	prandom_seed_state(&random, seed);
	for (i = 0; i < count; i++) {
		j = i + prandom_u32_state(&random) % (count - i);
		if (i && vramsim_segment_follows(&segments[i - 1], &segments[j]))
			j = j + 1 < count ? j + 1 : i;
		swap(segments[i], segments[j]);
	}

	for (i = 1; i < count; i++)
		if (vramsim_segment_follows(&segments[i - 1], &segments[i]))
			break;
	/* Left over at the end: from high to low is an order that never fails. */
	if (i < count)
		sort(segments, count, sizeof(*segments), vramsim_segment_compare, NULL);
}

/* Turn lengths into offsets. */
static void vramsim_number(struct vramsim_mem *mem)
{
	u64 start = 0;
	u32 i;

	for (i = 0; i < mem->count; i++) {
		u64 length = mem->segments[i].start;

		mem->segments[i].start = start;
		start += length;
	}
	mem->segments[i].start = start;
}

static int vramsim_alloc_segments(struct vramsim_mem *mem, u64 count)
{
	if (count > MAX_SEGMENTS)
		return -E2BIG;
	mem->segments = kvcalloc(count + 1, sizeof(*mem->segments), GFP_KERNEL);
	if (!mem->segments)
		return -ENOMEM;
	mem->count = count;
	return 0;
}

/*
 * Cut the nodes of @mem into runs of at most @limit bytes. Plain pages are
 * adjacent within a block only.
 */
static u64 vramsim_cut(struct vramsim_device *vdev, struct vramsim_mem *mem,
		       u64 bytes, u64 limit, struct vramsim_segment *segments)
{
	struct vramsim_node *node;
	u64 count = 0;

	list_for_each_entry(node, &mem->nodes, link) {
		u64 addr = node->mm.start;
		u64 left = min(node->mm.size, bytes);

		bytes -= left;
		while (left) {
			u64 run = min(left, limit);

			if (vdev->blocks)
				run = min(run, ALIGN(addr + 1, 1 << VRAMSIM_BLOCK_SHIFT) - addr);
			if (segments) {
				segments[count].addr = addr;
				segments[count].start = run;
			}
			count++;
			addr += run;
			left -= run;
		}
	}
	return count;
}

static void vramsim_give_back(struct vramsim_device *vdev, struct vramsim_mem *mem)
{
	struct vramsim_node *node, *next;

	mutex_lock(&vdev->lock);
	list_for_each_entry_safe(node, next, &mem->nodes, link) {
		vdev->vram_used -= node->mm.size;
		drm_mm_remove_node(&node->mm);
		list_del(&node->link);
		kfree(node);
	}
	mutex_unlock(&vdev->lock);
}

/*
 * Take @bytes of VRAM, in one piece if possible, else in pieces of a multiple
 * of @unit.
 */
static int vramsim_take(struct vramsim_device *vdev, struct vramsim_mem *mem,
			u64 bytes, u64 align, u64 unit)
{
	u64 piece = bytes;
	int ret = 0;

	mutex_lock(&vdev->lock);
	if (bytes > vdev->vram_size - vdev->vram_used)
		ret = -ENOSPC;
	while (bytes && !ret) {
		struct vramsim_node *node = kzalloc(sizeof(*node), GFP_KERNEL);

		if (!node) {
			ret = -ENOMEM;
			break;
		}
		piece = min(piece, bytes);
		ret = drm_mm_insert_node_in_range(&vdev->mm, &node->mm, piece, align, 0,
						  0, vdev->vram_size, DRM_MM_INSERT_BEST);
		if (!ret) {
			list_add_tail(&node->link, &mem->nodes);
			vdev->vram_used += piece;
			bytes -= piece;
			continue;
		}
		kfree(node);
		if (piece > unit) {
			piece = max(unit, rounddown(piece / 2, unit));
			ret = 0;
		}
	}
	mutex_unlock(&vdev->lock);

	if (ret)
		vramsim_give_back(vdev, mem);
	return ret;
}

static int vramsim_fill_vram(struct vramsim_device *vdev, struct vramsim_mem *mem,
			     const struct vramsim_layout *layout)
{
	u64 limit = min(layout->segment_size ?: VRAMSIM_MAX_SEGMENT, VRAMSIM_MAX_SEGMENT);
	u64 align = mem->size >= SZ_2M ? SZ_2M : PAGE_SIZE;
	u64 unit = PAGE_SIZE;
	int ret;

	if (layout->segment_size) {
		align = min_t(u64, 1ULL << __ffs64(limit), rounddown_pow_of_two(vdev->vram_size));
		unit = limit;
	}
	ret = vramsim_take(vdev, mem, mem->size, align, unit);
	if (ret == -ENOSPC)
		ret = vramsim_take(vdev, mem, mem->size, PAGE_SIZE, PAGE_SIZE);
	if (ret)
		return ret;

	ret = vramsim_alloc_segments(mem, vramsim_cut(vdev, mem, mem->size, limit, NULL));
	if (ret)
		return ret;
	vramsim_cut(vdev, mem, mem->size, limit, mem->segments);
	if (layout->scatter)
		vramsim_shuffle(mem->segments, mem->count, layout->seed);
	vramsim_number(mem);
	return 0;
}

/*
 * A sparse buffer has a window of VRAM that its segments go through over and
 * over, one further each time round, so that a translation that is off by the
 * size of the window still shows.
 */
static int vramsim_fill_sparse(struct vramsim_device *vdev, struct vramsim_mem *mem,
			       const struct vramsim_layout *layout)
{
	u64 limit = min(layout->segment_size ?: SPARSE_SEGMENT, VRAMSIM_MAX_SEGMENT);
	u64 align = min_t(u64, 1ULL << __ffs64(limit), rounddown_pow_of_two(vdev->vram_size));
	/* Not DIV_ROUND_UP, which wraps for sizes close to 2^64. */
	u64 count = div64_u64(mem->size - 1, limit) + 1;
	u64 slots = clamp_t(u64, div64_u64(vdev->vram_size / 8, limit), 1, count);
	struct vramsim_segment *window, *prev = NULL;
	u64 left = mem->size;
	u64 i, slot;
	int ret;

	do {
		ret = vramsim_take(vdev, mem, slots * limit, align, slots * limit);
	} while (ret == -ENOSPC && (slots /= 2));
	if (ret)
		return ret;

	ret = vramsim_alloc_segments(mem, count);
	if (ret)
		return ret;
	window = kvcalloc(slots, sizeof(*window), GFP_KERNEL);
	if (!window)
		return -ENOMEM;
	vramsim_cut(vdev, mem, slots * limit, limit, window);
	if (layout->scatter)
		vramsim_shuffle(window, slots, layout->seed);
	for (i = 0; i < mem->count; i++) {
		slot = (i % slots + i / slots) % slots;
		if (layout->scatter && prev && vramsim_segment_follows(prev, &window[slot]))
			slot = (slot + 1) % slots;
		prev = &window[slot];
		mem->segments[i].addr = prev->addr;
		mem->segments[i].start = min(left, limit);
		left -= mem->segments[i].start;
	}
	kvfree(window);
	vramsim_number(mem);
	return 0;
}

static int vramsim_fill_system(struct vramsim_mem *mem, const struct vramsim_layout *layout)
{
	unsigned int order = layout->segment_size ?
		min_t(unsigned int, ilog2(layout->segment_size >> PAGE_SHIFT), SYSTEM_ORDER) :
		SYSTEM_ORDER;
	u64 left = mem->size >> PAGE_SHIFT;
	struct page *page, *next;
	LIST_HEAD(runs);
	u64 count = 0;
	int ret = 0;

	if (left > totalram_pages())
		return -ENOMEM;

	while (left) {
		gfp_t gfp = GFP_KERNEL | __GFP_NOWARN | __GFP_RETRY_MAYFAIL;

		order = min_t(unsigned int, order, ilog2(left));
		if (order)
			gfp = GFP_KERNEL | __GFP_NOWARN | __GFP_NORETRY;
		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			break;
		}
		page = alloc_pages(gfp, order);
		if (!page && order) {
			order--;
			continue;
		}
		if (!page) {
			ret = -ENOMEM;
			break;
		}
		set_page_private(page, order);
		list_add_tail(&page->lru, &runs);
		left -= 1ULL << order;
		count++;
		cond_resched();
	}
	if (!ret)
		ret = vramsim_alloc_segments(mem, count);

	count = 0;
	list_for_each_entry_safe(page, next, &runs, lru) {
		order = page_private(page);
		set_page_private(page, 0);
		list_del(&page->lru);
		if (ret) {
			__free_pages(page, order);
			continue;
		}
		if (order)
			split_page(page, order);
		mem->segments[count].addr = page_to_phys(page);
		mem->segments[count].start = PAGE_SIZE << order;
		count++;
	}
	if (ret)
		return ret;

	if (layout->scatter)
		vramsim_shuffle(mem->segments, mem->count, layout->seed);
	vramsim_number(mem);
	return 0;
}

/**
 * vramsim_mem_create - allocate memory for a buffer
 * @vdev: instance
 * @placement: VRAMSIM_PLACEMENT_VRAM or _SYSTEM
 * @size: bytes, a multiple of the page size
 * @layout: how to cut it
 *
 * The memory holds what it held before. Evicts nothing. Sleeps.
 *
 * Return: the memory; -ENOSPC if there is no room in VRAM, -ENOMEM, or -E2BIG
 * if it takes too many segments.
 */
struct vramsim_mem *vramsim_mem_create(struct vramsim_device *vdev, u32 placement,
				       u64 size, const struct vramsim_layout *layout)
{
	struct vramsim_mem *mem = kzalloc(sizeof(*mem), GFP_KERNEL);
	int ret;

	if (!mem)
		return ERR_PTR(-ENOMEM);
	mem->placement = placement;
	mem->size = size;
	INIT_LIST_HEAD(&mem->nodes);

	if (placement == VRAMSIM_PLACEMENT_SYSTEM)
		ret = vramsim_fill_system(mem, layout);
	else if (layout->sparse)
		ret = vramsim_fill_sparse(vdev, mem, layout);
	else
		ret = vramsim_fill_vram(vdev, mem, layout);
	if (ret) {
		vramsim_give_back(vdev, mem);
		kvfree(mem->segments);
		kfree(mem);
		return ERR_PTR(ret);
	}
	if (placement == VRAMSIM_PLACEMENT_SYSTEM) {
		mutex_lock(&vdev->lock);
		vdev->system_used += size;
		mutex_unlock(&vdev->lock);
	}
	return mem;
}

/**
 * vramsim_mem_free - give memory back
 * @vdev: instance
 * @mem: memory that nobody uses, or NULL
 */
void vramsim_mem_free(struct vramsim_device *vdev, struct vramsim_mem *mem)
{
	u32 i;

	if (!mem)
		return;
	if (mem->placement == VRAMSIM_PLACEMENT_SYSTEM) {
		for (i = 0; i < mem->count; i++) {
			struct page *page = pfn_to_page(PHYS_PFN(mem->segments[i].addr));
			u64 n = vramsim_segment_length(mem, i) >> PAGE_SHIFT;

			while (n--)
				__free_page(page++);
			cond_resched();
		}
		mutex_lock(&vdev->lock);
		vdev->system_used -= mem->size;
		mutex_unlock(&vdev->lock);
	}
	vramsim_give_back(vdev, mem);
	kvfree(mem->segments);
	kfree(mem);
}

/**
 * vramsim_mem_is_io - memory without struct page
 * @vdev: instance
 * @mem: memory
 *
 * Return: true if it lies in the BAR.
 */
bool vramsim_mem_is_io(struct vramsim_device *vdev, const struct vramsim_mem *mem)
{
	return vdev->bar && mem->placement == VRAMSIM_PLACEMENT_VRAM;
}

/**
 * vramsim_mem_phys - physical address of a segment
 * @vdev: instance
 * @mem: memory
 * @i: number of the segment
 *
 * Return: the address; the bus address as well, where it lies in the BAR.
 */
phys_addr_t vramsim_mem_phys(struct vramsim_device *vdev,
			     const struct vramsim_mem *mem, u32 i)
{
	u64 addr = mem->segments[i].addr;

	if (mem->placement == VRAMSIM_PLACEMENT_SYSTEM)
		return addr;
	if (vdev->bar)
		return vdev->bar + addr;
	return page_to_phys(vdev->blocks[addr >> VRAMSIM_BLOCK_SHIFT]) +
	       (addr & ((1 << VRAMSIM_BLOCK_SHIFT) - 1));
}

/**
 * vramsim_mem_window - the part of VRAM behind a sparse buffer
 * @mem: memory of a sparse buffer
 * @size: set to its size
 *
 * Return: where it starts in VRAM.
 */
u64 vramsim_mem_window(const struct vramsim_mem *mem, u64 *size)
{
	const struct vramsim_node *node = list_first_entry(&mem->nodes, struct vramsim_node,
							   link);

	*size = node->mm.size;
	return node->mm.start;
}

/**
 * vramsim_mem_find - which segment holds a byte
 * @mem: memory
 * @offset: of the byte, less than the size
 *
 * Return: number of the segment.
 */
u32 vramsim_mem_find(const struct vramsim_mem *mem, u64 offset)
{
	u32 low = 0, high = mem->count;

	while (high - low > 1) {
		u32 middle = low + (high - low) / 2;

		if (mem->segments[middle].start <= offset)
			low = middle;
		else
			high = middle;
	}
	return low;
}
