// SPDX-License-Identifier: GPL-2.0
/*
 * vramsim's buffers as dma-bufs, with stock vgem as the importer and as the
 * exporter: pins, placement, quotas, injected failures, revoke.
 *
 * vgem attaches statically and without peer-to-peer: it is the kind of importer
 * that sends a buffer to system memory. On newer kernels it maps nothing before
 * it has to; there a second vramsim does as importer what vgem did.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xf86drm.h>

#include "tap.h"
#include "vram.h"

#define SIZE	(64 * PAGE)

static int fd, vgem, importer;
static struct drm_vramsim_info device;

static struct drm_vramsim_gem_info info_of(uint32_t handle)
{
	struct drm_vramsim_gem_info info;

	if (vram_gem_info(fd, handle, &info))
		bail("no information on buffer %u", handle);
	return info;
}

static uint32_t new_with(uint32_t flags, uint32_t pin)
{
	struct drm_vramsim_gem_create args = {
		.size = SIZE, .placement = VRAM, .flags = flags, .pin = pin,
	};
	uint32_t handle;

	if (vram_create(fd, args, &handle))
		bail("no buffer: %s", strerror(errno));
	return handle;
}

static void test_prime(void)
{
	uint32_t handle = new_with(0, 0), again = 0, other_handle = 0;
	int other = vram_open(0), dmabuf, second;
	struct drm_vramsim_info now;
	struct stat st;
	uint8_t byte = 0;

	ok(!info_of(handle).dmabuf_inode, "no dma-buf before the export");
	dmabuf = vram_export(fd, handle);
	second = vram_export(fd, handle);
	fstat(dmabuf, &st);
	ok(dmabuf >= 0 && info_of(handle).dmabuf_inode == st.st_ino,
	   "GEM_INFO knows the dma-buf");
	fstat(second, &st);
	ok(info_of(handle).dmabuf_inode == st.st_ino, "a second export gives the same");
	vram_info(fd, &now);
	is(now.exported - device.exported, 1, "one dma-buf is counted");
	ok(!vram_import(fd, dmabuf, &again) && again == handle, "it comes home as its handle");

	ok(!vram_import(other, dmabuf, &other_handle), "another client of the device imports it");
	vram_fill(fd, handle, 0, 0x33, SIZE);
	ok(!vram_read(other, other_handle, SIZE - 1, &byte, 1) && byte == 0x33,
	   "it is the same buffer");
	vram_info(fd, &now);
	ok(now.objects - device.objects == 1 && !info_of(handle).attached,
	   "one object, and no attachment");

	/* The dma-buf outlives all handles, and is found again. */
	close(second);
	vram_close(fd, handle);
	close(other);
	ok(!vram_import(fd, dmabuf, &handle) && !vram_read(fd, handle, 1, &byte, 1) &&
	   byte == 0x33, "it comes back after all handles were closed");
	ok(!vram_move(fd, handle, SYSTEM, 0, 0) && !vram_read(fd, handle, 1, &byte, 1) &&
	   byte == 0x33, "and moves");
	vram_close(fd, handle);
	close(dmabuf);
	ok(info_clean(fd, &device), "prime: counters are back");
}

/* Export, import into the other driver, close what is not needed: errno. */
static int lend(uint32_t handle, uint32_t *lent)
{
	int dmabuf = vram_export(fd, handle);
	int ret = vram_import(importer, dmabuf, lent);

	close(dmabuf);
	return ret;
}

/* Whether the importer attaches and maps when it imports. */
static bool maps(void)
{
	uint32_t handle = new_with(0, 0), lent;
	bool mapped = !lend(handle, &lent) && info_of(handle).mapped;

	vram_close(importer, lent);
	vram_close(fd, handle);
	return mapped;
}

