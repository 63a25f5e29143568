// SPDX-License-Identifier: GPL-2.0
/* Page faults of each kind, their end, and what they leave untouched. */
#include "../../selftests/tap.h"
#include "../model/qp.h"
#include "fake.h"

#define VA		0x600000000000ull
#define PAGES		16u
#define SIZE		(PAGES * PAGE)
#define MSEC		1000000ull

static struct dev *d;
static struct fqp *qa, *qb, *uq;
static u32 key;			/* ODP: nothing is present */
static u32 plain;		/* all is present */
static u64 list, buf, other;

static void setup_caps(const char *caps)
{
	const struct mlx5sim_config config = {
		.lid = 1, .strict = true, .caps = caps,
	};
	struct qp_arg arg = { .type = MLX5_QPC_ST_REG_UMR };
	struct mkey_arg odp = {
		.mode = MLX5_MKC_ACCESS_MODE_MTT, .rights = ALL_RIGHTS,
		.start = VA, .len = SIZE, .log_page = 12,
		.octwords = PAGES / 2,
	};

	d = dev_running(&config);
	qp_pair(d, d, &qa, &qb, NULL);
	uq = qp_make(d, &arg);
	qp_connect(uq, 0, 0, NULL);
	key = mkey_make(d, &odp);
	plain = mr_make(d, VA, SIZE, ALL_RIGHTS, &other);
	list = mem_alloc(PAGE);
	buf = mem_alloc(SIZE);
	for (u32 i = 0; i < SIZE; i++)
		((u8 *)mem(buf))[i] = i * 5 + (i >> 7);
}

static void setup(void)
{
	setup_caps(NULL);
}

static void teardown(void)
{
	ok(!d->violation, "no rule broken (%s)", d->text);
	dev_free(d);
	machine_reset();
}

/* Make pages [first, first + 8) of the ODP key present, as @mode says, or not */
static void map(u32 first, u64 mode)
{
	struct umr_arg u = {
		.key = key, .flags = UMR_OFFSET | UMR_MUST_NOT_BE_FREE,
		.list = list, .octword = first / 2, .octwords = 4,
	};

	for (u32 i = 0; i < 8; i++)
		put_be64((u8 *)mem(list) + 8 * i,
			 mode ? (buf + (first + i) * PAGE) | mode : 0);
	if (umr(uq, &u))
		ok(false, "mapping of pages");
}

static int done(struct fqp *qp)
{
	u8 *cqe = wait_cqe(qp->scq, 50 * MSEC);

	return !cqe ? -1 : cqe_opcode(cqe) == CQE_REQ ? 0 : cqe_syndrome(cqe);
}

/* Local memory of the sender: the fault names the request */
static void requester(void)
{
	struct pf pf;

	setup();
	post_write(qa, VA, plain, key, VA + 0x800, 12 * PAGE);
	ok(pf_poll(d, &pf) && pf.subtype == 0 && pf.type == 1 &&
	   pf.wq == qa->qpn && pf.wqe_index == 0 && pf.committed == 0,
	   "WRITE from a missing page");
	ok(!cq_poll(qa->scq), "no completion yet");
	map(0, 3);
	ok(!pf_resume(d, &pf, false), "resumed");
	machine_run(1);
	ok(pf_poll(d, &pf) && pf.committed == 8 * PAGE - 0x800 && pf.type == 1,
	   "the next missing page, 0x%x bytes later", pf.committed);
	map(8, 3);
	ok(!pf_resume(d, &pf, false), "resumed");
	ok(!done(qa) && !memcmp(mem(buf + 0x800), mem(other), 12 * PAGE),
	   "all data has arrived");

	map(0, 0);
	post_read(qa, VA, plain, key, VA, 100);
	ok(pf_poll(d, &pf) && pf.subtype == 0 && pf.type == 3,
	   "READ to a missing page");
	map(0, 1);
	pf_resume(d, &pf, false);
	machine_run(1);
	ok(pf_poll(d, &pf) && pf.type == 3, "READ to a read-only page");
	map(0, 3);
	pf_resume(d, &pf, false);
	ok(!done(qa), "READ");
	ok(mlx5sim_stats(d->sim)->faults == 4 &&
	   mlx5sim_stats(d->sim)->resumes == 4, "four faults counted");
	teardown();
}

