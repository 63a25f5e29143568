// SPDX-License-Identifier: GPL-2.0
/*
 * K14: the exporter moves the buffer under the importer, or takes it away.
 * A dynamic importer follows, a pinned one is in the way, a revocable one is
 * cut off.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "importer.h"
#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE		(512 * KIB)
#define VRAM		VRAMSIM_PLACEMENT_VRAM
#define SYSTEM		VRAMSIM_PLACEMENT_SYSTEM

static bool mapped(int imp)
{
	return imp_info(imp).state & DMABUF_IMPORTER_MAPPED;
}

static bool revoked(int imp)
{
	return imp_info(imp).state & DMABUF_IMPORTER_REVOKED;
}

/* Each move: told, unmapped, mapped again elsewhere, every byte there. */
static void dynamic_follows(void)
{
	static const struct {
		const char *what;
		uint32_t to, flags, fence_ms;
	} steps[] = {
		{ "to system memory", SYSTEM, 0, 0 },
		{ "back to VRAM", VRAM, 0, 0 },
		{ "inside VRAM", VRAM, VRAMSIM_MOVE_SHUFFLE, 0 },
		{ "behind a fence", SYSTEM, 0, 300 },
		{ "back behind a fence", VRAM, 0, 300 },
	};
	uint8_t *want = malloc(SIZE), *got = malloc(SIZE);
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	uint64_t seed = 1, started;
	int imp = imp_open();

	for (size_t i = 0; i < SIZE; i++)
		want[i] = random_next(&seed);
	is(imp_import(imp, buf, DMABUF_IMPORTER_DYNAMIC, 0, SIZE), 0, "dynamic: import");
	is(imp_write(imp, 0, want, SIZE), 0, "dynamic: write");
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		started = now_ms();
		is(sim_move(buf, steps[i].to, steps[i].flags, steps[i].fence_ms), 0,
		   "dynamic: move %s", steps[i].what);
		ok(!mapped(imp), "dynamic: not mapped any more");
		is(imp_info(imp).notifies, i + 1, "dynamic: told once a move");
		is(sim_gem(buf).mapped, 0, "dynamic: the exporter sees no mapping");
		is(imp_read(imp, 0, got, 1), EFAULT, "dynamic: the device faults");
		is(imp_map(imp), 0, "dynamic: refault");
		ok(now_ms() - started >= steps[i].fence_ms, "dynamic: not before the fence");
		is(sim_gem(buf).placement, steps[i].to, "dynamic: where it was moved to");
		ok(!imp_read(imp, 0, got, SIZE) && !memcmp(got, want, SIZE),
		   "dynamic: every byte is there");
	}
	close(imp);
	dmabuf_free(buf);
	free(want);
	free(got);
}

/* Notifies without a reason, also of what is not mapped. */
static void dynamic_spurious_notify(void)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	int imp = imp_open();

	is(imp_import(imp, buf, DMABUF_IMPORTER_DYNAMIC, 0, SIZE), 0, "spurious notify: import");
	is(sim_move(buf, 0, VRAMSIM_MOVE_NOTIFY_ONLY, 0), 0, "spurious notify");
	ok(!mapped(imp) && imp_info(imp).notifies == 1, "spurious notify: unmapped, told once");
	is(sim_move(buf, 0, VRAMSIM_MOVE_NOTIFY_ONLY, 0), 0, "spurious notify, not mapped");
	is(imp_info(imp).notifies, 1, "spurious notify, not mapped: the driver is left alone");
	is(imp_info(imp).moves, 2, "spurious notify, not mapped: the core counts it");
	is(imp_map(imp), 0, "spurious notify: refault");
	ok(imp_works(imp, buf, 0, SIZE, 1), "spurious notify: data both ways");
	close(imp);
	dmabuf_free(buf);
}

/* A slow device holds the exporter up, and that is all. */
static void slow_device(void)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct dmabuf_importer_create args = {
		.fd = dmabuf_fd(buf),
		.contract = DMABUF_IMPORTER_DYNAMIC,
		.length = SIZE,
		.access = DMABUF_IMPORTER_ACCESS_ALL,
		.notify_delay_ms = 500,
	};
	int imp = imp_open();
	uint64_t started;

	is(imp_create_with(imp, &args), 0, "slow device: import");
	is(imp_map(imp), 0, "slow device: map");
	started = now_ms();
	is(sim_move(buf, SYSTEM, 0, 0), 0, "slow device: move");
	ok(now_ms() - started >= 500, "slow device: the exporter waited for it");
	is(imp_map(imp), 0, "slow device: refault");
	ok(imp_works(imp, buf, 0, SIZE, 2), "slow device: data both ways");
	close(imp);
	dmabuf_free(buf);
}

