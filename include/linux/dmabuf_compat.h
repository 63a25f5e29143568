/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * One source for all kernel lines: code that deals with dma-bufs is written for
 * the newest kernel, and older ones get here what they lack.
 *
 * HAVE_* say what compiles against the kernel's headers, not which version they
 * are of, as distributions backport: scripts/probes has a C file for each. The
 * newest line has all of them and the oldest none, so that there this header does
 * what it has to with nothing defined.
 */
#ifndef _LINUX_DMABUF_COMPAT_H_
#define _LINUX_DMABUF_COMPAT_H_

#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/err.h>
#include <linux/io.h>
#include <linux/mm.h>

/* Where an exporter's memory is for the CPU. */
#ifdef HAVE_IOSYS_MAP
#include <linux/iosys-map.h>
#else
struct iosys_map {
	union {
		void __iomem *vaddr_iomem;
		void *vaddr;
	};
	bool is_iomem;
};

static inline void iosys_map_set_vaddr(struct iosys_map *map, void *vaddr)
{
	map->vaddr = vaddr;
	map->is_iomem = false;
}

static inline void iosys_map_set_vaddr_iomem(struct iosys_map *map, void __iomem *vaddr)
{
	map->vaddr_iomem = vaddr;
	map->is_iomem = true;
}

static inline void iosys_map_memcpy_to(struct iosys_map *dst, size_t dst_offset,
				       const void *src, size_t len)
{
	if (dst->is_iomem)
		memcpy_toio(dst->vaddr_iomem + dst_offset, src, len);
	else
		memcpy(dst->vaddr + dst_offset, src, len);
}

static inline void iosys_map_memcpy_from(void *dst, const struct iosys_map *src,
					 size_t src_offset, size_t len)
{
	if (src->is_iomem)
		memcpy_fromio(dst, src->vaddr_iomem + src_offset, len);
	else
		memcpy(dst, src->vaddr + src_offset, len);
}

static inline void iosys_map_memset(struct iosys_map *dst, size_t offset, int value, size_t len)
{
	if (dst->is_iomem)
		memset_io(dst->vaddr_iomem + offset, value, len);
	else
		memset(dst->vaddr + offset, value, len);
}
#endif

/*
 * Importer's side: map for the CPU, without the reservation lock. Where an
 * exporter cannot say that its memory is I/O memory, all of it may be.
 */
#ifndef HAVE_DMA_BUF_LOCKED_OPS
static inline int dma_buf_vmap_unlocked(struct dma_buf *dmabuf, struct iosys_map *map)
{
#ifdef HAVE_IOSYS_MAP
	return dma_buf_vmap(dmabuf, map);
#else
	void *vaddr = dma_buf_vmap(dmabuf);

	iosys_map_set_vaddr_iomem(map, (void __iomem __force *)vaddr);
	return vaddr ? 0 : -ENOMEM;
#endif
}

static inline void dma_buf_vunmap_unlocked(struct dma_buf *dmabuf, struct iosys_map *map)
{
#ifdef HAVE_IOSYS_MAP
	dma_buf_vunmap(dmabuf, map);
#else
	dma_buf_vunmap(dmabuf, (void __force *)map->vaddr_iomem);
#endif
}
#endif

/*
 * Exporter's side. Operations that the newest kernel calls with the reservation
 * lock held are written that way, followed by DMABUF_LOCKED_MAP(map, unmap) or
 * DMABUF_LOCKED_VMAP(vmap, vunmap), and DMABUF_LOCKED(op) stands in the table of
 * operations. Older kernels call map and unmap of a static exporter, and vmap and
 * vunmap of any, without that lock: they get functions that take it.
 */
#ifdef HAVE_DMA_BUF_LOCKED_OPS
#define DMABUF_LOCKED(op)		op
#define DMABUF_LOCKED_MAP(map, unmap)
#define DMABUF_LOCKED_VMAP(vmap, vunmap)
#else
#define DMABUF_LOCKED(op)		op##_unlocked
#define DMABUF_LOCKED_MAP(map, unmap)						\
static struct sg_table *map##_unlocked(struct dma_buf_attachment *attach,	\
				       enum dma_data_direction dir)		\
{										\
	struct sg_table *sgt;							\
										\
	dma_resv_lock(attach->dmabuf->resv, NULL);				\
	sgt = map(attach, dir);							\
	dma_resv_unlock(attach->dmabuf->resv);					\
	return sgt;								\
}										\
										\
