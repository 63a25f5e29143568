// SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB)
/*
 * CPU access to a dma-buf, for RDMA devices that are software.
 *
 * rxe and siw have no DMA device: it is the CPU that moves the bytes of their
 * MRs.  So they do not map a dma-buf for DMA, claim no peer-to-peer access and
 * never ask for a struct page.  They pin the buffer where its exporter could
 * move it, take the exporter's kernel mapping, and copy.
 *
 * An exporter may revoke a pinned buffer with move_notify.  A gate, held for
 * reading around each bounded access and for writing to shut it, makes that
 * quick: when the callback returns no access runs and none will.  The kernel
 * mapping stays until ib_dmabuf_cpu_close(), since it cannot be given back under
 * the reservation lock, but nobody uses it any more.
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <rdma/ib_dmabuf_cpu.h>
#include <rdma/ib_verbs.h>

#include "umem_dmabuf.h"

#define CREATE_TRACE_POINTS
#include <trace/events/ib_dmabuf_cpu.h>

/*
 * What dma_buf_begin_cpu_access() is told.  It must wait for the exporter's own
 * work on the memory, e.g. a move, but not for rendering that reads from it,
 * which the direction of a CPU that writes would bring along: no fence says when
 * our writes happen either.  dma_buf_end_cpu_access() waits for nothing, and is
 * told that the CPU has written.  Between the two lies the whole life of the
 * registration, so where the caches of GPU and CPU are not coherent, the GPU may
 * see our writes no earlier than at its end.
 */
#define BEGIN_ACCESS	DMA_FROM_DEVICE
#define END_ACCESS	DMA_BIDIRECTIONAL

/*
 * Written once at registration, except: @open under @gate, @pinned and @revoked
 * under the dma-buf's reservation lock.
 */
struct ib_dmabuf_cpu {
	struct ib_device *ibdev;
	struct dma_buf *dmabuf;
	struct dma_buf_attachment *attach;
	void *vmap;
	void *window;
	bool iomem;
	u64 inode;
	u64 offset;
	u64 length;

	bool pinned;
	bool revoked;

	rwlock_t gate;
	bool open;

	atomic64_t copies;
	atomic64_t bytes;
};

static void shut_gate(struct ib_dmabuf_cpu *buf)
{
	write_lock_bh(&buf->gate);
	buf->open = false;
	write_unlock_bh(&buf->gate);
}

static void unpin_locked(struct ib_dmabuf_cpu *buf)
{
	buf->pinned = false;
	dma_buf_unpin(buf->attach);
	ib_umem_dmabuf_uncharge_pin(buf->dmabuf);
}

/*
 * The exporter moves the buffer or takes it away.  Before our own pin it may
 * well do so, and inside it as well: nothing depends on the place of the memory
 * yet.  Afterwards it breaks the pin, which is a revoke.
 */
static void ib_dmabuf_cpu_notify(struct dma_buf_attachment *attach)
{
	struct ib_dmabuf_cpu *buf = attach->importer_priv;

	dma_resv_assert_held(attach->dmabuf->resv);
	if (!buf->pinned)
		return;
	shut_gate(buf);
	WRITE_ONCE(buf->revoked, true);
	unpin_locked(buf);
	trace_ib_dmabuf_cpu_revoke(buf->ibdev, buf->dmabuf, buf->offset,
				   buf->length);
}

static const struct dma_buf_attach_ops ib_dmabuf_cpu_attach_ops = {
	.allow_peer2peer = false,
	.move_notify = ib_dmabuf_cpu_notify,
};

/*
 * An attachment of the exporter's own kind: a dynamic one on a static exporter,
 * or the other way round, would be mapped for DMA right away.
 */
static int attach_buffer(struct ib_dmabuf_cpu *buf)
{
	struct device *dev = &buf->ibdev->dev;

	if (dma_buf_is_dynamic(buf->dmabuf))
		buf->attach = dma_buf_dynamic_attach(buf->dmabuf, dev,
						     &ib_dmabuf_cpu_attach_ops,
						     buf);
	else
		buf->attach = dma_buf_attach(buf->dmabuf, dev);
	if (umem_dmabuf_says_no(buf->attach))
		return ib_umem_dmabuf_refuse(buf->ibdev, "attach",
					     PTR_ERR(buf->attach));
	return 0;
}

