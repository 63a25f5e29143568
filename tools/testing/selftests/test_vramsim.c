// SPDX-License-Identifier: GPL-2.0
/* vramsim by itself: memory, CPU mappings, moves, fences, eviction, revoke. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xf86drm.h>

#include "tap.h"
#include "vram.h"

#define REVOKED_BYTE	0x5a
#define STORM_SECONDS	4
#define STORM_BUFFERS	6
#define LARGE		(4 * GIB)	/* VRAM that the host need not have */

static int fd;
static struct drm_vramsim_info device;

static sigjmp_buf bus_error;

static void on_bus_error(int sig)
{
	(void)sig;
	siglongjmp(bus_error, 1);
}

/* Whether reading @at ends in SIGBUS. */
static bool is_gone(const volatile uint8_t *at)
{
	struct sigaction action = { .sa_handler = on_bus_error }, old;
	bool gone = true;

	sigaction(SIGBUS, &action, &old);
	if (!sigsetjmp(bus_error, 1)) {
		(void)*at;
		gone = false;
	}
	sigaction(SIGBUS, &old, NULL);
	return gone;
}

static void test_contents(uint32_t placement, const char *name)
{
	uint64_t size = 3 * MIB + 5 * PAGE;
	uint32_t handle = vram_new(fd, size - 100, placement, 0);
	struct drm_vramsim_gem_info info;
	uint8_t *zero = calloc(1, size), *got = malloc(size);
	uint8_t odd[4099], around[4099 + 2];

	ok(!vram_gem_info(fd, handle, &info) && info.size == size,
	   "%s: the size is rounded up to pages", name);
	ok(info.placement == placement, "%s: the buffer is where it was asked for", name);
	ok(!vram_read(fd, handle, 0, got, size) && !memcmp(got, zero, size),
	   "%s: a new buffer is zero", name);

	/* Crosses pages and access chunks, at odd addresses. */
	pattern_make(odd, 0, sizeof(odd), 7);
	ok(!vram_write(fd, handle, 65536 - 2049, odd, sizeof(odd)) &&
	   !vram_read(fd, handle, 65536 - 2050, around, sizeof(around)) &&
	   !memcmp(around + 1, odd, sizeof(odd)) && !around[0] && !around[sizeof(around) - 1],
	   "%s: an access changes its bytes and no others", name);
	ok(!vram_fill(fd, handle, 1, 0xa5, size - 2) && !vram_read(fd, handle, 0, got, size) &&
	   !got[0] && got[1] == 0xa5 && got[size - 2] == 0xa5 && !got[size - 1],
	   "%s: a fill covers its range", name);
	ok(!vram_read(fd, handle, size, got, 0), "%s: nothing at the end is fine", name);
	is(vram_read(fd, handle, size, got, 1), EINVAL, "%s: one byte beyond is not", name);
	vram_close(fd, handle);
	free(zero);
	free(got);
}