static void unmap##_unlocked(struct dma_buf_attachment *attach,			\
			     struct sg_table *sgt, enum dma_data_direction dir)	\
{										\
	dma_resv_lock(attach->dmabuf->resv, NULL);				\
	unmap(attach, sgt, dir);						\
	dma_resv_unlock(attach->dmabuf->resv);					\
}

#ifdef HAVE_IOSYS_MAP
#define DMABUF_LOCKED_VMAP(vmap, vunmap)					\
static int vmap##_unlocked(struct dma_buf *dmabuf, struct iosys_map *map)	\
{										\
	int ret;								\
										\
	dma_resv_lock(dmabuf->resv, NULL);					\
	ret = vmap(dmabuf, map);						\
	dma_resv_unlock(dmabuf->resv);						\
	return ret;								\
}										\
										\
static void vunmap##_unlocked(struct dma_buf *dmabuf, struct iosys_map *map)	\
{										\
	dma_resv_lock(dmabuf->resv, NULL);					\
	vunmap(dmabuf, map);							\
	dma_resv_unlock(dmabuf->resv);						\
}
#else
#define DMABUF_LOCKED_VMAP(vmap, vunmap)					\
static void *vmap##_unlocked(struct dma_buf *dmabuf)				\
{										\
	struct iosys_map map;							\
	int ret;								\
										\
	dma_resv_lock(dmabuf->resv, NULL);					\
	ret = vmap(dmabuf, &map);						\
	dma_resv_unlock(dmabuf->resv);						\
	if (ret)								\
		return NULL;							\
	return map.is_iomem ? (void __force *)map.vaddr_iomem : map.vaddr;	\
}										\
										\
static void vunmap##_unlocked(struct dma_buf *dmabuf, void *vaddr)		\
{										\
	struct iosys_map map;							\
										\
	iosys_map_set_vaddr(&map, vaddr);					\
	dma_resv_lock(dmabuf->resv, NULL);					\
	vunmap(dmabuf, &map);							\
	dma_resv_unlock(dmabuf->resv);						\
}
#endif
#endif

/* That a buffer moves had another name. */
#ifndef HAVE_DMA_BUF_INVALIDATE_MAPPINGS
#define dma_buf_invalidate_mappings	dma_buf_move_notify
#define invalidate_mappings		move_notify
#endif

/* Fences had a writer's slot, and slots for readers, instead of a usage. */
#ifndef HAVE_DMA_RESV_USAGE
enum dma_resv_usage {
	DMA_RESV_USAGE_KERNEL,
	DMA_RESV_USAGE_WRITE,
	DMA_RESV_USAGE_READ,
	DMA_RESV_USAGE_BOOKKEEP,
};

static inline bool dma_resv_test_signaled(struct dma_resv *resv, enum dma_resv_usage usage)
{
	return dma_resv_test_signaled_rcu(resv, usage >= DMA_RESV_USAGE_READ);
}

static inline long dma_resv_wait_timeout(struct dma_resv *resv, enum dma_resv_usage usage,
					 bool intr, unsigned long timeout)
{
	return dma_resv_wait_timeout_rcu(resv, usage >= DMA_RESV_USAGE_READ, intr, timeout);
}

/* Only for the writer's slot, which is always there. */
static inline int dma_resv_reserve_fences(struct dma_resv *resv, unsigned int count)
{
	return 0;
}

static inline void dma_resv_add_fence(struct dma_resv *resv, struct dma_fence *fence,
				      enum dma_resv_usage usage)
{
	dma_resv_add_excl_fence(resv, fence);
}
#endif

#ifndef HAVE_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags |= flags;
}
#endif

/* Older kernels show user space a date. */
#ifdef HAVE_DRM_DRIVER_WITHOUT_DATE
#define DRM_DRIVER_DATE(d)
#else
#define DRM_DRIVER_DATE(d)		.date = d,
#endif

#endif /* _LINUX_DMABUF_COMPAT_H_ */