/* Keeps the memory in place, if its exporter could move it and policy allows. */
static int pin_buffer(struct ib_dmabuf_cpu *buf)
{
	struct dma_buf *dmabuf = buf->dmabuf;
	int err;

	if (!dma_buf_is_dynamic(dmabuf))
		return 0;
	err = ib_umem_dmabuf_charge_pin(buf->ibdev, dmabuf);
	if (err)
		return err;
	if (dma_resv_lock_interruptible(dmabuf->resv, NULL)) {
		err = ib_umem_dmabuf_refuse(buf->ibdev, "lock", -ERESTARTSYS);
		goto err_uncharge;
	}
	err = dma_buf_pin(buf->attach);
	buf->pinned = !err;
	dma_resv_unlock(dmabuf->resv);
	if (err) {
		err = ib_umem_dmabuf_refuse(buf->ibdev, "pin", err);
		goto err_uncharge;
	}
	return 0;

err_uncharge:
	ib_umem_dmabuf_uncharge_pin(dmabuf);
	return err;
}

static void unpin_buffer(struct ib_dmabuf_cpu *buf)
{
	dma_resv_lock(buf->dmabuf->resv, NULL);
	if (buf->pinned)
		unpin_locked(buf);
	dma_resv_unlock(buf->dmabuf->resv);
}

/*
 * The mapping is a bare pointer, which does not tell memory from I/O memory.
 * What lies where the kernel maps pages or I/O memory one by one is treated as
 * I/O memory: on the architectures that this is built for the accessors do for
 * pages as well.
 */
static int map_buffer(struct ib_dmabuf_cpu *buf)
{
	int err;

	err = dma_buf_begin_cpu_access(buf->dmabuf, BEGIN_ACCESS);
	if (err)
		return ib_umem_dmabuf_refuse(buf->ibdev, "CPU access", err);
	buf->vmap = dma_buf_vmap(buf->dmabuf);
	if (!buf->vmap) {
		dma_buf_end_cpu_access(buf->dmabuf, END_ACCESS);
		return ib_umem_dmabuf_refuse(buf->ibdev, "vmap", -ENOMEM);
	}
	buf->iomem = is_vmalloc_addr(buf->vmap) || is_ioremap_addr(buf->vmap);
	buf->window = buf->vmap + buf->offset;
	return 0;
}

static void unmap_buffer(struct ib_dmabuf_cpu *buf)
{
	dma_buf_vunmap(buf->dmabuf, buf->vmap);
	dma_buf_end_cpu_access(buf->dmabuf, END_ACCESS);
}

/* Lets accesses in, unless the exporter revoked the buffer since it was pinned. */
static int open_gate(struct ib_dmabuf_cpu *buf)
{
	bool revoked;

	dma_resv_lock(buf->dmabuf->resv, NULL);
	revoked = buf->revoked;
	write_lock_bh(&buf->gate);
	buf->open = !revoked;
	write_unlock_bh(&buf->gate);
	dma_resv_unlock(buf->dmabuf->resv);
	if (revoked)
		return ib_umem_dmabuf_refuse(buf->ibdev, "revoke", -ENODEV);
	trace_ib_dmabuf_cpu_open(buf->ibdev, buf->dmabuf, buf->offset,
				 buf->length);
	return 0;
}

/**
 * ib_dmabuf_cpu_get - import a dma-buf for access by the CPU
 * @ibdev: RDMA device; its own struct device becomes the importer
 * @offset: first byte of the window, in bytes from the start of the dma-buf
 * @length: bytes in the window
 * @fd: file descriptor of the dma-buf; may be closed afterwards
 *
 * Pins the buffer if its exporter could move it, waits for what the exporter
 * still has to do to the memory, and maps it.  May sleep, interruptibly where it
 * waits; must not be called with a reservation lock held.
 *
 * Return: the imported buffer, or an ERR_PTR(): those of
 * ib_umem_dmabuf_get_window(), -EOPNOTSUPP if the exporter has no kernel mapping,
 * -ENOMEM if it has but fails to make one, -ENODEV if it revoked the buffer
 * meanwhile, otherwise what policy or exporter refused to attach or pin with.
 * Nothing is held on failure.
 */
struct ib_dmabuf_cpu *ib_dmabuf_cpu_get(struct ib_device *ibdev, u64 offset,
					u64 length, int fd)
{
	struct ib_dmabuf_cpu *buf;
	struct dma_buf *dmabuf;
	int err;

	dmabuf = ib_umem_dmabuf_get_window(ibdev, fd, offset, length);
	if (IS_ERR(dmabuf))
		return ERR_CAST(dmabuf);

	if (!dmabuf->ops->vmap) {
		err = ib_umem_dmabuf_refuse(ibdev, "vmap", -EOPNOTSUPP);
		goto err_put;
	}

	buf = kzalloc(sizeof(*buf), GFP_KERNEL);
	if (!buf) {
		err = ib_umem_dmabuf_refuse(ibdev, "memory", -ENOMEM);
		goto err_put;
	}
	buf->ibdev = ibdev;
	buf->dmabuf = dmabuf;
	buf->inode = file_inode(dmabuf->file)->i_ino;
	buf->offset = offset;
	buf->length = length;
	rwlock_init(&buf->gate);

	/* From here on the exporter may call back, even before attach returns. */
	err = attach_buffer(buf);
	if (err)
		goto err_free;
	err = pin_buffer(buf);
	if (err)
		goto err_detach;
	err = map_buffer(buf);
	if (err)
		goto err_unpin;
	err = open_gate(buf);
	if (err)
		goto err_unmap;
	return buf;

err_unmap:
	unmap_buffer(buf);
err_unpin:
	unpin_buffer(buf);
err_detach:
	dma_buf_detach(dmabuf, buf->attach);
err_free:
	kfree(buf);
err_put:
	dma_buf_put(dmabuf);
	return ERR_PTR(err);
}
EXPORT_SYMBOL_GPL(ib_dmabuf_cpu_get);