static void test_mmap(uint32_t placement, const char *name)
{
	uint64_t size = 600 * PAGE;	/* more than one fault maps at once */
	uint32_t handle = vram_new(fd, size, placement, 0);
	uint8_t *map = vram_map(fd, handle, size), *other, byte = 0;
	int dmabuf = vram_export(fd, handle);
	struct drm_vramsim_gem_mmap args = { .handle = handle };

	if (!ok(map, "%s: mmap", name))
		return;
	ok(!pattern_write(fd, handle, size, 1), "%s: the GPU writes", name);
	other = malloc(size);
	pattern_make(other, 0, size, 1);
	ok(!memcmp(map, other, size), "%s: the CPU sees it", name);
	pattern_make(map, 0, size, 2);
	ok(pattern_check(fd, handle, size, 2), "%s: the GPU sees what the CPU wrote", name);
	free(other);

	other = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, dmabuf, 3 * PAGE);
	ok(other != MAP_FAILED && !memcmp(other, map + 3 * PAGE, 2 * PAGE),
	   "%s: mmap of the dma-buf, in the middle", name);
	if (other != MAP_FAILED) {
		other[0] ^= 0xff;
		ok(!vram_read(fd, handle, 3 * PAGE, &byte, 1) && byte == other[0],
		   "%s: it is the same memory", name);
		munmap(other, 2 * PAGE);
	}

	/* The buffer itself as the user memory of an access. */
	ok(!vram_fill(fd, handle, 0, 0x11, PAGE) &&
	   !vram_read(fd, handle, 0, map + 100 * PAGE, PAGE) && map[100 * PAGE] == 0x11,
	   "%s: an access to and from the same buffer", name);

	drmIoctl(fd, DRM_IOCTL_VRAMSIM_GEM_MMAP, &args);
	errno = 0;
	other = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, args.offset);
	ok(other == MAP_FAILED && errno == EINVAL, "%s: no private copy", name);
	other = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, dmabuf, 0);
	ok(other == MAP_FAILED && errno == EINVAL, "%s: none of the dma-buf either", name);

	ok(!vram_move(fd, handle, VRAM + SYSTEM - placement, 0, 0) && map[0] == 0x11 &&
	   map[100 * PAGE] == 0x11, "%s: the mapping follows a move", name);
	map[1] = 0x22;
	ok(!vram_read(fd, handle, 1, &byte, 1) && byte == 0x22, "%s: and writes to the new place",
	   name);
	close(dmabuf);
	vram_close(fd, handle);
	ok(map[1] == 0x22, "%s: the mapping holds the buffer", name);
	munmap(map, size);
}

static bool is_adjacent(const struct drm_vramsim_segment *list, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++)
		if (list[i].address == list[i - 1].address + list[i - 1].length)
			return true;
	return false;
}

static uint64_t longest(const struct drm_vramsim_segment *list, uint32_t count, uint64_t *sum)
{
	uint64_t most = 0;

	*sum = 0;
	for (uint32_t i = 0; i < count; i++) {
		*sum += list[i].length;
		if (list[i].length > most)
			most = list[i].length;
	}
	return most;
}

static void test_scatter(uint32_t placement, const char *name)
{
	static const uint64_t sizes[] = { 2, 3, 4, 5, 17, 64, 257, 1000 };
	bool shuffled = true, cut = true, data = true, same = true;

	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (uint32_t seed = 0; seed < 20; seed++) {
			struct drm_vramsim_gem_create args = {
				.size = sizes[i] * PAGE,
				.placement = placement,
				.flags = VRAMSIM_CREATE_SCATTER,
				.segment_size = (1 + seed % 3) * PAGE,
				.seed = seed,
			};
			struct drm_vramsim_segment *list;
			uint32_t handle, count;
			uint64_t sum;

			if (vram_create(fd, args, &handle))
				bail("no scattered buffer: %s", strerror(errno));
			list = vram_segments(fd, handle, &count);
			shuffled &= !is_adjacent(list, count);
			cut &= longest(list, count, &sum) <= args.segment_size && sum == args.size;
			free(list);
			if (seed < 2) {
				data &= !pattern_write(fd, handle, args.size, seed);
				data &= pattern_check(fd, handle, args.size, seed);
				data &= !vram_move(fd, handle, placement, VRAMSIM_MOVE_SHUFFLE, 0);
				data &= pattern_check(fd, handle, args.size, seed);
			}
			vram_close(fd, handle);
		}
	ok(shuffled, "%s: no segment follows its neighbour", name);
	ok(cut, "%s: none is too long, and together they are the buffer", name);
	ok(data, "%s: the contents do not mind", name);

	if (placement != VRAM)
		return;
	for (uint32_t seed = 0; seed < 5; seed++) {
		struct drm_vramsim_gem_create args = {
			.size = 100 * PAGE,
			.placement = placement,
			.flags = VRAMSIM_CREATE_SCATTER,
			.segment_size = PAGE,
			.seed = seed,
		};
		struct drm_vramsim_segment *first, *second;
		uint32_t handle, count;

		vram_create(fd, args, &handle);
		first = vram_segments(fd, handle, &count);
		vram_close(fd, handle);
		vram_create(fd, args, &handle);
		second = vram_segments(fd, handle, &count);
		vram_close(fd, handle);
		same &= !memcmp(first, second, count * sizeof(*first));
		free(first);
		free(second);
	}
	ok(same, "%s: the seed decides about the order", name);
}

