// SPDX-License-Identifier: GPL-2.0
/*
 * The user interface, see include/uapi/drm/vramsim_drm.h. Arguments are checked
 * here, completely and before anything is done.
 */

#include <linux/capability.h>
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/io.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <drm/drm_file.h>
#include <drm/drm_vma_manager.h>

#include "vramsim_drv.h"

#define CREATE_FLAGS	(VRAMSIM_CREATE_STATIC | VRAMSIM_CREATE_NO_VMAP | \
			 VRAMSIM_CREATE_SCATTER | VRAMSIM_CREATE_SPARSE | \
			 VRAMSIM_CREATE_NO_P2P | VRAMSIM_CREATE_LOCKED | \
			 VRAMSIM_CREATE_UNCLEARED)
#define MOVE_FLAGS	(VRAMSIM_MOVE_SHUFFLE | VRAMSIM_MOVE_NOTIFY_ONLY)
#define ACCESS_CHUNK	SZ_64K

static bool vramsim_placement_valid(u32 placement)
{
	return placement == VRAMSIM_PLACEMENT_VRAM || placement == VRAMSIM_PLACEMENT_SYSTEM;
}

static struct vramsim_bo *vramsim_lookup(struct drm_file *file, u32 handle)
{
	struct drm_gem_object *obj = drm_gem_object_lookup(file, handle);

	return obj ? to_vramsim_bo(obj) : ERR_PTR(-ENOENT);
}

/* A buffer that this device exports, so that it can decide about it. */
static struct vramsim_bo *vramsim_lookup_own(struct drm_file *file, u32 handle)
{
	struct vramsim_bo *bo = vramsim_lookup(file, handle);

	if (!IS_ERR(bo) && bo->base.import_attach) {
		drm_gem_object_put(&bo->base);
		return ERR_PTR(-EINVAL);
	}
	return bo;
}

int vramsim_ioctl_info(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct vramsim_device *vdev = to_vramsim(drm);
	struct drm_vramsim_info *args = data;

	memset(args, 0, sizeof(*args));
	args->vram_size = vdev->vram_size;
	mutex_lock(&vdev->lock);
	args->vram_free = vdev->vram_size - vdev->vram_used;
	mutex_unlock(&vdev->lock);
	args->bar_bus = vdev->bar;
	args->policy = vramsim_policy;
	args->objects = atomic_read(&vdev->objects);
	args->attached = atomic_read(&vdev->attached);
	args->mapped = atomic_read(&vdev->mapped);
	args->pinned = atomic_read(&vdev->pinned);
	args->vmapped = atomic_read(&vdev->vmapped);
	args->exported = atomic_read(&vdev->exported);
	args->violations = atomic_read(&vdev->violations);
	args->moves = atomic64_read(&vdev->moves);
	args->evictions = atomic64_read(&vdev->evictions);
	args->revokes = atomic64_read(&vdev->revokes);
	return 0;
}

int vramsim_ioctl_gem_create(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct vramsim_device *vdev = to_vramsim(drm);
	struct drm_vramsim_gem_create *args = data;
	struct vramsim_bo *bo;
	int ret;

	if (args->pad || args->flags & ~CREATE_FLAGS || args->pin > VRAMSIM_PIN_DOWNGRADE ||
	    !vramsim_placement_valid(args->placement) || !args->size ||
	    args->size > U64_MAX - PAGE_SIZE || !PAGE_ALIGNED(args->segment_size))
		return -EINVAL;
	if (args->flags & VRAMSIM_CREATE_SPARSE) {
		if (args->placement != VRAMSIM_PLACEMENT_VRAM)
			return -EINVAL;
		if (!vdev->bar)
			return -EOPNOTSUPP;
	}
	if (args->flags & VRAMSIM_CREATE_UNCLEARED && !capable(CAP_SYS_ADMIN))
		return -EACCES;
	if (args->flags & VRAMSIM_CREATE_SCATTER && !args->segment_size)
		args->segment_size = PAGE_SIZE;
	args->size = PAGE_ALIGN(args->size);

	bo = vramsim_bo_create(vdev, args);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	ret = drm_gem_handle_create(file, &bo->base, &args->handle);
	drm_gem_object_put(&bo->base);
	return ret;
}

