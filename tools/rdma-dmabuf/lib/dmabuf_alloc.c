// SPDX-License-Identifier: GPL-2.0
/*
 * Allocators of dma-bufs.
 *
 * An exporter is a name and a function that fills in struct dmabuf: the fd, and
 * where a CPU mapping of the same memory comes from (a DRM node and an offset, a
 * memfd, or the dma-buf itself).  Everything else is common to all of them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>

#include <xf86drm.h>
#include <drm/vramsim_drm.h>

#include "dmabuf_alloc.h"

struct dmabuf {
	const struct exporter *exporter;
	char *name;
	size_t size;
	uint64_t inode;
	int fd;			/* the dma-buf, -1 when given up */
	int drm_fd;		/* vramsim, vgem */
	uint32_t handle;
	int memfd;		/* udmabuf */
	off_t map_offset;	/* where mmap() on the DRM node finds it */
	void *map;
};

struct exporter {
	const char *name;
	bool takes_instance;	/* "name:INSTANCE" */
	bool takes_opts;
	const char *placement;	/* NULL: ask the exporter */
	int (*create)(struct dmabuf *buf, const char *instance,
		      const struct dmabuf_opts *opts);
};

static __thread const char *failed_call = "nothing";

const char *dmabuf_failed_call(void)
{
	return failed_call;
}

static int fail(const char *call)
{
	failed_call = call;
	return -1;
}

static int fail_with(int error, const char *call)
{
	errno = error;
	return fail(call);
}

/* One of ours also when it presents itself as amdgpu: amdgpu has no such command. */
static bool is_vramsim(int fd, const char *driver)
{
	struct drm_vramsim_info info = {};

	if (strcmp(driver, "vramsim") && strcmp(driver, "amdgpu"))
		return false;
	return drmIoctl(fd, DRM_IOCTL_VRAMSIM_INFO, &info) == 0;
}

static bool is_vgem(int fd, const char *driver)
{
	(void)fd;
	return strcmp(driver, "vgem") == 0;
}

/* Opens the @nth DRM node named @format that @matches; -1 and errno. */
static int drm_open_nth(const char *format, int first,
			bool (*matches)(int fd, const char *driver), int nth)
{
	int error = ENODEV;
	int minor;

	for (minor = first; minor < first + 64; minor++) {
		drmVersionPtr version;
		bool match;
		char path[32];
		int fd;

		snprintf(path, sizeof(path), format, minor);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0) {
			if (errno != ENOENT)
				error = errno;
			continue;
		}
		version = drmGetVersion(fd);
		match = version && matches(fd, version->name);
		drmFreeVersion(version);
		if (match && nth-- == 0)
			return fd;
		close(fd);
	}
	return fail_with(error, "open of a DRM node");
}

static int export_handle(struct dmabuf *buf)
{
	if (drmPrimeHandleToFD(buf->drm_fd, buf->handle, DRM_CLOEXEC | DRM_RDWR, &buf->fd))
		return fail("DRM_IOCTL_PRIME_HANDLE_TO_FD");
	return 0;
}

static int vramsim_create(struct dmabuf *buf, const char *instance,
			  const struct dmabuf_opts *opts)
{
	struct drm_vramsim_gem_create create = {
		.size = buf->size,
		.segment_size = opts->segment_size,
		.placement = opts->system ? VRAMSIM_PLACEMENT_SYSTEM : VRAMSIM_PLACEMENT_VRAM,
		.flags = opts->flags,
		.pin = opts->pin,
		.seed = opts->seed,
	};
	struct drm_vramsim_gem_mmap map = {};
	char *end = "";
	long nth = instance ? strtol(instance, &end, 10) : 0;

	if (*end || nth < 0 || (instance && !*instance))
		return fail_with(EINVAL, "instance of vramsim");
	buf->drm_fd = drm_open_nth("/dev/dri/renderD%d", 128, is_vramsim, nth);
	if (buf->drm_fd < 0)
		return -1;
	if (drmIoctl(buf->drm_fd, DRM_IOCTL_VRAMSIM_GEM_CREATE, &create))
		return fail("DRM_IOCTL_VRAMSIM_GEM_CREATE");
	buf->handle = create.handle;
	buf->size = create.size;
	/* A sparse buffer cannot be mapped: dmabuf_map_cpu() finds out, if it is asked. */
	map.handle = buf->handle;
	buf->map_offset = -1;
	if (!drmIoctl(buf->drm_fd, DRM_IOCTL_VRAMSIM_GEM_MMAP, &map))
		buf->map_offset = map.offset;
	else if (errno != EOPNOTSUPP)
		return fail("DRM_IOCTL_VRAMSIM_GEM_MMAP");
	return export_handle(buf);
}

