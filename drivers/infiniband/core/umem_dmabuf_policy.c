// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Who may import what: refusals with a reason, and the administrator's word on
 * pinning.
 *
 * A pinned dma-buf keeps device memory from moving for as long as a region
 * lives.  That is counted here once for a dma-buf, however many regions pin it,
 * and only for exporters that could move it otherwise.
 */

#include <linux/errno.h>
#include <linux/export.h>
#include <linux/hashtable.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "umem_dmabuf.h"

#define CREATE_TRACE_POINTS
#include <trace/events/ib_umem_dmabuf.h>

/* The last error number that user space has a name for. */
#define LAST_USER_ERRNO EHWPOISON

static int umem_dmabuf_user_errno(long err)
{
	switch (err) {
	case -ERESTARTSYS:
	case -ERESTARTNOINTR:
	case -ERESTARTNOHAND:
	case -ERESTART_RESTARTBLOCK:
		return signal_pending(current) ? -ERESTARTSYS : -EINTR;
	case -ENOTSUPP:
	case -ENOIOCTLCMD:
	case -EPROTONOSUPPORT:
		return -EOPNOTSUPP;
	}
	return err < 0 && err >= -LAST_USER_ERRNO ? err : -EIO;
}

/**
 * ib_umem_dmabuf_refuse - say no, and leave a trace of who said it
 * @device: the device that the import is for
 * @layer: who says no
 * @err: its answer; anything, since an exporter may answer anything
 *
 * An exporter says no at "attach", "pin", "map" (also with a "short list"),
 * "vmap", "CPU access" or by a "revoke"; a signal, at a "fence" or a "lock"; the
 * administrator, by "pin policy" or "pin limit"; the kernel, for "memory"; this
 * code, for the "arguments", the "file descriptor" or the "window"; the RDMA
 * side, for "no DMA device", or as "device" or "driver".  "driver" ends the trace
 * of every failed registration: the line before it, if there is one, has the
 * reason.
 *
 * The one place where an answer becomes an errno that user space may see:
 * numbers that are internal to the kernel are translated, and so is
 * EPROTONOSUPPORT, which the uverbs core keeps for itself.  Restarting the
 * system call is asked for only when there is a signal to handle first.
 *
 * Context: any.
 * Return: the errno to give back, always negative.
 */
int ib_umem_dmabuf_refuse(struct ib_device *device, const char *layer, long err)
{
	int user = umem_dmabuf_user_errno(err);

	trace_ib_umem_dmabuf_refuse(device, layer, err, user);
	ibdev_dbg_ratelimited(device, "dma-buf refused by %s: %ld, given as %d\n",
			      layer, err, user);
	return user;
}
EXPORT_SYMBOL_GPL(ib_umem_dmabuf_refuse);

static const char *const pin_names[] = {
	[IB_UMEM_DMABUF_PIN_AUTO] = "auto",
	[IB_UMEM_DMABUF_PIN_PREFER] = "prefer",
	[IB_UMEM_DMABUF_PIN_NEVER] = "never",
};

static int pin_policy = IB_UMEM_DMABUF_PIN_AUTO;

static int pin_policy_set(const char *val, const struct kernel_param *kp)
{
	int i = __sysfs_match_string(pin_names, ARRAY_SIZE(pin_names), val);

	if (i < 0)
		return i;
	WRITE_ONCE(pin_policy, i);
	return 0;
}

static int pin_policy_get(char *buffer, const struct kernel_param *kp)
{
	return sprintf(buffer, "%s\n", pin_names[READ_ONCE(pin_policy)]);
}

static const struct kernel_param_ops pin_policy_ops = {
	.set = pin_policy_set,
	.get = pin_policy_get,
};

module_param_cb(pin, &pin_policy_ops, NULL, 0644);
MODULE_PARM_DESC(pin, "Pin dma-bufs: auto (where a device cannot follow a move; default), prefer, never");

static unsigned int pin_limit_mib;
module_param(pin_limit_mib, uint, 0644);
MODULE_PARM_DESC(pin_limit_mib, "Most MiB of dma-bufs to hold pinned, counted once for each dma-buf (0: no limit; default)");

/* A dma-buf that imports hold pinned, and how many of them do. */
struct pinned_dmabuf {
	struct hlist_node node;
	struct dma_buf *dmabuf;
	unsigned long users;
};

