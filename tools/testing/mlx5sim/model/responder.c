// SPDX-License-Identifier: GPL-2.0
/*
 * The responder: what arrives at a QP.  It runs on the device of the receiver,
 * called by the requester of the sender.
 */
#include "model.h"

#define DBR_RECEIVE		0	/* doorbell record: receive counter */
#define ATOMIC_SIZE		8
#define ATOMIC_HOST_ENDIAN	1

#define EVENT_INVALID_REQUEST \
	MLX5_EVENT_TYPE_CODING_INVALID_REQUEST_LOCAL_WQ_ERROR
#define EVENT_ACCESS_VIOLATION \
	MLX5_EVENT_TYPE_CODING_LOCAL_ACCESS_VIOLATION_WQ_ERROR

enum answer responder_check(struct mlx5sim *m, struct qp *qp,
			    const struct qp *from)
{
	if (m->stopped || qp->type != from->type ||
	    !qp_receives(qp) ||
	    ifc_get(qpc, qp->qpc, remote_qpn) != from->obj.number)
		return ANSWER_NONE;
	return qp->fault[SIDE_RESPONDER].pending ? ANSWER_WAIT : ANSWER_ACK;
}

/* The other side asked for what it may not: both ends of a connection stop */
static enum answer refuse(struct mlx5sim *m, struct qp *qp, enum answer nak)
{
	qp_error(m, qp);
	eq_qp_event(m, nak == ANSWER_NAK_ACCESS ? EVENT_ACCESS_VIOLATION :
						  EVENT_INVALID_REQUEST,
		    qp->obj.number);
	return nak;
}

/* A fault of this side was resumed with error */
static bool rejected(struct qp *qp)
{
	struct fault *fault = &qp->fault[SIDE_RESPONDER];
	bool was = fault->rejected;

	fault->rejected = false;
	return was;
}

static enum answer moved(struct qp *qp)
{
	fault_progress(qp, SIDE_RESPONDER);
	return ANSWER_ACK;
}

/* The SRQ that a message goes to; NULL: the receive queue of the QP */
static struct srq *message_srq(struct mlx5sim *m, const struct qp *qp,
			       const struct send_wqe *w)
{
	struct srq *srq;

	if (qp->type != MLX5_QPC_ST_XRC)
		return qp->srq;
	srq = table_find(&m->srqs, w->xrc_srqn);
	return srq && srq->xrcd && srq->xrcd == qp->xrcd ? srq : NULL;
}

/* What an XRC target reaches belongs to the domain of the SRQ that is named */
static const struct pd *remote_pd(struct mlx5sim *m, const struct qp *qp,
				  const struct send_wqe *w)
{
	const struct srq *srq = qp->type == MLX5_QPC_ST_XRC ?
				message_srq(m, qp, w) : NULL;

	return srq ? srq->pd : qp->pd;
}

static struct access remote_access(struct mlx5sim *m, const struct qp *qp,
				   const struct send_wqe *w, u32 rights,
				   bool write)
{
	return (struct access){
		.key = w->rkey,
		.pd = remote_pd(m, qp, w),
		.qpn = qp->obj.number,
		.rights = rights,
		.write = write,
	};
}

/* Part of a READ or WRITE, to or from @buf */
static enum answer rdma(struct mlx5sim *m, struct qp *qp,
			const struct send_wqe *w, const struct access *access,
			u64 off, u8 *buf, u32 len)
{
	enum xlt_status status;
	u32 done;

	/* The first packet tells the length of all: nothing moves if it is bad */
	if (rejected(qp) ||
	    (!off && !mem_allowed(m, access, w->remote_va, w->length)))
		return refuse(m, qp, ANSWER_NAK_ACCESS);
	status = mem_copy(m, access, w->remote_va + off, buf, len, &done);
	if (status == XLT_OK)
		return moved(qp);
	if (status == XLT_FAULT &&
	    fault_rdma(m, qp, w, w->length, off + done, access->write))
		return ANSWER_WAIT;
	return refuse(m, qp, ANSWER_NAK_ACCESS);
}

enum answer responder_write(struct mlx5sim *m, struct qp *qp,
			    const struct send_wqe *w, u64 off, u8 *buf, u32 len)
{
	struct access access = remote_access(m, qp, w, RIGHT_REMOTE_WRITE, true);

	if (!ifc_get(qpc, qp->qpc, rwe))
		return refuse(m, qp, ANSWER_NAK_INVALID);
	return rdma(m, qp, w, &access, off, buf, len);
}

