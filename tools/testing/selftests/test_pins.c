// SPDX-License-Identifier: GPL-2.0
/*
 * The exporter's counters at each step of an MR's life: one attachment for each MR, and
 * what the device needs beside it; and what is undone by a revoke is not undone again
 * by dereg.
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
#define CHILD_MRS	5	/* DMA-API debugging bears 7 mappings of a page */

static struct rig rig;

/* A buffer, and what the exporter has to count of its MRs */
struct counted {
	struct dmabuf *buf;
	struct rig_holds each;	/* of them holds that */
	uint32_t mrs;
	uint64_t ever;		/* MRs, those that are gone as well */
	bool revoked;
};

static struct counted make(const struct dmabuf_opts *opts)
{
	return (struct counted){
		.buf = rig_vram(SIZE, opts),
		.each = rig_holds(&rig, opts ? opts->flags : 0),
	};
}

/* A kernel mapping outlives a revoke: no importer may give it back in a move_notify. */
static void counts(const struct counted *c, const char *when)
{
	struct drm_vramsim_gem_info info = sim_gem(c->buf);
	uint32_t live = c->revoked ? 0 : c->mrs;

	is(info.attached, c->mrs, "%s: attachments", when);
	is(info.pinned, live * c->each.pinned, "%s: pins", when);
	is(info.vmapped, c->mrs ? c->each.vmapped : 0, "%s: kernel mappings", when);
	is(info.mapped, live * c->each.mapped, "%s: DMA mappings", when);
	is(info.maps, c->ever * c->each.mapped, "%s: DMA mappings ever made", when);
}

static void reg(struct counted *c, struct mr *mr)
{
	int err = rig_reg(&rig, dmabuf_fd(c->buf), 0, SIZE, IOVA, mr);

	if (err)
		bail("register: %s", strerror(err));
	c->mrs++;
	c->ever++;
}

static void dereg(struct counted *c, struct mr *mr, const char *which)
{
	is(mr_dereg(mr), 0, "deregister %s", which);
	c->mrs--;
}

static void take_away(struct counted *c, const char *name)
{
	is(sim_revoke(c->buf), 0, "%s: revoke", name);
	c->revoked = true;
}

static void test_life(const struct dmabuf_opts *opts, const char *kind)
{
	struct counted c = make(opts);
	struct mr one, two;

	diag("%s", kind);
	counts(&c, "before");
	reg(&c, &one);
	counts(&c, "one MR");
	reg(&c, &two);
	counts(&c, "two MRs");
	dereg(&c, &one, "the first");
	counts(&c, "one MR again");
	dereg(&c, &two, "the second");
	counts(&c, "after");
	dmabuf_free(c.buf);
}

static void test_revoke(void)
{
	struct counted c = make(NULL);
	struct mr one, two;

	reg(&c, &one);
	reg(&c, &two);
	take_away(&c, "revoke");
	counts(&c, "two MRs, revoked");
	take_away(&c, "revoke again");
	counts(&c, "two MRs, revoked twice");
	dereg(&c, &one, "the first");
	counts(&c, "one MR, revoked");
	dereg(&c, &two, "the second");
	counts(&c, "after");
	dmabuf_free(c.buf);
}

/* A notify that is no revoke: it comes before our pin, or the @nth of them, holds. */
static void test_early_notify(uint32_t step, uint32_t nth, const char *name)
{
	struct counted c = make(NULL);
	struct mr mr;

	sim_inject_nth(c.buf, step, nth, 1, 0);
	reg(&c, &mr);
	ok(sim_gem(c.buf).notifies >= 1, "%s: the exporter did notify", name);
	counts(&c, name);
	ok(rig_works(&rig, &mr, IOVA, c.buf, 0, SIZE), "%s: the MR works", name);
	dereg(&c, &mr, name);
	counts(&c, name);
	dmabuf_free(c.buf);
}

static void test_early_notifies(void)
{
	uint32_t pins = rig_takes_step(&rig, VRAMSIM_INJECT_PIN, 0);

	test_early_notify(VRAMSIM_INJECT_NOTIFY_IN_ATTACH, 1, "notify inside attach");
	for (uint32_t nth = 1; nth <= pins; nth++)
		test_early_notify(VRAMSIM_INJECT_NOTIFY_IN_PIN, nth, "notify inside pin");
}

/* The pin moves the buffer first, and so notifies the one who pins. */
static void test_downgrade(void)
{
	static const struct dmabuf_opts opts = { .pin = VRAMSIM_PIN_DOWNGRADE };
	struct counted c = make(&opts);
	const char *where = c.each.pinned ? "system" : "vram";
	struct mr mr;

	ok(!strcmp(dmabuf_placement(c.buf), "vram"), "downgrade: in VRAM before");
	reg(&c, &mr);
	ok(!strcmp(dmabuf_placement(c.buf), where), "downgrade: in %s when registered", where);
	counts(&c, "downgraded");
	ok(rig_works(&rig, &mr, IOVA, c.buf, 0, SIZE), "downgrade: the MR works there");
	dereg(&c, &mr, "it");
	counts(&c, "after");
	dmabuf_free(c.buf);
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
	for (int i = 0; i < CHILD_MRS; i++)
		if (mr_reg(&args, &mr))
			return 2;
	return 0;
}

static void test_exit(bool and_revoke)
{
	const char *name = and_revoke ? "exit, other MR revoked" : "exit";
	struct counted c = make(NULL);
	struct mr mine;

	reg(&c, &mine);
	is(child_run(die_with_mrs, c.buf, 20000), 0, "%s: a child exits with %d MRs", name,
	   CHILD_MRS);
	c.ever += CHILD_MRS;
	counts(&c, name);
	if (and_revoke)
		take_away(&c, name);
	else
		ok(rig_works(&rig, &mine, IOVA, c.buf, 0, SIZE), "%s: the MR here works", name);
	dereg(&c, &mine, "it");
	counts(&c, name);
	dmabuf_free(c.buf);
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
	test_early_notifies();
	test_downgrade();
	test_exit(false);
	test_exit(true);
	ok(counters_back(&start, 1000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
