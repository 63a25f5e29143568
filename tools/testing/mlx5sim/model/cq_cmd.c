// SPDX-License-Identifier: GPL-2.0
/* Completion queues: commands. */
#include <stdlib.h>

#include "model.h"

#define LOG_CQ_SIZE_MAX		22
#define MODIFY_CQ_MODERATION	0
#define MODIFY_CQ_RESIZE	1

#define CQE_SZ_64		0
#define CQE_SZ_128		1
#define CQE_SZ_128_PADDED	2

/* DEVX: a field that the kernel's header has no name for, in bits */
#define CQC_DBR_UMEM_ID		0x1a0

static bool cqe_size(struct mlx5sim *m, const u8 *cqc, u32 *bytes)
{
	u32 code = ifc_get(cqc, cqc, cqe_sz);
	u32 log_size = ifc_get(cqc, cqc, log_cq_size);

	*bytes = code == CQE_SZ_64 ? 64 : 128;
	if (code <= CQE_SZ_128_PADDED && log_size <= LOG_CQ_SIZE_MAX)
		return true;
	broken(m, CHK_CONTEXT, "CQ: log size %u, CQE size code %u", log_size,
	       code);
	return false;
}

static enum cmd_status cq_init(struct mlx5sim *m, struct cmd *c, struct cq *cq,
			       const u8 *cqc, struct umem *dbr_umem)
{
	const u8 *pas = ifc_at(create_cq_in, c->in, pas);
	const u8 *tail = cqc + ifc_bytes(cqc);
	struct pages_arg pages = {
		.pas = pas,
		.count = cmd_pas_count(c, pas),
		.log_page_size = ifc_get(cqc, cqc, log_page_size),
		.page_offset = ifc_get(cqc, cqc, page_offset),
		.umem = cq->umem,
		.umem_offset = ifc_load(tail, TAIL_UMEM_OFFSET, 64),
	};
	enum cmd_status status;

	if (!cqe_size(m, cqc, &cq->cqe_size))
		return CMD_BAD_PARAM;
	cq->log_size = ifc_get(cqc, cqc, log_cq_size);
	if (!doorbell_record(m, ifc_get(cqc, cqc, dbr_addr), dbr_umem,
			     &cq->dbr))
		return CMD_BAD_PARAM;
	status = ring_init(m, &cq->ring, &pages,
			   (u64)cq->cqe_size << cq->log_size);
	if (status == CMD_OK && !table_add(&m->cqs, &cq->obj))
		status = CMD_LIMIT;
	return status;
}

enum cmd_status cmd_create_cq(struct mlx5sim *m, struct cmd *c)
{
	const u8 *cqc = ifc_at(create_cq_in, c->in, cq_context);
	const u8 *tail = cqc + ifc_bytes(cqc);
	struct umem *umem, *dbr_umem;
	enum cmd_status status;
	struct cq *cq;
	struct eq *eq;

	eq = object_get(m, &m->eqs,
			ifc_get(cqc, cqc, c_eqn_or_apu_element) & 0xff);
	if (!eq || !object_get(m, &m->uars, ifc_get(cqc, cqc, uar_page)) ||
	    !umem_of_context(m, ifc_get(create_cq_in, c->in, cq_umem_valid),
		       ifc_load(tail, TAIL_UMEM_ID, 32), &umem) ||
	    !umem_of_context(m, ifc_get(cqc, cqc, dbr_umem_valid),
		       ifc_load(cqc, CQC_DBR_UMEM_ID, 32), &dbr_umem))
		return CMD_BAD_RESOURCE;
	/* The user's error: completions are written, the doorbell record is not */
	if (umem && !umem_writable(umem))
		return CMD_BAD_PARAM;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return CMD_NO_RESOURCE;
	cq->umem = umem;
	status = cq_init(m, c, cq, cqc, dbr_umem);
	if (status != CMD_OK) {
		ring_free(&cq->ring);
		free(cq);
		return status;
	}
	memcpy(cq->cqc, cqc, sizeof(cq->cqc));
	cq->obj.uid = c->uid;
	cq->eq = eq;
	eq->obj.users++;
	if (umem)
		umem->obj.users++;
	ifc_set(create_cq_out, c->out, cqn, cq->obj.number);
	return CMD_OK;
}

