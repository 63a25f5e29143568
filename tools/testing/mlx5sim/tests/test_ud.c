// SPDX-License-Identifier: GPL-2.0
/* Datagrams: who gets them, what the completion tells, and what is lost. */
#include "../../selftests/tap.h"
#include "../model/qp.h"
#include "fake.h"

#define SIZE			(4 * PAGE)
#define HEADER			40
#define MSEC			1000000ull
#define QKEY			0x11111111u
#define GSI_QKEY		0x80010000u
#define LID_A			1
#define LID_B			2
#define NO_LID			77
#define FLAGS_GRH		BIT(28)

static struct dev *a, *b;
static struct fqp *qa, *qb;
static u32 ka, kb;
static u64 ma, mb;

static struct fqp *ud(struct dev *d, u32 type, u32 q_key)
{
	struct fqp *qp = qp_make(d, &(struct qp_arg){ .type = type });

	if (qp)
		qp_connect(qp, 0, 0, &(struct link_arg){ .q_key = q_key });
	return qp;
}

static void setup(bool two, u32 type, u32 q_key)
{
	struct mlx5sim_config config = { .lid = LID_A, .strict = true };

	a = dev_running(&config);
	config.lid = LID_B;
	b = two ? dev_running(&config) : a;
	qa = ud(a, type, q_key);
	qb = two ? ud(b, type, q_key) : ud(a, MLX5_QPC_ST_UD, q_key);
	ka = mr_make(a, 0, SIZE, ALL_RIGHTS, &ma);
	kb = mr_make(b, 0, SIZE, ALL_RIGHTS, &mb);
	for (u32 i = 0; i < SIZE; i++)
		((u8 *)mem(ma))[i] = i * 7 + (i >> 8);
}

static void teardown(void)
{
	ok(!a->violation && !b->violation, "no rule broken (%s%s)", a->text,
	   b->text);
	if (b != a)
		dev_free(b);
	dev_free(a);
	machine_reset();
}

static u16 lid_b(void)
{
	return b == a ? LID_A : LID_B;
}

static void post(const struct av_arg *av, u8 opcode, u32 len)
{
	struct wqe w;

	wqe_begin(&w, qa, opcode, SIGNALED, 0xabcd);
	wqe_av(&w, av);
	if (len)
		wqe_sge(&w, ka, 0, len);
	wqe_post(&w);
}

/* The sender is told that it went well, whatever became of it */
static void sent(const char *what)
{
	u8 *cqe = wait_cqe(qa->scq, MSEC);

	ok(cqe && cqe_opcode(cqe) == CQE_REQ, "%s: sent (%d)", what,
	   cqe ? cqe_opcode(cqe) : -1);
}

static void lost(const char *what)
{
	sent(what);
	ok(!wait_cqe(qb->rcq, MSEC), "%s: lost", what);
}

/* The receiver has it; @flags: GRH and service level, as the CQE tells them */
static u8 *arrived(u8 opcode, u32 len, u32 src_qp, u32 flags, const char *what)
{
	u8 *cqe;

	sent(what);
	cqe = wait_cqe(qb->rcq, MSEC);
	ok(cqe && cqe_opcode(cqe) == opcode, "%s: received (%d)", what,
	   cqe ? cqe_opcode(cqe) : -1);
	if (!cqe)
		return NULL;
	ok(cqe_bytes(cqe) == len + HEADER, "%s: %u bytes", what,
	   cqe_bytes(cqe));
	ok(get_be16(cqe + 22) == LID_A && get_be32(cqe + 24) == (flags | src_qp),
	   "%s: from LID %u, flags and QP 0x%x", what, get_be16(cqe + 22),
	   get_be32(cqe + 24));
	ok(!memcmp(mem(mb + HEADER), mem(ma), len), "%s: data", what);
	return cqe;
}

