// SPDX-License-Identifier: GPL-2.0
/* The driver: queues, keys, QPs. */
#include <stdlib.h>

#include "fake.h"

static void put_pas(u8 *pas, u64 buf, u32 pages)
{
	for (u32 i = 0; i < pages; i++)
		put_be64(pas + 8 * i, buf + i * PAGE);
}

static u32 pages_of(u64 bytes)
{
	return (bytes + PAGE - 1) / PAGE;
}

struct queue *eq_make(struct dev *d, u32 log_size, u32 vector, u64 events)
{
	u32 pages = pages_of(64u << log_size);
	u32 len = ifc_bytes(create_eq_in) + 8 * pages;
	struct queue *eq = keep(sizeof(*eq));
	u8 *in = calloc(1, len), out[16];
	u8 *eqc = ifc_at(create_eq_in, in, eq_context_entry);
	int status;

	*eq = (struct queue){
		.buf = mem_alloc(64u << log_size),
		.log_size = log_size,
		.entry = 64,
	};
	for (u32 i = 0; i < BIT(log_size); i++)
		*((u8 *)mem(eq->buf) + 64 * i + 63) = 1;
	ifc_set(create_eq_in, in, opcode, MLX5_CMD_OP_CREATE_EQ);
	ifc_set(eqc, eqc, log_eq_size, log_size);
	ifc_set(eqc, eqc, uar_page, d->uar);
	ifc_set(eqc, eqc, intr, vector);
	put_be64(ifc_at(create_eq_in, in, event_bitmask), events);
	put_pas(ifc_at(create_eq_in, in, pas), eq->buf, pages);
	status = dev_cmd(d, in, len, out, sizeof(out));
	free(in);
	if (status)
		return NULL;
	eq->number = ifc_get(create_eq_out, out, eq_number);
	return eq;
}

int eq_remove(struct dev *d, struct queue *eq)
{
	u8 out[16];

	return dev_simple(d, MLX5_CMD_OP_DESTROY_EQ, 0, eq->number, out,
			  sizeof(out));
}

/* The entry at the consumer, if its owner bit says that it is new */
static u8 *next_entry(struct queue *q)
{
	u8 *entry = (u8 *)mem(q->buf) +
		    (u64)(q->ci & (BIT(q->log_size) - 1)) * q->entry +
		    q->entry - 64;

	if ((entry[63] & 1) != (q->ci >> q->log_size & 1))
		return NULL;
	q->ci++;
	return entry;
}

void eq_ring(struct dev *d, struct queue *eq, bool arm)
{
	mlx5sim_bar_write(d->sim, d->uar * PAGE + (arm ? 0x40 : 0x48),
			  eq->number << 24 | (eq->ci & 0xffffff), 4);
}

u8 *eq_poll(struct dev *d, struct queue *eq, bool update)
{
	u8 *eqe = next_entry(eq);

	if (eqe && update)
		eq_ring(d, eq, true);
	return eqe;
}

struct queue *cq_make(struct dev *d, u32 log_size, u32 cqe_bytes)
{
	u32 bytes = cqe_bytes << log_size;
	u32 len = ifc_bytes(create_cq_in) + 8 * pages_of(bytes);
	struct queue *cq = keep(sizeof(*cq));
	u8 *in = calloc(1, len), out[16];
	u8 *cqc = ifc_at(create_cq_in, in, cq_context);
	int status;

	*cq = (struct queue){
		.buf = mem_alloc(bytes),
		.dbr = mem_alloc(8),
		.log_size = log_size,
		.entry = cqe_bytes,
	};
	for (u32 i = 0; i < BIT(log_size); i++)
		*((u8 *)mem(cq->buf) + cqe_bytes * (i + 1) - 1) = 0xf1;
	ifc_set(create_cq_in, in, opcode, MLX5_CMD_OP_CREATE_CQ);
	ifc_set(cqc, cqc, log_cq_size, log_size);
	ifc_set(cqc, cqc, cqe_sz, cqe_bytes == 128);
	ifc_set(cqc, cqc, uar_page, d->uar);
	ifc_set(cqc, cqc, c_eqn_or_apu_element, d->comp_eq->number);
	ifc_set(cqc, cqc, dbr_addr, cq->dbr);
	put_pas(ifc_at(create_cq_in, in, pas), cq->buf, pages_of(bytes));
	status = dev_cmd(d, in, len, out, sizeof(out));
	free(in);
	if (status)
		return NULL;
	cq->number = ifc_get(create_cq_out, out, cqn);
	return cq;
}