enum answer responder_read(struct mlx5sim *m, struct qp *qp,
			   const struct send_wqe *w, u64 off, u8 *buf, u32 len)
{
	struct access access = remote_access(m, qp, w, RIGHT_REMOTE_READ, false);

	if (!ifc_get(qpc, qp->qpc, rre))
		return refuse(m, qp, ANSWER_NAK_INVALID);
	return rdma(m, qp, w, &access, off, buf, len);
}

/* Operands lie in memory as the driver chose with SET_HCA_CAP */
static u64 operand_load(struct mlx5sim *m, const u8 *p)
{
	u64 value = 0;

	if (ifc_get(atomic_caps, m->cap_cur[CAP_ATOMIC],
		    atomic_req_8B_endianness_mode) != ATOMIC_HOST_ENDIAN)
		return get_be64(p);
	for (u32 i = ATOMIC_SIZE; i-- > 0; )
		value = value << 8 | p[i];
	return value;
}

static void operand_store(struct mlx5sim *m, u8 *p, u64 value)
{
	if (ifc_get(atomic_caps, m->cap_cur[CAP_ATOMIC],
		    atomic_req_8B_endianness_mode) != ATOMIC_HOST_ENDIAN) {
		put_be64(p, value);
		return;
	}
	for (u32 i = 0; i < ATOMIC_SIZE; i++)
		p[i] = value >> 8 * i;
}

/* @old gets the operand as it lay in memory */
enum answer responder_atomic(struct mlx5sim *m, struct qp *qp,
			     const struct send_wqe *w, u64 *old)
{
	struct access access = remote_access(m, qp, w, RIGHT_ATOMIC, false);
	u8 new[ATOMIC_SIZE];
	enum xlt_status status;
	u64 value;
	u32 done;

	if (!ifc_get(qpc, qp->qpc, rae) || !cap(m, atomic) ||
	    w->remote_va % ATOMIC_SIZE)
		return refuse(m, qp, ANSWER_NAK_INVALID);
	if (rejected(qp))
		return refuse(m, qp, ANSWER_NAK_ACCESS);
	status = mem_copy(m, &access, w->remote_va, old, ATOMIC_SIZE, &done);
	if (status == XLT_OK) {
		value = operand_load(m, (u8 *)old);
		if (w->opcode == WQE_ATOMIC_FA)
			value += w->swap_add;
		else if (value == w->compare)
			value = w->swap_add;
		operand_store(m, new, value);
		access.write = true;
		status = mem_copy(m, &access, w->remote_va, new, ATOMIC_SIZE,
				  &done);
	}
	if (status == XLT_OK)
		return moved(qp);
	if (status == XLT_FAULT &&
	    fault_rdma(m, qp, w, ATOMIC_SIZE, 0, true))
		return ANSWER_WAIT;
	return refuse(m, qp, ANSWER_NAK_ACCESS);
}

/* Receive requests that were posted and not taken; 0 also after a mistake */
static u32 rq_posted(struct mlx5sim *m, struct qp *qp)
{
	u8 record[4];
	u16 posted;

	if (!dma_read(m, qp->dbr + DBR_RECEIVE, record, sizeof(record)))
		return 0;
	posted = get_be32(record) - qp->resp.ci;
	if (posted <= BIT(qp->log_rq_size))
		return posted;
	broken(m, CHK_RQ_OVERRUN, "QP 0x%x: %u posted, room for %u",
	       qp->obj.number, posted, BIT(qp->log_rq_size));
	return 0;
}

/* Take a receive request for a message */
static bool take(struct mlx5sim *m, struct qp *qp, const struct send_wqe *w)
{
	struct responder *r = &qp->resp;
	struct srq *srq = message_srq(m, qp, w);
	u8 raw[RQ_WQE_MAX];
	u32 bytes = BIT(qp->log_rq_stride);

	if (srq) {
		if (!srq_take(m, srq, raw, &bytes, &r->index))
			return false;
	} else {
		u32 at = r->ci & (BIT(qp->log_rq_size) - 1);

		if (!qp->has_rq || !rq_posted(m, qp) ||
		    !ring_read(m, &qp->ring, (u64)at << qp->log_rq_stride, raw,
			       bytes))
			return false;
		r->index = r->ci++;
	}
	r->from_srq = srq;
	r->sges = rwqe_parse(raw, bytes, r->sge, WQE_MAX_SGE);
	r->active = true;
	return true;
}

