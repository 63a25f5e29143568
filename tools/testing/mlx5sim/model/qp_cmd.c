// SPDX-License-Identifier: GPL-2.0
/* Queue pairs: commands. */
#include <stdlib.h>

#include "model.h"

#define LOG_SQ_BB		6
#define LOG_RQ_STRIDE_UNIT	4
#define RQ_TYPE_REGULAR		0
#define RQ_TYPE_SRQ		1

/* DEVX: a field that the kernel's header has no name for, in bits */
#define QPC_DBR_UMEM_ID		0x720

/* Bits of opt_param_mask */
#define OPT_RRE			BIT(1)
#define OPT_RAE			BIT(2)
#define OPT_RWE			BIT(3)
#define OPT_PKEY_INDEX		BIT(4)
#define OPT_Q_KEY		BIT(5)
#define OPT_RNR_TIMEOUT		BIT(6)
#define OPT_PRIMARY_PATH	BIT(7)
#define OPT_PM_STATE		BIT(10)
#define OPT_RETRY_COUNT		BIT(12)
#define OPT_RNR_RETRY		BIT(13)
#define OPT_ACK_TIMEOUT		BIT(14)

/**
 * struct transition - a command that modifies a QP
 * @opcode: the command
 * @from: states that it starts from, as bits
 * @to: state that it ends in
 */
struct transition {
	u16 opcode;
	u32 from;
	u32 to;
};

#define STATE(name)		MLX5_QPC_STATE_##name
#define ANY_STATE		0xffffu

static const struct transition transitions[] = {
	{ MLX5_CMD_OP_RST2INIT_QP, BIT(STATE(RST)), STATE(INIT) },
	{ MLX5_CMD_OP_INIT2INIT_QP, BIT(STATE(INIT)), STATE(INIT) },
	{ MLX5_CMD_OP_INIT2RTR_QP, BIT(STATE(INIT)), STATE(RTR) },
	{ MLX5_CMD_OP_RTR2RTS_QP, BIT(STATE(RTR)), STATE(RTS) },
	{ MLX5_CMD_OP_RTS2RTS_QP, BIT(STATE(RTS)), STATE(RTS) },
	{ MLX5_CMD_OP_SQERR2RTS_QP, BIT(STATE(SQER)), STATE(RTS) },
	{ MLX5_CMD_OP_SQD_RTS_QP, BIT(STATE(SQD)), STATE(RTS) },
	{ MLX5_CMD_OP_2ERR_QP, ANY_STATE, STATE(ERR) },
	{ MLX5_CMD_OP_2RST_QP, ANY_STATE, STATE(RST) },
};

#define COPY(field) \
	ifc_set(qpc, qp->qpc, field, ifc_get(qpc, new, field))

/* The way to the other end; the partition is no part of it */
static void take_path(struct qp *qp, const u8 *new)
{
	u32 pkey_index = ifc_get(qpc, qp->qpc,
				 primary_address_path.pkey_index);

	memcpy(ifc_at(qpc, qp->qpc, primary_address_path),
	       ifc_at(qpc, new, primary_address_path), ifc_bytes(ads));
	ifc_set(qpc, qp->qpc, primary_address_path.pkey_index, pkey_index);
}

/* Fields that a transition takes whatever the mask says */
static void take_required(struct qp *qp, u16 opcode, const u8 *new)
{
	switch (opcode) {
	case MLX5_CMD_OP_RST2INIT_QP:
	case MLX5_CMD_OP_INIT2INIT_QP:
		COPY(primary_address_path.vhca_port_num);
		COPY(primary_address_path.pkey_index);
		COPY(pm_state);
		COPY(q_key);
		COPY(rre);
		COPY(rwe);
		COPY(rae);
		COPY(counter_set_id);
		break;
	case MLX5_CMD_OP_INIT2RTR_QP:
		/* Each datagram tells its own way */
		if (!qp_is_datagram(qp->type))
			take_path(qp, new);
		COPY(mtu);
		COPY(log_msg_max);
		COPY(remote_qpn);
		COPY(next_rcv_psn);
		COPY(log_rra_max);
		COPY(min_rnr_nak);
		break;
	case MLX5_CMD_OP_RTR2RTS_QP:
		COPY(next_send_psn);
		COPY(log_sra_max);
		COPY(retry_count);
		COPY(rnr_retry);
		COPY(log_ack_req_freq);
		COPY(primary_address_path.ack_timeout);
		break;
	}
}