static int vgem_create(struct dmabuf *buf, const char *instance,
		       const struct dmabuf_opts *opts)
{
	/* A "picture" of one page a line, since dumb buffers are pictures */
	struct drm_mode_create_dumb create = {
		.width = sysconf(_SC_PAGESIZE),
		.height = buf->size / sysconf(_SC_PAGESIZE),
		.bpp = 8,
	};
	struct drm_mode_map_dumb map = {};

	(void)instance;
	(void)opts;
	/* Dumb buffers are not for render nodes. */
	buf->drm_fd = drm_open_nth("/dev/dri/card%d", 0, is_vgem, 0);
	if (buf->drm_fd < 0)
		return -1;
	if (drmIoctl(buf->drm_fd, DRM_IOCTL_MODE_CREATE_DUMB, &create))
		return fail("DRM_IOCTL_MODE_CREATE_DUMB");
	buf->handle = create.handle;
	map.handle = create.handle;
	if (drmIoctl(buf->drm_fd, DRM_IOCTL_MODE_MAP_DUMB, &map))
		return fail("DRM_IOCTL_MODE_MAP_DUMB");
	buf->map_offset = map.offset;
	return export_handle(buf);
}

static int udmabuf_create(struct dmabuf *buf, const char *instance,
			  const struct dmabuf_opts *opts)
{
	struct udmabuf_create create = {
		.flags = UDMABUF_FLAGS_CLOEXEC,
		.size = buf->size,
	};
	int dev;

	(void)instance;
	(void)opts;
	dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	if (dev < 0)
		return fail_with(errno == ENOENT ? ENODEV : errno, "open of /dev/udmabuf");
	buf->memfd = memfd_create("udmabuf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (buf->memfd < 0) {
		fail("memfd_create");
	} else if (ftruncate(buf->memfd, buf->size)) {
		fail("ftruncate");
	} else if (fcntl(buf->memfd, F_ADD_SEALS, F_SEAL_SHRINK)) {
		fail("F_ADD_SEALS");
	} else {
		create.memfd = buf->memfd;
		buf->fd = ioctl(dev, UDMABUF_CREATE, &create);
		if (buf->fd < 0)
			fail("UDMABUF_CREATE");
	}
	close(dev);
	return buf->fd < 0 ? -1 : 0;
}

static int heap_create(struct dmabuf *buf, const char *instance,
		       const struct dmabuf_opts *opts)
{
	struct dma_heap_allocation_data data = {
		.len = buf->size,
		.fd_flags = O_RDWR | O_CLOEXEC,
	};
	char path[64];
	int dev, ret;

	(void)opts;
	if (!instance || !*instance || strchr(instance, '/'))
		return fail_with(EINVAL, "name of a dma-heap");
	if (snprintf(path, sizeof(path), "/dev/dma_heap/%s", instance) >= (int)sizeof(path))
		return fail_with(ENAMETOOLONG, "name of a dma-heap");
	dev = open(path, O_RDWR | O_CLOEXEC);
	if (dev < 0)
		return fail_with(errno == ENOENT ? ENODEV : errno, "open of a dma-heap");
	ret = ioctl(dev, DMA_HEAP_IOCTL_ALLOC, &data);
	close(dev);
	if (ret)
		return fail("DMA_HEAP_IOCTL_ALLOC");
	buf->fd = data.fd;
	return 0;
}