void cq_destroy(struct mlx5sim *m, struct cq *cq)
{
	cq->eq->obj.users--;
	if (cq->umem)
		cq->umem->obj.users--;
	ring_free(&cq->ring);
	table_remove(&m->cqs, &cq->obj);
}

enum cmd_status cmd_destroy_cq(struct mlx5sim *m, struct cmd *c)
{
	struct cq *cq = object_to_destroy(m, &m->cqs,
					  ifc_get(destroy_cq_in, c->in, cqn));

	if (!cq)
		return CMD_BAD_RES_STATE;
	cq_destroy(m, cq);
	return CMD_OK;
}

enum cmd_status cmd_query_cq(struct mlx5sim *m, struct cmd *c)
{
	struct cq *cq = object_get(m, &m->cqs,
				   ifc_get(query_cq_in, c->in, cqn));
	u8 *cqc = ifc_at(query_cq_out, c->out, cq_context);

	if (!cq)
		return CMD_BAD_RESOURCE;
	memcpy(cqc, cq->cqc, sizeof(cq->cqc));
	ifc_set(cqc, cqc, producer_counter, cq->pi);
	ifc_set(cqc, cqc, consumer_counter, cq->ci);
	return CMD_OK;
}

/*
 * The old buffer ends with a mark, the next completion goes to the new one, at
 * the position that the counter has reached.
 */
static enum cmd_status resize(struct mlx5sim *m, struct cmd *c, struct cq *cq)
{
	const u8 *cqc = ifc_at(modify_cq_in, c->in, cq_context);
	const u8 *pas = ifc_at(modify_cq_in, c->in, pas);
	const struct completion mark = { .opcode = CQE_RESIZE };
	struct pages_arg pages = {
		.pas = pas,
		.count = cmd_pas_count(c, pas),
		.log_page_size = ifc_get(cqc, cqc, log_page_size),
		.page_offset = ifc_get(cqc, cqc, page_offset),
	};
	enum cmd_status status;
	struct ring ring;
	u32 log_size = ifc_get(cqc, cqc, log_cq_size);
	u32 bytes;

	if (!cap(m, cq_resize) || cq->umem)
		return CMD_BAD_OP;
	if (!cqe_size(m, cqc, &bytes))
		return CMD_BAD_PARAM;
	/* The mark takes a place, and the driver copies what was not polled */
	if (!cq_fits(m, cq, BIT(min_of(cq->log_size, log_size))))
		return CMD_BAD_SIZE;
	status = ring_init(m, &ring, &pages, (u64)bytes << log_size);
	if (status != CMD_OK)
		return status;
	cq_complete(m, cq, &mark);
	ring_free(&cq->ring);
	cq->ring = ring;
	cq->cqe_size = bytes;
	cq->log_size = log_size;
	ifc_set(cqc, cq->cqc, cqe_sz, ifc_get(cqc, cqc, cqe_sz));
	ifc_set(cqc, cq->cqc, log_cq_size, cq->log_size);
	ifc_set(cqc, cq->cqc, log_page_size, pages.log_page_size);
	ifc_set(cqc, cq->cqc, page_offset, pages.page_offset);
	return CMD_OK;
}

enum cmd_status cmd_modify_cq(struct mlx5sim *m, struct cmd *c)
{
	struct cq *cq = object_get(m, &m->cqs,
				   ifc_get(modify_cq_in, c->in, cqn));
	const u8 *cqc = ifc_at(modify_cq_in, c->in, cq_context);

	if (!cq)
		return CMD_BAD_RESOURCE;
	switch (c->op_mod) {
	case MODIFY_CQ_MODERATION:
		ifc_set(cqc, cq->cqc, cq_period,
			ifc_get(cqc, cqc, cq_period));
		ifc_set(cqc, cq->cqc, cq_max_count,
			ifc_get(cqc, cqc, cq_max_count));
		return CMD_OK;
	case MODIFY_CQ_RESIZE:
		return resize(m, c, cq);
	default:
		broken(m, CHK_CMD_OPCODE, "MODIFY_CQ, modifier 0x%x",
		       c->op_mod);
		return CMD_BAD_PARAM;
	}
}
