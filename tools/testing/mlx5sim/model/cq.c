// SPDX-License-Identifier: GPL-2.0
/* Completion queues: completions, arming, overrun. */
#include "model.h"

#define COUNTER_MASK		0xffffffu
#define DBR_CONSUMER		0	/* doorbell record: consumer counter */

#define ARM_CQN_MASK		0xffffffu
#define ARM_SOLICITED		BIT(24)

#define EVENT_CQ_ERROR		MLX5_EVENT_TYPE_CODING_CQ_ERROR
#define EVENT_COMPLETION	0x0
#define CQ_ERROR_OVERRUN	1
#define COMPLETION_CQN		24
#define CQ_ERROR_CQN		0
#define CQ_ERROR_SYNDROME	11

/* CQE of 64 bytes; a queue of 128 has it in the upper half of each */
#define CQE_SIZE		64
#define CQE_SLID		22
#define CQE_RQPN		24
#define RQPN_SL_SHIFT		24
#define RQPN_GRH_SHIFT		28
#define CQE_SRQN_UIDX		32
#define CQE_IMMEDIATE		36
#define CQE_BYTE_COUNT		44
#define CQE_TIMESTAMP		48
#define CQE_VENDOR_SYNDROME	54
#define CQE_SYNDROME		55
#define CQE_SOP_QPN		56
#define CQE_WQE_COUNTER		60
#define CQE_OP_OWN		63
#define OP_OWN_SOLICITED	0x2
#define VENDOR_SYNDROME		0x51

static u32 cq_used(const struct cq *cq)
{
	return (cq->pi - cq->ci) & COUNTER_MASK;
}

/* What the driver has consumed, as its doorbell record tells */
static void read_consumer(struct mlx5sim *m, struct cq *cq)
{
	u8 record[4];
	u32 ci;

	if (!dma_read(m, cq->dbr + DBR_CONSUMER, record, sizeof(record)))
		return;
	ci = get_be32(record) & COUNTER_MASK;
	if (((cq->pi - ci) & COUNTER_MASK) > cq_used(cq))
		broken(m, CHK_CQ_CONSUMER,
		       "CQ 0x%x: consumer 0x%x, was 0x%x, producer 0x%x",
		       cq->obj.number, ci, cq->ci, cq->pi);
	else
		cq->ci = ci;
}

bool cq_fits(struct mlx5sim *m, struct cq *cq, u32 entries)
{
	/* The record is read only when it matters */
	if (cq_used(cq) >= entries)
		read_consumer(m, cq);
	return cq_used(cq) < entries;
}

bool cq_has_room(struct mlx5sim *m, struct cq *cq)
{
	return cq_fits(m, cq, BIT(cq->log_size));
}

static void cq_fire(struct mlx5sim *m, struct cq *cq)
{
	u8 data[EQE_DATA] = { 0 };

	cq->arm = CQ_DISARMED;
	put_be32(data + COMPLETION_CQN, cq->obj.number);
	eq_event(m, cq->eq, EVENT_COMPLETION, 0, data);
}

/* A user may overrun a queue, the driver must not: its own have its UAR page */
static bool drivers_own(const struct cq *cq)
{
	return ifc_get(cqc, cq->cqc, uar_page) ==
	       ifc_get(eqc, cq->eq->eqc, uar_page);
}

static void cq_overrun(struct mlx5sim *m, struct cq *cq)
{
	struct eq *eq = eq_for(m, EVENT_CQ_ERROR);
	u8 data[EQE_DATA] = { 0 };

	if (drivers_own(cq))
		broken(m, CHK_CQ_OVERRUN, "CQ 0x%x of %u entries",
		       cq->obj.number, BIT(cq->log_size));
	cq->failed = true;
	put_be32(data + CQ_ERROR_CQN, cq->obj.number);
	data[CQ_ERROR_SYNDROME] = CQ_ERROR_OVERRUN;
	if (eq)
		eq_event(m, eq, EVENT_CQ_ERROR, 0, data);
}

static void build_cqe(struct mlx5sim *m, const struct cq *cq, u8 *cqe,
		      const struct completion *c)
{
	bool error = c->opcode == CQE_REQ_ERR || c->opcode == CQE_RESP_ERR;

	put_be32(cqe + CQE_SRQN_UIDX, c->user_index);
	put_be32(cqe + CQE_SOP_QPN, (u32)c->wqe_opcode << 24 | c->qpn);
	put_be16(cqe + CQE_WQE_COUNTER, c->wqe_counter);
	if (error) {
		cqe[CQE_VENDOR_SYNDROME] = VENDOR_SYNDROME;
		cqe[CQE_SYNDROME] = c->syndrome;
	} else {
		put_be16(cqe + CQE_SLID, c->slid);
		put_be32(cqe + CQE_RQPN,
			 (u32)c->grh << RQPN_GRH_SHIFT |
			 (u32)c->sl << RQPN_SL_SHIFT | c->src_qp);
		put_be32(cqe + CQE_IMMEDIATE, c->immediate);
		put_be32(cqe + CQE_BYTE_COUNT, c->bytes);
		put_be64(cqe + CQE_TIMESTAMP,
			 now(m) / 1000 * cap(m, device_frequency_khz) / 1000);
	}
	cqe[CQE_OP_OWN] = c->opcode << 4 |
			  (c->solicited ? OP_OWN_SOLICITED : 0) |
			  (cq->pi >> cq->log_size & 1);
}

void cq_complete(struct mlx5sim *m, struct cq *cq, const struct completion *c)
{
	u64 at = (u64)(cq->pi & (BIT(cq->log_size) - 1)) * cq->cqe_size +
		 cq->cqe_size - CQE_SIZE;
	bool error = c->opcode == CQE_REQ_ERR || c->opcode == CQE_RESP_ERR;
	u8 cqe[CQE_SIZE] = { 0 };

	if (m->stopped || cq->failed)
		return;
	if (!cq_has_room(m, cq)) {
		cq_overrun(m, cq);
		return;
	}
	build_cqe(m, cq, cqe, c);
	/* The last byte hands it over, so it goes last */
	ring_write(m, &cq->ring, at, cqe, CQE_OP_OWN);
	ring_write(m, &cq->ring, at + CQE_OP_OWN, cqe + CQE_OP_OWN, 1);
	cq->pi = (cq->pi + 1) & COUNTER_MASK;
	m->stats.cqes++;
	if (cq->arm == CQ_ARMED_ANY ||
	    (cq->arm == CQ_ARMED_SOLICITED && (c->solicited || error)))
		cq_fire(m, cq);
}

/* Arm: consumer counter, whether solicited ones only, and the queue's number */
void cq_doorbell(struct mlx5sim *m, u64 value)
{
	struct cq *cq = table_find(&m->cqs, value & ARM_CQN_MASK);
	u32 ci = value >> 32 & COUNTER_MASK;
	bool solicited = value >> 32 & ARM_SOLICITED;

	if (!cq) {
		broken(m, CHK_DOORBELL, "CQ 0x%x",
		       (u32)value & ARM_CQN_MASK);
		return;
	}
	/* It may be older than the record: nothing orders arming and polling */
	if (((cq->pi - ci) & COUNTER_MASK) > COUNTER_MASK / 2) {
		broken(m, CHK_CQ_CONSUMER,
		       "CQ 0x%x armed: consumer 0x%x, producer 0x%x",
		       cq->obj.number, ci, cq->pi);
		return;
	}
	cq->arm = solicited ? CQ_ARMED_SOLICITED : CQ_ARMED_ANY;
	/* What came before the arming counts as soon as anything is there */
	if (cq->pi != ci)
		cq_fire(m, cq);
}
