// SPDX-License-Identifier: GPL-2.0
/*
 * K04: neither start nor length of a window needs to be aligned; offset and iova
 * have to agree within the page, and the end has to be inside the buffer.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <unistd.h>

#include "rig.h"
#include "sim.h"
#include "tap.h"

#define IOVA	0x200000000ull

static struct rig rig;

int main(void)
{
	uint64_t page = sysconf(_SC_PAGESIZE), size = 16 * page;
	const struct {
		const char *name;
		uint64_t offset, length, iova;
		int want;
	} rows[] = {
		{ "offset 100, iova ..100", 100, 4000, IOVA + 100, 0 },
		{ "one byte at offset 100", 100, 1, IOVA + 100, 0 },
		{ "one byte at offset 0", 0, 1, IOVA, 0 },
		{ "two bytes across a page border", page - 1, 2, IOVA + page - 1, 0 },
		{ "odd start, odd length", 4097, 8191, IOVA + 4097 % page, 0 },
		{ "length = size - offset", 100, size - 100, IOVA + 100, 0 },
		{ "length = size - offset + 1", 100, size - 99, IOVA + 100, EINVAL },
		{ "offset 100, iova ..200", 100, 1, IOVA + 200, EINVAL },
		{ "offset half a page, iova ..000", page / 2, 1, IOVA, EINVAL },
		{ "offset a page, iova ..000", page, 4000, IOVA, 0 },
		{ "offset ULONG_MAX - 4095, length 8192", ULONG_MAX - 4095, 8192, IOVA, EINVAL },
	};
	struct counters start;
	struct dmabuf *buf;
	struct mr mr;

	rig_up(&rig);
	counters_get(&start);
	buf = rig_vram(size, NULL);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		int err = rig_reg(&rig, dmabuf_fd(buf), rows[i].offset, rows[i].length,
				  rows[i].iova, &mr);

		is(err, rows[i].want, "%s: %s", rows[i].name,
		   rows[i].want ? "EINVAL" : "accepted");
		if (err)
			continue;
		ok(rig_works(&rig, &mr, rows[i].iova, buf, rows[i].offset, rows[i].length),
		   "%s: every byte of it carries data", rows[i].name);
		is(mr_dereg(&mr), 0, "%s: deregister", rows[i].name);
	}
	dmabuf_free(buf);
	ok(counters_back(&start, 1000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
