// SPDX-License-Identifier: GPL-2.0
/*
 * Whatever an exporter answers, errno 1 to 600, at attach, pin, map or vmap, the
 * application sees an errno that has a name, and never EPROTONOSUPPORT, which
 * would mean that the kernel does not know the call.  An answer of the wrong sign
 * is an EIO.
 */
#include <errno.h>

#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE	(4 * KIB)
#define IOVA	0xb00000000ull
#define LAST_ANSWER	600
#define LAST_POSITIVE	4095
#define KERNEL_ENOTSUPP	524
#define KERNEL_RESTART_FIRST	512	/* ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND */

/* What an application must see for @answer of attach or pin; 0: any errno with a name. */
static int wanted(int answer)
{
	if (answer == EPROTONOSUPPORT || answer == KERNEL_ENOTSUPP)
		return EOPNOTSUPP;
	if (answer == KERNEL_RESTART_FIRST)
		return EINTR;
	return answer <= EHWPOISON ? answer : 0;
}

/* The number of answers of @step that came through wrongly. */
static int sweep(struct rig *rig, struct dmabuf *buf, uint32_t step, bool passed_on)
{
	int wrong = 0;
	struct mr mr;

	for (int answer = 1; answer <= LAST_ANSWER; answer++) {
		int want = passed_on ? wanted(answer) : 0, seen;

		if (sim_inject(buf, step, 1, answer))
			bail("cannot inject");
		seen = rig_reg(rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr);
		if (!seen)
			mr_dereg(&mr);
		if (want ? seen == want :
		    seen > 0 && seen <= EHWPOISON && seen != EPROTONOSUPPORT)
			continue;
		if (++wrong <= 10)
			diag("  answer %d: errno %d", answer, seen);
	}
	sim_inject(buf, step, 0, 0);
	return wrong;
}

/* The same for answers of the wrong sign, which no errno fits. */
static int sweep_positive(struct rig *rig, struct dmabuf *buf, uint32_t step)
{
	int wrong = 0;
	struct mr mr;

	for (int answer = 1; answer <= LAST_POSITIVE; answer *= 2) {
		if (sim_inject(buf, step, 1, -answer))
			bail("cannot inject");
		wrong += rig_reg(rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr) != EIO;
	}
	sim_inject(buf, step, 0, 0);
	return wrong;
}

int main(void)
{
	static const struct dmabuf_opts fixed = { .flags = VRAMSIM_CREATE_STATIC };
	static const struct {
		const char *name;
		uint32_t step;
		bool is_static;
		bool passed_on;	/* the dma-buf core hands it on */
	} rows[] = {
		{ "attach", VRAMSIM_INJECT_ATTACH, false, true },
		{ "attach of a static exporter", VRAMSIM_INJECT_ATTACH, true, true },
		{ "pin", VRAMSIM_INJECT_PIN, false, true },
		{ "pin inside attach of a static exporter", VRAMSIM_INJECT_PIN, true, true },
		{ "map", VRAMSIM_INJECT_MAP, false, true },
		{ "map of a static exporter", VRAMSIM_INJECT_MAP, true, true },
		{ "vmap", VRAMSIM_INJECT_VMAP, false, false },
		{ "vmap of a static exporter", VRAMSIM_INJECT_VMAP, true, false },
	};
	struct counters start;
	struct rig rig;
	struct mr mr;

	rig_up(&rig);
	if (!rig.traits.ours)
		tap_skip_all("the kernel's own code passes everything on");
	counters_get(&start);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct dmabuf_opts *opts = rows[i].is_static ? &fixed : NULL;
		struct counters before;
		struct dmabuf *buf;

		if (!rig_takes_step(&rig, rows[i].step, opts ? opts->flags : 0))
			continue;
		buf = rig_vram(SIZE, opts);
		counters_get(&before);
		is(sweep(&rig, buf, rows[i].step, rows[i].passed_on), 0,
		   "%s answers 1 to %d: each errno is right", rows[i].name, LAST_ANSWER);
		/* Of a map, the dma-buf core knows a pointer only, good or not. */
		if (rows[i].passed_on && rows[i].step != VRAMSIM_INJECT_MAP)
			is(sweep_positive(&rig, buf, rows[i].step), 0,
			   "%s answers with the wrong sign: EIO", rows[i].name);
		ok(counters_back(&before, 0), "%s: nothing left", rows[i].name);
		is(rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr), 0, "%s: now it succeeds",
		   rows[i].name);
		ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE), "%s: and works", rows[i].name);
		mr_dereg(&mr);
		dmabuf_free(buf);
	}
	ok(counters_back(&start, 1000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
