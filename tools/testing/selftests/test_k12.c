// SPDX-License-Identifier: GPL-2.0
/*
 * K12: what the administrator says of pinning against what the exporter says.  Each of
 * the nine cells has its errno, or the place where the memory ends up, and the layer
 * that refused.
 */
#include <errno.h>
#include <string.h>

#include "policy.h"
#include "refusal.h"
#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE	(256 * KIB)
#define IOVA	0x1300000000ull
#define VRAM	VRAMSIM_PLACEMENT_VRAM
#define SYSTEM	VRAMSIM_PLACEMENT_SYSTEM

static struct rig rig;

static const struct exporter {
	const char *name;
	uint32_t pin;
} exporters[] = {
	{ "allows pins", VRAMSIM_PIN_ALLOW },
	{ "refuses pins", VRAMSIM_PIN_REFUSE },
	{ "pins in system memory", VRAMSIM_PIN_DOWNGRADE },
};

struct result {
	int error;
	const char *layer;
	uint32_t pinned;
	uint32_t placement;
};

/* Where an MR follows moves it needs no pin, unless pins are what is preferred. */
static struct result wanted(const char *policy, uint32_t exporter)
{
	struct rig pinning = rig;

	if (rig.traits.follows && strcmp(policy, "prefer"))
		return (struct result){ 0, "", 0, VRAM };
	pinning.traits.follows = false;
	if (!strcmp(policy, "never"))
		return (struct result){ EOPNOTSUPP, "pin policy", 0, VRAM };
	if (exporter == VRAMSIM_PIN_REFUSE)
		return (struct result){ EOPNOTSUPP, "pin", 0, VRAM };
	return (struct result){
		0, "", rig_holds(&pinning, 0).pinned,
		exporter == VRAMSIM_PIN_ALLOW ? VRAM : SYSTEM,
	};
}

static void try_cell(const char *policy, const struct exporter *exporter)
{
	struct result want = wanted(policy, exporter->pin);
	struct dmabuf_opts opts = { .pin = exporter->pin };
	struct drm_vramsim_gem_info info;
	struct counters start;
	struct dmabuf *buf;
	char name[64];
	struct mr mr;
	int err;

	snprintf(name, sizeof(name), "pin=%s, exporter %s", policy, exporter->name);
	counters_get(&start);
	buf = rig_vram(SIZE, &opts);
	policy_set("pin", policy);
	if (refusal_listen())
		bail("no tracepoint of refusals");
	err = rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr);
	is(err, want.error, "%s: %s", name, want.error ? strerrorname_np(want.error) : "registers");
	if (!ok(!strcmp(refusal_layer(), want.layer), "%s: refused by '%s'", name, want.layer))
		diag("  it was '%s'", refusal_layer());
	info = sim_gem(buf);
	is(info.placement, want.placement, "%s: in %s", name,
	   want.placement == VRAM ? "VRAM" : "system memory");
	is(info.pinned, want.pinned, "%s: %u pins", name, want.pinned);
	if (!err) {
		ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE), "%s: works", name);
		is(sim_move(buf, VRAM, VRAMSIM_MOVE_SHUFFLE, 0), want.pinned ? EBUSY : 0,
		   "%s: %s", name, want.pinned ? "stays" : "moves");
		ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE), "%s: works then", name);
		is(mr_dereg(&mr), 0, "%s: deregister", name);
	}
	dmabuf_free(buf);
	ok(counters_back(&start, 0), "%s: counters are back", name);
}

int main(void)
{
	static const char *const policies[] = { "auto", "prefer", "never" };

	rig_up(&rig);
	if (!rig.traits.ours)
		tap_skip_all("the kernel's own code has no policy");
	for (size_t p = 0; p < sizeof(policies) / sizeof(*policies); p++)
		for (size_t e = 0; e < sizeof(exporters) / sizeof(*exporters); e++)
			try_cell(policies[p], &exporters[e]);
	policy_set("pin", "auto");
	rig_down(&rig);
	return tap_done();
}
