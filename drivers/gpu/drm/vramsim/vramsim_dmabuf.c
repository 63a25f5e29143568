// SPDX-License-Identifier: GPL-2.0
/*
 * Buffers as dma-bufs, in both directions.
 *
 * A buffer is exported through one of four tables of operations: with pin and
 * move_notify (dynamic) or without (static), with or without kernel mapping.
 * The dma-buf core looks at which operations there are, so this cannot be
 * decided inside them.
 *
 * A static buffer is pinned from attach to detach, as DRM's own helpers do it,
 * since nobody could be told that it moves.
 */

#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/pci-p2pdma.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include <drm/drm_drv.h>
#include <drm/drm_prime.h>

#include "vramsim_drv.h"

/* Since 5.16 the functions of the dma-buf core are in a namespace. */
MODULE_INFO(import_ns, "DMA_BUF");

/* Turns a pointer to a struct page, or NULL, into one that nobody can follow. */
#define POISON		0x5aa5000000000000UL

/**
 * struct vramsim_map - one mapping of a buffer for an importer
 * @sgt: what the importer gets
 * @io: made by dma_map_resource(), not by dma_map_sgtable()
 * @window: the mapped VRAM behind a sparse buffer
 * @window_size: its size, 0 if each segment is mapped by itself
 * @hidden: segments that the importer does not see
 * @shortened: bytes that the only segment is too short
 */
struct vramsim_map {
	struct sg_table sgt;
	bool io;
	dma_addr_t window;
	u64 window_size;
	unsigned int hidden;
	unsigned int shortened;
};

/**
 * struct vramsim_callback - a callback that runs
 * @vdev: whose
 * @since_ns: when it began
 */
struct vramsim_callback {
	struct vramsim_device *vdev;
	u64 since_ns;
};

static void vramsim_callback_end(struct vramsim_callback *callback)
{
	atomic64_add(ktime_get_ns() - callback->since_ns, &callback->vdev->callback_ns);
}

/* The time until the function returns that has this as a variable */
#define __counted __attribute__((__cleanup__(vramsim_callback_end)))

static struct vramsim_callback vramsim_callback(struct vramsim_bo *bo)
{
	return (struct vramsim_callback){ vramsim_bo_device(bo), ktime_get_ns() };
}

static void vramsim_poison(struct sg_table *sgt)
{
	struct scatterlist *sg;
	unsigned int i;

	if (!vramsim_poison_links)
		return;
	/* Only entries with data: links between the tables stay as they are. */
	for_each_sgtable_sg(sgt, sg, i)
		sg->page_link ^= POISON;
}

/* What a test may ask for: a table that ends before the buffer does. */
static void vramsim_map_shorten(struct vramsim_map *map)
{
	if (map->sgt.nents > 1) {
		map->hidden = 1;
		map->sgt.nents--;
	} else {
		map->shortened = PAGE_SIZE;
		sg_dma_len(map->sgt.sgl) -= PAGE_SIZE;
	}
}

static void vramsim_map_restore(struct vramsim_map *map)
{
	map->sgt.nents += map->hidden;
	sg_dma_len(map->sgt.sgl) += map->shortened;
}

static void vramsim_unmap_io(struct vramsim_map *map, struct device *dev, unsigned int count,
			     enum dma_data_direction dir)
{
	struct scatterlist *sg;
	unsigned int i;

	if (map->window_size) {
		dma_unmap_resource(dev, map->window, map->window_size, dir,
				   DMA_ATTR_SKIP_CPU_SYNC);
		return;
	}
	for_each_sg(map->sgt.sgl, sg, count, i)
		dma_unmap_resource(dev, sg_dma_address(sg), sg_dma_len(sg), dir,
				   DMA_ATTR_SKIP_CPU_SYNC);
}

/*
 * Segments of the BAR by their bus address. A sparse buffer maps its window
 * once, however often the segments go through it.
 */
static int vramsim_map_io(struct vramsim_map *map, struct vramsim_bo *bo, struct device *dev,
			  enum dma_data_direction dir)
{
	struct vramsim_device *vdev = vramsim_bo_device(bo);
	struct vramsim_mem *mem = bo->mem;
	struct scatterlist *sg;
	phys_addr_t base = 0;
	unsigned int i;
	int ret;

