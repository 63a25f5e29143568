// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <xf86drm.h>

#include "tap.h"
#include "vram.h"

#define RENDER_FIRST	128	/* DRM gives render nodes the minors from here */
#define RENDER_END	192
#define CHUNK		(64 * 1024)

static bool driver_is(int fd, const char *name)
{
	drmVersionPtr version = drmGetVersion(fd);
	bool same = version && !strcmp(version->name, name);

	drmFreeVersion(version);
	return same;
}

static bool is_vramsim(int fd)
{
	struct drm_vramsim_info info = { 0 };

	return (driver_is(fd, "vramsim") || driver_is(fd, "amdgpu")) && !vram_info(fd, &info);
}

int vram_open(int number)
{
	const char *node = getenv("VRAMSIM_NODE");
	char path[32];

	if (node && !number)
		return open(node, O_RDWR | O_CLOEXEC);
	for (int minor = RENDER_FIRST; minor < RENDER_END; minor++) {
		int fd;

		snprintf(path, sizeof(path), "/dev/dri/renderD%d", minor);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (is_vramsim(fd) && !number--)
			return fd;
		close(fd);
	}
	return -1;
}

int vgem_open(void)
{
	char path[32];

	if (system("modprobe -q vgem"))
		return -1;
	for (int minor = 0; minor < RENDER_END; minor++) {
		int fd;

		snprintf(path, sizeof(path), "/dev/dri/%s%d",
			 minor < RENDER_FIRST ? "card" : "renderD", minor);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (driver_is(fd, "vgem"))
			return fd;
		close(fd);
	}
	return -1;
}

static int call(int fd, unsigned long request, void *arg)
{
	return drmIoctl(fd, request, arg) ? errno : 0;
}

int vram_info(int fd, struct drm_vramsim_info *info)
{
	return call(fd, DRM_IOCTL_VRAMSIM_INFO, info);
}

int vram_create(int fd, struct drm_vramsim_gem_create args, uint32_t *handle)
{
	int ret = call(fd, DRM_IOCTL_VRAMSIM_GEM_CREATE, &args);

	*handle = ret ? 0 : args.handle;
	return ret;
}

uint32_t vram_new(int fd, uint64_t size, uint32_t placement, uint32_t flags)
{
	struct drm_vramsim_gem_create args = {
		.size = size,
		.placement = placement,
		.flags = flags,
	};
	uint32_t handle;
	int ret = vram_create(fd, args, &handle);

	if (ret)
		bail("no buffer of %llu bytes: %s", (unsigned long long)size, strerror(ret));
	return handle;
}

int vram_close(int fd, uint32_t handle)
{
	struct drm_gem_close args = { .handle = handle };

	return call(fd, DRM_IOCTL_GEM_CLOSE, &args);
}

int vram_gem_info(int fd, uint32_t handle, struct drm_vramsim_gem_info *info)
{
	*info = (struct drm_vramsim_gem_info){ .handle = handle };
	return call(fd, DRM_IOCTL_VRAMSIM_GEM_INFO, info);
}

uint32_t vram_placement(int fd, uint32_t handle)
{
	struct drm_vramsim_gem_info info;

	if (vram_gem_info(fd, handle, &info))
		bail("no information on buffer %u", handle);
	return info.placement;
}

static int access_buffer(int fd, uint32_t handle, uint32_t op, uint64_t offset, uint64_t ptr,
			 uint64_t length)
{
	struct drm_vramsim_gem_access args = {
		.handle = handle,
		.op = op,
		.offset = offset,
		.length = length,
		.ptr = ptr,
	};

	return call(fd, DRM_IOCTL_VRAMSIM_GEM_ACCESS, &args);
}

int vram_read(int fd, uint32_t handle, uint64_t offset, void *to, uint64_t length)
{
	return access_buffer(fd, handle, VRAMSIM_ACCESS_READ, offset, (uintptr_t)to, length);
}

int vram_write(int fd, uint32_t handle, uint64_t offset, const void *from, uint64_t length)
{
	return access_buffer(fd, handle, VRAMSIM_ACCESS_WRITE, offset, (uintptr_t)from, length);
}

int vram_fill(int fd, uint32_t handle, uint64_t offset, uint8_t byte, uint64_t length)
{
	return access_buffer(fd, handle, VRAMSIM_ACCESS_FILL, offset, byte, length);
}

int vram_move(int fd, uint32_t handle, uint32_t placement, uint32_t flags, uint32_t fence_ms)
{
	struct drm_vramsim_gem_move args = {
		.handle = handle,
		.placement = placement,
		.flags = flags,
		.fence_ms = fence_ms,
	};

	return call(fd, DRM_IOCTL_VRAMSIM_GEM_MOVE, &args);
}