static void dynamic_revoked(void)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	char byte;
	int imp = imp_open();

	is(imp_import(imp, buf, DMABUF_IMPORTER_DYNAMIC, 0, SIZE), 0, "dynamic, revoke: import");
	is(sim_revoke(buf), 0, "dynamic, revoke");
	ok(!mapped(imp) && imp_info(imp).notifies == 1, "dynamic, revoke: unmapped, told once");
	is(imp_map(imp), ENODEV, "dynamic, revoke: refault gets ENODEV");
	ok(revoked(imp), "dynamic, revoke: for good");
	is(imp_read(imp, 0, &byte, 1), EACCES, "dynamic, revoke: the device reads nothing");
	is(imp_release(imp), 0, "dynamic, revoke: release");
	close(imp);
	dmabuf_free(buf);
}

struct storm {
	struct dmabuf *buf;
	int imp;
	atomic_bool stop;
	atomic_uint errors;
	unsigned int moves, busy;
};

#define WRITERS		8
#define STRIPE		(SIZE / WRITERS)
#define STORM_MOVES	150

struct writer {
	struct storm *storm;
	pthread_t thread;
	unsigned int index;
	unsigned int rounds;
};

/* Each writer owns a stripe, and reads back what it wrote before it goes on. */
static void *write_stripe(void *arg)
{
	struct writer *writer = arg;
	struct storm *storm = writer->storm;
	uint8_t want[8192], got[8192];

	while (!atomic_load(&storm->stop)) {
		uint64_t at = writer->index * STRIPE + writer->rounds * 8192ull % STRIPE;

		memset(want, ++writer->rounds + writer->index * 31, sizeof(want));
		if (imp_fault_write(storm->imp, at, want, sizeof(want)) ||
		    imp_fault_read(storm->imp, at, got, sizeof(got)) ||
		    memcmp(want, got, sizeof(got)))
			atomic_fetch_add(&storm->errors, 1);
	}
	return NULL;
}

static void *move_around(void *arg)
{
	struct storm *storm = arg;
	uint64_t seed = 1;

	while (storm->moves + storm->busy < STORM_MOVES) {
		uint64_t dice = random_next(&seed);
		int ret = sim_move(storm->buf, dice & 1 ? VRAM : SYSTEM, VRAMSIM_MOVE_SHUFFLE,
				   dice >> 1 & 7 ? 0 : 5);

		if (!ret)
			storm->moves++;
		else if (ret == EBUSY)
			storm->busy++;
		else
			break;
		usleep(1000);
	}
	atomic_store(&storm->stop, true);
	return NULL;
}

static void check_stripe(const struct writer *writer, const uint8_t *bytes)
{
	unsigned int last[STRIPE / 8192] = { 0 };
	bool right = true;

	for (unsigned int round = 1; round <= writer->rounds; round++)
		last[(round - 1) % (STRIPE / 8192)] = round;
	for (unsigned int i = 0; i < STRIPE / 8192; i++)
		for (unsigned int j = 0; last[i] && j < 8192; j++)
			right &= bytes[i * 8192 + j] ==
				 (uint8_t)(last[i] + writer->index * 31);
	ok(right && writer->rounds, "move storm: stripe %u holds what was written last (%u writes)",
	   writer->index, writer->rounds);
}

static void move_storm(bool kernel_moves)
{
	struct storm storm = { .buf = rig_vram(SIZE, NULL), .imp = imp_open() };
	struct writer writers[WRITERS];
	uint8_t *bytes = malloc(SIZE);
	pthread_t mover;

	is(imp_import(storm.imp, storm.buf, DMABUF_IMPORTER_DYNAMIC, 0, SIZE), 0,
	   "move storm: import");
	for (unsigned int i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){ .storm = &storm, .index = i };
		if (pthread_create(&writers[i].thread, NULL, write_stripe, &writers[i]))
			bail("no thread");
	}
	if (pthread_create(&mover, NULL, move_around, &storm))
		bail("no thread");
	pthread_join(mover, NULL);
	for (unsigned int i = 0; i < WRITERS; i++)
		pthread_join(writers[i].thread, NULL);

	is(atomic_load(&storm.errors), 0, "move storm: no error");
	if (kernel_moves) {
		is(storm.moves, STORM_MOVES, "move storm: %u moves", storm.moves);
		is(storm.busy, 0, "move storm: the importer is never in the way");
		is(imp_info(storm.imp).map_errors, 0, "move storm: no map failed");
		ok(imp_info(storm.imp).maps >= 10, "move storm: mapped %llu times",
		   (unsigned long long)imp_info(storm.imp).maps);
	} else {
		is(storm.busy, STORM_MOVES, "move storm: a kernel that pins lets nothing move");
		is(storm.moves, 0, "move storm: nothing moved");
	}
	if (dmabuf_read(storm.buf, 0, bytes, SIZE))
		bail("exporter reads: %s", strerror(errno));
	for (unsigned int i = 0; i < WRITERS; i++)
		check_stripe(&writers[i], bytes + i * STRIPE);
	close(storm.imp);
	dmabuf_free(storm.buf);
	free(bytes);
}

