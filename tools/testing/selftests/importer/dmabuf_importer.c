// SPDX-License-Identifier: GPL-2.0
/*
 * A driver of a device that does not exist, for tests of ib_umem_dmabuf.
 *
 * It takes each of the three importer contracts as an RDMA driver takes them,
 * on the word of a user space program instead of an application's MRs: dynamic
 * (move_notify unmaps, a fault maps again), pinned, and pinned revocable.  What
 * the device would do by DMA, the CPU does at the bus addresses that the core
 * hands out, so that a test sees whether they are right and not only whether
 * they look right.
 *
 * Locks: an import appears and disappears under importer->lock for write; the
 * rest happens under it for read and, as in a driver, under the reservation
 * lock of the dma-buf.  move_notify and the revoke callback run with the latter
 * held and take no other lock.
 */
#include <linux/delay.h>
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/highmem.h>
#include <linux/io.h>
#include <linux/iommu.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/rwsem.h>
#include <linux/uaccess.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_umem_dmabuf.h>
#include <rdma/ib_verbs.h>

#include "dmabuf_importer.h"

/* Segments that are read in one go */
#define SEGMENTS_MAX	65536u

static char *dma_device;
module_param(dma_device, charp, 0444);
MODULE_PARM_DESC(dma_device,
		 "PCI device that does the DMA, for example one behind an IOMMU; default: a platform device of our own");

static struct platform_device *platform;
static struct device *dma;
static struct ib_device *ibdev;

/**
 * struct importer - an open file
 * @lock: protects @umem
 * @umem: the import, or NULL
 * @notify_delay_ms: see &struct dmabuf_importer_create
 * @notifies: move_notify calls
 * @revokes: calls of the revoke callback
 */
struct importer {
	struct rw_semaphore lock;
	struct ib_umem_dmabuf *umem;
	u32 notify_delay_ms;
	atomic_t notifies;
	atomic_t revokes;
};

static void importer_move_notify(struct dma_buf_attachment *attach)
{
	struct ib_umem_dmabuf *umem = attach->importer_priv;
	struct importer *importer = umem->private;

	dma_resv_assert_held(attach->dmabuf->resv);
	atomic_inc(&importer->notifies);
	msleep(importer->notify_delay_ms);
	ib_umem_dmabuf_unmap_pages(umem);
}

static const struct dma_buf_attach_ops importer_p2p_ops = {
	.allow_peer2peer = true,
	.move_notify = importer_move_notify,
};

static const struct dma_buf_attach_ops importer_system_ops = {
	.allow_peer2peer = false,
	.move_notify = importer_move_notify,
};

static void importer_revoke(void *priv)
{
	struct importer *importer = priv;

	dma_resv_assert_held(importer->umem->dmabuf->resv);
	atomic_inc(&importer->revokes);
	msleep(importer->notify_delay_ms);
}

static struct ib_umem_dmabuf *
importer_get(const struct dmabuf_importer_create *args)
{
	switch (args->contract) {
	case DMABUF_IMPORTER_DYNAMIC:
		return ib_umem_dmabuf_get(ibdev, args->offset, args->length,
					  args->fd, args->access,
					  args->flags & DMABUF_IMPORTER_NO_P2P ?
						&importer_system_ops :
						&importer_p2p_ops);
	case DMABUF_IMPORTER_PINNED:
		return ib_umem_dmabuf_get_pinned(ibdev, args->offset,
						 args->length, args->fd,
						 args->access);
	case DMABUF_IMPORTER_REVOCABLE:
		return ib_umem_dmabuf_get_pinned_revocable_and_lock(ibdev,
				args->offset, args->length, args->fd,
				args->access);
	default:
		return ERR_PTR(-EINVAL);
	}
}

