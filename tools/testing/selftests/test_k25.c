// SPDX-License-Identifier: GPL-2.0
/*
 * K25: rereg of a dma-buf MR.  Rights and PD change where the device can change them,
 * another translation is refused, and whatever happens the MR is whole and is freed
 * once.
 */
#include <errno.h>
#include <string.h>

#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE		(64 * KIB)
#define IOVA		0x600000000ull
#define ROUNDS		50
#define READ_ONLY	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)

#define ACCESS		IBV_REREG_MR_CHANGE_ACCESS
#define PD		IBV_REREG_MR_CHANGE_PD
#define TRANSLATION	IBV_REREG_MR_CHANGE_TRANSLATION

static struct rig rig;

static struct mr registered(struct dmabuf *buf)
{
	struct mr mr;
	int err = rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr);

	if (err)
		bail("register: %s", strerror(err));
	return mr;
}

static void gone_once(struct mr *mr, const char *name)
{
	is(mr_dereg(mr), 0, "%s: deregister", name);
	is(mr_dereg(mr), ENOENT, "%s: once", name);
}

/* The MR of @buf stays what it was. */
static void test_refused(struct dmabuf *buf, const char *name, uint32_t flags)
{
	static uint8_t host[SIZE];
	struct mr mr = registered(buf);

	is(mr_rereg(&mr, flags, rig.pair.a.pd, (uintptr_t)host, SIZE, (uintptr_t)host,
		    IBV_ACCESS_LOCAL_WRITE), EOPNOTSUPP, "rereg of %s: EOPNOTSUPP", name);
	ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE),
	   "rereg of %s: access, PD and translation are the old ones", name);
	gone_once(&mr, name);
}

static int change(struct mr *mr, uint32_t flags, struct ibv_pd *pd, uint32_t access)
{
	return mr_rereg(mr, flags, pd, 0, 0, 0, access);
}

/* The buffer may be elsewhere by the time that the new rights matter. */
static void maybe_move(struct dmabuf *buf, bool move)
{
	if (move)
		is(sim_move(buf, VRAMSIM_PLACEMENT_VRAM, VRAMSIM_MOVE_SHUFFLE, 0), 0, "it moves");
}

static void test_access(struct dmabuf *buf, bool move)
{
	struct mr mr = registered(buf);
	uint8_t byte;

	is(change(&mr, ACCESS, NULL, READ_ONLY), 0, "ACCESS: read only");
	maybe_move(buf, move);
	is(rig_read(&rig, &mr, IOVA, &byte, 1), IBV_WC_SUCCESS, "ACCESS: READ");
	is(rig_write(&rig, &mr, IOVA, "x", 1), IBV_WC_REM_ACCESS_ERR, "ACCESS: no WRITE");
	maybe_move(buf, move);
	is(change(&mr, ACCESS, NULL, RIG_ACCESS), 0, "ACCESS: all rights");
	ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE), "ACCESS: READ and WRITE");
	is(change(&mr, ACCESS, NULL, IBV_ACCESS_REMOTE_WRITE), EINVAL,
	   "ACCESS: REMOTE_WRITE without LOCAL_WRITE: EINVAL");
	ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE), "ACCESS: the rights are the old ones");
	gone_once(&mr, "ACCESS");
}

