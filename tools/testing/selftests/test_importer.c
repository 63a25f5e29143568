// SPDX-License-Identifier: GPL-2.0
/*
 * The three contracts of ib_umem_dmabuf, one step after the other: import,
 * map, translate, move, refault, revoke, release.  Looked at from both sides:
 * what the importer was told, and what the exporter counts.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "importer.h"
#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE		(1 * MIB)
#define OFFSET		(3 * 4 * KIB + 100)	/* odd, and not on the first page */
#define LENGTH		(20 * 4 * KIB + 7)

static bool kernel_moves;

/* Pins that an import holds while it is mapped. */
static uint32_t pins(uint32_t contract)
{
	return (contract != DMABUF_IMPORTER_DYNAMIC) + !kernel_moves;
}

static bool exporter_counts(const struct dmabuf *buf, uint32_t attached, uint32_t mapped,
			    uint32_t pinned)
{
	struct drm_vramsim_gem_info info = sim_gem(buf);

	if (info.attached == attached && info.mapped == mapped && info.pinned == pinned)
		return true;
	diag("  attached %u, mapped %u, pinned %u; want %u, %u, %u", info.attached, info.mapped,
	     info.pinned, attached, mapped, pinned);
	return false;
}

static bool state_is(int imp, uint32_t want)
{
	uint32_t state = imp_info(imp).state;

	if (state == want)
		return true;
	diag("  state 0x%x, want 0x%x", state, want);
	return false;
}

static void basics(uint32_t contract, const struct dmabuf_opts *opts, const char *where)
{
	const char *name = imp_contract(contract);
	struct drm_vramsim_segment *cut;
	struct counters start;
	struct dmabuf *buf;
	uint32_t state;
	size_t count;
	int imp;

	counters_get(&start);
	buf = rig_vram(SIZE, opts);
	imp = imp_open();

	is(imp_create(imp, buf, contract, OFFSET, LENGTH), 0, "%s, %s: import", name, where);
	dmabuf_close_fd(buf);
	if (contract == DMABUF_IMPORTER_DYNAMIC) {
		state = DMABUF_IMPORTER_IMPORTED | DMABUF_IMPORTER_P2P;
		ok(state_is(imp, state) && exporter_counts(buf, 1, 0, 0),
		   "%s, %s: attached and not mapped", name, where);
		is(imp_read(imp, 0, &(char){ 0 }, 1), EFAULT,
		   "%s, %s: the device faults on it", name, where);
		is(imp_map(imp), 0, "%s, %s: map", name, where);
	}
	state = DMABUF_IMPORTER_IMPORTED | DMABUF_IMPORTER_P2P | DMABUF_IMPORTER_MAPPED |
		(pins(contract) ? DMABUF_IMPORTER_IS_PINNED : 0);
	ok(state_is(imp, state) && exporter_counts(buf, 1, 1, pins(contract)),
	   "%s, %s: mapped, %u pins", name, where, pins(contract));
	is(imp_map(imp), 0, "%s, %s: map again is no work", name, where);
	is(imp_info(imp).maps, 1, "%s, %s: mapped once", name, where);
	cut = sim_segments(buf, &count);
	ok(imp_translation_right(imp, cut, count, OFFSET, LENGTH, OFFSET),
	   "%s, %s: bus addresses are the exporter's", name, where);
	free(cut);
	ok(imp_works(imp, buf, OFFSET, LENGTH, contract), "%s, %s: data both ways, fd closed",
	   name, where);
	is(imp_read(imp, LENGTH, &(char){ 0 }, 1), EINVAL, "%s, %s: not beyond the window", name,
	   where);

	is(imp_release(imp), 0, "%s, %s: release", name, where);
	ok(exporter_counts(buf, 0, 0, 0), "%s, %s: nothing left at the exporter", name, where);
	is(imp_info(imp).revokes, contract == DMABUF_IMPORTER_REVOCABLE,
	   "%s, %s: release cut the device off", name, where);
	close(imp);
	dmabuf_free(buf);
	ok(counters_back(&start, 0), "%s, %s: counters are back", name, where);
}

/* What a program does that just ends, or that is killed. */
static void close_releases(uint32_t contract)
{
	struct counters start;
	struct dmabuf *buf;
	int imp;

	counters_get(&start);
	buf = rig_vram(SIZE, NULL);
	imp = imp_open();
	is(imp_import(imp, buf, contract, 0, SIZE), 0, "%s: import", imp_contract(contract));
	is(imp_create(imp, buf, contract, 0, SIZE), EBUSY, "%s: one import for a file",
	   imp_contract(contract));
	close(imp);
	ok(exporter_counts(buf, 0, 0, 0), "%s: closing the file releases", imp_contract(contract));
	dmabuf_free(buf);
	ok(counters_back(&start, 0), "%s: counters are back", imp_contract(contract));
}