static int importer_create(struct importer *importer, void __user *arg)
{
	struct dmabuf_importer_create args;
	struct ib_umem_dmabuf *umem;

	if (copy_from_user(&args, arg, sizeof(args)))
		return -EFAULT;
	if (args.pad || args.flags & ~DMABUF_IMPORTER_NO_P2P)
		return -EINVAL;
	if (args.flags && args.contract != DMABUF_IMPORTER_DYNAMIC)
		return -EINVAL;
	if (importer->umem)
		return -EBUSY;

	umem = importer_get(&args);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	importer->umem = umem;
	importer->notify_delay_ms = args.notify_delay_ms;

	if (args.contract == DMABUF_IMPORTER_REVOCABLE) {
		ib_umem_dmabuf_set_revoke_locked(umem, importer_revoke,
						 importer);
		ib_umem_dmabuf_revoke_unlock(umem);
	} else {
		/* Nobody calls a dynamic import before it is mapped. */
		umem->private = importer;
	}
	return 0;
}

static int importer_release(struct importer *importer)
{
	if (!importer->umem)
		return -ENXIO;
	ib_umem_dmabuf_release(importer->umem);
	importer->umem = NULL;
	return 0;
}

static int importer_map(struct importer *importer)
{
	int ret;

	ib_umem_dmabuf_revoke_lock(importer->umem);
	ret = ib_umem_dmabuf_map_pages(importer->umem);
	ib_umem_dmabuf_revoke_unlock(importer->umem);
	return ret;
}

static void importer_unmap(struct importer *importer)
{
	ib_umem_dmabuf_revoke_lock(importer->umem);
	ib_umem_dmabuf_unmap_pages(importer->umem);
	ib_umem_dmabuf_revoke_unlock(importer->umem);
}

static void importer_state(struct ib_umem_dmabuf *umem,
			   struct dmabuf_importer_info *info)
{
	struct ib_umem_dmabuf_info core;

	ib_umem_dmabuf_query(umem, &core);
	info->state = DMABUF_IMPORTER_IMPORTED;
	if (core.mapped)
		info->state |= DMABUF_IMPORTER_MAPPED;
	if (core.pinned)
		info->state |= DMABUF_IMPORTER_IS_PINNED;
	if (core.revoked)
		info->state |= DMABUF_IMPORTER_REVOKED;
	if (core.peer2peer)
		info->state |= DMABUF_IMPORTER_P2P;
	info->maps = core.maps;
	info->moves = core.moves;
	info->map_errors = core.map_errors;
	if (core.mapped) {
		info->segments = umem->umem.nmap;
		info->page_size =
			ib_umem_dmabuf_find_best_pgsz(umem, info->page_sizes,
						      info->iova);
	}
}

static int importer_info(struct importer *importer, void __user *arg)
{
	struct dmabuf_importer_info info, in;

	if (copy_from_user(&in, arg, sizeof(in)))
		return -EFAULT;
	info = (struct dmabuf_importer_info) {
		.iova = in.iova,
		.page_sizes = in.page_sizes ?: PAGE_MASK,
	};
	if (importer->umem) {
		ib_umem_dmabuf_revoke_lock(importer->umem);
		importer_state(importer->umem, &info);
		ib_umem_dmabuf_revoke_unlock(importer->umem);
	}
	info.notifies = atomic_read(&importer->notifies);
	info.revokes = atomic_read(&importer->revokes);
	return copy_to_user(arg, &info, sizeof(info)) ? -EFAULT : 0;
}

/* Collects the part of a list that was asked for. */
struct segment_list {
	struct dmabuf_importer_segment *to;
	u64 skip;
	u32 room;
	u32 count;
};

/* False when there is no more room. */
static bool segment_add(struct segment_list *list, u64 address, u64 length)
{
	if (list->skip) {
		list->skip--;
		return true;
	}
	if (list->count == list->room)
		return false;
	list->to[list->count].address = address;
	list->to[list->count++].length = length;
	return true;
}

