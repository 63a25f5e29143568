// SPDX-License-Identifier: GPL-2.0
/*
 * Each line of the contract's semantics.  Those that are a field case, too, have
 * files of their own: the fd's life test_k05, memlock test_k13, rereg test_k25,
 * sizes test_k11; removal of the device is in test_removal.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "child.h"
#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE	(1 * MIB)
#define IOVA	0x800000000ull

static struct rig rig;

/* ibv_mr.addr holds the offset, the iova goes on the wire. */
static void test_addr(struct dmabuf *buf)
{
	uint64_t offset = 64 * KIB + 24, iova = IOVA + 24;
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(rig.pair.b.pd, offset, 4096, iova, dmabuf_fd(buf),
					      RIG_ACCESS);
	struct mr view = { 0 };

	if (!mr && errno == EOPNOTSUPP) {
		skip("ibv_mr.addr is the offset", "this rdma-core's provider has no reg_dmabuf_mr");
		return;
	}
	if (!ok(mr, "ibv_reg_dmabuf_mr()"))
		return;
	view.rkey = mr->rkey;
	is((uintptr_t)mr->addr, offset, "ibv_mr.addr is the offset");
	is(mr->length, 4096, "ibv_mr.length is the length");
	ok(rig_works(&rig, &view, iova, buf, offset, 4096), "the iova goes on the wire");
	is(rig_write(&rig, &view, offset, "x", 1), IBV_WC_REM_ACCESS_ERR,
	   "the offset does not");
	is(ibv_dereg_mr(mr), 0, "ibv_dereg_mr()");
}

/* The keys are as for any MR: the same one serves SGEs and the wire. */
static void test_keys(struct dmabuf *buf)
{
	struct mr_reg reg = rig_reg_args(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, RIG_ACCESS);
	struct ibv_sge sge = { .addr = IOVA + 8, .length = 4096 };
	uint8_t host[4096], seen[4096];
	struct mr remote, local, read_only;

	memset(host, 0x3c, sizeof(host));
	is(mr_reg(&reg, &remote), 0, "register for the wire");
	reg.pd = rig.pair.a.pd;
	reg.access = IBV_ACCESS_LOCAL_WRITE;
	is(mr_reg(&reg, &local), 0, "register for SGEs, in another PD");
	ok(local.lkey != remote.lkey, "two registrations, two keys");
	reg.pd = rig.pair.b.pd;
	reg.access = IBV_ACCESS_REMOTE_READ;
	is(mr_reg(&reg, &read_only), 0, "register for READ only");

	/* From the buffer by its lkey to the buffer by its rkey */
	sge.lkey = local.lkey;
	dmabuf_write(buf, 8, host, sizeof(host));
	is(rc_do(&rig.pair.a, IBV_WR_RDMA_WRITE, &sge, IOVA + 64 * KIB, remote.rkey),
	   IBV_WC_SUCCESS, "WRITE from lkey to rkey");
	dmabuf_read(buf, 64 * KIB, seen, sizeof(seen));
	ok(!memcmp(host, seen, sizeof(host)), "the data has moved inside the buffer");

	is(rig_read(&rig, &read_only, IOVA + 64 * KIB, seen, sizeof(seen)), IBV_WC_SUCCESS,
	   "READ of a read-only MR");
	is(rig_write(&rig, &read_only, IOVA, host, sizeof(host)), IBV_WC_REM_ACCESS_ERR,
	   "WRITE to a read-only MR: remote access error");
	is(rig_write(&rig, &local, IOVA, host, sizeof(host)), IBV_WC_REM_ACCESS_ERR,
	   "the key of another PD: remote access error");
	is(mr_dereg(&read_only), 0, "deregister");
	is(mr_dereg(&local), 0, "deregister");
	is(mr_dereg(&remote), 0, "deregister");
}

struct forked {
	struct mr *mr;
	struct dmabuf *buf;
};

/* What a child can do to what it inherits */
static int child_destroys(void *arg)
{
	struct forked *forked = arg;
	uint8_t *map = dmabuf_map_cpu(forked->buf);

	if (!map)
		return 1;
	munmap(map, SIZE);
	close(dmabuf_fd(forked->buf));
	close(dmabuf_drm_fd(forked->buf));
	munmap(rig.host, RIG_HOST_SIZE);
	return 0;
}

