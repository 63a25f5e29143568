// SPDX-License-Identifier: GPL-2.0
/*
 * K25: rereg of a dma-buf MR.  rxe has no rereg: every kind gives EOPNOTSUPP, the
 * MR stays what it was, and is freed once.
 */
#include <errno.h>
#include <string.h>

#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE	(64 * KIB)
#define IOVA	0x600000000ull

static struct rig rig;

static void test_raw(struct dmabuf *buf)
{
	static uint8_t host[SIZE];
	static const struct {
		const char *name;
		uint32_t flags;
	} kinds[] = {
		{ "ACCESS", IBV_REREG_MR_CHANGE_ACCESS },
		{ "PD", IBV_REREG_MR_CHANGE_PD },
		{ "TRANSLATION", IBV_REREG_MR_CHANGE_TRANSLATION },
		{ "everything", IBV_REREG_MR_CHANGE_ACCESS | IBV_REREG_MR_CHANGE_PD |
				IBV_REREG_MR_CHANGE_TRANSLATION },
	};
	struct mr mr;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (!is(rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr), 0, "register for %s",
			kinds[i].name))
			continue;
		is(mr_rereg(&mr, kinds[i].flags, rig.pair.a.pd, (uintptr_t)host, SIZE,
			    (uintptr_t)host, IBV_ACCESS_LOCAL_WRITE), EOPNOTSUPP,
		   "rereg of %s: EOPNOTSUPP", kinds[i].name);
		ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE),
		   "rereg of %s: access, PD and translation are the old ones", kinds[i].name);
		is(mr_dereg(&mr), 0, "rereg of %s: deregister", kinds[i].name);
		is(mr_dereg(&mr), ENOENT, "rereg of %s: once", kinds[i].name);
	}
}

static void test_libibverbs(struct dmabuf *buf)
{
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(rig.pair.b.pd, 0, SIZE, IOVA, dmabuf_fd(buf),
					      RIG_ACCESS);
	struct mr view = { 0 };

	if (!mr && errno == EOPNOTSUPP) {
		skip("ibv_rereg_mr()", "this rdma-core's provider has no reg_dmabuf_mr");
		return;
	}
	if (!ok(mr, "ibv_reg_dmabuf_mr()"))
		return;
	view.rkey = mr->rkey;
	ok(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE) != 0,
	   "ibv_rereg_mr() refuses");
	ok(rig_works(&rig, &view, IOVA, buf, 0, SIZE), "the MR is as before");
	is(ibv_dereg_mr(mr), 0, "ibv_dereg_mr()");
}

int main(void)
{
	struct counters start;
	struct dmabuf *buf;

	rig_up(&rig);
	counters_get(&start);
	buf = rig_vram(SIZE, NULL);
	test_raw(buf);
	test_libibverbs(buf);
	dmabuf_free(buf);
	ok(counters_back(&start, 1000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
