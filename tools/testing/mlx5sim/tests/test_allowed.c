// SPDX-License-Identifier: GPL-2.0
/*
 * What looks like a mistake of the driver and is none: what the drivers of some
 * kernel do, what a user asked them for, and what a fault to order leads to.
 */
#include "../../selftests/tap.h"
#include "../model/qp.h"
#include "fake.h"

#define VA			0x300000000000ull
#define SIZE			(16 * PAGE)
#define MSEC			1000000ull
#define EVENT_CQ_ERROR		0x04
#define UNKNOWN_OPCODE		0xbff

static struct dev *d;
static struct fqp *qa, *qb;
static u32 key;
static u64 at;

static void setup(const char *faults)
{
	d = dev_running(&(struct mlx5sim_config){
		.lid = 1, .strict = true, .faults = faults });
	qp_pair(d, d, &qa, &qb, NULL);
	key = mr_make(d, VA, SIZE, ALL_RIGHTS, &at);
}

static void teardown(void)
{
	ok(!d->violation, "no rule broken (%s)", d->text);
	dev_free(d);
	machine_reset();
}

/* Those of commands, which are polled for */
static void consume_events(void)
{
	while (eq_poll(d, d->cmd_eq, true))
		;
}

static u32 new_pd(void)
{
	u8 out[16];

	dev_simple(d, MLX5_CMD_OP_ALLOC_PD, 0, 0, out, sizeof(out));
	return ifc_get(alloc_pd_out, out, pd);
}

static u32 new_uctx(void)
{
	u8 in[ifc_bytes(create_uctx_in)] = { 0 }, out[16];

	ifc_set(create_uctx_in, in, opcode, MLX5_CMD_OP_CREATE_UCTX);
	dev_cmd(d, in, sizeof(in), out, sizeof(out));
	return ifc_get(create_uctx_out, out, uid);
}

/* A command of 16 bytes for a DEVX context */
static int of_context(u16 opcode, u32 uid, u32 word)
{
	u8 in[16] = { 0 }, out[16];

	put_be16(in, opcode);
	put_be16(in + 2, uid);
	put_be32(in + 8, word);
	return dev_cmd(d, in, sizeof(in), out, sizeof(out));
}

/* The UMR queue of a driver belongs to no protection domain */
static void umr_queue(void)
{
	struct mkey_arg list_key = {
		.mode = MLX5_MKC_ACCESS_MODE_PA, .rights = LR,
		.length64 = true,
	};
	struct umr_arg u = { .octwords = 4, .flags = UMR_OFFSET };
	struct fqp *uq;

	setup(NULL);
	uq = qp_make(d, &(struct qp_arg){ .type = MLX5_QPC_ST_REG_UMR });
	qp_connect(uq, 0, 0, NULL);
	list_key.pd = new_pd();
	u.key = key;
	u.list_key = mkey_make(d, &list_key);
	u.list = mem_alloc(PAGE);
	ok(!umr(uq, &u), "list in another protection domain");
	teardown();
}

/* Status and syndrome are enough of an answer */
static void short_answer(void)
{
	u8 in[16] = { 0 }, out[8];

	setup(NULL);
	put_be16(in, MLX5_CMD_OP_QUERY_ISSI);
	ok(!dev_cmd(d, in, sizeof(in), out, sizeof(out)), "8 bytes of output");
	teardown();
}

static void capabilities(void)
{
	u8 before[16 + 4096], after[16 + 4096];
	u8 in[ifc_bytes(set_hca_cap_in)] = { 0 }, out[16];
	u8 *cap = before + 16;
	u32 set = 0;

	setup(NULL);
	for (u16 type = 0; type < 0x40; type++) {
		if (dev_simple(d, MLX5_CMD_OP_QUERY_HCA_CAP, type << 1 | 1, 0,
			       after, sizeof(after)))
			ok(false, "capabilities of type 0x%x", type);
		for (u32 i = 16; i < sizeof(after) && type > 3; i++)
			set |= after[i];
		consume_events();
	}
	ok(!set, "all types can be asked for, those it has not are empty");
	dev_simple(d, MLX5_CMD_OP_QUERY_HCA_CAP, 3 << 1 | 1, 0, before,
		   sizeof(before));
	ifc_set(set_hca_cap_in, in, opcode, MLX5_CMD_OP_SET_HCA_CAP);
	ifc_set(set_hca_cap_in, in, op_mod, 3 << 1);
	ifc_set(atomic_caps, in + 16, atomic_req_8B_endianness_mode, 0);
	ok(!dev_cmd(d, in, sizeof(in), out, sizeof(out)) &&
	   !dev_simple(d, MLX5_CMD_OP_QUERY_HCA_CAP, 3 << 1 | 1, 0, after,
		       sizeof(after)), "atomic mode alone is set");
	ifc_set(atomic_caps, cap, atomic_req_8B_endianness_mode, 0);
	ok(!memcmp(before + 16, after + 16, 256), "the others stay");
	teardown();
}

/* A queue of a user has another UAR page than those of the driver */
static void user_overruns_cq(void)
{
	u32 drivers_uar;
	struct qp_arg arg = { 0 };
	struct fqp *qp;
	u8 out[16], *eqe;
	struct wqe w;

	setup(NULL);
	drivers_uar = d->uar;
	dev_simple(d, MLX5_CMD_OP_ALLOC_UAR, 0, 0, out, sizeof(out));
	d->uar = ifc_get(alloc_uar_out, out, uar);
	arg.scq = cq_make(d, 2, 64);
	qp = qp_make(d, &arg);
	d->uar = drivers_uar;
	qp_connect(qp, qp->qpn, 1, NULL);
	for (u32 i = 0; i < 8; i++) {
		wqe_begin(&w, qp, WQE_NOP, SIGNALED, 0);
		wqe_post(&w);
	}
	eqe = eq_poll(d, d->async_eq, true);
	ok(eqe && eqe[1] == EVENT_CQ_ERROR &&
	   get_be32(eqe + 32) == arg.scq->number, "CQ error after an overrun");
	teardown();
}

