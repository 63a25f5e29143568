// SPDX-License-Identifier: GPL-2.0
/* Shared receive queues: RMP and XRC SRQ, order, limit, errors; DEVX memory. */
#include <stdlib.h>

#include "../../selftests/tap.h"
#include "../model/qp.h"
#include "fake.h"

#define VA		0x400000000000ull
#define SIZE		0x10000u
#define ENTRIES		16u
#define LOG_ENTRIES	4
#define LOG_STRIDE	5

static struct dev *d;
static u32 key;
static u64 at;
static const struct mlx5sim_config config = { .lid = 1, .strict = true };

/**
 * struct fsrq - a shared receive queue of the driver
 */
static struct {
	u32 number;
	u64 buf;
	u64 dbr;
	u16 head;
	u16 tail;
	u16 posted;
} srq;

static u8 *entry(u16 index)
{
	return (u8 *)mem(srq.buf) + (index << LOG_STRIDE);
}

static void srq_alloc(void)
{
	srq.buf = mem_alloc(ENTRIES << LOG_STRIDE);
	srq.dbr = mem_alloc(8);
	srq.head = 0;
	srq.tail = ENTRIES - 1;
	srq.posted = 0;
	for (u32 i = 0; i < ENTRIES; i++)
		put_be16(entry(i) + 2, (i + 1) % ENTRIES);
}

static void setup(void)
{
	d = dev_running(&config);
	key = mr_make(d, VA, SIZE, ALL_RIGHTS, &at);
	srq_alloc();
}

static void teardown(void)
{
	ok(!d->violation, "no rule broken (%s)", d->text);
	dev_free(d);
	machine_reset();
}

static int rmp_make(void)
{
	u8 in[ifc_bytes(create_rmp_in) + 8] = { 0 }, out[16];
	u8 *wq = ifc_at(create_rmp_in, in, ctx.wq);
	int status;

	ifc_set(create_rmp_in, in, opcode, MLX5_CMD_OP_CREATE_RMP);
	ifc_set(wq, wq, log_wq_sz, LOG_ENTRIES);
	ifc_set(wq, wq, log_wq_stride, LOG_STRIDE);
	ifc_set(wq, wq, pd, d->pd);
	ifc_set(wq, wq, dbr_addr, srq.dbr);
	put_be64(ifc_at(create_rmp_in, in, ctx.wq.pas), srq.buf);
	status = dev_cmd(d, in, sizeof(in), out, sizeof(out));
	srq.number = ifc_get(create_rmp_out, out, rmpn);
	return status;
}

static int xrc_make(u32 xrcd, struct queue *cq)
{
	u8 in[ifc_bytes(create_xrc_srq_in) + 8] = { 0 }, out[16];
	u8 *ctx = ifc_at(create_xrc_srq_in, in, xrc_srq_context_entry);
	int status;

	ifc_set(create_xrc_srq_in, in, opcode, MLX5_CMD_OP_CREATE_XRC_SRQ);
	ifc_set(xrc_srqc, ctx, log_xrc_srq_size, LOG_ENTRIES);
	ifc_set(xrc_srqc, ctx, log_rq_stride, LOG_STRIDE - 4);
	ifc_set(xrc_srqc, ctx, xrcd, xrcd);
	ifc_set(xrc_srqc, ctx, cqn, cq->number);
	ifc_set(xrc_srqc, ctx, user_index, 0x5555);
	ifc_set(xrc_srqc, ctx, pd, d->pd);
	ifc_set(xrc_srqc, ctx, db_record_addr_h, srq.dbr >> 32);
	ifc_set(xrc_srqc, ctx, db_record_addr_l, (u32)srq.dbr >> 2);
	put_be64(ifc_at(create_xrc_srq_in, in, pas), srq.buf);
	status = dev_cmd(d, in, sizeof(in), out, sizeof(out));
	srq.number = ifc_get(create_xrc_srq_out, out, xrc_srqn);
	return status;
}

static void srq_post(u32 lkey, u64 va, u32 len)
{
	u8 *wqe = entry(srq.head);

	put_be32(wqe + 16, len);
	put_be32(wqe + 20, lkey);
	put_be64(wqe + 24, va);
	srq.head = get_be16(wqe + 2);
	put_be32(mem(srq.dbr), ++srq.posted);
}

/* Give an entry back, behind the tail */
static void srq_free(u16 index)
{
	put_be16(entry(srq.tail) + 2, index);
	srq.tail = index;
}

