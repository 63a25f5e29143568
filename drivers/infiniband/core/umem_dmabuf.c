// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Import of dma-bufs for RDMA devices.
 *
 * An import is attached once, maps a window of the dma-buf for the device's DMA
 * and keeps to one of three contracts with the exporter:
 *
 * dynamic
 *	The exporter may move the memory whenever it likes.  It says so through
 *	the driver's move_notify, which makes the device stop; the mapping is
 *	gone when that returns.  The driver maps anew when the device faults.
 *
 * pinned
 *	The exporter promised not to move the memory.  The device is never told
 *	to stop.
 *
 * pinned, revocable
 *	The same promise, but the exporter may break it, once and for good: the
 *	driver's revoke callback cuts the device off.
 *
 * State and counters belong to the reservation lock of the dma-buf, under which
 * the exporter calls as well.  An exporter may do that as soon as the attachment
 * is on its list, which is before dma_buf_dynamic_attach() has returned: so an
 * import is complete before it is attached, and its callbacks use nothing that
 * attaching brings.
 *
 * The device's accesses leave no fences behind.  What an exporter may rely on is
 * that a callback is synchronous: when it returns, the device is off the memory.
 */

#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/export.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <trace/events/ib_umem_dmabuf.h>

#include "umem_dmabuf.h"

/*
 * Rounds of waiting for the exporter's fences with the reservation lock dropped.
 * An exporter that moves the memory each time wins no more than these: after
 * them, the lock is kept, and the memory stays.
 */
#define UNLOCKED_WAITS 8

/**
 * ib_umem_dmabuf_unmap_pages - give the mapping back to the exporter
 * @umem_dmabuf: the import
 *
 * The device must not use its addresses any more.  Does nothing if the window
 * is not mapped.
 *
 * Context: may sleep; the reservation lock is held.
 */
void ib_umem_dmabuf_unmap_pages(struct ib_umem_dmabuf *umem_dmabuf)
{
	struct sg_table *sgt = umem_dmabuf->sgt;

	dma_resv_assert_held(umem_dmabuf->dmabuf->resv);

	if (!sgt)
		return;

	trace_ib_umem_dmabuf_unmap(umem_dmabuf);
	umem_dmabuf_untrim(umem_dmabuf);
	umem_dmabuf->ready = false;
	WRITE_ONCE(umem_dmabuf->sgt, NULL);
	dma_buf_unmap_attachment(umem_dmabuf->attach, sgt, DMA_BIDIRECTIONAL);
}
EXPORT_SYMBOL_GPL(ib_umem_dmabuf_unmap_pages);

/* At most one callback: whoever comes first, a revoke or the release. */
static void umem_dmabuf_cut_off(struct ib_umem_dmabuf *umem_dmabuf)
{
	bool revoked = umem_dmabuf->revoked;

	dma_resv_assert_held(umem_dmabuf->dmabuf->resv);

	WRITE_ONCE(umem_dmabuf->revoked, true);
	if (!revoked && umem_dmabuf->pinned_revoke)
		umem_dmabuf->pinned_revoke(umem_dmabuf->private);

	ib_umem_dmabuf_unmap_pages(umem_dmabuf);
	if (umem_dmabuf->pinned) {
		WRITE_ONCE(umem_dmabuf->pinned, false);
		dma_buf_unpin(umem_dmabuf->attach);
	}
	if (umem_dmabuf->charged) {
		umem_dmabuf->charged = false;
		ib_umem_dmabuf_uncharge_pin(umem_dmabuf->dmabuf);
	}
}

static void umem_dmabuf_revoke_locked(struct ib_umem_dmabuf *umem_dmabuf)
{
	if (umem_dmabuf->revoked)
		return;
	trace_ib_umem_dmabuf_revoke(umem_dmabuf);
	umem_dmabuf_cut_off(umem_dmabuf);
}

