// SPDX-License-Identifier: GPL-2.0
/*
 * What the CPU view of the exporter sees of RDMA, and RDMA of it:
 * - data written before a flag is there when the flag is seen;
 * - memory that the GPU changes while it is sent does not spoil a packet: the
 *   checksum is that of the bytes sent, so nothing is dropped and sent again.
 *
 *	test_rxe_order [--rounds N]
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "kmsg.h"
#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE	(64 * KIB)
#define WORDS	(SIZE / sizeof(uint64_t))
#define FLAG	(WORDS - 1)

struct watcher {
	volatile uint64_t *view;
	uint64_t rounds;
	uint64_t seen;			/* flags */
	uint64_t early;			/* of these, before their data */
	_Atomic uint64_t acknowledged;
	_Atomic bool stop;
};

/* The GPU's side: waits for each round's flag, then looks at all data at once. */
static void *watch(void *arg)
{
	struct watcher *w = arg;

	for (uint64_t round = 1; round <= w->rounds && !w->stop; round++) {
		while (w->view[FLAG] != round && !w->stop)
			;
		if (w->stop)
			break;
		atomic_thread_fence(memory_order_acquire);
		w->seen++;
		for (size_t i = 0; i < FLAG; i++) {
			if (w->view[i] != round) {
				w->early++;
				break;
			}
		}
		w->acknowledged = round;
	}
	return NULL;
}

static int post_write(struct rig *rig, const struct mr *mr, size_t word, size_t count)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)rig->host + word * sizeof(uint64_t),
		.length = count * sizeof(uint64_t),
		.lkey = rig->host_mr->lkey,
	};

	return rc_post(&rig->pair.a, IBV_WR_RDMA_WRITE, &sge, word * sizeof(uint64_t), mr->rkey);
}

static int wait_write(struct rig *rig)
{
	struct ibv_wc wc;

	return rc_wait(&rig->pair.a, &wc, RC_PATIENCE_MS);
}

/* @wait: the completion of the data is polled before the flag is sent. */
static void check_flag(struct rig *rig, struct dmabuf *buf, const struct mr *mr, uint64_t rounds,
		       bool wait)
{
	const char *how = wait ? "flag after polled completion" : "flag posted behind the data";
	struct watcher w = { .view = dmabuf_map_cpu(buf), .rounds = rounds };
	uint64_t *host = (uint64_t *)rig->host;
	uint64_t give_up = now_ms() + 120000;
	pthread_t thread;
	int status = 0;

	if (!w.view)
		bail("mmap of the buffer: %s", strerror(errno));
	if (dmabuf_fill(buf, 0, 0, SIZE) || pthread_create(&thread, NULL, watch, &w))
		bail("set-up");
	for (uint64_t round = 1; round <= rounds && !status; round++) {
		for (size_t i = 0; i < WORDS; i++)
			host[i] = round;
		if (post_write(rig, mr, 0, FLAG))
			bail("post: %s", strerror(errno));
		if (wait)
			status = wait_write(rig);
		if (!status && post_write(rig, mr, FLAG, 1))
			bail("post: %s", strerror(errno));
		for (int n = wait ? 1 : 2; n && !status; n--)
			status = wait_write(rig);
		while (!status && w.acknowledged != round && now_ms() < give_up)
			;
	}
	w.stop = true;
	pthread_join(thread, NULL);
	is(status, IBV_WC_SUCCESS, "%s: WRITEs complete", how);
	is(w.seen, rounds, "%s: each flag is seen", how);
	is(w.early, 0, "%s: never before its data", how);
}

struct counting {
	volatile uint64_t *view;
	_Atomic bool stop;
	uint64_t laps;
};

/* The GPU counts in every cache line of the buffer. */
static void *count(void *arg)
{
	struct counting *c = arg;

	while (!c->stop) {
		c->laps++;
		for (size_t i = 0; i < WORDS; i += 8)
			c->view[i] = c->laps;
	}
	return NULL;
}

static void check_checksum(struct rig *rig, struct dmabuf *buf, const struct mr *mr,
			   uint64_t rounds)
{
	struct counting c = { .view = dmabuf_map_cpu(buf) };
	struct ibv_sge host = { (uintptr_t)rig->host, SIZE, rig->host_mr->lkey };
	struct ibv_sge vram = { 0, SIZE, mr->lkey };
	pthread_t thread;
	int log = kmsg_open();
	int bad = 0;

	if (pthread_create(&thread, NULL, count, &c))
		bail("pthread_create");
	for (uint64_t round = 0; round < rounds; round++) {
		bad += !!rc_do(&rig->pair.a, IBV_WR_RDMA_READ, &host, 0, mr->rkey);
		bad += !!rc_do(&rig->pair.b, IBV_WR_RDMA_WRITE, &vram, (uintptr_t)rig->host,
			       rig->host_mr->rkey);
	}
	c.stop = true;
	pthread_join(thread, NULL);
	diag("%llu laps of the GPU's counter", (unsigned long long)c.laps);
	is(bad, 0, "READs and WRITEs of memory that changes succeed");
	is(kmsg_count(log, "bad ICRC"), 0, "no packet is dropped for its checksum");
	close(log);
}

int main(int argc, char **argv)
{
	struct counters start;
	struct dmabuf *buf;
	uint64_t rounds;
	struct rig rig;
	struct mr mr;

	rig_up(&rig);
	rounds = option_number(argc, argv, "rounds", 100);
	counters_get(&start);
	buf = rig_vram(SIZE, NULL);
	if (rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, 0, &mr))
		bail("register");
	check_flag(&rig, buf, &mr, rounds, true);
	check_flag(&rig, buf, &mr, rounds, false);
	check_checksum(&rig, buf, &mr, rounds);
	mr_dereg(&mr);
	dmabuf_free(buf);
	ok(counters_back(&start, 1000), "counters are back");
	rig_down(&rig);
	return tap_done();
}
