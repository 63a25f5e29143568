// SPDX-License-Identifier: GPL-2.0
/*
 * dma-buf MRs of mlx5: each kind of transfer, through
 * windows that begin and end anywhere, into memory of udmabuf and of vramsim in
 * all shapes; and what the adapter was told about them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mlx5_rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE		(4 * MIB)
#define BACKGROUND	0xa5
#define MESSAGE		(128 * KIB)

static const struct window {
	uint64_t offset, length, iova;
} windows[] = {
	{ 0, SIZE, 0 },
	{ 0x2100, 0x81000, 0x770000100 },
	{ 0x1ffff8, 16, 0x7fffffff8 },			/* two pages, 8 bytes of each */
	{ 0x3f8, 2 * MIB + 24, 0x2000003f8 },
	{ SIZE - 4096 - 8, 4096 + 8, 0xff8 },
	{ SIZE - 8, 8, 0xfffffffffffffff8 - 4096 },	/* near the end of all addresses */
};

static struct rig rig;
static uint8_t whole[SIZE];

static bool is_background(const uint8_t *bytes, uint64_t length)
{
	for (uint64_t i = 0; i < length; i++) {
		if (bytes[i] != BACKGROUND) {
			diag("  byte %" PRIu64 " is %#x", i, bytes[i]);
			return false;
		}
	}
	return true;
}

static void transfer_at(const char *name, const struct mr *mr, const struct window *w,
			struct dmabuf *buf, uint64_t at)
{
	struct spot spot = { &rig, mr, w->iova + at, buf, w->offset + at, 0 };

	spot.length = w->length - at < MESSAGE ? w->length - at : MESSAGE;
	for (size_t i = 0; i < TRANSFERS; i++)
		ok(transfers[i].run(&spot), "%s: %s, %u bytes", name, transfers[i].name,
		   spot.length);
}

static void test_window(const char *exporter, struct dmabuf *buf, const struct window *w)
{
	bool is_vramsim = dmabuf_drm_fd(buf) >= 0;
	struct place place = { 0 };
	char name[128], seen;
	struct mr mr;

	snprintf(name, sizeof(name), "%s: %#" PRIx64 "+%#" PRIx64 " at %#" PRIx64, exporter,
		 w->offset, w->length, w->iova);
	if (dmabuf_fill(buf, 0, BACKGROUND, SIZE))
		bail("%s: %s", name, strerror(errno));
	if (!is(rig_reg(&rig, dmabuf_fd(buf), w->offset, w->length, w->iova, &mr), 0,
		"%s: register", name))
		return;
	if (is_vramsim) {
		place = place_of(buf);
		ok(mlx5_leads_to(&mr, w->iova, &place, w->offset, w->length),
		   "%s: the key leads to the buffer's memory", name);
	}

	transfer_at(name, &mr, w, buf, 0);
	if (w->length > MESSAGE)
		transfer_at(name, &mr, w, buf, w->length - MESSAGE);

	if (dmabuf_read(buf, 0, whole, SIZE))
		bail("%s: %s", name, strerror(errno));
	ok(is_background(whole, w->offset) &&
	   is_background(whole + w->offset + w->length, SIZE - w->offset - w->length),
	   "%s: nothing around the window changed", name);
	is(rig_write(&rig, &mr, w->iova - 1, "x", 1), IBV_WC_REM_ACCESS_ERR,
	   "%s: the byte before is refused", name);
	is(rig_read(&rig, &mr, w->iova + w->length, &seen, 1), IBV_WC_REM_ACCESS_ERR,
	   "%s: the byte behind is refused", name);

	is(mr_dereg(&mr), 0, "%s: deregister", name);
	if (is_vramsim) {
		ok(place_unmapped(&place), "%s: no key maps the buffer any more", name);
		place_free(&place);
	}
	is(rig_write(&rig, &mr, w->iova, "x", 1), IBV_WC_REM_ACCESS_ERR,
	   "%s: the old key is refused", name);
}

static void test_exporter(const char *what, const char *exporter, const struct dmabuf_opts *opts)
{
	struct dmabuf *buf = dmabuf_alloc(exporter, SIZE, opts);
	const char *kernel = getenv("VM_KERNEL");

	if (buf && !strcmp(exporter, "udmabuf") && kernel && !strcmp(kernel, "debug")) {
		/* At DMA_BUF_IOCTL_SYNC it maps for a device that never said how much it takes. */
		skip(what, "udmabuf itself displeases CONFIG_DMA_API_DEBUG_SG");
		dmabuf_free(buf);
		return;
	}
	if (!buf && errno == ENODEV) {
		skip(what, "this kernel has no %s", exporter);
		return;
	}
	if (!buf)
		bail("%s: %s", what, strerror(errno));
	for (size_t i = 0; i < sizeof(windows) / sizeof(*windows); i++)
		test_window(what, buf, &windows[i]);
	dmabuf_free(buf);
}