static const struct exporter exporters[] = {
	{ "vramsim", true, true, NULL, vramsim_create },
	{ "vgem", false, false, "system", vgem_create },
	{ "udmabuf", false, false, "system", udmabuf_create },
	{ "heap", true, false, "unknown", heap_create },
	{ }
};

static const struct exporter *find_exporter(const char *name, const char **instance)
{
	size_t length = strcspn(name, ":");
	const struct exporter *exporter;

	*instance = name[length] ? name + length + 1 : NULL;
	for (exporter = exporters; exporter->name; exporter++) {
		if (strlen(exporter->name) == length &&
		    !strncmp(exporter->name, name, length) &&
		    (!*instance || exporter->takes_instance))
			return exporter;
	}
	return NULL;
}

struct dmabuf *dmabuf_alloc(const char *exporter, size_t size,
			    const struct dmabuf_opts *opts)
{
	static const struct dmabuf_opts none;
	size_t page = sysconf(_SC_PAGESIZE);
	const char *instance;
	struct dmabuf *buf;
	struct stat st;

	buf = calloc(1, sizeof(*buf));
	if (!buf) {
		fail("calloc");
		return NULL;
	}
	buf->fd = -1;
	buf->drm_fd = -1;
	buf->memfd = -1;
	buf->exporter = find_exporter(exporter, &instance);
	if (!buf->exporter) {
		fail_with(EINVAL, "name of an exporter");
		goto err;
	}
	if (!size || size > SIZE_MAX - page) {
		fail_with(EINVAL, "size of a dma-buf");
		goto err;
	}
	if (opts && memcmp(opts, &none, sizeof(none)) && !buf->exporter->takes_opts) {
		fail_with(EINVAL, "options of a dma-buf");
		goto err;
	}
	buf->size = (size + page - 1) / page * page;
	buf->name = strdup(exporter);
	if (!buf->name) {
		fail("strdup");
		goto err;
	}
	if (buf->exporter->create(buf, instance, opts ? opts : &none))
		goto err;
	if (fstat(buf->fd, &st)) {
		fail("fstat");
		goto err;
	}
	buf->inode = st.st_ino;
	return buf;
err:
	dmabuf_free(buf);
	return NULL;
}

void dmabuf_free(struct dmabuf *buf)
{
	int error = errno;

	if (!buf)
		return;
	if (buf->map)
		munmap(buf->map, buf->size);
	if (buf->fd >= 0)
		close(buf->fd);
	if (buf->handle)
		drmCloseBufferHandle(buf->drm_fd, buf->handle);
	if (buf->drm_fd >= 0)
		close(buf->drm_fd);
	if (buf->memfd >= 0)
		close(buf->memfd);
	free(buf->name);
	free(buf);
	errno = error;
}

int dmabuf_fd(const struct dmabuf *buf)
{
	return buf->fd;
}

void dmabuf_close_fd(struct dmabuf *buf)
{
	/* The memory of a heap has no other name than the dma-buf: map it in time. */
	if (buf->drm_fd < 0 && buf->memfd < 0)
		dmabuf_map_cpu(buf);
	if (buf->fd >= 0)
		close(buf->fd);
	buf->fd = -1;
}

size_t dmabuf_size(const struct dmabuf *buf)
{
	return buf->size;
}

const char *dmabuf_exporter(const struct dmabuf *buf)
{
	return buf->name;
}

uint64_t dmabuf_inode(const struct dmabuf *buf)
{
	return buf->inode;
}

int dmabuf_drm_fd(const struct dmabuf *buf)
{
	return buf->drm_fd;
}

uint32_t dmabuf_handle(const struct dmabuf *buf)
{
	return buf->handle;
}