static int umem_dmabuf_map(struct ib_umem_dmabuf *umem_dmabuf)
{
	struct ib_device *device = umem_dmabuf->umem.ibdev;
	struct sg_table *sgt;
	int ret;

	if (umem_dmabuf->revoked)
		return ib_umem_dmabuf_refuse(device, "revoke", -ENODEV);
	if (umem_dmabuf->sgt)
		return 0;

	sgt = dma_buf_map_attachment(umem_dmabuf->attach, DMA_BIDIRECTIONAL);
	if (umem_dmabuf_says_no(sgt)) {
		ret = PTR_ERR(sgt);
		/* The exporter's way to say that the memory will not be back. */
		if (ret == -ENODEV)
			umem_dmabuf_revoke_locked(umem_dmabuf);
		ret = ib_umem_dmabuf_refuse(device, "map", ret);
		goto err;
	}

	ret = umem_dmabuf_trim(umem_dmabuf, sgt);
	if (ret) {
		dma_buf_unmap_attachment(umem_dmabuf->attach, sgt,
					 DMA_BIDIRECTIONAL);
		ret = ib_umem_dmabuf_refuse(device, "short list", ret);
		goto err;
	}

	WRITE_ONCE(umem_dmabuf->sgt, sgt);
	WRITE_ONCE(umem_dmabuf->maps, umem_dmabuf->maps + 1);
	trace_ib_umem_dmabuf_map(umem_dmabuf);
	return 0;

err:
	WRITE_ONCE(umem_dmabuf->map_errors, umem_dmabuf->map_errors + 1);
	return ret;
}

/*
 * Wait until the exporter has moved the memory.  That is the exclusive fence,
 * where exporters put their copies; to wait for the shared ones would be to wait
 * for rendering.  A user's thread can be interrupted, a kernel thread cannot.
 */
static int umem_dmabuf_wait_fence(struct ib_umem_dmabuf *umem_dmabuf,
				  long timeout)
{
	bool intr = !(current->flags & PF_KTHREAD);
	long ret;

	ret = dma_resv_wait_timeout_rcu(umem_dmabuf->dmabuf->resv, false, intr,
					timeout);
	if (ret > 0)
		return 0;
	if (!ret)
		return -EAGAIN;
	return ib_umem_dmabuf_refuse(umem_dmabuf->umem.ibdev, "fence", ret);
}

/**
 * ib_umem_dmabuf_map_pages_timeout - map the window, with an end to the waiting
 * @umem_dmabuf: the import
 * @timeout: jiffies to wait for a fence of the exporter, or MAX_SCHEDULE_TIMEOUT
 *
 * As ib_umem_dmabuf_map_pages(), for those whom others wait for.  When the time
 * is up, the window stays mapped but the device must not use it yet; the next
 * call goes on waiting.
 *
 * Context: sleeps; the reservation lock is held.  Interruptible unless called
 * from a kernel thread.
 * Return: -EAGAIN if the fence has not signaled in time; else as
 * ib_umem_dmabuf_map_pages().
 */
int ib_umem_dmabuf_map_pages_timeout(struct ib_umem_dmabuf *umem_dmabuf,
				     long timeout)
{
	struct dma_resv *resv = umem_dmabuf->dmabuf->resv;
	unsigned int round;

	dma_resv_assert_held(resv);

	for (round = 0; ; round++) {
		bool unlock = round < UNLOCKED_WAITS;
		u64 generation;
		int ret;

		ret = umem_dmabuf_map(umem_dmabuf);
		if (ret)
			return ret;
		if (umem_dmabuf->ready)
			return 0;

		if (dma_resv_test_signaled_rcu(resv, false)) {
			umem_dmabuf->ready = true;
			return 0;
		}

		generation = umem_dmabuf->maps;
		if (unlock)
			dma_resv_unlock(resv);
		ret = umem_dmabuf_wait_fence(umem_dmabuf, timeout);
		if (unlock)
			dma_resv_lock(resv, NULL);

		if (umem_dmabuf->sgt && umem_dmabuf->maps == generation) {
			if (!ret)
				umem_dmabuf->ready = true;
			/* Another thread may have seen the fence signal. */
			if (umem_dmabuf->ready)
				return 0;
			if (ret != -EAGAIN)
				ib_umem_dmabuf_unmap_pages(umem_dmabuf);
		}
		if (ret)
			return ret;
	}
}
EXPORT_SYMBOL_GPL(ib_umem_dmabuf_map_pages_timeout);