static void pinned_stays(uint32_t contract)
{
	const char *name = imp_contract(contract);
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	int imp = imp_open();

	is(imp_import(imp, buf, contract, 0, SIZE), 0, "%s: import", name);
	is(sim_move(buf, SYSTEM, 0, 0), EBUSY, "%s: a move is refused", name);
	is(sim_move(buf, VRAM, VRAMSIM_MOVE_SHUFFLE, 0), EBUSY, "%s: inside VRAM as well", name);
	ok(mapped(imp) && !revoked(imp) && !imp_info(imp).revokes, "%s: nothing happened", name);
	ok(imp_works(imp, buf, 0, SIZE, 3), "%s: data both ways", name);
	is(imp_release(imp), 0, "%s: release", name);
	is(sim_move(buf, SYSTEM, 0, 0), 0, "%s: then it moves", name);
	close(imp);
	dmabuf_free(buf);
}

/* Plainly pinned: the exporter has to keep the memory until release. */
static void pinned_outlives_revoke(void)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct counters before, after;
	uint8_t byte = 0;
	int imp = imp_open();

	dmabuf_fill(buf, 0, 0x42, SIZE);
	counters_get(&before);
	is(imp_import(imp, buf, DMABUF_IMPORTER_PINNED, 0, SIZE), 0, "pinned, revoke: import");
	is(sim_revoke(buf), 0, "pinned, revoke");
	ok(mapped(imp) && !revoked(imp), "pinned, revoke: mapped as before");
	ok(!imp_read(imp, SIZE - 1, &byte, 1) && byte == 0x42, "pinned, revoke: memory is there");
	counters_get(&after);
	is(after.vram_free, before.vram_free, "pinned, revoke: and belongs to nobody else");
	is(imp_release(imp), 0, "pinned, revoke: release");
	counters_get(&after);
	is(after.vram_free, before.vram_free + SIZE, "pinned, revoke: then it is free");
	close(imp);
	dmabuf_free(buf);
}

/* Once, and for good; a second time changes nothing. */
static void revocable_cut_off(const char *how, bool by_exporter)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct counters before, after;
	int imp = imp_open();
	uint8_t byte = 0;

	counters_get(&before);
	is(imp_import(imp, buf, DMABUF_IMPORTER_REVOCABLE, 0, SIZE), 0, "revoke by %s: import",
	   how);
	ok(imp_works(imp, buf, 0, SIZE, 4), "revoke by %s: data both ways before", how);
	for (int round = 1; round <= 2; round++) {
		is(by_exporter ? sim_revoke(buf) : imp_revoke(imp), 0, "revoke by %s, time %d", how,
		   round);
		ok(revoked(imp) && !mapped(imp), "revoke by %s: revoked, not mapped", how);
		is(imp_info(imp).revokes, 1, "revoke by %s: the driver is told once", how);
		is(sim_gem(buf).pinned, 0, "revoke by %s: no pin left", how);
		is(sim_gem(buf).mapped, 0, "revoke by %s: no mapping left", how);
	}
	is(imp_read(imp, 0, &byte, 1), EACCES, "revoke by %s: the device reads nothing", how);
	is(imp_write(imp, 0, &byte, 1), EACCES, "revoke by %s: the device writes nothing", how);
	is(imp_map(imp), ENODEV, "revoke by %s: map gets ENODEV", how);
	counters_get(&after);
	is(after.vram_free, before.vram_free + (by_exporter ? SIZE : 0),
	   "revoke by %s: its memory is %s", how, by_exporter ? "free" : "still there");
	is(sim_gem(buf).attached, 1, "revoke by %s: still attached until release", how);
	is(imp_release(imp), 0, "revoke by %s: release", how);
	is(imp_info(imp).revokes, 1, "revoke by %s: release tells nobody again", how);
	is(sim_gem(buf).attached, 0, "revoke by %s: detached", how);
	if (!by_exporter) {
		is(imp_import(imp, buf, DMABUF_IMPORTER_REVOCABLE, 0, SIZE), 0,
		   "revoke by %s: the buffer can be imported again", how);
		ok(imp_works(imp, buf, 0, SIZE, 5), "revoke by %s: and works", how);
	} else {
		is(imp_import(imp, buf, DMABUF_IMPORTER_REVOCABLE, 0, SIZE), ENODEV,
		   "revoke by %s: no new import", how);
	}
	close(imp);
	dmabuf_free(buf);
}

