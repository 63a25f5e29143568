// SPDX-License-Identifier: GPL-2.0
/*
 * K26: whatever step of a registration fails, the first time or the fifth, each
 * earlier step is undone once: no pin, map or attachment is left, none too few, and
 * the device registers on, host memory as well.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE	(64 * KIB)
#define IOVA	0x700000000ull
#define LAST_NTH	5
#define HOST_MRS	100

static struct rig rig;

/* True if the exporter counts what @others MRs hold, and no more. */
static bool holds(const struct dmabuf *buf, uint32_t flags, uint32_t others)
{
	struct rig_holds each = rig_holds(&rig, flags);
	struct drm_vramsim_gem_info info = sim_gem(buf);

	if (info.attached == others && info.pinned == others * each.pinned &&
	    info.mapped == others * each.mapped && info.vmapped == (others ? each.vmapped : 0))
		return true;
	diag("  attached %u, pinned %u, mapped %u, vmapped %u", info.attached, info.pinned,
	     info.mapped, info.vmapped);
	return false;
}

struct kind {
	const char *name;
	uint32_t flags;
	struct dmabuf *buf;
	uint32_t others;	/* MRs of the buffer that no failure must touch */
};

/* The @call of the calls of @step in the @nth registration fails. */
static void fails(const struct kind *k, const struct rig_step *step, uint32_t nth, uint32_t call)
{
	uint32_t calls = rig_takes_step(&rig, step->step, k->flags), done;
	struct mr mr;

	if (sim_inject_nth(k->buf, step->step, (nth - 1) * calls + call, 1, ENOSPC))
		bail("cannot inject");
	for (done = 0; done < nth - 1; done++)
		if (rig_reg(&rig, dmabuf_fd(k->buf), 0, SIZE, IOVA, &mr) || mr_dereg(&mr))
			break;
	is(done, nth - 1, "%s, %s, beside %u: %u good registrations", k->name, step->name,
	   k->others, nth - 1);
	is(rig_reg(&rig, dmabuf_fd(k->buf), 0, SIZE, IOVA, &mr), step->seen,
	   "%s, %s, beside %u: number %u fails", k->name, step->name, k->others, nth);
	ok(holds(k->buf, k->flags, k->others), "%s, %s, beside %u: number %u left nothing",
	   k->name, step->name, k->others, nth);
	sim_inject(k->buf, step->step, 0, 0);
}

static void test_step(const struct kind *k, const struct rig_step *step)
{
	uint32_t calls = rig_takes_step(&rig, step->step, k->flags);
	struct mr mr;

	/* The dma-buf core asks the exporter for its first kernel mapping only. */
	if (!calls || (step->step == VRAMSIM_INJECT_VMAP && k->others))
		return;
	for (uint32_t nth = 1; nth <= LAST_NTH; nth++)
		for (uint32_t call = 1; call <= calls; call++)
			fails(k, step, nth, call);
	ok(rig_host_mrs_work(&rig, HOST_MRS), "%s, %s, beside %u: %d host MRs work", k->name,
	   step->name, k->others, HOST_MRS);
	is(rig_reg(&rig, dmabuf_fd(k->buf), 0, SIZE, IOVA, &mr), 0,
	   "%s, %s, beside %u: the next one succeeds", k->name, step->name, k->others);
	ok(rig_works(&rig, &mr, IOVA, k->buf, 0, SIZE), "%s, %s, beside %u: and works", k->name,
	   step->name, k->others);
	is(mr_dereg(&mr), 0, "%s, %s, beside %u: deregister", k->name, step->name, k->others);
}

static void test_kind(const char *name, uint32_t flags)
{
	const struct dmabuf_opts opts = { .flags = flags };
	struct kind k = { .name = name, .flags = flags, .buf = rig_vram(SIZE, &opts) };
	struct mr beside[2];

	for (k.others = 0; k.others <= 2; k.others += 2) {
		for (uint32_t i = 0; i < k.others; i++)
			is(rig_reg(&rig, dmabuf_fd(k.buf), 0, SIZE, IOVA, &beside[i]), 0,
			   "%s: an MR beside", name);
		for (size_t i = 0; i < RIG_STEPS; i++)
			test_step(&k, &rig_steps[i]);
		for (uint32_t i = 0; i < k.others; i++) {
			ok(rig_works(&rig, &beside[i], IOVA, k.buf, 0, SIZE),
			   "%s: the MR beside works", name);
			is(mr_dereg(&beside[i]), 0, "%s: deregister it", name);
		}
	}
	ok(holds(k.buf, flags, 0), "%s: nothing is left", name);
	dmabuf_free(k.buf);
}

int main(void)
{
	struct counters start;

	rig_up(&rig);
	counters_get(&start);
	test_kind("dynamic", 0);
	test_kind("static", VRAMSIM_CREATE_STATIC);
	ok(counters_back(&start, 1000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