/**
 * ib_umem_dmabuf_map_pages - map the window for the device
 * @umem_dmabuf: the import
 *
 * On success the addresses in &ib_umem_dmabuf.umem are good until the
 * reservation lock is released, and after that until the driver's callback.
 * Cheap if the window is mapped already.
 *
 * The lock is dropped and taken again while a fence of the exporter is
 * outstanding: what the caller knew about this import before the call, it has
 * to look up again.
 *
 * Context: sleeps; the reservation lock is held.  Interruptible unless called
 * from a kernel thread.
 * Return: 0; -ENODEV for good if the memory was revoked; -EINVAL if the
 * exporter's list is shorter than the window; -ERESTARTSYS after a signal; else
 * the exporter's answer.  Nothing is mapped then that was not before.
 */
int ib_umem_dmabuf_map_pages(struct ib_umem_dmabuf *umem_dmabuf)
{
	return ib_umem_dmabuf_map_pages_timeout(umem_dmabuf,
						MAX_SCHEDULE_TIMEOUT);
}
EXPORT_SYMBOL_GPL(ib_umem_dmabuf_map_pages);

/*
 * The exporter moves the memory or takes it away.  Nothing has to be done as
 * long as the device knows no address: exporters move memory inside a pin or a
 * map of ours, and that is no revoke.
 */
static void umem_dmabuf_move_notify(struct dma_buf_attachment *attach)
{
	struct ib_umem_dmabuf *umem_dmabuf = attach->importer_priv;

	dma_resv_assert_held(attach->dmabuf->resv);

	WRITE_ONCE(umem_dmabuf->moves, umem_dmabuf->moves + 1);
	trace_ib_umem_dmabuf_move(umem_dmabuf);

	if (!umem_dmabuf->sgt)
		return;

	switch (umem_dmabuf->contract) {
	case IB_UMEM_DMABUF_DYNAMIC:
		if (umem_dmabuf->ready)
			umem_dmabuf->ops->move_notify(attach);
		ib_umem_dmabuf_unmap_pages(umem_dmabuf);
		break;
	case IB_UMEM_DMABUF_PINNED:
		ibdev_warn_ratelimited(umem_dmabuf->umem.ibdev,
				       "%s moves a dma-buf that is pinned\n",
				       attach->dmabuf->exp_name);
		break;
	case IB_UMEM_DMABUF_REVOCABLE:
		umem_dmabuf_revoke_locked(umem_dmabuf);
		break;
	}
}

/* Memory without struct page is welcome: the device gets bus addresses only. */
static const struct dma_buf_attach_ops umem_dmabuf_p2p_ops = {
	.allow_peer2peer = true,
	.move_notify = umem_dmabuf_move_notify,
};

static const struct dma_buf_attach_ops umem_dmabuf_system_ops = {
	.allow_peer2peer = false,
	.move_notify = umem_dmabuf_move_notify,
};

/**
 * ib_umem_dmabuf_get_window - look a window of a dma-buf up and check it
 * @device: the device that the import is for
 * @fd: file descriptor of the dma-buf
 * @offset: first byte of the window
 * @length: bytes in the window
 *
 * The order of the checks is part of the user ABI.
 *
 * Context: user; may sleep.
 * Return: a reference to the dma-buf; or -EBADF for @fd not open, -EINVAL for
 * one that is no dma-buf, for a window beyond its end, or one without a byte.
 */
