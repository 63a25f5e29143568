// SPDX-License-Identifier: GPL-2.0
/* Memory keys: all translations, UMR, memory windows, invalidation. */
#include "../../selftests/tap.h"
#include "../model/qp.h"
#include "fake.h"

#define VA		0x500000000000ull

static struct dev *d;
static struct fqp *qa, *qb, *uq;
static const struct mlx5sim_config config = { .lid = 1, .strict = true };

static void setup(void)
{
	struct qp_arg arg = { .type = MLX5_QPC_ST_REG_UMR };

	d = dev_running(&config);
	qp_pair(d, d, &qa, &qb, NULL);
	uq = qp_make(d, &arg);
	qp_connect(uq, 0, 0, NULL);
}

static void teardown(void)
{
	ok(!d->violation, "no rule broken (%s)", d->text);
	dev_free(d);
	machine_reset();
}

/* WRITE through the PA key to a remote key: syndrome, -1 if no CQE */
static int write_to(u32 rkey, u64 va, u64 from, u32 len)
{
	u8 *cqe;

	post_write(qa, va, rkey, d->pa_key, from, len);
	cqe = wait_cqe(qa->scq, 1000);
	return !cqe ? -1 : cqe_opcode(cqe) == CQE_REQ ? 0 : cqe_syndrome(cqe);
}

static void fill(u64 at, u32 len, u8 seed)
{
	for (u32 i = 0; i < len; i++)
		((u8 *)mem(at))[i] = seed + i * 3;
}

/* A start in the middle of a page, pages in any order */
static void mtt(void)
{
	u64 buf, from;
	u8 list[32] = { 0 };
	struct mkey_arg arg = {
		.mode = MLX5_MKC_ACCESS_MODE_MTT, .rights = ALL_RIGHTS,
		.start = VA + 0xe00, .len = 0x2100, .log_page = 12,
		.octwords = 2, .entries = list, .count = 2,
	};
	u32 key;

	setup();
	buf = mem_alloc(4 * PAGE);
	from = mem_alloc(4 * PAGE);
	put_be64(list, (buf + 2 * PAGE) | 3);
	put_be64(list + 8, buf | 3);
	put_be64(list + 16, (buf + PAGE) | 3);
	key = mkey_make(d, &arg);
	fill(from, 0x2100, 1);
	ok(!write_to(key, VA + 0xe00, from, 0x2100), "WRITE of all");
	ok(!memcmp(mem(buf + 2 * PAGE + 0xe00), mem(from), 0x200) &&
	   !memcmp(mem(buf), mem(from + 0x200), PAGE) &&
	   !memcmp(mem(buf + PAGE), mem(from + 0x1200), 0xf00),
	   "three pages, in the order of the table");
	ok(!mkey_remove(d, key), "destroyed");
	teardown();
}

static void put_klm(u8 *at, u32 len, u32 key, u64 va)
{
	put_be32(at, len);
	put_be32(at + 4, key);
	put_be64(at + 8, va);
}

static void klm(void)
{
	u8 list[64] = { 0 };
	struct mkey_arg arg = {
		.mode = MLX5_MKC_ACCESS_MODE_KLMS, .rights = ALL_RIGHTS,
		.start = VA, .len = 0x3000, .octwords = 4, .entries = list,
		.count = 4,
	};
	u64 m1, m2, from;
	u32 k1, k2, key;

	setup();
	k1 = mr_make(d, 0x10000, 0x5000, ALL_RIGHTS, &m1);
	k2 = mr_make(d, 0x77777, 0x5000, ALL_RIGHTS, &m2);
	from = mem_alloc(0x3000);
	fill(from, 0x3000, 9);
	put_klm(list, 0x1001, k1, 0x10100);
	put_klm(list + 16, 0x0fff, k2, 0x77777);
	put_klm(list + 32, 0x1000, k1, 0x12000);
	key = mkey_make(d, &arg);
	ok(!write_to(key, VA, from, 0x3000), "WRITE through a KLM list");
	ok(!memcmp(mem(m1 + 0x100), mem(from), 0x1001) &&
	   !memcmp(mem(m2), mem(from + 0x1001), 0xfff) &&
	   !memcmp(mem(m1 + 0x2000), mem(from + 0x2000), 0x1000),
	   "pieces of unequal length");
	put_klm(list + 32, 0x1000, key, 0);
	arg.start = VA + 0x100000;
	key = mkey_make(d, &arg);
	ok(write_to(key, VA + 0x100000, from, 0x2001) == SYN_REMOTE_ACCESS,
	   "a piece outside of its key");
	teardown();
}

