// SPDX-License-Identifier: GPL-2.0
/*
 * Many dma-buf MRs: thousands at once, and a long row of registrations, of which the
 * last ones cost what the first ones did. Nothing is left of either.
 *
 *	test_mlx5_limits [--live N] [--row N]		(10000, 100000)
 *
 * Costs are instructions, so it needs --icount 0. There, time passes at once while
 * the guest is idle: the minutes after which the driver shrinks its cache of keys
 * are waited for.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mlx5_rig.h"
#include "sim.h"
#include "tap.h"

#define BUFFERS		50
#define BUFFER_SIZE	(2 * MIB)
#define PAGE		4096ull
#define PAGES_MAX	16		/* of a window */
#define SAMPLES		200
#define PART		1000		/* registrations that are compared */
#define WARM_UP		1000
#define TOLERANCE	0.05
#define WAIT_S		1800		/* for the cache of keys */
#define MEMORY_KIB	1024		/* what comes and goes */

static struct rig rig;
static struct dmabuf *bufs[BUFFERS];

/**
 * struct window - where an MR lies
 * @buf: its buffer
 * @offset: of the first page there
 * @length: in bytes
 */
struct window {
	struct dmabuf *buf;
	uint64_t offset;
	uint64_t length;
};

static struct window random_window(uint64_t *state)
{
	uint64_t pages = BUFFER_SIZE / PAGE, first = random_next(state) % pages;
	uint64_t most = pages - first < PAGES_MAX ? pages - first : PAGES_MAX;

	return (struct window){
		.buf = bufs[random_next(state) % BUFFERS],
		.offset = first * PAGE,
		.length = (1 + random_next(state) % most) * PAGE,
	};
}

static int reg(const struct window *w, struct mr *mr)
{
	return rig_reg(&rig, dmabuf_fd(w->buf), w->offset, w->length, 0, mr);
}

static void test_live(unsigned int count)
{
	struct window *windows = calloc(count, sizeof(*windows));
	struct mr *mrs = calloc(count, sizeof(*mrs));
	unsigned int keys = mlx5sim_live_keys(MLX5_LID);
	unsigned int made = 0, right = 0, failed = 0;
	uint64_t state = 1, start, first = 0;

	if (!windows || !mrs)
		bail("no memory");
	start = now_ns();
	for (; made < count; made++) {
		if (made == PART)
			first = now_ns() - start;
		if (made == count - PART)
			start = now_ns();
		windows[made] = random_window(&state);
		if (reg(&windows[made], &mrs[made]))
			break;
	}
	diag("live: instructions for the first %u MRs %" PRIu64 ", for the last %" PRIu64, PART,
	     first, now_ns() - start);
	is(made, count, "live: MRs at once");
	is(mlx5sim_live_keys(MLX5_LID) - keys, made, "live: as many keys more");
	for (unsigned int i = 0; i < SAMPLES && made; i++) {
		unsigned int n = random_next(&state) % made;

		right += rig_works(&rig, &mrs[n], 0, windows[n].buf, windows[n].offset,
				   windows[n].length);
	}
	is(right, SAMPLES, "live: data right in a sample");
	for (unsigned int i = 0; i < made; i++)
		failed += !!mr_dereg(&mrs[i]);
	is(failed, 0, "live: all are deregistered");
	is(mlx5sim_live_keys(MLX5_LID), keys, "live: keys as before");
	free(mrs);
	free(windows);
}

/* Instructions for @count registrations and deregistrations, or 0 if one fails */
static uint64_t row(unsigned int count)
{
	struct window w = { bufs[0], 64 * KIB, 64 * KIB };
	uint64_t start = now_ns();
	struct mr mr;

	while (count && !reg(&w, &mr) && !mr_dereg(&mr))
		count--;
	return count ? 0 : now_ns() - start;
}