struct dma_buf *ib_umem_dmabuf_get_window(struct ib_device *device, int fd,
					  u64 offset, u64 length)
{
	struct dma_buf *dmabuf = dma_buf_get(fd);
	u64 end;

	if (IS_ERR(dmabuf))
		return ERR_PTR(ib_umem_dmabuf_refuse(device, "file descriptor",
						     PTR_ERR(dmabuf)));

	if (check_add_overflow(offset, length, &end) || end > dmabuf->size ||
	    !length) {
		dma_buf_put(dmabuf);
		return ERR_PTR(ib_umem_dmabuf_refuse(device, "window",
						     -EINVAL));
	}
	return dmabuf;
}
EXPORT_SYMBOL_GPL(ib_umem_dmabuf_get_window);

static struct ib_umem_dmabuf *
umem_dmabuf_import(struct ib_device *device, struct device *dma_device,
		   unsigned long offset, size_t size, int fd, int access,
		   enum ib_umem_dmabuf_contract contract,
		   const struct dma_buf_attach_ops *ops)
{
	bool pins = contract != IB_UMEM_DMABUF_DYNAMIC ||
		    !IS_ENABLED(CONFIG_DMABUF_MOVE_NOTIFY);
	struct ib_umem_dmabuf *umem_dmabuf;
	struct dma_buf_attachment *attach;
	struct dma_buf *dmabuf;
	int ret;

	if (!dma_device)
		return ERR_PTR(ib_umem_dmabuf_refuse(device, "no DMA device",
						     -EOPNOTSUPP));

	dmabuf = ib_umem_dmabuf_get_window(device, fd, offset, size);
	if (IS_ERR(dmabuf))
		return ERR_CAST(dmabuf);

	umem_dmabuf = kzalloc(sizeof(*umem_dmabuf), GFP_KERNEL);
	if (!umem_dmabuf) {
		ret = ib_umem_dmabuf_refuse(device, "memory", -ENOMEM);
		goto err_put;
	}
	umem_dmabuf->umem.ibdev = device;
	umem_dmabuf->umem.address = offset;
	umem_dmabuf->umem.iova = offset;
	umem_dmabuf->umem.length = size;
	umem_dmabuf->umem.writable = ib_access_writable(access);
	umem_dmabuf->dmabuf = dmabuf;
	umem_dmabuf->contract = contract;
	umem_dmabuf->ops = ops;

	if (pins) {
		ret = ib_umem_dmabuf_charge_pin(device, dmabuf);
		if (ret)
			goto err_free;
		umem_dmabuf->charged = true;
	}

	attach = dma_buf_dynamic_attach(dmabuf, dma_device,
					!ops || ops->allow_peer2peer ?
						&umem_dmabuf_p2p_ops :
						&umem_dmabuf_system_ops,
					umem_dmabuf);
	if (umem_dmabuf_says_no(attach)) {
		ret = ib_umem_dmabuf_refuse(device, "attach", PTR_ERR(attach));
		goto err_uncharge;
	}
	umem_dmabuf->attach = attach;
	trace_ib_umem_dmabuf_attach(umem_dmabuf);
	return umem_dmabuf;

err_uncharge:
	if (umem_dmabuf->charged)
		ib_umem_dmabuf_uncharge_pin(dmabuf);
err_free:
	kfree(umem_dmabuf);
err_put:
	dma_buf_put(dmabuf);
	return ERR_PTR(ret);
}

/**
 * ib_umem_dmabuf_get - import a window of a dma-buf that may move
 * @device: the RDMA device
 * @offset: first byte of the window
 * @size: bytes in the window
 * @fd: file descriptor of the dma-buf
 * @access: &enum ib_access_flags of the region
 * @ops: the driver's wishes; the attachment's importer_priv is the import
 *
 * Nothing is mapped yet: the driver sets &ib_umem_dmabuf.private and calls
 * ib_umem_dmabuf_map_pages(), both under the reservation lock.
 *
 * @ops->move_notify is called with that lock held, and only while a
 * ib_umem_dmabuf_map_pages() of the driver's has succeeded and was not undone.
 * It makes the device stop; it must not fail, nor release the import.  It may
 * unmap; what it leaves mapped is unmapped when it returns.
 *
 * On kernels without CONFIG_DMABUF_MOVE_NOTIFY the dma-buf core pins what is
 * mapped, so there this counts as pinning.
 *
 * Context: user; may sleep; the reservation lock is not held.
 * Return: the import; or -EOPNOTSUPP without a DMA device, or where pinning is
 * needed and forbidden; the errors of ib_umem_dmabuf_get_window(); -ENOMEM; the
 * exporter's answer to the attachment.
 */