static void importer_list(const struct ib_umem_dmabuf *umem, u32 kind,
			  u64 page_size, struct segment_list *list)
{
	struct ib_umem_dmabuf_run run = {};
	struct scatterlist *sg;
	u64 block;
	int i;

	switch (kind) {
	case DMABUF_IMPORTER_SG:
		for_each_sg(umem->umem.sg_head.sgl, sg, umem->umem.nmap, i)
			if (!segment_add(list, sg_dma_address(sg),
					 sg_dma_len(sg)))
				return;
		return;
	case DMABUF_IMPORTER_RUNS:
		while (ib_umem_dmabuf_next_run(umem, &run))
			if (!segment_add(list, run.dma, run.length))
				return;
		return;
	case DMABUF_IMPORTER_BLOCKS:
		while (ib_umem_dmabuf_next_run(umem, &run))
			for (block = ALIGN_DOWN(run.dma, page_size);
			     block < run.dma + run.length; block += page_size)
				if (!segment_add(list, block, page_size))
					return;
		return;
	}
}

static bool importer_segments_valid(const struct dmabuf_importer_segments *args)
{
	if (args->kind != DMABUF_IMPORTER_BLOCKS)
		return args->kind <= DMABUF_IMPORTER_RUNS && !args->page_size;
	return is_power_of_2(args->page_size) && args->page_size >= PAGE_SIZE;
}

static int importer_segments(struct importer *importer, void __user *arg)
{
	struct dmabuf_importer_segments args;
	struct segment_list list = {};
	int ret = -EFAULT;

	if (copy_from_user(&args, arg, sizeof(args)))
		return -EFAULT;
	if (!importer_segments_valid(&args))
		return -EINVAL;
	list.skip = args.first;
	list.room = min(args.count, SEGMENTS_MAX);
	list.to = kvmalloc_array(list.room, sizeof(*list.to), GFP_KERNEL);
	if (!list.to)
		return -ENOMEM;

	ib_umem_dmabuf_revoke_lock(importer->umem);
	if (importer->umem->ready) {
		importer_list(importer->umem, args.kind, args.page_size, &list);
		ret = 0;
	}
	ib_umem_dmabuf_revoke_unlock(importer->umem);

	args.count = list.count;
	if (!ret && (copy_to_user(u64_to_user_ptr(args.ptr), list.to,
				  list.count * sizeof(*list.to)) ||
		     copy_to_user(arg, &args, sizeof(args))))
		ret = -EFAULT;
	kvfree(list.to);
	return ret;
}

/* One access that stays inside a page. */
static int importer_touch(u64 address, void *buf, size_t length, bool write)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(dma);
	/* Without an IOMMU in between a bus address is a physical address. */
	phys_addr_t phys = domain ? iommu_iova_to_phys(domain, address) : address;
	void __iomem *io;
	void *page;

	if (!phys)
		return -EIO;
	if (pfn_valid(PHYS_PFN(phys))) {
		page = kmap(pfn_to_page(PHYS_PFN(phys)));
		if (write)
			memcpy(page + offset_in_page(phys), buf, length);
		else
			memcpy(buf, page + offset_in_page(phys), length);
		kunmap(pfn_to_page(PHYS_PFN(phys)));
		return 0;
	}

	/* As the GPU's driver maps it: two types for one page are an error. */
	io = ioremap_wc(phys, length);
	if (!io)
		return -EIO;
	if (write)
		memcpy_toio(io, buf, length);
	else
		memcpy_fromio(buf, io, length);
	iounmap(io);
	return 0;
}

static int importer_dma(const struct ib_umem_dmabuf *umem, u64 offset,
			void *buf, size_t length, bool write)
{
	struct ib_umem_dmabuf_run run = {};

	while (length && ib_umem_dmabuf_next_run(umem, &run)) {
		while (length && offset < run.pos + run.length) {
			u64 address = run.dma + (offset - run.pos);
			u64 left = run.pos + run.length - offset;
			size_t part = min3((u64)length, left,
				(u64)(PAGE_SIZE - offset_in_page(address)));
			int ret = importer_touch(address, buf, part, write);

			if (ret)
				return ret;
			buf += part;
			offset += part;
			length -= part;
		}
	}
	return length ? -EIO : 0;
}

