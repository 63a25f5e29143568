// SPDX-License-Identifier: GPL-2.0
/*
 * The first, the second, ... allocation or copy from user space inside a
 * registration fails, until there is none left to fail: each time the errno of
 * that failure comes out and all earlier steps are undone.  The same for
 * deregistration and rereg, which may fail only as long as the MR is whole.  And page
 * faults that find no memory come again, and end well.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fail_nth.h"
#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE	(256 * KIB)
#define IOVA	0xe00000000ull
#define NTH_MAX	5000
#define FATAL	10
#define SWEEPS_MAX	20
#define FAULTS		40

static struct rig rig;

/* Sleeping allocations fail, too, and nobody prints a stack for each. */
static const struct {
	const char *path;
	const char *value;
} settings[] = {
	{ "failslab/ignore-gfp-wait", "N" },
	{ "failslab/verbose", "0" },
	{ "fail_page_alloc/ignore-gfp-wait", "N" },
	{ "fail_page_alloc/ignore-gfp-highmem", "N" },
	{ "fail_page_alloc/min-order", "0" },
	{ "fail_page_alloc/verbose", "0" },
	{ "fail_usercopy/verbose", "0" },
};

#define SETTINGS	(sizeof(settings) / sizeof(*settings))
static char saved[SETTINGS][32];

static bool exchange(size_t i, const char *value, char *old)
{
	char path[128];
	FILE *f;
	bool good;

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s", settings[i].path);
	f = fopen(path, "r");
	good = f && (!old || fgets(old, sizeof(saved[i]), f));
	if (f)
		fclose(f);
	f = good ? fopen(path, "w") : NULL;
	if (!f)
		return false;
	fputs(value, f);
	return !fclose(f);
}

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

/* A rereg that fails has changed nothing. */
static void test_rereg(struct dmabuf *buf, const char *name)
{
	int refused = 0, wrong = 0, nth;
	struct mr mr;

	if (rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr))
		bail("cannot register");
	for (nth = 1; nth < NTH_MAX; nth++) {
		int err, want = IBV_WC_REM_ACCESS_ERR;
		bool hit;

		fail_nth_arm(nth);
		err = mr_rereg(&mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, 0, 0, 0,
			       IBV_ACCESS_LOCAL_WRITE);
		hit = fail_nth_fired();
		if (err) {
			refused++;
			want = IBV_WC_SUCCESS;
		}
		if ((err && (!hit || !expected(err))) ||
		    rig_write(&rig, &mr, IOVA, "x", 1) != want ||
		    (!err && mr_rereg(&mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, 0, 0, 0,
				      RIG_ACCESS))) {
			diag("  failure %d: errno %d", nth, err);
			wrong++;
		}
		if (!hit)
			break;
	}
	diag("%s: rereg: %d failures, %d made it fail", name, nth - 1, refused);
	ok(nth < NTH_MAX && nth > 1, "%s: each allocation of a rereg has failed once", name);
	is(wrong, 0, "%s: rights change or they do not", name);
	is(mr_dereg(&mr), 0, "%s: deregister", name);
}

static void fail_everywhere(bool on)
{
	static const char *const paths[] = {
		"/sys/kernel/debug/failslab/probability",
		"/sys/kernel/debug/fail_page_alloc/probability",
		"/sys/kernel/debug/failslab/times",
		"/sys/kernel/debug/fail_page_alloc/times",
	};
	static int fds[4];

	/* Open beforehand: to open them is to allocate. */
	for (int i = 0; i < 4; i++)
		if (!fds[i])
			fds[i] = open(paths[i], O_WRONLY | O_CLOEXEC);
	for (int i = on ? 3 : 0; on ? i >= 0 : i < 4; i += on ? -1 : 1) {
		const char *value = i < 2 ? on ? "30" : "0" : on ? "-1" : "1";

		for (int tries = 0; pwrite(fds[i], value, strlen(value), 0) < 0; tries++)
			if (tries == 1000)
				bail("%s: %s", paths[i], strerror(errno));
	}
}

/*
 * The page fault of a WRITE is served by a kernel thread, so that allocations have to
 * fail for all; the WRITE itself needs none of this process.
 */
static void test_fault(struct dmabuf *buf, const char *name)
{
	static uint8_t sent[4096], seen[4096];
	struct ibv_sge sge = { (uintptr_t)rig.host, sizeof(sent), rig.host_mr->lkey };
	int failed = 0, differs = 0;
	uint64_t state = 31;
	struct mr mr;

	if (rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr))
		bail("cannot register");
	fail_everywhere(false);
	for (int round = 0; round < FAULTS; round++) {
		uint64_t deadline = now_ms() + 30000;
		struct ibv_wc wc;
		int got = 0;

		for (size_t i = 0; i < sizeof(sent); i++)
			sent[i] = random_next(&state);
		memcpy(rig.host, sent, sizeof(sent));
		if (sim_move(buf, VRAMSIM_PLACEMENT_VRAM, VRAMSIM_MOVE_SHUFFLE, 0))
			bail("cannot move");
		fail_everywhere(true);
		if (rc_post(&rig.pair.a, IBV_WR_RDMA_WRITE, &sge, IOVA, mr.rkey))
			bail("%s: %s", rc_failed_call(), strerror(errno));
		while (!got && now_ms() < deadline)
			got = ibv_poll_cq(rig.pair.a.cq, 1, &wc);
		fail_everywhere(false);
		if (got != 1 || wc.status) {
			diag("  fault %d: %s", round, got == 1 ? ibv_wc_status_str(wc.status) :
			     "no completion");
			failed++;
			if (rc_pair_reconnect(&rig.pair))
				bail("%s: %s", rc_failed_call(), strerror(errno));
		} else if (dmabuf_read(buf, 0, seen, sizeof(seen)) ||
			   memcmp(sent, seen, sizeof(sent))) {
			differs++;
		}
	}
	is(failed, 0, "%s: %d page faults without memory: none fails", name, FAULTS);
	is(differs, 0, "%s: and the data is right", name);
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
	for (size_t i = 0; i < SETTINGS; i++)
		if (!exchange(i, settings[i].value, saved[i]))
			bail("cannot set %s", settings[i].path);

	if (rig.traits.follows) {
		struct dmabuf *buf = rig_vram(SIZE, NULL);

		test_fault(buf, "VRAM");
		dmabuf_free(buf);
	}
	test_kind(rig_vram(SIZE, NULL), "VRAM");
	test_kind(rig_vram(SIZE, &in_system), "system memory");
	test_kind(rig_vram(SIZE, &fixed), "static exporter");
	vgem = rig_vgem(SIZE);
	if (vgem)
		test_kind(vgem, "vgem");
	else
		skip("vgem", "no vgem in this kernel");

	for (size_t i = 0; i < SETTINGS; i++)
		exchange(i, saved[i], NULL);
	ok(counters_back(&start, 1000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
