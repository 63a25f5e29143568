// SPDX-License-Identifier: GPL-2.0
/*
 * Shared receive queues.
 *
 * The entries of the buffer form a list, each names the next in its first 16
 * bytes.  The doorbell record counts how many were posted; the device follows
 * the list and counts how many it took.
 */
#include <stdlib.h>

#include "model.h"

#define LINK_NEXT		2	/* u16 in the link of an entry */
#define LINK_SIZE		16
#define LOG_SRQ_SIZE_MAX	15
#define LOG_STRIDE_MIN		5	/* a link and one segment */
#define LOG_STRIDE_MAX		9
#define LOG_RQ_STRIDE_UNIT	4

#define RMP_STATE_READY		1
#define EVENT_LIMIT		MLX5_EVENT_TYPE_CODING_SRQ_LIMIT

/* Posted and not taken; 0 also when the driver broke a rule */
static u32 srq_posted(struct mlx5sim *m, struct srq *srq)
{
	u8 record[4];
	u16 posted;

	if (!dma_read(m, srq->dbr, record, sizeof(record)))
		return 0;
	posted = get_be32(record) - srq->taken;
	if (posted <= BIT(srq->log_size))
		return posted;
	broken(m, CHK_RQ_OVERRUN, "SRQ 0x%x: %u posted, room for %u",
	       srq->obj.number, posted, BIT(srq->log_size));
	return 0;
}

static void check_limit(struct mlx5sim *m, struct srq *srq, u32 left)
{
	if (!srq->limit || left >= srq->limit)
		return;
	srq->limit = 0;
	eq_qp_event(m, EVENT_LIMIT, srq->obj.number);
}

bool srq_take(struct mlx5sim *m, struct srq *srq, u8 *wqe, u32 *bytes,
	      u16 *index)
{
	u32 posted = srq_posted(m, srq);
	u8 entry[RQ_WQE_MAX];
	u32 size = BIT(srq->log_stride);

	if (!posted ||
	    !ring_read(m, &srq->ring, (u64)srq->head << srq->log_stride,
		       entry, size))
		return false;
	*index = srq->head;
	*bytes = size - LINK_SIZE;
	memcpy(wqe, entry + LINK_SIZE, *bytes);
	srq->head = get_be16(entry + LINK_NEXT) & (BIT(srq->log_size) - 1);
	srq->taken++;
	check_limit(m, srq, posted - 1);
	return true;
}

void srq_destroy(struct mlx5sim *m, struct srq *srq)
{
	srq->pd->obj.users--;
	if (srq->cq)
		srq->cq->obj.users--;
	if (srq->xrcd)
		srq->xrcd->obj.users--;
	if (srq->umem)
		srq->umem->obj.users--;
	ring_free(&srq->ring);
	table_remove(&m->srqs, &srq->obj);
}

/**
 * struct srq_arg - what the two kinds of context say
 * @dbr_addr: doorbell record
 * @log_size: of the queue
 * @log_stride: of an entry, in bytes
 * @pd: number
 * @pages: buffer
 */
struct srq_arg {
	u64 dbr_addr;
	u32 log_size;
	u32 log_stride;
	u32 pd;
	struct pages_arg pages;
};

static enum cmd_status srq_init(struct mlx5sim *m, struct srq *srq,
				const struct srq_arg *arg)
{
	enum cmd_status status;

	if (arg->log_size > LOG_SRQ_SIZE_MAX ||
	    arg->log_stride < LOG_STRIDE_MIN ||
	    arg->log_stride > LOG_STRIDE_MAX) {
		broken(m, CHK_CONTEXT, "SRQ: log size %u, log stride %u",
		       arg->log_size, arg->log_stride);
		return CMD_BAD_PARAM;
	}
	srq->pd = object_get(m, &m->pds, arg->pd);
	if (!srq->pd)
		return CMD_BAD_RESOURCE;
	if (!doorbell_record(m, arg->dbr_addr, NULL, &srq->dbr))
		return CMD_BAD_PARAM;
	srq->log_size = arg->log_size;
	srq->log_stride = arg->log_stride;
	status = ring_init(m, &srq->ring, &arg->pages,
			   1ull << (arg->log_size + arg->log_stride));
	if (status == CMD_OK && !table_add(&m->srqs, &srq->obj))
		status = CMD_LIMIT;
	if (status != CMD_OK)
		return status;
	srq->umem = (struct umem *)arg->pages.umem;
	if (srq->umem)
		srq->umem->obj.users++;
	srq->pd->obj.users++;
	return CMD_OK;
}

