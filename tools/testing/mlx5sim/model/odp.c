// SPDX-License-Identifier: GPL-2.0
/*
 * On-demand paging: page faults and their end.
 *
 * A side of a QP that hits a translation entry which is not present stops.  The
 * driver gets an event, makes the page present and resumes that side, which then
 * tries again; or it resumes with error, and the side fails.
 */
#include "model.h"

#define EVENT_PAGE_FAULT	MLX5_EVENT_TYPE_CODING_PAGE_FAULT_EVENT
#define SUBTYPE_WQE		0
#define SUBTYPE_RDMA		1
#define PACKET			4096u
#define TOKEN_MASK		0xffffffu
#define REPEATS_MAX		1000

/* Data of the event */
#define PF_COMMITTED		0
#define PF_WQE_INDEX		6
#define PF_WQE_PACKET		10
#define PF_WQE_TOKEN		12
#define PF_WQE_TYPE_WQ		24
#define PF_RDMA_RKEY		4
#define PF_RDMA_PACKET		10
#define PF_RDMA_LENGTH		12
#define PF_RDMA_VA		16
#define PF_RDMA_TYPE_TOKEN	24

#define ODP(m, service, op) \
	ifc_get(odp_cap, (m)->cap_cur[CAP_ODP], \
		transport_page_fault_scheme_cap.service.op)

/* What the capabilities say about an operation of a QP */
#define odp_allowed(m, qp, op)						\
	(cap(m, pg) &&							\
	 ((qp)->type == MLX5_QPC_ST_RC ? ODP(m, rc_odp_caps, op) :	\
	  (qp)->type == MLX5_QPC_ST_XRC ? ODP(m, xrc_odp_caps, op) :	\
	  (qp)->type == MLX5_QPC_ST_UD ? ODP(m, ud_odp_caps, op) : 0))

/**
 * struct report - a fault to be reported
 * @side: of the QP
 * @subtype: of the event
 * @type: FAULT_* bits
 * @wq: number that the resume has to name; 0: the token
 * @where: position, to see whether there is progress
 * @what: the same
 */
struct report {
	enum fault_side side;
	u8 subtype;
	u8 type;
	u32 wq;
	u64 where;
	u64 what;
};

/* Note the fault at the QP; false: there is no queue for the event */
static bool fault_begin(struct mlx5sim *m, struct qp *qp,
			const struct report *r)
{
	struct fault *f = &qp->fault[r->side];

	if (!eq_for(m, EVENT_PAGE_FAULT))
		return false;
	if (f->where == r->where && f->what == r->what) {
		if (++f->repeats == REPEATS_MAX) {
			broken(m, CHK_FAULT_LIVELOCK, "QP 0x%x, %u times",
			       qp->obj.number, REPEATS_MAX);
			f->repeats = 0;
			return false;
		}
	} else {
		f->repeats = 0;
	}
	m->fault_token = (m->fault_token + 1) & TOKEN_MASK;
	f->pending = true;
	f->rejected = false;
	f->token = m->fault_token;
	f->wq = r->subtype == SUBTYPE_RDMA ? f->token : r->wq;
	f->type = r->type;
	f->where = r->where;
	f->what = r->what;
	m->stats.faults++;
	return true;
}

static void fault_event(struct mlx5sim *m, const struct qp *qp,
			const struct report *r, const u8 *data)
{
	trace(m,
	      "\"event\":\"fault\",\"qp\":\"0x%x\",\"type\":%u,\"token\":%u,\"committed\":%u,\"where\":\"0x%llx\",\"what\":\"0x%llx\"",
	      qp->obj.number, r->type, qp->fault[r->side].token,
	      get_be32(data + PF_COMMITTED), (unsigned long long)r->where,
	      (unsigned long long)r->what);
	eq_event(m, eq_for(m, EVENT_PAGE_FAULT), EVENT_PAGE_FAULT, r->subtype,
		 data);
}

/* A fault of memory that a work request names */
static bool fault_wqe(struct mlx5sim *m, struct qp *qp, const struct report *r,
		      u16 index, u64 committed, u64 left)
{
	const struct fault *f = &qp->fault[r->side];
	u8 data[EQE_DATA] = { 0 };

	if (!fault_begin(m, qp, r))
		return false;
	put_be32(data + PF_COMMITTED, committed);
	put_be16(data + PF_WQE_INDEX, index);
	put_be16(data + PF_WQE_PACKET, min_of(left, PACKET));
	put_be32(data + PF_WQE_TOKEN, f->token);
	put_be32(data + PF_WQE_TYPE_WQ, (u32)r->type << 24 | r->wq);
	fault_event(m, qp, r, data);
	return true;
}

static bool requester_may_fault(struct mlx5sim *m, const struct qp *qp)
{
	switch (qp->req.wqe.opcode) {
	case WQE_RDMA_WRITE:
	case WQE_RDMA_WRITE_IMM:
		return odp_allowed(m, qp, write);
	case WQE_RDMA_READ:
		return odp_allowed(m, qp, read);
	case WQE_ATOMIC_CS:
	case WQE_ATOMIC_FA:
		return odp_allowed(m, qp, atomic);
	default:
		return odp_allowed(m, qp, send);
	}
}

