// SPDX-License-Identifier: GPL-2.0
/*
 * From one PCI device to the memory of another: mlx5 and a vramsim that asks
 * pci_p2pdma (its parameter p2pdma).  The arguments say what the machine is like:
 *
 *	reached		both are below one PCIe switch: DMA goes to the BAR
 *	refused		they are not: the exporter goes to system memory, or says no
 *	iommu		an IOMMU translates: the adapter sees no bus address
 *	write-only	the switch carries writes only (the adapter's peer-read=off)
 *
 * The adapter's trace (--out, trace-dma=on) tells where its DMA went.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "mlx5_rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE		(1 * MIB)
#define IOVA		0x12340000ull
#define LENGTH		(64 * KIB)

static struct rig rig;
static FILE *trace;
static bool iommu, write_only;

static void open_trace(void)
{
	const char *out = getenv("OUT");
	char path[256];

	if (!out)
		bail("no $OUT: run it with --out and --mlx5 trace-dma=on");
	snprintf(path, sizeof(path), "%s/mlx5-%d.jsonl", out, MLX5_LID);
	trace = fopen(path, "re");
	if (!trace)
		bail("%s: %s", path, strerror(errno));
}

/* What follows is about DMA from now on. */
static void trace_mark(void)
{
	if (fseek(trace, 0, SEEK_END))
		bail("trace: %s", strerror(errno));
}

/* Bytes that @event moved, since the mark, in the @length bytes at @addr. */
static uint64_t traced(const char *event, uint64_t addr, uint64_t length)
{
	long mark = ftell(trace);
	uint64_t bytes = 0;
	char line[1024];

	while (fgets(line, sizeof(line), trace)) {
		char *name = strstr(line, event), *at;
		uint64_t to;

		at = name ? strstr(name, "\"addr\":\"") : NULL;
		if (!at)
			continue;
		to = strtoull(at + 8, &at, 0);
		if (to >= addr && to - addr < length)
			bytes += strtoull(at + strlen("\",\"len\":"), NULL, 0);
	}
	fseek(trace, mark, SEEK_SET);
	return bytes;
}

static uint64_t traced_in_place(const char *event, const struct place *place)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < place->count; i++)
		bytes += traced(event, place->segments[i].address, place->segments[i].length);
	return bytes;
}

static void test_write(const char *what, const struct spot *spot)
{
	struct place bar = place_of(spot->buf), key = mlx5_bus_place(spot->mr);

	ok(mlx5_leads_to(spot->mr, IOVA, &bar, 0, SIZE), "%s: the key leads to the buffer", what);
	trace_mark();
	ok(transfers[0].run(spot), "%s: WRITE arrives", what);
	is(traced_in_place("dma_write", &key), LENGTH, "%s: by DMA to where the key leads", what);
	is(traced_in_place("dma_write", &bar), iommu ? 0 : LENGTH, "%s: %s", what,
	   iommu ? "an IOMMU is between that and the buffer" : "which is the buffer");
	place_free(&bar);
	place_free(&key);
}

static void test_read(const struct spot *spot)
{
	struct place key = mlx5_bus_place(spot->mr);

	trace_mark();
	ok(transfers[1].run(spot), "READ from VRAM");
	is(traced_in_place("dma_read", &key), LENGTH, "READ by DMA from VRAM");
	place_free(&key);
}

/* Reads of a BAR that the buses do not carry end in error completions, no more. */
static void test_no_read(const struct spot *spot)
{
	struct ibv_sge out = { .addr = spot->iova, .length = LENGTH, .lkey = spot->mr->lkey };
	struct ibv_sge in = { (uintptr_t)rig.host, LENGTH, rig.host_mr->lkey };
	static uint8_t got[LENGTH];

	memset(rig.host, 0x77, LENGTH);
	ok(rig_read(&rig, spot->mr, spot->iova, got, LENGTH) > 0,
	   "READ from VRAM: an error completion");
	ok(transfers[0].run(spot), "WRITE works after that");
	if (rc_post_recv(&rig.pair.a, &in))
		bail("%s: %s", rc_failed_call(), strerror(errno));
	ok(rc_do(&rig.pair.b, IBV_WR_SEND, &out, 0, 0) > 0,
	   "SEND out of VRAM: an error completion");
	if (rc_pair_reconnect(&rig.pair))
		bail("%s: %s", rc_failed_call(), strerror(errno));
	ok(transfers[0].run(spot), "WRITE works after that, too");
}

