// SPDX-License-Identifier: GPL-2.0
/* The rules from 40 on are broken: queues, memory keys, page faults. */
#include "../model/qp.h"
#include "strict.h"

#define LAST_RULE		UINT32_MAX

static void nops(struct fqp *qp, u32 count)
{
	struct wqe w;

	while (count--) {
		wqe_begin(&w, qp, WQE_NOP, SIGNALED, 0);
		wqe_post(&w);
	}
}

/* A page of the buffer of a key is not there */
static void dma_address(void)
{
	machine_hole(at & ~(u64)(PAGE - 1), MLX5SIM_DMA_NONE);
	post_write(qa, VA, key, key, VA + PAGE, 64);
	machine_hole(0, 0);
}

/* The second block of a request lies where nothing is */
static void dma_address_wqe(void)
{
	struct qp_arg arg = { .log_sq = 7 };
	struct fqp *qp = qp_make(d, &arg);
	struct wqe w;

	qp_connect(qp, qp->qpn, 1, NULL);
	nops(qp, 63);
	wqe_begin(&w, qp, WQE_SEND, SIGNALED, 0);
	for (u32 i = 0; i < 5; i++)
		wqe_sge(&w, key, VA, 8);
	wqe_queue(&w);
	machine_hole(qp->buf + qp->sq_off + PAGE, MLX5SIM_DMA_NONE);
	qp_ring(qp);
	machine_hole(0, 0);
}

static void dma_address_list(void)
{
	struct umr_arg u = enable();

	u.list = NO_MEMORY_AT;
	umr(uq, &u);
}

static void doorbell_uar(void)
{
	mlx5sim_bar_write(d->sim, (d->uar + 1) * PAGE + 0x800,
			  (u64)qa->qpn << 8, 8);
}

static void doorbell_qp(void)
{
	mlx5sim_bar_write(d->sim, d->uar * PAGE + 0x800, 0x999900, 8);
}

/* Through an allocated page, but not the one of the QP */
static void doorbell_other_page(void)
{
	u8 out[16];

	dev_simple(d, MLX5_CMD_OP_ALLOC_UAR, 0, 0, out, sizeof(out));
	mlx5sim_bar_write(d->sim, (u64)ifc_get(alloc_uar_out, out, uar) * PAGE +
			  0x800, (u64)qa->qpn << 8, 8);
}

static void doorbell_cq(void)
{
	mlx5sim_bar_write(d->sim, d->uar * PAGE + 0x20, 0x7777, 8);
}

static void doorbell_size(void)
{
	mlx5sim_bar_write(d->sim, d->uar * PAGE + 0x20, 0x7777, 4);
}

static void eq_overrun(void)
{
	for (u32 i = 0; i < 70 && !mlx5sim_violation(d->sim); i++)
		simple(MLX5_CMD_OP_QUERY_ISSI, 0, 0);
}

static void eq_consumer(void)
{
	d->comp_eq->ci += 5;
	eq_ring(d, d->comp_eq, true);
}

static void cq_overrun(void)
{
	struct qp_arg arg = { .scq = cq_make(d, 2, 64) };
	struct fqp *qp = qp_make(d, &arg);

	qp_connect(qp, qp->qpn, 1, NULL);
	nops(qp, 5);
}

static void cq_consumer(void)
{
	struct qp_arg arg = { .scq = cq_make(d, 2, 64) };
	struct fqp *qp = qp_make(d, &arg);

	qp_connect(qp, qp->qpn, 1, NULL);
	put_be32(mem(qp->scq->dbr), 9);
	nops(qp, 5);
}

static void cq_consumer_arm(void)
{
	qa->scq->ci = 3;
	cq_ring(d, qa->scq, false);
}

static void sq_overrun(void)
{
	put_be32((u8 *)mem(qa->dbr) + 4, 65);
	qp_ring(qa);
}

static void rq_overrun(void)
{
	put_be32(mem(qb->dbr), 65);
	post_send(qa, key, VA, 4);
}

static void wqe_size(void)
{
	struct wqe w;

	wqe_begin(&w, qa, WQE_NOP, SIGNALED, 0);
	wqe_queue(&w);
	put_be32((u8 *)mem(qa->buf) + qa->sq_off + 4, qa->qpn << 8);
	qp_ring(qa);
}