int vramsim_ioctl_gem_mmap(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_vramsim_gem_mmap *args = data;
	struct vramsim_bo *bo;
	int ret = 0;

	if (args->pad)
		return -EINVAL;
	bo = vramsim_lookup_own(file, args->handle);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	if (bo->flags & VRAMSIM_CREATE_SPARSE)
		ret = -EOPNOTSUPP;
	else
		args->offset = drm_vma_node_offset_addr(&bo->base.vma_node);
	drm_gem_object_put(&bo->base);
	return ret;
}

int vramsim_ioctl_gem_info(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_vramsim_gem_info *args = data;
	u32 handle = args->handle;
	struct vramsim_bo *bo;

	bo = vramsim_lookup(file, handle);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	memset(args, 0, sizeof(*args));
	args->handle = handle;
	args->size = bo->base.size;

	mutex_lock(&drm->object_name_lock);
	if (bo->base.dma_buf)
		args->dmabuf_inode = file_inode(bo->base.dma_buf->file)->i_ino;
	mutex_unlock(&drm->object_name_lock);

	if (bo->base.import_attach) {
		args->placement = VRAMSIM_PLACEMENT_FOREIGN;
		goto put;
	}
	dma_resv_lock(bo->base.resv, NULL);
	args->placement = bo->mem ? bo->mem->placement : VRAMSIM_PLACEMENT_NONE;
	args->segments = bo->mem ? bo->mem->count : 0;
	args->attached = bo->attached;
	args->attached_p2p = bo->attached_p2p;
	args->mapped = bo->mapped;
	args->pinned = bo->pinned;
	args->vmapped = bo->vmap ? 1 : 0;
	args->revoked = bo->revoked;
	args->moves = bo->moves;
	args->notifies = bo->notifies;
	args->maps = bo->maps;
	dma_resv_unlock(bo->base.resv);
put:
	drm_gem_object_put(&bo->base);
	return 0;
}

static int vramsim_access_own(struct vramsim_bo *bo, u32 op, u64 offset, void *buf, u64 length)
{
	int ret;

	ret = vramsim_bo_lock_idle(bo);
	if (ret)
		return ret;
	if (bo->revoked)
		ret = -ENODEV;
	else
		ret = vramsim_mem_access(vramsim_bo_device(bo), bo->mem, op, offset, buf, length);
	dma_resv_unlock(bo->base.resv);
	return ret;
}

/* What another driver exports may be I/O memory. */
static int vramsim_access_import(struct vramsim_bo *bo, u32 op, u64 offset, void *buf,
				 u64 length)
{
	struct dma_buf *dmabuf = bo->base.import_attach->dmabuf;
	struct iosys_map map;
	int ret;

	ret = dma_buf_begin_cpu_access(dmabuf, DMA_BIDIRECTIONAL);
	if (ret)
		return ret;
	if (dma_buf_vmap_unlocked(dmabuf, &map)) {
		ret = -EOPNOTSUPP;
		goto end;
	}
	if (op == VRAMSIM_ACCESS_READ)
		iosys_map_memcpy_from(buf, &map, offset, length);
	else if (op == VRAMSIM_ACCESS_WRITE)
		iosys_map_memcpy_to(&map, offset, buf, length);
	else
		iosys_map_memset(&map, offset, *(u8 *)buf, length);
	/* Write-combining buffers drain before the caller goes on. */
	wmb();
	dma_buf_vunmap_unlocked(dmabuf, &map);
end:
	dma_buf_end_cpu_access(dmabuf, DMA_BIDIRECTIONAL);
	return ret;
}

