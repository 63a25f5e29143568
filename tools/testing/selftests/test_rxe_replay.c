// SPDX-License-Identifier: GPL-2.0
/*
 * A responder resource of rxe keeps a reference to the MR that was READ, for as
 * long as the queue pair lives.  Dereg neither waits for it nor leaves it to that
 * reference, which may be dropped in a softirq, to give the dma-buf back.
 *
 * What happens in the wrong context is seen by the debug kernel.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE	(1 * MIB)
#define ROUNDS	40

static void post_read(struct rig *rig, const struct mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)rig->host, SIZE, rig->host_mr->lkey };

	if (rc_post(&rig->pair.a, IBV_WR_RDMA_READ, &sge, 0, mr->rkey))
		bail("rc_post: %s", strerror(errno));
}

static int wait_read(struct rig *rig)
{
	struct ibv_wc wc;

	return rc_wait(&rig->pair.a, &wc, RC_PATIENCE_MS);
}

static void register_all(struct rig *rig, struct dmabuf *buf, struct mr *mr)
{
	int err = rig_reg(rig, dmabuf_fd(buf), 0, SIZE, 0, mr);

	if (err)
		bail("register: %s", strerror(err));
}

static void check_held_resource(struct rig *rig, struct dmabuf *buf)
{
	struct drm_vramsim_gem_info info;
	struct mr mr;

	register_all(rig, buf, &mr);
	post_read(rig, &mr);
	is(wait_read(rig), IBV_WC_SUCCESS, "READ once, keep the QP");
	is(mr_dereg(&mr), 0, "dereg while the responder could replay: does not wait for the QP");
	ok(!sim_gem_info(buf, &info) && !info.attached && !info.pinned && !info.vmapped,
	   "the exporter has its buffer back while the QP still lives");
	if (rc_pair_reconnect(&rig->pair))
		bail("rc_pair_reconnect: %s", strerror(errno));
	ok(true, "the QP drops its reference");
}

/* Dereg at different moments of a READ, then the QPs go. */
static void check_in_flight(struct rig *rig, struct dmabuf *buf, uint64_t *seed)
{
	struct drm_vramsim_gem_info info;
	int good = 0, refused = 0, other = 0;
	bool back = true;

	for (int i = 0; i < ROUNDS; i++) {
		struct timespec delay = { .tv_nsec = random_next(seed) % 20000000 };
		struct mr mr;
		int status;

		register_all(rig, buf, &mr);
		post_read(rig, &mr);
		nanosleep(&delay, NULL);
		if (mr_dereg(&mr))
			bail("dereg failed");
		back &= !sim_gem_info(buf, &info) && !info.attached && !info.vmapped;
		status = wait_read(rig);
		good += status == IBV_WC_SUCCESS;
		refused += status == IBV_WC_REM_ACCESS_ERR;
		if (status != IBV_WC_SUCCESS && status != IBV_WC_REM_ACCESS_ERR) {
			diag("  status %d", status);
			other++;
		}
		rig_down(rig);
		rig_up(rig);
	}
	ok(back, "dereg in flight gives the buffer back each time");
	diag("%d READs done, %d refused in the middle", good, refused);
	ok(refused > 0, "some READs were cut short");
	is(other, 0, "a READ ends in success or remote access error");
}

int main(int argc, char **argv)
{
	struct counters start;
	struct dmabuf *buf;
	uint64_t seed;
	struct rig rig;

	rig_up(&rig);
	seed = random_seed(argc, argv);
	counters_get(&start);
	buf = rig_vram(SIZE, NULL);
	check_held_resource(&rig, buf);
	check_in_flight(&rig, buf, &seed);
	dmabuf_free(buf);
	ok(counters_back(&start, 1000), "counters are back");
	rig_down(&rig);
	return tap_done();
}