static int arm_rmp(u16 limit)
{
	u8 in[ifc_bytes(modify_rmp_in)] = { 0 }, out[16];

	ifc_set(modify_rmp_in, in, opcode, MLX5_CMD_OP_MODIFY_RMP);
	ifc_set(modify_rmp_in, in, rmpn, srq.number);
	ifc_set(rmp_bitmask, ifc_at(modify_rmp_in, in, bitmask), lwm, 1);
	ifc_set(modify_rmp_in, in, ctx.wq.lwm, limit);
	return dev_cmd(d, in, sizeof(in), out, sizeof(out));
}

static void basic(void)
{
	struct qp_arg arg = { 0 };
	struct fqp *q[2], *r[2];
	u32 wrong = 0;
	u8 out[ifc_bytes(query_rmp_out)], *eqe;

	setup();
	ok(!rmp_make(), "RMP made");
	arg.srqn = srq.number;
	for (u32 i = 0; i < 2; i++) {
		q[i] = qp_make(d, &(struct qp_arg){ 0 });
		r[i] = qp_make(d, &arg);
		qp_connect(q[i], r[i]->qpn, 1, NULL);
		qp_connect(r[i], q[i]->qpn, 1, NULL);
	}
	/* Entries come back in another order than they were taken */
	for (u32 round = 0; round < 40; round++) {
		u16 index[2];

		for (u32 i = 0; i < 2; i++)
			srq_post(key, VA + 0x8000 + 0x100 * i, 0x100);
		for (u32 i = 0; i < 2; i++) {
			u8 *cqe;

			put_be32(mem(at), round * 2 + i);
			post_send(q[i], key, VA, 4);
			wait_cqe(q[i]->scq, 1000);
			cqe = wait_cqe(r[i]->rcq, 1000);
			if (!cqe || cqe_opcode(cqe) != CQE_RESP_SEND ||
			    get_be32(mem(at + 0x8000 + 0x100 * i)) !=
			    round * 2 + i)
				wrong++;
			index[i] = cqe ? cqe_counter(cqe) : 0;
		}
		srq_free(index[1]);
		srq_free(index[0]);
	}
	ok(!wrong, "80 messages to two QPs through one queue");
	for (u32 i = 0; i < 4; i++)
		srq_post(key, VA, 64);
	ok(!arm_rmp(3), "limit of 3");
	ok(!dev_simple(d, MLX5_CMD_OP_QUERY_RMP, 0, srq.number, out,
		       sizeof(out)) &&
	   ifc_get(query_rmp_out, out, rmp_context.wq.lwm) == 3, "QUERY_RMP");
	post_send(q[0], key, VA, 4);
	ok(!eq_poll(d, d->async_eq, true), "3 are left: no event");
	post_send(q[0], key, VA, 4);
	eqe = eq_poll(d, d->async_eq, true);
	ok(eqe && eqe[1] == 0x14 && get_be32(eqe + 32 + 24) == srq.number,
	   "2 are left: event");
	qp_modify(r[0], MLX5_CMD_OP_2ERR_QP, 0, 0, NULL);
	eqe = eq_poll(d, d->async_eq, true);
	ok(eqe && eqe[1] == 0x13, "last WQE reached");
	for (u32 i = 0; i < 2; i++)
		if (qp_remove(r[i]))
			wrong++;
	ok(!wrong && !dev_simple(d, MLX5_CMD_OP_DESTROY_RMP, 0, srq.number,
				 out, 16), "destroyed");
	teardown();
}