static void take_optional(struct qp *qp, u32 mask, const u8 *new)
{
	if (mask & OPT_PRIMARY_PATH)
		take_path(qp, new);
	if (mask & OPT_RRE)
		COPY(rre);
	if (mask & OPT_RAE)
		COPY(rae);
	if (mask & OPT_RWE)
		COPY(rwe);
	if (mask & OPT_PKEY_INDEX)
		COPY(primary_address_path.pkey_index);
	if (mask & OPT_Q_KEY)
		COPY(q_key);
	if (mask & OPT_RNR_TIMEOUT)
		COPY(min_rnr_nak);
	if (mask & OPT_PM_STATE)
		COPY(pm_state);
	if (mask & OPT_RETRY_COUNT)
		COPY(retry_count);
	if (mask & OPT_RNR_RETRY)
		COPY(rnr_retry);
	if (mask & OPT_ACK_TIMEOUT)
		COPY(primary_address_path.ack_timeout);
}

/* The commands of the table have their fields at the same places */
enum cmd_status cmd_modify_qp(struct mlx5sim *m, struct cmd *c)
{
	const u8 *new = ifc_at(rst2init_qp_in, c->in, qpc);
	u32 mask = ifc_get(rst2init_qp_in, c->in, opt_param_mask);
	const struct transition *t = transitions;
	struct qp *qp = object_get(m, &m->qps,
				   ifc_get(rst2init_qp_in, c->in, qpn));

	if (!qp)
		return CMD_BAD_RESOURCE;
	while (t->opcode != c->opcode)
		t++;
	if (!(t->from & BIT(qp->state))) {
		/* A driver need not know yet of an error */
		broken_if(qp->state == qp->commanded, m, CHK_QP_STATE,
			  "%s: QP 0x%x is in state %u", cmd_name(c->opcode),
			  qp->obj.number, qp->state);
		return CMD_BAD_QP_STATE;
	}
	qp->commanded = t->to;
	if (t->to == STATE(ERR)) {
		qp_error(m, qp);
		return CMD_OK;
	}
	if (t->to == STATE(RST)) {
		qp_reset_queues(m, qp);
	} else {
		take_required(qp, c->opcode, new);
		take_optional(qp, mask, new);
	}
	qp->state = t->to;
	if (qp->state == STATE(RTS))
		qp_wake(m, qp, now(m));
	return CMD_OK;
}

/* Sizes of the queues, as the context tells */
static bool qp_geometry(struct mlx5sim *m, struct qp *qp)
{
	const u8 *qpc = qp->qpc;

	qp->type = ifc_get(qpc, qpc, st);
	qp->user_index = ifc_get(qpc, qpc, user_index);
	qp->uar_page = ifc_get(qpc, qpc, uar_page);
	qp->has_sq = !ifc_get(qpc, qpc, no_sq);
	qp->has_rq = ifc_get(qpc, qpc, rq_type) == RQ_TYPE_REGULAR;
	qp->log_sq_size = ifc_get(qpc, qpc, log_sq_size);
	qp->log_rq_size = ifc_get(qpc, qpc, log_rq_size);
	qp->log_rq_stride = ifc_get(qpc, qpc, log_rq_stride) +
			    LOG_RQ_STRIDE_UNIT;
	if (qp->has_rq)
		qp->sq_offset = 1ull << (qp->log_rq_size + qp->log_rq_stride);
	if (qp->type > MLX5_QPC_ST_REG_UMR ||
	    (qp->has_rq && BIT(qp->log_rq_stride) > RQ_WQE_MAX)) {
		broken(m, CHK_CONTEXT, "QP: type 0x%x, log receive stride %u",
		       qp->type, qp->log_rq_stride);
		return false;
	}
	return true;
}

/* The objects that the context names; the users are counted later */
static bool qp_objects(struct mlx5sim *m, struct qp *qp)
{
	const u8 *qpc = qp->qpc;
	u32 recv_cqn = ifc_get(qpc, qpc, cqn_rcv);
	u32 type = qp->type;

	/* The queue of the driver for UMR changes keys of all domains */
	if (type != MLX5_QPC_ST_REG_UMR) {
		qp->pd = object_get(m, &m->pds, ifc_get(qpc, qpc, pd));
		if (!qp->pd)
			return false;
	}
	if (qp->has_sq) {
		qp->send_cq = object_get(m, &m->cqs,
					 ifc_get(qpc, qpc, cqn_snd));
		if (!qp->send_cq || !object_get(m, &m->uars, qp->uar_page))
			return false;
	}
	if (recv_cqn || qp->has_rq) {
		qp->recv_cq = object_get(m, &m->cqs, recv_cqn);
		if (!qp->recv_cq)
			return false;
	}
	if (ifc_get(qpc, qpc, rq_type) == RQ_TYPE_SRQ) {
		qp->srq = object_get(m, &m->srqs,
				     ifc_get(qpc, qpc, srqn_rmpn_xrqn));
		if (!qp->srq)
			return false;
	}
	if (type == MLX5_QPC_ST_XRC && ifc_get(qpc, qpc, xrcd)) {
		qp->xrcd = object_get(m, &m->xrcds, ifc_get(qpc, qpc, xrcd));
		if (!qp->xrcd)
			return false;
	}
	return true;
}