static void traffic(bool two)
{
	struct av_arg av = { .q_key = QKEY };
	static const u8 nothing[HEADER];
	u8 *cqe, *grh;

	setup(two, MLX5_QPC_ST_UD, QKEY);
	av.qpn = qb->qpn;
	av.lid = lid_b();
	memset(mem(mb), 0x55, SIZE);
	post_recv(qb, kb, 0, SIZE);
	post(&av, WQE_SEND, 1000);
	cqe = arrived(CQE_RESP_SEND, 1000, qa->qpn, 0, "SEND");
	ok(cqe && !cqe_imm(cqe), "index of the partition");
	ok(!memcmp(mem(mb), nothing, HEADER), "no GRH");

	post_recv(qb, kb, 0, SIZE);
	av.grh = true;
	av.sl = 3;
	post(&av, WQE_SEND_IMM, 1001);
	cqe = arrived(CQE_RESP_SEND_IMM, 1001, qa->qpn, FLAGS_GRH | 3 << 24,
		      "SEND with immediate and GRH");
	ok(cqe && cqe_imm(cqe) == 0xabcd, "immediate");
	grh = mem(mb);
	ok(get_be32(grh) == (6u << 28 | AV_TCLASS << 20 | AV_FLOW) &&
	   get_be16(grh + 4) == 24 + 4 + 1004 && grh[6] == 0x1b &&
	   grh[7] == AV_HOP_LIMIT && get_be64(grh + 24) == AV_DGID &&
	   get_be64(grh + 32) == av.lid, "GRH");

	post_recv(qb, kb, 0, SIZE);
	post(&av, WQE_SEND, 0);
	arrived(CQE_RESP_SEND, 0, qa->qpn, FLAGS_GRH | 3 << 24, "no data");
	post_recv(qb, kb, 0, SIZE);
	av.half = true;
	post(&av, WQE_SEND, 4096);
	arrived(CQE_RESP_SEND, 4096, qa->qpn, 3 << 24, "short address");
	/* The high bit asks for the Q_Key of the sending QP */
	post_recv(qb, kb, 0, SIZE);
	av.q_key = BIT(31) | 5;
	post(&av, WQE_SEND, 64);
	arrived(CQE_RESP_SEND, 64, qa->qpn, 3 << 24, "own Q_Key");
	teardown();
}

static void losses(void)
{
	const struct av_arg good = { .q_key = QKEY, .lid = LID_A };
	const struct link_arg link = { .q_key = QKEY, .pkey_index = 1 };
	struct fqp *rc, *other, *peer = NULL;
	struct av_arg av;

	setup(false, MLX5_QPC_ST_UD, QKEY);
	av = good;
	av.qpn = qb->qpn;
	post(&av, WQE_SEND, 64);
	lost("no receive request");
	post_recv(qb, kb, 0, SIZE);
	av.q_key = QKEY + 1;
	post(&av, WQE_SEND, 64);
	lost("wrong Q_Key");
	av = good;
	av.qpn = 0x123456;
	post(&av, WQE_SEND, 64);
	lost("no such QP");
	av.qpn = qb->qpn;
	av.lid = NO_LID;
	post(&av, WQE_SEND, 64);
	lost("no such LID");

	qp_pair(a, a, &rc, &peer, NULL);
	av = good;
	av.qpn = rc->qpn;
	post_recv(rc, kb, 0, SIZE);
	post(&av, WQE_SEND, 64);
	sent("to an RC QP");
	ok(!wait_cqe(rc->rcq, MSEC), "to an RC QP: lost");

	other = qp_make(a, &(struct qp_arg){ .type = MLX5_QPC_ST_UD });
	qp_connect(other, 0, 0, &link);
	av.qpn = other->qpn;
	post_recv(other, kb, 0, SIZE);
	post(&av, WQE_SEND, 64);
	sent("other partition");
	ok(!wait_cqe(other->rcq, MSEC), "other partition: lost");

	qp_modify(qb, MLX5_CMD_OP_2RST_QP, 0, 0, NULL);
	av.qpn = qb->qpn;
	post(&av, WQE_SEND, 64);
	lost("QP in reset");
	teardown();
}

