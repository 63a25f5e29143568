// SPDX-License-Identifier: GPL-2.0
/*
 * The first, the second, ... allocation or copy from user space inside a
 * registration fails, until there is none left to fail: each time the errno of
 * that failure comes out and all earlier steps are undone.  The same for
 * deregistration and rereg, which may fail only as long as the MR is whole.
 */
#include <errno.h>
#include <stdio.h>

#include "fail_nth.h"
#include "fault_attr.h"
#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE	(256 * KIB)
#define IOVA	0xe00000000ull
#define NTH_MAX	5000
#define FATAL	10
#define SWEEPS_MAX	20

static struct rig rig;

/* Sleeping allocations fail, too, and nobody prints a stack for each. */
static struct fault_attr settings[] = {
	{ .path = "failslab/ignore-gfp-wait", .value = "N" },
	{ .path = "failslab/verbose", .value = "0" },
	{ .path = "fail_page_alloc/ignore-gfp-wait", .value = "N" },
	{ .path = "fail_page_alloc/ignore-gfp-highmem", .value = "N" },
	{ .path = "fail_page_alloc/min-order", .value = "0" },
	{ .path = "fail_page_alloc/verbose", .value = "0" },
	{ .path = "fail_usercopy/verbose", .value = "0" },
};

#define SETTINGS	(sizeof(settings) / sizeof(*settings))

static bool expected(int err)
{
	return err == ENOMEM || err == EFAULT;
}

struct sweep {
	int failed, survived, wrong, leaks, length;
};

/* Each allocation of a registration fails in turn, until one has no more of them. */
static void sweep_register(struct dmabuf *buf, const struct counters *before,
			   struct sweep *sweep)
{
	struct mr mr;

	for (int nth = 1; nth < NTH_MAX; nth++) {
		int err;
		bool hit;

		sweep->length = nth;
		fail_nth_arm(nth);
		err = rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr);
		hit = fail_nth_fired();
		if (!err) {
			sweep->survived += hit;
			if (mr_dereg(&mr))
				sweep->wrong++;
			if (!hit)
				return;
		} else {
			sweep->failed += hit;
			if (!hit || !expected(err)) {
				diag("  failure %d: errno %d", nth, err);
				sweep->wrong++;
			}
		}
		if (!counters_back(before, 0)) {
			diag("  failure %d (errno %d) leaks", nth, err);
			sweep->leaks++;
		}
	}
}

/*
 * The kernel's checks allocate in between, now more and now less, so that one sweep
 * can pass over an allocation that matters.
 */
static void test_register(struct dmabuf *buf, const char *name)
{
	struct sweep sweep = { 0 };
	struct counters before;
	int sweeps = 0;

	counters_get(&before);
	do
		sweep_register(buf, &before, &sweep);
	while (++sweeps < SWEEPS_MAX && sweep.failed <= FATAL);
	diag("%s: %d failures made it fail, %d did not", name, sweep.failed, sweep.survived);
	ok(sweep.length < NTH_MAX - 1 && sweep.failed > FATAL,
	   "%s: each allocation of a registration has failed once", name);
	is(sweep.wrong, 0, "%s: each time with ENOMEM or EFAULT", name);
	is(sweep.leaks, 0, "%s: each time all is undone", name);
}

static void test_deregister(struct dmabuf *buf, const char *name)
{
	int refused = 0, wrong = 0, nth;
	struct mr mr;

	for (nth = 1; nth < NTH_MAX; nth++) {
		bool hit;
		int err;

		if (rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr))
			bail("cannot register");
		fail_nth_arm(nth);
		err = mr_dereg(&mr);
		hit = fail_nth_fired();
		if (err) {
			refused++;
			if (!hit || !expected(err) ||
			    !rig_works(&rig, &mr, IOVA, buf, 0, 4096) || mr_dereg(&mr)) {
				diag("  failure %d: errno %d", nth, err);
				wrong++;
			}
		}
		if (!hit)
			break;
	}
	diag("%s: %d failures, %d made it fail", name, nth - 1, refused);
	ok(nth < NTH_MAX && nth > 1, "%s: each allocation of a deregistration has failed once",
	   name);
	is(wrong, 0, "%s: what cannot be deregistered is whole, and can be later", name);
}

/*
 * A rereg that fails has changed nothing, but if it was the copy of the answer that
 * failed: all is done then.
 */
static void test_rereg(struct dmabuf *buf, const char *name)
{
	int refused = 0, late = 0, wrong = 0, nth;
	struct mr mr;

	if (rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr))
		bail("cannot register");
	for (nth = 1; nth < NTH_MAX; nth++) {
		int err, status;
		bool hit, changed;

		fail_nth_arm(nth);
		err = mr_rereg(&mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, 0, 0, 0,
			       IBV_ACCESS_LOCAL_WRITE);
		hit = fail_nth_fired();
		status = rig_write(&rig, &mr, IOVA, "x", 1);
		changed = status == IBV_WC_REM_ACCESS_ERR;
		refused += !!err;
		late += err && changed;
		if ((err && (!hit || !expected(err))) || (!changed && (status || !err)) ||
		    (changed && err == ENOMEM) ||
		    (changed && mr_rereg(&mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, 0, 0, 0,
					 RIG_ACCESS))) {
			diag("  failure %d: errno %d", nth, err);
			wrong++;
		}
		if (!hit)
			break;
	}
	diag("%s: rereg: %d failures, %d made it fail", name, nth - 1, refused);
	ok(nth < NTH_MAX && nth > 1, "%s: each allocation of a rereg has failed once", name);
	ok(!wrong && late <= 1, "%s: rights change or they do not", name);
	is(mr_dereg(&mr), 0, "%s: deregister", name);
}

static void test_kind(struct dmabuf *buf, const char *name)
{
	struct mr mr;

	test_register(buf, name);
	test_deregister(buf, name);
	if (rig.traits.reregs)
		test_rereg(buf, name);
	is(rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr), 0, "%s: then it is registered", name);
	ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE), "%s: and works", name);
	is(mr_dereg(&mr), 0, "%s: deregister", name);
	dmabuf_free(buf);
}

int main(void)
{
	static const struct dmabuf_opts fixed = { .flags = VRAMSIM_CREATE_STATIC };
	static const struct dmabuf_opts in_system = { .system = true };
	struct counters start;
	struct dmabuf *vgem;

	if (!fail_nth_there())
		tap_skip_all("this kernel has no fault injection");
	rig_up(&rig);
	counters_get(&start);
	fault_attrs_set(settings, SETTINGS);
	test_kind(rig_vram(SIZE, NULL), "VRAM");
	test_kind(rig_vram(SIZE, &in_system), "system memory");
	test_kind(rig_vram(SIZE, &fixed), "static exporter");
	vgem = rig.traits.by_cpu ? rig_vgem(SIZE) : NULL;
	if (vgem)
		test_kind(vgem, "vgem");
	else if (rig.traits.by_cpu)
		skip("vgem", "no vgem in this kernel");
	else
		skip("vgem", "DRM of 5.10 maps the table that it got no memory for");

	fault_attrs_restore(settings, SETTINGS);
	ok(counters_back(&start, 1000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
