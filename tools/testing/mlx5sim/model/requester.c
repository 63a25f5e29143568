// SPDX-License-Identifier: GPL-2.0
/*
 * The requester: executes the send queue of a QP, in order.
 *
 * A request moves its data in chunks and remembers how far it is, so that it can
 * wait in the middle (page fault, receiver not ready, budget of the call) and go
 * on from there.
 */
#include "model.h"

#define CHUNK			(256u << 10)
#define COST_WQE		512	/* bytes that a request without data counts */
#define DBR_SEND		4	/* doorbell record: send counter */

#define RNR_FOREVER		7
#define POLL_PEER_NS		10000000ull	/* peer in a page fault */
#define POLL_FOREVER_NS		1000000000ull	/* no timeout configured */
#define ACK_TIMEOUT_UNIT_NS	4096ull

enum progress {
	PROGRESS_DONE,		/* the request is finished */
	PROGRESS_WAIT,		/* something or some time must come first */
	PROGRESS_BUDGET,	/* go on with the next budget */
};

/*
 * Data on its way from one memory to the other.  Nothing that uses it is entered
 * a second time: what a write to a BAR starts is done later.
 */
static u8 bounce[CHUNK];

/* IB specification, "encoding for RNR NAK timer field", in microseconds */
static const u32 rnr_us[32] = {
	655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280,
	1920, 2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440,
	81920, 122880, 163840, 245760, 327680, 491520,
};

static u32 wqe_blocks(const struct send_wqe *w)
{
	return (w->bytes + WQE_BB - 1) / WQE_BB;
}

/* The request at the consumer is done; a completion is due or held back */
static void complete(struct mlx5sim *m, struct qp *qp, enum syndrome syn)
{
	struct requester *r = &qp->req;
	struct completion c = {
		.opcode = syn ? CQE_REQ_ERR : CQE_REQ,
		.syndrome = syn,
		.wqe_opcode = r->wqe.opcode,
		.qpn = qp->obj.number,
		.user_index = qp->user_index,
		.bytes = r->wqe.length,
		.wqe_counter = r->ci,
	};
	bool wanted = syn || r->wqe.signaled;
	u64 delay;

	m->stats.wqes++;
	r->ci += wqe_blocks(&r->wqe);
	r->loaded = false;
	r->done = 0;
	r->retries = 0;
	r->rnr_retries = 0;
	if (wanted && inject_hit(m, INJECT_CQE_DELAY, c.wqe_opcode, &delay)) {
		r->held = c;
		r->held_ns = now(m) + delay;
	} else if (wanted &&
		   !inject_hit(m, INJECT_CQE_DROP, c.wqe_opcode, &delay)) {
		cq_complete(m, qp->send_cq, &c);
	}
	if (syn)
		qp_send_error(m, qp);
}

/* A request that cannot be understood takes all that follow with it */
static void fail_format(struct mlx5sim *m, struct qp *qp, const char *why)
{
	struct requester *r = &qp->req;

	broken(m, CHK_WQE_FORMAT, "QP 0x%x, request 0x%x: %s", qp->obj.number,
	       r->ci, why);
	r->wqe.bytes = WQE_BB;
	r->wqe.length = 0;
	complete(m, qp, SYN_LOCAL_QP_OP);
	r->ci = r->pi;
}

/* Read @count blocks of the request at the consumer from @first on */
static bool read_blocks(struct mlx5sim *m, struct qp *qp, u32 first, u32 count)
{
	u8 *to = qp->req.wqe.raw + first * WQE_BB;
	u32 size = BIT(qp->log_sq_size);

	while (count) {
		u32 at = (qp->req.ci + first) & (size - 1);
		u32 part = min_of(count, size - at);

		if (!ring_read(m, &qp->ring, qp->sq_offset + (u64)at * WQE_BB,
			       to, part * WQE_BB))
			return false;
		to += part * WQE_BB;
		first += part;
		count -= part;
	}
	return true;
}

