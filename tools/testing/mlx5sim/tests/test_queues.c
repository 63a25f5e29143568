// SPDX-License-Identifier: GPL-2.0
/* Event and completion queues: arming, wrap, both CQE sizes, resize, queries. */
#include <stdlib.h>

#include "../../selftests/tap.h"
#include "../model/qp.h"
#include "fake.h"

static struct dev *d;
static const struct mlx5sim_config config = { .lid = 1, .strict = true };

static void setup(void)
{
	d = dev_running(&config);
}

static void teardown(void)
{
	ok(!d->violation, "no rule broken (%s)", d->text);
	dev_free(d);
	machine_reset();
}

static struct fqp *nop_qp(u32 cqe_bytes, u32 log_cq)
{
	struct qp_arg arg = { .scq = cq_make(d, log_cq, cqe_bytes) };
	struct fqp *qp = qp_make(d, &arg);

	qp_connect(qp, qp->qpn, 1, NULL);
	return qp;
}

static void nop(struct fqp *qp)
{
	struct wqe w;

	wqe_begin(&w, qp, WQE_NOP, SIGNALED, 0);
	wqe_post(&w);
}

static void sizes(u32 cqe_bytes)
{
	u32 seen = 0, in_order = 0;
	struct fqp *qp;

	setup();
	qp = nop_qp(cqe_bytes, 3);
	for (u32 i = 0; i < 50; i++) {
		u8 *cqe;

		nop(qp);
		cqe = cq_poll(qp->scq);
		seen += !!cqe;
		in_order += cqe && cqe_counter(cqe) == i;
	}
	ok(seen == 50 && in_order == 50, "CQE of %u bytes, six rounds",
	   cqe_bytes);
	ok(!cq_poll(qp->scq), "and no more");
	teardown();
}

static void arming(void)
{
	struct queue *cq;
	struct fqp *qp;
	u32 before;
	u8 *eqe;

	setup();
	qp = nop_qp(64, 6);
	cq = qp->scq;
	nop(qp);
	ok(!eq_poll(d, d->comp_eq, true), "no event without arming");
	cq_ring(d, cq, false);
	eqe = eq_poll(d, d->comp_eq, true);
	ok(eqe && eqe[1] == 0 && get_be32(eqe + 32 + 24) == cq->number,
	   "armed with a completion unseen: event at once");
	while (cq_poll(cq))
		;
	before = d->msix[1];
	cq_ring(d, cq, false);
	ok(d->msix[1] == before, "armed and nothing there: no interrupt");
	nop(qp);
	ok(d->msix[1] == before + 1, "the next completion interrupts");
	nop(qp);
	ok(d->msix[1] == before + 1, "one arming, one interrupt");
	while (cq_poll(cq))
		;
	cq_ring(d, cq, true);
	before = d->msix[1];
	eq_poll(d, d->comp_eq, true);
	nop(qp);
	ok(d->msix[1] == before && !eq_poll(d, d->comp_eq, true),
	   "armed for solicited ones: a plain completion is silent");
	post_write(qp, 0, 0x123, 0x123, 0, 8);
	ok(eq_poll(d, d->comp_eq, true), "an error is not");
	teardown();
}

static void eq_rules(void)
{
	struct queue *eq;
	u8 out[ifc_bytes(query_eq_out)];
	const u8 *eqc = ifc_at(query_eq_out, out, eq_context_entry);
	u32 before;

	setup();
	eq = d->cmd_eq;
	while (eq_poll(d, eq, false))
		;
	eq_ring(d, eq, false);
	before = d->msix[0];
	eq_ring(d, eq, true);
	ok(d->msix[0] == before, "EQ armed and empty: silent");
	dev_simple(d, MLX5_CMD_OP_QUERY_EQ, 0, eq->number, out, sizeof(out));
	ok(d->msix[0] == before + 1, "event of the command interrupts");
	ok(ifc_get(eqc, eqc, log_eq_size) == 6 &&
	   ifc_get(eqc, eqc, consumer_counter) == eq->ci, "QUERY_EQ");
	eq_ring(d, eq, true);
	ok(d->msix[0] == before + 2, "armed with an event unseen: at once");
	for (u32 i = 0; i < 200; i++) {
		u8 *eqe;

		dev_simple(d, MLX5_CMD_OP_QUERY_ISSI, 0, 0, out, 112);
		while ((eqe = eq_poll(d, eq, true)))
			before = get_be32(eqe + 32);
	}
	ok(before == BIT(3), "events name the slot, around the queue");
	teardown();
}

