// SPDX-License-Identifier: GPL-2.0
/*
 * vramsim as a module: parameters, several instances, plain pages, its disguise
 * as amdgpu, and what happens to buffers in use when the device or the module
 * is to go.  Loads the module anew, and at the end as it was.
 */
#include <amdgpu.h>
#include <amdgpu_drm.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <linux/dma-buf.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xf86drm.h>

#include "tap.h"
#include "vram.h"

#define SIZE	(64 * PAGE)

__attribute__((format(printf, 1, 2)))
static int run(const char *fmt, ...)
{
	char command[512];
	va_list ap;
	int status;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	fflush(stdout);
	status = system(command);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* 0, or a positive errno of the kernel. */
static int unload(void)
{
	return run("rmmod vramsim 2>&1 | grep -q 'in use' && exit %d; test ! -e /sys/module/vramsim",
		   EBUSY);
}

/* Whether it can be unloaded within some seconds. */
static bool unloads(int timeout)
{
	double end = seconds() + timeout;

	while (unload()) {
		if (seconds() > end)
			return false;
		usleep(100000);
	}
	return true;
}

static void reload(const char *params)
{
	/* The last user may have gone a moment ago only. */
	unloads(5);
	if (run("modprobe vramsim %s", params))
		bail("vramsim does not load with '%s'", params);
}

static bool logged(const char *text)
{
	return !run("dmesg | tail -n 20 | grep -qF '%s'", text);
}

static void test_parameters(void)
{
	static const struct {
		const char *params, *message;
	} wrong[] = {
		{ "policy=wild", "policy=wild" },
		{ "present_as=nouveau", "present_as=nouveau" },
		{ "vram_mb=0", "needs memory" },
		{ "vram_mb=8,0", "needs memory" },
	};

	unload();
	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		ok(run("modprobe vramsim %s 2> /dev/null", wrong[i].params),
		   "%s is refused", wrong[i].params);
		ok(logged(wrong[i].message), "with a reason");
	}
	is(run("modprobe vramsim"), 0, "without parameters it loads");
	ok(vram_open(0) < 0, "and makes and takes nothing");
	reload("bdf=ffff:ff:1f.7");
	ok(vram_open(0) < 0, "nor with the address of another device");
}

static void test_instances(void)
{
	struct drm_vramsim_info a, b;
	struct drm_vramsim_gem_info info;
	uint32_t handle, there;
	int first, second, dmabuf;
	uint8_t byte = 0;

	reload("vram_mb=64,30");
	first = vram_open(0);
	second = vram_open(1);
	if (!ok(first >= 0 && second >= 0 && vram_open(2) < 0, "two instances of plain pages"))
		return;
	ok(!vram_info(first, &a) && !vram_info(second, &b) && a.vram_size + b.vram_size == 94 * MIB,
	   "of the sizes asked for");
	ok(!a.bar_bus && !b.bar_bus, "without BAR");
	ok(!run("grep -qx vramsim /sys/bus/platform/devices/vramsim.1/simulated"),
	   "sysfs says that it is simulated");
	ok(logged("simulated GPU memory"), "so does the log");

	handle = vram_new(first, SIZE, VRAM, 0);
	pattern_write(first, handle, SIZE, 1);
	dmabuf = vram_export(first, handle);
	is(vram_import(second, dmabuf, &there), 0, "one imports from the other");
	ok(!vram_gem_info(first, handle, &info) && info.attached == 1 && info.pinned == 1,
	   "which is an attachment, pinned");
	ok(pattern_check(second, there, SIZE, 1), "with the contents");
	byte = 0x42;
	ok(!vram_write(second, there, 99, &byte, 1) && !vram_read(first, handle, 99, &byte, 1) &&
	   byte == 0x42, "in both directions");
	ok(!vram_info(second, &b) && !b.objects && b.vram_free == b.vram_size,
	   "the other's VRAM is not touched");
	vram_close(second, there);
	vram_close(first, handle);
	close(dmabuf);
	ok(info_clean(first, &a), "counters are back");
	close(first);
	close(second);
}

static void test_plain_pages(const char *self)
{
	static const char * const programs[] = {
		"test_vramsim", "test_vramsim_share", "test_vramsim_errors",
	};
	char dir[256];

	snprintf(dir, sizeof(dir), "%s", self);
	*(strrchr(dir, '/') ?: dir) = '\0';
	reload("vram_mb=64");
	for (unsigned int i = 0; i < sizeof(programs) / sizeof(*programs); i++)
		is(run("'%s/%s' > /tmp/out 2>&1 || { grep -A2 '^not ok' /tmp/out | sed 's/^/#   /'; exit 1; }",
		       *dir ? dir : ".", programs[i]), 0, "%s on plain pages", programs[i]);
}

