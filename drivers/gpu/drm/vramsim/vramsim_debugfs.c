// SPDX-License-Identifier: GPL-2.0
/*
 * debugfs: counters of the instance, and a table of its buffers with the
 * importers of each.
 */

#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/seq_file.h>

#include <drm/drm_debugfs.h>
#include <drm/drm_file.h>

#include "vramsim_drv.h"

static struct vramsim_device *vramsim_of(struct seq_file *m)
{
	struct drm_info_node *node = m->private;

	return to_vramsim(node->minor->dev);
}

static int vramsim_counters_show(struct seq_file *m, void *unused)
{
	struct vramsim_device *vdev = vramsim_of(m);
	u64 vram, system, pinned;

	mutex_lock(&vdev->lock);
	vram = vdev->vram_used;
	system = vdev->system_used;
	pinned = vdev->pinned_bytes;
	mutex_unlock(&vdev->lock);

	seq_printf(m, "vram_size %llu\n", vdev->vram_size);
	seq_printf(m, "vram_resident %llu\n", vram);
	seq_printf(m, "system_resident %llu\n", system);
	seq_printf(m, "pinned_bytes %llu\n", pinned);
	seq_printf(m, "objects %d\n", atomic_read(&vdev->objects));
	seq_printf(m, "exported %d\n", atomic_read(&vdev->exported));
	seq_printf(m, "attached %d\n", atomic_read(&vdev->attached));
	seq_printf(m, "mapped %d\n", atomic_read(&vdev->mapped));
	seq_printf(m, "pinned %d\n", atomic_read(&vdev->pinned));
	seq_printf(m, "vmapped %d\n", atomic_read(&vdev->vmapped));
	seq_printf(m, "moves %lld\n", (long long)atomic64_read(&vdev->moves));
	seq_printf(m, "evictions %lld\n", (long long)atomic64_read(&vdev->evictions));
	seq_printf(m, "revokes %lld\n", (long long)atomic64_read(&vdev->revokes));
	seq_printf(m, "callback_ns %lld\n", (long long)atomic64_read(&vdev->callback_ns));
	seq_printf(m, "violations %d\n", atomic_read(&vdev->violations));
	return 0;
}

static void vramsim_buffer_show(struct seq_file *m, struct vramsim_bo *bo)
{
	static const char * const names[] = {
		[VRAMSIM_PLACEMENT_VRAM] = "vram",
		[VRAMSIM_PLACEMENT_SYSTEM] = "system",
	};
	struct dma_buf_attachment *attach;

	seq_printf(m, "%zu %s%s segments %u attached %u mapped %u pinned %u vmapped %u moves %llu notifies %llu maps %llu flags %#x",
		   bo->base.size, bo->mem ? names[bo->mem->placement] : "none",
		   bo->revoked ? " revoked" : "", bo->mem ? bo->mem->count : 0,
		   bo->attached, bo->mapped, bo->pinned, bo->vmap ? 1 : 0,
		   bo->moves, bo->notifies, bo->maps, bo->flags);
	if (bo->reason)
		seq_printf(m, " (%s)", bo->reason);
	seq_putc(m, '\n');

	if (!bo->dmabuf)
		return;
	list_for_each_entry(attach, &bo->dmabuf->attachments, node)
		seq_printf(m, "\timporter %s%s%s\n", dev_name(attach->dev),
			   attach->importer_ops ? " dynamic" : " static",
			   attach->peer2peer ? " peer-to-peer" : "");
}

static int vramsim_buffers_show(struct seq_file *m, void *unused)
{
	struct vramsim_device *vdev = vramsim_of(m);
	struct vramsim_bo *bo = NULL;
	int ret;

	while ((bo = vramsim_bo_next(vdev, bo))) {
		ret = dma_resv_lock_interruptible(bo->base.resv, NULL);
		if (ret) {
			drm_gem_object_put(&bo->base);
			return ret;
		}
		vramsim_buffer_show(m, bo);
		dma_resv_unlock(bo->base.resv);
	}
	return 0;
}

static const struct drm_info_list vramsim_debugfs_list[] = {
	{ "counters", vramsim_counters_show },
	{ "buffers", vramsim_buffers_show },
};

/**
 * vramsim_debugfs_init - make the debugfs files of a DRM minor
 * @minor: primary or render node
 */
void vramsim_debugfs_init(struct drm_minor *minor)
{
	drm_debugfs_create_files(vramsim_debugfs_list, ARRAY_SIZE(vramsim_debugfs_list),
				 minor->debugfs_root, minor);
}