/* The buffer outlives its handle: an import holds it. */
static void import_holds_buffer(uint32_t contract)
{
	struct counters start, now;
	struct dmabuf *buf;
	uint8_t byte = 0;
	int imp;

	counters_get(&start);
	buf = rig_vram(SIZE, NULL);
	imp = imp_open();
	dmabuf_fill(buf, 0, 0x7e, SIZE);
	is(imp_import(imp, buf, contract, 0, SIZE), 0, "%s: import", imp_contract(contract));
	dmabuf_free(buf);
	counters_get(&now);
	is(now.objects, start.objects + 1, "%s: the buffer stays without handle and fd",
	   imp_contract(contract));
	ok(!imp_fault_read(imp, SIZE - 1, &byte, 1) && byte == 0x7e, "%s: and can be read",
	   imp_contract(contract));
	close(imp);
	ok(counters_back(&start, 1000), "%s: and goes with the import", imp_contract(contract));
}

/* An exporter may call before attach or pin has come back: nothing is mapped yet. */
static void early_notify(uint32_t contract, uint32_t step, const char *where)
{
	struct dmabuf_importer_info info;
	struct counters start;
	struct dmabuf *buf;
	int imp;

	counters_get(&start);
	buf = rig_vram(SIZE, NULL);
	imp = imp_open();
	is(sim_inject(buf, step, 1, 0), 0, "%s: notify in %s", imp_contract(contract), where);
	is(imp_import(imp, buf, contract, OFFSET, LENGTH), 0, "%s: import goes on",
	   imp_contract(contract));
	info = imp_info(imp);
	ok(info.moves >= 1, "%s: the core saw it", imp_contract(contract));
	ok(!info.notifies && !info.revokes && !(info.state & DMABUF_IMPORTER_REVOKED),
	   "%s: it is no revoke, and the driver is left alone", imp_contract(contract));
	ok(imp_works(imp, buf, OFFSET, LENGTH, 1), "%s: data both ways", imp_contract(contract));
	close(imp);
	dmabuf_free(buf);
	ok(counters_back(&start, 0), "%s: counters are back", imp_contract(contract));
}

/* Unmap and map by the importer's own will. */
static void unmap_and_map(void)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	int imp = imp_open();

	is(imp_import(imp, buf, DMABUF_IMPORTER_DYNAMIC, OFFSET, LENGTH), 0, "dynamic: import");
	is(imp_unmap(imp), 0, "dynamic: unmap");
	ok(exporter_counts(buf, 1, 0, 0), "dynamic: the exporter saw it");
	is(imp_unmap(imp), 0, "dynamic: unmap again is no work");
	is(imp_map(imp), 0, "dynamic: map again");
	is(imp_info(imp).maps, 2, "dynamic: mapped twice");
	ok(imp_works(imp, buf, OFFSET, LENGTH, 2), "dynamic: data both ways");
	close(imp);
	dmabuf_free(buf);
}

/* Who cannot be told of moves holds the memory from attach to detach. */
static void static_exporter(uint32_t contract)
{
	struct dmabuf_opts opts = { .flags = VRAMSIM_CREATE_STATIC };
	struct counters start;
	struct dmabuf *buf;
	int imp;

	counters_get(&start);
	buf = rig_vram(SIZE, &opts);
	imp = imp_open();
	is(imp_create(imp, buf, contract, OFFSET, LENGTH), 0, "%s, static exporter: import",
	   imp_contract(contract));
	ok(exporter_counts(buf, 1, 1, 1), "%s, static exporter: mapped and pinned by attach",
	   imp_contract(contract));
	is(imp_map(imp), 0, "%s, static exporter: map", imp_contract(contract));
	ok(imp_works(imp, buf, OFFSET, LENGTH, 5), "%s, static exporter: data both ways",
	   imp_contract(contract));
	is(imp_release(imp), 0, "%s, static exporter: release", imp_contract(contract));
	ok(exporter_counts(buf, 0, 0, 0), "%s, static exporter: nothing left",
	   imp_contract(contract));
	close(imp);
	dmabuf_free(buf);
	ok(counters_back(&start, 0), "%s, static exporter: counters are back",
	   imp_contract(contract));
}

/* A device that takes no peer-to-peer addresses gets system memory. */
static void no_p2p(void)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct dmabuf_importer_create args = {
		.fd = dmabuf_fd(buf),
		.contract = DMABUF_IMPORTER_DYNAMIC,
		.offset = OFFSET,
		.length = LENGTH,
		.access = DMABUF_IMPORTER_ACCESS_ALL,
		.flags = DMABUF_IMPORTER_NO_P2P,
	};
	int imp = imp_open();

	is(sim_gem(buf).placement, VRAMSIM_PLACEMENT_VRAM, "no peer-to-peer: buffer in VRAM");
	is(imp_create_with(imp, &args), 0, "no peer-to-peer: import");
	is(imp_map(imp), 0, "no peer-to-peer: map");
	ok(!(imp_info(imp).state & DMABUF_IMPORTER_P2P), "no peer-to-peer: the state says so");
	is(sim_gem(buf).placement, VRAMSIM_PLACEMENT_SYSTEM, "no peer-to-peer: in system memory");
	ok(imp_works(imp, buf, OFFSET, LENGTH, 3), "no peer-to-peer: data both ways");
	close(imp);
	dmabuf_free(buf);
}