/* Remote memory: the fault names key and address */
static void responder(void)
{
	struct pf pf;

	setup();
	post_write(qa, VA + 7 * PAGE, key, plain, VA, 2 * PAGE);
	ok(pf_poll(d, &pf) && pf.subtype == 1 && pf.type == 6 &&
	   pf.rkey == key && pf.va == VA + 7 * PAGE && pf.length == 2 * PAGE &&
	   pf.committed == 0, "WRITE to a missing page");
	machine_run(100 * MSEC);
	ok(!cq_poll(qa->scq), "it waits as long as it takes");
	map(0, 3);
	pf_resume(d, &pf, false);
	machine_run(1);
	ok(pf_poll(d, &pf) && pf.committed == PAGE, "second page");
	map(8, 3);
	pf_resume(d, &pf, false);
	ok(!done(qa) && !memcmp(mem(buf + 7 * PAGE), mem(other), 2 * PAGE),
	   "data has arrived");
	map(0, 0);
	post_read(qa, VA, key, plain, VA, 64);
	ok(pf_poll(d, &pf) && pf.subtype == 1 && pf.type == 4,
	   "READ of a missing page");
	map(0, 1);
	pf_resume(d, &pf, false);
	ok(!done(qa), "a page for reading is enough");
	teardown();
}

static void atomics(void)
{
	struct wqe w;
	struct pf pf;

	setup();
	*(u64 *)mem(other) = 5;
	wqe_begin(&w, qa, WQE_ATOMIC_FA, SIGNALED, 0);
	wqe_remote(&w, VA, plain);
	wqe_atomic(&w, 3, 0);
	wqe_sge(&w, key, VA, 8);
	wqe_post(&w);
	ok(pf_poll(d, &pf) && pf.subtype == 0 && pf.type == 3,
	   "result of an atomic to a missing page");
	map(0, 3);
	pf_resume(d, &pf, false);
	ok(!done(qa) && *(u64 *)mem(buf) == 5 && *(u64 *)mem(other) == 8,
	   "the operation happened once");
	map(0, 1);
	*(u64 *)mem(buf + 8) = 100;
	wqe_begin(&w, qa, WQE_ATOMIC_FA, SIGNALED, 0);
	wqe_remote(&w, VA + 8, key);
	wqe_atomic(&w, 1, 0);
	wqe_sge(&w, plain, VA, 8);
	wqe_post(&w);
	ok(pf_poll(d, &pf) && pf.subtype == 1 && pf.type == 6,
	   "atomic on a read-only page is a fault for writing");
	map(0, 3);
	pf_resume(d, &pf, false);
	ok(!done(qa) && *(u64 *)mem(buf + 8) == 101 &&
	   *(u64 *)mem(other) == 100, "atomic");
	teardown();
}

static void receive(void)
{
	struct pf pf;
	u8 *cqe;

	setup();
	post_recv(qb, plain, VA, 64);
	post_send(qa, plain, VA, 16);
	done(qa);
	cq_poll(qb->rcq);
	post_recv(qb, key, VA + 7 * PAGE, 2 * PAGE);
	post_send(qa, plain, VA, 2 * PAGE);
	ok(pf_poll(d, &pf) && pf.subtype == 0 && pf.type == 2 &&
	   pf.wq == qb->qpn && pf.wqe_index == 1 && !pf.committed,
	   "receive to a missing page");
	map(0, 3);
	pf_resume(d, &pf, false);
	machine_run(1);
	ok(pf_poll(d, &pf) && pf.committed == PAGE, "second page");
	map(8, 3);
	pf_resume(d, &pf, false);
	cqe = wait_cqe(qb->rcq, MSEC);
	ok(cqe && cqe_opcode(cqe) == CQE_RESP_SEND &&
	   cqe_bytes(cqe) == 2 * PAGE && cqe_counter(cqe) == 1,
	   "received, one completion");
	ok(!memcmp(mem(buf + 7 * PAGE), mem(other), 2 * PAGE), "data");
	teardown();
}

/* A blocked side stops its own direction, and nothing else */
static void per_side(void)
{
	struct pf first, second;

	setup();
	post_write(qa, VA, plain, key, VA, 64);
	ok(pf_poll(d, &first), "requester of A waits");
	post_write(qb, VA + PAGE, plain, plain, VA, 64);
	ok(!done(qb), "B writes to A meanwhile");
	post_write(qb, VA + 8 * PAGE, key, plain, VA, 64);
	ok(pf_poll(d, &second) && second.token != first.token,
	   "responder of A waits as well, with a token of its own");
	map(8, 3);
	pf_resume(d, &second, false);
	ok(!done(qb), "the responder went on");
	ok(!cq_poll(qa->scq), "the requester still waits");
	map(0, 3);
	pf_resume(d, &first, false);
	ok(!done(qa), "and goes on");
	teardown();
}

