// SPDX-License-Identifier: GPL-2.0
/*
 * K11: buffers around 4 GiB and beyond, in one piece and in segments.  Needs a
 * guest with a big, lazily backed BAR (--gpu 64G); what does not fit is skipped.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "rig.h"
#include "sim.h"
#include "tap.h"

#define IOVA	0x10000000000ull
#define PAGE	4096

static struct rig rig;

static uint64_t vram_free(void)
{
	struct counters now;

	counters_get(&now);
	return now.vram_free;
}

/* Data at one page before and one behind @border, and across it */
static void test_border(const struct mr *mr, struct dmabuf *buf, uint64_t border, const char *name)
{
	uint64_t start = border > PAGE ? border - PAGE : 0;
	uint64_t end = border + PAGE < dmabuf_size(buf) ? border + PAGE : dmabuf_size(buf);

	ok(rig_works(&rig, mr, IOVA + start, buf, start, end - start),
	   "%s: data around byte %#" PRIx64, name, border);
}

static void test_size(uint64_t size, uint64_t segment, const char *name)
{
	const struct dmabuf_opts opts = {
		.segment_size = segment,
		/* Not cleared: a page of the host's memory is taken when it is written to. */
		.flags = VRAMSIM_CREATE_UNCLEARED | (segment ? VRAMSIM_CREATE_SCATTER : 0),
		.seed = 11,
	};
	struct counters before;
	struct dmabuf *buf;
	uint8_t byte;
	struct mr mr;
	int err;

	if (size > vram_free()) {
		skip(name, "VRAM has %" PRIu64 " MiB free, run it with --gpu 64G",
		     vram_free() >> 20);
		return;
	}
	counters_get(&before);
	buf = rig_vram(size, &opts);

	/* The bigger the mapping, the more there is to undo. */
	sim_inject(buf, rig.traits.by_cpu ? VRAMSIM_INJECT_VMAP : VRAMSIM_INJECT_MAP, 1, ENOMEM);
	is(rig_reg(&rig, dmabuf_fd(buf), 0, size, IOVA, &mr), ENOMEM,
	   "%s: ENOMEM from the exporter is passed on", name);

	err = rig_reg(&rig, dmabuf_fd(buf), 0, size, IOVA, &mr);
	if (is(err, 0, "%s: register", name)) {
		test_border(&mr, buf, 0, name);
		for (int shift = 30; 1ull << shift < size; shift++)
			test_border(&mr, buf, 1ull << shift, name);
		if (segment) {
			test_border(&mr, buf, segment, name);
			test_border(&mr, buf, size / 2 / segment * segment, name);
			test_border(&mr, buf, (size - 1) / segment * segment, name);
		}
		test_border(&mr, buf, size, name);
		is(rig_read(&rig, &mr, IOVA + size, &byte, 1), IBV_WC_REM_ACCESS_ERR,
		   "%s: the byte behind it is refused", name);
		is(mr_dereg(&mr), 0, "%s: deregister", name);
	}

	/* A window that starts beyond 32 bits */
	if (size > 4 * GIB) {
		uint64_t offset = 4 * GIB - PAGE + 8;

		is(rig_reg(&rig, dmabuf_fd(buf), offset, size - offset, IOVA + 8, &mr), 0,
		   "%s: register from 4 GiB - 4088 on", name);
		ok(rig_works(&rig, &mr, IOVA + 8, buf, offset,
			     size - offset > MIB ? MIB : size - offset),
		   "%s: data in that window", name);
		is(mr_dereg(&mr), 0, "%s: deregister it", name);
	}
	dmabuf_free(buf);
	ok(counters_back(&before, 1000), "%s: all counters back", name);
}

/* Translation only: no CPU can reach it, so a software device refuses. An adapter can. */
static void test_sparse(uint64_t size, const char *name)
{
	const struct dmabuf_opts opts = { .flags = VRAMSIM_CREATE_SPARSE };
	struct dmabuf *buf = rig_vram(size, &opts);
	struct mr mr;

	if (rig.traits.by_cpu) {
		is(rig_reg(&rig, dmabuf_fd(buf), 0, size, IOVA, &mr), EOPNOTSUPP,
		   "sparse buffer of %s: EOPNOTSUPP", name);
	} else if (is(rig_reg(&rig, dmabuf_fd(buf), 0, size, IOVA, &mr), 0,
		      "sparse buffer of %s: register", name)) {
		is(rig_write(&rig, &mr, IOVA + size - 1, "x", 1), IBV_WC_SUCCESS,
		   "sparse buffer of %s: its last byte is reached", name);
		is(rig_write(&rig, &mr, IOVA + size, "x", 1), IBV_WC_REM_ACCESS_ERR,
		   "sparse buffer of %s: the one behind is not", name);
		is(mr_dereg(&mr), 0, "sparse buffer of %s: deregister", name);
	}
	dmabuf_free(buf);
}

int main(void)
{
	static const struct {
		const char *name;
		uint64_t size, segment;
	} rows[] = {
		{ "64 MiB in 4 KiB segments", 64 * MIB, 4 * KIB },
		{ "64 MiB in 64 KiB segments", 64 * MIB, 64 * KIB },
		{ "64 MiB in 2 MiB segments", 64 * MIB, 2 * MIB },
		{ "128 MiB", 128 * MIB, 0 },
		{ "4 GiB - 4 KiB", 4 * GIB - PAGE, 0 },
		{ "4 GiB", 4 * GIB, 0 },
		{ "4 GiB + 4 KiB", 4 * GIB + PAGE, 0 },
		{ "4 GiB + 4 KiB in 2 MiB segments", 4 * GIB + PAGE, 2 * MIB },
		{ "12 GiB in segments of 4 GiB - 4 KiB", 12 * GIB, 4 * GIB - PAGE },
	};
	struct counters start;

	rig_up(&rig);
	counters_get(&start);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		test_size(rows[i].size, rows[i].segment, rows[i].name);
	test_sparse(12 * GIB, "12 GiB");
	test_sparse(1024 * GIB, "1 TiB");
	ok(counters_back(&start, 1000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
