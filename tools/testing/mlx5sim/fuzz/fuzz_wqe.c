// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzer of work requests, doorbells and what comes of them: RC traffic, UMR and
 * page faults on keys of all modes.
 */
#include "input.h"
#include "../model/qp.h"

#define STEPS_MAX	32
#define KEYS		6

static struct dev *d;
static struct fqp *qps[4];
static u32 keys[KEYS];

static void put_klm(u8 *at, u32 len, u32 key, u64 va)
{
	put_be32(at, len);
	put_be32(at + 4, key);
	put_be64(at + 8, va);
}

static void setup(void)
{
	const struct mlx5sim_config config = { .lid = 1 };
	struct qp_arg umr_qp = { .type = MLX5_QPC_ST_REG_UMR };
	struct mkey_arg k = {
		.mode = MLX5_MKC_ACCESS_MODE_MTT, .octwords = 8,
		.rights = ALL_RIGHTS, .len = 8 * PAGE, .log_page = 12,
	};
	u8 list[64] = { 0 };
	u64 at;

	d = dev_running(&config);
	qp_pair(d, d, &qps[0], &qps[1], &(struct link_arg){ .rnr_retry = 1 });
	qps[2] = qp_make(d, &umr_qp);
	qp_connect(qps[2], 0, 0, NULL);
	qps[3] = qp_make(d, &(struct qp_arg){ .type = MLX5_QPC_ST_UD });
	qp_connect(qps[3], 0, 0, NULL);
	keys[0] = mr_make(d, 0, 8 * PAGE, ALL_RIGHTS, &at);
	keys[1] = mkey_make(d, &k);
	keys[2] = d->pa_key;
	put_klm(list, 0x1000, keys[0], 0);
	put_klm(list + 16, 0x1000, keys[1], 0x1000);
	k.mode = MLX5_MKC_ACCESS_MODE_KLMS;
	k.entries = list;
	k.count = 4;
	keys[3] = mkey_make(d, &k);
	put_klm(list + 16, 0x1000, keys[3], 0x1000);
	k.mode = MLX5_MKC_ACCESS_MODE_KSM;
	keys[4] = mkey_make(d, &k);
	k = (struct mkey_arg){
		.mode = MLX5_MKC_ACCESS_MODE_MTT, .octwords = 8, .free = true,
	};
	keys[5] = mkey_make(d, &k);
}

/* A key that is there, or whatever the input says */
static u32 some_key(struct input *in)
{
	u8 which = take8(in);

	return which % 8 < KEYS ? keys[which % 8] : take32(in);
}

static u64 some_va(struct input *in)
{
	u32 low = take32(in);

	return low & 1 ? low % (8 * PAGE) : (u64)low << 20 | low;
}

static void request(struct input *in)
{
	static const u8 opcodes[] = {
		0x00, 0x01, 0x08, 0x09, 0x0a, 0x0b, 0x10, 0x11, 0x12, 0x1b,
		0x25, 0xff,
	};
	u8 shape = take8(in);
	struct fqp *qp = qps[shape & 3];
	struct av_arg av = {
		.lid = 1, .qpn = qp->qpn, .grh = shape & 4, .half = shape & 8,
	};
	struct wqe w;

	wqe_begin(&w, qp, opcodes[take8(in) % ARRAY_SIZE(opcodes)],
		  take8(in), some_key(in));
	if (qp == qps[3])
		wqe_av(&w, &av);
	else if (shape & 4)
		wqe_remote(&w, some_va(in), some_key(in));
	if (shape & 8)
		wqe_atomic(&w, take32(in), take32(in));
	for (u32 i = 0; i < (shape >> 4 & 3); i++)
		wqe_sge(&w, some_key(in), some_va(in), take32(in) % 0x6000);
	if (shape & 0x40) {
		/* UMR: 112 bytes of control and context, a list */
		take(in, w.raw + 16, 20);
		take(in, w.raw + 64, 64);
		w.bytes = 128;
		wqe_sge(&w, keys[2], MEM_BASE + PAGE, 0x1000);
	}
	if (shape & 0x80) {
		take(in, w.raw + 4, 32);
		w.bytes = take8(in) * 4 & 0x3f0;
	}
	wqe_queue(&w);
	if (take8(in) & 1) {
		u8 *ctrl = (u8 *)mem(qp->buf) + qp->sq_off +
			   ((qp->sq_pi - 1) & (BIT(qp->log_sq) - 1)) * 64;

		take(in, ctrl, 16);
	}
	qp_ring(qp);
}

static void faults(struct input *in)
{
	struct pf pf;
	u8 how = take8(in);

	if (!pf_poll(d, &pf))
		return;
	if (how & 2)
		pf.token ^= how;
	if (how & 4)
		pf.type ^= 1;
	pf_resume(d, &pf, how & 1);
}

static void step(struct input *in)
{
	u8 what = take8(in);

	switch (what % 8) {
	case 0:
		post_recv(qps[what & 0x80 ? 3 : 1], some_key(in), some_va(in),
			  take32(in) % 0x6000);
		break;
	case 1:
		faults(in);
		break;
	case 2:
		machine_run(take32(in) % 50000000);
		break;
	case 3:
		mlx5sim_bar_write(d->sim, take32(in) % (d->uar * PAGE + PAGE),
				  (u64)take32(in) << 32 | take32(in),
				  1u << what / 8 % 4);
		mlx5sim_bar_read(d->sim, take32(in), 1u << what / 8 % 4);
		break;
	case 4:
		qp_modify(qps[what / 8 % 4], what & 0x80 ? 0x507 : 0x50a, 0, 0,
			  NULL);
		break;
	case 5:
		qp_connect(qps[what / 8 % 4], qps[0]->qpn, 1, NULL);
		break;
	default:
		request(in);
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct input in = { data, size };

	setup();
	for (u32 i = 0; i < STEPS_MAX && in.left; i++)
		step(&in);
	machine_run(100000000);
	dev_free(d);
	machine_reset();
	return 0;
}