/* Read and parse the request at the consumer */
static bool load(struct mlx5sim *m, struct qp *qp)
{
	struct requester *r = &qp->req;
	struct send_wqe *w = &r->wqe;
	const char *wrong;
	u32 blocks;

	if (!read_blocks(m, qp, 0, 1)) {
		fail_format(m, qp, "not readable");
		return false;
	}
	w->bytes = (get_be32(w->raw + 4) & 0x3f) * 16;
	w->opcode = w->raw[3];
	blocks = wqe_blocks(w);
	if (!w->bytes || blocks > BIT(qp->log_sq_size) ||
	    blocks > (u16)(r->pi - r->ci)) {
		fail_format(m, qp, "size");
		return false;
	}
	wrong = read_blocks(m, qp, 1, blocks - 1) ? wqe_parse(w, qp->type) :
						    "not readable";
	if (!wrong && w->index != r->ci)
		wrong = "index";
	if (!wrong && w->qpn != qp->obj.number)
		wrong = "QP number";
	if (wrong) {
		fail_format(m, qp, wrong);
		return false;
	}
	r->loaded = true;
	return true;
}

static bool opcode_allowed(const struct qp *qp, u8 opcode)
{
	switch (opcode) {
	case WQE_NOP:
		return true;
	case WQE_UMR:
		return qp->type == MLX5_QPC_ST_REG_UMR ||
		       qp->type == MLX5_QPC_ST_RC ||
		       qp->type == MLX5_QPC_ST_XRC ||
		       qp->type == MLX5_QPC_ST_UC;
	case WQE_SEND:
	case WQE_SEND_IMM:
		return qp->type != MLX5_QPC_ST_REG_UMR;
	case WQE_RDMA_WRITE:
	case WQE_RDMA_WRITE_IMM:
		return qp->type == MLX5_QPC_ST_RC ||
		       qp->type == MLX5_QPC_ST_XRC ||
		       qp->type == MLX5_QPC_ST_UC;
	case WQE_SEND_INVAL:
	case WQE_RDMA_READ:
	case WQE_ATOMIC_CS:
	case WQE_ATOMIC_FA:
	case WQE_LOCAL_INV:
		return qp->type == MLX5_QPC_ST_RC ||
		       qp->type == MLX5_QPC_ST_XRC;
	default:
		return false;
	}
}

static enum progress end(struct mlx5sim *m, struct qp *qp, enum syndrome syn)
{
	complete(m, qp, syn);
	return PROGRESS_DONE;
}

/* Local memory is not present: report it, unless this QP cannot have faults */
static enum progress local_fault(struct mlx5sim *m, struct qp *qp)
{
	if (fault_requester(m, qp))
		return PROGRESS_WAIT;
	return end(m, qp, SYN_LOCAL_PROT);
}

static enum progress no_answer(struct mlx5sim *m, struct qp *qp)
{
	u32 timeout = ifc_get(qpc, qp->qpc, primary_address_path.ack_timeout);

	if (!timeout) {
		qp_wake(m, qp, now(m) + POLL_FOREVER_NS);
		return PROGRESS_WAIT;
	}
	if (qp->req.retries++ >= ifc_get(qpc, qp->qpc, retry_count))
		return end(m, qp, SYN_TRANSPORT_RETRY);
	qp_wake(m, qp, now(m) + (ACK_TIMEOUT_UNIT_NS << timeout));
	return PROGRESS_WAIT;
}

static enum progress not_ready(struct mlx5sim *m, struct qp *qp,
			       const struct qp *peer)
{
	u32 retries = ifc_get(qpc, qp->qpc, rnr_retry);
	u32 timer = ifc_get(qpc, peer->qpc, min_rnr_nak);

	if (retries != RNR_FOREVER && qp->req.rnr_retries++ >= retries)
		return end(m, qp, SYN_RNR_RETRY);
	qp_wake(m, qp, now(m) + rnr_us[timer] * 1000ull);
	return PROGRESS_WAIT;
}