static void test_policy(void)
{
	struct drm_vramsim_info info;
	uint32_t handle;
	int fd, dmabuf;
	struct dma_buf_sync sync = { .flags = DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ };

	reload("vram_mb=64 policy=amdgpu");
	fd = vram_open(0);
	ok(!vram_info(fd, &info) && info.policy == VRAMSIM_POLICY_AMDGPU, "policy amdgpu");
	handle = vram_new(fd, SIZE, VRAM, 0);
	dmabuf = vram_export(fd, handle);
	ok(!drmIoctl(dmabuf, DMA_BUF_IOCTL_SYNC, &sync) &&
	   vram_placement(fd, handle) == SYSTEM, "a reading CPU gets it into system memory");
	close(dmabuf);
	close(fd);
}

static void test_amdgpu(void)
{
	struct amdgpu_bo_alloc_request request = {
		.alloc_size = MIB + 5,
		.phys_alignment = PAGE,
		.preferred_heap = AMDGPU_GEM_DOMAIN_VRAM,
		.flags = AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED,
	};
	union drm_amdgpu_gem_create create = { .in.bo_size = PAGE };
	struct amdgpu_heap_info heap;
	amdgpu_device_handle dev;
	uint32_t major, minor, dmabuf = 0, handle = 0;
	struct drm_vramsim_info info;
	drmVersionPtr version;
	amdgpu_bo_handle bo;
	uint8_t byte = 0;
	void *map = NULL;
	int fd;

	reload("vram_mb=64");
	fd = vram_open(0);
	errno = 0;
	ok(drmIoctl(fd, DRM_IOCTL_AMDGPU_GEM_CREATE, &create) && errno == EINVAL,
	   "vramsim as itself knows nothing of amdgpu");
	close(fd);

	reload("vram_mb=64 present_as=amdgpu");
	fd = vram_open(0);
	version = drmGetVersion(fd);
	ok(version && !strcmp(version->name, "amdgpu") && version->version_major == 3,
	   "the driver's name is amdgpu, version 3");
	ok(version && strstr(version->desc, "simulated"), "its description is honest");
	drmFreeVersion(version);

	if (!ok(!amdgpu_device_initialize(fd, &major, &minor, &dev), "libdrm_amdgpu takes it"))
		return;
	ok(!amdgpu_query_heap_info(dev, AMDGPU_GEM_DOMAIN_VRAM, 0, &heap) &&
	   heap.heap_size == 64 * MIB, "and sees the VRAM");
	ok(!amdgpu_query_heap_info(dev, AMDGPU_GEM_DOMAIN_GTT, 0, &heap) && heap.heap_size,
	   "and system memory");
	ok(!amdgpu_bo_alloc(dev, &request, &bo), "allocates");
	ok(!amdgpu_bo_cpu_map(bo, &map) && map, "maps");
	ok(!amdgpu_bo_export(bo, amdgpu_bo_handle_type_dma_buf_fd, &dmabuf), "exports");
	if (map)
		memset(map, 0x3c, MIB);
	ok(!vram_import(fd, dmabuf, &handle) && !vram_read(fd, handle, MIB - 1, &byte, 1) &&
	   byte == 0x3c, "vramsim's own commands work on it");
	is(vram_placement(fd, handle), VRAM, "it is in VRAM");
	vram_close(fd, handle);
	close(dmabuf);
	amdgpu_bo_cpu_unmap(bo);
	ok(!amdgpu_bo_free(bo), "frees");
	amdgpu_device_deinitialize(dev);

	create.in.bo_size = 1;
	create.in.domains = AMDGPU_GEM_DOMAIN_GTT;
	ok(!drmIoctl(fd, DRM_IOCTL_AMDGPU_GEM_CREATE, &create) &&
	   vram_placement(fd, create.out.handle) == SYSTEM, "one byte of GTT is a page");
	vram_close(fd, create.out.handle);
	for (unsigned int i = 0; i < 5; i++) {
		union drm_amdgpu_gem_create bad[] = {
			{ .in = { .domains = AMDGPU_GEM_DOMAIN_VRAM } },
			{ .in = { .bo_size = PAGE } },
			{ .in = { .bo_size = PAGE, .domains = 1 << 6 } },
			{ .in = { .bo_size = PAGE, .domains = AMDGPU_GEM_DOMAIN_GDS } },
			{ .in = { .bo_size = UINT64_MAX, .domains = AMDGPU_GEM_DOMAIN_VRAM } },
		};

		errno = 0;
		ok(drmIoctl(fd, DRM_IOCTL_AMDGPU_GEM_CREATE, &bad[i]) && errno == EINVAL,
		   "amdgpu's create: wrong arguments, case %u", i);
	}
	ok(!vram_info(fd, &info) && !info.objects && info.vram_free == info.vram_size,
	   "all is given back");
	close(fd);
}

