// SPDX-License-Identifier: GPL-2.0
/*
 * K03: a sub-allocation is registered at its offset, and that offset only: what
 * is written lands in the window byte for byte, and nothing beside it changes.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE		(1 * MIB)
#define WINDOW		(8 * KIB)
#define BACKGROUND	0xa5
#define IOVA		0x7f0000000000ull

static struct rig rig;
static uint8_t window[WINDOW], got[WINDOW], whole[SIZE];

static bool all_background(const uint8_t *bytes, uint64_t length)
{
	for (uint64_t i = 0; i < length; i++) {
		if (bytes[i] != BACKGROUND) {
			diag("  byte %" PRIu64 " is %#x", i, bytes[i]);
			return false;
		}
	}
	return true;
}

static void test_offset(struct dmabuf *buf, uint64_t offset, uint64_t length, uint64_t iova)
{
	static uint64_t state = 3;
	const char *name = dmabuf_exporter(buf);
	char seen;
	struct mr mr;

	dmabuf_fill(buf, 0, BACKGROUND, SIZE);
	for (uint64_t i = 0; i < length; i++)
		window[i] = random_next(&state);
	if (!is(rig_reg(&rig, dmabuf_fd(buf), offset, length, iova, &mr), 0,
		"%s: register offset %" PRIu64 ", length %" PRIu64 ", iova %#" PRIx64, name,
		offset, length, iova))
		return;

	is(rig_write(&rig, &mr, iova, window, length), IBV_WC_SUCCESS,
	   "%s: offset %" PRIu64 ": WRITE", name, offset);
	if (dmabuf_read(buf, 0, whole, SIZE))
		bail("cannot look at the buffer");
	ok(!memcmp(whole + offset, window, length),
	   "%s: offset %" PRIu64 ": the window has the data", name, offset);
	ok(all_background(whole, offset),
	   "%s: offset %" PRIu64 ": nothing before it changed", name, offset);
	ok(all_background(whole + offset + length, SIZE - offset - length),
	   "%s: offset %" PRIu64 ": nothing behind it changed", name, offset);
	is(rig_read(&rig, &mr, iova, got, length), IBV_WC_SUCCESS,
	   "%s: offset %" PRIu64 ": READ", name, offset);
	ok(!memcmp(got, window, length), "%s: offset %" PRIu64 ": READ brings the window", name,
	   offset);

	/* One byte outside, on both sides, is not the MR's. */
	is(rig_write(&rig, &mr, iova - 1, "x", 1), IBV_WC_REM_ACCESS_ERR,
	   "%s: offset %" PRIu64 ": the byte before is refused", name, offset);
	is(rig_read(&rig, &mr, iova + length, &seen, 1), IBV_WC_REM_ACCESS_ERR,
	   "%s: offset %" PRIu64 ": the byte behind is refused", name, offset);
	is(mr_dereg(&mr), 0, "%s: offset %" PRIu64 ": deregister", name, offset);
}

static void test_exporter(struct dmabuf *buf)
{
	static const uint64_t offsets[] = {
		0, 1, 511, 4095, 4096, 65535, 64 * KIB + 512, SIZE / 2 + 7, SIZE - WINDOW,
	};

	for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++)
		test_offset(buf, offsets[i], WINDOW, IOVA + offsets[i] % 4096);

	/* The iova may be the offset itself, as pyverbs has it, or lower than it. */
	test_offset(buf, 64 * KIB + 512, WINDOW, 64 * KIB + 512);
	test_offset(buf, 128 * KIB + 8, WINDOW, 4096 + 8);
	/* The last byte of the buffer */
	test_offset(buf, SIZE - 1, 1, IOVA + 4095);
}

int main(void)
{
	static const struct dmabuf_opts scattered = {
		.flags = VRAMSIM_CREATE_SCATTER,
		.segment_size = 4096,
		.seed = 3,
	};
	static const struct dmabuf_opts in_system = { .system = true };
	static const struct dmabuf_opts fixed = { .flags = VRAMSIM_CREATE_STATIC };
	static const struct dmabuf_opts *const kinds[] = { NULL, &scattered, &in_system, &fixed };
	struct counters start;
	struct dmabuf *buf;

	rig_up(&rig);
	counters_get(&start);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		buf = rig_vram(SIZE, kinds[i]);
		test_exporter(buf);
		dmabuf_free(buf);
	}
	buf = rig_vgem(SIZE);
	if (buf)
		test_exporter(buf);
	else
		skip("vgem", "no vgem in this kernel");
	dmabuf_free(buf);
	ok(counters_back(&start, 1000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