/* What to do with an answer that is no acknowledgment */
static enum progress answered(struct mlx5sim *m, struct qp *qp,
			      const struct qp *peer, enum answer answer)
{
	/* Without a connection nobody tells: the message is lost */
	if (qp->type == MLX5_QPC_ST_UC)
		return end(m, qp, SYN_NONE);
	switch (answer) {
	case ANSWER_RNR:
		return not_ready(m, qp, peer);
	case ANSWER_WAIT:
		qp_wake(m, qp, now(m) + POLL_PEER_NS);
		return PROGRESS_WAIT;
	case ANSWER_NAK_INVALID:
		return end(m, qp, SYN_REMOTE_INVALID);
	case ANSWER_NAK_ACCESS:
		return end(m, qp, SYN_REMOTE_ACCESS);
	case ANSWER_NAK_OP:
		return end(m, qp, SYN_REMOTE_OP);
	default:
		return no_answer(m, qp);
	}
}

/* A chunk was acknowledged */
static void advance(struct qp *qp, u32 bytes)
{
	qp->req.done += bytes;
	qp->req.retries = 0;
	qp->req.rnr_retries = 0;
	fault_progress(qp, SIDE_REQUESTER);
	budget.bytes -= bytes;
}

static bool is_write(const struct send_wqe *w)
{
	return w->opcode == WQE_RDMA_WRITE || w->opcode == WQE_RDMA_WRITE_IMM;
}

/* WRITE and SEND */
static enum progress push(struct mlx5sim *m, struct qp *qp,
			  struct mlx5sim *peer_m, struct qp *peer)
{
	struct requester *r = &qp->req;
	struct send_wqe *w = &r->wqe;
	const struct origin from = { .slid = m->lid };
	enum answer answer = ANSWER_ACK;

	while (r->done < w->length) {
		u32 part = min_of(w->length - r->done, CHUNK);
		enum xlt_status status;

		if (!budget_left())
			return PROGRESS_BUDGET;
		status = sge_copy(m, qp, qp->pd, w->sge, w->sges, r->done,
				  bounce, part, false, &part);
		if (status == XLT_ERROR)
			return end(m, qp, SYN_LOCAL_PROT);
		if (status == XLT_FAULT && !part)
			return local_fault(m, qp);
		if (is_write(w))
			answer = responder_write(peer_m, peer, w, r->done,
						 bounce, part);
		else
			answer = responder_send(peer_m, peer, w, r->done,
						bounce, part,
						r->done + part == w->length,
						&from);
		if (answer != ANSWER_ACK)
			return answered(m, qp, peer, answer);
		advance(qp, part);
	}
	if (w->opcode == WQE_RDMA_WRITE_IMM)
		answer = responder_write_imm(peer_m, peer, w, &from);
	else if (!is_write(w) && !w->length)
		answer = responder_send(peer_m, peer, w, 0, bounce, 0, true,
					&from);
	if (answer != ANSWER_ACK)
		return answered(m, qp, peer, answer);
	return end(m, qp, SYN_NONE);
}

static enum progress pull(struct mlx5sim *m, struct qp *qp,
			  struct mlx5sim *peer_m, struct qp *peer)
{
	struct requester *r = &qp->req;
	struct send_wqe *w = &r->wqe;

	while (r->done < w->length) {
		u32 part = min_of(w->length - r->done, CHUNK);
		enum xlt_status status;
		enum answer answer;

		if (!budget_left())
			return PROGRESS_BUDGET;
		answer = responder_read(peer_m, peer, w, r->done, bounce,
					part);
		if (answer != ANSWER_ACK)
			return answered(m, qp, peer, answer);
		status = sge_copy(m, qp, qp->pd, w->sge, w->sges, r->done,
				  bounce, part, true, &part);
		if (status == XLT_ERROR)
			return end(m, qp, SYN_LOCAL_PROT);
		if (status == XLT_FAULT && !part)
			return local_fault(m, qp);
		advance(qp, part);
	}
	return end(m, qp, SYN_NONE);
}