static void xrc(void)
{
	struct qp_arg arg = { .type = MLX5_QPC_ST_XRC };
	struct fqp *ini, *tgt;
	struct queue *cq;
	struct wqe w;
	u8 out[ifc_bytes(query_xrc_srq_out)], *cqe;

	setup();
	dev_simple(d, MLX5_CMD_OP_ALLOC_XRCD, 0, 0, out, 16);
	arg.xrcd = ifc_get(alloc_xrcd_out, out, xrcd);
	cq = cq_make(d, 6, 64);
	ok(!xrc_make(arg.xrcd, cq), "XRC SRQ made");
	ini = qp_make(d, &arg);
	tgt = qp_make(d, &arg);
	qp_connect(ini, tgt->qpn, 1, NULL);
	qp_connect(tgt, ini->qpn, 1, NULL);
	srq_post(key, VA + 0x1000, 64);
	wqe_begin(&w, ini, WQE_SEND, SIGNALED, 0);
	put_be32(w.raw + 16, srq.number);
	w.bytes = 32;
	wqe_sge(&w, key, VA, 32);
	memset(mem(at), 0x3c, 32);
	wqe_post(&w);
	cqe = wait_cqe(cq, 1000);
	ok(cqe && cqe_opcode(cqe) == CQE_RESP_SEND &&
	   (get_be32(cqe + 32) & 0xffffff) == 0x5555 &&
	   !memcmp(mem(at), mem(at + 0x1000), 32),
	   "completion on the CQ of the SRQ, with its index");
	ok(!dev_simple(d, MLX5_CMD_OP_QUERY_XRC_SRQ, 0, srq.number, out,
		       sizeof(out)) &&
	   ifc_get(query_xrc_srq_out, out,
		   xrc_srq_context_entry.user_index) == 0x5555,
	   "QUERY_XRC_SRQ");
	teardown();
}

/* The QPs of one process may serve the SRQ of another, in its domain */
static void xrc_other_domain(void)
{
	struct qp_arg arg = { .type = MLX5_QPC_ST_XRC };
	u32 drivers_pd, srq_key;
	struct fqp *ini, *tgt;
	struct queue *cq;
	struct wqe w;
	u64 srq_at;
	u8 out[16], *cqe;

	setup();
	drivers_pd = d->pd;
	dev_simple(d, MLX5_CMD_OP_ALLOC_PD, 0, 0, out, sizeof(out));
	d->pd = ifc_get(alloc_pd_out, out, pd);
	dev_simple(d, MLX5_CMD_OP_ALLOC_XRCD, 0, 0, out, sizeof(out));
	arg.xrcd = ifc_get(alloc_xrcd_out, out, xrcd);
	cq = cq_make(d, 6, 64);
	xrc_make(arg.xrcd, cq);
	srq_key = mr_make(d, VA, PAGE, ALL_RIGHTS, &srq_at);
	d->pd = drivers_pd;
	ini = qp_make(d, &arg);
	tgt = qp_make(d, &arg);
	qp_connect(ini, tgt->qpn, 1, NULL);
	qp_connect(tgt, ini->qpn, 1, NULL);
	memset(mem(at), 0x3c, 64);

	srq_post(srq_key, VA, 32);
	wqe_begin(&w, ini, WQE_SEND, SIGNALED, 0);
	put_be32(w.raw + 16, srq.number);
	w.bytes = 32;
	wqe_sge(&w, key, VA, 32);
	wqe_post(&w);
	cqe = wait_cqe(cq, 1000);
	ok(cqe && cqe_opcode(cqe) == CQE_RESP_SEND &&
	   !memcmp(mem(at), mem(srq_at), 32), "SEND to a key of the SRQ");
	wait_cqe(ini->scq, 1000);

	for (u32 i = 0; i < 2; i++) {
		wqe_begin(&w, ini, WQE_RDMA_WRITE, SIGNALED, 0);
		put_be32(w.raw + 16, srq.number);
		w.bytes = 32;
		wqe_remote(&w, VA + 64, i ? key : srq_key);
		wqe_sge(&w, key, VA, 64);
		wqe_post(&w);
		cqe = wait_cqe(ini->scq, 1000);
		if (i)
			ok(cqe && cqe_syndrome(cqe) == SYN_REMOTE_ACCESS,
			   "WRITE with a key of the QP: refused");
		else
			ok(cqe && cqe_opcode(cqe) == CQE_REQ &&
			   !memcmp(mem(at), mem(srq_at + 64), 64),
			   "WRITE with a key of the SRQ");
	}
	teardown();
}

