/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
#ifndef _RDMA_UVERBS_DMABUF_MR_H
#define _RDMA_UVERBS_DMABUF_MR_H

#include <linux/types.h>
#include <rdma/uverbs_ioctl.h>
#include <rdma/uverbs_types.h>

struct ib_mr;
struct ib_pd;

/**
 * typedef ib_reg_dmabuf_mr_fn - how a driver registers a dma-buf MR
 * @pd: protection domain of the new MR
 * @offset: first byte of the window, in bytes from the start of the dma-buf
 * @length: bytes in the window, never 0
 * @iova: address that the wire uses for @offset; congruent modulo PAGE_SIZE
 * @fd: the dma-buf's file descriptor, not looked at yet
 * @access: checked subset of &enum ib_access_flags
 *
 * Called from uverbs_reg_dmabuf_mr() in the context of the application's
 * ioctl; may sleep, but only interruptibly where it waits for an exporter.
 * The driver sets lkey and rkey.  It must not touch the PD's use count.
 *
 * Return: the new MR, or an ERR_PTR() with everything undone.
 */
typedef struct ib_mr *(*ib_reg_dmabuf_mr_fn)(struct ib_pd *pd, u64 offset,
					     u64 length, u64 iova, int fd,
					     int access);

#define UVERBS_REG_DMABUF_MR_NUM_ATTRS 9

extern const struct uverbs_attr_def *const
	uverbs_reg_dmabuf_mr_attrs[UVERBS_REG_DMABUF_MR_NUM_ATTRS];

int uverbs_reg_dmabuf_mr(struct uverbs_attr_bundle *attrs,
			 ib_reg_dmabuf_mr_fn reg);

#endif /* _RDMA_UVERBS_DMABUF_MR_H */