static void test_importer(uint32_t flags, const char *name)
{
	uint32_t handle = new_with(flags, 0), lent;
	struct drm_vramsim_gem_info info;

	pattern_write(fd, handle, SIZE, 5);
	is(lend(handle, &lent), 0, "%s: it is imported", name);
	info = info_of(handle);
	ok(info.placement == SYSTEM && pattern_check(fd, handle, SIZE, 5),
	   "%s: the buffer went to system memory, as it is", name);
	ok(info.attached == 1 && !info.attached_p2p && info.mapped == 1 && info.pinned == 1,
	   "%s: attached, mapped and pinned once", name);
	is(info.maps, 1, "%s: one map", name);
	is(vram_move(fd, handle, VRAM, 0, 0), EBUSY, "%s: it cannot move", name);
	is(vram_move(fd, handle, 0, VRAMSIM_MOVE_NOTIFY_ONLY, 0), 0, "%s: notices are fine", name);
	vram_close(importer, lent);
	info = info_of(handle);
	ok(!info.attached && !info.mapped && !info.pinned, "%s: all is given back", name);
	is(vram_move(fd, handle, VRAM, 0, 0), 0, "%s: it can move", name);

	/* Revoke while the importer has it. */
	is(lend(handle, &lent), 0, "%s: it is imported again", name);
	is(vram_revoke(fd, handle), 0, "%s: revoke a pinned buffer", name);
	info = info_of(handle);
	ok(info.revoked && info.placement == SYSTEM && info.pinned,
	   "%s: the memory stays as long as it is pinned", name);
	vram_close(importer, lent);
	is(info_of(handle).placement, VRAMSIM_PLACEMENT_NONE, "%s: then it goes", name);
	is(lend(handle, &lent), ENODEV, "%s: nobody gets it any more", name);
	vram_close(fd, handle);
	ok(info_clean(fd, &device), "%s: counters are back", name);
}

static void test_pin_policy(uint32_t flags, const char *name)
{
	uint32_t handle = new_with(flags, VRAMSIM_PIN_REFUSE), lent;

	is(lend(handle, &lent), EOPNOTSUPP, "%s: refuses to be pinned", name);
	is(info_of(handle).placement, VRAM, "%s: and stays in VRAM", name);
	vram_close(fd, handle);

	handle = new_with(flags, VRAMSIM_PIN_DOWNGRADE);
	ok(!lend(handle, &lent) && info_of(handle).placement == SYSTEM,
	   "%s: is pinned in system memory", name);
	vram_close(importer, lent);
	vram_close(fd, handle);

	is(vram_inject(fd, 0, VRAMSIM_INJECT_PIN_QUOTA, SIZE / PAGE, 1, 0), 0,
	   "%s: a quota for one buffer", name);
	handle = new_with(flags, 0);
	is(lend(handle, &lent), 0, "%s: one is within", name);
	uint32_t second = new_with(flags, 0), second_lent;

	is(lend(second, &second_lent), ENOMEM, "%s: two are not", name);
	vram_close(importer, lent);
	is(lend(second, &second_lent), 0, "%s: one after the other is", name);
	vram_close(importer, second_lent);
	vram_inject(fd, 0, VRAMSIM_INJECT_PIN_QUOTA, 0, 0, 0);
	vram_close(fd, handle);
	vram_close(fd, second);
	ok(info_clean(fd, &device), "%s: counters are back after policies", name);
}

static void test_inject(uint32_t flags, const char *name)
{
	static const struct {
		uint32_t step;
		const char *name;
	} steps[] = {
		{ VRAMSIM_INJECT_ATTACH, "attach" },
		{ VRAMSIM_INJECT_PIN, "pin" },
		{ VRAMSIM_INJECT_MAP, "map" },
	};
	static const uint32_t errors[] = { ENOMEM, EIO, ENOSPC, 95 };

	for (unsigned int i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		uint32_t handle = new_with(flags, 0), lent;
		bool exact = true, clean = true;

		for (unsigned int e = 0; e < sizeof(errors) / sizeof(*errors); e++) {
			struct drm_vramsim_gem_info info;

			vram_inject(fd, handle, steps[i].step, 1, 1, errors[e]);
			exact &= lend(handle, &lent) == (int)errors[e];
			info = info_of(handle);
			clean &= !info.attached && !info.mapped && !info.pinned;
		}
		ok(exact, "%s: %s fails with the errno asked for", name, steps[i].name);
		ok(clean, "%s: and nothing is left of it", name);

		vram_inject(fd, handle, steps[i].step, 3, 2, EIO);
		exact = true;
		for (unsigned int n = 1; n <= 5; n++) {
			int ret = lend(handle, &lent);

			exact &= ret == (n == 3 || n == 4 ? EIO : 0);
			if (!ret)
				vram_close(importer, lent);
		}
		ok(exact, "%s: the third and fourth %s fail, no others", name, steps[i].name);

		vram_inject(fd, handle, steps[i].step, 1, UINT32_MAX, EIO);
		exact = lend(handle, &lent) == EIO && lend(handle, &lent) == EIO;
		vram_inject(fd, handle, steps[i].step, 0, 0, 0);
		exact &= !lend(handle, &lent);
		ok(exact, "%s: all of them, until taken back", name);
		vram_close(importer, lent);

		vram_inject(fd, 0, steps[i].step, 1, 1, ENXIO);
		is(lend(handle, &lent), ENXIO, "%s: %s fails for any buffer", name, steps[i].name);
		vram_close(fd, handle);
	}

	uint32_t handle = new_with(flags, 0), lent;

	vram_inject(fd, handle, VRAMSIM_INJECT_NOTIFY_IN_ATTACH, 1, 1, 0);
	vram_inject(fd, handle, VRAMSIM_INJECT_NOTIFY_IN_PIN, 1, 1, 0);
	ok(!lend(handle, &lent) && info_of(handle).notifies >= 2,
	   "%s: notices in attach and pin", name);
	vram_close(importer, lent);
	vram_close(fd, handle);
	ok(info_clean(fd, &device), "%s: counters are back after failures", name);
}