int vram_revoke(int fd, uint32_t handle)
{
	struct drm_vramsim_gem_revoke args = { .handle = handle };

	return call(fd, DRM_IOCTL_VRAMSIM_GEM_REVOKE, &args);
}

int vram_fence(int fd, uint32_t handle, uint32_t ms)
{
	struct drm_vramsim_gem_fence args = { .handle = handle, .fence_ms = ms };

	return call(fd, DRM_IOCTL_VRAMSIM_GEM_FENCE, &args);
}

int vram_inject(int fd, uint32_t handle, uint32_t step, uint32_t nth, uint32_t count,
		int32_t error)
{
	struct drm_vramsim_inject args = {
		.handle = handle,
		.step = step,
		.nth = nth,
		.count = count,
		.error = error,
	};

	return call(fd, DRM_IOCTL_VRAMSIM_INJECT, &args);
}

struct drm_vramsim_segment *vram_segments(int fd, uint32_t handle, uint32_t *count)
{
	struct drm_vramsim_segments args = { .handle = handle };
	struct drm_vramsim_segment *list;

	if (call(fd, DRM_IOCTL_VRAMSIM_SEGMENTS, &args))
		bail("no list of segments: %s", strerror(errno));
	list = calloc(args.count + 1, sizeof(*list));
	if (!list)
		bail("out of memory");
	args.ptr = (uintptr_t)list;
	if (call(fd, DRM_IOCTL_VRAMSIM_SEGMENTS, &args))
		bail("no list of segments: %s", strerror(errno));
	*count = args.count;
	return list;
}

void *vram_map(int fd, uint32_t handle, uint64_t size)
{
	struct drm_vramsim_gem_mmap args = { .handle = handle };
	void *map;

	if (call(fd, DRM_IOCTL_VRAMSIM_GEM_MMAP, &args))
		return NULL;
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, args.offset);
	return map == MAP_FAILED ? NULL : map;
}

int vram_export(int fd, uint32_t handle)
{
	int dmabuf;

	return drmPrimeHandleToFD(fd, handle, DRM_CLOEXEC | DRM_RDWR, &dmabuf) ? -1 : dmabuf;
}

int vram_import(int fd, int dmabuf, uint32_t *handle)
{
	return drmPrimeFDToHandle(fd, dmabuf, handle) ? errno : 0;
}

void pattern_make(uint8_t *to, uint64_t offset, size_t length, uint32_t seed)
{
	for (size_t i = 0; i < length; i++) {
		uint64_t at = offset + i;

		to[i] = (at * 167 + (at >> 12) * 59 + seed) ^ (at >> 8);
	}
}

int pattern_write(int fd, uint32_t handle, uint64_t size, uint32_t seed)
{
	static uint8_t buf[CHUNK];
	int ret = 0;

	for (uint64_t at = 0; at < size && !ret; at += CHUNK) {
		size_t run = size - at < CHUNK ? size - at : CHUNK;

		pattern_make(buf, at, run, seed);
		ret = vram_write(fd, handle, at, buf, run);
	}
	return ret;
}

bool pattern_check(int fd, uint32_t handle, uint64_t size, uint32_t seed)
{
	static uint8_t got[CHUNK], want[CHUNK];

	for (uint64_t at = 0; at < size; at += CHUNK) {
		size_t run = size - at < CHUNK ? size - at : CHUNK;
		int ret = vram_read(fd, handle, at, got, run);

		if (ret) {
			diag("read at %llu: %s", (unsigned long long)at, strerror(ret));
			return false;
		}
		pattern_make(want, at, run, seed);
		for (size_t i = 0; i < run; i++)
			if (got[i] != want[i]) {
				diag("byte %llu is %#x, want %#x",
				     (unsigned long long)(at + i), got[i], want[i]);
				return false;
			}
	}
	return true;
}

double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

bool info_clean(int fd, const struct drm_vramsim_info *start)
{
	struct drm_vramsim_info now;

	/* What a closed file held is given back a moment later. */
	for (int tries = 0; tries < 300; tries++) {
		if (vram_info(fd, &now))
			return false;
		if (now.vram_free == start->vram_free && now.objects == start->objects &&
		    now.attached == start->attached && now.mapped == start->mapped &&
		    now.pinned == start->pinned && now.vmapped == start->vmapped &&
		    now.exported == start->exported && now.violations == start->violations)
			return true;
		usleep(100000);
	}
	diag("free %llu of %llu, objects %u, attached %u, mapped %u, pinned %u, vmapped %u, exported %u, violations %u",
	     (unsigned long long)now.vram_free, (unsigned long long)start->vram_free,
	     now.objects, now.attached, now.mapped, now.pinned, now.vmapped, now.exported,
	     now.violations);
	return false;
}