/* MODIFY_CQ with a new buffer */
static int resize(struct queue *cq, u32 log_size)
{
	u32 bytes = cq->entry << log_size;
	u32 pages = (bytes + PAGE - 1) / PAGE;
	u32 len = ifc_bytes(modify_cq_in) + 8 * pages;
	u8 *in = calloc(1, len), out[16];
	u8 *cqc = ifc_at(modify_cq_in, in, cq_context);
	u64 buf = mem_alloc(bytes);
	int status;

	for (u32 i = 0; i < BIT(log_size); i++)
		*((u8 *)mem(buf) + cq->entry * (i + 1) - 1) = 0xf1;
	ifc_set(modify_cq_in, in, opcode, MLX5_CMD_OP_MODIFY_CQ);
	ifc_set(modify_cq_in, in, op_mod, 1);
	ifc_set(modify_cq_in, in, cqn, cq->number);
	put_be32(in + 12, 7);
	ifc_set(cqc, cqc, log_cq_size, log_size);
	ifc_set(cqc, cqc, cqe_sz, cq->entry == 128);
	for (u32 i = 0; i < pages; i++)
		put_be64(ifc_at(modify_cq_in, in, pas) + 8 * i,
			 buf + i * PAGE);
	status = dev_cmd(d, in, len, out, sizeof(out));
	free(in);
	if (!status) {
		u8 *cqe;

		/* What is left of the old buffer, up to the mark */
		while ((cqe = cq_poll(cq)) && cqe_opcode(cqe) != CQE_RESIZE)
			;
		status = cqe ? 0 : -1;
		cq->buf = buf;
		cq->log_size = log_size;
	}
	return status;
}

static void resizing(u32 cqe_bytes)
{
	u8 out[ifc_bytes(query_cq_out)];
	const u8 *cqc = ifc_at(query_cq_out, out, cq_context);
	struct fqp *qp;
	u32 seen = 0;

	setup();
	qp = nop_qp(cqe_bytes, 4);
	for (u32 i = 0; i < 7; i++)
		nop(qp);
	ok(!resize(qp->scq, 7), "larger, the old buffer ends with a mark");
	for (u32 i = 0; i < 60; i++)
		nop(qp);
	while (cq_poll(qp->scq))
		seen++;
	ok(seen == 60, "60 completions in the new buffer (%u)", seen);
	ok(!resize(qp->scq, 3), "smaller");
	for (u32 i = 0; i < 30; i++) {
		nop(qp);
		seen += !!cq_poll(qp->scq);
	}
	ok(seen == 90, "around the small buffer");
	ok(!dev_simple(d, MLX5_CMD_OP_QUERY_CQ, 0, qp->scq->number, out,
		       sizeof(out)) && ifc_get(cqc, cqc, log_cq_size) == 3 &&
	   ifc_get(cqc, cqc, producer_counter) == qp->scq->ci, "QUERY_CQ");
	teardown();
}

/* The mark takes a place, and what was not polled must fit as well */
static void resizing_full(void)
{
	struct fqp *qp;

	setup();
	qp = nop_qp(64, 3);
	for (u32 i = 0; i < 7; i++)
		nop(qp);
	ok(resize(qp->scq, 2) == 0x40, "too small for what was not polled");
	nop(qp);
	ok(resize(qp->scq, 7) == 0x40, "full: no room for the mark");
	while (cq_poll(qp->scq))
		;
	ok(!resize(qp->scq, 2), "polled: smaller");
	teardown();
}

static void moderation(void)
{
	u8 in[ifc_bytes(modify_cq_in)] = { 0 }, out[ifc_bytes(query_cq_out)];
	u8 *cqc = ifc_at(modify_cq_in, in, cq_context);
	struct queue *cq;

	setup();
	cq = cq_make(d, 4, 64);
	ifc_set(modify_cq_in, in, opcode, MLX5_CMD_OP_MODIFY_CQ);
	ifc_set(modify_cq_in, in, cqn, cq->number);
	ifc_set(cqc, cqc, cq_period, 16);
	ifc_set(cqc, cqc, cq_max_count, 32);
	ok(!dev_cmd(d, in, sizeof(in), out, 16), "moderation is taken");
	dev_simple(d, MLX5_CMD_OP_QUERY_CQ, 0, cq->number, out, sizeof(out));
	ok(ifc_get(cqc, ifc_at(query_cq_out, out, cq_context), cq_period) == 16,
	   "and told");
	ok(!cq_remove(d, cq), "unused CQ destroyed");
	teardown();
}

int main(void)
{
	sizes(64);
	sizes(128);
	arming();
	eq_rules();
	resizing(64);
	resizing(128);
	resizing_full();
	moderation();
	return tap_done();
}
