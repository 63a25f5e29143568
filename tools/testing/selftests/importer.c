// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "importer.h"
#include "sim.h"
#include "tap.h"

#define DEVICE		"/dev/dmabuf_importer"
#define SEGMENTS_AT_ONCE 65536

static int call(int imp, unsigned long request, void *arg)
{
	return ioctl(imp, request, arg) ? errno : 0;
}

const char *imp_contract(uint32_t contract)
{
	static const char *const names[IMP_CONTRACTS] = {
		[DMABUF_IMPORTER_DYNAMIC] = "dynamic",
		[DMABUF_IMPORTER_PINNED] = "pinned",
		[DMABUF_IMPORTER_REVOCABLE] = "revocable",
	};

	return names[contract];
}

void imp_setup(void)
{
	int sim = sim_open();

	if (sim < 0)
		tap_skip_all("no vramsim");
	close(sim);
	if (access(DEVICE, F_OK) && system("modprobe dmabuf_importer") != 0)
		tap_skip_all("no module dmabuf_importer");
	close(imp_open());
}

bool imp_kernel_moves(void)
{
	/* Only the debug kernel shows its configuration, and only it has the option. */
	return system("zcat /proc/config.gz 2>/dev/null | "
		      "grep -q '^CONFIG_DMABUF_MOVE_NOTIFY=y'") == 0;
}

int imp_open(void)
{
	int imp = open(DEVICE, O_RDWR | O_CLOEXEC);

	if (imp < 0)
		bail(DEVICE ": %s", strerror(errno));
	return imp;
}

int imp_create_with(int imp, const struct dmabuf_importer_create *args)
{
	return call(imp, DMABUF_IMPORTER_IOC_CREATE, (void *)args);
}

int imp_create(int imp, const struct dmabuf *buf, uint32_t contract,
	       uint64_t offset, uint64_t length)
{
	struct dmabuf_importer_create args = {
		.fd = dmabuf_fd(buf),
		.contract = contract,
		.offset = offset,
		.length = length,
		.access = DMABUF_IMPORTER_ACCESS_ALL,
	};

	return imp_create_with(imp, &args);
}

int imp_map(int imp)
{
	return call(imp, DMABUF_IMPORTER_IOC_MAP, NULL);
}

int imp_unmap(int imp)
{
	return call(imp, DMABUF_IMPORTER_IOC_UNMAP, NULL);
}

int imp_revoke(int imp)
{
	return call(imp, DMABUF_IMPORTER_IOC_REVOKE, NULL);
}

int imp_release(int imp)
{
	return call(imp, DMABUF_IMPORTER_IOC_RELEASE, NULL);
}

int imp_import(int imp, const struct dmabuf *buf, uint32_t contract,
	       uint64_t offset, uint64_t length)
{
	int ret = imp_create(imp, buf, contract, offset, length);

	if (!ret && contract == DMABUF_IMPORTER_DYNAMIC) {
		ret = imp_map(imp);
		if (ret)
			imp_release(imp);
	}
	return ret;
}

struct dmabuf_importer_info imp_info_for(int imp, uint64_t iova, uint64_t page_sizes)
{
	struct dmabuf_importer_info info = { .iova = iova, .page_sizes = page_sizes };
	int ret = call(imp, DMABUF_IMPORTER_IOC_INFO, &info);

	if (ret)
		bail("importer info: %s", strerror(ret));
	return info;
}

struct dmabuf_importer_info imp_info(int imp)
{
	return imp_info_for(imp, 0, 0);
}

int imp_segments(int imp, uint32_t kind, uint64_t page_size,
		 struct dmabuf_importer_segment **list, size_t *count)
{
	struct dmabuf_importer_segments args;

