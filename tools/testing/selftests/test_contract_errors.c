// SPDX-License-Identifier: GPL-2.0
/*
 * Each row of the contract's error table: what a bad registration gets, in which
 * order things are checked, that nothing is left behind, and which layer is
 * named as the one that refused.
 *
 * Two rows have files of their own: test_signal and test_failslab.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "refusal.h"
#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE		(64 * KIB)
#define IOVA		0x100000000ull
#define RELAXED		IBV_ACCESS_RELAXED_ORDERING
#define GOOD_FLAGS	(RIG_ACCESS | RELAXED)

static struct rig rig;
static struct dmabuf *vram;

static int attempt(const struct mr_reg *reg)
{
	struct mr mr;
	int err = mr_reg(reg, &mr);

	if (!err && mr_dereg(&mr))
		bail("cannot deregister");
	return err;
}

/*
 * A registration that is refused by @layer (NULL: by the uverbs core, before
 * there is anyone to leave a trace) with @want, and leaves nothing.  The kernel's own
 * code leaves no trace at all.
 */
static void refused(const struct mr_reg *reg, int want, const char *layer, const char *name)
{
	struct counters before;
	int err;

	if (!rig.traits.ours)
		layer = NULL;
	counters_get(&before);
	if (layer && refusal_listen())
		bail("no tracepoint of refusals");
	err = attempt(reg);
	is(err, want, "%s: %s", name, strerrorname_np(want));
	if (layer && !ok(!strcmp(refusal_layer(), layer), "%s: refused by '%s'", name, layer))
		diag("  it was '%s'", refusal_layer());
	ok(counters_back(&before, 0), "%s: nothing left", name);
}

static struct mr_reg good(void)
{
	return rig_reg_args(&rig, dmabuf_fd(vram), 0, SIZE, IOVA, RIG_ACCESS);
}