static void test_move(void)
{
	uint64_t size = 2 * MIB + PAGE;
	uint32_t handle = vram_new(fd, size, VRAM, 0);
	struct drm_vramsim_segment *before, *after;
	struct drm_vramsim_gem_info info;
	struct drm_vramsim_gem_move cut = {
		.handle = handle, .placement = VRAM, .segment_size = 64 * KIB,
	};
	uint32_t count;

	pattern_write(fd, handle, size, 3);
	before = vram_segments(fd, handle, &count);
	ok(!vram_move(fd, handle, VRAM, 0, 0) && !vram_gem_info(fd, handle, &info) && !info.moves,
	   "a move to where the buffer is does nothing");
	ok(!vram_move(fd, handle, VRAM, VRAMSIM_MOVE_SHUFFLE, 0), "unless asked to shuffle");
	after = vram_segments(fd, handle, &count);
	ok(before[0].address != after[0].address, "the addresses are others");
	ok(pattern_check(fd, handle, size, 3), "the contents are the same");
	free(before);
	free(after);

	ok(!vram_move(fd, handle, SYSTEM, 0, 0) && vram_placement(fd, handle) == SYSTEM &&
	   pattern_check(fd, handle, size, 3), "to system memory");
	ok(!vram_move(fd, handle, VRAM, 0, 0) && vram_placement(fd, handle) == VRAM &&
	   pattern_check(fd, handle, size, 3), "and back");
	ok(!drmIoctl(fd, DRM_IOCTL_VRAMSIM_GEM_MOVE, &cut) &&
	   !vram_gem_info(fd, handle, &info) && info.segments == 33 &&
	   pattern_check(fd, handle, size, 3), "a move can cut the buffer anew");
	is(info.moves, 4, "each move is counted");
	ok(!vram_move(fd, handle, 0, VRAMSIM_MOVE_NOTIFY_ONLY, 0) &&
	   !vram_gem_info(fd, handle, &info) && info.moves == 4, "a mere notice is no move");
	vram_close(fd, handle);
}

/* The BAR as the bus sees it, past the driver; NULL without BAR. */
static uint8_t *map_bar(void)
{
	drmDevicePtr dev;
	char path[128];
	void *map = MAP_FAILED;
	int bar;

	if (!device.bar_bus || drmGetDevice2(fd, 0, &dev))
		return NULL;
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%04x:%02x:%02x.%d/resource2_wc",
		 dev->businfo.pci->domain, dev->businfo.pci->bus, dev->businfo.pci->dev,
		 dev->businfo.pci->func);
	drmFreeDevice(&dev);
	bar = open(path, O_RDWR | O_CLOEXEC);
	if (bar >= 0) {
		map = mmap(NULL, device.vram_size, PROT_READ | PROT_WRITE, MAP_SHARED, bar, 0);
		close(bar);
	}
	if (map == MAP_FAILED)
		diag("%s: %s", path, strerror(errno));
	return map == MAP_FAILED ? NULL : map;
}

static bool is_filled(const uint8_t *at, uint8_t byte, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (at[i] != byte)
			return false;
	return true;
}