	map->io = true;
	ret = sg_alloc_table(&map->sgt, mem->count, GFP_KERNEL);
	if (ret)
		return ret;
	if (bo->layout.sparse) {
		base = vdev->bar + vramsim_mem_window(mem, &map->window_size);
		map->window = dma_map_resource(dev, base, map->window_size, dir,
					       DMA_ATTR_SKIP_CPU_SYNC);
		if (dma_mapping_error(dev, map->window))
			goto err_free;
	}
	for_each_sgtable_sg(&map->sgt, sg, i) {
		u64 length = vramsim_segment_length(mem, i);
		phys_addr_t phys = vramsim_mem_phys(vdev, mem, i);

		sg_set_page(sg, NULL, length, 0);
		sg_dma_len(sg) = length;
		if (map->window_size)
			sg_dma_address(sg) = map->window + (phys - base);
		else
			sg_dma_address(sg) = dma_map_resource(dev, phys, length, dir,
							      DMA_ATTR_SKIP_CPU_SYNC);
		if (dma_mapping_error(dev, sg_dma_address(sg))) {
			vramsim_unmap_io(map, dev, i, dir);
			goto err_free;
		}
	}
	return 0;

err_free:
	sg_free_table(&map->sgt);
	return -ENOMEM;
}

/* Segments with struct pages, none longer than @dev takes. */
static int vramsim_map_pages(struct vramsim_map *map, struct vramsim_bo *bo, struct device *dev,
			     enum dma_data_direction dir)
{
	struct vramsim_device *vdev = vramsim_bo_device(bo);
	unsigned int limit = max_t(unsigned int, PAGE_SIZE,
				   ALIGN_DOWN(dma_get_max_seg_size(dev), PAGE_SIZE));
	struct vramsim_mem *mem = bo->mem;
	struct scatterlist *sg;
	u64 count = 0;
	int ret;
	u32 i;

	for (i = 0; i < mem->count; i++)
		count += DIV_ROUND_UP(vramsim_segment_length(mem, i), limit);
	if (count > INT_MAX)
		return -ENOMEM;
	ret = sg_alloc_table(&map->sgt, count, GFP_KERNEL);
	if (ret)
		return ret;

	sg = map->sgt.sgl;
	for (i = 0; i < mem->count; i++) {
		phys_addr_t phys = vramsim_mem_phys(vdev, mem, i);
		u64 left = vramsim_segment_length(mem, i);

		while (left) {
			unsigned int length = min_t(u64, left, limit);

			sg_set_page(sg, pfn_to_page(PHYS_PFN(phys)), length, 0);
			sg = sg_next(sg);
			phys += length;
			left -= length;
		}
	}

	ret = dma_map_sgtable(dev, &map->sgt, dir, DMA_ATTR_SKIP_CPU_SYNC);
	if (ret)
		sg_free_table(&map->sgt);
	return ret;
}

/*
 * Where the buffer has to be for @attach: a device that takes no peer-to-peer
 * addresses cannot reach VRAM; policy "amdgpu" leaves a buffer there only if
 * all of them do.
 */
static int vramsim_map_place(struct vramsim_bo *bo, struct dma_buf_attachment *attach)
{
	bool system = !attach->peer2peer;

	if (bo->mem->placement != VRAMSIM_PLACEMENT_VRAM)
		return 0;
	if (vramsim_policy == VRAMSIM_POLICY_AMDGPU && !bo->pinned)
		system = bo->attached_p2p != bo->attached;
	if (!system)
		return 0;
	bo->reason = attach->peer2peer ? "not all importers are peer-to-peer" :
					 "importer is not peer-to-peer";
	return vramsim_bo_move(bo, VRAMSIM_PLACEMENT_SYSTEM, &bo->layout, 0);
}

static struct sg_table *vramsim_map(struct dma_buf_attachment *attach,
				    enum dma_data_direction dir)
{
	struct vramsim_bo *bo = to_vramsim_bo(attach->dmabuf->priv);
	struct vramsim_device *vdev = vramsim_bo_device(bo);
	struct vramsim_map *map;
	struct vramsim_callback __counted callback = vramsim_callback(bo);
	int ret;

