// SPDX-License-Identifier: GPL-2.0
/*
 * Fences that signal after a given time, never before it, and on the way do
 * what a GPU's copy engine does: the data of a moved buffer arrives at its new
 * place just before the fence signals, and not earlier. Whoever does not wait
 * reads old bytes.
 *
 * The work takes no reservation lock, so a waiter may hold it. Until it has
 * run, nobody may move the buffer again or take its memory: they wait for the
 * fence first.
 */

#include <linux/dma-fence.h>
#include <linux/dma-resv.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include <drm/drm_drv.h>

#include "vramsim_drv.h"

/**
 * struct vramsim_fence - a fence and its work
 * @base: the fence
 * @lock: the fence's lock
 * @work: runs when the time is over
 * @ms: the time
 * @due: when it is over
 * @bo: buffer that the fence is on, with a reference until the work has run
 * @from: where the data comes from, NULL if there is nothing to copy
 * @link: in vramsim_device.fences, until the work runs
 */
struct vramsim_fence {
	struct dma_fence base;
	spinlock_t lock; /* for the dma_fence core */
	struct delayed_work work;
	u32 ms;
	ktime_t due;
	struct vramsim_bo *bo;
	struct vramsim_mem *from;
	struct list_head link;
};

static struct workqueue_struct *vramsim_wq;

static const char *vramsim_fence_driver_name(struct dma_fence *fence)
{
	return "vramsim";
}

static const char *vramsim_fence_timeline_name(struct dma_fence *fence)
{
	return "copy";
}

static void vramsim_fence_free(struct rcu_head *rcu)
{
	struct dma_fence *base = container_of(rcu, struct dma_fence, rcu);

	kfree(container_of(base, struct vramsim_fence, base));
	/* vramsim_fence_exit() waits until this function has returned. */
	module_put(THIS_MODULE);
}

static void vramsim_fence_release(struct dma_fence *base)
{
	call_rcu(&base->rcu, vramsim_fence_free);
}

static const struct dma_fence_ops vramsim_fence_ops = {
	.get_driver_name = vramsim_fence_driver_name,
	.get_timeline_name = vramsim_fence_timeline_name,
	.release = vramsim_fence_release,
};

/* At jiffies that lag behind, as on a busy virtual CPU, the work runs too early. */
static void vramsim_fence_queue(struct vramsim_fence *fence)
{
	ktime_t now = ktime_get();
	unsigned long delay = 0;

	if (ktime_before(now, fence->due))
		delay = msecs_to_jiffies(ktime_ms_delta(fence->due, now) + 1);
	queue_delayed_work(vramsim_wq, &fence->work, delay);
}

static void vramsim_fence_work(struct work_struct *work)
{
	struct vramsim_fence *fence = container_of(to_delayed_work(work),
						   struct vramsim_fence, work);
	struct vramsim_bo *bo = fence->bo;
	struct vramsim_device *vdev = vramsim_bo_device(bo);
	int ret;

	spin_lock(&vdev->fence_lock);
	if (ktime_before(ktime_get(), fence->due)) {
		vramsim_fence_queue(fence);
		spin_unlock(&vdev->fence_lock);
		return;
	}
	list_del(&fence->link);
	spin_unlock(&vdev->fence_lock);

	if (fence->from) {
		ret = vramsim_mem_copy(vdev, bo->mem, fence->from);
		if (ret)
			dma_fence_set_error(&fence->base, ret);
		vramsim_mem_free(vdev, fence->from);
	}
	dma_fence_signal(&fence->base);
	drm_gem_object_put(&bo->base);
	drm_dev_put(&vdev->drm);
	dma_fence_put(&fence->base);
}

/**
 * vramsim_fence_create - make a fence, do not start it yet
 * @bo: buffer to put it on, locked until the fence is started or cancelled
 * @ms: milliseconds from the start to the signal
 *
 * Return: the fence, for vramsim_fence_start() or vramsim_fence_cancel(); or
 * -ENOMEM.
 */
struct vramsim_fence *vramsim_fence_create(struct vramsim_bo *bo, u32 ms)
{
	struct vramsim_fence *fence;
	int ret;

	ret = dma_resv_reserve_fences(bo->base.resv, 1);
	if (ret)
		return ERR_PTR(ret);
	fence = kzalloc(sizeof(*fence), GFP_KERNEL);
	if (!fence)
		return ERR_PTR(-ENOMEM);
	__module_get(THIS_MODULE);
	spin_lock_init(&fence->lock);
	INIT_DELAYED_WORK(&fence->work, vramsim_fence_work);
	fence->ms = ms;
	fence->bo = bo;
	dma_fence_init(&fence->base, &vramsim_fence_ops, &fence->lock,
		       dma_fence_context_alloc(1), 1);
	return fence;
}

/**
 * vramsim_fence_cancel - throw away a fence that was not started
 * @fence: fence
 */
void vramsim_fence_cancel(struct vramsim_fence *fence)
{
	dma_fence_put(&fence->base);
}

/**
 * vramsim_fence_start - put the fence on its buffer and let its time run
 * @fence: from vramsim_fence_create(); belongs to its work from now on
 * @from: memory whose contents go to where the buffer is, and which is freed
 *	after that; NULL if there is nothing to copy
 *
 * The buffer's reservation lock is held, and no earlier fence is pending.
 */
void vramsim_fence_start(struct vramsim_fence *fence, struct vramsim_mem *from)
{
	struct vramsim_bo *bo = fence->bo;
	struct vramsim_device *vdev = vramsim_bo_device(bo);

	drm_gem_object_get(&bo->base);
	drm_dev_get(&vdev->drm);
	fence->from = from;
	dma_resv_add_fence(bo->base.resv, &fence->base, DMA_RESV_USAGE_KERNEL);

	spin_lock(&vdev->fence_lock);
	/* A command may have begun before the unplug that lets the fences expire. */
	fence->due = ktime_get();
	if (!drm_dev_is_unplugged(&vdev->drm))
		fence->due = ktime_add_ms(fence->due, fence->ms);
	list_add_tail(&fence->link, &vdev->fences);
	vramsim_fence_queue(fence);
	spin_unlock(&vdev->fence_lock);
}

/**
 * vramsim_fence_expire_all - let all fences of a device signal now
 * @vdev: unplugged device; fences that it starts from now on signal at once
 */
void vramsim_fence_expire_all(struct vramsim_device *vdev)
{
	struct vramsim_fence *fence;

	spin_lock(&vdev->fence_lock);
	list_for_each_entry(fence, &vdev->fences, link) {
		fence->due = ktime_get();
		/* One that runs already must not be queued a second time. */
		if (cancel_delayed_work(&fence->work))
			vramsim_fence_queue(fence);
	}
	spin_unlock(&vdev->fence_lock);
	flush_workqueue(vramsim_wq);
}

/**
 * vramsim_fence_init - module start
 *
 * Return: 0 or -ENOMEM.
 */
int vramsim_fence_init(void)
{
	vramsim_wq = alloc_workqueue("vramsim", WQ_UNBOUND, 0);
	return vramsim_wq ? 0 : -ENOMEM;
}

/**
 * vramsim_fence_exit - module end, when no fence is left
 *
 * Each fence holds a reference on the module, so all that can still run is
 * the end of the last work and of the last RCU callback.
 */
void vramsim_fence_exit(void)
{
	destroy_workqueue(vramsim_wq);
	rcu_barrier();
}
