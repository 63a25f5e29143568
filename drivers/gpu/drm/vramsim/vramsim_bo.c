// SPDX-License-Identifier: GPL-2.0
/*
 * Buffers: how they are made, moved, evicted, pinned, revoked, and mapped by
 * the CPU. All that asks where a buffer is or who uses it runs under the
 * buffer's reservation lock.
 */

#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include <drm/drm_drv.h>
#include <drm/drm_prime.h>
#include <drm/drm_print.h>
#include <drm/drm_vma_manager.h>

#include "vramsim_drv.h"

#define REVOKED_BYTE	0x5a	/* what revoked memory is overwritten with */
#define FAULT_AROUND	64	/* pages that a CPU fault maps at most */

static bool vramsim_fault_hit(struct vramsim_fault *fault, int *error)
{
	if (!fault->count)
		return false;
	if (fault->skip) {
		fault->skip--;
		return false;
	}
	if (fault->count != U32_MAX)
		fault->count--;
	*error = fault->error ?: 1;
	return true;
}

/**
 * vramsim_bo_hit - a step that a test may have asked to fail
 * @bo: buffer
 * @step: VRAMSIM_INJECT_*
 *
 * Counts the call for the buffer, and for the device if the buffer's own
 * injection does not hit.
 *
 * Return: 0 to go on; what to fail with, which is a negative errno unless the
 * test wants an exporter's mistake; or 1 if the step is to misbehave in another
 * way.
 */
int vramsim_bo_hit(struct vramsim_bo *bo, u32 step)
{
	struct vramsim_device *vdev = vramsim_bo_device(bo);
	int ret = 0;

	spin_lock(&vdev->fault_lock);
	if (!vramsim_fault_hit(&bo->faults[step], &ret))
		vramsim_fault_hit(&vdev->faults[step], &ret);
	spin_unlock(&vdev->fault_lock);
	return ret;
}

static void vramsim_bo_lru_update(struct vramsim_bo *bo)
{
	struct vramsim_device *vdev = vramsim_bo_device(bo);
	bool evictable = bo->mem && bo->mem->placement == VRAMSIM_PLACEMENT_VRAM &&
		!(bo->flags & (VRAMSIM_CREATE_LOCKED | VRAMSIM_CREATE_SPARSE));

	mutex_lock(&vdev->lock);
	vdev->lru_count -= !list_empty(&bo->lru);
	list_del_init(&bo->lru);
	if (evictable) {
		list_add_tail(&bo->lru, &vdev->lru);
		vdev->lru_count++;
	}
	mutex_unlock(&vdev->lock);
}

/* Try to move @bo out of VRAM, if nobody is busy with it. */
static bool vramsim_bo_try_evict(struct vramsim_bo *bo)
{
	bool moved = false;

	if (!dma_resv_trylock(bo->base.resv))
		return false;
	if (bo->mem && bo->mem->placement == VRAMSIM_PLACEMENT_VRAM &&
	    dma_resv_test_signaled(bo->base.resv, DMA_RESV_USAGE_BOOKKEEP))
		moved = !vramsim_bo_move(bo, VRAMSIM_PLACEMENT_SYSTEM, &bo->layout, 0);
	dma_resv_unlock(bo->base.resv);
	if (moved)
		atomic64_inc(&vramsim_bo_device(bo)->evictions);
	return moved;
}

/* Move one buffer out of VRAM, the longest resident one that can go. */
static bool vramsim_evict(struct vramsim_device *vdev)
{
	struct vramsim_bo *bo;
	bool evicted = false;
	unsigned int tries;

	mutex_lock(&vdev->lock);
	for (tries = vdev->lru_count; tries && !evicted && !list_empty(&vdev->lru); tries--) {
		bo = list_first_entry(&vdev->lru, struct vramsim_bo, lru);
		list_move_tail(&bo->lru, &vdev->lru);
		if (!kref_get_unless_zero(&bo->base.refcount))
			continue;
		mutex_unlock(&vdev->lock);
		evicted = vramsim_bo_try_evict(bo);
		drm_gem_object_put(&bo->base);
		mutex_lock(&vdev->lock);
	}
	mutex_unlock(&vdev->lock);
	return evicted;
}

