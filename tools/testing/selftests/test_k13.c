// SPDX-License-Identifier: GPL-2.0
/*
 * K13: RLIMIT_MEMLOCK bounds host MRs of a process without CAP_IPC_LOCK, and has
 * nothing to do with dma-buf MRs.  What bounds those is the exporter.
 */
#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "child.h"
#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE	(1 * MIB)
#define IOVA	0x500000000ull
#define CHILD_BROKEN	255

struct limited {
	uint64_t memlock;	/* bytes */
	bool host;		/* a host MR, not a dma-buf MR */
};

static void give_up_ipc_lock(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data))
		_exit(CHILD_BROKEN);
	data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective &= ~CAP_TO_MASK(CAP_IPC_LOCK);
	data[CAP_TO_INDEX(CAP_IPC_LOCK)].permitted &= ~CAP_TO_MASK(CAP_IPC_LOCK);
	if (syscall(SYS_capset, &head, data))
		_exit(CHILD_BROKEN);
}

/* In a child: the errno of registering 1 MiB with that little to lock. */
static int register_limited(void *arg)
{
	const struct limited *how = arg;
	struct rlimit limit = { how->memlock, how->memlock };
	struct dmabuf *buf = dmabuf_alloc("vramsim", SIZE, NULL);
	struct ibv_context *ctx = rc_open(rig_device());
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	struct mr_reg reg = { 0 };
	struct mr mr;
	void *host;

	if (!buf || !pd || posix_memalign(&host, 4096, SIZE))
		return CHILD_BROKEN;
	give_up_ipc_lock();
	if (setrlimit(RLIMIT_MEMLOCK, &limit))
		return CHILD_BROKEN;
	if (how->host) {
		errno = 0;
		return ibv_reg_mr(pd, host, SIZE, IBV_ACCESS_LOCAL_WRITE) ? 0 : errno;
	}
	reg.pd = pd;
	reg.driver_id = uverbs_driver_id(ctx);
	reg.fd = dmabuf_fd(buf);
	reg.length = SIZE;
	reg.iova = IOVA;
	reg.access = RIG_ACCESS;
	return mr_reg(&reg, &mr);
}

static void expect(uint64_t memlock, bool host, int want, const char *name)
{
	struct limited how = { memlock, host };

	is(child_run(register_limited, &how, 20000), want, "%s", name);
}

static void quota(const struct dmabuf *buf, uint32_t pages, uint32_t count)
{
	struct drm_vramsim_inject inject = {
		.step = VRAMSIM_INJECT_PIN_QUOTA,
		.nth = pages,
		.count = count,
	};

	if (ioctl(dmabuf_drm_fd(buf), DRM_IOCTL_VRAMSIM_INJECT, &inject))
		bail("pin quota: %s", strerror(errno));
}

/* It bounds what is pinned; a static exporter pins for every importer. */
static void test_quota(const char *kind, uint32_t flags)
{
	const struct dmabuf_opts opts = { .flags = flags };
	struct rig rig;
	struct dmabuf *one, *two;
	struct mr mr1, mr2, again;

	rig_up(&rig);
	if (!rig_takes_step(&rig, VRAMSIM_INJECT_PIN, flags)) {
		rig_down(&rig);
		return;
	}
	one = rig_vram(SIZE, &opts);
	two = rig_vram(SIZE, &opts);
	quota(one, SIZE / 4096, 1);
	is(rig_reg(&rig, dmabuf_fd(one), 0, SIZE, IOVA, &mr1), 0, "%s, quota of 1 MiB: the first MiB",
	   kind);
	is(rig_reg(&rig, dmabuf_fd(one), 0, SIZE, IOVA, &again), 0,
	   "%s, quota of 1 MiB: the same memory once more", kind);
	is(rig_reg(&rig, dmabuf_fd(two), 0, SIZE, IOVA, &mr2), ENOMEM,
	   "%s, quota of 1 MiB: ENOMEM for the second MiB", kind);
	is(mr_dereg(&again), 0, "%s: deregister one of the two MRs", kind);
	is(rig_reg(&rig, dmabuf_fd(two), 0, SIZE, IOVA, &mr2), ENOMEM, "%s: still ENOMEM",
	   kind);
	is(mr_dereg(&mr1), 0, "%s: deregister the other", kind);
	is(rig_reg(&rig, dmabuf_fd(two), 0, SIZE, IOVA, &mr2), 0, "%s: now there is room",
	   kind);
	is(mr_dereg(&mr2), 0, "%s: deregister", kind);
	quota(one, 0, 0);
	dmabuf_free(one);
	dmabuf_free(two);
	rig_down(&rig);
}

int main(void)
{
	struct counters start;
	struct rig rig;

	rig_up(&rig);
	rig_down(&rig);
	counters_get(&start);
	expect(0, true, EPERM, "memlock 0: a host MR of 1 MiB is refused");
	expect(64 * KIB, true, ENOMEM, "memlock 64 KiB: a host MR of 1 MiB gets ENOMEM");
	expect(8 * MIB, true, 0, "memlock 8 MiB: a host MR of 1 MiB is fine");
	expect(0, false, 0, "memlock 0: a dma-buf MR of 1 MiB is fine");
	expect(64 * KIB, false, 0, "memlock 64 KiB: a dma-buf MR of 1 MiB is fine");
	test_quota("buffer that could move", 0);
	test_quota("static buffer", VRAMSIM_CREATE_STATIC);
	ok(counters_back(&start, 2000), "all counters back to the start");
	return tap_done();
}