/**
 * ib_dmabuf_cpu_close - give the dma-buf back
 * @buf: buffer from ib_dmabuf_cpu_get()
 *
 * Waits for accesses that run; later ones get -EKEYREVOKED, so that objects
 * which still refer to @buf do no harm.  May sleep; must not be called with a
 * reservation lock held.  Follow it by ib_dmabuf_cpu_free() when the last of
 * these objects goes.
 */
void ib_dmabuf_cpu_close(struct ib_dmabuf_cpu *buf)
{
	shut_gate(buf);
	trace_ib_dmabuf_cpu_close(buf->ibdev, buf->dmabuf, buf->offset,
				  buf->length);
	unmap_buffer(buf);
	unpin_buffer(buf);
	dma_buf_detach(buf->dmabuf, buf->attach);
	dma_buf_put(buf->dmabuf);
}
EXPORT_SYMBOL_GPL(ib_dmabuf_cpu_close);

/**
 * ib_dmabuf_cpu_free - free a closed buffer
 * @buf: buffer after ib_dmabuf_cpu_close(), or NULL
 *
 * Any context.
 */
void ib_dmabuf_cpu_free(struct ib_dmabuf_cpu *buf)
{
	kfree(buf);
}
EXPORT_SYMBOL_GPL(ib_dmabuf_cpu_free);

/* May @length bytes at @offset of the window be accessed?  Under the gate. */
static int check_access(const struct ib_dmabuf_cpu *buf, u64 offset,
			size_t length)
{
	if (offset > buf->length || length > buf->length - offset)
		return -EFAULT;
	return buf->open ? 0 : -EKEYREVOKED;
}

static void count_access(struct ib_dmabuf_cpu *buf, size_t length)
{
	atomic64_inc(&buf->copies);
	atomic64_add(length, &buf->bytes);
}

static void __iomem *io_window(const struct ib_dmabuf_cpu *buf, u64 offset)
{
	return (void __iomem *)(buf->window + offset);
}

/**
 * ib_dmabuf_cpu_write - copy to the buffer
 * @buf: the buffer
 * @offset: where to, in bytes from the start of the window
 * @src: where from
 * @length: bytes; keep it to a packet, since a revoke waits for it
 *
 * The data is on its way to the buffer before any later store of this CPU, even
 * through a write-combining mapping: a completion that is written afterwards does
 * not overtake it.  Process context or softirq; does not sleep.
 *
 * Return: 0, -EFAULT beyond the window, or -EKEYREVOKED after the exporter took
 * the memory away or the buffer was closed.
 */
int ib_dmabuf_cpu_write(struct ib_dmabuf_cpu *buf, u64 offset,
			const void *src, size_t length)
{
	int err;

	read_lock_bh(&buf->gate);
	err = check_access(buf, offset, length);
	if (!err) {
		if (buf->iomem) {
			memcpy_toio(io_window(buf, offset), src, length);
			/* write-combining buffers drain before the completion */
			wmb();
		} else {
			memcpy(buf->window + offset, src, length);
		}
		count_access(buf, length);
	}
	read_unlock_bh(&buf->gate);
	return err;
}
EXPORT_SYMBOL_GPL(ib_dmabuf_cpu_write);

/**
 * ib_dmabuf_cpu_read - copy from the buffer
 * @buf: the buffer
 * @offset: where from, in bytes from the start of the window
 * @dst: where to
 * @length: bytes; keep it to a packet, since a revoke waits for it
 *
 * The memory may change at any time: compute checksums over @dst.  Process
 * context or softirq; does not sleep.
 *
 * Return: 0, -EFAULT beyond the window, or -EKEYREVOKED after the exporter took
 * the memory away or the buffer was closed.  @dst is untouched on failure.
 */
