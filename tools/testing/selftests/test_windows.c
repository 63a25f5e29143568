// SPDX-License-Identifier: GPL-2.0
/*
 * A thousand random windows, on an exporter that keeps its mappings (vgem) and on
 * vramsim, with a registration interrupted in between: the exporter's tables and
 * counters come back as they were, which DMA-API debugging checks as well.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE	(256 * KIB)
#define IOVA	0xd00000000ull

static struct rig rig;

static void do_nothing(int sig)
{
	(void)sig;
}

static int windows(struct dmabuf *buf, int count, uint64_t *seed)
{
	int bad = 0;

	for (int i = 0; i < count; i++) {
		uint64_t offset = random_next(seed) % SIZE;
		uint64_t length = 1 + random_next(seed) % (SIZE - offset);
		uint64_t iova = IOVA + (random_next(seed) % 1024) * 4096 + offset % 4096;
		struct mr mr;
		int err;

		err = rig_reg(&rig, dmabuf_fd(buf), offset, length, iova, &mr);
		if (err || !rig_works(&rig, &mr, iova, buf, offset, length > 512 ? 512 : length) ||
		    !rig_works(&rig, &mr, iova + length - 1, buf, offset + length - 1, 1)) {
			diag("  window %d: offset %" PRIu64 ", length %" PRIu64 ", iova %#" PRIx64
			     ": errno %d", i, offset, length, iova, err);
			bad++;
		}
		err = err ? 0 : mr_dereg(&mr);
		if (err) {
			diag("  window %d: deregister: %s", i, strerror(err));
			bad++;
		}
	}
	return bad;
}

static void interrupted(struct dmabuf *buf)
{
	struct sigaction action = { .sa_handler = do_nothing };
	/* Again and again: a busy machine may not be in the wait after 20 ms. */
	struct itimerval timer = {
		.it_value.tv_usec = 20 * 1000, .it_interval.tv_usec = 20 * 1000,
	};
	struct mr mr;
	int err;

	sigaction(SIGALRM, &action, NULL);
	if (sim_fence(buf, 300))
		bail("no fence");
	setitimer(ITIMER_REAL, &timer, NULL);
	err = rig_reg(&rig, dmabuf_fd(buf), 1, SIZE - 2, IOVA + 1, &mr);
	setitimer(ITIMER_REAL, &(struct itimerval){}, NULL);
	is(err, EINTR, "vramsim: a registration is interrupted in its wait for a fence");
}

int main(int argc, char **argv)
{
	uint64_t seed = random_seed(argc, argv);
	int count = option_number(argc, argv, "count", 1000);
	struct counters start;
	struct dmabuf *buf;

	rig_up(&rig);
	counters_get(&start);
	buf = rig_vgem(SIZE);
	if (buf)
		is(windows(buf, count, &seed), 0, "vgem: %d windows", count);
	else
		skip("vgem", "no vgem in this kernel");
	dmabuf_free(buf);

	buf = rig_vram(SIZE, NULL);
	is(windows(buf, count / 2, &seed), 0, "vramsim: %d windows", count / 2);
	if (rig.traits.ours)
		interrupted(buf);
	else
		skip("interrupted", "the kernel's own code cannot be");
	is(windows(buf, count / 2, &seed), 0, "vramsim: %d windows more", count / 2);
	dmabuf_free(buf);
	ok(counters_back(&start, 2000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