/* A failed request stops the send queue alone, until the driver goes on */
static void send_errors(void)
{
	struct av_arg av = { .q_key = QKEY, .lid = LID_A };
	struct av_arg back = av;
	struct wqe w;
	u8 *cqe;

	setup(false, MLX5_QPC_ST_UD, QKEY);
	av.qpn = qb->qpn;
	post(&av, WQE_SEND, 4097);
	cqe = wait_cqe(qa->scq, MSEC);
	ok(cqe && cqe_opcode(cqe) == CQE_REQ_ERR &&
	   cqe_syndrome(cqe) == SYN_LOCAL_LENGTH, "longer than the MTU");
	ok(qp_state(qa) == MLX5_QPC_STATE_SQER, "send queue error");
	post(&av, WQE_SEND, 64);
	cqe = wait_cqe(qa->scq, MSEC);
	ok(cqe && cqe_opcode(cqe) == CQE_REQ_ERR &&
	   cqe_syndrome(cqe) == SYN_FLUSH, "the next one is flushed");

	/* It still receives */
	post_recv(qa, ka, 0, SIZE);
	wqe_begin(&w, qb, WQE_SEND, SIGNALED, 0);
	back.qpn = qa->qpn;
	wqe_av(&w, &back);
	wqe_sge(&w, kb, 0, 64);
	wqe_post(&w);
	cqe = wait_cqe(qa->rcq, MSEC);
	ok(cqe && cqe_opcode(cqe) == CQE_RESP_SEND, "receiving goes on");

	ok(!qp_modify(qa, MLX5_CMD_OP_SQERR2RTS_QP, 0, 0, NULL),
	   "back to work");
	wait_cqe(qb->scq, MSEC);
	post_recv(qb, kb, 0, SIZE);
	post(&av, WQE_SEND, 64);
	arrived(CQE_RESP_SEND, 64, qa->qpn, 0, "afterwards");
	wqe_begin(&w, qa, WQE_SEND, SIGNALED, 0);
	wqe_av(&w, &av);
	wqe_sge(&w, 0x77700, 0, 64);
	wqe_post(&w);
	cqe = wait_cqe(qa->scq, MSEC);
	ok(cqe && cqe_opcode(cqe) == CQE_REQ_ERR &&
	   cqe_syndrome(cqe) == SYN_LOCAL_PROT, "bad key");
	teardown();
}

/* Too short for header and data: an error of the receiver alone */
static void short_receive(void)
{
	struct av_arg av = { .q_key = QKEY, .lid = LID_A };
	u8 *cqe;

	setup(false, MLX5_QPC_ST_UD, QKEY);
	av.qpn = qb->qpn;
	post_recv(qb, kb, 0, HEADER + 63);
	post(&av, WQE_SEND, 64);
	sent("short receive request");
	cqe = wait_cqe(qb->rcq, MSEC);
	ok(cqe && cqe_opcode(cqe) == CQE_RESP_ERR &&
	   cqe_syndrome(cqe) == SYN_LOCAL_LENGTH, "short receive request");
	teardown();
}

/* The queues of management are known as 0 and 1, whatever their number is */
static void management(u32 type, u32 wire_qpn, u32 q_key)
{
	const char *what = wire_qpn ? "QP1" : "QP0";
	struct av_arg av = { .q_key = q_key, .lid = LID_B, .qpn = wire_qpn };

	setup(true, type, q_key);
	post_recv(qb, kb, 0, SIZE);
	post(&av, WQE_SEND, 256);
	arrived(CQE_RESP_SEND, 256, wire_qpn, 0, what);
	av.lid = NO_LID;
	post_recv(qb, kb, 0, SIZE);
	post(&av, WQE_SEND, 256);
	lost(what);
	teardown();
}

static void page_fault(void)
{
	struct av_arg av = { .q_key = QKEY, .lid = LID_A };
	u8 list[16] = { 0 };
	struct mkey_arg arg = {
		.mode = MLX5_MKC_ACCESS_MODE_MTT,
		.rights = ALL_RIGHTS,
		.len = PAGE,
		.log_page = 12,
		.octwords = 4,
		.entries = list,
		.count = 1,
	};
	struct umr_arg u = { .octwords = 4, .flags = UMR_OFFSET };
	struct fqp *uq;
	struct wqe w;
	struct pf pf;
	u32 key;

	setup(false, MLX5_QPC_ST_UD, QKEY);
	key = mkey_make(a, &arg);
	uq = qp_make(a, &(struct qp_arg){ .type = MLX5_QPC_ST_REG_UMR });
	qp_connect(uq, 0, 0, NULL);
	av.qpn = qb->qpn;
	post_recv(qb, kb, 0, SIZE);
	wqe_begin(&w, qa, WQE_SEND, SIGNALED, 0);
	wqe_av(&w, &av);
	wqe_sge(&w, key, 0, 512);
	wqe_post(&w);
	ok(!cq_poll(qa->scq) && pf_poll(a, &pf) && pf.type == FAULT_REQUESTER &&
	   pf.wq == qa->qpn && !pf.committed, "page fault of the sender");
	u.key = key;
	u.list = mem_alloc(PAGE);
	put_be64(mem(u.list), ma | 3);
	ok(!umr(uq, &u) && !pf_resume(a, &pf, false), "page present, resumed");
	arrived(CQE_RESP_SEND, 512, qa->qpn, 0, "SEND after a page fault");
	teardown();
}

int main(void)
{
	traffic(false);
	traffic(true);
	losses();
	send_errors();
	short_receive();
	management(MLX5_QPC_ST_QP1, 1, GSI_QKEY);
	management(MLX5_QPC_ST_QP0, 0, 0);
	page_fault();
	return tap_done();
}