/* Two pieces that are gone round three times, and a plain one behind them */
static void interleaved(void)
{
	u8 list[64] = { 0 };
	struct mkey_arg arg = {
		.mode = MLX5_MKC_ACCESS_MODE_KLMS, .rights = ALL_RIGHTS,
		.start = VA, .len = 3 * 10 + 16, .octwords = 4,
		.entries = list, .count = 4,
	};
	struct mlx5sim_xlt xlt[4];
	u64 m1, m2, from;
	bool good = true;
	u32 k1, k2, key;
	u8 *src;

	setup();
	k1 = mr_make(d, 0x10000, PAGE, ALL_RIGHTS, &m1);
	k2 = mr_make(d, 0x20000, PAGE, ALL_RIGHTS, &m2);
	from = mem_alloc(PAGE);
	src = mem(from);
	fill(from, PAGE, 11);
	put_klm(list, 10, KLM_REPEAT, 3ull << 32 | 2);
	put_klm(list + 16, 100 << 16 | 7, k1, 0x10020);
	put_klm(list + 32, 5 << 16 | 3, k2, 0x20001);
	put_klm(list + 48, 16, k1, 0x10800);
	key = mkey_make(d, &arg);
	ok(!write_to(key, VA, from, 46), "WRITE to interleaved memory");
	for (u32 i = 0; i < 3; i++)
		good = good &&
		       !memcmp(mem(m1 + 0x20 + i * 100), src + 10 * i, 7) &&
		       !memcmp(mem(m2 + 1 + i * 5), src + 10 * i + 7, 3);
	ok(good, "each piece a stride further on in each round");
	ok(!((u8 *)mem(m1))[0x27] && !((u8 *)mem(m2))[4],
	   "nothing between them");
	ok(!memcmp(mem(m1 + 0x800), src + 30, 16), "the piece behind");

	memset(mem(m2), 0, 64);
	ok(!write_to(key, VA + 18, from, 6) &&
	   !memcmp(mem(m2 + 1 + 5 + 1), src, 2) &&
	   !memcmp(mem(m1 + 0x20 + 200), src + 2, 4),
	   "WRITE that begins in the second round and ends in the third");
	ok(mlx5sim_key_xlt(d->sim, key, xlt, 4) == 3 && xlt[0].index == 1 &&
	   xlt[0].key == k1 && xlt[0].len == 7 && xlt[1].len == 3 &&
	   xlt[2].addr == 0x10800 && xlt[2].len == 16,
	   "the block itself is no entry of the list");

	put_klm(list, 11, KLM_REPEAT, 3ull << 32 | 2);
	ok(write_to(mkey_make(d, &arg), VA, from, 8) == SYN_REMOTE_ACCESS,
	   "a round that is not as long as it says");
	qp_pair(d, d, &qa, &qb, NULL);
	put_klm(list, 7 + 3 + 16, KLM_REPEAT, 3ull << 32 | 4);
	ok(write_to(mkey_make(d, &arg), VA, from, 8) == SYN_REMOTE_ACCESS,
	   "a block that ends behind the list");
	qp_pair(d, d, &qa, &qb, NULL);
	put_klm(list, 0, KLM_REPEAT, 3ull << 32);
	ok(write_to(mkey_make(d, &arg), VA, from, 8) == SYN_REMOTE_ACCESS,
	   "a block of nothing");
	teardown();
}

static void ksm(void)
{
	u8 list[64] = { 0 };
	struct mkey_arg arg = {
		.mode = MLX5_MKC_ACCESS_MODE_KSM, .rights = ALL_RIGHTS,
		.start = 0, .length64 = true, .log_page = 14, .octwords = 4,
		.entries = list, .count = 4,
	};
	u64 m1, m2, from;
	u32 key;

	setup();
	put_klm(list, 0, mr_make(d, 0, 0x4000, ALL_RIGHTS, &m1), 0);
	put_klm(list + 16, 0, mr_make(d, 0x1000, 0x4000, ALL_RIGHTS, &m2),
		0x1000);
	put_klm(list + 32, 0, 0x200, 0);
	key = mkey_make(d, &arg);
	from = mem_alloc(0x2000);
	fill(from, 0x2000, 77);
	ok(!write_to(key, 0x3000, from, 0x2000), "WRITE across KSM entries");
	ok(!memcmp(mem(m1 + 0x3000), mem(from), 0x1000) &&
	   !memcmp(mem(m2), mem(from + 0x1000), 0x1000), "pieces of 16 KiB");
	post_read(qa, 0, d->pa_key, 0x200, 0, 64);
	ok(wait_cqe(qa->scq, 1000), "the null key takes everything");
	teardown();
}