int vramsim_ioctl_gem_access(struct drm_device *drm, void *data, struct drm_file *file)
{
	const struct drm_vramsim_gem_access *args = data;
	u64 done, run;
	struct vramsim_bo *bo;
	void *buf;
	int ret = 0;

	if (args->op > VRAMSIM_ACCESS_FILL)
		return -EINVAL;
	bo = vramsim_lookup(file, args->handle);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	if (bo->flags & VRAMSIM_CREATE_SPARSE) {
		ret = -EOPNOTSUPP;
		goto put;
	}
	if (args->offset > bo->base.size || args->length > bo->base.size - args->offset) {
		ret = -EINVAL;
		goto put;
	}
	/* User memory may be a mapping of this buffer: touch it without the lock. */
	buf = kvmalloc(ACCESS_CHUNK, GFP_KERNEL);
	if (!buf) {
		ret = -ENOMEM;
		goto put;
	}
	*(u8 *)buf = args->ptr;

	for (done = 0; done < args->length && !ret; done += run) {
		void __user *ptr = u64_to_user_ptr(args->ptr + done);

		run = args->length - done;
		run = min_t(u64, run, args->op == VRAMSIM_ACCESS_FILL ? SZ_16M : ACCESS_CHUNK);
		if (signal_pending(current)) {
			ret = -ERESTARTSYS;
			break;
		}
		if (args->op == VRAMSIM_ACCESS_WRITE && copy_from_user(buf, ptr, run)) {
			ret = -EFAULT;
			break;
		}
		if (bo->base.import_attach)
			ret = vramsim_access_import(bo, args->op, args->offset + done, buf, run);
		else
			ret = vramsim_access_own(bo, args->op, args->offset + done, buf, run);
		if (!ret && args->op == VRAMSIM_ACCESS_READ && copy_to_user(ptr, buf, run))
			ret = -EFAULT;
	}
	kvfree(buf);
put:
	drm_gem_object_put(&bo->base);
	return ret;
}

static int vramsim_move_locked(struct vramsim_bo *bo, const struct drm_vramsim_gem_move *args)
{
	struct vramsim_layout layout = bo->layout;

	if (bo->revoked)
		return -ENODEV;
	if (args->flags & VRAMSIM_MOVE_NOTIFY_ONLY) {
		vramsim_bo_notify(bo);
		return 0;
	}
	if (args->placement == bo->mem->placement && !args->segment_size &&
	    !(args->flags & VRAMSIM_MOVE_SHUFFLE))
		return 0;
	if (args->segment_size)
		layout.segment_size = args->segment_size;
	if (args->flags & VRAMSIM_MOVE_SHUFFLE)
		layout.seed += 1;
	return vramsim_bo_move(bo, args->placement, &layout, args->fence_ms);
}

int vramsim_ioctl_gem_move(struct drm_device *drm, void *data, struct drm_file *file)
{
	const struct drm_vramsim_gem_move *args = data;
	struct vramsim_bo *bo;
	int ret;

	if (args->flags & ~MOVE_FLAGS || args->fence_ms > VRAMSIM_MAX_FENCE_MS ||
	    !PAGE_ALIGNED(args->segment_size))
		return -EINVAL;
	if (args->flags & VRAMSIM_MOVE_NOTIFY_ONLY) {
		if (args->flags != VRAMSIM_MOVE_NOTIFY_ONLY || args->fence_ms ||
		    args->segment_size || args->placement)
			return -EINVAL;
	} else if (!vramsim_placement_valid(args->placement)) {
		return -EINVAL;
	}
	bo = vramsim_lookup_own(file, args->handle);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	if (args->flags & VRAMSIM_MOVE_NOTIFY_ONLY)
		ret = dma_resv_lock_interruptible(bo->base.resv, NULL);
	else
		ret = vramsim_bo_lock_idle(bo);
	if (!ret) {
		ret = vramsim_move_locked(bo, args);
		dma_resv_unlock(bo->base.resv);
	}
	drm_gem_object_put(&bo->base);
	return ret;
}

int vramsim_ioctl_gem_revoke(struct drm_device *drm, void *data, struct drm_file *file)
{
	const struct drm_vramsim_gem_revoke *args = data;
	struct vramsim_bo *bo;
	int ret;

	if (args->pad)
		return -EINVAL;
	bo = vramsim_lookup_own(file, args->handle);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	ret = vramsim_bo_lock_idle(bo);
	if (!ret) {
		vramsim_bo_revoke(bo);
		dma_resv_unlock(bo->base.resv);
	}
	drm_gem_object_put(&bo->base);
	return ret;
}