	if (bo->revoked)
		return ERR_PTR(-ENODEV);
	ret = vramsim_bo_hit(bo, VRAMSIM_INJECT_MAP);
	if (ret)
		return ERR_PTR(ret);
	if (!attach->dev->dma_mask) {
		bo->reason = "importer has no DMA mask";
		return ERR_PTR(-EOPNOTSUPP);
	}
	ret = vramsim_map_place(bo, attach);
	if (ret)
		return ERR_PTR(ret);

	map = kzalloc(sizeof(*map), GFP_KERNEL);
	if (!map)
		return ERR_PTR(-ENOMEM);
	if (vramsim_mem_is_io(vdev, bo->mem))
		ret = vramsim_map_io(map, bo, attach->dev, dir);
	else
		ret = vramsim_map_pages(map, bo, attach->dev, dir);
	if (ret) {
		kfree(map);
		return ERR_PTR(ret);
	}
	if (vramsim_bo_hit(bo, VRAMSIM_INJECT_SHORT_MAP))
		vramsim_map_shorten(map);
	vramsim_poison(&map->sgt);

	bo->maps++;
	bo->mapped++;
	bo->mapped_dynamic += !!attach->importer_ops;
	atomic_inc(&vdev->mapped);
	return &map->sgt;
}

static void vramsim_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
			  enum dma_data_direction dir)
{
	struct vramsim_bo *bo = to_vramsim_bo(attach->dmabuf->priv);
	struct vramsim_map *map = container_of(sgt, struct vramsim_map, sgt);
	struct vramsim_callback __counted callback = vramsim_callback(bo);

	vramsim_poison(sgt);
	vramsim_map_restore(map);
	if (map->io)
		vramsim_unmap_io(map, attach->dev, sgt->nents, dir);
	else
		dma_unmap_sgtable(attach->dev, sgt, dir, DMA_ATTR_SKIP_CPU_SYNC);
	sg_free_table(sgt);
	kfree(map);

	bo->mapped--;
	bo->mapped_dynamic -= !!attach->importer_ops;
	atomic_dec(&vramsim_bo_device(bo)->mapped);
	vramsim_bo_reap(bo);
}

DMABUF_LOCKED_MAP(vramsim_map, vramsim_unmap)

static int vramsim_pin(struct dma_buf_attachment *attach)
{
	struct vramsim_bo *bo = to_vramsim_bo(attach->dmabuf->priv);
	struct vramsim_callback __counted callback = vramsim_callback(bo);

	return vramsim_bo_pin(bo, attach);
}

static void vramsim_unpin(struct dma_buf_attachment *attach)
{
	struct vramsim_bo *bo = to_vramsim_bo(attach->dmabuf->priv);
	struct vramsim_callback __counted callback = vramsim_callback(bo);

	vramsim_bo_unpin(bo);
}

static void vramsim_count_attachment(struct vramsim_bo *bo, struct dma_buf_attachment *attach,
				     int by)
{
	bo->attached += by;
	bo->attached_p2p += attach->peer2peer ? by : 0;
	atomic_add(by, &vramsim_bo_device(bo)->attached);
}

/* Whether the buses between the BAR and @dev let it through. */
static bool vramsim_reached_by(struct vramsim_device *vdev, struct device *dev)
{
	if (!vramsim_ask_p2pdma || !vdev->bar)
		return true;
	return pci_p2pdma_distance(to_pci_dev(vdev->drm.dev), dev, false) >= 0;
}

static int vramsim_attach(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	struct vramsim_bo *bo = to_vramsim_bo(dmabuf->priv);
	struct vramsim_callback __counted callback = vramsim_callback(bo);
	int ret;

	ret = vramsim_bo_hit(bo, VRAMSIM_INJECT_ATTACH);
	if (ret)
		return ret;
	if ((bo->flags & VRAMSIM_CREATE_NO_P2P) ||
	    !vramsim_reached_by(vramsim_bo_device(bo), attach->dev))
		attach->peer2peer = false;

	dma_resv_lock(dmabuf->resv, NULL);
	if (bo->revoked) {
		ret = -ENODEV;
		goto unlock;
	}
	vramsim_count_attachment(bo, attach, 1);
	if (bo->flags & VRAMSIM_CREATE_STATIC) {
		ret = vramsim_bo_pin(bo, attach);
		if (ret)
			vramsim_count_attachment(bo, attach, -1);
	}
	/*
	 * The core puts the attachment on its list before it returns it to the
	 * importer: a move in between calls move_notify of an importer that
	 * does not know its attachment yet. Here it happens for certain.
	 */
	if (!ret && vramsim_bo_hit(bo, VRAMSIM_INJECT_NOTIFY_IN_ATTACH)) {
		vramsim_bo_notify(bo);
		if (attach->importer_ops)
			attach->importer_ops->invalidate_mappings(attach);
	}
unlock:
	dma_resv_unlock(dmabuf->resv);
	return ret;
}