/* The operation happens once, even if its result has to wait for a page */
static enum progress atomic(struct mlx5sim *m, struct qp *qp,
			    struct mlx5sim *peer_m, struct qp *peer)
{
	struct requester *r = &qp->req;
	struct send_wqe *w = &r->wqe;
	enum xlt_status status;
	u32 done;

	if (w->length != sizeof(r->atomic_old))
		return end(m, qp, SYN_LOCAL_LENGTH);
	if (!r->done) {
		enum answer answer = responder_atomic(peer_m, peer, w,
						      &r->atomic_old);

		if (answer != ANSWER_ACK)
			return answered(m, qp, peer, answer);
		r->done = sizeof(r->atomic_old);
	}
	status = sge_copy(m, qp, qp->pd, w->sge, w->sges, 0,
			  (u8 *)&r->atomic_old, sizeof(r->atomic_old), true, &done);
	if (status == XLT_ERROR)
		return end(m, qp, SYN_LOCAL_PROT);
	if (status == XLT_FAULT)
		return local_fault(m, qp);
	return end(m, qp, SYN_NONE);
}

static enum progress remote_operation(struct mlx5sim *m, struct qp *qp)
{
	struct send_wqe *w = &qp->req.wqe;
	struct mlx5sim *peer_m;
	struct qp *peer = qp_peer(qp, &peer_m);
	enum answer answer;

	if (w->length > BIT_ULL(cap(m, log_max_msg)))
		return end(m, qp, SYN_LOCAL_LENGTH);
	answer = peer ? responder_check(peer_m, peer, qp) : ANSWER_NONE;
	if (answer != ANSWER_ACK)
		return answered(m, qp, peer, answer);
	switch (w->opcode) {
	case WQE_RDMA_READ:
		return pull(m, qp, peer_m, peer);
	case WQE_ATOMIC_CS:
	case WQE_ATOMIC_FA:
		return atomic(m, qp, peer_m, peer);
	default:
		return push(m, qp, peer_m, peer);
	}
}

static enum progress datagram(struct mlx5sim *m, struct qp *qp)
{
	struct send_wqe *w = &qp->req.wqe;
	enum xlt_status status;
	u32 done;

	if (w->length > DATAGRAM_MAX)
		return end(m, qp, SYN_LOCAL_LENGTH);
	status = sge_copy(m, qp, qp->pd, w->sge, w->sges, 0,
			  bounce + DATAGRAM_HEADER, w->length, false, &done);
	if (status == XLT_ERROR)
		return end(m, qp, SYN_LOCAL_PROT);
	if (status == XLT_FAULT)
		return local_fault(m, qp);
	budget.bytes -= w->length;
	datagram_send(m, qp, w, bounce);
	return end(m, qp, SYN_NONE);
}

static enum progress execute(struct mlx5sim *m, struct qp *qp)
{
	struct send_wqe *w = &qp->req.wqe;

	budget.bytes -= COST_WQE;
	budget.wqes--;
	if (!opcode_allowed(qp, w->opcode)) {
		broken(m, CHK_WQE_OPCODE, "0x%x on QP 0x%x of type 0x%x",
		       w->opcode, qp->obj.number, qp->type);
		return end(m, qp, SYN_LOCAL_QP_OP);
	}
	switch (w->opcode) {
	case WQE_NOP:
		return end(m, qp, SYN_NONE);
	case WQE_UMR:
		return end(m, qp, umr_execute(m, qp, w));
	case WQE_LOCAL_INV:
		return end(m, qp, mkey_invalidate(m, w->imm, qp->pd, false) ?
			    SYN_NONE : SYN_MW_BIND);
	}
	switch (qp->type) {
	case MLX5_QPC_ST_RC:
	case MLX5_QPC_ST_UC:
	case MLX5_QPC_ST_XRC:
		return remote_operation(m, qp);
	default:
		return datagram(m, qp);
	}
}