static void test_refusals(void)
{
	static const struct {
		const char *what;
		uint64_t offset, length, iova;
		int want;
	} wrong[] = {
		{ "iova and offset not alike within a page", 0x100, 4096, 0x10000200, EINVAL },
		{ "beyond the buffer", SIZE - 4096, 8192, 0, EINVAL },
		{ "offset behind the buffer", SIZE, 4096, 0, EINVAL },
		{ "end above all numbers", 8192, -4096ull, 0, EINVAL },
		{ "no length", 0, 0, 0, EINVAL },
	};
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	uint64_t umrs = mlx5sim_stat(MLX5_LID, MLX5SIM_UMRS);
	struct mr mr;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		is(rig_reg(&rig, dmabuf_fd(buf), wrong[i].offset, wrong[i].length, wrong[i].iova,
			   &mr), wrong[i].want, "refused: %s", wrong[i].what);
	is(rig_reg(&rig, 0, 0, 4096, 0, &mr), EINVAL, "refused: a file that is no dma-buf");
	is(sim_gem(buf).attached, 0, "after refusals nothing is attached");
	is(mlx5sim_stat(MLX5_LID, MLX5SIM_UMRS), umrs, "the adapter heard of none of them");
	dmabuf_free(buf);
}

/* Many at once: keys of the driver's cache serve one buffer after the other. */
static void test_many(void)
{
	enum { BUFFERS = 8 };
	static const struct dmabuf_opts opts = {
		.flags = VRAMSIM_CREATE_SCATTER, .segment_size = 64 * KIB, .seed = 3,
	};
	struct dmabuf *bufs[BUFFERS];
	struct mr mrs[BUFFERS];
	bool works = true, leads = true;
	int failed = 0;

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < BUFFERS; i++) {
			uint64_t length = (i + 1) * 128 * KIB;

			bufs[i] = rig_vram(length, &opts);
			failed += !!rig_reg(&rig, dmabuf_fd(bufs[i]), 0, length, i * GIB, &mrs[i]);
		}
		for (int i = 0; i < BUFFERS && !failed; i++) {
			struct place place = place_of(bufs[i]);

			leads &= mlx5_leads_to(&mrs[i], i * GIB, &place, 0, (i + 1) * 128 * KIB);
			works &= rig_works(&rig, &mrs[i], i * GIB, bufs[i], 0, 128 * KIB);
			place_free(&place);
		}
		for (int i = 0; i < BUFFERS && !failed; i++) {
			failed += !!mr_dereg(&mrs[i]);
			dmabuf_free(bufs[i]);
		}
	}
	is(failed, 0, "many: all register and deregister, three times");
	ok(leads, "many: each key leads to its buffer");
	ok(works, "many: each buffer gets its bytes");
}

/* Memory of the process gets keys that served a dma-buf before, whatever their room. */
static void test_next_owner(void)
{
	enum { PAGES_MAX = 256 };
	struct dmabuf *buf = rig_vram(PAGES_MAX * 4096, NULL);
	uint8_t *memory = rig_pages(PAGES_MAX * 4096);
	int failed = 0, owners = 0;

	for (uint64_t pages = 1; pages <= PAGES_MAX; pages *= 2) {
		struct mr mr;

		failed += !!rig_reg(&rig, dmabuf_fd(buf), 0, pages * 4096, GIB, &mr);
		failed += !!mr_dereg(&mr);
		for (uint64_t own = 1; own <= PAGES_MAX; own *= 2, owners++) {
			struct ibv_mr *next = ibv_reg_mr(rig.pair.b.pd, memory, own * 4096,
							 RIG_ACCESS);

			failed += !next || ibv_dereg_mr(next);
		}
	}
	is(failed, 0, "%d MRs on memory of the process, after MRs on a dma-buf", owners);
	ok(rig_host_mrs_work(&rig, 4), "and such MRs work");
	munmap(memory, PAGES_MAX * 4096);
	dmabuf_free(buf);
}

int main(void)
{
	static const struct dmabuf_opts system = { .system = true },
		scattered = { .flags = VRAMSIM_CREATE_SCATTER, .segment_size = 4096, .seed = 7 },
		blocks = { .flags = VRAMSIM_CREATE_SCATTER, .segment_size = 2 * MIB },
		fixed = { .flags = VRAMSIM_CREATE_STATIC };
	struct counters start;

	mlx5_rig_up(&rig);
	counters_get(&start);
	test_exporter("udmabuf", "udmabuf", NULL);
	test_exporter("VRAM", "vramsim", NULL);
	test_exporter("VRAM in pages", "vramsim", &scattered);
	test_exporter("VRAM in blocks", "vramsim", &blocks);
	test_exporter("static VRAM", "vramsim", &fixed);
	test_exporter("system memory", "vramsim", &system);
	test_refusals();
	test_many();
	test_next_owner();
	ok(counters_back(&start, 2000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
