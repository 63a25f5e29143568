// SPDX-License-Identifier: GPL-2.0
/*
 * K26 and the likely bugs of failure paths: each step of an import fails, with
 * each errno there is, and with each allocation in turn.  Every time all the
 * steps before it are undone, and the next import works.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fail_nth.h"
#include "fault_attr.h"
#include "importer.h"
#include "policy.h"
#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE		(64 * KIB)

#define LAST_USER_ERRNO	133	/* EHWPOISON */

struct step {
	uint32_t contract;
	uint32_t step;
	const char *name;
};

/* Where an import can be refused. */
static const struct step steps[] = {
	{ DMABUF_IMPORTER_DYNAMIC, VRAMSIM_INJECT_ATTACH, "attach" },
	{ DMABUF_IMPORTER_DYNAMIC, VRAMSIM_INJECT_MAP, "map" },
	{ DMABUF_IMPORTER_PINNED, VRAMSIM_INJECT_ATTACH, "attach" },
	{ DMABUF_IMPORTER_PINNED, VRAMSIM_INJECT_PIN, "pin" },
	{ DMABUF_IMPORTER_PINNED, VRAMSIM_INJECT_MAP, "map" },
	{ DMABUF_IMPORTER_REVOCABLE, VRAMSIM_INJECT_ATTACH, "attach" },
	{ DMABUF_IMPORTER_REVOCABLE, VRAMSIM_INJECT_PIN, "pin" },
	{ DMABUF_IMPORTER_REVOCABLE, VRAMSIM_INJECT_MAP, "map" },
};

#define STEPS		(sizeof(steps) / sizeof(*steps))

static bool nothing_left(const struct dmabuf *buf)
{
	struct drm_vramsim_gem_info info = sim_gem(buf);

	if (!info.attached && !info.mapped && !info.pinned)
		return true;
	diag("  left: attached %u, mapped %u, pinned %u", info.attached, info.mapped, info.pinned);
	return false;
}

static bool works_now(struct dmabuf *buf, uint32_t contract)
{
	int imp = imp_open();
	bool good = !imp_import(imp, buf, contract, 0, SIZE) && imp_works(imp, buf, 0, SIZE, 1);

	close(imp);
	return good && nothing_left(buf);
}

/* What a user may see of the exporter's @error; 0: any errno that has a name. */
static int visible(uint32_t error)
{
	switch (error) {
	case EPROTONOSUPPORT:
	case 524:	/* ENOTSUPP */
		error = EOPNOTSUPP;
		break;
	case 512:	/* ERESTARTSYS and its like: there is no signal to handle */
	case 513:
	case 514:
	case 516:
		error = EINTR;
		break;
	}
	return error <= LAST_USER_ERRNO ? (int)error : 0;
}

/* Errno 1 to 600 from one step.  Each is a test inside one line of TAP. */
static void every_errno(const struct step *step)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	const char *contract = imp_contract(step->contract);
	unsigned int wrong = 0, left = 0, seen[LAST_USER_ERRNO + 1] = { 0 };
	int imp = imp_open();

	for (uint32_t error = 1; error <= 600; error++) {
		int want = visible(error), got;

		if (sim_inject(buf, step->step, 1, error))
			bail("inject");
		got = imp_import(imp, buf, step->contract, 0, SIZE);
		left += !nothing_left(buf);
		if (got < 1 || got > LAST_USER_ERRNO || got == EPROTONOSUPPORT ||
		    (want && got != want)) {
			diag("  %s fails with %u, the user sees %d", step->name, error, got);
			wrong++;
		} else {
			seen[got]++;
		}
		if (!got)
			imp_release(imp);
	}
	is(wrong, 0, "%s: errno 1 to 600 from %s: what the user sees", contract, step->name);
	is(left, 0, "%s: errno 1 to 600 from %s: nothing left", contract, step->name);
	ok(seen[EINTR] >= 5 && seen[EOPNOTSUPP] >= 3, "%s: errno 1 to 600 from %s: translated",
	   contract, step->name);
	sim_inject(buf, step->step, 0, 0);
	ok(works_now(buf, step->contract), "%s: works after all that", contract);
	close(imp);
	dmabuf_free(buf);
}