static void loop_of_keys(void)
{
	u8 list[64] = { 0 };
	struct mkey_arg arg = {
		.mode = MLX5_MKC_ACCESS_MODE_KLMS, .rights = ALL_RIGHTS,
		.start = 0, .len = 0x1000, .octwords = 4, .entries = list,
		.count = 4,
	};
	struct umr_arg u = { 0 };
	u64 at;

	setup();
	u.key = mkey_make(d, &arg);
	at = mem_alloc(64);
	put_klm(mem(at), 0x1000, u.key, 0);
	u.flags = UMR_OFFSET;
	u.list = at;
	u.octwords = 4;
	ok(!umr(uq, &u), "a key that leads to itself");
	ok(write_to(u.key, 0, at, 64) == SYN_REMOTE_ACCESS, "ends in an error");
	teardown();
}

/* As a driver's cache does: created free, enabled, updated, freed, enabled */
static void umr_life(void)
{
	struct mkey_arg arg = {
		.mode = MLX5_MKC_ACCESS_MODE_MTT, .octwords = 8, .free = true,
	};
	struct umr_arg u = { 0 };
	struct mlx5sim_xlt xlt[16];
	u64 buf, from, list;
	u8 out[ifc_bytes(query_mkey_out) + 96];
	const u8 *mkc = ifc_at(query_mkey_out, out, memory_key_mkey_entry);

	setup();
	buf = mem_alloc(16 * PAGE);
	from = mem_alloc(16 * PAGE);
	list = mem_alloc(PAGE);
	fill(from, 16 * PAGE, 5);
	u.key = mkey_make(d, &arg);
	ok(mlx5sim_key_xlt(d->sim, u.key, xlt, 16) == 0, "free key, no entry");
	ok(write_to(u.key, VA, from, 64) == SYN_REMOTE_ACCESS,
	   "a free key is none");
	qp_pair(d, d, &qa, &qb, NULL);

	for (u32 i = 0; i < 16; i++)
		put_be64((u8 *)mem(list) + 8 * i, (buf + i * PAGE) | 3);
	umr_mkc(&u, d, ALL_RIGHTS, VA, 16 * PAGE, 12);
	u.flags = UMR_OFFSET | UMR_MUST_BE_FREE;
	u.mask = UMR_MASK_ENABLE;
	u.list = list;
	u.octwords = 8;
	ok(!umr(uq, &u), "enabled");
	ok(!write_to(u.key, VA, from, 16 * PAGE) &&
	   !memcmp(mem(buf), mem(from), 16 * PAGE), "WRITE through it");
	ok(mlx5sim_key_xlt(d->sim, u.key, xlt, 16) == 16 &&
	   xlt[3].addr == buf + 3 * PAGE && xlt[3].readable &&
	   xlt[3].writable && xlt[3].len == PAGE, "16 entries");
	dev_simple(d, MLX5_CMD_OP_QUERY_MKEY, 0, u.key >> 8, out, sizeof(out));
	ok(ifc_get(mkc, mkc, len) == 16 * PAGE && !ifc_get(mkc, mkc, free) &&
	   get_be64(ifc_at(query_mkey_out, out, bsf0_klm0_pas_mtt0_1)) ==
	   (buf | 3), "QUERY_MKEY tells context and table");

	memset(mem(list), 0, 64);
	u.flags = UMR_OFFSET | UMR_MUST_NOT_BE_FREE;
	u.mask = 0;
	u.octword = 4;
	u.octwords = 4;
	ok(!umr(uq, &u), "upper half zapped");
	ok(mlx5sim_key_xlt(d->sim, u.key, xlt, 16) == 8, "8 entries left");

	umr_mkc(&u, d, 0, 0, 0, 0);
	ifc_set(mkc, u.mkc, free, 1);
	u.flags = UMR_INLINE;
	u.mask = UMR_MASK_FREE | UMR_MASK_PD;
	u.octword = 0;
	u.octwords = 0;
	ok(!umr(uq, &u), "freed");
	ok(!mlx5sim_maps(d->sim, buf, PAGE, NULL), "maps nothing any more");

	/* Of these 64 KiB, the 32 that are aligned */
	buf = round_up_to(buf, 8 * PAGE);
	for (u32 i = 0; i < 8; i++)
		put_be64((u8 *)mem(list) + 8 * i, buf | 3);
	umr_mkc(&u, d, LR | RW, VA, 0x100, 15);
	u.mkc[7] = 0x43;
	u.flags = UMR_OFFSET | UMR_MUST_BE_FREE;
	u.mask = UMR_MASK_ENABLE;
	u.octwords = 4;
	u.list = list;
	ok(!umr(uq, &u), "enabled again, pages of 32 KiB, another variant");
	ok(!write_to(u.key ^ 1, VA, from, 0x100) &&
	   !memcmp(mem(buf), mem(from), 0x100),
	   "WRITE through the new variant");
	ok(write_to(u.key, VA, from, 0x100) == SYN_REMOTE_ACCESS,
	   "the old one is dead");
	teardown();
}

