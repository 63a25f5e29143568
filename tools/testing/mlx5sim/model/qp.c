// SPDX-License-Identifier: GPL-2.0
/* Queue pairs: doorbells, whose turn it is, the error state. */
#include "model.h"

#define POLL_NS			1000000ull	/* of a receive queue in error */
#define POLL_SHIFT_MAX		6

#define EVENT_LAST_WQE		MLX5_EVENT_TYPE_CODING_LAST_WQE_REACHED

bool qp_is_datagram(u32 type)
{
	return type == MLX5_QPC_ST_UD || type == MLX5_QPC_ST_QP0 ||
	       type == MLX5_QPC_ST_QP1;
}

bool qp_receives(const struct qp *qp)
{
	return qp->state == MLX5_QPC_STATE_RTR ||
	       qp->state == MLX5_QPC_STATE_RTS ||
	       qp->state == MLX5_QPC_STATE_SQD ||
	       qp->state == MLX5_QPC_STATE_SQER;
}

bool qp_flushes_sends(const struct qp *qp)
{
	return qp->state == MLX5_QPC_STATE_ERR ||
	       qp->state == MLX5_QPC_STATE_SQER;
}

bool budget_left(void)
{
	return budget.bytes > 0 && budget.steps > 0 && budget.wqes > 0;
}

void qp_wake(struct mlx5sim *m, struct qp *qp, u64 when)
{
	struct qp **at = &m->work;

	if (qp->queued) {
		qp->wake_ns = min_of(qp->wake_ns, when);
		return;
	}
	while (*at)
		at = &(*at)->next;
	*at = qp;
	qp->next = NULL;
	qp->queued = true;
	qp->wake_ns = when;
}

void qp_unqueue(struct mlx5sim *m, struct qp *qp)
{
	struct qp **at = &m->work;

	if (!qp->queued)
		return;
	while (*at != qp)
		at = &(*at)->next;
	*at = qp->next;
	qp->queued = false;
}

/*
 * A driver may post receive requests in the error state to see them flushed, and
 * rings no doorbell for them: look again, less and less often.
 */
static void poll_later(struct mlx5sim *m, struct qp *qp, u16 before)
{
	if (!qp->has_rq)
		return;
	if (qp->resp.ci != before)
		qp->idle_polls = 0;
	else if (qp->idle_polls < POLL_SHIFT_MAX)
		qp->idle_polls++;
	qp_wake(m, qp, now(m) + (POLL_NS << qp->idle_polls));
}

static void run(struct mlx5sim *m, struct qp *qp)
{
	u16 before = qp->resp.ci;

	budget.wqes--;
	requester_run(m, qp);
	if (qp->state == MLX5_QPC_STATE_ERR) {
		responder_flush(m, qp);
		poll_later(m, qp, before);
	}
}

void qp_run_due(struct mlx5sim *m, u64 now)
{
	struct qp *qp;

	while (budget_left() && !m->stopped) {
		for (qp = m->work; qp && qp->wake_ns > now; qp = qp->next)
			;
		if (!qp)
			break;
		qp_unqueue(m, qp);
		run(m, qp);
	}
}

void qp_doorbell(struct mlx5sim *m, u32 uar_page, u64 value)
{
	u32 qpn = (u32)value >> 8;
	struct qp *qp = table_find(&m->qps, qpn);

	if (!qp || !qp->has_sq || qp->uar_page != uar_page) {
		broken(m, CHK_DOORBELL, "QP 0x%x through UAR page %u", qpn,
		       uar_page);
		return;
	}
	qp_wake(m, qp, now(m));
	if (!device_nested())
		qp_run_due(m, now(m));
}

void qp_error(struct mlx5sim *m, struct qp *qp)
{
	if (qp->state == MLX5_QPC_STATE_ERR)
		return;
	qp->state = MLX5_QPC_STATE_ERR;
	qp->idle_polls = 0;
	if (qp->srq)
		eq_qp_event(m, EVENT_LAST_WQE, qp->obj.number);
	qp_wake(m, qp, now(m));
}

void qp_send_error(struct mlx5sim *m, struct qp *qp)
{
	if (!qp_is_datagram(qp->type)) {
		qp_error(m, qp);
		return;
	}
	/* Nobody at the other end has lost anything: receiving goes on */
	if (qp->state == MLX5_QPC_STATE_RTS)
		qp->state = MLX5_QPC_STATE_SQER;
	qp_wake(m, qp, now(m));
}

void qp_reset_queues(struct mlx5sim *m, struct qp *qp)
{
	qp_unqueue(m, qp);
	fault_orphan(m, qp);
	memset(&qp->req, 0, sizeof(qp->req));
	memset(&qp->resp, 0, sizeof(qp->resp));
	memset(qp->fault, 0, sizeof(qp->fault));
}

struct qp *qp_peer(const struct qp *qp, struct mlx5sim **peer)
{
	*peer = device_by_lid(ifc_get(qpc, qp->qpc, primary_address_path.rlid));
	if (!*peer || (*peer)->stopped)
		return NULL;
	return table_find(&(*peer)->qps, ifc_get(qpc, qp->qpc, remote_qpn));
}