/* A queue with the @bytes of @context that the command @c gave */
static enum cmd_status srq_new(struct mlx5sim *m, const struct cmd *c,
			       const struct srq_arg *arg, const u8 *context,
			       u32 bytes, struct srq **out)
{
	struct srq *srq = calloc(1, sizeof(*srq));
	enum cmd_status status;

	if (!srq)
		return CMD_NO_RESOURCE;
	status = srq_init(m, srq, arg);
	if (status != CMD_OK) {
		ring_free(&srq->ring);
		free(srq);
		return status;
	}
	memcpy(srq->context, context, bytes);
	srq->obj.uid = c->uid;
	*out = srq;
	return CMD_OK;
}

enum cmd_status cmd_create_xrc_srq(struct mlx5sim *m, struct cmd *c)
{
	const u8 *ctx = ifc_at(create_xrc_srq_in, c->in, xrc_srq_context_entry);
	const u8 *tail = ctx + ifc_bytes(xrc_srqc);
	const u8 *pas = ifc_at(create_xrc_srq_in, c->in, pas);
	struct srq_arg arg = {
		.dbr_addr = ifc_get(xrc_srqc, ctx, db_record_addr_h) << 32 |
			    ifc_get(xrc_srqc, ctx, db_record_addr_l) << 2,
		.log_size = ifc_get(xrc_srqc, ctx, log_xrc_srq_size),
		.log_stride = ifc_get(xrc_srqc, ctx, log_rq_stride) +
			      LOG_RQ_STRIDE_UNIT,
		.pd = ifc_get(xrc_srqc, ctx, pd),
		.pages = {
			.pas = pas,
			.count = cmd_pas_count(c, pas),
			.log_page_size = ifc_get(xrc_srqc, ctx, log_page_size),
			.page_offset = ifc_get(xrc_srqc, ctx, page_offset),
			.umem_offset = ifc_load(tail, TAIL_UMEM_OFFSET, 64),
		},
	};
	struct umem *umem;
	struct cq *cq;
	struct xrcd *xrcd;
	enum cmd_status status;
	struct srq *srq;

	cq = object_get(m, &m->cqs, ifc_get(xrc_srqc, ctx, cqn));
	xrcd = object_get(m, &m->xrcds, ifc_get(xrc_srqc, ctx, xrcd));
	if (!cq || !xrcd ||
	    !umem_of_context(m, ifc_get(create_xrc_srq_in, c->in,
					xrc_srq_umem_valid),
			     ifc_load(tail, TAIL_UMEM_ID, 32), &umem))
		return CMD_BAD_RESOURCE;
	arg.pages.umem = umem;
	status = srq_new(m, c, &arg, ctx, ifc_bytes(xrc_srqc), &srq);
	if (status != CMD_OK)
		return status;
	srq->cq = cq;
	srq->xrcd = xrcd;
	srq->user_index = ifc_get(xrc_srqc, ctx, user_index);
	cq->obj.users++;
	xrcd->obj.users++;
	ifc_set(create_xrc_srq_out, c->out, xrc_srqn, srq->obj.number);
	return CMD_OK;
}

enum cmd_status cmd_create_rmp(struct mlx5sim *m, struct cmd *c)
{
	const u8 *ctx = ifc_at(create_rmp_in, c->in, ctx);
	const u8 *wq = ifc_at(rmpc, ctx, wq);
	const u8 *pas = ifc_at(create_rmp_in, c->in, ctx.wq.pas);
	struct srq_arg arg = {
		.dbr_addr = ifc_get(wq, wq, dbr_addr),
		.log_size = ifc_get(wq, wq, log_wq_sz),
		.log_stride = ifc_get(wq, wq, log_wq_stride),
		.pd = ifc_get(wq, wq, pd),
		.pages = {
			.pas = pas,
			.count = cmd_pas_count(c, pas),
			.log_page_size = ifc_get(wq, wq, log_wq_pg_sz),
			.page_offset = ifc_get(wq, wq, page_offset),
			.umem_offset = ifc_get(wq, wq, wq_umem_offset),
		},
	};
	enum cmd_status status;
	struct umem *umem;
	struct srq *srq;