const char *dmabuf_placement(const struct dmabuf *buf)
{
	struct drm_vramsim_gem_info info = { .handle = buf->handle };

	if (buf->exporter->placement)
		return buf->exporter->placement;
	if (drmIoctl(buf->drm_fd, DRM_IOCTL_VRAMSIM_GEM_INFO, &info)) {
		fail("DRM_IOCTL_VRAMSIM_GEM_INFO");
		return "unknown";
	}
	switch (info.placement) {
	case VRAMSIM_PLACEMENT_VRAM:
		return "vram";
	case VRAMSIM_PLACEMENT_SYSTEM:
		return "system";
	case VRAMSIM_PLACEMENT_NONE:
		return "none";
	}
	return "unknown";
}

void *dmabuf_map_cpu(struct dmabuf *buf)
{
	void *map;
	int fd;

	if (buf->map)
		return buf->map;
	if (buf->map_offset < 0) {
		fail_with(EOPNOTSUPP, "DRM_IOCTL_VRAMSIM_GEM_MMAP");
		return NULL;
	}
	if (buf->drm_fd >= 0)
		fd = buf->drm_fd;
	else if (buf->memfd >= 0)
		fd = buf->memfd;
	else
		fd = buf->fd;
	map = mmap(NULL, buf->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, buf->map_offset);
	if (map == MAP_FAILED) {
		fail("mmap");
		return NULL;
	}
	buf->map = map;
	return map;
}

static int sync_cpu(const struct dmabuf *buf, uint64_t flags)
{
	struct dma_buf_sync sync = { .flags = flags };

	/* Without the fd there is nothing to call, nor a device that holds it in cache. */
	if (buf->fd < 0)
		return 0;
	while (ioctl(buf->fd, DMA_BUF_IOCTL_SYNC, &sync)) {
		if (errno != EINTR && errno != EAGAIN)
			return fail("DMA_BUF_IOCTL_SYNC");
	}
	return 0;
}

/* op: VRAMSIM_ACCESS_*; other exporters do the same through their mapping */
static int access_buf(struct dmabuf *buf, uint32_t op, size_t offset, void *ptr,
		      uint8_t byte, size_t length)
{
	uint64_t direction = op == VRAMSIM_ACCESS_READ ? DMA_BUF_SYNC_READ : DMA_BUF_SYNC_WRITE;
	char *map;

	if (buf->exporter->create == vramsim_create) {
		struct drm_vramsim_gem_access access = {
			.handle = buf->handle,
			.op = op,
			.offset = offset,
			.length = length,
			.ptr = op == VRAMSIM_ACCESS_FILL ? byte : (uintptr_t)ptr,
		};

		if (drmIoctl(buf->drm_fd, DRM_IOCTL_VRAMSIM_GEM_ACCESS, &access))
			return fail("DRM_IOCTL_VRAMSIM_GEM_ACCESS");
		return 0;
	}
	if (offset > buf->size || length > buf->size - offset)
		return fail_with(EINVAL, "range in a dma-buf");
	map = dmabuf_map_cpu(buf);
	if (!map || sync_cpu(buf, DMA_BUF_SYNC_START | direction))
		return -1;
	switch (op) {
	case VRAMSIM_ACCESS_READ:
		memcpy(ptr, map + offset, length);
		break;
	case VRAMSIM_ACCESS_WRITE:
		memcpy(map + offset, ptr, length);
		break;
	case VRAMSIM_ACCESS_FILL:
		memset(map + offset, byte, length);
		break;
	}
	return sync_cpu(buf, DMA_BUF_SYNC_END | direction);
}

int dmabuf_read(struct dmabuf *buf, size_t offset, void *to, size_t length)
{
	return access_buf(buf, VRAMSIM_ACCESS_READ, offset, to, 0, length);
}

int dmabuf_write(struct dmabuf *buf, size_t offset, const void *from, size_t length)
{
	return access_buf(buf, VRAMSIM_ACCESS_WRITE, offset, (void *)from, 0, length);
}

int dmabuf_fill(struct dmabuf *buf, size_t offset, uint8_t byte, size_t length)
{
	return access_buf(buf, VRAMSIM_ACCESS_FILL, offset, NULL, byte, length);
}