/* The exporter takes peer-to-peer back at attach. */
static void exporter_without_p2p(uint32_t contract)
{
	struct dmabuf_opts opts = { .flags = VRAMSIM_CREATE_NO_P2P };
	struct dmabuf *buf = rig_vram(SIZE, &opts);
	int imp = imp_open();

	is(imp_import(imp, buf, contract, OFFSET, LENGTH), 0,
	   "%s: import from an exporter without peer-to-peer", imp_contract(contract));
	ok(!(imp_info(imp).state & DMABUF_IMPORTER_P2P), "%s: the state says so",
	   imp_contract(contract));
	is(sim_gem(buf).placement, VRAMSIM_PLACEMENT_SYSTEM, "%s: in system memory",
	   imp_contract(contract));
	ok(imp_works(imp, buf, OFFSET, LENGTH, 4), "%s: data both ways", imp_contract(contract));
	close(imp);
	dmabuf_free(buf);
}

static void refusals(uint32_t contract)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const struct {
		const char *what;
		int fd;
		uint64_t offset, length;
		int want;
	} table[] = {
		{ "fd -1", -1, 0, SIZE, EBADF },
		{ "fd that is not open", 1023, 0, SIZE, EBADF },
		{ "fd of something else", null, 0, SIZE, EINVAL },
		{ "no byte", dmabuf_fd(buf), 0, 0, EINVAL },
		{ "no byte, odd offset", dmabuf_fd(buf), 1, 0, EINVAL },
		{ "no byte at the end", dmabuf_fd(buf), SIZE, 0, EINVAL },
		{ "a byte beyond the end", dmabuf_fd(buf), SIZE, 1, EINVAL },
		{ "one byte too long", dmabuf_fd(buf), 1, SIZE, EINVAL },
		{ "end wraps to 0", dmabuf_fd(buf), -4096ull, 4096, EINVAL },
		{ "end wraps", dmabuf_fd(buf), 4096, -1ull, EINVAL },
		{ "last byte", dmabuf_fd(buf), SIZE - 1, 1, 0 },
		{ "first byte", dmabuf_fd(buf), 0, 1, 0 },
		{ "all", dmabuf_fd(buf), 0, SIZE, 0 },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct dmabuf_importer_create args = {
			.fd = table[i].fd,
			.contract = contract,
			.offset = table[i].offset,
			.length = table[i].length,
		};
		int imp = imp_open();

		is(imp_create_with(imp, &args), table[i].want, "%s: %s", imp_contract(contract),
		   table[i].what);
		close(imp);
		ok(exporter_counts(buf, 0, 0, 0), "%s: %s: nothing left", imp_contract(contract),
		   table[i].what);
	}
	close(null);
	dmabuf_free(buf);
}

/* The kernel keeps the module while a file is open. */
static void unload_refused(void)
{
	int imp = imp_open();

	ok(syscall(SYS_delete_module, "dmabuf_importer", O_NONBLOCK) && errno == EWOULDBLOCK,
	   "module stays while a file is open");
	close(imp);
}

int main(void)
{
	const struct {
		const char *name;
		struct dmabuf_opts opts;
	} places[] = {
		{ "VRAM", {} },
		{ "scattered VRAM", { .flags = VRAMSIM_CREATE_SCATTER, .segment_size = 8 * KIB } },
		{ "system memory", { .system = true } },
	};

	imp_setup();
	kernel_moves = imp_kernel_moves();
	diag("the kernel %s", kernel_moves ? "moves what is mapped" : "pins what is mapped");

	for (uint32_t contract = 0; contract < IMP_CONTRACTS; contract++) {
		for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
			basics(contract, &places[i].opts, places[i].name);
		close_releases(contract);
		import_holds_buffer(contract);
		early_notify(contract, VRAMSIM_INJECT_NOTIFY_IN_ATTACH, "attach");
		static_exporter(contract);
		exporter_without_p2p(contract);
		refusals(contract);
	}
	early_notify(DMABUF_IMPORTER_PINNED, VRAMSIM_INJECT_NOTIFY_IN_PIN, "pin");
	early_notify(DMABUF_IMPORTER_REVOCABLE, VRAMSIM_INJECT_NOTIFY_IN_PIN, "pin");
	unmap_and_map();
	no_p2p();
	unload_refused();
	return tap_done();
}