static void wqe_index(void)
{
	struct wqe w;

	wqe_begin(&w, qa, WQE_NOP, SIGNALED, 0);
	w.raw[2] = 7;
	wqe_post(&w);
}

static void wqe_qpn(void)
{
	struct wqe w;

	wqe_begin(&w, qa, WQE_NOP, SIGNALED, 0);
	wqe_queue(&w);
	put_be32((u8 *)mem(qa->buf) + qa->sq_off + 4, qb->qpn << 8 | 1);
	qp_ring(qa);
}

static void wqe_segments(void)
{
	struct wqe w;

	wqe_begin(&w, qa, WQE_RDMA_WRITE, SIGNALED, 0);
	wqe_post(&w);
}

static void wqe_inline_length(void)
{
	struct wqe w;

	wqe_begin(&w, qa, WQE_SEND, SIGNALED, 0);
	put_be32(w.raw + 16, BIT(31) | 200);
	w.bytes = 32;
	wqe_post(&w);
}

static void wqe_opcode(void)
{
	struct wqe w;

	wqe_begin(&w, qa, 0x3e, SIGNALED, 0);
	wqe_post(&w);
}

static void wqe_opcode_type(void)
{
	struct wqe w;

	wqe_begin(&w, uq, WQE_SEND, SIGNALED, 0);
	wqe_post(&w);
}

static void mkey_context(void)
{
	struct mkey_arg arg = {
		.mode = MLX5_MKC_ACCESS_MODE_MTT, .len = PAGE, .log_page = 5,
		.octwords = 1,
	};

	mkey_make(d, &arg);
}

static void mkey_context_umr(void)
{
	struct umr_arg u = enable();

	umr_mkc(&u, d, ALL_RIGHTS, ~0ull - PAGE, SIZE, 12);
	umr(uq, &u);
}

static void mkey_short(void)
{
	struct mkey_arg arg = {
		.mode = MLX5_MKC_ACCESS_MODE_MTT, .start = 1, .len = 8 * PAGE,
		.log_page = 12, .octwords = 4,
	};

	mkey_make(d, &arg);
}

static void mkey_short_umr(void)
{
	struct umr_arg u = enable();

	umr_mkc(&u, d, ALL_RIGHTS, VA, SIZE + 1, 12);
	umr(uq, &u);
}

static void xlt_bounds(void)
{
	struct umr_arg u = enable();

	u.octword = 4;
	umr(uq, &u);
}

static void xlt_bounds_far(void)
{
	struct umr_arg u = enable();

	u.octword = 0xffffffff0000ull;
	umr(uq, &u);
}

static void xlt_align(void)
{
	struct umr_arg u = enable();

	u.octwords = 7;
	umr(uq, &u);
}

static void xlt_align_offset(void)
{
	struct umr_arg u = enable();

	u.octwords = 4;
	u.octword = 2;
	umr(uq, &u);
}

static void mtt_align(void)
{
	struct umr_arg u = enable();

	umr_mkc(&u, d, ALL_RIGHTS, VA, SIZE, 16);
	put_be64(mem(list), (MEM_BASE + PAGE) | 3);
	umr(uq, &u);
}

static void mtt_reserved(void)
{
	struct umr_arg u = enable();

	put_be64(mem(list), at | 0x803);
	umr(uq, &u);
}

static void umr_disabled(void)
{
	struct umr_arg u = enable();
	struct mkey_arg arg = {
		.mode = MLX5_MKC_ACCESS_MODE_MTT, .octwords = 8, .free = true,
		.no_umr = true,
	};

	u.key = mkey_make(d, &arg);
	umr(uq, &u);
}

static void umr_not_free(void)
{
	struct umr_arg u = enable();

	umr(uq, &u);
	umr(uq, &u);
}

static void umr_free(void)
{
	struct umr_arg u = enable();

	u.flags = UMR_OFFSET | UMR_MUST_NOT_BE_FREE;
	u.mask = 0;
	umr(uq, &u);
}

static void umr_mask(void)
{
	struct umr_arg u = enable();

	u.mask |= BIT_ULL(3);
	umr(uq, &u);
}

static void umr_key(void)
{
	struct umr_arg u = enable();

	u.key ^= 0x10;
	umr(uq, &u);
}

static void umr_list_dead(void)
{
	struct umr_arg u = enable();

	u.list_key = 0xdead00;
	umr(uq, &u);
}