static void test_reached(void)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct drm_vramsim_gem_info info;
	struct mr mr;
	struct spot spot = { &rig, &mr, IOVA, buf, 0, LENGTH };

	is(rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr), 0, "register");
	info = sim_gem(buf);
	is(info.attached_p2p, 1, "pci_p2pdma says: reached");
	is(info.placement, VRAMSIM_PLACEMENT_VRAM, "the buffer stays in VRAM");
	test_write("VRAM", &spot);
	if (write_only)
		test_no_read(&spot);
	else
		test_read(&spot);
	if (mlx5_follows_moves()) {
		is(sim_move(buf, VRAMSIM_PLACEMENT_VRAM, VRAMSIM_MOVE_SHUFFLE, 0), 0,
		   "move within VRAM");
		ok(transfers[0].run(&spot), "WRITE arrives at the new place");
		test_write("VRAM, moved", &spot);
		is(sim_move(buf, VRAMSIM_PLACEMENT_SYSTEM, 0, 0), 0, "move to system memory");
		ok(transfers[0].run(&spot), "WRITE arrives there");
		ok(transfers[1].run(&spot), "READ works there");
	}
	is(mr_dereg(&mr), 0, "deregister");
	dmabuf_free(buf);
}

static void goes_to_system(const char *what, uint32_t flags)
{
	struct dmabuf_opts opts = { .flags = flags };
	struct dmabuf *buf = rig_vram(SIZE, &opts);
	struct place bar = place_of(buf);
	struct drm_vramsim_gem_info info;
	struct mr mr;
	struct spot spot = { &rig, &mr, IOVA, buf, 0, LENGTH };

	is(sim_gem(buf).placement, VRAMSIM_PLACEMENT_VRAM, "%s: in VRAM", what);
	is(rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr), 0, "%s: register", what);
	info = sim_gem(buf);
	is(info.attached, 1, "%s: attached", what);
	is(info.attached_p2p, 0, "%s: pci_p2pdma says: not reached", what);
	is(info.placement, VRAMSIM_PLACEMENT_SYSTEM, "%s: went to system memory", what);
	test_write(what, &spot);
	ok(transfers[1].run(&spot), "%s: READ", what);
	is(traced_in_place("dma_write", &bar) + traced_in_place("dma_read", &bar), 0,
	   "%s: no DMA to VRAM", what);
	is(mr_dereg(&mr), 0, "%s: deregister", what);
	place_free(&bar);
	dmabuf_free(buf);
}

/* What has to stay in VRAM cannot be registered. */
static void test_no_way(void)
{
	static const struct dmabuf_opts opts = { .flags = VRAMSIM_CREATE_SPARSE };
	struct dmabuf *buf = rig_vram(SIZE, &opts);
	struct mr mr;

	is(rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr), EOPNOTSUPP,
	   "VRAM only: no registration");
	is(sim_gem(buf).attached, 0, "VRAM only: nothing is left of it");
	dmabuf_free(buf);
}

int main(int argc, char **argv)
{
	bool reached = false, refused = false;
	struct counters start;

	for (int i = 1; i < argc; i++) {
		reached |= !strcmp(argv[i], "reached");
		refused |= !strcmp(argv[i], "refused");
		iommu |= !strcmp(argv[i], "iommu");
		write_only |= !strcmp(argv[i], "write-only");
	}
	if (reached == refused)
		tap_skip_all("needs a machine made for it, and an argument: reached or refused");
	mlx5_rig_up(&rig);
	open_trace();
	counters_get(&start);
	if (reached) {
		test_reached();
	} else {
		goes_to_system("dynamic buffer", 0);
		goes_to_system("static buffer", VRAMSIM_CREATE_STATIC);
		test_no_way();
	}
	ok(counters_back(&start, 2000), "all counters back to the start");
	rig_down(&rig);
	fclose(trace);
	return tap_done();
}