struct ib_umem_dmabuf *ib_umem_dmabuf_get(struct ib_device *device,
					  unsigned long offset, size_t size,
					  int fd, int access,
					  const struct dma_buf_attach_ops *ops)
{
	if (WARN_ON_ONCE(!ops || !ops->move_notify))
		return ERR_PTR(-EINVAL);

	return umem_dmabuf_import(device, device->dma_device, offset, size, fd,
				  access, IB_UMEM_DMABUF_DYNAMIC, ops);
}
EXPORT_SYMBOL_GPL(ib_umem_dmabuf_get);

/* Returns with the reservation lock held. */
static struct ib_umem_dmabuf *
umem_dmabuf_get_pinned(struct ib_device *device, struct device *dma_device,
		       unsigned long offset, size_t size, int fd, int access,
		       enum ib_umem_dmabuf_contract contract)
{
	struct ib_umem_dmabuf *umem_dmabuf;
	struct dma_resv *resv;
	int ret;

	umem_dmabuf = umem_dmabuf_import(device, dma_device, offset, size, fd,
					 access, contract, NULL);
	if (IS_ERR(umem_dmabuf))
		return umem_dmabuf;

	resv = umem_dmabuf->dmabuf->resv;
	if (dma_resv_lock_interruptible(resv, NULL)) {
		ret = ib_umem_dmabuf_refuse(device, "lock", -ERESTARTSYS);
		goto err_release;
	}

	ret = dma_buf_pin(umem_dmabuf->attach);
	if (ret) {
		ret = ib_umem_dmabuf_refuse(device, "pin", ret);
		goto err_unlock;
	}
	WRITE_ONCE(umem_dmabuf->pinned, true);

	ret = ib_umem_dmabuf_map_pages(umem_dmabuf);
	if (ret)
		goto err_unlock;
	return umem_dmabuf;

err_unlock:
	dma_resv_unlock(resv);
err_release:
	ib_umem_dmabuf_release(umem_dmabuf);
	return ERR_PTR(ret);
}

/**
 * ib_umem_dmabuf_get_pinned_with_dma_device - import, pin and map for a device
 * @device: the RDMA device
 * @dma_device: the device that does the DMA, where that is another one
 * @offset: first byte of the window
 * @size: bytes in the window
 * @fd: file descriptor of the dma-buf
 * @access: &enum ib_access_flags of the region
 *
 * The exporter keeps the memory in place until ib_umem_dmabuf_release().
 *
 * Context: user; sleeps, interruptibly; the reservation lock is not held.
 * Return: the import, mapped; the errors of ib_umem_dmabuf_get() and of
 * ib_umem_dmabuf_map_pages(); the exporter's answer to the pin.
 */
struct ib_umem_dmabuf *
ib_umem_dmabuf_get_pinned_with_dma_device(struct ib_device *device,
					  struct device *dma_device,
					  unsigned long offset, size_t size,
					  int fd, int access)
{
	struct ib_umem_dmabuf *umem_dmabuf;

	umem_dmabuf = umem_dmabuf_get_pinned(device, dma_device, offset, size,
					     fd, access,
					     IB_UMEM_DMABUF_PINNED);
	if (!IS_ERR(umem_dmabuf))
		dma_resv_unlock(umem_dmabuf->dmabuf->resv);
	return umem_dmabuf;
}
EXPORT_SYMBOL_GPL(ib_umem_dmabuf_get_pinned_with_dma_device);

