// SPDX-License-Identifier: GPL-2.0
/* Each argument of each of vramsim's commands, wrong in each way there is. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xf86drm.h>

#include "tap.h"
#include "vram.h"

#define NO_HANDLE	12345

static int fd;
static struct drm_vramsim_info device;

static int call(unsigned long request, void *arg)
{
	return drmIoctl(fd, request, arg) ? errno : 0;
}

#define refused(want, request, type, name, ...) do {			\
	struct type args = { __VA_ARGS__ };				\
									\
	is(call(request, &args), want, name);				\
} while (0)

#define CREATE(want, name, ...) refused(want, DRM_IOCTL_VRAMSIM_GEM_CREATE, \
	drm_vramsim_gem_create, "create: " name, __VA_ARGS__)
#define MOVE(want, name, ...) refused(want, DRM_IOCTL_VRAMSIM_GEM_MOVE, \
	drm_vramsim_gem_move, "move: " name, __VA_ARGS__)
#define ACCESS(want, name, ...) refused(want, DRM_IOCTL_VRAMSIM_GEM_ACCESS, \
	drm_vramsim_gem_access, "access: " name, __VA_ARGS__)
#define INJECT(want, name, ...) refused(want, DRM_IOCTL_VRAMSIM_INJECT, \
	drm_vramsim_inject, "inject: " name, __VA_ARGS__)

static void test_create(void)
{
	CREATE(EINVAL, "no size", .placement = VRAM);
	CREATE(EINVAL, "size that wraps", .size = UINT64_MAX, .placement = VRAM);
	CREATE(EINVAL, "size that wraps by a page", .size = UINT64_MAX - PAGE + 1,
	       .placement = SYSTEM);
	CREATE(ENOSPC, "size just below", .size = UINT64_MAX - 2 * PAGE, .placement = VRAM);
	CREATE(ENOMEM, "the same in system memory", .size = UINT64_MAX - 2 * PAGE,
	       .placement = SYSTEM);
	CREATE(ENOMEM, "more than the machine has", .size = TIB, .placement = SYSTEM);
	CREATE(EINVAL, "no placement", .size = PAGE);
	CREATE(EINVAL, "unknown placement", .size = PAGE, .placement = 3);
	CREATE(EINVAL, "unknown flag", .size = PAGE, .placement = VRAM, .flags = 1 << 7);
	CREATE(EINVAL, "unknown pin policy", .size = PAGE, .placement = VRAM, .pin = 3);
	CREATE(EINVAL, "segments not of pages", .size = PAGE, .placement = VRAM,
	       .segment_size = PAGE + 1);
	CREATE(EINVAL, "padding", .size = PAGE, .placement = VRAM, .pad = 1);
	CREATE(EINVAL, "sparse system memory", .size = PAGE, .placement = SYSTEM,
	       .flags = VRAMSIM_CREATE_SPARSE);
	CREATE(0, "segments larger than the buffer are fine", .size = PAGE, .placement = SYSTEM,
	       .segment_size = 1ull << 40);
	if (device.bar_bus)
		CREATE(E2BIG, "sparse, of almost all addresses", .size = UINT64_MAX - 2 * PAGE,
		       .placement = VRAM, .flags = VRAMSIM_CREATE_SPARSE);
	vram_close(fd, 1);
}

static void test_handles(uint32_t closed)
{
	struct drm_vramsim_gem_info info;
	uint8_t byte;
	uint32_t handles[] = { 0, NO_HANDLE, closed };

	for (unsigned int i = 0; i < sizeof(handles) / sizeof(*handles); i++) {
		uint32_t handle = handles[i];

		is(vram_gem_info(fd, handle, &info), ENOENT, "info: handle %u", handle);
		is(vram_read(fd, handle, 0, &byte, 1), ENOENT, "access: handle %u", handle);
		is(vram_move(fd, handle, VRAM, 0, 0), ENOENT, "move: handle %u", handle);
		is(vram_revoke(fd, handle), ENOENT, "revoke: handle %u", handle);
		is(vram_fence(fd, handle, 1), ENOENT, "fence: handle %u", handle);
		ok(!vram_map(fd, handle, PAGE) && errno == ENOENT, "mmap: handle %u", handle);
		if (handle)
			is(vram_inject(fd, handle, 0, 1, 1, EIO), ENOENT, "inject: handle %u",
			   handle);
		refused(ENOENT, DRM_IOCTL_VRAMSIM_SEGMENTS, drm_vramsim_segments, "segments",
			.handle = handle);
		ok(vram_export(fd, handle) < 0 && errno == ENOENT, "export: handle %u", handle);
	}
}

static void test_arguments(uint32_t handle)
{
	void *readonly = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t buf = (uintptr_t)malloc(PAGE);

	ACCESS(EINVAL, "unknown op", .handle = handle, .op = 3, .length = 1, .ptr = buf);
	ACCESS(EINVAL, "offset beyond", .handle = handle, .offset = PAGE + 1, .ptr = buf);
	ACCESS(EINVAL, "length beyond", .handle = handle, .length = PAGE + 1, .ptr = buf);
	ACCESS(EINVAL, "end beyond", .handle = handle, .offset = 1, .length = PAGE, .ptr = buf);
	ACCESS(EINVAL, "end that wraps", .handle = handle, .offset = 2,
	       .length = UINT64_MAX - 1, .ptr = buf);
	ACCESS(EINVAL, "offset that wraps", .handle = handle, .offset = UINT64_MAX,
	       .length = 1, .ptr = buf);
	ACCESS(EFAULT, "read to nowhere", .handle = handle, .length = 1);
	ACCESS(EFAULT, "write from nowhere", .handle = handle, .op = VRAMSIM_ACCESS_WRITE,
	       .length = 1);
	ACCESS(EFAULT, "read to read-only memory", .handle = handle, .length = 1,
	       .ptr = (uintptr_t)readonly);
	ACCESS(EFAULT, "kernel address", .handle = handle, .length = 8,
	       .ptr = 0xffff888000000000ull);

	MOVE(EINVAL, "no placement", .handle = handle);
	MOVE(EINVAL, "unknown placement", .handle = handle, .placement = 3);
	MOVE(EINVAL, "unknown flag", .handle = handle, .placement = VRAM, .flags = 4);
	MOVE(EINVAL, "endless fence", .handle = handle, .placement = VRAM, .fence_ms = 600001);
	MOVE(EINVAL, "segments not of pages", .handle = handle, .placement = VRAM,
	     .segment_size = 1);
	MOVE(EINVAL, "notice with a fence", .handle = handle, .fence_ms = 1,
	     .flags = VRAMSIM_MOVE_NOTIFY_ONLY);
	MOVE(EINVAL, "notice with segments", .handle = handle, .segment_size = PAGE,
	     .flags = VRAMSIM_MOVE_NOTIFY_ONLY);
	MOVE(EINVAL, "notice and shuffle", .handle = handle,
	     .flags = VRAMSIM_MOVE_NOTIFY_ONLY | VRAMSIM_MOVE_SHUFFLE);

	is(vram_fence(fd, handle, 0), EINVAL, "fence: of no time");
	is(vram_fence(fd, handle, 600001), EINVAL, "fence: endless");

	INJECT(EINVAL, "unknown step", .handle = handle, .step = VRAMSIM_INJECT_STEPS,
	       .nth = 1, .count = 1, .error = EIO);
	INJECT(EINVAL, "padding", .handle = handle, .nth = 1, .count = 1, .error = EIO, .pad = 1);
	INJECT(EINVAL, "no errno", .handle = handle, .nth = 1, .count = 1);
	INJECT(EINVAL, "errno too large", .handle = handle, .nth = 1, .count = 1, .error = 4096);
	INJECT(0, "the largest errno", .handle = handle, .nth = 1, .count = 1, .error = 4095);
	INJECT(0, "the wrong sign", .handle = handle, .step = VRAMSIM_INJECT_PIN, .nth = 1,
	       .count = 1, .error = -4095);
	INJECT(EINVAL, "the wrong sign, too large", .handle = handle, .nth = 1, .count = 1,
	       .error = -4096);
	INJECT(EINVAL, "the wrong sign where only pointers are returned", .handle = handle,
	       .step = VRAMSIM_INJECT_MAP, .nth = 1, .count = 1, .error = -1);
	INJECT(EINVAL, "the zeroth call", .handle = handle, .count = 1, .error = EIO);
	INJECT(EINVAL, "errno where nothing fails", .handle = handle,
	       .step = VRAMSIM_INJECT_SHORT_MAP, .nth = 1, .count = 1, .error = EIO);
	INJECT(EINVAL, "quota of a buffer", .handle = handle,
	       .step = VRAMSIM_INJECT_PIN_QUOTA, .nth = 1, .count = 1);

	refused(EINVAL, DRM_IOCTL_VRAMSIM_GEM_MMAP, drm_vramsim_gem_mmap, "mmap: padding",
		.handle = handle, .pad = 1);
	refused(EINVAL, DRM_IOCTL_VRAMSIM_GEM_REVOKE, drm_vramsim_gem_revoke, "revoke: padding",
		.handle = handle, .pad = 1);
	refused(EFAULT, DRM_IOCTL_VRAMSIM_SEGMENTS, drm_vramsim_segments, "segments: nowhere",
		.handle = handle, .count = 1);
	ok(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EINVAL,
	   "mmap: offset of no buffer");
	munmap(readonly, PAGE);
	free((void *)(uintptr_t)buf);
}

/* Things that need the administrator, done by somebody else. */
static void test_permission(uint32_t handle)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		struct drm_vramsim_gem_create uncleared = {
			.size = PAGE, .placement = VRAM, .flags = VRAMSIM_CREATE_UNCLEARED,
		};
		struct drm_vramsim_segments segments = { .handle = handle };
		unsigned int bad = 0;

		if (setuid(65534))
			_exit(128);
		bad |= (call(DRM_IOCTL_VRAMSIM_GEM_CREATE, &uncleared) != EACCES) << 0;
		bad |= (call(DRM_IOCTL_VRAMSIM_SEGMENTS, &segments) != EACCES) << 1;
		bad |= (vram_inject(fd, 0, 0, 1, 1, EIO) != EACCES) << 2;
		bad |= (vram_inject(fd, handle, 0, 1, 1, EIO) != 0) << 3;
		_exit(bad);
	}
	waitpid(pid, &status, 0);
	is(WEXITSTATUS(status), 0, "uncleared memory, addresses and other's buffers are for root");
	vram_inject(fd, handle, 0, 0, 0, 0);
}

int main(void)
{
	uint32_t handle, closed;

	fd = vram_open(0);
	if (fd < 0)
		tap_skip_all("no vramsim");
	vram_info(fd, &device);
	test_create();
	handle = vram_new(fd, PAGE, VRAM, 0);
	closed = vram_new(fd, PAGE, VRAM, 0);
	vram_close(fd, closed);
	test_handles(closed);
	test_arguments(handle);
	test_permission(handle);
	vram_close(fd, handle);
	ok(info_clean(fd, &device), "all counters are back");
	return tap_done();
}