static void test_fork(struct dmabuf *buf)
{
	struct forked forked = { .buf = buf };
	struct mr mr;

	is(rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr), 0, "register before fork()");
	forked.mr = &mr;
	if (!dmabuf_map_cpu(buf))
		bail("cannot map the buffer");
	is(child_run(child_destroys, &forked, 10000), 0, "a child closes and unmaps everything");
	ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE), "the parent's MR works");
	is(mr_dereg(&mr), 0, "deregister");
}

/* A flag word behind the data: whoever sees the flag sees the data. */
#define ROUNDS		200
#define DATA_LENGTH	(16 * KIB)

struct watch {
	volatile uint8_t *map;
	volatile uint32_t seen;	/* last round whose flag was seen */
	uint32_t early;		/* rounds whose flag came before their data */
};

static void *watch_flag(void *arg)
{
	struct watch *watch = arg;
	volatile uint32_t *flag = (volatile uint32_t *)(watch->map + DATA_LENGTH);

	for (uint32_t round = 1; round <= ROUNDS; round++) {
		uint64_t deadline = now_ms() + 30000;

		while (*flag != round)
			if (now_ms() > deadline)
				return NULL;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		for (int i = 0; i < (int)DATA_LENGTH; i += 512) {
			if (watch->map[i] != (uint8_t)round) {
				watch->early++;
				break;
			}
		}
		watch->seen = round;
	}
	return NULL;
}

static void test_data_then_flag(struct dmabuf *buf)
{
	struct watch watch = { .map = dmabuf_map_cpu(buf) };
	static uint8_t data[DATA_LENGTH];
	uint32_t late = 0, failed = 0;
	pthread_t thread;
	struct mr mr;

	if (!watch.map)
		bail("cannot map the buffer");
	dmabuf_fill(buf, 0, 0, SIZE);
	is(rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr), 0, "register for data, then flag");
	if (pthread_create(&thread, NULL, watch_flag, &watch))
		bail("pthread_create");
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		uint64_t deadline = now_ms() + 30000;

		memset(data, round, sizeof(data));
		if (rig_write(&rig, &mr, IOVA, data, sizeof(data)))
			failed++;
		/* The completion is polled: the CPU sees all of it. */
		for (int i = 0; i < (int)DATA_LENGTH; i += 512)
			late += watch.map[i] != (uint8_t)round;
		if (rig_write(&rig, &mr, IOVA + DATA_LENGTH, &round, sizeof(round)))
			failed++;
		while (watch.seen != round && now_ms() < deadline)
			usleep(100);
	}
	pthread_join(thread, NULL);
	is(failed, 0, "data, then flag: all WRITEs succeed");
	is(watch.seen, ROUNDS, "data, then flag: the CPU saw every flag");
	is(watch.early, 0, "data, then flag: no flag came before its data");
	is(late, 0, "what is complete is visible to the CPU");
	is(mr_dereg(&mr), 0, "deregister");
}

/* Whether @key is among the keys of @count fresh MRs, on as many buffers. */
static bool key_comes_again(uint32_t key, int count)
{
	struct dmabuf *bufs[64];
	struct mr fresh[64];
	bool again = false;

	for (int i = 0; i < count; i++) {
		bufs[i] = rig_vram(4096, NULL);
		if (rig_reg(&rig, dmabuf_fd(bufs[i]), 0, 4096, IOVA, &fresh[i]))
			bail("cannot register");
		/* Drivers change the low 8 bits at each use of an index. */
		again |= fresh[i].rkey >> 8 == key >> 8;
	}
	for (int i = 0; i < count; i++) {
		mr_dereg(&fresh[i]);
		dmabuf_free(bufs[i]);
	}
	return again;
}