/* The exporter's word outside of a pin is a revoke, whatever it meant by it. */
static void revocable_notified(void)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	int imp = imp_open();

	is(imp_import(imp, buf, DMABUF_IMPORTER_REVOCABLE, 0, SIZE), 0,
	   "notify of revocable: import");
	is(sim_move(buf, 0, VRAMSIM_MOVE_NOTIFY_ONLY, 0), 0, "notify of revocable");
	ok(revoked(imp) && imp_info(imp).revokes == 1, "notify of revocable: cut off, told once");
	is(sim_gem(buf).pinned, 0, "notify of revocable: no pin left");
	is(sim_move(buf, SYSTEM, 0, 0), 0, "notify of revocable: the buffer can move again");
	close(imp);
	dmabuf_free(buf);
}

/* The device is off already when the memory goes: it learns of it when it maps. */
static void revocable_gone_while_unmapped(void)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	int imp = imp_open();

	is(imp_import(imp, buf, DMABUF_IMPORTER_REVOCABLE, 0, SIZE), 0,
	   "gone while unmapped: import");
	is(imp_unmap(imp), 0, "gone while unmapped: unmap");
	is(sim_revoke(buf), 0, "gone while unmapped: revoke");
	is(imp_map(imp), ENODEV, "gone while unmapped: map");
	ok(revoked(imp) && imp_info(imp).revokes == 1, "gone while unmapped: told once");
	is(sim_gem(buf).pinned, 0, "gone while unmapped: no pin left");
	is(imp_release(imp), 0, "gone while unmapped: release");
	close(imp);
	dmabuf_free(buf);
}

static void pinned_spurious_notify(void)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	int imp = imp_open();

	is(imp_import(imp, buf, DMABUF_IMPORTER_PINNED, 0, SIZE), 0, "notify of pinned: import");
	is(sim_move(buf, 0, VRAMSIM_MOVE_NOTIFY_ONLY, 0), 0, "notify of pinned");
	ok(mapped(imp) && !revoked(imp), "notify of pinned: mapped as before");
	is(imp_info(imp).moves, 1, "notify of pinned: counted");
	ok(imp_works(imp, buf, 0, SIZE, 6), "notify of pinned: data both ways");
	close(imp);
	dmabuf_free(buf);
}

/* One buffer, all three contracts: one revoke, and each as it was promised. */
static void all_on_one_buffer(void)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	int imp[IMP_CONTRACTS];

	for (uint32_t i = 0; i < IMP_CONTRACTS; i++) {
		imp[i] = imp_open();
		is(imp_import(imp[i], buf, i, 0, SIZE), 0, "all on one buffer: %s import",
		   imp_contract(i));
	}
	is(sim_move(buf, SYSTEM, 0, 0), EBUSY, "all on one buffer: a move is refused");
	is(sim_revoke(buf), 0, "all on one buffer: revoke");
	ok(!mapped(imp[DMABUF_IMPORTER_DYNAMIC]), "all on one buffer: dynamic is unmapped");
	ok(mapped(imp[DMABUF_IMPORTER_PINNED]), "all on one buffer: pinned stays mapped");
	ok(revoked(imp[DMABUF_IMPORTER_REVOCABLE]), "all on one buffer: revocable is cut off");
	for (uint32_t i = 0; i < IMP_CONTRACTS; i++)
		close(imp[i]);
	dmabuf_free(buf);
}

int main(void)
{
	struct counters start;
	bool kernel_moves;

	imp_setup();
	kernel_moves = imp_kernel_moves();
	counters_get(&start);

	if (kernel_moves) {
		dynamic_follows();
		slow_device();
	} else {
		/* map pins, so a move is refused as for the other contracts */
		pinned_stays(DMABUF_IMPORTER_DYNAMIC);
	}
	dynamic_spurious_notify();
	dynamic_revoked();
	move_storm(kernel_moves);
	pinned_stays(DMABUF_IMPORTER_PINNED);
	pinned_stays(DMABUF_IMPORTER_REVOCABLE);
	pinned_outlives_revoke();
	pinned_spurious_notify();
	revocable_cut_off("the exporter", true);
	revocable_cut_off("the importer", false);
	revocable_notified();
	revocable_gone_while_unmapped();
	all_on_one_buffer();

	ok(counters_back(&start, 1000), "counters are back");
	return tap_done();
}