static void test_arguments(void)
{
	static const struct {
		const char *name;
		uint64_t offset, length, iova;
		const char *layer;
	} rows[] = {
		{ "offset 100, iova ..200", 100, 4096, IOVA + 200, "arguments" },
		{ "offset 0, iova ..001", 0, 4096, IOVA + 1, "arguments" },
		{ "offset 4095, iova ..000", 4095, 1, IOVA, "arguments" },
		{ "offset ULONG_MAX - 4095, length 8192", ULONG_MAX - 4095, 8192, IOVA, "arguments" },
		{ "offset 1 page, length ULONG_MAX", 4096, ULONG_MAX, IOVA, "arguments" },
		{ "length = size + 1", 0, SIZE + 1, IOVA, "window" },
		{ "last byte + 1", SIZE - 1, 2, IOVA + 4095, "window" },
		{ "offset = size", SIZE, 1, IOVA, "window" },
		{ "offset 1 TiB", 1024 * GIB, 4096, IOVA, "window" },
		{ "length 1 TiB", 0, 1024 * GIB, IOVA, "window" },
		{ "length 0", 0, 0, IOVA, "window" },
		{ "length 0, offset not on a page", 100, 0, IOVA + 100, "window" },
		{ "length 0, offset = size", SIZE, 0, IOVA, "window" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct mr_reg reg = good();

		reg.offset = rows[i].offset;
		reg.length = rows[i].length;
		reg.iova = rows[i].iova;
		refused(&reg, EINVAL, rows[i].layer, rows[i].name);
	}
}

static void test_accepted(void)
{
	static const struct {
		const char *name;
		uint64_t offset, length;
	} rows[] = {
		{ "whole buffer", 0, SIZE },
		{ "first byte", 0, 1 },
		{ "last byte", SIZE - 1, 1 },
		{ "from byte 1 to the end", 1, SIZE - 1 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct mr_reg reg = good();

		reg.offset = rows[i].offset;
		reg.length = rows[i].length;
		reg.iova = IOVA + rows[i].offset % 4096;
		is(attempt(&reg), 0, "accepted: %s", rows[i].name);
	}
}

/* All 32 subsets of the five good flags, then each bit that is not one of them. */
static void test_flags(void)
{
	static const uint32_t bits[] = {
		IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE,
		IBV_ACCESS_REMOTE_ATOMIC, RELAXED,
	};
	struct mr_reg reg = good();

	for (uint32_t subset = 0; subset < 32; subset++) {
		bool needs_local;
		int want;

		reg.access = 0;
		for (int i = 0; i < 5; i++)
			if (subset >> i & 1)
				reg.access |= bits[i];
		needs_local = reg.access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
		want = needs_local && !(reg.access & IBV_ACCESS_LOCAL_WRITE) ? EINVAL : 0;
		is(attempt(&reg), want, "flags %#x: %s", reg.access,
		   want ? "EINVAL, remote change without LOCAL_WRITE" : "accepted");
	}
	for (int bit = 0; bit < 32; bit++) {
		char name[48];

		if (GOOD_FLAGS & 1u << bit)
			continue;
		reg.access = RIG_ACCESS | 1u << bit;
		snprintf(name, sizeof(name), "flag of bit %d", bit);
		refused(&reg, EINVAL, "arguments", name);
	}
}

/* A number that is a file descriptor no more */
static int closed_fd(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	close(fd);
	return fd;
}

static void test_fds(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), event = eventfd(0, EFD_CLOEXEC);
	struct mr_reg reg = good();
	int stdin_copy;

	reg.fd = -1;
	refused(&reg, EBADF, "file descriptor", "fd -1");
	reg.fd = INT_MAX;
	refused(&reg, EBADF, "file descriptor", "fd INT_MAX");
	reg.fd = closed_fd();
	refused(&reg, EBADF, "file descriptor", "closed fd");
	reg.fd = null;
	refused(&reg, EINVAL, "file descriptor", "/dev/null");
	reg.fd = event;
	refused(&reg, EINVAL, "file descriptor", "eventfd");
	reg.fd = dmabuf_drm_fd(vram);
	refused(&reg, EINVAL, "file descriptor", "render node");
	reg.fd = rig.ctx->cmd_fd;
	refused(&reg, EINVAL, "file descriptor", "the device's own file");
	close(null);
	close(event);

	stdin_copy = dup(0);
	dup2(dmabuf_fd(vram), 0);
	reg.fd = 0;
	is(attempt(&reg), 0, "fd 0 is a number like others");
	if (stdin_copy >= 0) {
		dup2(stdin_copy, 0);
		close(stdin_copy);
	} else {
		close(0);
	}
}

/* Two faults at once: the errno tells which is looked at first. */
static void test_order(void)
{
	struct mr_reg reg = good();

	reg.fd = -1;
	reg.iova += 1;
	refused(&reg, EINVAL, "arguments", "iova is checked before the fd");
	reg = good();
	reg.fd = -1;
	reg.access = IBV_ACCESS_REMOTE_WRITE;
	refused(&reg, EINVAL, "arguments", "flags are checked before the fd");
	reg.access = 1u << 31;
	refused(&reg, EINVAL, "arguments", "unknown flags are checked before the fd");
	reg = good();
	reg.fd = -1;
	reg.offset = ULONG_MAX - 4095;
	reg.length = 8192;
	refused(&reg, EINVAL, "arguments", "overflow is checked before the fd");
	reg = good();
	reg.fd = -1;
	reg.length = 0;
	refused(&reg, EBADF, "file descriptor", "the fd is checked before length 0");
	reg.length = SIZE + 1;
	refused(&reg, EBADF, "file descriptor", "the fd is checked before the window");

	/* The window is the importer's matter, and comes before the exporter is asked. */
	reg = good();
	reg.length = SIZE + 1;
	sim_inject(vram, VRAMSIM_INJECT_ATTACH, 1, ENOSPC);
	refused(&reg, EINVAL, "window", "the window is checked before attach");
	sim_inject(vram, VRAMSIM_INJECT_ATTACH, 0, 0);
}

static void test_attributes(void)
{
	static const struct {
		int attr;
		const char *name;
	} mandatory[] = {
		{ UVERBS_ATTR_REG_DMABUF_MR_HANDLE, "no HANDLE" },
		{ UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, "no PD_HANDLE" },
		{ UVERBS_ATTR_REG_DMABUF_MR_OFFSET, "no OFFSET" },
		{ UVERBS_ATTR_REG_DMABUF_MR_LENGTH, "no LENGTH" },
		{ UVERBS_ATTR_REG_DMABUF_MR_IOVA, "no IOVA" },
		{ UVERBS_ATTR_REG_DMABUF_MR_FD, "no FD" },
		{ UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, "no RESP_LKEY" },
		{ UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, "no RESP_RKEY" },
	};
	struct ibv_pd no_pd = *rig.pair.b.pd;
	struct mr_reg reg;
	char byte;
	struct mr mr;

	for (size_t i = 0; i < sizeof(mandatory) / sizeof(*mandatory); i++) {
		reg = good();
		reg.omit = 1u << mandatory[i].attr;
		refused(&reg, EINVAL, NULL, mandatory[i].name);
	}

	reg = good();
	no_pd.handle = 0xfffff;
	reg.pd = &no_pd;
	refused(&reg, ENOENT, NULL, "unknown PD");
	reg = good();
	reg.driver_id += 1;
	refused(&reg, EINVAL, NULL, "another driver's id");

	reg = good();
	reg.omit = 1u << UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS;
	is(mr_reg(&reg, &mr), 0, "no ACCESS_FLAGS: accepted");
	is(rig_write(&rig, &mr, IOVA, "x", 1), IBV_WC_REM_ACCESS_ERR,
	   "no ACCESS_FLAGS: no remote write");
	is(rig_read(&rig, &mr, IOVA, &byte, 1), IBV_WC_REM_ACCESS_ERR,
	   "no ACCESS_FLAGS: no remote read");
	mr_dereg(&mr);
}

static const char *step_name(uint32_t step)
{
	for (size_t i = 0; i < RIG_STEPS; i++)
		if (rig_steps[i].step == step)
			return rig_steps[i].name;
	return "";
}

static void test_exporter_refuses(void)
{
	static const struct {
		uint32_t answer;
		int want;
		bool internal;	/* the kernel's own code passes it on as it is */
	} errors[] = {
		{ EPERM, EPERM, false }, { ENOMEM, ENOMEM, false }, { EBUSY, EBUSY, false },
		{ ENODEV, ENODEV, false }, { EINVAL, EINVAL, false }, { ENOSPC, ENOSPC, false },
		{ EOPNOTSUPP, EOPNOTSUPP, false }, { 524 /* ENOTSUPP */, EOPNOTSUPP, true },
		{ EPROTONOSUPPORT, EOPNOTSUPP, true },
		{ 512 /* ERESTARTSYS, and no signal */, EINTR, true },
	};
	struct mr_reg reg = good();

	for (size_t s = 0; s < RIG_STEPS; s++) {
		const struct rig_step *step = &rig_steps[s];

		if (!rig_takes_step(&rig, step->step, 0))
			continue;
		for (size_t e = 0; e < sizeof(errors) / sizeof(*errors); e++) {
			int want = errors[e].want;
			char name[64];

			if (errors[e].internal && !rig.traits.ours)
				continue;
			/* A kernel mapping that fails is NULL on this line: the cause is lost. */
			if (step->step == VRAMSIM_INJECT_VMAP)
				want = step->seen;
			snprintf(name, sizeof(name), "%s answers %u", step->name,
				 errors[e].answer);
			if (sim_inject(vram, step->step, 1, errors[e].answer))
				bail("cannot inject");
			refused(&reg, want, step->name, name);
		}
		is(attempt(&reg), 0, "%s answers nothing wrong: accepted", step->name);
	}
}

/* A software device has no use for DMA addresses, any other none for a kernel mapping. */
static void test_exporter_not_asked(void)
{
	struct mr_reg reg = good();

	for (size_t s = 0; s < RIG_STEPS; s++) {
		if (rig_takes_step(&rig, rig_steps[s].step, 0))
			continue;
		sim_inject(vram, rig_steps[s].step, 1, EIO);
		is(attempt(&reg), 0, "%s would fail: never asked for, accepted",
		   rig_steps[s].name);
		sim_inject(vram, rig_steps[s].step, 0, 0);
	}
}

/* Each lacks what only some devices need. */
static void test_kinds_of_exporter(void)
{
	static const struct {
		const char *name;
		struct dmabuf_opts opts;
		uint32_t lacks;
	} rows[] = {
		{ "exporter without vmap", { .flags = VRAMSIM_CREATE_NO_VMAP },
		  VRAMSIM_INJECT_VMAP },
		{ "static exporter without vmap",
		  { .flags = VRAMSIM_CREATE_NO_VMAP | VRAMSIM_CREATE_STATIC },
		  VRAMSIM_INJECT_VMAP },
		{ "sparse buffer", { .flags = VRAMSIM_CREATE_SPARSE }, VRAMSIM_INJECT_VMAP },
		{ "exporter that refuses to pin", { .pin = VRAMSIM_PIN_REFUSE },
		  VRAMSIM_INJECT_PIN },
	};
	struct dmabuf *buf;
	struct mr_reg reg;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		buf = rig_vram(SIZE, &rows[i].opts);
		reg = good();
		reg.fd = dmabuf_fd(buf);
		if (rig_takes_step(&rig, rows[i].lacks, rows[i].opts.flags))
			refused(&reg, EOPNOTSUPP, step_name(rows[i].lacks), rows[i].name);
		else
			is(attempt(&reg), 0, "accepted: %s", rows[i].name);
		dmabuf_free(buf);
	}

	buf = rig_vram(SIZE, NULL);
	is(sim_revoke(buf), 0, "a buffer is revoked before registration");
	reg = good();
	reg.fd = dmabuf_fd(buf);
	refused(&reg, ENODEV, "attach", "revoked buffer");
	dmabuf_free(buf);
}