static void vramsim_detach(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	struct vramsim_bo *bo = to_vramsim_bo(dmabuf->priv);
	struct vramsim_callback __counted callback = vramsim_callback(bo);

	dma_resv_lock(dmabuf->resv, NULL);
	if (bo->flags & VRAMSIM_CREATE_STATIC)
		vramsim_bo_unpin(bo);
	vramsim_count_attachment(bo, attach, -1);
	dma_resv_unlock(dmabuf->resv);
}

static int vramsim_vmap(struct dma_buf *dmabuf, struct iosys_map *map)
{
	return vramsim_bo_vmap(to_vramsim_bo(dmabuf->priv), map);
}

static void vramsim_vunmap(struct dma_buf *dmabuf, struct iosys_map *map)
{
	vramsim_bo_vunmap(to_vramsim_bo(dmabuf->priv));
}

DMABUF_LOCKED_VMAP(vramsim_vmap, vramsim_vunmap)

static int vramsim_begin_cpu_access(struct dma_buf *dmabuf, enum dma_data_direction dir)
{
	struct vramsim_bo *bo = to_vramsim_bo(dmabuf->priv);
	int ret;

	ret = vramsim_bo_lock_idle(bo);
	if (ret)
		return ret;
	if (bo->revoked)
		ret = -ENODEV;
	else if (vramsim_policy == VRAMSIM_POLICY_AMDGPU && dir != DMA_TO_DEVICE &&
		 !bo->layout.sparse && bo->mem->placement == VRAMSIM_PLACEMENT_VRAM)
		/* Reading VRAM is slow: try, and go on where it is otherwise. */
		vramsim_bo_move(bo, VRAMSIM_PLACEMENT_SYSTEM, &bo->layout, 0);
	dma_resv_unlock(dmabuf->resv);
	/* Write-combined data of this CPU reaches VRAM before others look there. */
	wmb();
	return ret;
}

static int vramsim_end_cpu_access(struct dma_buf *dmabuf, enum dma_data_direction dir)
{
	/* As above, for what the CPU wrote meanwhile. */
	wmb();
	return 0;
}

static int vramsim_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	return drm_gem_prime_mmap(dmabuf->priv, vma);
}

static void vramsim_release(struct dma_buf *dmabuf)
{
	struct vramsim_bo *bo = to_vramsim_bo(dmabuf->priv);

	dma_resv_lock(dmabuf->resv, NULL);
	bo->dmabuf = NULL;
	dma_resv_unlock(dmabuf->resv);
	atomic_dec(&vramsim_bo_device(bo)->exported);
	drm_gem_dmabuf_release(dmabuf);
}

static const struct dma_buf_ops vramsim_ops_dynamic = {
	.attach = vramsim_attach,
	.detach = vramsim_detach,
	.pin = vramsim_pin,
	.unpin = vramsim_unpin,
	.map_dma_buf = vramsim_map,
	.unmap_dma_buf = vramsim_unmap,
	.begin_cpu_access = vramsim_begin_cpu_access,
	.end_cpu_access = vramsim_end_cpu_access,
	.mmap = vramsim_mmap,
	.vmap = DMABUF_LOCKED(vramsim_vmap),
	.vunmap = DMABUF_LOCKED(vramsim_vunmap),
	.release = vramsim_release,
};

static const struct dma_buf_ops vramsim_ops_dynamic_no_vmap = {
	.attach = vramsim_attach,
	.detach = vramsim_detach,
	.pin = vramsim_pin,
	.unpin = vramsim_unpin,
	.map_dma_buf = vramsim_map,
	.unmap_dma_buf = vramsim_unmap,
	.begin_cpu_access = vramsim_begin_cpu_access,
	.end_cpu_access = vramsim_end_cpu_access,
	.mmap = vramsim_mmap,
	.release = vramsim_release,
};