static DEFINE_MUTEX(pinned_lock);
static DEFINE_HASHTABLE(pinned_dmabufs, 8);
static u64 pinned_bytes;

static int pinned_bytes_get(char *buffer, const struct kernel_param *kp)
{
	u64 bytes;

	mutex_lock(&pinned_lock);
	bytes = pinned_bytes;
	mutex_unlock(&pinned_lock);
	return sprintf(buffer, "%llu\n", bytes);
}

static const struct kernel_param_ops pinned_bytes_ops = {
	.get = pinned_bytes_get,
};

module_param_cb(pinned_bytes, &pinned_bytes_ops, NULL, 0444);
MODULE_PARM_DESC(pinned_bytes, "Bytes of dma-bufs held pinned now (read only)");

/**
 * ib_umem_dmabuf_pin_policy - what the administrator wants
 *
 * Context: any.
 * Return: the policy that holds now, for drivers that can import both
 * dynamically and pinned.
 */
enum ib_umem_dmabuf_pin_policy ib_umem_dmabuf_pin_policy(void)
{
	return READ_ONCE(pin_policy);
}
EXPORT_SYMBOL_GPL(ib_umem_dmabuf_pin_policy);

static struct pinned_dmabuf *pinned_find(struct dma_buf *dmabuf)
{
	struct pinned_dmabuf *pinned;

	hash_for_each_possible(pinned_dmabufs, pinned, node,
			       (unsigned long)dmabuf)
		if (pinned->dmabuf == dmabuf)
			return pinned;
	return NULL;
}

/**
 * ib_umem_dmabuf_charge_pin - ask before pinning a dma-buf
 * @device: the device that the import is for
 * @dmabuf: the dma-buf, referenced by the caller until the charge is undone
 *
 * Free of charge, and always allowed, for a static exporter: it has no pin to
 * ask for, and keeps what is attached to in place by itself.
 *
 * Context: may sleep; no reservation lock is held.
 * Return: 0; -EOPNOTSUPP if pinning is forbidden, -ENOMEM beyond the limit.
 */
int ib_umem_dmabuf_charge_pin(struct ib_device *device, struct dma_buf *dmabuf)
{
	u64 limit = (u64)READ_ONCE(pin_limit_mib) << 20;
	struct pinned_dmabuf *pinned, *fresh;
	int ret = 0;

	if (!dma_buf_is_dynamic(dmabuf))
		return 0;
	if (ib_umem_dmabuf_pin_policy() == IB_UMEM_DMABUF_PIN_NEVER)
		return ib_umem_dmabuf_refuse(device, "pin policy", -EOPNOTSUPP);

	fresh = kzalloc(sizeof(*fresh), GFP_KERNEL);
	if (!fresh)
		return ib_umem_dmabuf_refuse(device, "memory", -ENOMEM);

	mutex_lock(&pinned_lock);
	pinned = pinned_find(dmabuf);
	if (pinned) {
		pinned->users++;
	} else if (limit && pinned_bytes + dmabuf->size > limit) {
		ret = -ENOMEM;
	} else {
		swap(pinned, fresh);
		pinned->dmabuf = dmabuf;
		pinned->users = 1;
		hash_add(pinned_dmabufs, &pinned->node, (unsigned long)dmabuf);
		pinned_bytes += dmabuf->size;
	}
	mutex_unlock(&pinned_lock);

	kfree(fresh);
	return ret ? ib_umem_dmabuf_refuse(device, "pin limit", ret) : 0;
}
EXPORT_SYMBOL_GPL(ib_umem_dmabuf_charge_pin);

/**
 * ib_umem_dmabuf_uncharge_pin - undo ib_umem_dmabuf_charge_pin()
 * @dmabuf: the dma-buf that was charged
 *
 * Context: may sleep; the reservation lock may be held.
 */
void ib_umem_dmabuf_uncharge_pin(struct dma_buf *dmabuf)
{
	struct pinned_dmabuf *pinned;

	if (!dma_buf_is_dynamic(dmabuf))
		return;

	mutex_lock(&pinned_lock);
	pinned = pinned_find(dmabuf);
	if (--pinned->users) {
		pinned = NULL;
	} else {
		hash_del(&pinned->node);
		pinned_bytes -= dmabuf->size;
	}
	mutex_unlock(&pinned_lock);
	kfree(pinned);
}
EXPORT_SYMBOL_GPL(ib_umem_dmabuf_uncharge_pin);