/* Adapters have page tables: a segment that ends inside a page can only be the last. */
static void test_short_map(void)
{
	static const struct dmabuf_opts scattered = {
		.flags = VRAMSIM_CREATE_SCATTER, .segment_size = 4096, .seed = 5,
	};
	struct dmabuf *buf = rig_vram(SIZE, &scattered);
	struct mr_reg reg = good();

	if (rig_takes_step(&rig, VRAMSIM_INJECT_MAP, 0) && rig.traits.ours) {
		reg.fd = dmabuf_fd(buf);
		sim_inject(buf, VRAMSIM_INJECT_SHORT_MAP, 1, 0);
		refused(&reg, EINVAL, "short list", "a list that lacks the last segment");
		sim_inject(vram, VRAMSIM_INJECT_SHORT_MAP, 1, 0);
		reg.fd = dmabuf_fd(vram);
		refused(&reg, EINVAL, "short list", "a list that lacks the last page");
		reg.length = SIZE - 4096;
		sim_inject(vram, VRAMSIM_INJECT_SHORT_MAP, 1, 0);
		is(attempt(&reg), 0, "accepted: a list that lacks a page behind the window");
		reg.length = SIZE;
		is(attempt(&reg), 0, "accepted: the same when it is whole");
	}
	dmabuf_free(buf);
}

static void test_advise(void)
{
	struct mr_reg reg = good();
	struct mr mr;
	int want = rig.traits.advises ? 0 : EOPNOTSUPP;

	is(mr_reg(&reg, &mr), 0, "register for advise_mr");
	is(mr_advise(&mr, reg.pd, IOVA, 4096), want, "advise_mr: %s",
	   want ? strerrorname_np(want) : "done");
	ok(rig_works(&rig, &mr, IOVA, vram, 0, 4096), "advise_mr: the MR works on");
	mr_dereg(&mr);
}

int main(void)
{
	struct counters start;

	rig_up(&rig);
	counters_get(&start);
	vram = rig_vram(SIZE, NULL);

	test_accepted();
	test_arguments();
	test_flags();
	test_fds();
	test_order();
	test_attributes();
	test_exporter_refuses();
	test_exporter_not_asked();
	test_kinds_of_exporter();
	test_short_map();
	test_advise();

	dmabuf_free(vram);
	ok(counters_back(&start, 1000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