/* An exporter's mistake: its answer has the wrong sign, so no errno fits. */
static void wrong_sign(const struct step *step)
{
	static const int answers[] = { 1, EIO, 4095 };
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	const char *contract = imp_contract(step->contract);
	int imp = imp_open();

	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		if (sim_inject(buf, step->step, 1, -answers[i]))
			bail("inject");
		is(imp_import(imp, buf, step->contract, 0, SIZE), EIO, "%s: +%d from %s",
		   contract, answers[i], step->name);
		ok(nothing_left(buf), "%s: +%d from %s: nothing left", contract, answers[i],
		   step->name);
	}
	close(imp);
	dmabuf_free(buf);
}

/* @calls: how many calls of the step an import makes */
static void nth_fails(const struct step *step, unsigned int calls)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	const char *contract = imp_contract(step->contract);
	int imp[5], got[5];

	if (sim_inject_nth(buf, step->step, 2 * calls + 1, 2, ENOSPC))
		bail("inject");
	for (int i = 0; i < 5; i++) {
		imp[i] = imp_open();
		got[i] = imp_import(imp[i], buf, step->contract, 0, SIZE);
	}
	ok(!got[0] && !got[1] && got[2] == ENOSPC && got[3] == ENOSPC && !got[4],
	   "%s: %s fails in the third and the fourth import", contract, step->name);
	is(sim_gem(buf).attached, 3, "%s: the others are attached", contract);
	is(sim_gem(buf).mapped, 3, "%s: and mapped", contract);
	for (int i = 0; i < 5; i++) {
		if (!got[i] && !imp_works(imp[i], buf, 0, SIZE, i))
			ok(false, "%s: import %d works", contract, i);
		close(imp[i]);
	}
	ok(nothing_left(buf), "%s: nothing left", contract);
	dmabuf_free(buf);
}

/* A dynamic import that cannot be mapped again after a move. */
static void refault_fails(void)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	int imp = imp_open();

	is(imp_import(imp, buf, DMABUF_IMPORTER_DYNAMIC, 0, SIZE), 0, "refault: import");
	is(imp_unmap(imp), 0, "refault: unmapped");
	sim_inject(buf, VRAMSIM_INJECT_MAP, 2, ENOMEM);
	is(imp_map(imp), ENOMEM, "refault: map fails");
	is(imp_fault_read(imp, 0, &(char){ 0 }, 1), ENOMEM, "refault: and again");
	is(imp_info(imp).map_errors, 2, "refault: both counted");
	ok(sim_gem(buf).attached == 1 && !sim_gem(buf).mapped, "refault: still attached");
	is(imp_map(imp), 0, "refault: the third time it works");
	ok(imp_works(imp, buf, 0, SIZE, 2), "refault: data both ways");
	close(imp);
	ok(nothing_left(buf), "refault: nothing left");
	dmabuf_free(buf);
}

/* A table that ends before the window does; the window that it still covers is fine. */
static void short_table(uint32_t contract)
{
	struct dmabuf_opts opts = { .flags = VRAMSIM_CREATE_SCATTER, .segment_size = 16 * KIB };
	struct dmabuf *buf = rig_vram(SIZE, &opts);
	const char *name = imp_contract(contract);
	int imp = imp_open();

	sim_inject(buf, VRAMSIM_INJECT_SHORT_MAP, 3, 0);
	is(imp_import(imp, buf, contract, 0, SIZE), EINVAL, "%s, short table: refused", name);
	ok(nothing_left(buf), "%s, short table: nothing left", name);
	is(imp_import(imp, buf, contract, SIZE - 16 * KIB, 1), EINVAL,
	   "%s, short table: one byte too long", name);
	is(imp_import(imp, buf, contract, 0, SIZE - 16 * KIB), 0,
	   "%s, short table: long enough for the window", name);
	ok(imp_works(imp, buf, 0, SIZE - 16 * KIB, 3), "%s, short table: data both ways", name);
	close(imp);
	ok(nothing_left(buf), "%s, short table: nothing left after release", name);
	dmabuf_free(buf);
}