static void test_fence(const uint8_t *bar)
{
	uint64_t size = MIB;
	uint32_t handle = vram_new(fd, size, SYSTEM, 0), count;
	int dmabuf = vram_export(fd, handle);
	struct pollfd poll_read = { .fd = dmabuf, .events = POLLIN };
	struct drm_vramsim_segment *at;
	uint8_t byte = 0, *map;
	double start;

	vram_fill(fd, handle, 0, 0x77, size);
	start = seconds();
	is(vram_move(fd, handle, VRAM, 0, 2000), 0, "a move with a fence");
	is(poll(&poll_read, 1, 0), 0, "does not wait for it: the dma-buf is not ready to be read");
	is(vram_placement(fd, handle), VRAM, "the buffer has its new place");
	if (bar) {
		at = vram_segments(fd, handle, &count);
		ok(!is_filled(bar + at[0].address, 0x77, PAGE), "the data is not there yet");
		is(poll(&poll_read, 1, 30000), 1, "the dma-buf gets ready");
		ok(is_filled(bar + at[0].address, 0x77, at[0].length), "with the data in VRAM");
		free(at);
	} else {
		skip("the data is not there yet", "no view of the BAR");
	}
	ok(!vram_read(fd, handle, 5, &byte, 1) && byte == 0x77 && seconds() - start > 1.9,
	   "the GPU's view waits for the fence");

	start = seconds();
	vram_move(fd, handle, SYSTEM, 0, 300);
	map = vram_map(fd, handle, size);
	ok(map && map[9] == 0x77 && seconds() - start > 0.25, "a CPU fault waits for the fence");
	start = seconds();
	vram_move(fd, handle, VRAM, 0, 300);
	vram_move(fd, handle, SYSTEM, 0, 300);
	ok(!vram_read(fd, handle, 5, &byte, 1) && byte == 0x77 && seconds() - start > 0.55,
	   "a second move waits for the first");
	start = seconds();
	ok(!vram_fence(fd, handle, 300) && !vram_fence(fd, handle, 300) &&
	   !vram_read(fd, handle, 5, &byte, 1) && seconds() - start > 0.55,
	   "fences without a move queue up as well");
	munmap(map, size);
	close(dmabuf);

	/* Gone before the copy: the fence's work is the last one to hold the buffer. */
	vram_move(fd, handle, VRAM, 0, 300);
	vram_close(fd, handle);
	ok(info_clean(fd, &device), "a buffer that is closed during its move goes after it");
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void test_interrupt(void)
{
	enum { FENCE_MS = 10000 };
	uint32_t handle = vram_new(fd, PAGE, VRAM, 0);
	struct drm_vramsim_gem_access args = { .handle = handle, .length = 1 };
	struct sigaction action = { .sa_handler = on_alarm };
	uint8_t byte, *map = vram_map(fd, handle, PAGE);
	int memory = memfd_create("vramsim", 0);
	double start = seconds();
	int status;
	pid_t pid;

	args.ptr = (uintptr_t)&byte;
	vram_fence(fd, handle, FENCE_MS);
	sigaction(SIGALRM, &action, NULL);
	alarm(1);
	errno = 0;
	ok(ioctl(fd, DRM_IOCTL_VRAMSIM_GEM_ACCESS, &args) && errno == EINTR &&
	   seconds() - start < FENCE_MS / 1000, "a signal ends the wait for a fence");
	pid = fork();
	if (!pid)
		_exit(map[0]);
	usleep(200000);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	ok(WIFSIGNALED(status) && seconds() - start < FENCE_MS / 1000,
	   "SIGKILL ends a CPU fault that waits");
	pid = fork();
	if (!pid)
		_exit(write(memory, map, PAGE) != PAGE);
	usleep(200000);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	ok(WIFSIGNALED(status) && seconds() - start < FENCE_MS / 1000,
	   "SIGKILL ends one that the kernel waits with");
	close(memory);
	munmap(map, PAGE);
	vram_close(fd, handle);
}

static void test_evict(void)
{
	uint64_t size = device.vram_size / 4, left = device.vram_free;
	uint32_t handle[8] = { 0 }, locked[8] = { 0 };
	struct drm_vramsim_info info;
	unsigned int n = 0, system = 0, i;

	while (left >= size && n < 7) {
		handle[n] = vram_new(fd, size, VRAM, 0);
		pattern_write(fd, handle[n], MIB, n);
		left -= size;
		n++;
	}
	handle[n] = vram_new(fd, size, VRAM, 0);
	ok(vram_placement(fd, handle[0]) == SYSTEM && vram_placement(fd, handle[1]) == VRAM,
	   "when VRAM is full, the longest resident buffer makes room");
	ok(pattern_check(fd, handle[0], MIB, 0), "and keeps its contents");
	vram_info(fd, &info);
	is(info.evictions - device.evictions, 1, "that is one eviction");
	ok(!vram_move(fd, handle[0], VRAM, 0, 0) && vram_placement(fd, handle[1]) == SYSTEM &&
	   pattern_check(fd, handle[0], MIB, 0) && pattern_check(fd, handle[1], MIB, 1),
	   "a move back evicts the next one");

	/* A buffer with a pending fence stays. */
	vram_fence(fd, handle[2], 2000);
	vram_move(fd, handle[1], VRAM, 0, 0);
	ok(vram_placement(fd, handle[2]) == VRAM && vram_placement(fd, handle[1]) == VRAM,
	   "a busy buffer is not evicted");

	for (i = 0; i <= n; i++)
		vram_close(fd, handle[i]);
	ok(info_clean(fd, &device), "all is free again");

	left = device.vram_free;
	for (n = 0; left >= size && n < 8; n++, left -= size)
		locked[n] = vram_new(fd, size, VRAM, VRAMSIM_CREATE_LOCKED);
	is(vram_create(fd, (struct drm_vramsim_gem_create){ .size = size, .placement = VRAM },
		       &handle[0]), ENOSPC, "locked buffers do not make room");
	for (i = 0; i < n; i++)
		system += vram_placement(fd, locked[i]) == SYSTEM;
	is(system, 0, "they stay where they are");
	handle[0] = vram_new(fd, size, SYSTEM, 0);
	is(vram_move(fd, handle[0], VRAM, 0, 0), ENOSPC, "nor for a move");
	pattern_write(fd, handle[0], PAGE, 9);
	ok(vram_placement(fd, handle[0]) == SYSTEM && pattern_check(fd, handle[0], PAGE, 9),
	   "a buffer whose move failed stays in use");
	vram_close(fd, handle[0]);
	for (i = 0; i < n; i++)
		vram_close(fd, locked[i]);
	is(vram_create(fd, (struct drm_vramsim_gem_create){ .size = device.vram_size + PAGE,
		       .placement = VRAM }, &handle[0]), ENOSPC, "larger than VRAM");
}

static void test_fragments(void)
{
	unsigned int n = 64, i;
	uint64_t size = (device.vram_free / n) & ~(PAGE - 1);
	struct drm_vramsim_gem_info info;
	uint32_t handle[64], big;

	for (i = 0; i < n; i++)
		handle[i] = vram_new(fd, size, VRAM, VRAMSIM_CREATE_LOCKED);
	for (i = 0; i < n; i += 2)
		vram_close(fd, handle[i]);
	big = vram_new(fd, size * (n / 4), VRAM, 0);
	ok(!vram_gem_info(fd, big, &info) && info.segments >= n / 4,
	   "a buffer takes the holes that there are");
	ok(!pattern_write(fd, big, info.size, 4) && pattern_check(fd, big, info.size, 4),
	   "and works");
	vram_close(fd, big);
	for (i = 1; i < n; i += 2)
		vram_close(fd, handle[i]);
	ok(info_clean(fd, &device), "nothing is lost");
}

static void test_revoke(const uint8_t *bar)
{
	uint64_t size = 64 * PAGE;
	uint32_t handle = vram_new(fd, size, VRAM, 0), again, count;
	uint8_t *map = vram_map(fd, handle, size), byte;
	struct drm_vramsim_gem_info info;
	struct drm_vramsim_segment *at = vram_segments(fd, handle, &count);
	int dmabuf;

	map[0] = 1;
	vram_move(fd, handle, VRAM, VRAMSIM_MOVE_SHUFFLE, 100);
	free(at);
	at = vram_segments(fd, handle, &count);
	ok(!vram_revoke(fd, handle), "revoke");
	if (bar)
		ok(is_filled(bar + at[0].address, REVOKED_BYTE, at[0].length),
		   "the memory is overwritten, after the copy that was running");
	else
		skip("the memory is overwritten", "no view of the BAR");
	free(at);
	ok(is_gone(map), "the CPU mapping gives SIGBUS");
	ok(!vram_gem_info(fd, handle, &info) && info.revoked && !info.segments &&
	   info.placement == VRAMSIM_PLACEMENT_NONE, "the buffer has no memory");
	is(vram_read(fd, handle, 0, &byte, 1), ENODEV, "the GPU's view is gone");
	is(vram_move(fd, handle, SYSTEM, 0, 0), ENODEV, "it cannot move");
	is(vram_move(fd, handle, 0, VRAMSIM_MOVE_NOTIFY_ONLY, 0), ENODEV, "nor tell of it");
	is(vram_fence(fd, handle, 1), ENODEV, "nor get a fence");
	is(vram_revoke(fd, handle), 0, "a second revoke does nothing");
	dmabuf = vram_export(fd, handle);
	ok(dmabuf >= 0 && !vram_import(fd, dmabuf, &again) && again == handle,
	   "it can still be exported and come home");
	close(dmabuf);
	munmap(map, size);
	vram_close(fd, handle);
	ok(info_clean(fd, &device), "its memory is free");
}

static void test_sparse(void)
{
	struct drm_vramsim_gem_create args = {
		.size = TIB,
		.placement = VRAM,
		.segment_size = 2 * MIB,
		.flags = VRAMSIM_CREATE_SPARSE,
	};
	struct drm_vramsim_gem_mmap map = { 0 };
	struct drm_vramsim_segment *list;
	struct drm_vramsim_info info;
	uint64_t sum, last = 0;
	uint32_t handle, count;
	bool inside = true;
	uint8_t byte;
	int dmabuf;

	if (!device.bar_bus) {
		is(vram_create(fd, args, &handle), EOPNOTSUPP, "no sparse buffer in plain pages");
		return;
	}
	is(vram_create(fd, args, &handle), 0, "a sparse buffer of 1 TiB");
	list = vram_segments(fd, handle, &count);
	is(count, TIB / (2 * MIB), "it has that many segments");
	ok(longest(list, count, &sum) == 2 * MIB && sum == TIB, "of 2 MiB each");
	for (uint32_t i = 0; i < count; i++) {
		inside &= list[i].address + list[i].length <= device.vram_size;
		last = list[i].address > last ? list[i].address : last;
	}
	ok(inside && last, "all inside of VRAM, at different places");
	free(list);
	vram_info(fd, &info);
	ok(info.vram_free >= device.vram_free - device.vram_size / 8,
	   "it takes little of VRAM");
	map.handle = handle;
	ok(drmIoctl(fd, DRM_IOCTL_VRAMSIM_GEM_MMAP, &map) && errno == EOPNOTSUPP,
	   "no mmap offset");
	is(vram_read(fd, handle, 0, &byte, 1), EOPNOTSUPP, "no access");
	is(vram_move(fd, handle, SYSTEM, 0, 0), EOPNOTSUPP, "not in system memory");
	is(vram_move(fd, handle, VRAM, VRAMSIM_MOVE_SHUFFLE, 50), 0, "but to other addresses");
	dmabuf = vram_export(fd, handle);
	is(lseek(dmabuf, 0, SEEK_END), TIB, "the dma-buf has the size");
	ok(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, dmabuf, 0) == MAP_FAILED &&
	   errno == EOPNOTSUPP, "and no mapping");
	close(dmabuf);
	vram_revoke(fd, handle);
	vram_close(fd, handle);

	args.flags |= VRAMSIM_CREATE_SCATTER;
	args.segment_size = 64 * KIB;
	args.size = 64 * GIB - PAGE;
	is(vram_create(fd, args, &handle), 0, "a scattered one of 64 GiB less a page");
	list = vram_segments(fd, handle, &count);
	ok(!is_adjacent(list, count) && longest(list, count, &sum) == 64 * KIB &&
	   sum == args.size && list[count - 1].length == 64 * KIB - PAGE,
	   "never adjacent, the last one shorter");
	free(list);
	vram_close(fd, handle);

	args.segment_size = PAGE;
	args.size = TIB;
	is(vram_create(fd, args, &handle), E2BIG, "too many segments");
	args.segment_size = 1ull << 40;
	if (device.vram_size < 4 * GIB) {
		is(vram_create(fd, args, &handle), ENOSPC, "a segment larger than VRAM");
	} else {
		is(vram_create(fd, args, &handle), 0, "segments as long as a scatterlist takes");
		list = vram_segments(fd, handle, &count);
		ok(longest(list, count, &sum) == 4 * GIB - PAGE && sum == TIB,
		   "which is 4 GiB less a page");
		free(list);
		vram_close(fd, handle);
	}
	ok(info_clean(fd, &device), "nothing is left of them");
}