static void test_unload(void)
{
	uint32_t handle;
	int fd, dmabuf;

	reload("vram_mb=64");
	fd = vram_open(0);
	is(unload(), EBUSY, "no unload with an open file");
	handle = vram_new(fd, SIZE, VRAM, 0);
	dmabuf = vram_export(fd, handle);
	close(fd);
	is(unload(), EBUSY, "nor with a dma-buf");
	close(dmabuf);
	is(unload(), 0, "but when both are gone");

	reload("vram_mb=64");
	fd = vram_open(0);
	handle = vram_new(fd, SIZE, VRAM, 0);
	vram_move(fd, handle, SYSTEM, 0, 8000);
	close(fd);
	is(unload(), EBUSY, "nor while a fence is pending");
	ok(unloads(20), "but after it");
}

static sigjmp_buf bus_error;

static void on_bus_error(int sig)
{
	(void)sig;
	siglongjmp(bus_error, 1);
}

static bool is_gone(const uint8_t *at)
{
	struct sigaction action = { .sa_handler = on_bus_error }, old;
	bool gone = true;

	sigaction(SIGBUS, &action, &old);
	if (!sigsetjmp(bus_error, 1)) {
		uint8_t byte = __atomic_load_n(at, __ATOMIC_RELAXED);

		gone = false;
		(void)byte;
	}
	sigaction(SIGBUS, &old, NULL);
	return gone;
}

/* Takes the device from the driver while buffers are in use, and gives it back. */
static void test_unbind(const char *bus, const char *device)
{
	uint32_t handle, moving, lent = 0;
	int fd = vram_open(0), vgem = vgem_open(), dmabuf, again;
	struct drm_vramsim_info info;
	double start;
	uint8_t *map;

	handle = vram_new(fd, SIZE, VRAM, 0);
	moving = vram_new(fd, SIZE, SYSTEM, 0);
	map = vram_map(fd, handle, SIZE);
	map[0] = 1;
	dmabuf = vram_export(fd, handle);
	if (vgem >= 0) {
		int other = vram_export(fd, moving);

		vram_import(vgem, other, &lent);
		close(other);
	}
	vram_fence(fd, handle, 60000);
	start = seconds();
	is(run("echo %s > /sys/bus/%s/drivers/vramsim/unbind", device, bus), 0,
	   "%s: unbind with buffers in use", bus);
	ok(seconds() - start < 10, "%s: a fence of a minute does not hold it up", bus);
	ok(is_gone(map), "%s: the mapping gives SIGBUS", bus);
	errno = 0;
	ok(drmIoctl(fd, DRM_IOCTL_VRAMSIM_INFO, &info) && errno == ENODEV,
	   "%s: commands give ENODEV", bus);
	ok(vgem < 0 || vram_import(vgem, dmabuf, &handle) == ENODEV,
	   "%s: so does an attach", bus);
	is(run("echo %s > /sys/bus/%s/drivers/vramsim/bind", device, bus), 0,
	   "%s: bind again", bus);
	again = vram_open(0);
	ok(!vram_info(again, &info) && !info.objects && info.vram_free == info.vram_size,
	   "%s: the new device is empty", bus);
	handle = vram_new(again, SIZE, VRAM, 0);
	ok(!pattern_write(again, handle, SIZE, 1) && pattern_check(again, handle, SIZE, 1),
	   "%s: and works", bus);
	close(again);
	is(unload(), EBUSY, "%s: what is left of the old one holds the module", bus);

	if (vgem >= 0) {
		vram_close(vgem, lent);
		close(vgem);
	}
	close(dmabuf);
	close(fd);
	ok(is_gone(map), "%s: the mapping alone", bus);
	munmap(map, SIZE);
	ok(unloads(10), "%s: then it can be unloaded", bus);
}

/* PCI address of the first device that vramsim could have, NULL if none. */
static const char *pci_device(void)
{
	static char name[32];
	FILE *f = popen("grep -lx 0x1110 /sys/bus/pci/devices/*/device | xargs -r -n 1 dirname | head -n 1 | xargs -r basename",
			"r");

	if (!f || !fgets(name, sizeof(name), f))
		name[0] = '\0';
	if (f)
		pclose(f);
	name[strcspn(name, "\n")] = '\0';
	return *name ? name : NULL;
}

int main(int argc, char **argv)
{
	const char *device = pci_device();
	char params[64];

	(void)argc;
	if (run("modinfo vramsim > /dev/null 2>&1"))
		tap_skip_all("no vramsim");
	if (unload() == EBUSY)
		tap_skip_all("vramsim is in use");

	test_parameters();
	test_instances();
	test_plain_pages(argv[0]);
	test_policy();
	test_amdgpu();
	test_unload();
	reload("vram_mb=64");
	test_unbind("platform", "vramsim.0");
	if (device) {
		snprintf(params, sizeof(params), "bdf=%s", device);
		reload(params);
		test_unbind("pci", device);
		run("modprobe vramsim pci=1");
	} else {
		skip("unbind of a PCI device", "none there");
	}
	return tap_done();
}