bool fault_requester(struct mlx5sim *m, struct qp *qp)
{
	const struct requester *req = &qp->req;
	const struct send_wqe *w = &req->wqe;
	bool lands = w->opcode == WQE_RDMA_READ ||
		     w->opcode == WQE_ATOMIC_CS || w->opcode == WQE_ATOMIC_FA;
	/* The result of an atomic, once known, is not partly done */
	u64 done = req->done < w->length ? req->done : 0;
	struct report r = {
		.side = SIDE_REQUESTER,
		.subtype = SUBTYPE_WQE,
		.type = FAULT_REQUESTER | (lands ? FAULT_WRITE : 0),
		.wq = qp->obj.number,
		.where = (u64)req->ci << 32 | 1,
		.what = done,
	};

	return requester_may_fault(m, qp) &&
	       fault_wqe(m, qp, &r, req->ci, done, w->length - done);
}

bool fault_receive(struct mlx5sim *m, struct qp *qp, u64 off)
{
	const struct responder *resp = &qp->resp;
	const struct srq *srq = resp->from_srq;
	struct report r = {
		.side = SIDE_RESPONDER,
		.subtype = SUBTYPE_WQE,
		.type = srq ? 0 : FAULT_WRITE,
		.wq = srq ? srq->obj.number : qp->obj.number,
		.where = (u64)resp->index << 32 | 2,
		.what = off,
	};

	if (!(srq ? odp_allowed(m, qp, srq_receive) :
		    odp_allowed(m, qp, receive)))
		return false;
	return fault_wqe(m, qp, &r, resp->index, off, PACKET);
}

bool fault_rdma(struct mlx5sim *m, struct qp *qp, const struct send_wqe *w,
		u64 total, u64 done, bool write)
{
	struct report r = {
		.side = SIDE_RESPONDER,
		.subtype = SUBTYPE_RDMA,
		.type = FAULT_RDMA | (write ? FAULT_WRITE : 0),
		.where = w->remote_va + done,
		.what = w->rkey,
	};
	u8 data[EQE_DATA] = { 0 };
	bool allowed;

	if (w->opcode == WQE_RDMA_READ)
		allowed = odp_allowed(m, qp, read);
	else if (w->opcode == WQE_ATOMIC_CS || w->opcode == WQE_ATOMIC_FA)
		allowed = odp_allowed(m, qp, atomic);
	else
		allowed = odp_allowed(m, qp, write);
	if (!allowed || !fault_begin(m, qp, &r))
		return false;
	put_be32(data + PF_COMMITTED, done);
	put_be32(data + PF_RDMA_RKEY, w->rkey);
	put_be16(data + PF_RDMA_PACKET, min_of(total - done, PACKET));
	put_be32(data + PF_RDMA_LENGTH, total);
	put_be64(data + PF_RDMA_VA, w->remote_va);
	put_be32(data + PF_RDMA_TYPE_TOKEN,
		 (u32)r.type << 24 | qp->fault[SIDE_RESPONDER].token);
	fault_event(m, qp, &r, data);
	return true;
}

void fault_progress(struct qp *qp, enum fault_side side)
{
	qp->fault[side].repeats = 0;
}

void fault_orphan(struct mlx5sim *m, struct qp *qp)
{
	for (u32 side = 0; side < SIDES; side++) {
		if (!qp->fault[side].pending)
			continue;
		m->orphan[m->next_orphan++ % ORPHANS] = qp->fault[side];
		qp->fault[side].pending = false;
	}
}

/* The pending fault with a token, and the QP it belongs to, NULL for an orphan */
static struct fault *find_fault(struct mlx5sim *m, u32 token, struct qp **qp)
{
	u32 at = 0;

	while ((*qp = table_step(&m->qps, &at)))
		for (u32 side = 0; side < SIDES; side++)
			if ((*qp)->fault[side].pending &&
			    (*qp)->fault[side].token == token)
				return &(*qp)->fault[side];
	for (u32 i = 0; i < ORPHANS; i++)
		if (m->orphan[i].pending && m->orphan[i].token == token)
			return &m->orphan[i];
	return NULL;
}

/* The side can go on: run it, or for a responder the QP at the other end */
static void wake_side(struct mlx5sim *m, struct qp *qp, const struct fault *f)
{
	struct mlx5sim *peer_m = m;
	struct qp *runner = qp;

	if (f == &qp->fault[SIDE_RESPONDER])
		runner = qp_peer(qp, &peer_m);
	if (runner)
		qp_wake(peer_m, runner, now(m));
}

enum cmd_status cmd_page_fault_resume(struct mlx5sim *m, struct cmd *c)
{
	const u8 *info = ifc_at(page_fault_resume_in, c->in, page_fault_info);
	u32 token = ifc_get(trans_page_fault_info, info, fault_token);
	u32 wq = ifc_get(trans_page_fault_info, info, wq_number);
	u32 type = ifc_get(trans_page_fault_info, info, page_fault_type);
	bool error = ifc_get(trans_page_fault_info, info, error);
	struct fault *f;
	struct qp *qp;
	u64 unused;

	f = find_fault(m, token, &qp);
	if (!f) {
		broken(m, CHK_RESUME_STRAY, "token 0x%x, work queue 0x%x",
		       token, wq);
		return CMD_BAD_RESOURCE;
	}
	if (f->type != type || f->wq != wq) {
		broken(m, CHK_RESUME_MISMATCH,
		       "token 0x%x: type %u for %u, work queue 0x%x for 0x%x",
		       token, type, f->type, wq, f->wq);
		return CMD_BAD_PARAM;
	}
	if (inject_hit(m, INJECT_RESUME_ERROR, 0, &unused))
		error = true;
	f->pending = false;
	f->rejected = error;
	m->stats.resumes++;
	trace(m, "\"event\":\"resume\",\"token\":%u,\"error\":%u", token,
	      error);
	if (qp)
		wake_side(m, qp, f);
	return CMD_OK;
}
