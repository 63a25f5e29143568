// SPDX-License-Identifier: GPL-2.0
/* RC traffic on one device and between two: data, immediates, errors, retries. */
#include "../../selftests/tap.h"
#include "../model/qp.h"
#include "fake.h"

#define VA			0x7f0000000100ull
#define SIZE			0x30000u
#define MSEC			1000000ull

/* A pair and an MR on each side */
static struct dev *a, *b;
static struct fqp *qa, *qb;
static u32 ka, kb;
static u64 ma, mb;
static struct mlx5sim_config config = { .lid = 1, .strict = true };

static void setup(bool two, const struct link_arg *link)
{
	struct mlx5sim_config second = config;

	second.lid = 2;
	a = dev_running(&config);
	b = two ? dev_running(&second) : a;
	qp_pair(a, b, &qa, &qb, link);
	ka = mr_make(a, VA, SIZE, ALL_RIGHTS, &ma);
	kb = mr_make(b, VA, SIZE, ALL_RIGHTS, &mb);
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

static bool same(u32 off, u32 len)
{
	return !memcmp((u8 *)mem(ma) + off, (u8 *)mem(mb) + off, len);
}

/* The next completion of a QP is good, with these bytes in the requester case */
static u8 *good(struct queue *cq, u8 opcode, const char *what)
{
	u8 *cqe = wait_cqe(cq, 100 * MSEC);

	ok(cqe && cqe_opcode(cqe) == opcode, "%s: completion (%d)", what,
	   cqe ? cqe_opcode(cqe) : -1);
	return cqe;
}

static void bad(struct queue *cq, u8 opcode, u8 syndrome, const char *what)
{
	u8 *cqe = wait_cqe(cq, 100 * MSEC);

	ok(cqe && cqe_opcode(cqe) == opcode && cqe_syndrome(cqe) == syndrome,
	   "%s: error completion (opcode %d, syndrome 0x%x)", what,
	   cqe ? cqe_opcode(cqe) : -1, cqe ? cqe_syndrome(cqe) : 0);
}

static void data(bool two)
{
	const char *where = two ? "two devices" : "one device";
	struct wqe w;
	u8 *cqe;
	u64 old;

	setup(two, NULL);
	post_write(qa, VA + 0x10, kb, ka, VA + 0x10, SIZE - 0x10);
	good(qa->scq, CQE_REQ, "WRITE");
	ok(same(0x10, SIZE - 0x10), "%s: WRITE of %u bytes", where, SIZE);

	memset(mem(ma), 0, SIZE);
	post_read(qa, VA, kb, ka, VA, SIZE);
	cqe = good(qa->scq, CQE_REQ, "READ");
	ok(cqe && cqe_bytes(cqe) == SIZE && same(0, SIZE), "%s: READ", where);

	put_be64(mem(ma), 0);
	*(u64 *)mem(mb + 8) = 41;
	wqe_begin(&w, qa, WQE_ATOMIC_FA, SIGNALED, 0);
	wqe_remote(&w, VA + 8, kb);
	wqe_atomic(&w, 1, 0);
	wqe_sge(&w, ka, VA, 8);
	wqe_post(&w);
	good(qa->scq, CQE_REQ, "FETCH_ADD");
	old = *(u64 *)mem(ma);
	ok(old == 41 && *(u64 *)mem(mb + 8) == 42, "%s: FETCH_ADD in host order",
	   where);
	wqe_begin(&w, qa, WQE_ATOMIC_CS, SIGNALED, 0);
	wqe_remote(&w, VA + 8, kb);
	wqe_atomic(&w, 99, 42);
	wqe_sge(&w, ka, VA, 8);
	wqe_post(&w);
	good(qa->scq, CQE_REQ, "CMP_SWP");
	ok(*(u64 *)mem(ma) == 42 && *(u64 *)mem(mb + 8) == 99,
	   "%s: CMP_SWP that matches", where);

	post_recv(qb, kb, VA + 0x1000, 0x2000);
	wqe_begin(&w, qa, WQE_SEND_IMM, SIGNALED | SOLICITED, 0xcafe1234);
	wqe_inline(&w, "hello, receiver", 15);
	wqe_sge(&w, ka, VA + 0x100, 0x1000);
	wqe_post(&w);
	good(qa->scq, CQE_REQ, "SEND_IMM");
	cqe = good(qb->rcq, CQE_RESP_SEND_IMM, "receive");
	ok(cqe && cqe_bytes(cqe) == 0x100f && cqe_imm(cqe) == 0xcafe1234 &&
	   cqe[63] & 2, "%s: length, immediate, solicited", where);
	ok(!memcmp(mem(mb + 0x1000), "hello, receiver", 15) &&
	   !memcmp(mem(mb + 0x100f), mem(ma + 0x100), 0x1000),
	   "%s: inline and memory in one message", where);

	post_recv(qb, kb, VA, 0);
	wqe_begin(&w, qa, WQE_RDMA_WRITE_IMM, SIGNALED, 77);
	wqe_remote(&w, VA + 0x4000, kb);
	wqe_sge(&w, ka, VA + 0x4000, 0x800);
	wqe_post(&w);
	good(qa->scq, CQE_REQ, "WRITE_IMM");
	cqe = good(qb->rcq, CQE_RESP_WRITE_IMM, "receive");
	ok(cqe && cqe_imm(cqe) == 77 && cqe_bytes(cqe) == 0x800 &&
	   same(0x4000, 0x800), "%s: WRITE_IMM", where);

	post_recv(qb, kb, VA, 64);
	wqe_begin(&w, qa, WQE_SEND, SIGNALED, 0);
	wqe_post(&w);
	good(qa->scq, CQE_REQ, "empty SEND");
	cqe = good(qb->rcq, CQE_RESP_SEND, "receive");
	ok(cqe && !cqe_bytes(cqe), "%s: empty SEND", where);
	teardown();
}

/* More requests than the queue has blocks, so that it wraps; odd sizes */
static void wrap(void)
{
	u32 wrong = 0;

	setup(false, NULL);
	for (u32 i = 0; i < 300; i++) {
		struct wqe w;

		wqe_begin(&w, qa, WQE_RDMA_WRITE, i % 3 ? 0 : SIGNALED, 0);
		wqe_remote(&w, VA + i * 16, kb);
		for (u32 s = 0; s < 1 + i % 5; s++)
			wqe_sge(&w, ka, VA + i * 16 + s * 3, 3);
		wqe_post(&w);
		if (i % 3 == 0 && !wait_cqe(qa->scq, MSEC))
			wrong++;
	}
	ok(!wrong && !cq_poll(qa->scq), "300 requests, every third signaled");
	teardown();
}

static void errors(void)
{
	struct wqe w;
	u32 read_only;
	u64 at;

	setup(false, NULL);
	post_write(qa, VA, kb ^ 1, ka, VA, 64);
	bad(qa->scq, CQE_REQ_ERR, SYN_REMOTE_ACCESS, "wrong variant of a key");
	ok(qp_state(qa) == MLX5_QPC_STATE_ERR &&
	   qp_state(qb) == MLX5_QPC_STATE_ERR, "both ends are in error");
	post_write(qa, VA, kb, ka, VA, 64);
	bad(qa->scq, CQE_REQ_ERR, SYN_FLUSH, "posted in error");
	teardown();

	setup(false, NULL);
	post_write(qa, VA + SIZE - 32, kb, ka, VA, 64);
	bad(qa->scq, CQE_REQ_ERR, SYN_REMOTE_ACCESS, "WRITE beyond the key");
	ok(*(u64 *)mem(mb + SIZE - 32) == 0, "nothing was written");
	teardown();

	setup(false, NULL);
	post_write(qa, VA, kb, ka, VA + SIZE - 32, 64);
	bad(qa->scq, CQE_REQ_ERR, SYN_LOCAL_PROT, "local memory beyond the key");
	teardown();

	setup(false, NULL);
	read_only = mr_make(b, VA, SIZE, LR | RR, &at);
	post_write(qa, VA, read_only, ka, VA, 64);
	bad(qa->scq, CQE_REQ_ERR, SYN_REMOTE_ACCESS, "WRITE to a key for READ");
	teardown();

	setup(false, NULL);
	post_recv(qb, kb, VA, 10);
	post_send(qa, ka, VA, 11);
	bad(qa->scq, CQE_REQ_ERR, SYN_REMOTE_INVALID, "SEND that is too long");
	bad(qb->rcq, CQE_RESP_ERR, SYN_LOCAL_LENGTH, "its receiver");
	teardown();

	setup(false, NULL);
	post_recv(qb, kb + 0x100, VA, 100);
	post_send(qa, ka, VA, 11);
	bad(qa->scq, CQE_REQ_ERR, SYN_REMOTE_OP, "SEND to a bad receive request");
	bad(qb->rcq, CQE_RESP_ERR, SYN_LOCAL_PROT, "its receiver");
	teardown();

	setup(false, NULL);
	wqe_begin(&w, qa, WQE_ATOMIC_FA, SIGNALED, 0);
	wqe_remote(&w, VA + 4, kb);
	wqe_atomic(&w, 1, 0);
	wqe_sge(&w, ka, VA, 8);
	wqe_post(&w);
	bad(qa->scq, CQE_REQ_ERR, SYN_REMOTE_INVALID, "unaligned atomic");
	teardown();

	setup(false, &(struct link_arg){ .no_remote = true });
	post_read(qa, VA, kb, ka, VA, 64);
	bad(qa->scq, CQE_REQ_ERR, SYN_REMOTE_INVALID, "READ that the QP forbids");
	teardown();
}

/* Memory of a peer that can be written and not read: no mistake of the driver */
static void refused(void)
{
	setup(false, NULL);
	machine_hole((mb + PAGE) & ~(u64)(PAGE - 1), MLX5SIM_DMA_REFUSED);
	post_read(qa, VA, kb, ka, VA, 2 * PAGE);
	bad(qa->scq, CQE_REQ_ERR, SYN_REMOTE_ACCESS, "READ that is refused");
	teardown();
}

static void pd_mismatch(void)
{
	struct mkey_arg arg = {
		.mode = MLX5_MKC_ACCESS_MODE_PA, .rights = ALL_RIGHTS,
		.length64 = true,
	};
	u8 out[16];

	setup(false, NULL);
	dev_simple(a, MLX5_CMD_OP_ALLOC_PD, 0, 0, out, sizeof(out));
	arg.pd = ifc_get(alloc_pd_out, out, pd);
	post_write(qa, mb, mkey_make(a, &arg), ka, VA, 64);
	bad(qa->scq, CQE_REQ_ERR, SYN_REMOTE_ACCESS, "key of another PD");
	teardown();
}

static void flush(void)
{
	u32 flushed = 0;

	setup(false, NULL);
	for (u32 i = 0; i < 5; i++)
		post_recv(qb, kb, VA, 64);
	qp_modify(qb, MLX5_CMD_OP_2ERR_QP, 0, 0, NULL);
	machine_run(MSEC);
	for (u8 *cqe; (cqe = cq_poll(qb->rcq));)
		flushed += cqe_opcode(cqe) == CQE_RESP_ERR &&
			   cqe_syndrome(cqe) == SYN_FLUSH;
	ok(flushed == 5, "receive requests are flushed (%u)", flushed);
	post_recv(qb, kb, VA, 64);
	bad(qb->rcq, CQE_RESP_ERR, SYN_FLUSH, "posted without a doorbell");
	qp_modify(qb, MLX5_CMD_OP_2RST_QP, 0, 0, NULL);
	ok(qp_state(qb) == MLX5_QPC_STATE_RST, "reset after error");
	teardown();
}

static void retries(void)
{
	setup(false, &(struct link_arg){ .rnr_retry = 7, .min_rnr_nak = 12 });
	post_send(qa, ka, VA, 100);
	machine_run(20 * MSEC);
	ok(!cq_poll(qa->scq), "receiver not ready: the sender waits");
	post_recv(qb, kb, VA, 100);
	good(qa->scq, CQE_REQ, "SEND after RNR");
	good(qb->rcq, CQE_RESP_SEND, "receive");
	teardown();

	setup(false, &(struct link_arg){ .rnr_retry = 3, .min_rnr_nak = 12 });
	post_send(qa, ka, VA, 100);
	machine_run(640000 * 2);
	ok(!cq_poll(qa->scq), "the third RNR retry is still to come");
	bad(qa->scq, CQE_REQ_ERR, SYN_RNR_RETRY, "RNR retries exceeded");
	teardown();

	setup(true, &(struct link_arg){ .retry_count = 2, .ack_timeout = 10 });
	qp_modify(qb, MLX5_CMD_OP_2RST_QP, 0, 0, NULL);
	post_write(qa, VA, kb, ka, VA, 100);
	machine_run(4 * MSEC);
	ok(!cq_poll(qa->scq), "nobody answers: first timeouts");
	bad(qa->scq, CQE_REQ_ERR, SYN_TRANSPORT_RETRY, "retries exceeded");
	teardown();

	setup(true, &(struct link_arg){ .retry_count = 7, .ack_timeout = 10 });
	qp_modify(qb, MLX5_CMD_OP_2RST_QP, 0, 0, NULL);
	post_write(qa, VA, kb, ka, VA, 100);
	machine_run(5 * MSEC);
	ok(!qp_connect(qb, qa->qpn, 1, NULL), "the peer comes back in time");
	good(qa->scq, CQE_REQ, "WRITE after timeouts");
	teardown();
}

/* A peer whose device goes away is a timeout, and no use of freed memory */
static void lost_peer(void)
{
	setup(true, &(struct link_arg){ .retry_count = 1, .ack_timeout = 8 });
	dev_free(b);
	b = a;
	post_write(qa, VA, ka, ka, VA, 100);
	bad(qa->scq, CQE_REQ_ERR, SYN_TRANSPORT_RETRY, "device of peer is gone");
	teardown();
}

static void uc(void)
{
	struct qp_arg arg = { .type = MLX5_QPC_ST_UC };
	struct wqe w;

	setup(false, NULL);
	qa = qp_make(a, &arg);
	qb = qp_make(a, &arg);
	qp_connect(qa, qb->qpn, 1, NULL);
	post_write(qa, VA, kb, ka, VA, 100);
	good(qa->scq, CQE_REQ, "UC WRITE to nobody");
	ok(!same(0, 100), "nothing arrived");
	qp_connect(qb, qa->qpn, 1, NULL);
	post_write(qa, VA, kb, ka, VA, 100);
	good(qa->scq, CQE_REQ, "UC WRITE");
	ok(same(0, 100), "UC WRITE arrived");
	wqe_begin(&w, qa, WQE_SEND, SIGNALED, 0);
	wqe_post(&w);
	good(qa->scq, CQE_REQ, "UC SEND without a receive request is lost");
	teardown();
}

/* One call does not do everything: the rest is done by the timer */
static void budget(void)
{
	const u32 requests = 60, bytes = 3u << 20;
	u32 now = 0, all;
	u64 at;
	u32 key;

	setup(false, NULL);
	key = mr_make(a, 0, bytes, ALL_RIGHTS, &at);
	for (u32 i = 0; i < requests; i++) {
		struct wqe w;

		wqe_begin(&w, qa, WQE_RDMA_WRITE, SIGNALED, 0);
		wqe_remote(&w, 0, key);
		wqe_sge(&w, key, 0, bytes);
		wqe_queue(&w);
	}
	qp_ring(qa);
	while (cq_poll(qa->scq))
		now++;
	ok(now && now < requests, "%u of %u requests at once", now, requests);
	machine_run(1);
	for (all = now; cq_poll(qa->scq);)
		all++;
	ok(all == requests, "all requests soon after (%u)", all);
	teardown();
}

int main(void)
{
	data(false);
	data(true);
	wrap();
	errors();
	refused();
	pd_mismatch();
	flush();
	retries();
	lost_peer();
	uc();
	budget();
	return tap_done();
}