/* Side b's queue pair reaches an MR of its own PD only, and side a's lkeys are of a's. */
static void test_pd(struct dmabuf *buf, bool move)
{
	struct ibv_pd *passing = ibv_alloc_pd(rig.ctx), none = { .handle = 0xfffff };
	struct mr mr = registered(buf);
	struct ibv_sge sge = { .addr = IOVA, .length = 64 };

	is(change(&mr, PD, rig.pair.a.pd, 0), 0, "PD: side a's");
	maybe_move(buf, move);
	is(rig_write(&rig, &mr, IOVA, "x", 1), IBV_WC_REM_ACCESS_ERR,
	   "PD: side b cannot reach it");
	ok(!move || !sim_gem(buf).mapped, "PD: nor make it a page fault");
	sge.lkey = mr.lkey;
	is(rc_do(&rig.pair.a, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)rig.host, rig.host_mr->rkey),
	   IBV_WC_REM_ACCESS_ERR, "PD: host memory of side a is not side b's either");
	if (rc_pair_reconnect(&rig.pair))
		bail("%s: %s", rc_failed_call(), strerror(errno));

	is(change(&mr, PD, passing, 0), 0, "PD: a third one");
	is(ibv_dealloc_pd(passing), EBUSY, "PD: it counts the MR");
	ok(change(&mr, PD, &none, 0), "PD: none that is not there");
	is(change(&mr, PD | ACCESS, rig.pair.b.pd, READ_ONLY), 0, "PD, ACCESS: side b's again");
	is(ibv_dealloc_pd(passing), 0, "PD: the third one is free");
	is(rig_write(&rig, &mr, IOVA, "x", 1), IBV_WC_REM_ACCESS_ERR, "PD, ACCESS: no WRITE");
	is(change(&mr, ACCESS, NULL, RIG_ACCESS), 0, "ACCESS: all rights");
	ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE), "PD: the MR works");
	gone_once(&mr, "PD");
}

static void test_revoked(void)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct mr mr = registered(buf);

	is(sim_revoke(buf), 0, "revoked: revoke");
	is(rig_write(&rig, &mr, IOVA, "x", 1), IBV_WC_REM_ACCESS_ERR, "revoked: no WRITE");
	/* What follows moves learns by a fault that there will be no memory any more. */
	is(change(&mr, ACCESS, NULL, READ_ONLY), EINVAL, "revoked: ACCESS: EINVAL");
	is(change(&mr, PD, rig.pair.a.pd, 0), EINVAL, "revoked: PD: EINVAL");
	gone_once(&mr, "revoked");
	dmabuf_free(buf);
}

/* One after the other they have the same key, where a driver keeps keys. */
static void test_alternate(struct dmabuf *buf)
{
	int wrong = 0;

	for (int i = 0; i < ROUNDS; i++) {
		struct mr mr = registered(buf);

		wrong += change(&mr, ACCESS, NULL, i % 2 ? READ_ONLY : RIG_ACCESS) != 0;
		wrong += rig_write(&rig, &mr, IOVA, "x", 1) !=
			 (i % 2 ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
		if (i % 3 == 0)
			wrong += change(&mr, PD, rig.pair.a.pd, 0) != 0;
		wrong += mr_dereg(&mr) != 0;
		wrong += !rig_host_mrs_work(&rig, 1);
	}
	is(wrong, 0, "%d times dma-buf, rereg, dereg, host memory, dereg", ROUNDS);
}

static void test_raw(struct dmabuf *buf)
{
	/* The kernel's own code makes a host MR of it. */
	if (rig.traits.ours) {
		test_refused(buf, "TRANSLATION", TRANSLATION);
		test_refused(buf, "TRANSLATION and PD", TRANSLATION | PD);
		test_refused(buf, "everything", TRANSLATION | PD | ACCESS);
	} else {
		skip("rereg of TRANSLATION", "the kernel's own code does that its way");
	}
	if (!rig.traits.reregs) {
		test_refused(buf, "ACCESS", ACCESS);
		test_refused(buf, "PD", PD);
		return;
	}
	for (int move = 0; move <= rig.traits.follows; move++) {
		test_access(buf, move);
		test_pd(buf, move);
	}
	test_alternate(buf);
	if (rig.traits.ours)
		test_revoked();
	else
		skip("rereg of what was revoked", "the kernel's own code does not know");
}

static void test_libibverbs(struct dmabuf *buf)
{
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(rig.pair.b.pd, 0, SIZE, IOVA, dmabuf_fd(buf),
					      RIG_ACCESS);
	struct mr view = { 0 };

	if (!mr && errno == EOPNOTSUPP && rig.traits.by_cpu) {
		skip("ibv_rereg_mr()", "this rdma-core's provider has no reg_dmabuf_mr");
		return;
	}
	if (!ok(mr, "ibv_reg_dmabuf_mr()"))
		return;
	view.rkey = mr->rkey;
	ok(ibv_rereg_mr(mr, ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE) != 0,
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
