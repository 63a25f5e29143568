// SPDX-License-Identifier: GPL-2.0
/*
 * Each rule of checks.inc is broken once on a strict device, which stops with its
 * number, and once on a lenient one, which goes on.
 */
#include "../../selftests/tap.h"
#include "../model/qp.h"
#include "fake.h"

#define VA		0x300000000000ull
#define SIZE		(16 * PAGE)
#define MSEC		1000000ull

/* What each case finds */
static struct dev *d;
static struct fqp *qa, *qb, *uq;
static u32 key;			/* MTT, all present, of 16 pages at VA */
static u32 free_key;		/* MTT, free, 8 octwords */
static u32 odp_key;		/* MTT, nothing present */
static u64 at, list;

static void setup(bool strict)
{
	const struct mlx5sim_config config = { .lid = 1, .strict = strict };
	struct qp_arg arg = { .type = MLX5_QPC_ST_REG_UMR };
	struct mkey_arg k = {
		.mode = MLX5_MKC_ACCESS_MODE_MTT, .octwords = 8, .free = true,
	};

	d = dev_running(&config);
	qp_pair(d, d, &qa, &qb, NULL);
	uq = qp_make(d, &arg);
	qp_connect(uq, 0, 0, NULL);
	key = mr_make(d, VA, SIZE, ALL_RIGHTS, &at);
	free_key = mkey_make(d, &k);
	k.free = false;
	k.start = VA;
	k.len = SIZE;
	k.log_page = 12;
	k.rights = ALL_RIGHTS;
	odp_key = mkey_make(d, &k);
	list = mem_alloc(PAGE);
}

static int simple(u16 opcode, u16 op_mod, u32 word)
{
	u8 out[512];

	return dev_simple(d, opcode, op_mod, word, out, sizeof(out));
}

/* The enabling UMR of the free key, for a case to spoil */
static struct umr_arg enable(void)
{
	struct umr_arg u = {
		.key = free_key, .flags = UMR_OFFSET | UMR_MUST_BE_FREE,
		.mask = UMR_MASK_ENABLE, .list = list, .octwords = 8,
	};

	for (u32 i = 0; i < 16; i++)
		put_be64((u8 *)mem(list) + 8 * i, (at + i * PAGE) | 3);
	umr_mkc(&u, d, ALL_RIGHTS, VA, SIZE, 12);
	return u;
}

static void nops(struct fqp *qp, u32 count)
{
	struct wqe w;

	while (count--) {
		wqe_begin(&w, qp, WQE_NOP, SIGNALED, 0);
		wqe_post(&w);
	}
}

static void cmd_descriptor(void)
{
	d->tamper.signature = true;
	simple(MLX5_CMD_OP_QUERY_ISSI, 0, 0);
}

static void cmd_descriptor_type(void)
{
	d->tamper.type = 9;
	simple(MLX5_CMD_OP_QUERY_ISSI, 0, 0);
}

static void cmd_descriptor_owner(void)
{
	d->tamper.not_owned = true;
	simple(MLX5_CMD_OP_QUERY_ISSI, 0, 0);
}

static void cmd_length_short(void)
{
	u8 in[ifc_bytes(create_mkey_in) - 16] = { 0 }, out[16];

	ifc_set(create_mkey_in, in, opcode, MLX5_CMD_OP_CREATE_MKEY);
	dev_cmd(d, in, sizeof(in), out, sizeof(out));
}

static void cmd_length_long(void)
{
	u8 in[32] = { 0 }, out[16];

	ifc_set(alloc_pd_in, in, opcode, MLX5_CMD_OP_ALLOC_PD);
	dev_cmd(d, in, sizeof(in), out, sizeof(out));
}

static void cmd_length_huge(void)
{
	d->tamper.in_len = 64 << 20;
	simple(MLX5_CMD_OP_QUERY_ISSI, 0, 0);
}

static void cmd_mailbox_token(void)
{
	u8 in[ifc_bytes(create_eq_in)] = { 0 }, out[16];

	d->tamper.token = d->token + 5;
	dev_cmd(d, in, sizeof(in), out, sizeof(out));
}

static void cmd_mailbox_number(void)
{
	u8 in[ifc_bytes(create_eq_in)] = { 0 }, out[16];

	d->tamper.block_number = 1;
	dev_cmd(d, in, sizeof(in), out, sizeof(out));
}

static void cmd_mailbox_short(void)
{
	u8 in[64] = { 0 }, out[16];

	ifc_set(create_mkey_in, in, opcode, MLX5_CMD_OP_CREATE_MKEY);
	d->tamper.in_len = 4096;
	dev_cmd(d, in, sizeof(in), out, sizeof(out));
}

static void cmd_opcode(void)
{
	simple(0x7777, 0, 0);
}

static void cmd_opcode_modifier(void)
{
	simple(MLX5_CMD_OP_MANAGE_PAGES, 9, 0);
}