	if (ifc_get(wq, wq, wq_type) != MLX5_WQ_TYPE_LINKED_LIST) {
		broken(m, CHK_CONTEXT, "RMP: queue type %u",
		       (u32)ifc_get(wq, wq, wq_type));
		return CMD_BAD_PARAM;
	}
	if (!umem_of_context(m, ifc_get(wq, wq, wq_umem_valid),
			     ifc_get(wq, wq, wq_umem_id), &umem))
		return CMD_BAD_RESOURCE;
	arg.pages.umem = umem;
	status = srq_new(m, c, &arg, ctx, ifc_bytes(rmpc), &srq);
	if (status != CMD_OK)
		return status;
	srq->is_rmp = true;
	ifc_set(create_rmp_out, c->out, rmpn, srq->obj.number);
	return CMD_OK;
}

static enum cmd_status srq_command_destroy(struct mlx5sim *m, u32 number)
{
	struct srq *srq = object_to_destroy(m, &m->srqs, number);

	if (!srq)
		return CMD_BAD_RES_STATE;
	srq_destroy(m, srq);
	return CMD_OK;
}

enum cmd_status cmd_destroy_xrc_srq(struct mlx5sim *m, struct cmd *c)
{
	return srq_command_destroy(m, ifc_get(destroy_xrc_srq_in, c->in,
					      xrc_srqn));
}

enum cmd_status cmd_destroy_rmp(struct mlx5sim *m, struct cmd *c)
{
	return srq_command_destroy(m, ifc_get(destroy_rmp_in, c->in, rmpn));
}

enum cmd_status cmd_query_xrc_srq(struct mlx5sim *m, struct cmd *c)
{
	struct srq *srq = object_get(m, &m->srqs,
				     ifc_get(query_xrc_srq_in, c->in,
					     xrc_srqn));
	u8 *ctx = ifc_at(query_xrc_srq_out, c->out, xrc_srq_context_entry);

	if (!srq)
		return CMD_BAD_RESOURCE;
	memcpy(ctx, srq->context, ifc_bytes(xrc_srqc));
	ifc_set(xrc_srqc, ctx, lwm, srq->limit);
	return CMD_OK;
}

enum cmd_status cmd_query_rmp(struct mlx5sim *m, struct cmd *c)
{
	struct srq *srq = object_get(m, &m->srqs,
				     ifc_get(query_rmp_in, c->in, rmpn));
	u8 *ctx = ifc_at(query_rmp_out, c->out, rmp_context);

	if (!srq)
		return CMD_BAD_RESOURCE;
	memcpy(ctx, srq->context, ifc_bytes(rmpc));
	ifc_set(rmpc, ctx, state, RMP_STATE_READY);
	ifc_set(wq, ifc_at(rmpc, ctx, wq), lwm, srq->limit);
	return CMD_OK;
}

/* Ask for an event as soon as less than @limit entries are left */
static enum cmd_status arm(struct mlx5sim *m, u32 number, u32 limit)
{
	struct srq *srq = object_get(m, &m->srqs, number);

	if (!srq)
		return CMD_BAD_RESOURCE;
	srq->limit = limit;
	check_limit(m, srq, srq_posted(m, srq));
	return CMD_OK;
}

enum cmd_status cmd_arm_xrc_srq(struct mlx5sim *m, struct cmd *c)
{
	return arm(m, ifc_get(arm_xrc_srq_in, c->in, xrc_srqn),
		   ifc_get(arm_xrc_srq_in, c->in, lwm));
}

enum cmd_status cmd_arm_rq(struct mlx5sim *m, struct cmd *c)
{
	return arm(m, ifc_get(arm_rq_in, c->in, srq_number),
		   ifc_get(arm_rq_in, c->in, lwm));
}

enum cmd_status cmd_modify_rmp(struct mlx5sim *m, struct cmd *c)
{
	const u8 *bitmask = ifc_at(modify_rmp_in, c->in, bitmask);

	if (!ifc_get(rmp_bitmask, bitmask, lwm))
		return CMD_OK;
	return arm(m, ifc_get(modify_rmp_in, c->in, rmpn),
		   ifc_get(modify_rmp_in, c->in, ctx.wq.lwm));
}
