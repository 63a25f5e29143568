// SPDX-License-Identifier: GPL-2.0
/*
 * rxe takes memory from each kind of exporter, in each placement, and asks for no
 * more than it needs: a pin where the exporter could move the memory, a mapping
 * for the CPU, none for DMA.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE	(256 * KIB)
#define OFFSET	(8 * KIB + 40)
#define LENGTH	(100 * KIB + 3)
#define IOVA	(0x700000000000ull + 40)

static const struct {
	const char *name;
	struct dmabuf_opts opts;
} kinds[] = {
	{ "dynamic, VRAM", { } },
	{ "dynamic, system memory", { .system = true } },
	{ "dynamic, scattered", { .flags = VRAMSIM_CREATE_SCATTER, .segment_size = 4096 } },
	{ "dynamic, no peer-to-peer", { .flags = VRAMSIM_CREATE_NO_P2P } },
	{ "dynamic, pin moves it", { .pin = VRAMSIM_PIN_DOWNGRADE } },
	{ "static, VRAM", { .flags = VRAMSIM_CREATE_STATIC } },
	{ "static, system memory", { .flags = VRAMSIM_CREATE_STATIC, .system = true } },
};

static void check_vramsim(struct rig *rig, unsigned int i)
{
	struct dmabuf *buf = rig_vram(SIZE, &kinds[i].opts);
	const char *name = kinds[i].name;
	struct drm_vramsim_gem_info info;
	struct mr mr;

	if (!is(rig_reg(rig, dmabuf_fd(buf), OFFSET, LENGTH, IOVA, &mr), 0, "%s: register", name)) {
		dmabuf_free(buf);
		return;
	}
	if (sim_gem_info(buf, &info))
		bail("vramsim: %s", strerror(errno));
	is(info.attached, 1, "%s: one attachment", name);
	is(info.attached_p2p, 0, "%s: not peer-to-peer", name);
	is(info.mapped, 0, "%s: not mapped for DMA", name);
	is(info.vmapped, 1, "%s: mapped for the CPU", name);
	/* a static exporter's own, which it takes at attach */
	is(info.pinned, 1, "%s: kept in place by one pin", name);
	ok(rig_works(rig, &mr, IOVA, buf, OFFSET, LENGTH), "%s: carries data", name);
	is(mr_dereg(&mr), 0, "%s: dereg", name);
	dmabuf_free(buf);
}

static void check_vgem(struct rig *rig)
{
	struct dmabuf *buf = rig_vgem(SIZE);
	struct mr mr;

	if (!buf) {
		skip("vgem", "no vgem in this kernel");
		return;
	}
	is(rig_reg(rig, dmabuf_fd(buf), OFFSET, LENGTH, IOVA, &mr), 0, "vgem: register");
	dmabuf_close_fd(buf);
	ok(rig_works(rig, &mr, IOVA, buf, OFFSET, LENGTH), "vgem: carries data");
	is(mr_dereg(&mr), 0, "vgem: dereg");
	dmabuf_free(buf);
}

static void check_no_vmap(struct rig *rig, uint32_t flags, const char *name)
{
	struct dmabuf *buf = rig_vram(SIZE, &(struct dmabuf_opts){ .flags = flags });
	struct drm_vramsim_gem_info info;
	struct mr mr;

	is(rig_reg(rig, dmabuf_fd(buf), 0, SIZE, 0, &mr), EOPNOTSUPP,
	   "%s: no mapping for the CPU, no registration", name);
	ok(!sim_gem_info(buf, &info) && !info.attached && !info.pinned, "%s: nothing is held", name);
	dmabuf_free(buf);
}

int main(void)
{
	struct counters start;
	struct rig rig;

	rig_up(&rig);
	counters_get(&start);
	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		check_vramsim(&rig, i);
	check_vgem(&rig);
	check_no_vmap(&rig, VRAMSIM_CREATE_NO_VMAP, "dynamic");
	check_no_vmap(&rig, VRAMSIM_CREATE_NO_VMAP | VRAMSIM_CREATE_STATIC, "static");
	ok(counters_back(&start, 1000), "counters are back");
	rig_down(&rig);
	return tap_done();
}