/* Memory that is not touched when it is given out and taken away. */
static void test_uncleared(void)
{
	struct drm_vramsim_gem_create args = {
		.size = device.vram_free & ~(2 * MIB - 1),
		.placement = VRAM,
		.flags = VRAMSIM_CREATE_UNCLEARED,
	};
	uint64_t last = args.size - PAGE;
	uint8_t page[PAGE], got[PAGE];
	uint32_t handle;

	is(vram_create(fd, args, &handle), 0, "all of VRAM, uncleared");
	pattern_make(page, last, PAGE, 6);
	ok(!vram_write(fd, handle, last, page, PAGE) && !vram_fill(fd, handle, 0, 0x66, PAGE) &&
	   !vram_read(fd, handle, last, got, PAGE) && !memcmp(page, got, PAGE),
	   "its ends are there");
	is(vram_revoke(fd, handle), 0, "a revoke does not overwrite it either");
	vram_close(fd, handle);
	vram_create(fd, args, &handle);
	ok(!vram_read(fd, handle, last, got, PAGE) && !memcmp(page, got, PAGE),
	   "the next one finds what was there");
	vram_close(fd, handle);
	ok(info_clean(fd, &device), "nothing is left of it");
}

/* Threads that move, write, map and evict a few buffers at once. */
static struct storm {
	uint32_t handle[STORM_BUFFERS];
	uint8_t *map[STORM_BUFFERS];
	uint64_t size;
	volatile bool stop;
	unsigned int moves, accesses, evictors, failures;
} storm;

