// SPDX-License-Identifier: GPL-2.0
/*
 * Memory windows of both types on a dma-buf MR: they reach what they are bound to and
 * nothing else, follow the buffer as the MR does, and die with its memory.
 */
#include <errno.h>
#include <string.h>

#include "mlx5_rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE		(256 * KIB)
#define IOVA		0x4400000100ull
#define OFFSET		0x100ull
#define START		(64 * KIB)	/* of the window, from the MR's start */
#define LENGTH		(16 * KIB)
#define MW_ACCESS	(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | \
			 IBV_ACCESS_REMOTE_ATOMIC)

static struct rig rig;

struct window {
	const char *name;
	enum ibv_mw_type type;
	struct ibv_mw *mw;
	struct mr key;			/* for whoever wants an rkey */
};

/*
 * libmlx5 binds windows to MRs of host memory only, and of those it takes the lkey:
 * so it gets one that has ours.
 */
static int bind_to(struct window *w, const struct mr *mr, uint64_t addr, uint64_t length,
		   unsigned int access)
{
	struct ibv_mw_bind_info info = {
		.addr = addr, .length = length, .mw_access_flags = access,
	};
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_mr *host = ibv_reg_mr(rig.pair.b.pd, rig.host, RIG_HOST_SIZE,
					 RIG_ACCESS | IBV_ACCESS_MW_BIND);
	uint32_t lkey = host ? host->lkey : 0;
	struct ibv_wc wc;
	int ret;

	if (!host)
		bail("ibv_reg_mr: %s", strerror(errno));
	host->lkey = mr->lkey;
	info.mr = host;
	bind.bind_info = info;
	w->key.rkey = ibv_inc_rkey(w->mw->rkey);
	wr.bind_mw.mw = w->mw;
	wr.bind_mw.rkey = w->key.rkey;
	wr.bind_mw.bind_info = info;
	ret = w->type == IBV_MW_TYPE_1 ? ibv_bind_mw(rig.pair.b.qp, w->mw, &bind) :
					 ibv_post_send(rig.pair.b.qp, &wr, &bad);
	if (ret)
		bail("%s: bind: %s", w->name, strerror(ret));
	if (w->type == IBV_MW_TYPE_1)
		w->key.rkey = w->mw->rkey;
	ret = rc_wait(&rig.pair.b, &wc, RC_PATIENCE_MS);
	host->lkey = lkey;
	ibv_dereg_mr(host);
	if (ret && rc_pair_reconnect(&rig.pair))
		bail("%s: %s", rc_failed_call(), strerror(errno));
	return ret;
}

static void dead(const struct window *w, const char *why)
{
	uint8_t byte;

	is(rig_write(&rig, &w->key, IOVA + START, "x", 1), IBV_WC_REM_ACCESS_ERR,
	   "%s, %s: no WRITE", w->name, why);
	is(rig_read(&rig, &w->key, IOVA + START, &byte, 1), IBV_WC_REM_ACCESS_ERR,
	   "%s, %s: no READ", w->name, why);
}

/* The first four kinds of transfers are those that need an rkey. */
static void reaches(const struct window *w, struct dmabuf *buf, const char *when)
{
	struct spot spot = {
		&rig, &w->key, IOVA + START, buf, OFFSET + START, LENGTH,
	};

	for (size_t i = 0; i < 4; i++)
		ok(transfers[i].run(&spot), "%s, %s: %s", w->name, when, transfers[i].name);
}

static void borders(const struct window *w)
{
	uint8_t byte;

	is(rig_write(&rig, &w->key, IOVA + START - 1, "x", 1), IBV_WC_REM_ACCESS_ERR,
	   "%s: the byte before is the MR's, not the window's", w->name);
	is(rig_read(&rig, &w->key, IOVA + START + LENGTH, &byte, 1), IBV_WC_REM_ACCESS_ERR,
	   "%s: the byte behind, too", w->name);
}

