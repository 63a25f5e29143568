// SPDX-License-Identifier: GPL-2.0
/* The driver: work requests, UMR, page faults. */
#include <stdlib.h>

#include "../model/qp.h"
#include "fake.h"

void post_recv(struct fqp *qp, u32 key, u64 addr, u32 len)
{
	u32 at = qp->rq_pi & (BIT(qp->log_rq) - 1);
	u8 *wqe = (u8 *)mem(qp->buf) + (at << qp->log_stride);

	memset(wqe, 0, BIT(qp->log_stride));
	put_be32(wqe, len);
	put_be32(wqe + 4, key);
	put_be64(wqe + 8, addr);
	put_be32(wqe + 20, TERMINATING_LKEY);
	qp->rq_pi++;
	put_be32(mem(qp->dbr), qp->rq_pi);
}

void wqe_begin(struct wqe *w, struct fqp *qp, u8 opcode, u8 flags, u32 imm)
{
	memset(w, 0, sizeof(*w));
	w->qp = qp;
	w->bytes = 16;
	put_be32(w->raw, (u32)qp->sq_pi << 8 | opcode);
	w->raw[11] = flags;
	put_be32(w->raw + 12, imm);
}

void wqe_remote(struct wqe *w, u64 va, u32 rkey)
{
	put_be64(w->raw + w->bytes, va);
	put_be32(w->raw + w->bytes + 8, rkey);
	w->bytes += 16;
}

void wqe_atomic(struct wqe *w, u64 swap_add, u64 compare)
{
	put_be64(w->raw + w->bytes, swap_add);
	put_be64(w->raw + w->bytes + 8, compare);
	w->bytes += 16;
}

void wqe_av(struct wqe *w, const struct av_arg *arg)
{
	u8 *av = w->raw + w->bytes;

	put_be32(av, arg->q_key);
	put_be32(av + 8, (arg->half ? 0 : BIT(31)) | arg->qpn);
	av[12] = arg->sl;
	put_be16(av + 14, arg->lid);
	w->bytes += 16;
	if (arg->half)
		return;
	av[26] = AV_TCLASS;
	av[27] = AV_HOP_LIMIT;
	put_be32(av + 28, (arg->grh ? BIT(30) : 0) | AV_FLOW);
	put_be64(av + 32, AV_DGID);
	put_be64(av + 40, arg->lid);
	w->bytes += 32;
}

void wqe_sge(struct wqe *w, u32 key, u64 addr, u32 len)
{
	put_be32(w->raw + w->bytes, len);
	put_be32(w->raw + w->bytes + 4, key);
	put_be64(w->raw + w->bytes + 8, addr);
	w->bytes += 16;
}

void wqe_inline(struct wqe *w, const void *data, u32 len)
{
	put_be32(w->raw + w->bytes, BIT(31) | len);
	memcpy(w->raw + w->bytes + 4, data, len);
	w->bytes += round_up_to(4 + len, 16);
}

void wqe_queue(struct wqe *w)
{
	struct fqp *qp = w->qp;
	u32 blocks = (w->bytes + 63) / 64;

	put_be32(w->raw + 4, qp->qpn << 8 | w->bytes / 16);
	for (u32 i = 0; i < blocks; i++) {
		u32 at = (qp->sq_pi + i) & (BIT(qp->log_sq) - 1);

		memcpy((u8 *)mem(qp->buf) + qp->sq_off + at * 64,
		       w->raw + i * 64, 64);
	}
	qp->sq_pi += blocks;
	put_be32((u8 *)mem(qp->dbr) + 4, qp->sq_pi);
}

void qp_ring(struct fqp *qp)
{
	mlx5sim_bar_write(qp->d->sim, qp->uar * PAGE + 0x800,
			  (u64)qp->qpn << 8, 8);
}

void wqe_post(struct wqe *w)
{
	wqe_queue(w);
	qp_ring(w->qp);
}

void post_write(struct fqp *qp, u64 va, u32 rkey, u32 key, u64 addr, u32 len)
{
	struct wqe w;

	wqe_begin(&w, qp, WQE_RDMA_WRITE, SIGNALED, 0);
	wqe_remote(&w, va, rkey);
	wqe_sge(&w, key, addr, len);
	wqe_post(&w);
}