static void pin_quota(uint32_t contract)
{
	struct dmabuf *a = rig_vram(SIZE, NULL), *b = rig_vram(SIZE, NULL);
	const char *name = imp_contract(contract);
	int imp_a = imp_open(), imp_b = imp_open();
	struct drm_vramsim_inject quota = {
		.step = VRAMSIM_INJECT_PIN_QUOTA,
		.nth = SIZE / (4 * KIB),
		.count = 1,
	};

	if (sim_inject_device(a, &quota))
		bail("quota");
	is(imp_import(imp_a, a, contract, 0, SIZE), 0, "%s, quota: first import", name);
	is(imp_import(imp_b, b, contract, 0, SIZE), ENOMEM, "%s, quota: used up", name);
	ok(nothing_left(b), "%s, quota: nothing left", name);
	is(imp_release(imp_a), 0, "%s, quota: release the first", name);
	is(imp_import(imp_b, b, contract, 0, SIZE), 0, "%s, quota: then the second", name);
	quota.count = 0;
	if (sim_inject_device(a, &quota))
		bail("quota");
	close(imp_a);
	close(imp_b);
	dmabuf_free(a);
	dmabuf_free(b);
}

static void administrator(uint32_t contract, bool pins)
{
	const char *name = imp_contract(contract);
	struct dmabuf *buf = rig_vram(1 * MIB + SIZE, NULL);
	int imp = imp_open();

	policy_set("pin", "never");
	is(imp_import(imp, buf, contract, 0, SIZE), pins ? EOPNOTSUPP : 0,
	   "%s: pin=never: %s", name, pins ? "refused" : "does not pin");
	if (!pins)
		imp_release(imp);
	ok(nothing_left(buf), "%s: pin=never: nothing left", name);
	policy_set("pin", "auto");
	policy_set("pin_limit_mib", "1");
	is(imp_import(imp, buf, contract, 0, SIZE), pins ? ENOMEM : 0,
	   "%s: pin_limit_mib: %s", name, pins ? "refused" : "does not pin");
	if (!pins)
		imp_release(imp);
	ok(nothing_left(buf), "%s: pin_limit_mib: nothing left", name);
	policy_set("pin_limit_mib", "2");
	is(imp_import(imp, buf, contract, 0, SIZE), 0, "%s: pin_limit_mib: enough", name);
	close(imp);
	policy_set("pin_limit_mib", "0");
	dmabuf_free(buf);
}

/*
 * Allocations that the kernel makes for this thread fail one after the other,
 * the exporter's and dma-buf's own among them, also those that may sleep.
 */
static struct fault_attr sleepers = { .path = "failslab/ignore-gfp-wait", .value = "N" };

#define ALLOCATIONS_MAX	200
#define FATAL_MIN	3	/* the import, its attachment, its table */
#define SWEEPS_MAX	20

struct sweep {
	unsigned int allocations;
	unsigned int fatal;
	unsigned int wrong;
	unsigned int left;
};

/* Each allocation of an import fails in turn, until one has no more of them. */
static void sweep_allocations(int imp, struct dmabuf *buf, uint32_t contract,
			      struct sweep *sweep)
{
	for (unsigned int nth = 1; nth < ALLOCATIONS_MAX; nth++) {
		bool fired;
		int ret;

		fail_nth_arm(nth);
		ret = imp_import(imp, buf, contract, 0, SIZE);
		fired = fail_nth_fired();
		if (!ret)
			imp_release(imp);
		sweep->left += !nothing_left(buf);
		if (!fired)
			return;
		sweep->allocations = nth;
		sweep->fatal += ret == ENOMEM;
		/* EFAULT: the copy of the arguments is one of the things that fail. */
		if (ret && ret != ENOMEM && ret != EFAULT) {
			diag("  allocation %u fails, import gives %s", nth, strerror(ret));
			sweep->wrong++;
		}
	}
}

/*
 * The kernel's checks allocate in between, now more and now less, so that one sweep
 * can pass over an allocation that matters.
 */