/* DEVX: a queue and a key in registered user memory */
static void devx(void)
{
	u8 in[ifc_bytes(create_umem_in) + 8 * 4] = { 0 }, out[16];
	u8 uctx[ifc_bytes(create_uctx_in)] = { 0 };
	u8 ctx[ifc_bytes(create_cq_in)] = { 0 };
	u8 *cqc = ifc_at(create_cq_in, ctx, cq_context);
	u8 *um = ifc_at(create_umem_in, in, umem);
	struct mkey_arg arg = {
		.mode = MLX5_MKC_ACCESS_MODE_MTT, .rights = ALL_RIGHTS,
		.start = VA, .len = 4 * PAGE, .log_page = 12, .octwords = 2,
	};
	struct fqp *qa, *qb;
	u64 buf;
	u32 uid, umem, to_read, cqn, mr;

	setup();
	ifc_set(create_uctx_in, uctx, opcode, MLX5_CMD_OP_CREATE_UCTX);
	ok(!dev_cmd(d, uctx, sizeof(uctx), out, sizeof(out)), "context");
	uid = ifc_get(create_uctx_out, out, uid);
	buf = mem_alloc(4 * PAGE);
	ifc_set(create_umem_in, in, opcode, MLX5_CMD_OP_CREATE_UMEM);
	ifc_set(create_umem_in, in, uid, uid);
	ifc_set(umem, um, num_of_mtt, 4);
	for (u32 i = 0; i < 4; i++)
		put_be64(ifc_at(create_umem_in, in, umem.mtt) + 8 * i,
			 (buf + i * PAGE) | 3);
	ok(!dev_cmd(d, in, sizeof(in), out, sizeof(out)), "UMEM");
	umem = ifc_get(create_umem_out, out, umem_id);

	ifc_set(create_cq_in, ctx, opcode, MLX5_CMD_OP_CREATE_CQ);
	ifc_set(create_cq_in, ctx, uid, uid);
	ifc_set(create_cq_in, ctx, cq_umem_valid, 1);
	put_be64(cqc + 64, PAGE);
	put_be32(cqc + 72, umem);
	ifc_set(cqc, cqc, log_cq_size, 6);
	ifc_set(cqc, cqc, uar_page, d->uar);
	ifc_set(cqc, cqc, c_eqn_or_apu_element, d->comp_eq->number);
	ifc_set(cqc, cqc, dbr_umem_valid, 1);
	put_be32(cqc + 0x1a0 / 8, umem);
	ifc_set(cqc, cqc, dbr_addr, 3 * PAGE);
	ok(!dev_cmd(d, ctx, sizeof(ctx), out, sizeof(out)),
	   "CQ and its doorbell record in the UMEM");
	cqn = ifc_get(create_cq_out, out, cqn);

	/* One page that the device may only read */
	put_be64(ifc_at(create_umem_in, in, umem.mtt) + 8 * 3,
		 (buf + 3 * PAGE) | 1);
	ok(!dev_cmd(d, in, sizeof(in), out, sizeof(out)), "UMEM to read");
	to_read = ifc_get(create_umem_out, out, umem_id);
	put_be32(cqc + 72, to_read);
	ok(dev_cmd(d, ctx, sizeof(ctx), out, sizeof(out)) == 3,
	   "no CQ in a UMEM to read");
	put_be32(cqc + 72, umem);
	put_be32(cqc + 0x1a0 / 8, to_read);
	ok(!dev_cmd(d, ctx, sizeof(ctx), out, sizeof(out)),
	   "but its doorbell record");
	dev_simple(d, MLX5_CMD_OP_DESTROY_CQ, 0,
		   ifc_get(create_cq_out, out, cqn), out, sizeof(out));
	ok(!dev_simple(d, MLX5_CMD_OP_DESTROY_UMEM, 0, to_read, out,
		       sizeof(out)), "UMEM to read destroyed");

	arg.umem = umem;
	mr = mkey_make(d, &arg);
	ok(mr, "key over the UMEM");
	qp_pair(d, d, &qa, &qb, NULL);
	memset(mem(at), 0x77, 2 * PAGE);
	post_write(qa, VA, mr, key, VA, 2 * PAGE);
	ok(cqe_opcode(wait_cqe(qa->scq, 1000)) == CQE_REQ &&
	   !memcmp(mem(buf), mem(at), 2 * PAGE), "WRITE through it");
	mkey_remove(d, mr);
	dev_simple(d, MLX5_CMD_OP_DESTROY_CQ, 0, cqn, out, sizeof(out));
	ok(!dev_simple(d, MLX5_CMD_OP_DESTROY_UMEM, 0, umem, out, sizeof(out)),
	   "UMEM destroyed when nothing uses it");
	memset(uctx, 0, 16);
	ifc_set(destroy_uctx_in, uctx, opcode, MLX5_CMD_OP_DESTROY_UCTX);
	ifc_set(destroy_uctx_in, uctx, uid, uid);
	ok(!dev_cmd(d, uctx, ifc_bytes(destroy_uctx_in), out, sizeof(out)),
	   "context destroyed");
	teardown();
}

int main(void)
{
	basic();
	xrc();
	xrc_other_domain();
	devx();
	return tap_done();
}