/* What a user composes himself ends with an error completion */
static void user_umr(void)
{
	struct mkey_arg fixed = {
		.mode = MLX5_MKC_ACCESS_MODE_MTT, .octwords = 4,
		.free = true, .no_umr = true,
	};
	struct umr_arg u = { .octwords = 3, .flags = UMR_OFFSET };

	setup(NULL);
	u.key = mkey_make(d, &fixed);
	ok(umr(qa, &u) == SYN_MW_BIND, "UMR on a key without UMR");
	qp_pair(d, d, &qa, &qb, NULL);
	u.key = key;
	u.list = mem_alloc(PAGE);
	ok(umr(qa, &u) == SYN_MW_BIND, "UMR with an odd list");
	teardown();
}

static void user_commands(void)
{
	u8 in[ifc_bytes(create_umem_in) + 8] = { 0 }, out[16];
	u8 *um = ifc_at(create_umem_in, in, umem);
	struct mkey_arg arg = {
		.mode = MLX5_MKC_ACCESS_MODE_MTT, .rights = ALL_RIGHTS,
		.start = VA, .len = PAGE, .log_page = 12, .octwords = 1,
	};
	u32 uid, pd, mr;

	setup(NULL);
	uid = new_uctx();
	ok(of_context(UNKNOWN_OPCODE, uid, 0) == 2, "unknown command");
	ifc_set(create_umem_in, in, opcode, MLX5_CMD_OP_CREATE_UMEM);
	ifc_set(create_umem_in, in, uid, uid);
	ifc_set(umem, um, num_of_mtt, 1);
	put_be64(ifc_at(create_umem_in, in, umem.mtt), mem_alloc(PAGE) | 3);
	dev_cmd(d, in, sizeof(in), out, sizeof(out));
	arg.umem = ifc_get(create_umem_out, out, umem_id);
	mr = mkey_make(d, &arg);
	ok(mr && of_context(MLX5_CMD_OP_DESTROY_UMEM, uid, arg.umem) == 9,
	   "UMEM that is in use");
	mkey_remove(d, mr);
	ok(!of_context(MLX5_CMD_OP_DESTROY_UMEM, uid, arg.umem),
	   "UMEM that is not");

	/* An XRC domain or target lives on with another process */
	pd = new_pd();
	ok(!of_context(MLX5_CMD_OP_DESTROY_UCTX, 0, uid) &&
	   !of_context(MLX5_CMD_OP_DEALLOC_PD, uid, pd),
	   "object of a context that is gone");
	teardown();
}

/* The device changed the state, and the driver has not seen the event yet */
static void state_unseen(void)
{
	setup(NULL);
	post_write(qa, VA, 0x12300, key, VA, 64);
	wait_cqe(qa->scq, MSEC);
	ok(qp_state(qa) == MLX5_QPC_STATE_ERR &&
	   qp_modify(qa, MLX5_CMD_OP_RTS2RTS_QP, qb->qpn, 1, NULL) == 0x10,
	   "command for a QP that an error has stopped");
	teardown();
}

/* What cannot be destroyed keeps what it uses, and both are left behind */
static void injected_leak(void)
{
	u8 out[16];
	u32 pd;

	setup("0x202:1:9");
	pd = new_pd();
	mkey_make(d, &(struct mkey_arg){
		.mode = MLX5_MKC_ACCESS_MODE_PA, .rights = LR, .pd = pd,
		.length64 = true });
	ok(mkey_remove(d, key) == 9, "DESTROY_MKEY fails to order");
	ok(dev_simple(d, MLX5_CMD_OP_DEALLOC_PD, 0, pd, out, 16) == 9,
	   "DEALLOC_PD fails because of it");
	ok(!dev_simple(d, MLX5_CMD_OP_TEARDOWN_HCA, 0, 0, out, 16),
	   "TEARDOWN_HCA");
	teardown();
}

/* More QPs than one would think are killed while they wait for pages */
static void many_orphans(void)
{
	struct mkey_arg arg = {
		.mode = MLX5_MKC_ACCESS_MODE_MTT, .rights = ALL_RIGHTS,
		.start = VA, .len = PAGE, .log_page = 12, .octwords = 4,
	};
	u32 odp, resumed = 0;
	struct pf pf[200];

	setup(NULL);
	odp = mkey_make(d, &arg);
	for (u32 i = 0; i < ARRAY_SIZE(pf); i++) {
		qp_pair(d, d, &qa, &qb, NULL);
		post_write(qa, VA, key, odp, VA, 64);
		if (!pf_poll(d, &pf[i]))
			ok(false, "page fault %u", i);
		qp_remove(qa);
		qp_remove(qb);
		consume_events();
	}
	for (u32 i = 0; i < ARRAY_SIZE(pf); i++) {
		resumed += !pf_resume(d, &pf[i], true);
		consume_events();
	}
	ok(resumed == ARRAY_SIZE(pf), "page faults of QPs that are gone");
	teardown();
}

int main(void)
{
	umr_queue();
	short_answer();
	capabilities();
	user_overruns_cq();
	user_umr();
	user_commands();
	state_unseen();
	injected_leak();
	many_orphans();
	return tap_done();
}
