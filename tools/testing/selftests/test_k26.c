// SPDX-License-Identifier: GPL-2.0
/*
 * K26: whatever step of a registration fails, the first time or the fifth, each
 * earlier step is undone once: no pin, map or attachment is left, none too few.
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

static struct rig rig;

static bool holds(const struct dmabuf *buf, uint32_t attached, uint32_t pinned, uint32_t vmapped)
{
	struct drm_vramsim_gem_info info;

	if (sim_gem_info(buf, &info))
		bail("GEM_INFO");
	if (info.attached == attached && info.pinned == pinned && info.vmapped == vmapped &&
	    !info.mapped)
		return true;
	diag("  attached %u, pinned %u, mapped %u, vmapped %u", info.attached, info.pinned,
	     info.mapped, info.vmapped);
	return false;
}

/* @others MRs of the same buffer are there and must not be touched by the failure. */
static void test_step(struct dmabuf *buf, const char *kind, const char *step_name, uint32_t step,
		      int want, uint32_t others)
{
	struct mr mr;
	uint32_t nth;
	int err = 0;

	for (nth = 1; nth <= LAST_NTH; nth++) {
		uint32_t call;

		if (sim_inject_nth(buf, step, nth, 1, ENOSPC))
			bail("cannot inject");
		for (call = 1; call < nth; call++) {
			err = rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr);
			if (err || mr_dereg(&mr))
				break;
		}
		is(call, nth, "%s, %s, beside %u: %u good registrations", kind, step_name, others,
		   nth - 1);
		err = rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr);
		is(err, want, "%s, %s, beside %u: number %u fails", kind, step_name, others, nth);
		ok(holds(buf, others, others, others ? 1 : 0),
		   "%s, %s, beside %u: number %u left nothing", kind, step_name, others, nth);
		sim_inject(buf, step, 0, 0);
	}
	is(rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr), 0,
	   "%s, %s, beside %u: the next one succeeds", kind, step_name, others);
	ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE), "%s, %s, beside %u: and works", kind,
	   step_name, others);
	is(mr_dereg(&mr), 0, "%s, %s, beside %u: deregister", kind, step_name, others);
}

static void test_kind(const char *kind, uint32_t flags)
{
	const struct dmabuf_opts opts = { .flags = flags };
	struct dmabuf *buf = rig_vram(SIZE, &opts);
	struct mr beside[2];

	for (uint32_t others = 0; others <= 2; others += 2) {
		for (uint32_t i = 0; i < others; i++)
			is(rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &beside[i]), 0,
			   "%s: an MR beside", kind);
		test_step(buf, kind, "attach", VRAMSIM_INJECT_ATTACH, ENOSPC, others);
		/* A static exporter pins inside its attach. */
		test_step(buf, kind, "pin", VRAMSIM_INJECT_PIN, ENOSPC, others);
		/* The dma-buf core asks the exporter for its first mapping only. */
		if (!others)
			test_step(buf, kind, "vmap", VRAMSIM_INJECT_VMAP, ENOMEM, others);
		for (uint32_t i = 0; i < others; i++) {
			ok(rig_works(&rig, &beside[i], IOVA, buf, 0, SIZE),
			   "%s: the MR beside works", kind);
			is(mr_dereg(&beside[i]), 0, "%s: deregister it", kind);
		}
	}
	ok(holds(buf, 0, 0, 0), "%s: nothing is left", kind);
	dmabuf_free(buf);
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