int ib_dmabuf_cpu_read(struct ib_dmabuf_cpu *buf, u64 offset, void *dst,
		       size_t length)
{
	int err;

	read_lock_bh(&buf->gate);
	err = check_access(buf, offset, length);
	if (!err) {
		if (buf->iomem)
			memcpy_fromio(dst, io_window(buf, offset), length);
		else
			memcpy(dst, buf->window + offset, length);
		count_access(buf, length);
	}
	read_unlock_bh(&buf->gate);
	return err;
}
EXPORT_SYMBOL_GPL(ib_dmabuf_cpu_read);

/* One access of 8 bytes each, in the byte order of the CPU. */
static u64 load64(const struct ib_dmabuf_cpu *buf, u64 offset)
{
	if (buf->iomem)
		return __raw_readq(io_window(buf, offset));
	return READ_ONCE(*(u64 *)(buf->window + offset));
}

static void store64(const struct ib_dmabuf_cpu *buf, u64 offset, u64 value)
{
	if (buf->iomem) {
		__raw_writeq(value, io_window(buf, offset));
		/* write-combining buffers drain before the completion */
		wmb();
	} else {
		WRITE_ONCE(*(u64 *)(buf->window + offset), value);
	}
}

static int check_atomic(const struct ib_dmabuf_cpu *buf, u64 offset)
{
	if (!IS_ALIGNED(buf->offset + offset, sizeof(u64)))
		return -EINVAL;
	return check_access(buf, offset, sizeof(u64));
}

/**
 * ib_dmabuf_cpu_fetch_add - add to a 64 bit word of the buffer
 * @buf: the buffer
 * @offset: of the word, in bytes from the start of the window
 * @add: what to add, in the byte order of the CPU
 * @orig: gets the value that the word had
 *
 * Atomic with respect to other callers that hold the same lock of the device
 * driver's, which is what IB_ATOMIC_HCA promises; not to the exporter.  Process
 * context or softirq; does not sleep.
 *
 * Return: 0, -EINVAL if the word is not aligned, -EFAULT beyond the window, or
 * -EKEYREVOKED after the exporter took the memory away or the buffer was closed.
 */
int ib_dmabuf_cpu_fetch_add(struct ib_dmabuf_cpu *buf, u64 offset, u64 add,
			    u64 *orig)
{
	int err;

	read_lock_bh(&buf->gate);
	err = check_atomic(buf, offset);
	if (!err) {
		*orig = load64(buf, offset);
		store64(buf, offset, *orig + add);
		count_access(buf, sizeof(u64));
	}
	read_unlock_bh(&buf->gate);
	return err;
}
EXPORT_SYMBOL_GPL(ib_dmabuf_cpu_fetch_add);

/**
 * ib_dmabuf_cpu_cmp_swap - compare and swap a 64 bit word of the buffer
 * @buf: the buffer
 * @offset: of the word, in bytes from the start of the window
 * @compare: value that the word must have to be replaced
 * @swap: what to replace it by, in the byte order of the CPU
 * @orig: gets the value that the word had
 *
 * Context and atomicity are those of ib_dmabuf_cpu_fetch_add().
 *
 * Return: 0, -EINVAL if the word is not aligned, -EFAULT beyond the window, or
 * -EKEYREVOKED after the exporter took the memory away or the buffer was closed.
 */
int ib_dmabuf_cpu_cmp_swap(struct ib_dmabuf_cpu *buf, u64 offset, u64 compare,
			   u64 swap, u64 *orig)
{
	int err;

	read_lock_bh(&buf->gate);
	err = check_atomic(buf, offset);
	if (!err) {
		*orig = load64(buf, offset);
		if (*orig == compare)
			store64(buf, offset, swap);
		count_access(buf, sizeof(u64));
	}
	read_unlock_bh(&buf->gate);
	return err;
}
EXPORT_SYMBOL_GPL(ib_dmabuf_cpu_cmp_swap);

/**
 * ib_dmabuf_cpu_query - describe a buffer for resource tracking
 * @buf: the buffer, not closed
 * @info: gets the description
 *
 * A snapshot without locks, so that an exporter which hangs does not hang the
 * administrator.  Any context.
 */
void ib_dmabuf_cpu_query(const struct ib_dmabuf_cpu *buf,
			 struct ib_dmabuf_cpu_info *info)
{
	info->exporter = buf->dmabuf->exp_name;
	info->state = READ_ONCE(buf->revoked) ? "revoked" :
		      dma_buf_is_dynamic(buf->dmabuf) ? "pinned" : "static";
	info->inode = buf->inode;
	info->offset = buf->offset;
	info->copies = atomic64_read(&buf->copies);
	info->bytes = atomic64_read(&buf->bytes);
}
EXPORT_SYMBOL_GPL(ib_dmabuf_cpu_query);