/**
 * ib_umem_dmabuf_get_pinned - import, pin and map
 * @device: the RDMA device
 * @offset: first byte of the window
 * @size: bytes in the window
 * @fd: file descriptor of the dma-buf
 * @access: &enum ib_access_flags of the region
 *
 * As ib_umem_dmabuf_get_pinned_with_dma_device(), for the device's own DMA.
 *
 * Context: user; sleeps, interruptibly; the reservation lock is not held.
 * Return: the import, mapped, or an error.
 */
struct ib_umem_dmabuf *ib_umem_dmabuf_get_pinned(struct ib_device *device,
						 unsigned long offset,
						 size_t size, int fd,
						 int access)
{
	return ib_umem_dmabuf_get_pinned_with_dma_device(device,
							 device->dma_device,
							 offset, size, fd,
							 access);
}
EXPORT_SYMBOL_GPL(ib_umem_dmabuf_get_pinned);

/**
 * ib_umem_dmabuf_get_pinned_revocable_and_lock - import, pin, map; stay locked
 * @device: the RDMA device
 * @offset: first byte of the window
 * @size: bytes in the window
 * @fd: file descriptor of the dma-buf
 * @access: &enum ib_access_flags of the region
 *
 * The driver tells the device the addresses, names its callback with
 * ib_umem_dmabuf_set_revoke_locked(), and then lets the exporter in with
 * ib_umem_dmabuf_revoke_unlock().
 *
 * Context: user; sleeps, interruptibly.  The reservation lock is not held on
 * entry, and held on return unless an error is returned.
 * Return: the import, mapped; errors as ib_umem_dmabuf_get_pinned(), and -ENODEV
 * if the exporter revoked the memory meanwhile.
 */
struct ib_umem_dmabuf *
ib_umem_dmabuf_get_pinned_revocable_and_lock(struct ib_device *device,
					     unsigned long offset, size_t size,
					     int fd, int access)
{
	return umem_dmabuf_get_pinned(device, device->dma_device, offset, size,
				      fd, access, IB_UMEM_DMABUF_REVOCABLE);
}
EXPORT_SYMBOL_GPL(ib_umem_dmabuf_get_pinned_revocable_and_lock);

/**
 * ib_umem_dmabuf_set_revoke_locked - name the callback that cuts the device off
 * @umem_dmabuf: a revocable import
 * @revoke: the callback
 * @priv: its argument
 *
 * @revoke is called at most once, with the reservation lock held: on a revoke by
 * the exporter or by ib_umem_dmabuf_revoke(), inside an ib_umem_dmabuf_map_pages()
 * of the driver's that finds the memory gone, or else by
 * ib_umem_dmabuf_release().  When it returns, the device must not reach the
 * memory any more.  It must not give the key to somebody else: that waits until
 * the region is deregistered.
 *
 * Context: the reservation lock is held.
 */
void ib_umem_dmabuf_set_revoke_locked(struct ib_umem_dmabuf *umem_dmabuf,
				      void (*revoke)(void *priv), void *priv)
{
	dma_resv_assert_held(umem_dmabuf->dmabuf->resv);

	umem_dmabuf->pinned_revoke = revoke;
	umem_dmabuf->private = priv;
}
EXPORT_SYMBOL_GPL(ib_umem_dmabuf_set_revoke_locked);

/**
 * ib_umem_dmabuf_revoke_lock - keep the exporter from moving or revoking
 * @umem_dmabuf: the import
 *
 * Context: sleeps.
 */
void ib_umem_dmabuf_revoke_lock(struct ib_umem_dmabuf *umem_dmabuf)
{
	dma_resv_lock(umem_dmabuf->dmabuf->resv, NULL);
}
EXPORT_SYMBOL_GPL(ib_umem_dmabuf_revoke_lock);

/**
 * ib_umem_dmabuf_revoke_unlock - let the exporter move and revoke again
 * @umem_dmabuf: the import
 *
 * Context: after ib_umem_dmabuf_revoke_lock() or
 * ib_umem_dmabuf_get_pinned_revocable_and_lock().
 */