static void cmd_reserved(void)
{
	u8 in[16] = { 0 }, out[16];

	ifc_set(alloc_pd_in, in, opcode, MLX5_CMD_OP_ALLOC_PD);
	ifc_set(alloc_pd_in, in, reserved_at_40, 1);
	dev_cmd(d, in, sizeof(in), out, sizeof(out));
}

/* A reserved bit in a context inside of the input */
static void cmd_reserved_inner(void)
{
	u8 in[ifc_bytes(create_mkey_in)] = { 0 }, out[16];

	ifc_set(create_mkey_in, in, opcode, MLX5_CMD_OP_CREATE_MKEY);
	ifc_set(create_mkey_in, in, memory_key_mkey_entry.reserved_at_40, 1);
	dev_cmd(d, in, sizeof(in), out, sizeof(out));
}

static void cmd_state(void)
{
	mlx5sim_reset(d->sim);
	mlx5sim_bar_write(d->sim, 0x10, d->cmdq >> 32, 4);
	mlx5sim_bar_write(d->sim, 0x14, (u32)d->cmdq, 4);
	simple(MLX5_CMD_OP_ALLOC_PD, 0, 0);
}

static void cap_value(void)
{
	u8 in[ifc_bytes(set_hca_cap_in)] = { 0 }, out[16];

	ifc_set(set_hca_cap_in, in, opcode, MLX5_CMD_OP_SET_HCA_CAP);
	ifc_set(cmd_hca_cap, in + 16, log_max_qp, 31);
	dev_cmd(d, in, sizeof(in), out, sizeof(out));
}

static void pages(void)
{
	u8 in[24] = { 0 }, out[16];

	ifc_set(manage_pages_in, in, opcode, MLX5_CMD_OP_MANAGE_PAGES);
	ifc_set(manage_pages_in, in, op_mod, 1);
	ifc_set(manage_pages_in, in, input_num_entries, 1);
	put_be64(in + 16, d->page[0]);
	dev_cmd(d, in, sizeof(in), out, sizeof(out));
}

static void object_dead(void)
{
	simple(MLX5_CMD_OP_DESTROY_QP, 0, 0x3333);
}

static void object_destroyed(void)
{
	u32 qpn = qa->qpn;

	qp_remove(qa);
	simple(MLX5_CMD_OP_QUERY_QP, 0, qpn);
}

static void object_destroyed_key(void)
{
	struct umr_arg u = enable();

	mkey_remove(d, free_key);
	umr(uq, &u);
}

static void object_busy(void)
{
	simple(MLX5_CMD_OP_DEALLOC_PD, 0, d->pd);
}

static void object_leak(void)
{
	simple(MLX5_CMD_OP_TEARDOWN_HCA, 0, 0);
}

static void context(void)
{
	eq_make(d, 5, MLX5SIM_NUM_VECTORS, 0);
}

/* A CQ whose context a case has spoiled */
static void make_cq(u64 page, u64 dbr)
{
	u8 in[ifc_bytes(create_cq_in) + 8] = { 0 }, out[16];
	u8 *cqc = ifc_at(create_cq_in, in, cq_context);

	ifc_set(create_cq_in, in, opcode, MLX5_CMD_OP_CREATE_CQ);
	ifc_set(cqc, cqc, log_cq_size, 6);
	ifc_set(cqc, cqc, uar_page, d->uar);
	ifc_set(cqc, cqc, c_eqn_or_apu_element, d->comp_eq->number);
	ifc_set(cqc, cqc, dbr_addr, dbr);
	put_be64(ifc_at(create_cq_in, in, pas), page);
	dev_cmd(d, in, page ? sizeof(in) : sizeof(in) - 8, out, sizeof(out));
}

static void ring_pages(void)
{
	make_cq(0, list);
}

static void ring_pages_align(void)
{
	u8 in[ifc_bytes(create_cq_in) + 8] = { 0 }, out[16];
	u8 *cqc = ifc_at(create_cq_in, in, cq_context);

	ifc_set(create_cq_in, in, opcode, MLX5_CMD_OP_CREATE_CQ);
	ifc_set(cqc, cqc, log_cq_size, 6);
	ifc_set(cqc, cqc, log_page_size, 2);
	ifc_set(cqc, cqc, uar_page, d->uar);
	ifc_set(cqc, cqc, c_eqn_or_apu_element, d->comp_eq->number);
	ifc_set(cqc, cqc, dbr_addr, list);
	put_be64(ifc_at(create_cq_in, in, pas), MEM_BASE + PAGE);
	dev_cmd(d, in, sizeof(in), out, sizeof(out));
}

static void record_missing(void)
{
	make_cq(list, 0);
}

static void record_unaligned(void)
{
	make_cq(list, list + 2);
}