int cq_remove(struct dev *d, struct queue *cq)
{
	u8 out[16];

	return dev_simple(d, MLX5_CMD_OP_DESTROY_CQ, 0, cq->number, out,
			  sizeof(out));
}

u8 *cq_poll(struct queue *cq)
{
	u8 *cqe = next_entry(cq);

	if (cqe)
		put_be32(mem(cq->dbr), cq->ci & 0xffffff);
	return cqe;
}

void cq_ring(struct dev *d, struct queue *cq, bool solicited)
{
	u64 word = (solicited ? BIT(24) : 0) | (cq->ci & 0xffffff);

	put_be32((u8 *)mem(cq->dbr) + 4, word);
	mlx5sim_bar_write(d->sim, d->uar * PAGE + 0x20,
			  word << 32 | cq->number, 8);
}

u8 *wait_cqe(struct queue *cq, u64 ns)
{
	u8 *cqe = cq_poll(cq);

	if (cqe)
		return cqe;
	machine_run(ns);
	return cq_poll(cq);
}

void fill_mkc(u8 *mkc, struct dev *d, u32 rights, u64 start, u64 len,
	      u32 log_page)
{
	ifc_set(mkc, mkc, lr, !!(rights & LR));
	ifc_set(mkc, mkc, lw, !!(rights & LW));
	ifc_set(mkc, mkc, rr, !!(rights & RR));
	ifc_set(mkc, mkc, rw, !!(rights & RW));
	ifc_set(mkc, mkc, a, !!(rights & AT));
	ifc_set(mkc, mkc, start_addr, start);
	ifc_set(mkc, mkc, len, len);
	ifc_set(mkc, mkc, log_page_size, log_page);
	ifc_set(mkc, mkc, pd, d->pd);
	ifc_set(mkc, mkc, qpn, 0xffffff);
}

u32 mkey_make(struct dev *d, const struct mkey_arg *arg)
{
	u32 len = ifc_bytes(create_mkey_in) + 16 * arg->count;
	u8 *in = calloc(1, len), out[16];
	u8 *mkc = ifc_at(create_mkey_in, in, memory_key_mkey_entry);
	int status;

	ifc_set(create_mkey_in, in, opcode, MLX5_CMD_OP_CREATE_MKEY);
	fill_mkc(mkc, d, arg->rights, arg->start, arg->len, arg->log_page);
	if (arg->pd)
		ifc_set(mkc, mkc, pd, arg->pd);
	if (arg->qpn)
		ifc_set(mkc, mkc, qpn, arg->qpn);
	ifc_set(mkc, mkc, access_mode_1_0, arg->mode);
	ifc_set(mkc, mkc, access_mode_4_2, arg->mode >> 2);
	ifc_set(mkc, mkc, free, arg->free);
	ifc_set(mkc, mkc, umr_en, !arg->no_umr);
	ifc_set(mkc, mkc, en_rinval, arg->rinval);
	ifc_set(mkc, mkc, length64, arg->length64);
	ifc_set(mkc, mkc, mkey_7_0, 0x42);
	ifc_set(mkc, mkc, translations_octword_size, arg->octwords);
	ifc_set(create_mkey_in, in, translations_octword_actual_size,
		arg->count);
	if (arg->entries)
		memcpy(ifc_at(create_mkey_in, in, klm_pas_mtt), arg->entries,
		       16 * arg->count);
	if (arg->umem) {
		ifc_set(create_mkey_in, in, mkey_umem_valid, 1);
		put_be32(ifc_at(create_mkey_in, in,
				translations_octword_actual_size) + 4,
			 arg->umem);
	}
	status = dev_cmd(d, in, len, out, sizeof(out));
	free(in);
	return status ? 0 : ifc_get(create_mkey_out, out, mkey_index) << 8 |
			    0x42;
}

