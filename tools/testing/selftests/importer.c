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
#define BLOCKS_MAX	(4u << 20)	/* a longer table is the same work for longer */

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
	return !system("zcat /proc/config.gz 2>&1 | grep -q '^CONFIG_DMABUF_MOVE_NOTIFY=y'");
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

struct list {
	struct dmabuf_importer_segment *segments;
	size_t count;
};

static void list_add(struct list *list, uint64_t address, uint64_t length)
{
	list->segments[list->count++] = (struct dmabuf_importer_segment){ address, length };
}

/* The part of the exporter's segments from @start to @end; neighbours joined, or not. */
static struct list clip(const struct drm_vramsim_segment *cut, size_t count, uint64_t start,
			uint64_t end, bool join)
{
	struct list list = { malloc(count * sizeof(*list.segments)), 0 };
	uint64_t pos = 0;

	if (!list.segments)
		bail("no memory for %zu segments", count);
	for (size_t i = 0; i < count && pos < end; pos += cut[i++].length) {
		uint64_t first = pos > start ? pos : start;
		uint64_t last = pos + cut[i].length < end ? pos + cut[i].length : end;
		uint64_t address = cut[i].address + (first - pos);
		struct dmabuf_importer_segment *prev = &list.segments[list.count - 1];

		if (first >= last)
			continue;
		if (join && list.count && prev->address + prev->length == address)
			prev->length += last - first;
		else
			list_add(&list, address, last - first);
	}
	return list;
}

static bool same_list(int imp, uint32_t kind, uint64_t page_size, const struct list *want,
		      const char *what)
{
	struct dmabuf_importer_segment *got;
	size_t count;
	int ret = imp_segments(imp, kind, page_size, &got, &count);
	bool right = !ret && count == want->count;

	if (!right)
		diag("  %s: %zu elements, not %zu: %s", what, count, want->count, strerror(ret));
	for (size_t i = 0; right && i < count; i++) {
		right = got[i].address == want->segments[i].address &&
			got[i].length == want->segments[i].length;
		if (!right)
			diag("  %s: element %zu is 0x%llx+0x%llx, not 0x%llx+0x%llx", what, i,
			     (unsigned long long)got[i].address, (unsigned long long)got[i].length,
			     (unsigned long long)want->segments[i].address,
			     (unsigned long long)want->segments[i].length);
	}
	free(got);
	return right;
}

/*
 * Can pages of @size hold these runs at @iova?  Each page of the address space
 * has one place on the bus, so it goes through the pages and not the runs.
 */
static bool pages_fit(const struct list *runs, uint64_t iova, uint64_t size)
{
	uint64_t va = iova, page = 0, place = 0;
	bool known = false;

	for (size_t i = 0; i < runs->count; va += runs->segments[i++].length) {
		const struct dmabuf_importer_segment *run = &runs->segments[i];

		/* the page that the run starts in, which the run before may have used */
		if ((run->address - va) % size)
			return false;
		if (known && va / size == page && place != run->address - va)
			return false;
		page = (va + run->length - 1) / size;
		place = run->address - va;
		known = true;
	}
	return true;
}

static bool page_size_right(int imp, const struct list *runs, uint64_t iova)
{
	uint64_t got = imp_info_for(imp, iova, 0).page_size, want = 4096;
	uint64_t va = iova;
	struct list blocks;
	uint64_t total = 0;
	bool right;

	while (want < 1ull << 62 && pages_fit(runs, iova, want * 2))
		want *= 2;
	if (got != want) {
		diag("  page size is 0x%llx, not 0x%llx", (unsigned long long)got,
		     (unsigned long long)want);
		return false;
	}

	for (size_t i = 0; i < runs->count; i++)
		total += runs->segments[i].length / want + 2;
	if (total > BLOCKS_MAX)
		return true;
	blocks = (struct list){ malloc(total * sizeof(*blocks.segments)), 0 };
	if (!blocks.segments)
		bail("no memory for %llu blocks", (unsigned long long)total);
	for (size_t i = 0; i < runs->count; va += runs->segments[i++].length) {
		uint64_t first = va / want, last = (va + runs->segments[i].length - 1) / want;
		uint64_t place = runs->segments[i].address - va;

		for (uint64_t page = first; page <= last; page++)
			list_add(&blocks, page * want + place, want);
	}
	right = same_list(imp, DMABUF_IMPORTER_BLOCKS, want, &blocks, "blocks");
	free(blocks.segments);
	return right;
}

bool imp_translation_right(int imp, const struct drm_vramsim_segment *cut, size_t count,
			   uint64_t offset, uint64_t length, uint64_t iova)
{
	struct list pages = clip(cut, count, offset & -4096ull,
				 (offset + length + 4095) & -4096ull, false);
	struct list runs = clip(cut, count, offset, offset + length, true);
	bool right = same_list(imp, DMABUF_IMPORTER_SG, 0, &pages, "list") &&
		     same_list(imp, DMABUF_IMPORTER_RUNS, 0, &runs, "runs") &&
		     page_size_right(imp, &runs, iova);

	free(pages.segments);
	free(runs.segments);
	return right;
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