static int importer_access_locked(struct importer *importer,
				  const struct dmabuf_importer_access *args,
				  void *buf)
{
	struct ib_umem_dmabuf *umem = importer->umem;
	int ret;

	if (umem->revoked)
		return -EACCES;
	if (args->flags & DMABUF_IMPORTER_FAULT) {
		ret = ib_umem_dmabuf_map_pages(umem);
		if (ret)
			return ret;
	}
	if (!umem->ready)
		return -EFAULT;
	return importer_dma(umem, args->offset, buf, args->length,
			    args->flags & DMABUF_IMPORTER_WRITE);
}

static int importer_access(struct importer *importer, void __user *arg)
{
	struct dmabuf_importer_access args;
	void __user *user;
	void *buf;
	int ret = 0;

	if (copy_from_user(&args, arg, sizeof(args)))
		return -EFAULT;
	if (args.flags & ~(DMABUF_IMPORTER_WRITE | DMABUF_IMPORTER_FAULT) ||
	    args.length > DMABUF_IMPORTER_ACCESS_MAX ||
	    args.length > importer->umem->umem.length ||
	    args.offset > importer->umem->umem.length - args.length)
		return -EINVAL;

	user = u64_to_user_ptr(args.ptr);
	buf = kvmalloc(args.length, GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	if (args.flags & DMABUF_IMPORTER_WRITE &&
	    copy_from_user(buf, user, args.length))
		ret = -EFAULT;
	if (!ret) {
		ib_umem_dmabuf_revoke_lock(importer->umem);
		ret = importer_access_locked(importer, &args, buf);
		ib_umem_dmabuf_revoke_unlock(importer->umem);
	}
	if (!ret && !(args.flags & DMABUF_IMPORTER_WRITE) &&
	    copy_to_user(user, buf, args.length))
		ret = -EFAULT;
	kvfree(buf);
	return ret;
}

static long importer_ioctl_shared(struct importer *importer, unsigned int cmd,
				  void __user *arg)
{
	if (cmd == DMABUF_IMPORTER_IOC_INFO)
		return importer_info(importer, arg);
	if (!importer->umem)
		return -ENXIO;

	switch (cmd) {
	case DMABUF_IMPORTER_IOC_MAP:
		return importer_map(importer);
	case DMABUF_IMPORTER_IOC_UNMAP:
		importer_unmap(importer);
		return 0;
	case DMABUF_IMPORTER_IOC_REVOKE:
		ib_umem_dmabuf_revoke(importer->umem);
		return 0;
	case DMABUF_IMPORTER_IOC_SEGMENTS:
		return importer_segments(importer, arg);
	case DMABUF_IMPORTER_IOC_ACCESS:
		return importer_access(importer, arg);
	default:
		return -ENOTTY;
	}
}

static long importer_ioctl(struct file *file, unsigned int cmd,
			   unsigned long arg)
{
	struct importer *importer = file->private_data;
	void __user *user = (void __user *)arg;
	long ret;

	switch (cmd) {
	case DMABUF_IMPORTER_IOC_CREATE:
	case DMABUF_IMPORTER_IOC_RELEASE:
		if (down_write_killable(&importer->lock))
			return -EINTR;
		if (cmd == DMABUF_IMPORTER_IOC_CREATE)
			ret = importer_create(importer, user);
		else
			ret = importer_release(importer);
		up_write(&importer->lock);
		return ret;
	default:
		if (down_read_killable(&importer->lock))
			return -EINTR;
		ret = importer_ioctl_shared(importer, cmd, user);
		up_read(&importer->lock);
		return ret;
	}
}

static int importer_open(struct inode *inode, struct file *file)
{
	struct importer *importer = kzalloc(sizeof(*importer), GFP_KERNEL);

	if (!importer)
		return -ENOMEM;
	init_rwsem(&importer->lock);
	file->private_data = importer;
	return 0;
}

static int importer_close(struct inode *inode, struct file *file)
{
	struct importer *importer = file->private_data;

	if (importer->umem)
		ib_umem_dmabuf_release(importer->umem);
	kfree(importer);
	return 0;
}

static const struct file_operations importer_fops = {
	.owner = THIS_MODULE,
	.open = importer_open,
	.release = importer_close,
	.unlocked_ioctl = importer_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

static struct miscdevice importer_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "dmabuf_importer",
	.fops = &importer_fops,
};

/* An RDMA device that can do nothing: no verb of it is ever called. */

static int importer_query_device(struct ib_device *device,
				 struct ib_device_attr *attr,
				 struct ib_udata *udata)
{
	return 0;
}

static int importer_query_port(struct ib_device *device, u8 port,
			       struct ib_port_attr *attr)
{
	attr->state = IB_PORT_DOWN;
	attr->phys_state = IB_PORT_PHYS_STATE_DISABLED;
	return 0;
}

static int importer_port_immutable(struct ib_device *device, u8 port,
				   struct ib_port_immutable *immutable)
{
	return 0;
}

static const struct ib_device_ops importer_dev_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.query_device = importer_query_device,
	.query_port = importer_query_port,
	.get_port_immutable = importer_port_immutable,
};

