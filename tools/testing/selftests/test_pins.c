// SPDX-License-Identifier: GPL-2.0
/*
 * The exporter's counters at each step of an MR's life: one attachment, one pin
 * and no DMA mapping for each MR, one kernel mapping for all; and what is undone
 * by a revoke is not undone again by dereg.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "child.h"
#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE	(64 * KIB)
#define IOVA	0xc00000000ull

static struct rig rig;

static void counts(const struct dmabuf *buf, uint32_t attached, uint32_t pinned,
		   uint32_t vmapped, const char *when)
{
	struct drm_vramsim_gem_info info;

	if (sim_gem_info(buf, &info))
		bail("GEM_INFO");
	is(info.attached, attached, "%s: attachments", when);
	is(info.pinned, pinned, "%s: pins", when);
	is(info.vmapped, vmapped, "%s: kernel mappings", when);
	is(info.mapped, 0, "%s: DMA mappings", when);
	is(info.maps, 0, "%s: DMA mappings ever made", when);
}

static void reg(struct dmabuf *buf, struct mr *mr)
{
	int err = rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, mr);

	if (err)
		bail("register: %s", strerror(err));
}

static void test_life(const struct dmabuf_opts *opts, const char *kind)
{
	struct dmabuf *buf = rig_vram(SIZE, opts);
	struct mr one, two;

	diag("%s", kind);
	counts(buf, 0, 0, 0, "before");
	reg(buf, &one);
	counts(buf, 1, 1, 1, "one MR");
	reg(buf, &two);
	counts(buf, 2, 2, 1, "two MRs");
	is(mr_dereg(&one), 0, "deregister the first");
	counts(buf, 1, 1, 1, "one MR again");
	is(mr_dereg(&two), 0, "deregister the second");
	counts(buf, 0, 0, 0, "after");
	dmabuf_free(buf);
}

static void test_revoke(void)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct mr one, two;

	diag("revoke");
	reg(buf, &one);
	reg(buf, &two);
	is(sim_revoke(buf), 0, "revoke");
	counts(buf, 2, 0, 1, "two MRs, revoked");
	is(sim_revoke(buf), 0, "revoke again");
	counts(buf, 2, 0, 1, "two MRs, revoked twice");
	is(mr_dereg(&one), 0, "deregister the first");
	counts(buf, 1, 0, 1, "one MR, revoked");
	is(mr_dereg(&two), 0, "deregister the second");
	counts(buf, 0, 0, 0, "after");
	dmabuf_free(buf);
}

/* A notify that is no revoke: it comes before our pin holds. */
static void test_early_notify(uint32_t step, const char *name)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct drm_vramsim_gem_info info;
	struct mr mr;

	diag("%s", name);
	sim_inject(buf, step, 1, 0);
	reg(buf, &mr);
	sim_gem_info(buf, &info);
	ok(info.notifies >= 1, "%s: the exporter did notify", name);
	counts(buf, 1, 1, 1, name);
	ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE), "%s: the MR works", name);
	is(mr_dereg(&mr), 0, "%s: deregister", name);
	counts(buf, 0, 0, 0, name);
	dmabuf_free(buf);
}

/* The pin moves the buffer first, and so notifies the one who pins. */
static void test_downgrade(void)
{
	static const struct dmabuf_opts opts = { .pin = VRAMSIM_PIN_DOWNGRADE };
	struct dmabuf *buf = rig_vram(SIZE, &opts);
	struct mr mr;

	diag("downgrade");
	ok(!strcmp(dmabuf_placement(buf), "vram"), "in VRAM before");
	reg(buf, &mr);
	ok(!strcmp(dmabuf_placement(buf), "system"), "pinned in system memory");
	counts(buf, 1, 1, 1, "downgraded");
	ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE), "the MR works there");
	is(mr_dereg(&mr), 0, "deregister");
	counts(buf, 0, 0, 0, "after");
	dmabuf_free(buf);
}

/* A process that dies is as one that deregisters everything. */
static int die_with_mrs(void *arg)
{
	struct dmabuf *buf = arg;
	struct ibv_context *ctx = rc_open(rig_device());
	struct mr_reg args = {
		.pd = ctx ? ibv_alloc_pd(ctx) : NULL,
		.fd = dmabuf_fd(buf),
		.length = SIZE,
		.iova = IOVA,
		.access = RIG_ACCESS,
	};
	struct mr mr;

	if (!args.pd)
		return 1;
	args.driver_id = uverbs_driver_id(ctx);
	for (int i = 0; i < 10; i++)
		if (mr_reg(&args, &mr))
			return 2;
	return 0;
}

static void test_exit(bool revoke)
{
	const char *name = revoke ? "exit, other MR revoked" : "exit";
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct mr mine;

	diag("%s", name);
	reg(buf, &mine);
	is(child_run(die_with_mrs, buf, 20000), 0, "%s: a child exits with 10 MRs", name);
	counts(buf, 1, 1, 1, name);
	if (revoke)
		is(sim_revoke(buf), 0, "%s: revoke", name);
	else
		ok(rig_works(&rig, &mine, IOVA, buf, 0, SIZE), "%s: the MR here works", name);
	is(mr_dereg(&mine), 0, "%s: deregister", name);
	counts(buf, 0, 0, 0, name);
	dmabuf_free(buf);
}

int main(void)
{
	static const struct dmabuf_opts fixed = { .flags = VRAMSIM_CREATE_STATIC };
	static const struct dmabuf_opts in_system = { .system = true };
	struct counters start;

	rig_up(&rig);
	counters_get(&start);
	test_life(NULL, "dynamic exporter, VRAM");
	test_life(&in_system, "dynamic exporter, system memory");
	test_life(&fixed, "static exporter");
	test_revoke();
	test_early_notify(VRAMSIM_INJECT_NOTIFY_IN_ATTACH, "notify inside attach");
	test_early_notify(VRAMSIM_INJECT_NOTIFY_IN_PIN, "notify inside pin");
	test_downgrade();
	test_exit(false);
	test_exit(true);
	ok(counters_back(&start, 1000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