/* The first access after a move comes through the window. */
static void moves(const struct window *w, struct dmabuf *buf)
{
	static const uint32_t places[] = { VRAMSIM_PLACEMENT_SYSTEM, VRAMSIM_PLACEMENT_VRAM };

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		struct place old = place_of(buf);

		is(sim_move(buf, places[i], VRAMSIM_MOVE_SHUFFLE, 0),
		   rig.traits.follows ? 0 : EBUSY, "%s: move", w->name);
		ok(!rig.traits.follows || place_unmapped(&old),
		   "%s: no key maps the old place", w->name);
		place_free(&old);
		reaches(w, buf, "moved");
	}
}

static void test_type(const char *name, enum ibv_mw_type type)
{
	struct window w = { .name = name, .type = type };
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct mr mr;

	is(rig_reg(&rig, dmabuf_fd(buf), OFFSET, SIZE - OFFSET, IOVA, &mr), 0, "%s: register",
	   name);
	w.mw = ibv_alloc_mw(rig.pair.b.pd, type);
	if (!w.mw)
		bail("ibv_alloc_mw: %s", strerror(errno));
	is(bind_to(&w, &mr, IOVA + START, LENGTH, MW_ACCESS), 0, "%s: bind", name);
	reaches(&w, buf, "bound");
	borders(&w);
	moves(&w, buf);
	if (type == IBV_MW_TYPE_1) {
		is(bind_to(&w, &mr, IOVA + START, LENGTH, IBV_ACCESS_REMOTE_READ), 0,
		   "%s: bind anew, to read", name);
		is(rig_write(&rig, &w.key, IOVA + START, "x", 1), IBV_WC_REM_ACCESS_ERR,
		   "%s: no WRITE then", name);
		is(bind_to(&w, &mr, IOVA + START, LENGTH, MW_ACCESS), 0, "%s: and for all", name);
		reaches(&w, buf, "bound anew");
	}

	is(sim_revoke(buf), 0, "%s: revoke", name);
	dead(&w, "revoked");
	is(ibv_dealloc_mw(w.mw), 0, "%s: free the window", name);
	dead(&w, "freed");
	is(mr_dereg(&mr), 0, "%s: deregister", name);
	dmabuf_free(buf);
}

/* Beyond the MR, or of an MR that is gone, there is nothing to bind to. */
static void test_wrong(void)
{
	struct window w = { .name = "wrong", .type = IBV_MW_TYPE_1 };
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct mr mr;

	is(rig_reg(&rig, dmabuf_fd(buf), OFFSET, SIZE - OFFSET, IOVA, &mr), 0, "wrong: register");
	w.mw = ibv_alloc_mw(rig.pair.b.pd, IBV_MW_TYPE_1);
	if (!w.mw)
		bail("ibv_alloc_mw: %s", strerror(errno));
	ok(bind_to(&w, &mr, IOVA - 4096, LENGTH, MW_ACCESS) ||
	   rig_write(&rig, &w.key, IOVA - 4096, "x", 1) == IBV_WC_REM_ACCESS_ERR,
	   "wrong: nothing before the MR is reached");
	is(mr_dereg(&mr), 0, "wrong: deregister");
	ok(bind_to(&w, &mr, IOVA + START, LENGTH, MW_ACCESS) ||
	   rig_write(&rig, &w.key, IOVA + START, "x", 1) == IBV_WC_REM_ACCESS_ERR,
	   "wrong: nothing of an MR that is gone is reached");
	is(ibv_dealloc_mw(w.mw), 0, "wrong: free the window");
	dmabuf_free(buf);
}

int main(void)
{
	struct counters start;

	mlx5_rig_up(&rig);
	counters_get(&start);
	test_type("type 1", IBV_MW_TYPE_1);
	test_type("type 2", IBV_MW_TYPE_2);
	test_wrong();
	ok(counters_back(&start, 2000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