static void qp_state_rule(void)
{
	qp_modify(qa, MLX5_CMD_OP_RST2INIT_QP, 0, 0, NULL);
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

static void umr_list_pd(void)
{
	struct umr_arg u = enable();
	struct mkey_arg arg = {
		.mode = MLX5_MKC_ACCESS_MODE_PA, .rights = LR,
		.length64 = true,
	};
	u8 out[16];

	dev_simple(d, MLX5_CMD_OP_ALLOC_PD, 0, 0, out, sizeof(out));
	arg.pd = ifc_get(alloc_pd_out, out, pd);
	u.list_key = mkey_make(d, &arg);
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

#define CASE(number, function)	{ CHK_##number, #function, function }

static const struct {
	enum check number;
	const char *name;
	void (*run)(void);
} cases[] = {
	CASE(CMD_DESCRIPTOR, cmd_descriptor),
	CASE(CMD_DESCRIPTOR, cmd_descriptor_type),
	CASE(CMD_DESCRIPTOR, cmd_descriptor_owner),
	CASE(CMD_LENGTH, cmd_length_short),
	CASE(CMD_LENGTH, cmd_length_long),
	CASE(CMD_LENGTH, cmd_length_huge),
	CASE(CMD_MAILBOX, cmd_mailbox_token),
	CASE(CMD_MAILBOX, cmd_mailbox_number),
	CASE(CMD_MAILBOX, cmd_mailbox_short),
	CASE(CMD_OPCODE, cmd_opcode),
	CASE(CMD_OPCODE, cmd_opcode_modifier),
	CASE(CMD_RESERVED, cmd_reserved),
	CASE(CMD_RESERVED, cmd_reserved_inner),
	CASE(CMD_STATE, cmd_state),
	CASE(CAP_VALUE, cap_value),
	CASE(PAGES, pages),
	CASE(OBJECT_DEAD, object_dead),
	CASE(OBJECT_DESTROYED, object_destroyed),
	CASE(OBJECT_DESTROYED, object_destroyed_key),
	CASE(OBJECT_BUSY, object_busy),
	CASE(OBJECT_LEAK, object_leak),
	CASE(CONTEXT, context),
	CASE(RING_PAGES, ring_pages),
	CASE(RING_PAGES, ring_pages_align),
	CASE(DOORBELL_RECORD, record_missing),
	CASE(DOORBELL_RECORD, record_unaligned),
	CASE(QP_STATE, qp_state_rule),
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
	CASE(UMR_LIST, umr_list_pd),
	CASE(UMR_LIST, umr_list_short),
	CASE(RESUME_STRAY, resume_stray),
	CASE(RESUME_STRAY, resume_twice),
	CASE(RESUME_MISMATCH, resume_mismatch),
	CASE(RESUME_MISMATCH, resume_mismatch_type),
	CASE(FAULT_LIVELOCK, fault_livelock),
};

static void strict(u32 i)
{
	u64 commands;

	setup(true);
	if (d->violation)
		diag("before the case: %s", d->text);
	d->violation = 0;
	cases[i].run();
	ok(d->violation == cases[i].number, "%u %s: %s", cases[i].number,
	   check_name(cases[i].number), cases[i].name);
	if (d->violation != cases[i].number)
		diag("got %u: %s", d->violation, d->text);
	commands = mlx5sim_stats(d->sim)->commands;
	simple(MLX5_CMD_OP_QUERY_ISSI, 0, 0);
	machine_run(MSEC);
	ok(mlx5sim_stats(d->sim)->commands == commands, "the device stopped");
	dev_free(d);
	machine_reset();
}

static void lenient(u32 i)
{
	u32 reset = cases[i].number == CHK_CMD_STATE;

	setup(false);
	cases[i].run();
	machine_run(MSEC);
	ok(!d->violation && mlx5sim_violation(d->sim) == cases[i].number,
	   "lenient: %s is noted (%u)", cases[i].name,
	   mlx5sim_violation(d->sim));
	ok(!simple(MLX5_CMD_OP_QUERY_ISSI, 0, 0) || reset,
	   "lenient: the device goes on");
	dev_free(d);
	machine_reset();
}

static void all_rules_covered(void)
{
	static const enum check rules[] = {
#define CHECK(number, name, text)	number,
#include "../model/checks.inc"
#undef CHECK
	};

	for (u32 r = 0; r < ARRAY_SIZE(rules); r++) {
		bool covered = false;

		for (u32 i = 0; i < ARRAY_SIZE(cases); i++)
			covered |= cases[i].number == rules[r];
		ok(covered, "rule %u %s has a case", rules[r],
		   check_name(rules[r]));
	}
}

int main(void)
{
	for (u32 i = 0; i < ARRAY_SIZE(cases); i++) {
		strict(i);
		lenient(i);
	}
	all_rules_covered();
	return tap_done();
}