int mkey_remove(struct dev *d, u32 key)
{
	u8 out[16];

	return dev_simple(d, MLX5_CMD_OP_DESTROY_MKEY, 0, key >> 8, out,
			  sizeof(out));
}

u32 mr_make(struct dev *d, u64 va, u64 bytes, u32 rights, u64 *at)
{
	u64 first = va % PAGE;
	u32 pages = pages_of(first + bytes);
	u32 octwords = (pages + 1) / 2;
	u8 *list = calloc(octwords, 16);
	u64 buf = mem_alloc((u64)pages * PAGE);
	struct mkey_arg arg = {
		.mode = MLX5_MKC_ACCESS_MODE_MTT,
		.rights = rights,
		.start = va,
		.len = bytes,
		.log_page = 12,
		.octwords = octwords,
		.entries = list,
		.count = octwords,
	};
	u32 key;

	for (u32 i = 0; i < pages; i++)
		put_be64(list + 8 * i, (buf + i * PAGE) | 3);
	key = mkey_make(d, &arg);
	free(list);
	*at = buf + first;
	return key;
}

struct fqp *qp_make(struct dev *d, const struct qp_arg *arg)
{
	struct fqp *qp = keep(sizeof(*qp));
	u32 pages, len, bytes;
	u8 *in, *qpc, out[16];
	int status;

	*qp = (struct fqp){
		.d = d,
		.type = arg->type,
		.log_sq = arg->log_sq ? arg->log_sq : 6,
		.log_rq = 6,
		.log_stride = 6,
		.uar = d->uar,
	};
	qp->scq = arg->scq ? arg->scq : cq_make(d, 8, 64);
	qp->rcq = arg->rcq ? arg->rcq : qp->scq;
	if (!arg->srqn)
		qp->sq_off = 1u << (qp->log_rq + qp->log_stride);
	bytes = qp->sq_off + (64u << qp->log_sq);
	pages = pages_of(bytes);
	qp->buf = mem_alloc(bytes);
	qp->dbr = mem_alloc(8);
	len = ifc_bytes(create_qp_in) + 8 * pages;
	in = calloc(1, len);
	qpc = ifc_at(create_qp_in, in, qpc);
	ifc_set(create_qp_in, in, opcode, MLX5_CMD_OP_CREATE_QP);
	ifc_set(qpc, qpc, st, arg->type);
	if (arg->type != MLX5_QPC_ST_REG_UMR)
		ifc_set(qpc, qpc, pd, arg->pd ? arg->pd : d->pd);
	ifc_set(qpc, qpc, log_sq_size, qp->log_sq);
	ifc_set(qpc, qpc, log_rq_size, qp->log_rq);
	ifc_set(qpc, qpc, log_rq_stride, qp->log_stride - 4);
	ifc_set(qpc, qpc, uar_page, qp->uar);
	ifc_set(qpc, qpc, cqn_snd, qp->scq->number);
	ifc_set(qpc, qpc, cqn_rcv, qp->rcq->number);
	ifc_set(qpc, qpc, user_index, 0x1234);
	ifc_set(qpc, qpc, dbr_addr, qp->dbr);
	ifc_set(qpc, qpc, xrcd, arg->xrcd);
	if (arg->srqn) {
		ifc_set(qpc, qpc, rq_type, 1);
		ifc_set(qpc, qpc, srqn_rmpn_xrqn, arg->srqn);
	}
	put_pas(ifc_at(create_qp_in, in, pas), qp->buf, pages);
	status = dev_cmd(d, in, len, out, sizeof(out));
	free(in);
	if (status)
		return NULL;
	qp->qpn = ifc_get(create_qp_out, out, qpn);
	return qp;
}

