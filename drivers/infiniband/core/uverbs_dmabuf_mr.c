// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The uverbs method REG_DMABUF_MR, for the definitions of drivers.
 *
 * The order of the checks and their errnos are ABI: libraries probe with a bad
 * file descriptor and read from the errno whether a device knows dma-bufs.
 */

#include <linux/completion.h>
#include <linux/export.h>
#include <linux/overflow.h>
#include <rdma/ib_umem_dmabuf.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_dmabuf_mr.h>
#include <rdma/uverbs_std_types.h>

#define UVERBS_MODULE_NAME ib_umem_dmabuf
#include <rdma/uverbs_named_ioctl.h>

#include "restrack.h"

/* What the application asks for. */
struct reg_dmabuf_mr {
	u64 offset;
	u64 length;
	u64 iova;
	u32 fd;
	u32 access;
};

static int reg_dmabuf_mr_read(struct uverbs_attr_bundle *attrs,
			      struct reg_dmabuf_mr *req)
{
	unsigned long end;
	int ret;

	ret = uverbs_copy_from(&req->offset, attrs,
			       UVERBS_ATTR_REG_DMABUF_MR_OFFSET);
	if (ret)
		return ret;
	ret = uverbs_copy_from(&req->length, attrs,
			       UVERBS_ATTR_REG_DMABUF_MR_LENGTH);
	if (ret)
		return ret;
	ret = uverbs_copy_from(&req->iova, attrs,
			       UVERBS_ATTR_REG_DMABUF_MR_IOVA);
	if (ret)
		return ret;
	if ((req->offset ^ req->iova) & ~PAGE_MASK)
		return -EINVAL;

	ret = uverbs_copy_from(&req->fd, attrs, UVERBS_ATTR_REG_DMABUF_MR_FD);
	if (ret)
		return ret;
	ret = uverbs_get_flags32(&req->access, attrs,
				 UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS,
				 UVERBS_REG_DMABUF_MR_ACCESS);
	if (ret)
		return ret;
	ret = ib_check_mr_access(req->access);
	if (ret)
		return ret;

	/* In the type that sizes have in the kernel, which may be 32 bit. */
	return check_add_overflow(req->offset, req->length, &end) ? -EINVAL : 0;
}

/**
 * uverbs_reg_dmabuf_mr - register a memory region on a dma-buf
 * @attrs: the method's attributes
 * @reg: how the driver does it; NULL if this device of the driver's cannot
 *
 * The handler of the method, but for the driver's part.  It makes the MR known
 * to the PD, to resource tracking and to the application; after @reg has
 * succeeded nothing can fail but the copy of the keys to the application, in
 * which case the MR is deregistered as if the application had asked for it.
 *
 * Context: the application's ioctl; may sleep.
 * Return: 0 or an errno of the contract with user space.
 */
int uverbs_reg_dmabuf_mr(struct uverbs_attr_bundle *attrs,
			 ib_reg_dmabuf_mr_fn reg)
{
	struct ib_uobject *uobj =
		uverbs_attr_get_uobject(attrs,
					UVERBS_ATTR_REG_DMABUF_MR_HANDLE);
	struct ib_pd *pd =
		uverbs_attr_get_obj(attrs,
				    UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE);
	struct reg_dmabuf_mr req = {};
	struct ib_mr *mr;
	int ret;

	if (!reg)
		return ib_umem_dmabuf_refuse(pd->device, "device",
					     -EOPNOTSUPP);

	ret = reg_dmabuf_mr_read(attrs, &req);
	if (ret)
		return ib_umem_dmabuf_refuse(pd->device, "arguments", ret);

	mr = reg(pd, req.offset, req.length, req.iova, req.fd, req.access);
	if (IS_ERR(mr))
		return ib_umem_dmabuf_refuse(pd->device, "driver", PTR_ERR(mr));

	mr->device = pd->device;
	mr->pd = pd;
	mr->type = IB_MR_TYPE_USER;
	mr->iova = req.iova;
	mr->length = req.length;
	mr->dm = NULL;
	mr->sig_attrs = NULL;
	mr->uobject = uobj;
	atomic_inc(&pd->usecnt);

	rdma_restrack_new(&mr->res, RDMA_RESTRACK_MR);
	rdma_restrack_set_name(&mr->res, NULL);
	rdma_restrack_add(&mr->res);
	uobj->object = mr;

	uverbs_finalize_uobj_create(attrs, UVERBS_ATTR_REG_DMABUF_MR_HANDLE);

	ret = uverbs_copy_to(attrs, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY,
			     &mr->lkey, sizeof(mr->lkey));
	if (ret)
		return ret;
	return uverbs_copy_to(attrs, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY,
			      &mr->rkey, sizeof(mr->rkey));
}
EXPORT_SYMBOL_GPL(uverbs_reg_dmabuf_mr);

/**
 * uverbs_untrack_dmabuf_mr - end the resource tracking of an MR for real
 * @mr: an MR that is being deregistered, of any kind
 *
 * A driver whose fill_res_mr_entry looks at its MRs calls this first in its
 * dereg_mr.  Kernels without "RDMA/restrack: Release the entries of MRs and QPs",
 * on which this is built as a module, take an MR off the list before they call
 * the driver, but neither wait for those who are looking at it nor give back its
 * reference on the task that made it.  They can be told by the entry, which they
 * leave valid; on all others, and for the kernel's own MRs, this does nothing.
 *
 * Context: sleeps.
 */
void uverbs_untrack_dmabuf_mr(struct ib_mr *mr)
{
	if (!mr->res.valid)
		return;
	mr->res.valid = false;
	rdma_restrack_put(&mr->res);
	wait_for_completion(&mr->res.comp);
}
EXPORT_SYMBOL_GPL(uverbs_untrack_dmabuf_mr);

/*
 * The attributes of the method; a driver's definition points here.  They are
 * the same as in kernels where the method is part of the core.
 */
const struct uverbs_attr_def *const
uverbs_reg_dmabuf_mr_attrs[UVERBS_REG_DMABUF_MR_NUM_ATTRS] = {
	UVERBS_ATTR_IDR(UVERBS_ATTR_REG_DMABUF_MR_HANDLE,
			UVERBS_OBJECT_MR,
			UVERBS_ACCESS_NEW,
			UA_MANDATORY),
	UVERBS_ATTR_IDR(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE,
			UVERBS_OBJECT_PD,
			UVERBS_ACCESS_READ,
			UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(UVERBS_ATTR_REG_DMABUF_MR_OFFSET,
			   UVERBS_ATTR_TYPE(u64),
			   UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(UVERBS_ATTR_REG_DMABUF_MR_LENGTH,
			   UVERBS_ATTR_TYPE(u64),
			   UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(UVERBS_ATTR_REG_DMABUF_MR_IOVA,
			   UVERBS_ATTR_TYPE(u64),
			   UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(UVERBS_ATTR_REG_DMABUF_MR_FD,
			   UVERBS_ATTR_TYPE(u32),
			   UA_MANDATORY),
	UVERBS_ATTR_FLAGS_IN(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS,
			     enum ib_access_flags),
	UVERBS_ATTR_PTR_OUT(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY,
			    UVERBS_ATTR_TYPE(u32),
			    UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY,
			    UVERBS_ATTR_TYPE(u32),
			    UA_MANDATORY),
};
EXPORT_SYMBOL_GPL(uverbs_reg_dmabuf_mr_attrs);
