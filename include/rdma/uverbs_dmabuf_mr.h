/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * REG_DMABUF_MR for drivers.
 *
 * The method belongs to the object MR, and a driver brings it along in its own
 * definitions, which ib_uverbs merges into its own for the driver's devices.  In
 * a file of the driver::
 *
 *	static struct ib_mr *foo_reg_dmabuf_mr(struct ib_pd *pd, u64 offset,
 *					       u64 length, u64 iova, int fd,
 *					       int access);
 *
 *	DECLARE_UVERBS_DMABUF_MR(foo_dmabuf_mr, foo_reg_dmabuf_mr);
 *
 *	const struct uapi_definition foo_dmabuf_defs[] = {
 *		UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_MR, &foo_dmabuf_mr),
 *		{}
 *	};
 *
 * and, before ib_register_device()::
 *
 *	dev->ib_dev.driver_def = foo_dmabuf_defs;
 *
 * A driver that has definitions already adds the CHAIN line to them.
 */

#ifndef _RDMA_UVERBS_DMABUF_MR_H
#define _RDMA_UVERBS_DMABUF_MR_H

#include <linux/kernel.h>
#include <linux/types.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/uverbs_ioctl.h>

struct ib_mr;
struct ib_pd;

/**
 * typedef ib_reg_dmabuf_mr_fn - how a driver registers a dma-buf MR
 * @pd: protection domain of the new MR
 * @offset: first byte of the window, in bytes from the start of the dma-buf
 * @length: bytes in the window, as the application says: may be 0
 * @iova: address that the wire uses for @offset; congruent modulo PAGE_SIZE
 * @fd: the dma-buf's file descriptor, not looked at yet
 * @access: checked subset of &enum ib_access_flags
 *
 * Called from uverbs_reg_dmabuf_mr() in the context of the application's
 * ioctl; may sleep, but only interruptibly where it waits for an exporter.
 * The first thing to do is ib_umem_dmabuf_get() or one of its kin, which looks
 * at @fd, the window and @length in the order that the ABI asks for.
 * The driver sets lkey and rkey.  It must not touch the PD's use count.
 *
 * Return: the new MR, or an ERR_PTR() with everything undone.
 */
typedef struct ib_mr *(*ib_reg_dmabuf_mr_fn)(struct ib_pd *pd, u64 offset,
					     u64 length, u64 iova, int fd,
					     int access);

/* The rights that a dma-buf MR can have. */
#define UVERBS_REG_DMABUF_MR_ACCESS                                            \
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |                       \
	 IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC |                    \
	 IB_ACCESS_RELAXED_ORDERING)

#define UVERBS_REG_DMABUF_MR_NUM_ATTRS 9

extern const struct uverbs_attr_def *const
	uverbs_reg_dmabuf_mr_attrs[UVERBS_REG_DMABUF_MR_NUM_ATTRS];

int uverbs_reg_dmabuf_mr(struct uverbs_attr_bundle *attrs,
			 ib_reg_dmabuf_mr_fn reg);
void uverbs_untrack_dmabuf_mr(struct ib_mr *mr);

/**
 * DECLARE_UVERBS_DMABUF_MR - the method, for a driver's definitions
 * @_name: name of the object tree to chain
 * @_reg: the driver's &typedef ib_reg_dmabuf_mr_fn
 */
#define DECLARE_UVERBS_DMABUF_MR(_name, _reg)				\
	static int _name##_handler(struct uverbs_attr_bundle *attrs)	\
	{								\
		return uverbs_reg_dmabuf_mr(attrs, _reg);		\
	}								\
	static const struct uverbs_method_def _name##_method = {	\
		.id = UVERBS_METHOD_REG_DMABUF_MR,			\
		.handler = _name##_handler,				\
		.num_attrs = UVERBS_REG_DMABUF_MR_NUM_ATTRS,		\
		.attrs = &uverbs_reg_dmabuf_mr_attrs,			\
	};								\
	static const struct uverbs_method_def *const			\
		_name##_methods[] = { &_name##_method };		\
	static const struct uverbs_object_def _name = {			\
		.id = UVERBS_OBJECT_MR,					\
		.num_methods = ARRAY_SIZE(_name##_methods),		\
		.methods = &_name##_methods,				\
	}

#endif /* _RDMA_UVERBS_DMABUF_MR_H */