static void test_revoke(const char *name, uint64_t length)
{
	static uint8_t got[SIZE], canary[SIZE];
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct mr_reg reg = rig_reg_args(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, RIG_ACCESS);
	struct ibv_sge sge = { .addr = IOVA, .length = length };
	struct drm_vramsim_gem_info info;
	struct mr mr, local;
	int status;

	dmabuf_fill(buf, 0, 0x77, SIZE);
	is(mr_reg(&reg, &mr), 0, "%s: register", name);
	reg.pd = rig.pair.a.pd;
	is(mr_reg(&reg, &local), 0, "%s: register for SGEs", name);
	ok(rig_works(&rig, &mr, IOVA, buf, 0, length), "%s: works before", name);

	is(sim_revoke(buf), 0, "%s: the exporter revokes", name);
	sim_gem_info(buf, &info);
	is(info.pinned, 0, "%s: no pin is left", name);

	is(rig_write(&rig, &mr, IOVA, got, length), IBV_WC_REM_ACCESS_ERR,
	   "%s: WRITE after it: remote access error", name);
	memset(canary, 0xee, sizeof(canary));
	memcpy(rig.host, canary, length);
	sge.addr = (uintptr_t)rig.host;
	sge.lkey = rig.host_mr->lkey;
	status = rc_do(&rig.pair.a, IBV_WR_RDMA_READ, &sge, IOVA, mr.rkey);
	rc_pair_reconnect(&rig.pair);
	is(status, IBV_WC_REM_ACCESS_ERR, "%s: READ after it: remote access error", name);
	ok(!memcmp(rig.host, canary, length), "%s: READ after it: brings nothing", name);

	sge.lkey = local.lkey;
	sge.addr = IOVA;
	sge.length = length;
	status = rc_do(&rig.pair.a, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)rig.host,
		       rig.host_mr->rkey);
	rc_pair_reconnect(&rig.pair);
	is(status, IBV_WC_LOC_PROT_ERR, "%s: as an SGE: local protection error", name);

	ok(!key_comes_again(mr.rkey, 64), "%s: the key is taken until dereg", name);
	is(sim_revoke(buf), 0, "%s: a second revoke is harmless", name);
	is(mr_dereg(&mr), 0, "%s: deregister", name);
	is(mr_dereg(&local), 0, "%s: deregister", name);
	sim_gem_info(buf, &info);
	is(info.attached + info.vmapped + info.pinned, 0, "%s: the exporter has its all back",
	   name);
	is(rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr), ENODEV,
	   "%s: a new registration: ENODEV", name);
	dmabuf_free(buf);
}

/* A pinned buffer stays: that is what the pin is for. */
static void test_pin_holds(struct dmabuf *buf)
{
	struct drm_vramsim_gem_info before, after;
	struct mr mr;

	sim_gem_info(buf, &before);
	is(rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr), 0, "register what could move");
	is(sim_move(buf, VRAMSIM_PLACEMENT_SYSTEM, 0, 0), EBUSY, "a move gets EBUSY");
	sim_gem_info(buf, &after);
	is(after.placement, before.placement, "the buffer is where it was");
	is(after.maps - before.maps, rig_holds(&rig, 0).mapped,
	   "mapped for DMA where the device needs it");
	ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE), "the MR works");
	is(mr_dereg(&mr), 0, "deregister");
	is(sim_move(buf, VRAMSIM_PLACEMENT_SYSTEM, 0, 0), 0, "afterwards it moves");
	is(rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr), 0, "register where it is now");
	ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE), "the MR works there");
	is(mr_dereg(&mr), 0, "deregister");
	is(sim_move(buf, VRAMSIM_PLACEMENT_VRAM, 0, 0), 0, "and it moves back");
}

/* What follows moves is not in the exporter's way. */
static void test_move_is_followed(struct dmabuf *buf)
{
	static const uint32_t places[] = { VRAMSIM_PLACEMENT_SYSTEM, VRAMSIM_PLACEMENT_VRAM };
	struct mr mr;

	is(rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr), 0, "register what could move");
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		is(sim_move(buf, places[i], 0, 0), 0, "it moves");
		is(sim_gem(buf).placement, places[i], "the buffer is where it was moved to");
		is(sim_gem(buf).mapped, 0, "nobody has it mapped");
		ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE), "the MR works there");
	}
	is(mr_dereg(&mr), 0, "deregister");
}

int main(void)
{
	struct counters start;
	struct dmabuf *buf;

	rig_up(&rig);
	counters_get(&start);
	buf = rig_vram(SIZE, NULL);
	test_addr(buf);
	test_keys(buf);
	test_fork(buf);
	test_data_then_flag(buf);
	if (rig.traits.follows)
		test_move_is_followed(buf);
	else
		test_pin_holds(buf);
	test_revoke("revoke, one packet", 64);
	test_revoke("revoke, many packets", 64 * KIB);
	dmabuf_free(buf);
	ok(counters_back(&start, 1000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
