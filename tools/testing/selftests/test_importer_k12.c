// SPDX-License-Identifier: GPL-2.0
/*
 * K12: three kinds of importers, three kinds of exporters.  Each of the nine
 * cells has its errno, or the place where the memory ends up.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "importer.h"
#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE		(256 * KIB)

#define VRAM		VRAMSIM_PLACEMENT_VRAM
#define SYSTEM		VRAMSIM_PLACEMENT_SYSTEM

struct result {
	int error;		/* of the import, mapping included */
	uint32_t placement;	/* of the buffer after it */
	uint32_t pinned;	/* pins at the exporter */
};

static const struct cell {
	uint32_t contract;
	uint32_t pin;
	const char *policy;
	struct result moves;	/* kernel with CONFIG_DMABUF_MOVE_NOTIFY */
	struct result pins;	/* without it, map pins as well */
} cells[] = {
	{ DMABUF_IMPORTER_DYNAMIC, VRAMSIM_PIN_ALLOW, "allows pins",
	  { 0, VRAM, 0 }, { 0, VRAM, 1 } },
	{ DMABUF_IMPORTER_DYNAMIC, VRAMSIM_PIN_REFUSE, "refuses pins",
	  { 0, VRAM, 0 }, { EOPNOTSUPP, VRAM, 0 } },
	{ DMABUF_IMPORTER_DYNAMIC, VRAMSIM_PIN_DOWNGRADE, "pins in system memory",
	  { 0, VRAM, 0 }, { 0, SYSTEM, 1 } },

	{ DMABUF_IMPORTER_PINNED, VRAMSIM_PIN_ALLOW, "allows pins",
	  { 0, VRAM, 1 }, { 0, VRAM, 2 } },
	{ DMABUF_IMPORTER_PINNED, VRAMSIM_PIN_REFUSE, "refuses pins",
	  { EOPNOTSUPP, VRAM, 0 }, { EOPNOTSUPP, VRAM, 0 } },
	{ DMABUF_IMPORTER_PINNED, VRAMSIM_PIN_DOWNGRADE, "pins in system memory",
	  { 0, SYSTEM, 1 }, { 0, SYSTEM, 2 } },

	{ DMABUF_IMPORTER_REVOCABLE, VRAMSIM_PIN_ALLOW, "allows pins",
	  { 0, VRAM, 1 }, { 0, VRAM, 2 } },
	{ DMABUF_IMPORTER_REVOCABLE, VRAMSIM_PIN_REFUSE, "refuses pins",
	  { EOPNOTSUPP, VRAM, 0 }, { EOPNOTSUPP, VRAM, 0 } },
	{ DMABUF_IMPORTER_REVOCABLE, VRAMSIM_PIN_DOWNGRADE, "pins in system memory",
	  { 0, SYSTEM, 1 }, { 0, SYSTEM, 2 } },
};

static void try_cell(const struct cell *cell, const struct result *want)
{
	struct dmabuf_opts opts = { .pin = cell->pin };
	const char *name = imp_contract(cell->contract);
	struct drm_vramsim_gem_info info;
	struct counters start;
	struct dmabuf *buf;
	int imp;

	counters_get(&start);
	buf = rig_vram(SIZE, &opts);
	imp = imp_open();

	is(imp_import(imp, buf, cell->contract, 0, SIZE), want->error, "%s, exporter %s: %s",
	   name, cell->policy, strerror(want->error));
	info = sim_gem(buf);
	is(info.placement, want->placement, "%s, exporter %s: in %s", name, cell->policy,
	   want->placement == VRAM ? "VRAM" : "system memory");
	is(info.pinned, want->pinned, "%s, exporter %s: %u pins", name, cell->policy,
	   want->pinned);
	if (!want->error) {
		is(!!(imp_info(imp).state & DMABUF_IMPORTER_IS_PINNED), !!want->pinned,
		   "%s, exporter %s: the importer knows", name, cell->policy);
		ok(imp_works(imp, buf, 0, SIZE, cell->pin), "%s, exporter %s: data both ways",
		   name, cell->policy);
	}
	close(imp);
	dmabuf_free(buf);
	ok(counters_back(&start, 0), "%s, exporter %s: counters are back", name, cell->policy);
}

int main(void)
{
	bool moves;

	imp_setup();
	moves = imp_kernel_moves();
	for (size_t i = 0; i < sizeof(cells) / sizeof(*cells); i++)
		try_cell(&cells[i], moves ? &cells[i].moves : &cells[i].pins);
	return tap_done();
}