	*list = NULL;
	*count = 0;
	do {
		int ret;

		*list = realloc(*list, (*count + SEGMENTS_AT_ONCE) * sizeof(**list));
		if (!*list)
			bail("no memory for %zu segments", *count);
		args = (struct dmabuf_importer_segments){
			.first = *count,
			.count = SEGMENTS_AT_ONCE,
			.kind = kind,
			.page_size = page_size,
			.ptr = (uintptr_t)(*list + *count),
		};
		ret = call(imp, DMABUF_IMPORTER_IOC_SEGMENTS, &args);
		if (ret) {
			free(*list);
			*list = NULL;
			return ret;
		}
		*count += args.count;
	} while (args.count == SEGMENTS_AT_ONCE);
	return 0;
}

static int access_all(int imp, uint64_t offset, void *ptr, size_t length, uint32_t flags)
{
	while (length) {
		struct dmabuf_importer_access args = {
			.offset = offset,
			.length = length < DMABUF_IMPORTER_ACCESS_MAX ?
				  length : DMABUF_IMPORTER_ACCESS_MAX,
			.flags = flags,
			.ptr = (uintptr_t)ptr,
		};
		int ret = call(imp, DMABUF_IMPORTER_IOC_ACCESS, &args);

		if (ret)
			return ret;
		offset += args.length;
		length -= args.length;
		ptr = (char *)ptr + args.length;
	}
	return 0;
}

int imp_read(int imp, uint64_t offset, void *to, size_t length)
{
	return access_all(imp, offset, to, length, 0);
}

int imp_write(int imp, uint64_t offset, const void *from, size_t length)
{
	return access_all(imp, offset, (void *)from, length, DMABUF_IMPORTER_WRITE);
}

int imp_fault_read(int imp, uint64_t offset, void *to, size_t length)
{
	return access_all(imp, offset, to, length, DMABUF_IMPORTER_FAULT);
}

int imp_fault_write(int imp, uint64_t offset, const void *from, size_t length)
{
	return access_all(imp, offset, (void *)from, length,
			  DMABUF_IMPORTER_WRITE | DMABUF_IMPORTER_FAULT);
}

/* No two pages, and no page and its neighbour's shift, look alike. */
static void pattern(uint8_t *to, uint64_t at, size_t length, uint32_t seed)
{
	for (size_t i = 0; i < length; i++) {
		uint64_t x = (at + i + 1) * 0x9e3779b97f4a7c15ull + seed;

		to[i] = x >> 56 ^ x >> 29;
	}
}

static bool same(const uint8_t *got, const uint8_t *want, size_t length, const char *who,
		 uint64_t at)
{
	for (size_t i = 0; i < length; i++) {
		if (got[i] != want[i]) {
			diag("  %s: byte %llu is 0x%02x, not 0x%02x", who,
			     (unsigned long long)(at + i), got[i], want[i]);
			return false;
		}
	}
	return true;
}

static bool done(int ret, const char *what)
{
	if (ret)
		diag("  %s: %s", what, strerror(ret));
	return !ret;
}

bool imp_works(int imp, struct dmabuf *buf, uint64_t offset, uint64_t length, uint32_t seed)
{
	const uint64_t page = sysconf(_SC_PAGESIZE);
	uint64_t start = offset & -page;
	uint64_t end = (offset + length + page - 1) & -page;
	uint8_t *want = malloc(end - start), *got = malloc(end - start);
	bool good;

	if (!want || !got)
		bail("no memory");
	pattern(want, start, end - start, seed);
	good = done(dmabuf_write(buf, start, want, end - start) ? errno : 0, "exporter writes") &&
	       done(imp_read(imp, 0, got, length), "device reads") &&
	       same(got, want + (offset - start), length, "device reads", 0);
	if (good) {
		pattern(want + (offset - start), offset, length, ~seed);
		good = done(imp_write(imp, 0, want + (offset - start), length), "device writes") &&
		       done(dmabuf_read(buf, start, got, end - start) ? errno : 0,
			    "exporter reads") &&
		       same(got, want, end - start, "exporter reads", start);
	}
	free(want);
	free(got);
	return good;
}