/* Memory for a buffer; makes room in VRAM at the cost of other buffers. */
static struct vramsim_mem *vramsim_bo_place(struct vramsim_device *vdev, u32 placement,
					    u64 size, const struct vramsim_layout *layout)
{
	u64 need = layout->sparse ? layout->segment_size : size;
	struct vramsim_mem *mem;

	do {
		mem = vramsim_mem_create(vdev, placement, size, layout);
	} while (mem == ERR_PTR(-ENOSPC) && need <= vdev->vram_size && vramsim_evict(vdev));
	return mem;
}

static int vramsim_bo_clear(struct vramsim_bo *bo)
{
	struct vramsim_device *vdev = vramsim_bo_device(bo);
	u64 offset, run;
	u8 zero = 0;
	int ret;

	for (offset = 0; offset < bo->base.size; offset += run) {
		run = min_t(u64, bo->base.size - offset, SZ_16M);
		ret = vramsim_mem_access(vdev, bo->mem, VRAMSIM_ACCESS_FILL, offset, &zero, run);
		if (ret)
			return ret;
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	return 0;
}

/**
 * vramsim_bo_create - make a buffer
 * @vdev: instance
 * @args: checked arguments; the size is a multiple of the page size
 *
 * Sleeps; may move other buffers.
 *
 * Return: the buffer with one reference, or a negative errno.
 */
struct vramsim_bo *vramsim_bo_create(struct vramsim_device *vdev,
				     const struct drm_vramsim_gem_create *args)
{
	struct vramsim_bo *bo = kzalloc(sizeof(*bo), GFP_KERNEL);
	int ret = 0;

	if (!bo)
		return ERR_PTR(-ENOMEM);
	bo->base.funcs = &vramsim_bo_funcs;
	drm_gem_private_object_init(&vdev->drm, &bo->base, args->size);
	INIT_LIST_HEAD(&bo->lru);
	bo->flags = args->flags;
	bo->pin_policy = args->pin;
	bo->layout.segment_size = args->segment_size;
	bo->layout.scatter = args->flags & VRAMSIM_CREATE_SCATTER;
	bo->layout.sparse = args->flags & VRAMSIM_CREATE_SPARSE;
	bo->layout.seed = args->seed;

	mutex_lock(&vdev->lock);
	list_add_tail(&bo->link, &vdev->buffers);
	mutex_unlock(&vdev->lock);
	atomic_inc(&vdev->objects);

	/* The buffer is in the list, but only the holder of this lock uses it. */
	dma_resv_lock(bo->base.resv, NULL);
	bo->mem = vramsim_bo_place(vdev, args->placement, args->size, &bo->layout);
	if (IS_ERR(bo->mem)) {
		ret = PTR_ERR(bo->mem);
		bo->mem = NULL;
	}
	if (!ret && !(bo->flags & (VRAMSIM_CREATE_SPARSE | VRAMSIM_CREATE_UNCLEARED)))
		ret = vramsim_bo_clear(bo);
	if (!ret)
		vramsim_bo_lru_update(bo);
	dma_resv_unlock(bo->base.resv);

	/* A sparse buffer can be larger than what mmap offsets there are. */
	if (!ret && !bo->layout.sparse)
		ret = drm_gem_create_mmap_offset(&bo->base);
	if (ret) {
		drm_gem_object_put(&bo->base);
		return ERR_PTR(ret);
	}
	return bo;
}

static void vramsim_bo_free(struct drm_gem_object *obj)
{
	struct vramsim_device *vdev = to_vramsim(obj->dev);
	struct vramsim_bo *bo = to_vramsim_bo(obj);

	if (obj->import_attach) {
		drm_prime_gem_destroy(obj, bo->import);
	} else {
		mutex_lock(&vdev->lock);
		list_del(&bo->link);
		vdev->lru_count -= !list_empty(&bo->lru);
		list_del_init(&bo->lru);
		mutex_unlock(&vdev->lock);
		vramsim_mem_free(vdev, bo->mem);
		atomic_dec(&vdev->objects);
	}
	drm_gem_object_release(obj);
	kfree(bo);
}

/**
 * vramsim_bo_next - walk over the buffers of an instance
 * @vdev: instance
 * @prev: the one before, whose reference is given up; NULL to begin
 *
 * Buffers that are made meanwhile may be left out.
 *
 * Return: the next buffer with a reference, or NULL.
 */
struct vramsim_bo *vramsim_bo_next(struct vramsim_device *vdev, struct vramsim_bo *prev)
{
	struct list_head *at = prev ? &prev->link : &vdev->buffers;
	struct vramsim_bo *next = NULL;

	mutex_lock(&vdev->lock);
	for (at = at->next; at != &vdev->buffers; at = at->next) {
		struct vramsim_bo *bo = list_entry(at, struct vramsim_bo, link);

		if (kref_get_unless_zero(&bo->base.refcount)) {
			next = bo;
			break;
		}
	}
	mutex_unlock(&vdev->lock);
	if (prev)
		drm_gem_object_put(&prev->base);
	return next;
}

/**
 * vramsim_bo_lock_idle - lock a buffer when no fence is pending on it
 * @bo: buffer
 *
 * Waits without the lock, interruptibly.
 *
 * Return: 0 with the reservation lock held, or -EINTR or -ERESTARTSYS.
 */
int vramsim_bo_lock_idle(struct vramsim_bo *bo)
{
	struct dma_resv *resv = bo->base.resv;
	long ret;

	for (;;) {
		ret = dma_resv_lock_interruptible(resv, NULL);
		if (ret)
			return ret;
		if (dma_resv_test_signaled(resv, DMA_RESV_USAGE_BOOKKEEP))
			return 0;
		dma_resv_unlock(resv);
		ret = dma_resv_wait_timeout(resv, DMA_RESV_USAGE_BOOKKEEP, true,
					    MAX_SCHEDULE_TIMEOUT);
		if (ret < 0)
			return ret;
	}
}

/**
 * vramsim_bo_notify - tell all importers that the buffer moves
 * @bo: buffer, locked
 *
 * Who has not pinned the buffer must have unmapped it when this returns: that
 * is checked, since the memory would be given to somebody else.
 *
 * Return: 0, or -EBUSY if an importer kept its mapping.
 */
int vramsim_bo_notify(struct vramsim_bo *bo)
{
	struct vramsim_device *vdev = vramsim_bo_device(bo);

	if (!bo->dmabuf)
		return 0;
	bo->notifies++;
	dma_buf_invalidate_mappings(bo->dmabuf);
	if (bo->pinned || !bo->mapped_dynamic)
		return 0;
	atomic_inc(&vdev->violations);
	drm_err_ratelimited(&vdev->drm, "%u dynamic attachments are mapped after move_notify\n",
			    bo->mapped_dynamic);
	return -EBUSY;
}

/**
 * vramsim_bo_move - give a buffer other memory
 * @bo: buffer, locked
 * @placement: where to
 * @layout: how to cut the new memory
 * @fence_ms: how long the copy takes, 0: done on return
 *
 * Waits for pending fences with the lock held: callers that can do so wait
 * before. Calls move_notify of all importers.
 *
 * Return: 0; -ENODEV if revoked, -EBUSY if pinned, mapped by the kernel or not
 * let go by an importer, -EOPNOTSUPP for a sparse buffer to system memory,
 * -ENOSPC, -ENOMEM, -ERESTARTSYS. The buffer stays where it is then.
 */
int vramsim_bo_move(struct vramsim_bo *bo, u32 placement,
		    const struct vramsim_layout *layout, u32 fence_ms)
{
	struct vramsim_device *vdev = vramsim_bo_device(bo);
	struct vramsim_fence *fence = NULL;
	struct vramsim_mem *old = bo->mem;
	struct vramsim_mem *new;
	long wait;
	int ret;

	if (bo->revoked)
		return -ENODEV;
	if (bo->pinned || bo->vmap)
		return -EBUSY;
	if (layout->sparse && placement != VRAMSIM_PLACEMENT_VRAM)
		return -EOPNOTSUPP;
	wait = dma_resv_wait_timeout(bo->base.resv, DMA_RESV_USAGE_BOOKKEEP, true,
				     MAX_SCHEDULE_TIMEOUT);
	if (wait < 0)
		return wait;

	new = vramsim_bo_place(vdev, placement, bo->base.size, layout);
	if (IS_ERR(new))
		return PTR_ERR(new);
	if (fence_ms) {
		fence = vramsim_fence_create(bo, fence_ms);
		if (IS_ERR(fence)) {
			ret = PTR_ERR(fence);
			goto err_free;
		}
	}
	ret = vramsim_bo_notify(bo);
	if (ret)
		goto err_cancel;
	drm_vma_node_unmap(&bo->base.vma_node, bo->base.dev->anon_inode->i_mapping);
	if (!fence && !layout->sparse) {
		ret = vramsim_mem_copy(vdev, new, old);
		if (ret)
			goto err_free;
	}

	bo->mem = new;
	bo->layout = *layout;
	bo->moves++;
	atomic64_inc(&vdev->moves);
	vramsim_bo_lru_update(bo);
	if (!fence || layout->sparse)
		vramsim_mem_free(vdev, old);
	if (fence)
		vramsim_fence_start(fence, layout->sparse ? NULL : old);
	return 0;

err_cancel:
	if (fence)
		vramsim_fence_cancel(fence);
err_free:
	vramsim_mem_free(vdev, new);
	return ret;
}

static int vramsim_charge(struct vramsim_bo *bo)
{
	struct vramsim_device *vdev = vramsim_bo_device(bo);
	int ret = 0;

	mutex_lock(&vdev->lock);
	if (bo->base.size > vdev->pin_quota - min(vdev->pin_quota, vdev->pinned_bytes))
		ret = -ENOMEM;
	else
		vdev->pinned_bytes += bo->base.size;
	mutex_unlock(&vdev->lock);
	return ret;
}

static void vramsim_uncharge(struct vramsim_bo *bo)
{
	struct vramsim_device *vdev = vramsim_bo_device(bo);

	mutex_lock(&vdev->lock);
	vdev->pinned_bytes -= bo->base.size;
	mutex_unlock(&vdev->lock);
}

/* Why @attach cannot have the buffer pinned in VRAM, NULL if it can. */
static const char *vramsim_bo_pin_obstacle(struct vramsim_bo *bo,
					   struct dma_buf_attachment *attach)
{
	if (bo->pin_policy == VRAMSIM_PIN_DOWNGRADE)
		return "pins only in system memory";
	if (vramsim_policy == VRAMSIM_POLICY_AMDGPU && bo->attached_p2p != bo->attached)
		return "not all importers are peer-to-peer";
	/*
	 * An importer without DMA mask uses the CPU, which reaches VRAM; but
	 * a device that takes no peer-to-peer addresses does not.
	 */
	if (!attach->peer2peer && attach->dev->dma_mask)
		return "importer is not peer-to-peer";
	return NULL;
}

/**
 * vramsim_bo_pin - keep a buffer where it is
 * @bo: buffer, locked
 * @attach: who asks
 *
 * The first pin may move the buffer to system memory, see
 * vramsim_bo_pin_obstacle().
 *
 * Return: 0; -ENODEV if revoked, -EOPNOTSUPP if the buffer is not to be pinned,
 * -EBUSY if it is pinned where the importer does not reach it, -ENOMEM over the
 * quota, what a test asked for, or what vramsim_bo_move() returned.
 */
int vramsim_bo_pin(struct vramsim_bo *bo, struct dma_buf_attachment *attach)
{
	struct vramsim_device *vdev = vramsim_bo_device(bo);
	const char *obstacle;
	int ret;

	if (bo->revoked)
		return -ENODEV;
	ret = vramsim_bo_hit(bo, VRAMSIM_INJECT_PIN);
	if (ret)
		return ret;
	if (bo->pin_policy == VRAMSIM_PIN_REFUSE) {
		bo->reason = "refuses to be pinned";
		return -EOPNOTSUPP;
	}
	if (vramsim_bo_hit(bo, VRAMSIM_INJECT_NOTIFY_IN_PIN))
		vramsim_bo_notify(bo);

	if (!bo->pinned) {
		ret = vramsim_charge(bo);
		if (ret) {
			bo->reason = "pin quota of the device is used up";
			return ret;
		}
	}
	obstacle = vramsim_bo_pin_obstacle(bo, attach);
	if (obstacle && bo->mem->placement == VRAMSIM_PLACEMENT_VRAM) {
		bo->reason = obstacle;
		ret = vramsim_bo_move(bo, VRAMSIM_PLACEMENT_SYSTEM, &bo->layout, 0);
		if (ret) {
			if (!bo->pinned)
				vramsim_uncharge(bo);
			return ret;
		}
	}
	bo->pinned++;
	atomic_inc(&vdev->pinned);
	return 0;
}

/**
 * vramsim_bo_unpin - undo vramsim_bo_pin()
 * @bo: buffer, locked
 */
void vramsim_bo_unpin(struct vramsim_bo *bo)
{
	atomic_dec(&vramsim_bo_device(bo)->pinned);
	if (!--bo->pinned)
		vramsim_uncharge(bo);
	vramsim_bo_reap(bo);
}

/**
 * vramsim_bo_reap - take a revoked buffer's memory, if nobody uses it
 * @bo: buffer, locked
 */
void vramsim_bo_reap(struct vramsim_bo *bo)
{
	struct vramsim_device *vdev = vramsim_bo_device(bo);
	u8 byte = REVOKED_BYTE;

	if (!bo->revoked || !bo->mem || bo->pinned || bo->mapped || bo->vmap)
		return;
	/* When the device is gone, there is nothing to write to. */
	if (!(bo->flags & (VRAMSIM_CREATE_SPARSE | VRAMSIM_CREATE_UNCLEARED)))
		vramsim_mem_access(vdev, bo->mem, VRAMSIM_ACCESS_FILL, 0, &byte, bo->base.size);
	vramsim_mem_free(vdev, bo->mem);
	bo->mem = NULL;
	vramsim_bo_lru_update(bo);
}

/**
 * vramsim_bo_revoke - take a buffer's memory away
 * @bo: buffer, locked, without pending fence
 *
 * Calls move_notify of all importers. The memory goes at once, or with the
 * last pin, map or kernel CPU mapping.
 */
void vramsim_bo_revoke(struct vramsim_bo *bo)
{
	if (bo->revoked)
		return;
	bo->revoked = true;
	atomic64_inc(&vramsim_bo_device(bo)->revokes);
	drm_vma_node_unmap(&bo->base.vma_node, bo->base.dev->anon_inode->i_mapping);
	vramsim_bo_notify(bo);
	vramsim_bo_reap(bo);
}

/**
 * vramsim_bo_vmap - map a buffer into the kernel's address space
 * @bo: buffer, locked, not mapped that way
 * @map: set to where it is
 *
 * Return: 0, -ENODEV if revoked, -EOPNOTSUPP for a sparse buffer, -ENOMEM, or what
 * a test asked for.
 */
int vramsim_bo_vmap(struct vramsim_bo *bo, struct iosys_map *map)
{
	struct vramsim_device *vdev = vramsim_bo_device(bo);
	int ret;

	if (bo->revoked)
		return -ENODEV;
	if (bo->layout.sparse)
		return -EOPNOTSUPP;
	ret = vramsim_bo_hit(bo, VRAMSIM_INJECT_VMAP);
	if (ret)
		return ret;
	bo->vmap = vramsim_mem_vmap(vdev, bo->mem, &bo->vmap_io);
	if (!bo->vmap) {
		bo->reason = "no kernel mapping: no memory, or VRAM in pieces and no VMAP_PFN";
		return -ENOMEM;
	}
	atomic_inc(&vdev->vmapped);
	if (vramsim_mem_is_io(vdev, bo->mem))
		iosys_map_set_vaddr_iomem(map, (void __iomem __force *)bo->vmap);
	else
		iosys_map_set_vaddr(map, bo->vmap);
	return 0;
}

/**
 * vramsim_bo_vunmap - undo vramsim_bo_vmap()
 * @bo: buffer, locked
 */
void vramsim_bo_vunmap(struct vramsim_bo *bo)
{
	vramsim_mem_vunmap(bo->vmap, bo->vmap_io);
	bo->vmap = NULL;
	atomic_dec(&vramsim_bo_device(bo)->vmapped);
	vramsim_bo_reap(bo);
}

static vm_fault_t vramsim_bo_fault_locked(struct vramsim_bo *bo, struct vm_fault *vmf)
{
	struct vramsim_device *vdev = vramsim_bo_device(bo);
	pgoff_t page = vmf->pgoff - drm_vma_node_start(&bo->base.vma_node);
	unsigned long address = vmf->address & PAGE_MASK;
	struct vm_area_struct *vma = vmf->vma;
	pgprot_t prot = vm_get_page_prot(vma->vm_flags);
	unsigned long pfn;
	vm_fault_t ret;
	u64 n;
	u64 skip;
	u32 i;

	if (bo->revoked || page >= bo->base.size >> PAGE_SHIFT ||
	    drm_dev_is_unplugged(&vdev->drm))
		return VM_FAULT_SIGBUS;

	if (vramsim_mem_is_io(vdev, bo->mem))
		prot = pgprot_writecombine(prot);
	i = vramsim_mem_find(bo->mem, (u64)page << PAGE_SHIFT);
	skip = ((u64)page << PAGE_SHIFT) - bo->mem->segments[i].start;
	pfn = PHYS_PFN(vramsim_mem_phys(vdev, bo->mem, i) + skip);
	n = min_t(u64, vramsim_segment_length(bo->mem, i) - skip, vma->vm_end - address);
	n = min_t(u64, n >> PAGE_SHIFT, FAULT_AROUND);
	do {
		ret = vmf_insert_pfn_prot(vma, address, pfn++, prot);
		address += PAGE_SIZE;
	} while (ret == VM_FAULT_NOPAGE && --n);
	return ret;
}

/*
 * A fault on a buffer with a fence pending waits without mmap_lock, and asks for
 * the fault to be made anew: that is where a fatal signal ends one that the
 * kernel took on behalf of the user.
 */
static vm_fault_t vramsim_bo_vm_fault(struct vm_fault *vmf)
{
	struct drm_gem_object *obj = vmf->vma->vm_private_data;
	struct vramsim_bo *bo = to_vramsim_bo(obj);
	vm_fault_t ret;

	if (fault_flag_allow_retry_first(vmf->flags) &&
	    !dma_resv_test_signaled(obj->resv, DMA_RESV_USAGE_BOOKKEEP)) {
		if (vmf->flags & FAULT_FLAG_RETRY_NOWAIT)
			return VM_FAULT_RETRY;
		drm_gem_object_get(obj);
		mmap_read_unlock(vmf->vma->vm_mm);
		dma_resv_wait_timeout(obj->resv, DMA_RESV_USAGE_BOOKKEEP, true,
				      MAX_SCHEDULE_TIMEOUT);
		drm_gem_object_put(obj);
		return VM_FAULT_RETRY;
	}
	/* Signals: back to user space, and fault again. */
	if (vramsim_bo_lock_idle(bo))
		return VM_FAULT_NOPAGE;
	ret = vramsim_bo_fault_locked(bo, vmf);
	dma_resv_unlock(obj->resv);
	return ret;
}

static const struct vm_operations_struct vramsim_bo_vm_ops = {
	.fault = vramsim_bo_vm_fault,
	.open = drm_gem_vm_open,
	.close = drm_gem_vm_close,
};

static int vramsim_bo_mmap(struct drm_gem_object *obj, struct vm_area_struct *vma)
{
	struct vramsim_bo *bo = to_vramsim_bo(obj);

	if (bo->layout.sparse)
		return -EOPNOTSUPP;
	/* Private copies of device memory make no sense, and the mm refuses them late. */
	if ((vma->vm_flags & (VM_SHARED | VM_MAYWRITE)) == VM_MAYWRITE)
		return -EINVAL;
	vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_ops = &vramsim_bo_vm_ops;
	return 0;
}

const struct drm_gem_object_funcs vramsim_bo_funcs = {
	.free = vramsim_bo_free,
	.export = vramsim_export,
	.mmap = vramsim_bo_mmap,
};
