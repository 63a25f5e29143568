// SPDX-License-Identifier: GPL-2.0
/*
 * K06: ibv_reg_mr() of mapped GPU memory fails with EFAULT, quietly, and the
 * same memory is registered by its fd.
 */
#include <errno.h>
#include <string.h>

#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE	(1 * MIB)
#define IOVA	0x400000000ull

int main(void)
{
	struct counters start;
	struct dmabuf *buf;
	struct ibv_mr *plain;
	struct rig rig;
	uint8_t *map;
	struct mr mr;

	rig_up(&rig);
	counters_get(&start);
	buf = rig_vram(SIZE, NULL);
	map = dmabuf_map_cpu(buf);
	if (!map)
		bail("mmap of VRAM: %s", strerror(errno));

	errno = 0;
	plain = ibv_reg_mr(rig.pair.a.pd, map, SIZE, RIG_ACCESS);
	ok(!plain, "ibv_reg_mr() of a mapping never touched fails");
	is(errno, EFAULT, "with EFAULT");
	memset(map, 0x11, SIZE);
	errno = 0;
	plain = ibv_reg_mr(rig.pair.a.pd, map, SIZE, RIG_ACCESS);
	ok(!plain, "ibv_reg_mr() of a mapping in use fails");
	is(errno, EFAULT, "with EFAULT");

	is(rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr), 0, "its fd is accepted");
	ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE), "and works");
	is(mr_dereg(&mr), 0, "deregister");

	dmabuf_free(buf);
	ok(counters_back(&start, 1000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
