// SPDX-License-Identifier: GPL-2.0
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <xf86drm.h>

#include "sim.h"
#include "tap.h"

#define RENDER_FIRST	128	/* DRM gives render nodes the minors from here */
#define RENDER_END	192

static bool is_vramsim(int fd)
{
	struct drm_vramsim_info info = { 0 };
	drmVersionPtr version = drmGetVersion(fd);
	bool ours = version && !strcmp(version->name, "vramsim");

	drmFreeVersion(version);
	return ours && !ioctl(fd, DRM_IOCTL_VRAMSIM_INFO, &info);
}

int sim_open(void)
{
	char path[32];

	for (int minor = RENDER_FIRST; minor < RENDER_END; minor++) {
		int fd;

		snprintf(path, sizeof(path), "/dev/dri/renderD%d", minor);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (is_vramsim(fd))
			return fd;
		close(fd);
	}
	return -1;
}

static int call(const struct dmabuf *buf, unsigned long request, void *arg)
{
	return ioctl(dmabuf_drm_fd(buf), request, arg) ? errno : 0;
}

int sim_gem_info(const struct dmabuf *buf, struct drm_vramsim_gem_info *info)
{
	*info = (struct drm_vramsim_gem_info){ .handle = dmabuf_handle(buf) };
	return call(buf, DRM_IOCTL_VRAMSIM_GEM_INFO, info);
}

struct drm_vramsim_gem_info sim_gem(const struct dmabuf *buf)
{
	struct drm_vramsim_gem_info info;
	int ret = sim_gem_info(buf, &info);

	if (ret)
		bail("vramsim gem info: %s", strerror(ret));
	return info;
}

int sim_move(const struct dmabuf *buf, uint32_t placement, uint32_t flags, uint32_t fence_ms)
{
	struct drm_vramsim_gem_move move = {
		.handle = dmabuf_handle(buf),
		.placement = placement,
		.flags = flags,
		.fence_ms = fence_ms,
	};

	return call(buf, DRM_IOCTL_VRAMSIM_GEM_MOVE, &move);
}

int sim_move_cut(const struct dmabuf *buf, uint32_t placement, uint64_t segment_size)
{
	struct drm_vramsim_gem_move move = {
		.handle = dmabuf_handle(buf),
		.placement = placement,
		.flags = VRAMSIM_MOVE_SHUFFLE,
		.segment_size = segment_size,
	};

	return call(buf, DRM_IOCTL_VRAMSIM_GEM_MOVE, &move);
}

int sim_revoke(const struct dmabuf *buf)
{
	struct drm_vramsim_gem_revoke revoke = { .handle = dmabuf_handle(buf) };

	return call(buf, DRM_IOCTL_VRAMSIM_GEM_REVOKE, &revoke);
}

int sim_fence(const struct dmabuf *buf, uint32_t fence_ms)
{
	struct drm_vramsim_gem_fence fence = {
		.handle = dmabuf_handle(buf),
		.fence_ms = fence_ms,
	};

	return call(buf, DRM_IOCTL_VRAMSIM_GEM_FENCE, &fence);
}

int sim_inject_nth(const struct dmabuf *buf, uint32_t step, uint32_t nth, uint32_t count,
		   int32_t error)
{
	struct drm_vramsim_inject inject = {
		.handle = dmabuf_handle(buf),
		.step = step,
		.nth = nth,
		.count = count,
		.error = error,
	};

	return call(buf, DRM_IOCTL_VRAMSIM_INJECT, &inject);
}

int sim_inject(const struct dmabuf *buf, uint32_t step, uint32_t count, int32_t error)
{
	return sim_inject_nth(buf, step, 1, count, error);
}

int sim_inject_device(const struct dmabuf *buf, const struct drm_vramsim_inject *inject)
{
	return call(buf, DRM_IOCTL_VRAMSIM_INJECT, (void *)inject);
}