void post_read(struct fqp *qp, u64 va, u32 rkey, u32 key, u64 addr, u32 len)
{
	struct wqe w;

	wqe_begin(&w, qp, WQE_RDMA_READ, SIGNALED, 0);
	wqe_remote(&w, va, rkey);
	wqe_sge(&w, key, addr, len);
	wqe_post(&w);
}

void post_send(struct fqp *qp, u32 key, u64 addr, u32 len)
{
	struct wqe w;

	wqe_begin(&w, qp, WQE_SEND, SIGNALED, 0);
	wqe_sge(&w, key, addr, len);
	wqe_post(&w);
}

void umr_mkc(struct umr_arg *arg, struct dev *d, u32 rights, u64 start, u64 len,
	     u32 log_page)
{
	u8 *mkc = arg->mkc;

	memset(mkc, 0, sizeof(arg->mkc));
	fill_mkc(mkc, d, rights, start, len, log_page);
	ifc_set(mkc, mkc, mkey_7_0, arg->key & 0xff);
}

void post_umr(struct fqp *qp, const struct umr_arg *arg)
{
	u32 key = arg->list_key ? arg->list_key : qp->d->pa_key;
	struct wqe w;

	wqe_begin(&w, qp, WQE_UMR, SIGNALED, arg->key);
	w.raw[16] = arg->flags;
	put_be16(w.raw + 20, arg->octwords);
	put_be16(w.raw + 22, arg->octword);
	put_be32(w.raw + 32, arg->octword >> 16);
	put_be64(w.raw + 24, arg->mask);
	memcpy(w.raw + 64, arg->mkc, sizeof(arg->mkc));
	w.bytes = 128;
	if (arg->octwords && !arg->no_list) {
		u32 len = arg->list_len ? arg->list_len : arg->octwords * 16;

		if (arg->flags & UMR_INLINE) {
			memcpy(w.raw + 128, mem(arg->list), len);
			w.bytes += len;
		} else {
			wqe_sge(&w, key, arg->list, len);
		}
	}
	wqe_post(&w);
}

int umr(struct fqp *qp, const struct umr_arg *arg)
{
	u8 *cqe;

	post_umr(qp, arg);
	cqe = wait_cqe(qp->scq, 1000);
	return !cqe ? -1 : cqe_opcode(cqe) == 13 ? cqe_syndrome(cqe) : 0;
}

bool pf_poll(struct dev *d, struct pf *pf)
{
	const u8 *eqe = eq_poll(d, d->pf_eq, true);
	const u8 *data;

	if (!eqe)
		return false;
	data = eqe + 32;
	*pf = (struct pf){
		.subtype = eqe[3],
		.type = get_be32(data + 24) >> 24,
		.committed = get_be32(data),
	};
	if (pf->subtype == 0) {
		pf->wqe_index = get_be16(data + 6);
		pf->token = get_be32(data + 12);
		pf->wq = get_be32(data + 24) & 0xffffff;
	} else {
		pf->rkey = get_be32(data + 4);
		pf->length = get_be32(data + 12);
		pf->va = get_be64(data + 16);
		pf->token = get_be32(data + 24) & 0xffffff;
		pf->wq = pf->token;
	}
	return true;
}

int pf_resume(struct dev *d, const struct pf *pf, bool error)
{
	u8 in[ifc_bytes(page_fault_resume_in)] = { 0 }, out[16];
	u8 *info = ifc_at(page_fault_resume_in, in, page_fault_info);

	ifc_set(page_fault_resume_in, in, opcode,
		MLX5_CMD_OP_PAGE_FAULT_RESUME);
	ifc_set(trans_page_fault_info, info, page_fault_type, pf->type);
	ifc_set(trans_page_fault_info, info, wq_number, pf->wq);
	ifc_set(trans_page_fault_info, info, fault_token, pf->token);
	ifc_set(trans_page_fault_info, info, error, error);
	return dev_cmd(d, in, sizeof(in), out, sizeof(out));
}