static const struct dma_buf_ops vramsim_ops_static = {
	.attach = vramsim_attach,
	.detach = vramsim_detach,
	.map_dma_buf = DMABUF_LOCKED(vramsim_map),
	.unmap_dma_buf = DMABUF_LOCKED(vramsim_unmap),
	.begin_cpu_access = vramsim_begin_cpu_access,
	.end_cpu_access = vramsim_end_cpu_access,
	.mmap = vramsim_mmap,
	.vmap = DMABUF_LOCKED(vramsim_vmap),
	.vunmap = DMABUF_LOCKED(vramsim_vunmap),
	.release = vramsim_release,
};

static const struct dma_buf_ops vramsim_ops_static_no_vmap = {
	.attach = vramsim_attach,
	.detach = vramsim_detach,
	.map_dma_buf = DMABUF_LOCKED(vramsim_map),
	.unmap_dma_buf = DMABUF_LOCKED(vramsim_unmap),
	.begin_cpu_access = vramsim_begin_cpu_access,
	.end_cpu_access = vramsim_end_cpu_access,
	.mmap = vramsim_mmap,
	.release = vramsim_release,
};

/**
 * vramsim_export - make a buffer's dma-buf
 * @obj: buffer of this driver
 * @flags: O_* for the file
 *
 * Return: the dma-buf, which holds the buffer, the device and the module; or a
 * negative errno.
 */
struct dma_buf *vramsim_export(struct drm_gem_object *obj, int flags)
{
	struct vramsim_bo *bo = to_vramsim_bo(obj);
	bool no_vmap = bo->layout.sparse || (bo->flags & VRAMSIM_CREATE_NO_VMAP);
	struct dma_buf_export_info info = {
		.exp_name = "vramsim",
		.owner = THIS_MODULE,
		.size = obj->size,
		.flags = flags,
		.priv = obj,
		.resv = obj->resv,
	};
	struct dma_buf *dmabuf;

	if (bo->flags & VRAMSIM_CREATE_STATIC)
		info.ops = no_vmap ? &vramsim_ops_static_no_vmap : &vramsim_ops_static;
	else
		info.ops = no_vmap ? &vramsim_ops_dynamic_no_vmap : &vramsim_ops_dynamic;
	dmabuf = drm_gem_dmabuf_export(obj->dev, &info);
	if (IS_ERR(dmabuf))
		return dmabuf;

	dma_resv_lock(obj->resv, NULL);
	bo->dmabuf = dmabuf;
	dma_resv_unlock(obj->resv);
	atomic_inc(&vramsim_bo_device(bo)->exported);
	return dmabuf;
}

/**
 * vramsim_import - a GEM object for somebody's dma-buf
 * @drm: DRM device
 * @dmabuf: dma-buf
 *
 * A buffer that comes home is the same object again.
 *
 * Return: the object with a reference, or a negative errno.
 */
struct drm_gem_object *vramsim_import(struct drm_device *drm, struct dma_buf *dmabuf)
{
	struct drm_gem_object *obj = dmabuf->priv;

	/* All four tables have this in common, and nobody else has it. */
	if (dmabuf->ops->release == vramsim_release && obj->dev == drm) {
		drm_gem_object_get(obj);
		return obj;
	}
	return drm_gem_prime_import(drm, dmabuf);
}

/**
 * vramsim_import_table - the GEM object of an imported, mapped dma-buf
 * @drm: DRM device
 * @attach: attachment, which the DRM core puts into the object
 * @sgt: its mapping
 *
 * Return: the object, or -ENOMEM.
 */
struct drm_gem_object *vramsim_import_table(struct drm_device *drm,
					    struct dma_buf_attachment *attach,
					    struct sg_table *sgt)
{
	struct vramsim_bo *bo = kzalloc(sizeof(*bo), GFP_KERNEL);

	if (!bo)
		return ERR_PTR(-ENOMEM);
	bo->base.funcs = &vramsim_bo_funcs;
	bo->base.resv = attach->dmabuf->resv;
	drm_gem_private_object_init(drm, &bo->base, attach->dmabuf->size);
	bo->import = sgt;
	return &bo->base;
}