struct drm_vramsim_segment *sim_segments(const struct dmabuf *buf, size_t *count)
{
	struct drm_vramsim_segments args = { .handle = dmabuf_handle(buf) };
	struct drm_vramsim_info device = { 0 };
	struct drm_vramsim_segment *list;

	if (call(buf, DRM_IOCTL_VRAMSIM_INFO, &device) ||
	    call(buf, DRM_IOCTL_VRAMSIM_SEGMENTS, &args))
		bail("vramsim segments: %s", strerror(errno));
	list = calloc(args.count, sizeof(*list));
	if (!list)
		bail("no memory for %u segments", args.count);
	args.ptr = (uintptr_t)list;
	if (call(buf, DRM_IOCTL_VRAMSIM_SEGMENTS, &args))
		bail("vramsim segments: %s", strerror(errno));
	*count = args.count;
	/* In VRAM, addresses count from its start. */
	if (sim_gem(buf).placement == VRAMSIM_PLACEMENT_VRAM)
		for (size_t i = 0; i < *count; i++)
			list[i].address += device.bar_bus;
	return list;
}

static uint32_t count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint32_t fds = 0;

	if (!dir)
		bail("/proc/self/fd: %s", strerror(errno));
	while (readdir(dir))
		fds++;
	closedir(dir);
	return fds;
}

uint64_t sim_callback_ns(void)
{
	uint64_t ns = UINT64_MAX;
	char line[128];
	FILE *in = NULL;
	glob_t files;

	if (!glob("/sys/kernel/debug/dri/*/counters", 0, NULL, &files)) {
		in = fopen(files.gl_pathv[0], "re");
		globfree(&files);
	}
	while (in && ns == UINT64_MAX && fgets(line, sizeof(line), in))
		sscanf(line, "callback_ns %" SCNu64, &ns);
	if (in)
		fclose(in);
	if (ns == UINT64_MAX)
		bail("no callback_ns in vramsim's counters");
	return ns;
}

void counters_get(struct counters *now)
{
	struct drm_vramsim_info info = { 0 };
	int fd = sim_open();

	if (fd < 0 || ioctl(fd, DRM_IOCTL_VRAMSIM_INFO, &info))
		bail("no vramsim to ask for its counters: %s", strerror(errno));
	close(fd);
	*now = (struct counters){
		.vram_free = info.vram_free,
		.objects = info.objects,
		.attached = info.attached,
		.mapped = info.mapped,
		.pinned = info.pinned,
		.vmapped = info.vmapped,
		.exported = info.exported,
		.fds = count_fds(),
	};
}

static void name_differences(const struct counters *start, const struct counters *now)
{
	static const struct {
		const char *name;
		size_t at;
	} fields[] = {
#define FIELD(f) { #f, offsetof(struct counters, f) }
		FIELD(objects), FIELD(attached), FIELD(mapped), FIELD(pinned),
		FIELD(vmapped), FIELD(exported), FIELD(fds),
#undef FIELD
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		uint32_t was = *(const uint32_t *)((const char *)start + fields[i].at);
		uint32_t is_now = *(const uint32_t *)((const char *)now + fields[i].at);

		if (was != is_now)
			diag("  counter %s: was %u, is %u", fields[i].name, was, is_now);
	}
	if (start->vram_free != now->vram_free)
		diag("  counter vram_free: was %" PRIu64 ", is %" PRIu64,
		     start->vram_free, now->vram_free);
}

static bool same(const struct counters *a, const struct counters *b)
{
	return a->vram_free == b->vram_free && a->objects == b->objects &&
	       a->attached == b->attached && a->mapped == b->mapped &&
	       a->pinned == b->pinned && a->vmapped == b->vmapped &&
	       a->exported == b->exported && a->fds == b->fds;
}

bool counters_back(const struct counters *start, int timeout_ms)
{
	struct counters now;

	for (counters_get(&now); !same(start, &now) && timeout_ms > 0; timeout_ms -= 50) {
		usleep(50 * 1000);
		counters_get(&now);
	}
	if (same(start, &now))
		return true;
	name_differences(start, &now);
	return false;
}