static void test_foreign(void)
{
	struct drm_mode_create_dumb create = { .width = 1024, .height = 4, .bpp = 32 };
	struct drm_mode_map_dumb offset = { 0 };
	struct drm_vramsim_gem_info info;
	struct drm_vramsim_info now;
	uint32_t handle = 0;
	uint8_t *map, odd[300], got[300];
	int dmabuf = -1;

	if (drmIoctl(vgem, DRM_IOCTL_MODE_CREATE_DUMB, &create) ||
	    drmPrimeHandleToFD(vgem, create.handle, DRM_CLOEXEC | DRM_RDWR, &dmabuf))
		bail("no buffer of vgem: %s", strerror(errno));
	offset.handle = create.handle;
	drmIoctl(vgem, DRM_IOCTL_MODE_MAP_DUMB, &offset);
	map = mmap(NULL, create.size, PROT_READ | PROT_WRITE, MAP_SHARED, vgem, offset.offset);

	is(vram_import(fd, dmabuf, &handle), 0, "import of vgem's buffer");
	ok(!vram_gem_info(fd, handle, &info) && info.placement == VRAMSIM_PLACEMENT_FOREIGN &&
	   info.size == create.size, "its memory is another's");
	vram_info(fd, &now);
	is(now.objects, device.objects, "it is not counted as ours");
	pattern_make(odd, 0, sizeof(odd), 8);
	ok(!vram_write(fd, handle, PAGE - 100, odd, sizeof(odd)) &&
	   !memcmp(map + PAGE - 100, odd, sizeof(odd)), "the GPU writes to it");
	map[77] = 0x99;
	ok(!vram_read(fd, handle, 70, got, 10) && got[7] == 0x99, "and reads it");
	is(vram_read(fd, handle, create.size, got, 1), EINVAL, "not beyond its end");
	is(vram_move(fd, handle, SYSTEM, 0, 0), EINVAL, "it is not ours to move");
	is(vram_revoke(fd, handle), EINVAL, "nor to revoke");
	is(vram_fence(fd, handle, 1), EINVAL, "nor to fence");
	is(vram_inject(fd, handle, 0, 1, 1, EIO), EINVAL, "nor to break");
	ok(!vram_map(fd, handle, create.size) && errno == EINVAL, "nor to map");
	close(vram_export(fd, handle));
	vram_close(fd, handle);
	close(dmabuf);
	munmap(map, create.size);
	vram_close(vgem, create.handle);
	ok(info_clean(fd, &device), "import: counters are back");
}

int main(void)
{
	fd = vram_open(0);
	if (fd < 0)
		tap_skip_all("no vramsim");
	vgem = vgem_open();
	if (vgem < 0)
		tap_skip_all("this kernel has no vgem");
	vram_info(fd, &device);

	test_prime();
	test_foreign();
	importer = vgem;
	if (!maps())
		importer = vram_open(1);
	if (importer < 0) {
		skip("importers", "vgem does not map what it imports, and there is one vramsim");
		return tap_done();
	}
	diag("importer: %s", importer == vgem ? "vgem" : "a second vramsim");
	test_importer(0, "dynamic");
	test_importer(VRAMSIM_CREATE_STATIC, "static");
	test_pin_policy(0, "dynamic");
	test_pin_policy(VRAMSIM_CREATE_STATIC, "static");
	test_inject(0, "dynamic");
	test_inject(VRAMSIM_CREATE_STATIC, "static");
	return tap_done();
}