void ib_umem_dmabuf_revoke_unlock(struct ib_umem_dmabuf *umem_dmabuf)
{
	dma_resv_unlock(umem_dmabuf->dmabuf->resv);
}
EXPORT_SYMBOL_GPL(ib_umem_dmabuf_revoke_unlock);

/**
 * ib_umem_dmabuf_revoke - take the memory away from the device for good
 * @umem_dmabuf: the import
 *
 * Runs the driver's revoke callback, if none ran before, and gives mapping and
 * pin back; mapping again fails with -ENODEV.  Where there is no callback (a
 * dynamic or a pinned import, or a revocable one that has not named it yet), the
 * driver stops the device first.
 *
 * Context: sleeps; the reservation lock is not held.
 */
void ib_umem_dmabuf_revoke(struct ib_umem_dmabuf *umem_dmabuf)
{
	dma_resv_lock(umem_dmabuf->dmabuf->resv, NULL);
	umem_dmabuf_revoke_locked(umem_dmabuf);
	dma_resv_unlock(umem_dmabuf->dmabuf->resv);
}
EXPORT_SYMBOL_GPL(ib_umem_dmabuf_revoke);

/**
 * ib_umem_dmabuf_release - let a dma-buf go
 * @umem_dmabuf: the import; freed
 *
 * The only way to release an import: ib_umem_release() **must never see** its
 * umem, which that function would take for pinned user pages.
 *
 * Runs the revoke callback if none ran before.  The caller has made sure that
 * no other thread uses the import; the exporter may still call until this
 * returns.
 *
 * Context: sleeps, not interruptibly; the reservation lock is not held.
 */
void ib_umem_dmabuf_release(struct ib_umem_dmabuf *umem_dmabuf)
{
	struct dma_buf *dmabuf = umem_dmabuf->dmabuf;

	dma_resv_lock(dmabuf->resv, NULL);
	umem_dmabuf_cut_off(umem_dmabuf);
	dma_resv_unlock(dmabuf->resv);

	dma_buf_detach(dmabuf, umem_dmabuf->attach);
	dma_buf_put(dmabuf);
	kfree(umem_dmabuf);
}
EXPORT_SYMBOL_GPL(ib_umem_dmabuf_release);

/**
 * ib_umem_dmabuf_query - look at an import without stopping anybody
 * @umem_dmabuf: the import, which must not be released meanwhile
 * @info: filled with its state
 *
 * Takes no lock, since an exporter that is stuck would else hang those who only
 * want to look: values may stem from different moments.
 *
 * Context: any.
 */
void ib_umem_dmabuf_query(const struct ib_umem_dmabuf *umem_dmabuf,
			  struct ib_umem_dmabuf_info *info)
{
	struct dma_buf *dmabuf = umem_dmabuf->dmabuf;
	bool mapped = READ_ONCE(umem_dmabuf->sgt);
	bool map_pins = dma_buf_is_dynamic(dmabuf) &&
			!IS_ENABLED(CONFIG_DMABUF_MOVE_NOTIFY);

	*info = (struct ib_umem_dmabuf_info){
		.exporter = dmabuf->exp_name,
		.inode = file_inode(dmabuf->file)->i_ino,
		.size = dmabuf->size,
		.offset = umem_dmabuf->umem.address,
		.length = umem_dmabuf->umem.length,
		.contract = umem_dmabuf->contract,
		.peer2peer = READ_ONCE(umem_dmabuf->attach->peer2peer),
		.mapped = mapped,
		.pinned = READ_ONCE(umem_dmabuf->pinned) ||
			  (mapped && map_pins),
		.revoked = READ_ONCE(umem_dmabuf->revoked),
		.maps = READ_ONCE(umem_dmabuf->maps),
		.moves = READ_ONCE(umem_dmabuf->moves),
		.map_errors = READ_ONCE(umem_dmabuf->map_errors),
	};
}
EXPORT_SYMBOL_GPL(ib_umem_dmabuf_query);

MODULE_DESCRIPTION("RDMA memory regions on dma-bufs");
MODULE_LICENSE("Dual BSD/GPL");