static void umr_list_rights(void)
{
	struct umr_arg u = enable();
	u64 mr;

	u.list_key = mr_make(d, list, PAGE, LW, &mr);
	umr(uq, &u);
}

static void umr_list_short(void)
{
	struct umr_arg u = enable();

	u.list_len = 64;
	umr(uq, &u);
}

static void resume_stray(void)
{
	pf_resume(d, &(struct pf){ .token = 0x777, .type = 1 }, false);
}

static void resume_twice(void)
{
	struct pf pf;

	post_write(qa, VA, key, odp_key, VA, 64);
	pf_poll(d, &pf);
	qp_modify(qa, MLX5_CMD_OP_2ERR_QP, 0, 0, NULL);
	pf_resume(d, &pf, false);
	pf_resume(d, &pf, false);
}

static void resume_mismatch(void)
{
	struct pf pf;

	post_write(qa, VA, key, odp_key, VA, 64);
	pf_poll(d, &pf);
	pf.wq++;
	pf_resume(d, &pf, false);
}

static void resume_mismatch_type(void)
{
	struct pf pf;

	post_write(qa, VA, key, odp_key, VA, 64);
	pf_poll(d, &pf);
	pf.type = 3;
	pf_resume(d, &pf, false);
}

static void fault_livelock(void)
{
	struct pf pf;

	post_write(qa, VA, key, odp_key, VA, 64);
	for (u32 i = 0; i < 1100 && pf_poll(d, &pf); i++) {
		while (eq_poll(d, d->cmd_eq, true))
			;
		pf_resume(d, &pf, false);
		machine_run(1);
	}
}

static const struct strict_case cases[] = {
	CASE(DMA_ADDRESS, dma_address),
	CASE(DMA_ADDRESS, dma_address_wqe),
	CASE(DMA_ADDRESS, dma_address_list),
	CASE(DOORBELL, doorbell_uar),
	CASE(DOORBELL, doorbell_qp),
	CASE(DOORBELL, doorbell_other_page),
	CASE(DOORBELL, doorbell_cq),
	CASE(DOORBELL, doorbell_size),
	CASE(EQ_OVERRUN, eq_overrun),
	CASE(EQ_CONSUMER, eq_consumer),
	CASE(CQ_OVERRUN, cq_overrun),
	CASE(CQ_CONSUMER, cq_consumer),
	CASE(CQ_CONSUMER, cq_consumer_arm),
	CASE(SQ_OVERRUN, sq_overrun),
	CASE(RQ_OVERRUN, rq_overrun),
	CASE(WQE_FORMAT, wqe_size),
	CASE(WQE_FORMAT, wqe_index),
	CASE(WQE_FORMAT, wqe_qpn),
	CASE(WQE_FORMAT, wqe_segments),
	CASE(WQE_FORMAT, wqe_inline_length),
	CASE(WQE_OPCODE, wqe_opcode),
	CASE(WQE_OPCODE, wqe_opcode_type),
	CASE(MKEY_CONTEXT, mkey_context),
	CASE(MKEY_CONTEXT, mkey_context_umr),
	CASE(MKEY_SHORT, mkey_short),
	CASE(MKEY_SHORT, mkey_short_umr),
	CASE(XLT_BOUNDS, xlt_bounds),
	CASE(XLT_BOUNDS, xlt_bounds_far),
	CASE(XLT_ALIGN, xlt_align),
	CASE(XLT_ALIGN, xlt_align_offset),
	CASE(MTT_ALIGN, mtt_align),
	CASE(MTT_ALIGN, mtt_reserved),
	CASE(UMR_DISABLED, umr_disabled),
	CASE(UMR_FREE_STATE, umr_not_free),
	CASE(UMR_FREE_STATE, umr_free),
	CASE(UMR_MASK, umr_mask),
	CASE(UMR_KEY, umr_key),
	CASE(UMR_LIST, umr_list_dead),
	CASE(UMR_LIST, umr_list_rights),
	CASE(UMR_LIST, umr_list_short),
	CASE(RESUME_STRAY, resume_stray),
	CASE(RESUME_STRAY, resume_twice),
	CASE(RESUME_MISMATCH, resume_mismatch),
	CASE(RESUME_MISMATCH, resume_mismatch_type),
	CASE(FAULT_LIVELOCK, fault_livelock),
};

int main(void)
{
	return strict_main(cases, ARRAY_SIZE(cases), 40, LAST_RULE);
}