static void with_error(void)
{
	struct pf pf;

	setup();
	post_write(qa, VA, plain, key, VA, 64);
	pf_poll(d, &pf);
	pf_resume(d, &pf, true);
	ok(done(qa) == SYN_LOCAL_PROT, "requester resumed with error");
	teardown();

	setup();
	post_write(qa, VA, key, plain, VA, 64);
	pf_poll(d, &pf);
	pf_resume(d, &pf, true);
	ok(done(qa) == SYN_REMOTE_ACCESS, "responder resumed with error");
	ok(qp_state(qb) == MLX5_QPC_STATE_ERR, "its QP is in error");
	teardown();

	setup();
	post_recv(qb, key, VA, 64);
	post_send(qa, plain, VA, 64);
	pf_poll(d, &pf);
	pf_resume(d, &pf, true);
	ok(done(qa) == SYN_REMOTE_OP, "receive resumed with error");
	ok(cqe_syndrome(wait_cqe(qb->rcq, MSEC)) == SYN_LOCAL_PROT,
	   "the receiver is told");
	teardown();
}

/* QPs end while their faults are pending: a resume afterwards is no mistake */
static void ends_early(void)
{
	struct pf pf;

	setup();
	post_write(qa, VA, plain, key, VA, 64);
	pf_poll(d, &pf);
	qp_modify(qa, MLX5_CMD_OP_2ERR_QP, 0, 0, NULL);
	ok(done(qa) == SYN_FLUSH, "flushed in spite of the fault");
	ok(!pf_resume(d, &pf, false), "resumed in error");
	teardown();

	setup();
	post_write(qa, VA, key, plain, VA, 64);
	pf_poll(d, &pf);
	ok(!qp_remove(qb), "destroyed with a fault");
	ok(!pf_resume(d, &pf, false), "resumed after destruction");
	machine_run(30 * MSEC);
	qp_modify(qa, MLX5_CMD_OP_2ERR_QP, 0, 0, NULL);
	ok(done(qa) == SYN_FLUSH, "its peer can be stopped");
	teardown();
}

/* The same page again and again is no livelock when data moves in between */
static void often(void)
{
	u32 wrong = 0;
	struct pf pf;

	setup();
	for (u32 i = 0; i < 1200; i++) {
		map(0, 0);
		post_write(qa, VA, key, plain, VA, 64);
		while (eq_poll(d, d->cmd_eq, true))
			;
		wrong += !pf_poll(d, &pf);
		map(0, 3);
		pf_resume(d, &pf, false);
		wrong += !!done(qa);
	}
	ok(!wrong, "1200 faults of one page (%u wrong)", wrong);
	teardown();
}

static void without(void)
{
	setup_caps("pg=0");
	post_write(qa, VA, plain, key, VA, 64);
	ok(done(qa) == SYN_LOCAL_PROT, "device without paging: an error");
	teardown();

	setup_caps("rc_odp_caps.write=0");
	post_write(qa, VA, key, plain, VA, 64);
	ok(done(qa) == SYN_REMOTE_ACCESS, "no paging for WRITE: an error");
	teardown();
}

/* An implicit key: a list of large pieces, the null key marks what is missing */
static void implicit(void)
{
	u8 klm[64] = { 0 };
	struct mkey_arg arg = {
		.mode = MLX5_MKC_ACCESS_MODE_KSM, .rights = ALL_RIGHTS,
		.length64 = true, .log_page = 30, .octwords = 4,
		.entries = klm, .count = 4,
	};
	struct umr_arg u = { .flags = UMR_OFFSET, .octwords = 4 };
	struct pf pf;
	u64 at;

	setup();
	for (u32 i = 0; i < 4; i++)
		put_be32(klm + 16 * i + 4, 0x200);
	u.key = mkey_make(d, &arg);
	post_write(qa, BIT_ULL(30) + 0x100, u.key, plain, VA, 64);
	ok(pf_poll(d, &pf) && pf.rkey == u.key &&
	   pf.va == BIT_ULL(30) + 0x100, "fault names the implicit key");
	at = mem_alloc(64);
	memcpy(mem(at), klm, 64);
	put_be32((u8 *)mem(at) + 16 + 4, plain);
	put_be64((u8 *)mem(at) + 16 + 8, VA);
	u.list = at;
	ok(!umr(uq, &u), "its list gets a key");
	pf_resume(d, &pf, false);
	ok(!done(qa), "WRITE through both keys");
	teardown();
}

int main(void)
{
	requester();
	responder();
	atomics();
	receive();
	per_side();
	with_error();
	ends_early();
	often();
	without();
	implicit();
	return tap_done();
}
