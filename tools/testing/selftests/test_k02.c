// SPDX-License-Identifier: GPL-2.0
/*
 * K02: libraries read from the errno of a hopeless registration whether a device
 * knows dma-bufs.  Their decision tables, on a device that does and on one that
 * does not (siw0, without our driver).
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "netdev.h"
#include "rig.h"
#include "sim.h"
#include "tap.h"

#define PLAIN	"siw0"

struct probe {
	const char *library;
	uint64_t length;
	uint32_t access;
	bool (*supported)(int err);
};

static bool ucx(int err)
{
	return err == 0 || err == EBADF;
}

static bool nccl(int err)
{
	return err != EOPNOTSUPP && err != EPROTONOSUPPORT;
}

static bool perftest(int err)
{
	return err != EOPNOTSUPP && err != EPROTONOSUPPORT && err != EIO;
}

static const struct probe probes[] = {
	{ "UCX", 4096, IBV_ACCESS_LOCAL_WRITE, ucx },
	{ "NCCL", 0, 0, nccl },
	{ "perftest", 4096, IBV_ACCESS_LOCAL_WRITE, perftest },
};

static int through_libibverbs(struct ibv_pd *pd, const struct probe *probe)
{
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(pd, 0, probe->length, 0, -1, probe->access);
	int err = errno;

	if (!mr)
		return err;
	ibv_dereg_mr(mr);
	return 0;
}

static int through_ioctl(struct ibv_pd *pd, const struct probe *probe)
{
	struct mr_reg reg = {
		.pd = pd,
		.driver_id = uverbs_driver_id(pd->context),
		.length = probe->length,
		.fd = -1,
		.access = probe->access,
	};
	struct mr mr;
	int err = mr_reg(&reg, &mr);

	if (!err)
		mr_dereg(&mr);
	return err;
}

static void decisions(struct ibv_pd *pd, const char *device, const char *way,
		      int (*reg)(struct ibv_pd *, const struct probe *), int want, bool supported)
{
	for (size_t i = 0; i < sizeof(probes) / sizeof(*probes); i++) {
		int err = reg(pd, &probes[i]);

		is(err, want, "%s's question to %s, %s: %s", probes[i].library, device, way,
		   strerrorname_np(want));
		is(probes[i].supported(err), supported, "%s decides: %s", probes[i].library,
		   supported ? "supported" : "not supported");
	}
}

/* Debian's provider of rxe has no reg_dmabuf_mr; ours is a drop-in. */
static bool provider_has_op(struct ibv_pd *pd)
{
	return through_libibverbs(pd, &probes[0]) != EOPNOTSUPP;
}

static void on_rig(void)
{
	struct rig rig;

	rig_up(&rig);
	decisions(rig.pair.b.pd, rig.traits.name, "raw ioctl", through_ioctl, EBADF, true);
	if (!rig.traits.by_cpu || provider_has_op(rig.pair.b.pd))
		decisions(rig.pair.b.pd, rig.traits.name, "libibverbs", through_libibverbs, EBADF,
			  true);
	else
		skip("questions through libibverbs", "this rdma-core's provider lacks the operation");
	rig_down(&rig);
}

static void on_plain(void)
{
	struct ibv_context *ctx;
	struct ibv_pd *pd;

	if (!soft_rdma_add(PLAIN, "siw", 98)) {
		skip("questions to a device without dma-buf MRs", "this kernel has no siw");
		return;
	}
	ctx = rc_open(PLAIN);
	pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	if (!pd)
		bail("no PD on %s: %s", PLAIN, strerror(errno));
	decisions(pd, PLAIN, "raw ioctl", through_ioctl, EPROTONOSUPPORT, false);
	decisions(pd, PLAIN, "libibverbs", through_libibverbs, EOPNOTSUPP, false);
	ibv_dealloc_pd(pd);
	ibv_close_device(ctx);
	soft_rdma_del(PLAIN);
}

int main(void)
{
	on_rig();
	on_plain();
	return tap_done();
}
