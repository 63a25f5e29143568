// SPDX-License-Identifier: GPL-2.0
/*
 * That the simulated ConnectX lies where the guest was told to put it: below a
 * switch or on the root bus, behind an IOMMU that translates or not.
 *
 *	test_mlx5_topology [switch] [iommu]
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mlx5_rig.h"
#include "tap.h"

#define DEVICE		"mlx5_0"
#define LID		1
#define PAGES		16
#define PAGE		4096ull
#define PAGEMAP_PRESENT	0x8000000000000000ull
#define PAGEMAP_FRAME	0x007fffffffffffffull
#define BRIDGE		"0x060400"

static bool is_bridge(const char *folder)
{
	char path[512], class[16] = "";
	FILE *in;

	snprintf(path, sizeof(path), "%s/class", folder);
	in = fopen(path, "re");
	if (!in)
		return false;
	if (!fgets(class, sizeof(class), in))
		class[0] = '\0';
	fclose(in);
	return !strncmp(class, BRIDGE, strlen(BRIDGE));
}

/* PCI bridges between the root bus and the device */
static int bridges_above(const char *device)
{
	char path[256], *folder, *slash;
	int count = 0;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device", device);
	folder = realpath(path, NULL);
	if (!folder)
		tap_skip_all("no %s: %s", device, strerror(errno));
	for (slash = strrchr(folder, '/'); slash; slash = strrchr(folder, '/')) {
		*slash = '\0';
		count += is_bridge(folder);
	}
	free(folder);
	return count;
}

static uint64_t physical(const void *at)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry;

	if (fd < 0 || pread(fd, &entry, sizeof(entry), (uintptr_t)at / PAGE * sizeof(entry)) !=
	    sizeof(entry) || !(entry & PAGEMAP_PRESENT))
		bail("pagemap: %s", strerror(errno));
	close(fd);
	return (entry & PAGEMAP_FRAME) * PAGE;
}

/* The address in the translation of @key for its @page-th page of 4 KiB */
static uint64_t bus_address(const struct mlx5sim_key *key, unsigned int page)
{
	uint64_t size = 1ull << key->log_page_size;
	uint64_t offset = key->start % size + page * PAGE;

	for (size_t i = 0; i < key->count; i++) {
		if (key->entries[i].index == offset / size)
			return key->entries[i].addr + offset % size;
	}
	bail("page %u has no entry", page);
}

/* Pages of an MR that the device has at the address of the memory itself */
static unsigned int untranslated(struct rc_pair *pair)
{
	uint8_t *mem = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	unsigned int count = 0;
	struct mlx5sim_key key;
	struct ibv_mr *mr;

	if (mem == MAP_FAILED)
		bail("no memory");
	mr = ibv_reg_mr(pair->a.pd, mem, PAGES * PAGE, IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		bail("ibv_reg_mr: %s", strerror(errno));
	key = mlx5sim_key(LID, mr->lkey);
	for (unsigned int i = 0; i < PAGES; i++) {
		uint64_t bus = bus_address(&key, i), phys = physical(mem + i * PAGE);

		count += bus == phys;
		if (!i)
			diag("first page: memory at %#" PRIx64 ", the device has %#" PRIx64,
			     phys, bus);
	}
	free(key.entries);
	ibv_dereg_mr(mr);
	munmap(mem, PAGES * PAGE);
	return count;
}

int main(int argc, char **argv)
{
	bool with_switch = false, with_iommu = false;
	struct ibv_context *ctx;
	struct rc_pair pair;

	for (int i = 1; i < argc; i++) {
		with_switch |= !strcmp(argv[i], "switch");
		with_iommu |= !strcmp(argv[i], "iommu");
	}
	/* Root port, upstream port, downstream port */
	is(bridges_above(DEVICE), with_switch ? 3 : 0, "bridges above %s", DEVICE);
	is(mlx5_behind_iommu(), with_iommu, "groups of an IOMMU");
	ctx = rc_open(DEVICE);
	if (!ctx || rc_pair_init(&pair, ctx))
		bail("%s: %s", rc_failed_call(), strerror(errno));
	is(untranslated(&pair), with_iommu ? 0 : PAGES, "pages of an MR without translation");
	rc_pair_destroy(&pair);
	is(ibv_close_device(ctx), 0, "close the device");
	return tap_done();
}