int qp_remove(struct fqp *qp)
{
	u8 out[16];

	return dev_simple(qp->d, MLX5_CMD_OP_DESTROY_QP, 0, qp->qpn, out,
			  sizeof(out));
}

int qp_modify(struct fqp *qp, u16 opcode, u32 remote_qpn, u16 lid,
	      const struct link_arg *arg)
{
	static const struct link_arg plain;
	u8 in[ifc_bytes(rst2init_qp_in)] = { 0 }, out[16];
	u8 *qpc = ifc_at(rst2init_qp_in, in, qpc);
	bool bare = opcode == MLX5_CMD_OP_2ERR_QP ||
		    opcode == MLX5_CMD_OP_2RST_QP;

	if (!arg)
		arg = &plain;
	ifc_set(rst2init_qp_in, in, opcode, opcode);
	ifc_set(rst2init_qp_in, in, qpn, qp->qpn);
	if (bare)	/* their input ends there */
		return dev_cmd(qp->d, in, 16, out, sizeof(out));
	ifc_set(qpc, qpc, rre, !arg->no_remote);
	ifc_set(qpc, qpc, rwe, !arg->no_remote);
	ifc_set(qpc, qpc, rae, !arg->no_remote);
	ifc_set(qpc, qpc, remote_qpn, remote_qpn);
	ifc_set(qpc, qpc, primary_address_path.rlid, lid);
	ifc_set(qpc, qpc, primary_address_path.vhca_port_num, 1);
	ifc_set(qpc, qpc, primary_address_path.ack_timeout, arg->ack_timeout);
	ifc_set(qpc, qpc, q_key, arg->q_key);
	if (opcode == MLX5_CMD_OP_RST2INIT_QP)
		ifc_set(qpc, qpc, primary_address_path.pkey_index,
			arg->pkey_index);
	ifc_set(qpc, qpc, mtu, 5);
	ifc_set(qpc, qpc, log_msg_max, 30);
	ifc_set(qpc, qpc, min_rnr_nak, arg->min_rnr_nak);
	ifc_set(qpc, qpc, retry_count, arg->retry_count);
	ifc_set(qpc, qpc, rnr_retry, arg->rnr_retry);
	return dev_cmd(qp->d, in, sizeof(in), out, sizeof(out));
}

int qp_connect(struct fqp *qp, u32 remote_qpn, u16 lid,
	       const struct link_arg *arg)
{
	static const u16 steps[] = {
		MLX5_CMD_OP_RST2INIT_QP, MLX5_CMD_OP_INIT2RTR_QP,
		MLX5_CMD_OP_RTR2RTS_QP,
	};
	int status = 0;

	for (u32 i = 0; i < ARRAY_SIZE(steps) && !status; i++)
		status = qp_modify(qp, steps[i], remote_qpn, lid, arg);
	return status;
}

u32 qp_state(struct fqp *qp)
{
	u8 out[ifc_bytes(query_qp_out)];

	if (dev_simple(qp->d, MLX5_CMD_OP_QUERY_QP, 0, qp->qpn, out,
		       sizeof(out)))
		return UINT32_MAX;
	return ifc_get(qpc, ifc_at(query_qp_out, out, qpc), state);
}

static u16 lid_of(struct dev *d)
{
	u8 out[ifc_bytes(query_hca_vport_context_out)];

	dev_simple(d, MLX5_CMD_OP_QUERY_HCA_VPORT_CONTEXT, 0, 1 << 16, out,
		   sizeof(out));
	return ifc_get(hca_vport_context,
		       ifc_at(query_hca_vport_context_out, out,
			      hca_vport_context), lid);
}

void qp_pair(struct dev *a, struct dev *b, struct fqp **qa, struct fqp **qb,
	     const struct link_arg *arg)
{
	struct qp_arg plain = { 0 };

	*qa = qp_make(a, &plain);
	*qb = qp_make(b, &plain);
	if (qp_connect(*qa, (*qb)->qpn, lid_of(b), arg) ||
	    qp_connect(*qb, (*qa)->qpn, lid_of(a), arg))
		abort();
}