/* A completion that a test wanted late; true: it is out of the way */
static bool release_held(struct mlx5sim *m, struct qp *qp)
{
	struct requester *r = &qp->req;

	if (!r->held_ns)
		return true;
	if (r->held_ns > now(m)) {
		qp_wake(m, qp, r->held_ns);
		return false;
	}
	r->held_ns = 0;
	cq_complete(m, qp->send_cq, &r->held);
	return true;
}

/* In the error state every request ends with an error, in order */
static void flush(struct mlx5sim *m, struct qp *qp)
{
	struct requester *r = &qp->req;
	struct completion c = {
		.opcode = CQE_REQ_ERR,
		.syndrome = SYN_FLUSH,
		.qpn = qp->obj.number,
		.user_index = qp->user_index,
		.wqe_counter = r->ci,
	};

	budget.wqes--;
	if (!r->loaded && !load(m, qp))
		return;
	c.wqe_opcode = r->wqe.opcode;
	/* A queue sized for signaled requests has no room for all others */
	if (r->wqe.signaled || cq_has_room(m, qp->send_cq))
		cq_complete(m, qp->send_cq, &c);
	m->stats.wqes++;
	r->ci += wqe_blocks(&r->wqe);
	r->loaded = false;
	r->done = 0;
}

/* Read how far the driver has posted */
static bool read_producer(struct mlx5sim *m, struct qp *qp)
{
	struct requester *r = &qp->req;
	u8 record[4];
	u16 pi;

	if (!dma_read(m, qp->dbr + DBR_SEND, record, sizeof(record)))
		return false;
	pi = get_be32(record);
	if ((u16)(pi - r->ci) > BIT(qp->log_sq_size)) {
		broken(m, CHK_SQ_OVERRUN,
		       "QP 0x%x: producer 0x%x, consumer 0x%x, size 0x%x",
		       qp->obj.number, pi, r->ci, BIT(qp->log_sq_size));
		qp_error(m, qp);
		return false;
	}
	r->pi = pi;
	return true;
}

static bool step(struct mlx5sim *m, struct qp *qp)
{
	struct requester *r = &qp->req;
	struct fault *fault = &qp->fault[SIDE_REQUESTER];

	if (qp_flushes_sends(qp)) {
		flush(m, qp);
		return true;
	}
	if (fault->pending)
		return false;
	if (!r->loaded) {
		u64 unused;

		if (!load(m, qp))
			return true;
		if (inject_hit(m, INJECT_CQE_ERROR, r->wqe.opcode, &unused)) {
			complete(m, qp, SYN_LOCAL_QP_OP);
			return true;
		}
	}
	if (fault->rejected) {
		fault->rejected = false;
		complete(m, qp, SYN_LOCAL_PROT);
		return true;
	}
	switch (execute(m, qp)) {
	case PROGRESS_DONE:
		return true;
	case PROGRESS_BUDGET:
		qp_wake(m, qp, now(m));
		return false;
	default:
		return false;
	}
}

void requester_run(struct mlx5sim *m, struct qp *qp)
{
	struct requester *r = &qp->req;

	/* In other states the doorbell record may be of an earlier life */
	if (!qp->has_sq || (qp->state != MLX5_QPC_STATE_RTS &&
			    !qp_flushes_sends(qp)))
		return;
	if (!read_producer(m, qp))
		return;
	while (!m->stopped && release_held(m, qp) && r->ci != r->pi) {
		if (!budget_left()) {
			qp_wake(m, qp, now(m));
			break;
		}
		if (!step(m, qp))
			break;
	}
}