int vramsim_ioctl_gem_fence(struct drm_device *drm, void *data, struct drm_file *file)
{
	const struct drm_vramsim_gem_fence *args = data;
	struct vramsim_fence *fence;
	struct vramsim_bo *bo;
	int ret;

	if (!args->fence_ms || args->fence_ms > VRAMSIM_MAX_FENCE_MS)
		return -EINVAL;
	bo = vramsim_lookup_own(file, args->handle);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	ret = vramsim_bo_lock_idle(bo);
	if (ret)
		goto put;
	fence = bo->revoked ? ERR_PTR(-ENODEV) : vramsim_fence_create(bo, args->fence_ms);
	if (IS_ERR(fence))
		ret = PTR_ERR(fence);
	else
		vramsim_fence_start(fence, NULL);
	dma_resv_unlock(bo->base.resv);
put:
	drm_gem_object_put(&bo->base);
	return ret;
}

static void vramsim_inject_quota(struct vramsim_device *vdev,
				 const struct drm_vramsim_inject *args)
{
	mutex_lock(&vdev->lock);
	vdev->pin_quota = args->count ? (u64)args->nth << PAGE_SHIFT : U64_MAX;
	mutex_unlock(&vdev->lock);
}

int vramsim_ioctl_inject(struct drm_device *drm, void *data, struct drm_file *file)
{
	const struct drm_vramsim_inject *args = data;
	struct vramsim_device *vdev = to_vramsim(drm);
	bool fails = args->step <= VRAMSIM_INJECT_VMAP;
	bool may_be_positive = args->step <= VRAMSIM_INJECT_PIN;
	struct vramsim_bo *bo = NULL;
	struct vramsim_fault fault = {};

	if (args->pad || args->step >= VRAMSIM_INJECT_STEPS || args->error > MAX_ERRNO)
		return -EINVAL;
	if (args->error < (may_be_positive ? -MAX_ERRNO : 0))
		return -EINVAL;
	if (args->count && fails && (!args->nth || !args->error))
		return -EINVAL;
	if (args->count && !fails && args->error)
		return -EINVAL;
	if (args->step == VRAMSIM_INJECT_PIN_QUOTA && args->handle)
		return -EINVAL;
	if (args->count && !args->nth && args->step != VRAMSIM_INJECT_PIN_QUOTA)
		return -EINVAL;
	if (!args->handle && !capable(CAP_SYS_ADMIN))
		return -EACCES;
	if (args->step == VRAMSIM_INJECT_PIN_QUOTA) {
		vramsim_inject_quota(vdev, args);
		return 0;
	}

	if (args->handle) {
		bo = vramsim_lookup_own(file, args->handle);
		if (IS_ERR(bo))
			return PTR_ERR(bo);
	}
	if (args->count) {
		fault.skip = args->nth - 1;
		fault.count = args->count;
		fault.error = -args->error;
	}
	spin_lock(&vdev->fault_lock);
	if (bo)
		bo->faults[args->step] = fault;
	else
		vdev->faults[args->step] = fault;
	spin_unlock(&vdev->fault_lock);
	if (bo)
		drm_gem_object_put(&bo->base);
	return 0;
}

/* A copy of the first @room segments, made under the lock. */
static int vramsim_segments_snapshot(struct vramsim_bo *bo, struct drm_vramsim_segment *list,
				     u32 room, u32 *count)
{
	struct vramsim_mem *mem;
	u32 i;
	int ret;

	ret = dma_resv_lock_interruptible(bo->base.resv, NULL);
	if (ret)
		return ret;
	mem = bo->mem;
	*count = mem ? mem->count : 0;
	for (i = 0; i < min(*count, room); i++) {
		list[i].address = mem->segments[i].addr;
		list[i].length = vramsim_segment_length(mem, i);
	}
	dma_resv_unlock(bo->base.resv);
	return 0;
}

int vramsim_ioctl_segments(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_vramsim_segments *args = data;
	struct drm_vramsim_segment *list = NULL;
	struct vramsim_bo *bo;
	u32 room, count;
	int ret = -ENOMEM;

	bo = vramsim_lookup_own(file, args->handle);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	room = min_t(u64, args->count, bo->base.size >> PAGE_SHIFT);
	if (room) {
		list = kvcalloc(room, sizeof(*list), GFP_KERNEL);
		if (!list)
			goto put;
	}
	ret = vramsim_segments_snapshot(bo, list, room, &count);
	if (!ret && copy_to_user(u64_to_user_ptr(args->ptr), list,
				 min(room, count) * sizeof(*list)))
		ret = -EFAULT;
	if (!ret)
		args->count = count;
	kvfree(list);
put:
	drm_gem_object_put(&bo->base);
	return ret;
}