static void each_allocation(uint32_t contract, const struct dmabuf_opts *opts, const char *where)
{
	const char *name = imp_contract(contract);
	struct dmabuf *buf = rig_vram(SIZE, opts);
	struct sweep sweep = { 0 };
	unsigned int sweeps = 0;
	int imp = imp_open();

	do
		sweep_allocations(imp, buf, contract, &sweep);
	while (++sweeps < SWEEPS_MAX && sweep.fatal < FATAL_MIN);
	ok(sweep.allocations && sweep.allocations < ALLOCATIONS_MAX - 1 && sweep.fatal >= FATAL_MIN,
	   "%s, %s: %u allocations, %u of them fatal", name, where, sweep.allocations,
	   sweep.fatal);
	is(sweep.wrong, 0, "%s, %s: ENOMEM and nothing else", name, where);
	is(sweep.left, 0, "%s, %s: nothing left each time", name, where);
	ok(works_now(buf, contract), "%s, %s: works after that", name, where);
	close(imp);
	dmabuf_free(buf);
}

/* Pins and maps, step by step: none given back twice, none forgotten. */
static void pin_counts(uint32_t contract, uint32_t pins)
{
	const char *name = imp_contract(contract);
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	int imp[3];

	for (uint32_t i = 0; i < 3; i++) {
		imp[i] = imp_open();
		is(imp_import(imp[i], buf, contract, 0, SIZE), 0, "%s: import %u", name, i + 1);
		is(sim_gem(buf).pinned, (i + 1) * pins, "%s: pins", name);
	}
	is(imp_revoke(imp[0]), 0, "%s: the importer gives the first up", name);
	is(sim_gem(buf).pinned, 2 * pins, "%s: its pins are gone", name);
	is(imp_release(imp[0]), 0, "%s: release it", name);
	is(sim_gem(buf).pinned, 2 * pins, "%s: no pin given back twice", name);
	is(imp_release(imp[1]), 0, "%s: release the second", name);
	is(sim_gem(buf).pinned, pins, "%s: its pins are gone", name);
	is(sim_revoke(buf), 0, "%s: the exporter revokes", name);
	is(sim_gem(buf).pinned, contract == DMABUF_IMPORTER_PINNED ? pins : 0,
	   "%s: pins after that", name);
	is(imp_release(imp[2]), 0, "%s: release the third", name);
	ok(nothing_left(buf), "%s: nothing left", name);
	for (int i = 0; i < 3; i++)
		close(imp[i]);
	dmabuf_free(buf);
}

int main(void)
{
	struct dmabuf_opts system = { .system = true };
	struct counters start;
	bool kernel_moves;

	imp_setup();
	kernel_moves = imp_kernel_moves();
	fail_nth_there();	/* its file counts among the open ones */
	counters_get(&start);

	for (size_t i = 0; i < STEPS; i++) {
		every_errno(&steps[i]);
		if (steps[i].step != VRAMSIM_INJECT_MAP)
			wrong_sign(&steps[i]);
		/* A kernel that pins what it maps pins twice. */
		nth_fails(&steps[i], steps[i].step == VRAMSIM_INJECT_PIN ? 1 + !kernel_moves : 1);
		ok(counters_back(&start, 0), "%s, %s: counters are back",
		   imp_contract(steps[i].contract), steps[i].name);
	}
	if (!kernel_moves) {
		const struct step implicit = {
			DMABUF_IMPORTER_DYNAMIC, VRAMSIM_INJECT_PIN, "pin inside map",
		};

		every_errno(&implicit);
		wrong_sign(&implicit);
		nth_fails(&implicit, 1);
	}
	refault_fails();
	for (uint32_t contract = 0; contract < IMP_CONTRACTS; contract++) {
		bool pins = contract != DMABUF_IMPORTER_DYNAMIC;

		short_table(contract);
		administrator(contract, pins || !kernel_moves);
		pin_counts(contract, pins + !kernel_moves);
		if (pins)
			pin_quota(contract);
	}
	ok(counters_back(&start, 0), "counters are back");

	if (fail_nth_there()) {
		fault_attrs_set(&sleepers, 1);
		for (uint32_t contract = 0; contract < IMP_CONTRACTS; contract++) {
			each_allocation(contract, NULL, "VRAM");
			each_allocation(contract, &system, "system memory");
		}
		fault_attrs_restore(&sleepers, 1);
		ok(counters_back(&start, 0), "counters are back");
	} else {
		skip("each allocation fails", "this kernel has no failslab");
	}
	return tap_done();
}