static int importer_register_ibdev(void)
{
	int ret;

	ibdev = _ib_alloc_device(sizeof(*ibdev));
	if (!ibdev)
		return -ENOMEM;
	ibdev->node_type = RDMA_NODE_UNSPECIFIED;
	ibdev->phys_port_cnt = 1;
	ibdev->dev.parent = dma;
	ib_set_device_ops(ibdev, &importer_dev_ops);
	ret = ib_register_device(ibdev, "importer%d", dma);
	if (ret)
		ib_dealloc_device(ibdev);
	return ret;
}

/* Returns a reference on the device that does the DMA. */
static struct device *importer_dma_device(void)
{
	struct device *dev;
	int ret;

	if (dma_device) {
		dev = bus_find_device_by_name(&pci_bus_type, NULL, dma_device);
		return dev ?: ERR_PTR(-ENODEV);
	}

	platform = platform_device_register_simple("dmabuf_importer",
						   PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(platform))
		return ERR_CAST(platform);
	ret = dma_coerce_mask_and_coherent(&platform->dev, DMA_BIT_MASK(64));
	if (ret) {
		platform_device_unregister(platform);
		return ERR_PTR(ret);
	}
	dma_set_max_seg_size(&platform->dev, UINT_MAX);
	return get_device(&platform->dev);
}

static void importer_put_dma_device(void)
{
	put_device(dma);
	if (!dma_device)
		platform_device_unregister(platform);
}

static int __init importer_init(void)
{
	int ret;

	dma = importer_dma_device();
	if (IS_ERR(dma))
		return PTR_ERR(dma);
	ret = importer_register_ibdev();
	if (ret)
		goto err_dma;
	ret = misc_register(&importer_misc);
	if (ret)
		goto err_ibdev;
	return 0;

err_ibdev:
	ib_unregister_device(ibdev);
	ib_dealloc_device(ibdev);
err_dma:
	importer_put_dma_device();
	return ret;
}

static void __exit importer_exit(void)
{
	misc_deregister(&importer_misc);
	ib_unregister_device(ibdev);
	ib_dealloc_device(ibdev);
	importer_put_dma_device();
}

module_init(importer_init);
module_exit(importer_exit);

MODULE_DESCRIPTION("Test importer for ib_umem_dmabuf");
MODULE_LICENSE("GPL");