static void test_row(unsigned int count)
{
	unsigned int keys = mlx5sim_live_keys(MLX5_LID);
	uint64_t cost = 0, first = 0;
	unsigned int done;

	/* What the first ones free, the kernel frees a moment later. */
	if (!row(WARM_UP))
		bail("registrations fail");
	for (done = 0; done < count; done += PART) {
		cost = row(PART);
		if (!cost)
			break;
		if (!done)
			first = cost;
		diag("row: %" PRIu64 " instructions for %u", cost, PART);
	}
	is(done, count, "row: registrations");
	ok(cost && cost < first * (1 + TOLERANCE) && cost > first * (1 - TOLERANCE),
	   "row: the last %u cost what the first did, %.2f %%", PART,
	   first ? 100.0 * cost / first - 100 : 0);
	is(mlx5sim_live_keys(MLX5_LID), keys, "row: keys as before");
}

/**
 * struct memory - of the whole guest, in KiB
 * @available: to applications
 * @slab: in the kernel's objects that cannot be reclaimed
 */
struct memory {
	long available;
	long slab;
};

static long meminfo(const char *name)
{
	char line[128], format[64];
	long value = -1;
	FILE *in;

	snprintf(format, sizeof(format), "%s: %%ld", name);
	in = fopen("/proc/meminfo", "re");
	while (in && value < 0 && fgets(line, sizeof(line), in))
		sscanf(line, format, &value);
	if (in)
		fclose(in);
	if (value < 0)
		bail("no %s in /proc/meminfo", name);
	return value;
}

static struct memory memory_get(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "3", 1) != 1)
		bail("drop_caches: %s", strerror(errno));
	close(fd);
	return (struct memory){ meminfo("MemAvailable"), meminfo("SUnreclaim") };
}

/* Until the driver has as many keys, live and free, as at the start */
static unsigned int wait_for_cache(unsigned int keys)
{
	unsigned int now = mlx5sim_keys(MLX5_LID);

	for (int s = 0; s < WAIT_S && now > keys; s += 10) {
		sleep(10);
		now = mlx5sim_keys(MLX5_LID);
	}
	return now;
}

int main(int argc, char **argv)
{
	static const struct dmabuf_opts opts = {
		.flags = VRAMSIM_CREATE_SCATTER, .segment_size = 256 * KIB, .seed = 7,
	};
	unsigned int live = option_number(argc, argv, "live", 10000);
	unsigned int in_row = option_number(argc, argv, "row", 100000);
	struct memory before, after;
	struct counters start;
	unsigned int keys, left;

	if (!clock_counts_instructions())
		tap_skip_all("the clock does not count instructions: needs --icount 0");
	if (live < 2 * PART || in_row < PART || in_row % PART)
		bail("at least --live %u, --row in steps of %u", 2 * PART, PART);
	mlx5_rig_up(&rig);
	counters_get(&start);
	for (int i = 0; i < BUFFERS; i++)
		bufs[i] = rig_vram(BUFFER_SIZE, &opts);
	/* What is allocated once, or kept per slab, is there afterwards. */
	test_live(2 * PART);
	sleep(WAIT_S);
	keys = mlx5sim_keys(MLX5_LID);
	before = memory_get();

	test_live(live);
	test_row(in_row);

	left = wait_for_cache(keys);
	ok(left <= keys, "the driver has %u keys, live and free, as before: %u", left, keys);
	after = memory_get();
	ok(before.available - after.available < MEMORY_KIB,
	   "memory is available as before: %ld KiB, %ld KiB", before.available, after.available);
	ok(after.slab - before.slab < MEMORY_KIB, "kernel objects take what they did: %ld KiB, %ld KiB",
	   before.slab, after.slab);
	for (int i = 0; i < BUFFERS; i++)
		dmabuf_free(bufs[i]);
	ok(counters_back(&start, 2000), "all counters back to the start");
	rig_down(&rig);
	ok(mlx5_reload(), "unload the drivers and load them");
	return tap_done();
}
