// SPDX-License-Identifier: GPL-2.0
/*
 * K05: the fd may be closed at once.  Its number may be used again, the MR works
 * on, and 10,000 registrations leave no fd and no dma-buf.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xf86drm.h>

#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE	(64 * KIB)
#define IOVA	0x300000000ull

static struct rig rig;

/* The number of dma-bufs in the kernel, -1 if debugfs does not tell. */
static int dmabufs(void)
{
	FILE *f = fopen("/sys/kernel/debug/dma_buf/bufinfo", "r");
	char line[256];
	int count = -1;

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "Total %d objects", &count);
	if (f)
		fclose(f);
	return count;
}

static void test_reuse(void)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct counters empty, held;
	int fd = dmabuf_fd(buf), reused;
	struct mr mr;

	is(rig_reg(&rig, fd, 0, SIZE, IOVA, &mr), 0, "register");
	dmabuf_close_fd(buf);
	ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE), "the MR works after close()");
	reused = open("/dev/null", O_RDWR | O_CLOEXEC);
	is(reused, fd, "the fd's number belongs to another file");
	ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE), "the MR works when the number is reused");
	close(reused);

	/* Without fd, handle and DRM file only the MR keeps the memory. */
	counters_get(&held);
	dmabuf_free(buf);
	counters_get(&empty);
	is(empty.objects, held.objects, "the buffer lives without fd and handle");
	is(rig_write(&rig, &mr, IOVA, "still there", 12), IBV_WC_SUCCESS, "WRITE");
	is(mr_dereg(&mr), 0, "deregister");
	counters_get(&empty);
	is(empty.objects, held.objects - 1, "the buffer is gone with its last MR");
}

/* An fd that is the duplicate of a duplicate is as good. */
static void test_duplicate(void)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	int copy = fcntl(dmabuf_fd(buf), F_DUPFD_CLOEXEC, 100), other;
	struct mr mr;

	dmabuf_close_fd(buf);
	other = dup(copy);
	close(copy);
	is(rig_reg(&rig, other, 0, SIZE, IOVA, &mr), 0, "register a duplicate");
	close(other);
	ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE), "the MR works without any fd");
	is(mr_dereg(&mr), 0, "deregister");
	dmabuf_free(buf);
}

static uint64_t register_close_deregister(struct dmabuf *buf, uint64_t count)
{
	uint64_t done;

	for (done = 0; done < count; done++) {
		struct mr mr;
		int fd, err;

		if (drmPrimeHandleToFD(dmabuf_drm_fd(buf), dmabuf_handle(buf),
				       DRM_CLOEXEC | DRM_RDWR, &fd))
			break;
		err = rig_reg(&rig, fd, 0, SIZE, IOVA, &mr);
		close(fd);
		if (err || mr_dereg(&mr)) {
			diag("  registration %" PRIu64 ": errno %d", done, err);
			break;
		}
	}
	return done;
}

static void test_many(uint64_t count)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct counters before, between;

	counters_get(&before);
	is(register_close_deregister(buf, count / 2), count / 2,
	   "%" PRIu64 " times register, close, deregister", count / 2);
	counters_get(&between);
	is(between.fds, before.fds, "the number of open fds is flat");
	is(register_close_deregister(buf, count - count / 2), count - count / 2,
	   "and %" PRIu64 " times more", count - count / 2);
	ok(counters_back(&before, 0), "fds and the exporter's counters are flat");
	dmabuf_free(buf);
}

int main(int argc, char **argv)
{
	uint64_t count = option_number(argc, argv, "count", 10000);
	struct counters start;

	rig_up(&rig);
	counters_get(&start);
	test_reuse();
	test_duplicate();
	test_many(count);
	ok(counters_back(&start, 1000), "all counters back to the start");
	if (dmabufs() < 0)
		skip("no dma-buf is left in the kernel", "debugfs does not list dma-bufs");
	else
		is(dmabufs(), 0, "no dma-buf is left in the kernel");
	rig_down(&rig);
	return tap_done();
}