/* A memory window: bound by the user's own queue, over a key, type 1 and 2 */
static void windows(bool type2)
{
	struct mkey_arg arg = {
		.mode = MLX5_MKC_ACCESS_MODE_KLMS, .octwords = 4, .free = true,
		.rights = LR, .rinval = type2,
	};
	struct umr_arg u = { 0 };
	u64 at, from, list;
	struct wqe w;
	u32 key, window;

	setup();
	key = mr_make(d, VA, 0x4000, LR | LW, &at);
	window = mkey_make(d, &arg);
	from = mem_alloc(PAGE);
	list = mem_alloc(PAGE);
	fill(from, PAGE, 3);
	put_klm(mem(list), 0x1000, key, VA + 0x800);
	u.key = window;
	umr_mkc(&u, d, RW, VA + 0x800, 0x1000, 0);
	u.mkc[7] = window + 1;
	if (type2)
		ifc_set(mkc, u.mkc, qpn, qb->qpn);
	u.flags = UMR_OFFSET | UMR_INLINE | (type2 ? UMR_MUST_BE_FREE : 0);
	u.mask = UMR_MASK_FREE | UMR_MASK_KEY | UMR_MASK_LEN | UMR_MASK_START |
		 (0xfull << 18) | (type2 ? UMR_MASK_QPN : 0);
	u.octwords = 4;
	u.list = list;
	ok(!umr(qb, &u), "type %u: bound", 1 + type2);
	window++;
	ok(!write_to(window, VA + 0x800, from, 0x1000) &&
	   !memcmp(mem(at + 0x800), mem(from), 0x1000), "WRITE through it");
	if (type2) {
		wqe_begin(&w, qa, WQE_SEND_INVAL, SIGNALED, window);
		post_recv(qb, key, VA, 64);
		wqe_post(&w);
		ok(wait_cqe(qa->scq, 1000), "SEND with invalidate");
		ok(cqe_opcode(wait_cqe(qb->rcq, 1000)) == CQE_RESP_SEND_INV,
		   "receiver is told");
	} else {
		u.key = window;
		ifc_set(mkc, u.mkc, free, 1);
		u.mask = UMR_MASK_FREE;
		u.octwords = 0;
		ok(!umr(qb, &u), "unbound");
	}
	ok(write_to(window, VA + 0x800, from, 64) == SYN_REMOTE_ACCESS,
	   "closed");
	teardown();
}

/* What a user's queue does wrong is an error completion, no broken rule */
static void user_mistakes(void)
{
	struct mkey_arg arg = {
		.mode = MLX5_MKC_ACCESS_MODE_KLMS, .octwords = 4, .free = true,
		.rights = LR,
	};
	struct umr_arg u = { 0 };
	struct wqe w;

	setup();
	u.key = mkey_make(d, &arg) + 7;
	u.flags = UMR_INLINE;
	u.mask = UMR_MASK_LEN;
	ok(umr(qb, &u) == SYN_MW_BIND, "bind with a stale variant");
	qp_pair(d, d, &qa, &qb, NULL);
	u.key = 0xabcd00;
	ok(umr(qb, &u) == SYN_MW_BIND, "bind of a window that is not there");
	qp_pair(d, d, &qa, &qb, NULL);
	wqe_begin(&w, qa, WQE_LOCAL_INV, SIGNALED, 0x12345600);
	wqe_post(&w);
	ok(cqe_syndrome(wait_cqe(qa->scq, 1000)) == SYN_MW_BIND,
	   "invalidation of nothing");
	teardown();
}

static void bound_elsewhere(void)
{
	u64 buf;
	u8 list[16] = { 0 };
	struct mkey_arg arg = {
		.mode = MLX5_MKC_ACCESS_MODE_MTT, .rights = ALL_RIGHTS,
		.len = PAGE, .log_page = 12, .octwords = 1, .entries = list,
		.count = 1,
	};
	u32 key;

	setup();
	buf = mem_alloc(PAGE);
	put_be64(list, buf | 3);
	arg.qpn = qb->qpn;
	key = mkey_make(d, &arg);
	ok(!write_to(key, 0, buf, 64), "key bound to the QP that is reached");
	arg.qpn = qa->qpn;
	key = mkey_make(d, &arg);
	ok(write_to(key, 0, buf, 64) == SYN_REMOTE_ACCESS,
	   "key bound to another QP");
	teardown();
}

int main(void)
{
	mtt();
	klm();
	interleaved();
	ksm();
	loop_of_keys();
	umr_life();
	windows(false);
	windows(true);
	user_mistakes();
	bound_elsewhere();
	return tap_done();
}