static void receive_done(struct mlx5sim *m, struct qp *qp, struct completion *c)
{
	struct responder *r = &qp->resp;
	struct srq *srq = r->from_srq;

	c->qpn = qp->obj.number;
	c->wqe_counter = r->index;
	c->user_index = srq && srq->cq ? srq->user_index : qp->user_index;
	r->active = false;
	cq_complete(m, srq && srq->cq ? srq->cq : qp->recv_cq, c);
}

static enum answer receive_failed(struct mlx5sim *m, struct qp *qp,
				  enum syndrome syn, enum answer nak)
{
	struct completion c = {
		.opcode = CQE_RESP_ERR,
		.syndrome = syn,
	};

	receive_done(m, qp, &c);
	qp_error(m, qp);
	return nak;
}

static u64 receive_room(const struct responder *r)
{
	u64 room = 0;

	for (u32 i = 0; i < r->sges; i++)
		room += r->sge[i].len;
	return room;
}

static enum answer send_done(struct mlx5sim *m, struct qp *qp,
			     const struct send_wqe *w,
			     const struct origin *from)
{
	struct completion c = {
		.opcode = w->opcode == WQE_SEND_IMM ? CQE_RESP_SEND_IMM :
			  w->opcode == WQE_SEND_INVAL ? CQE_RESP_SEND_INV :
			  CQE_RESP_SEND,
		.immediate = w->opcode == WQE_SEND ? 0 : w->imm,
		.bytes = from->header + w->length,
		.solicited = w->solicited,
		.slid = from->slid,
		.src_qp = from->src_qp,
		.sl = from->sl,
		.grh = from->grh,
	};

	if (w->opcode == WQE_SEND_INVAL &&
	    !mkey_invalidate(m, w->imm, qp->pd, true)) {
		receive_failed(m, qp, SYN_LOCAL_QP_OP, ANSWER_NAK_INVALID);
		return ANSWER_NAK_INVALID;
	}
	receive_done(m, qp, &c);
	return moved(qp);
}

enum answer responder_send(struct mlx5sim *m, struct qp *qp,
			   const struct send_wqe *w, u64 off, u8 *buf, u32 len,
			   bool last, const struct origin *from)
{
	struct responder *r = &qp->resp;
	enum xlt_status status;
	u32 done;

	if (rejected(qp) && r->active)
		return receive_failed(m, qp, SYN_LOCAL_PROT, ANSWER_NAK_OP);
	/* A request that was taken for a message waits for it, also in a fault */
	if (!r->active && !take(m, qp, w))
		return ANSWER_RNR;
	if (off + len > receive_room(r))
		return receive_failed(m, qp, SYN_LOCAL_LENGTH,
				      ANSWER_NAK_INVALID);
	status = sge_copy(m, qp, r->from_srq ? r->from_srq->pd : qp->pd, r->sge,
			  r->sges, off, buf, len, true, &done);
	if (status == XLT_FAULT && fault_receive(m, qp, off + done))
		return ANSWER_WAIT;
	if (status != XLT_OK)
		return receive_failed(m, qp, SYN_LOCAL_PROT, ANSWER_NAK_OP);
	return last ? send_done(m, qp, w, from) : moved(qp);
}

enum answer responder_write_imm(struct mlx5sim *m, struct qp *qp,
				const struct send_wqe *w,
				const struct origin *from)
{
	struct completion c = {
		.opcode = CQE_RESP_WRITE_IMM,
		.immediate = w->imm,
		.bytes = w->length,
		.solicited = w->solicited,
		.slid = from->slid,
	};

	if (!qp->resp.active && !take(m, qp, w))
		return ANSWER_RNR;
	receive_done(m, qp, &c);
	return ANSWER_ACK;
}

void responder_flush(struct mlx5sim *m, struct qp *qp)
{
	struct responder *r = &qp->resp;
	struct completion c;

	if (r->active) {
		c = (struct completion){ CQE_RESP_ERR, SYN_FLUSH };
		receive_done(m, qp, &c);
	}
	if (!qp->has_rq)
		return;
	for (u32 posted = rq_posted(m, qp); posted && !m->stopped; posted--) {
		c = (struct completion){ CQE_RESP_ERR, SYN_FLUSH };
		r->index = r->ci++;
		r->from_srq = NULL;
		receive_done(m, qp, &c);
	}
}
