// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <rdma/ib_user_verbs.h>

#include "uverbs_cmd.h"

/* The kernel has as many drivers as enum rdma_driver_id says; this is plenty. */
#define DRIVER_IDS	64
#define OBJECT_UNKNOWN	0x0fff

void uverbs_cmd_init(struct uverbs_cmd *cmd, int driver_id, uint16_t object, uint16_t method)
{
	memset(cmd, 0, sizeof(*cmd));
	cmd->hdr.length = sizeof(cmd->hdr);
	cmd->hdr.driver_id = driver_id;
	cmd->hdr.object_id = object;
	cmd->hdr.method_id = method;
}

static struct ib_uverbs_attr *add(struct uverbs_cmd *cmd, uint16_t id, uint64_t data, uint16_t size)
{
	struct ib_uverbs_attr *attr = &cmd->attr[cmd->hdr.num_attrs++];

	cmd->hdr.length += sizeof(*attr);
	attr->attr_id = id;
	attr->len = size;
	attr->flags = UVERBS_ATTR_F_MANDATORY;
	attr->data = data;
	return attr;
}

struct ib_uverbs_attr *uverbs_cmd_idr(struct uverbs_cmd *cmd, uint16_t id, uint32_t handle)
{
	return add(cmd, id, handle, 0);
}

struct ib_uverbs_attr *uverbs_cmd_in(struct uverbs_cmd *cmd, uint16_t id, uint64_t value,
				     uint16_t size)
{
	return add(cmd, id, value, size);
}

struct ib_uverbs_attr *uverbs_cmd_ptr(struct uverbs_cmd *cmd, uint16_t id, const void *ptr,
				      uint16_t size)
{
	return add(cmd, id, (uintptr_t)ptr, size);
}

int uverbs_cmd_run(struct ibv_context *ctx, struct uverbs_cmd *cmd)
{
	return ioctl(ctx->cmd_fd, RDMA_VERBS_IOCTL, cmd) ? errno : 0;
}

/*
 * libibverbs keeps the number to itself.  The kernel checks it first (EINVAL),
 * and what follows, an object that does not exist, gives EPROTONOSUPPORT.
 */
int uverbs_driver_id(struct ibv_context *ctx)
{
	struct uverbs_cmd cmd;
	int id;

	for (id = 0; id < DRIVER_IDS; id++) {
		uverbs_cmd_init(&cmd, id, OBJECT_UNKNOWN, 0);
		if (uverbs_cmd_run(ctx, &cmd) == EPROTONOSUPPORT)
			return id;
	}
	return -1;
}

int mr_reg(const struct mr_reg *reg, struct mr *mr)
{
	struct ibv_context *ctx = reg->pd->context;
	struct ib_uverbs_attr *handle, *end;
	struct uverbs_cmd cmd;
	uint32_t lkey = 0, rkey = 0;
	int err;

	uverbs_cmd_init(&cmd, reg->driver_id, UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR);
	handle = uverbs_cmd_idr(&cmd, UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0);
	uverbs_cmd_idr(&cmd, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, reg->pd->handle);
	uverbs_cmd_in(&cmd, UVERBS_ATTR_REG_DMABUF_MR_OFFSET, reg->offset, 8);
	uverbs_cmd_in(&cmd, UVERBS_ATTR_REG_DMABUF_MR_LENGTH, reg->length, 8);
	uverbs_cmd_in(&cmd, UVERBS_ATTR_REG_DMABUF_MR_IOVA, reg->iova, 8);
	uverbs_cmd_in(&cmd, UVERBS_ATTR_REG_DMABUF_MR_FD, (uint32_t)reg->fd, 4);
	uverbs_cmd_in(&cmd, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, reg->access, 4);
	uverbs_cmd_ptr(&cmd, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY,
		       reg->lkey_at ? reg->lkey_at : &lkey, 4);
	uverbs_cmd_ptr(&cmd, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY,
		       reg->rkey_at ? reg->rkey_at : &rkey, 4);

	/* The handle comes first and stays where it is, unless it is left out. */
	end = cmd.attr;
	for (int i = 0; i < cmd.hdr.num_attrs; i++)
		if (!(reg->omit >> cmd.attr[i].attr_id & 1))
			*end++ = cmd.attr[i];
	cmd.hdr.num_attrs = end - cmd.attr;
	cmd.hdr.length = (char *)end - (char *)&cmd;

	err = uverbs_cmd_run(ctx, &cmd);
	if (err)
		return err;
	mr->ctx = ctx;
	mr->driver_id = reg->driver_id;
	mr->handle = handle->data;
	mr->lkey = reg->lkey_at ? *reg->lkey_at : lkey;
	mr->rkey = reg->rkey_at ? *reg->rkey_at : rkey;
	return 0;
}

int mr_dereg(struct mr *mr)
{
	struct uverbs_cmd cmd;

	uverbs_cmd_init(&cmd, mr->driver_id, UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY);
	uverbs_cmd_idr(&cmd, UVERBS_ATTR_DESTROY_MR_HANDLE, mr->handle);
	return uverbs_cmd_run(mr->ctx, &cmd);
}

int mr_rereg(struct mr *mr, uint32_t flags, struct ibv_pd *pd, uint64_t start, uint64_t length,
	     uint64_t iova, uint32_t access)
{
	struct ib_uverbs_rereg_mr_resp resp = { 0 };
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_rereg_mr rereg;
	} cmd = {
		.hdr.command = IB_USER_VERBS_CMD_REREG_MR,
		.hdr.in_words = sizeof(cmd) / 4,
		.hdr.out_words = sizeof(resp) / 4,
		.rereg.response = (uintptr_t)&resp,
		.rereg.mr_handle = mr->handle,
		.rereg.flags = flags,
		.rereg.start = start,
		.rereg.length = length,
		.rereg.hca_va = iova,
		.rereg.pd_handle = pd ? pd->handle : 0,
		.rereg.access_flags = access,
	};

	if (write(mr->ctx->cmd_fd, &cmd, sizeof(cmd)) != sizeof(cmd))
		return errno;
	mr->lkey = resp.lkey;
	mr->rkey = resp.rkey;
	return 0;
}

int mr_advise_as(const struct mr_advice *advice, const struct ibv_sge *list, uint32_t count)
{
	struct uverbs_cmd cmd;

	uverbs_cmd_init(&cmd, advice->driver_id, UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR);
	uverbs_cmd_idr(&cmd, UVERBS_ATTR_ADVISE_MR_PD_HANDLE, advice->pd->handle);
	uverbs_cmd_in(&cmd, UVERBS_ATTR_ADVISE_MR_ADVICE, advice->advice, 8);
	uverbs_cmd_in(&cmd, UVERBS_ATTR_ADVISE_MR_FLAGS, advice->flags, 4);
	uverbs_cmd_ptr(&cmd, UVERBS_ATTR_ADVISE_MR_SGE_LIST, list, count * sizeof(*list));
	return uverbs_cmd_run(advice->pd->context, &cmd);
}

int mr_advise(struct mr *mr, struct ibv_pd *pd, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = mr->lkey };
	struct mr_advice advice = {
		.pd = pd,
		.driver_id = mr->driver_id,
		.advice = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
		.flags = IBV_ADVISE_MR_FLAG_FLUSH,
	};

	return mr_advise_as(&advice, &sge, 1);
}