static void count_users(struct qp *qp, s32 by)
{
	if (qp->pd)
		qp->pd->obj.users += by;
	if (qp->send_cq)
		qp->send_cq->obj.users += by;
	if (qp->recv_cq)
		qp->recv_cq->obj.users += by;
	if (qp->srq)
		qp->srq->obj.users += by;
	if (qp->xrcd)
		qp->xrcd->obj.users += by;
	if (qp->umem)
		qp->umem->obj.users += by;
}

static enum cmd_status qp_init(struct mlx5sim *m, struct cmd *c, struct qp *qp)
{
	const u8 *qpc = qp->qpc;
	const u8 *pas = ifc_at(create_qp_in, c->in, pas);
	struct pages_arg pages = {
		.pas = pas,
		.count = cmd_pas_count(c, pas),
		.log_page_size = ifc_get(qpc, qpc, log_page_size),
		.page_offset = ifc_get(qpc, qpc, page_offset),
		.umem_offset = ifc_get(create_qp_in, c->in, wq_umem_offset),
	};
	struct umem *dbr_umem;
	enum cmd_status status;
	u64 bytes;

	if (!qp_geometry(m, qp))
		return CMD_BAD_PARAM;
	if (!qp_objects(m, qp) ||
	    !umem_of_context(m, ifc_get(create_qp_in, c->in, wq_umem_valid),
			     ifc_get(create_qp_in, c->in, wq_umem_id),
			     &qp->umem) ||
	    !umem_of_context(m, ifc_get(qpc, qpc, dbr_umem_valid),
			     ifc_load(qpc, QPC_DBR_UMEM_ID, 32), &dbr_umem))
		return CMD_BAD_RESOURCE;
	if ((qp->has_sq || qp->has_rq) &&
	    !doorbell_record(m, ifc_get(qpc, qpc, dbr_addr), dbr_umem,
			     &qp->dbr))
		return CMD_BAD_PARAM;
	pages.umem = qp->umem;
	bytes = qp->sq_offset;
	if (qp->has_sq)
		bytes += 1ull << (qp->log_sq_size + LOG_SQ_BB);
	status = ring_init(m, &qp->ring, &pages, bytes);
	if (status == CMD_OK && !table_add(&m->qps, &qp->obj))
		status = CMD_LIMIT;
	return status;
}

enum cmd_status cmd_create_qp(struct mlx5sim *m, struct cmd *c)
{
	struct qp *qp = calloc(1, sizeof(*qp));
	enum cmd_status status;

	if (!qp)
		return CMD_NO_RESOURCE;
	memcpy(qp->qpc, ifc_at(create_qp_in, c->in, qpc), sizeof(qp->qpc));
	status = qp_init(m, c, qp);
	if (status != CMD_OK) {
		ring_free(&qp->ring);
		free(qp);
		return status;
	}
	qp->obj.uid = c->uid;
	count_users(qp, 1);
	ifc_set(create_qp_out, c->out, qpn, qp->obj.number);
	return CMD_OK;
}

void qp_destroy(struct mlx5sim *m, struct qp *qp)
{
	qp_reset_queues(m, qp);
	count_users(qp, -1);
	ring_free(&qp->ring);
	table_remove(&m->qps, &qp->obj);
}

enum cmd_status cmd_destroy_qp(struct mlx5sim *m, struct cmd *c)
{
	struct qp *qp = object_to_destroy(m, &m->qps,
					  ifc_get(destroy_qp_in, c->in, qpn));

	if (!qp)
		return CMD_BAD_RES_STATE;
	qp_destroy(m, qp);
	return CMD_OK;
}

enum cmd_status cmd_query_qp(struct mlx5sim *m, struct cmd *c)
{
	struct qp *qp = object_get(m, &m->qps,
				   ifc_get(query_qp_in, c->in, qpn));
	u8 *qpc = ifc_at(query_qp_out, c->out, qpc);

	if (!qp)
		return CMD_BAD_RESOURCE;
	memcpy(qpc, qp->qpc, sizeof(qp->qpc));
	ifc_set(qpc, qpc, state, qp->state);
	ifc_set(qpc, qpc, hw_sq_wqebb_counter, qp->req.ci);
	ifc_set(qpc, qpc, sw_sq_wqebb_counter, qp->req.pi);
	ifc_set(qpc, qpc, hw_rq_counter, qp->resp.ci);
	return CMD_OK;
}
