// SPDX-License-Identifier: GPL-2.0
/*
 * Access to memory with the CPU.
 *
 * VRAM in a PCI BAR has no struct page. It is reached through windows that are
 * mapped at first use, so that a BAR of many GiB, of which the tests touch
 * little, costs neither page tables nor KASAN shadow for all of it.
 */

#include <linux/io.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include <drm/drm_drv.h>

#include "vramsim_drv.h"

#define BOUNCE_SIZE	SZ_64K

/**
 * vramsim_vram_unmap - forget the windows into the BAR
 * @vdev: instance, unplugged
 */
void vramsim_vram_unmap(struct vramsim_device *vdev)
{
	u64 i;

	if (!vdev->windows)
		return;
	for (i = 0; i < DIV_ROUND_UP(vdev->vram_size, 1 << VRAMSIM_WINDOW_SHIFT); i++) {
		if (vdev->windows[i])
			iounmap(vdev->windows[i]);
		vdev->windows[i] = NULL;
	}
}

/* Where byte @addr of VRAM is for the CPU; *@run is cut to what follows it. */
static void __iomem *vramsim_window(struct vramsim_device *vdev, u64 addr, u64 *run)
{
	u64 start = ALIGN_DOWN(addr, 1 << VRAMSIM_WINDOW_SHIFT);
	u64 size = min_t(u64, 1 << VRAMSIM_WINDOW_SHIFT, vdev->vram_size - start);
	void __iomem **window = &vdev->windows[addr >> VRAMSIM_WINDOW_SHIFT];

	mutex_lock(&vdev->lock);
	if (!*window)
		*window = ioremap_wc(vdev->bar + start, size);
	mutex_unlock(&vdev->lock);
	if (!*window)
		return NULL;

	*run = min(*run, start + size - addr);
	return *window + (addr - start);
}

static void vramsim_access_io(void __iomem *at, u32 op, void *buf, u64 length)
{
	switch (op) {
	case VRAMSIM_ACCESS_READ:
		memcpy_fromio(buf, at, length);
		break;
	case VRAMSIM_ACCESS_WRITE:
		memcpy_toio(at, buf, length);
		break;
	case VRAMSIM_ACCESS_FILL:
		memset_io(at, *(u8 *)buf, length);
		break;
	}
	/* Write-combining buffers drain before anybody hears that we are done. */
	wmb();
}

static void vramsim_access_ram(void *at, u32 op, void *buf, u64 length)
{
	switch (op) {
	case VRAMSIM_ACCESS_READ:
		memcpy(buf, at, length);
		break;
	case VRAMSIM_ACCESS_WRITE:
		memcpy(at, buf, length);
		break;
	case VRAMSIM_ACCESS_FILL:
		memset(at, *(u8 *)buf, length);
		break;
	}
}

/**
 * vramsim_mem_access - read or write memory with the CPU
 * @vdev: instance
 * @mem: memory that stays where it is during the call
 * @op: VRAMSIM_ACCESS_READ, _WRITE or _FILL
 * @offset: first byte
 * @buf: kernel memory to read to or to write from; the byte to fill with
 * @length: bytes
 *
 * Sleeps.
 *
 * Return: 0, -ENODEV if the device is gone, -ENOMEM.
 */
int vramsim_mem_access(struct vramsim_device *vdev, const struct vramsim_mem *mem,
		       u32 op, u64 offset, void *buf, u64 length)
{
	bool io = vramsim_mem_is_io(vdev, mem);
	int ret = 0;
	int idx;

	if (io && !drm_dev_enter(&vdev->drm, &idx))
		return -ENODEV;

	while (length) {
		u32 i = vramsim_mem_find(mem, offset);
		u64 skip = offset - mem->segments[i].start;
		u64 run = min3(length, vramsim_segment_length(mem, i) - skip, (u64)SZ_1M);

		if (io) {
			void __iomem *at = vramsim_window(vdev, mem->segments[i].addr + skip,
							  &run);

			if (!at) {
				ret = -ENOMEM;
				break;
			}
			vramsim_access_io(at, op, buf, run);
		} else {
			vramsim_access_ram(phys_to_virt(vramsim_mem_phys(vdev, mem, i) + skip),
					   op, buf, run);
		}
		if (op != VRAMSIM_ACCESS_FILL)
			buf += run;
		offset += run;
		length -= run;
		cond_resched();
	}

	if (io)
		drm_dev_exit(idx);
	return ret;
}