static void *storm_mover(void *arg)
{
	unsigned int seed = (uintptr_t)arg;

	while (!storm.stop) {
		int i = rand_r(&seed) % STORM_BUFFERS;
		uint32_t placement = rand_r(&seed) % 2 ? VRAM : SYSTEM;
		uint32_t flags = rand_r(&seed) % 4 ? 0 : VRAMSIM_MOVE_SHUFFLE;
		int ret = vram_move(fd, storm.handle[i], placement, flags,
				    rand_r(&seed) % 8 ? 0 : 5);

		if (ret && ret != ENOSPC) {
			diag("move: %s", strerror(ret));
			__atomic_add_fetch(&storm.failures, 1, __ATOMIC_RELAXED);
		}
		__atomic_add_fetch(&storm.moves, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Each has one page of each buffer for itself, half by ioctl, half by mapping. */
static void *storm_writer(void *arg)
{
	unsigned int me = (uintptr_t)arg, seed = me;
	uint8_t want[STORM_BUFFERS] = { 0 }, got;
	uint64_t at = me * 7 * PAGE + 13;

	while (!storm.stop) {
		int i = rand_r(&seed) % STORM_BUFFERS;
		uint8_t byte = rand_r(&seed);

		if (rand_r(&seed) % 2)
			vram_read(fd, storm.handle[i], at, &got, 1);
		else
			got = storm.map[i][at];
		if (got != want[i]) {
			diag("byte of writer %u in buffer %d is %u, want %u", me, i, got, want[i]);
			__atomic_add_fetch(&storm.failures, 1, __ATOMIC_RELAXED);
		}
		want[i] = byte;
		if (rand_r(&seed) % 2)
			vram_write(fd, storm.handle[i], at, &byte, 1);
		else
			*(volatile uint8_t *)&storm.map[i][at] = byte;
		__atomic_add_fetch(&storm.accesses, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void *storm_evictor(void *arg)
{
	(void)arg;
	while (!storm.stop) {
		uint32_t handle;

		if (!vram_create(fd, (struct drm_vramsim_gem_create){
				 .size = device.vram_size / 2, .placement = VRAM }, &handle))
			vram_close(fd, handle);
		__atomic_add_fetch(&storm.evictors, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void test_storm(void)
{
	void *(*const roles[])(void *) = {
		storm_mover, storm_mover, storm_writer, storm_writer, storm_evictor,
	};
	unsigned int n = sizeof(roles) / sizeof(*roles), i;
	pthread_t threads[5];

	storm.size = device.vram_size / 8 / PAGE * PAGE;
	if (storm.size > 4 * MIB)
		storm.size = 4 * MIB;
	for (i = 0; i < STORM_BUFFERS; i++) {
		storm.handle[i] = vram_new(fd, storm.size, VRAM, 0);
		storm.map[i] = vram_map(fd, storm.handle[i], storm.size);
	}
	for (i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, roles[i], (void *)(uintptr_t)(i + 1));
	sleep(STORM_SECONDS);
	storm.stop = true;
	for (i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	diag("%u moves, %u accesses, %u allocations", storm.moves, storm.accesses, storm.evictors);
	ok(storm.moves && storm.accesses && storm.evictors, "all had their turn");
	is(storm.failures, 0, "moves, accesses, faults and evictions at once: no byte is lost");
	for (i = 0; i < STORM_BUFFERS; i++) {
		munmap(storm.map[i], storm.size);
		vram_close(fd, storm.handle[i]);
	}
}

int main(void)
{
	uint8_t *bar;

	fd = vram_open(0);
	if (fd < 0)
		tap_skip_all("no vramsim");
	vram_info(fd, &device);
	diag("%llu MiB of VRAM %s", (unsigned long long)(device.vram_size / MIB),
	     device.bar_bus ? "in a BAR" : "in plain pages");
	bar = map_bar();

	test_contents(VRAM, "vram");
	test_contents(SYSTEM, "system");
	test_mmap(VRAM, "vram");
	test_mmap(SYSTEM, "system");
	test_scatter(VRAM, "vram");
	test_scatter(SYSTEM, "system");
	test_move();
	test_fence(bar);
	test_interrupt();
	ok(info_clean(fd, &device), "all counters are back before the big ones");
	test_revoke(bar);
	test_sparse();
	test_uncleared();
	if (device.vram_size <= LARGE) {
		test_evict();
		test_fragments();
		test_storm();
	} else {
		skip("eviction and a storm", "they would fill all of this VRAM");
	}
	ok(info_clean(fd, &device), "all counters are back");
	return tap_done();
}