/**
 * vramsim_mem_copy - copy the contents of a buffer to its new place
 * @vdev: instance
 * @to: where to
 * @from: where from, of the same size
 *
 * Sleeps.
 *
 * Return: 0, -ENODEV if the device is gone, -ENOMEM.
 */
int vramsim_mem_copy(struct vramsim_device *vdev, const struct vramsim_mem *to,
		     const struct vramsim_mem *from)
{
	void *bounce = kvmalloc(BOUNCE_SIZE, GFP_KERNEL);
	u64 offset, run;
	int ret = 0;

	if (!bounce)
		return -ENOMEM;
	for (offset = 0; offset < to->size && !ret; offset += run) {
		run = min_t(u64, to->size - offset, BOUNCE_SIZE);
		ret = vramsim_mem_access(vdev, from, VRAMSIM_ACCESS_READ, offset, bounce, run);
		if (!ret)
			ret = vramsim_mem_access(vdev, to, VRAMSIM_ACCESS_WRITE, offset,
						 bounce, run);
	}
	kvfree(bounce);
	return ret;
}

static void *vramsim_vmap_pages(struct vramsim_device *vdev, const struct vramsim_mem *mem)
{
	u64 count = mem->size >> PAGE_SHIFT;
	struct page **pages = kvmalloc_array(count, sizeof(*pages), GFP_KERNEL);
	u64 n = 0;
	void *vaddr;
	u32 i;

	if (!pages)
		return NULL;
	for (i = 0; i < mem->count; i++) {
		struct page *page = pfn_to_page(PHYS_PFN(vramsim_mem_phys(vdev, mem, i)));
		u64 left = vramsim_segment_length(mem, i) >> PAGE_SHIFT;

		while (left--)
			pages[n++] = page++;
	}
	vaddr = vmap(pages, count, VM_MAP, PAGE_KERNEL);
	kvfree(pages);
	return vaddr;
}

static void *vramsim_vmap_pfns(struct vramsim_device *vdev, const struct vramsim_mem *mem)
{
	u64 count = mem->size >> PAGE_SHIFT;
	unsigned long *pfns;
	u64 n = 0;
	void *vaddr;
	u32 i;

	if (!IS_ENABLED(CONFIG_VMAP_PFN))
		return NULL;
	pfns = kvmalloc_array(count, sizeof(*pfns), GFP_KERNEL);
	if (!pfns)
		return NULL;
	for (i = 0; i < mem->count; i++) {
		unsigned long pfn = PHYS_PFN(vramsim_mem_phys(vdev, mem, i));
		u64 left = vramsim_segment_length(mem, i) >> PAGE_SHIFT;

		while (left--)
			pfns[n++] = pfn++;
	}
	vaddr = vmap_pfn(pfns, count, pgprot_writecombine(PAGE_KERNEL));
	kvfree(pfns);
	return vaddr;
}

/**
 * vramsim_mem_vmap - map a whole buffer into the kernel's address space
 * @vdev: instance
 * @mem: memory that stays where it is until vramsim_mem_vunmap()
 * @io: set to what vramsim_mem_vunmap() wants to know
 *
 * VRAM in a BAR is mapped write-combining. If it is in several pieces, that
 * takes a kernel with CONFIG_VMAP_PFN. Sleeps.
 *
 * Return: address or NULL.
 */
void *vramsim_mem_vmap(struct vramsim_device *vdev, const struct vramsim_mem *mem,
		       bool *io)
{
	u32 i;

	*io = false;
	if (!vramsim_mem_is_io(vdev, mem))
		return vramsim_vmap_pages(vdev, mem);

	for (i = 1; i < mem->count; i++)
		if (mem->segments[i].addr !=
		    mem->segments[i - 1].addr + vramsim_segment_length(mem, i - 1))
			return vramsim_vmap_pfns(vdev, mem);
	*io = true;
	return (void __force *)ioremap_wc(vramsim_mem_phys(vdev, mem, 0), mem->size);
}

/**
 * vramsim_mem_vunmap - undo vramsim_mem_vmap()
 * @vaddr: what it returned
 * @io: what it set
 */
void vramsim_mem_vunmap(void *vaddr, bool io)
{
	if (io)
		iounmap((void __iomem __force *)vaddr);
	else
		vunmap(vaddr);
}
