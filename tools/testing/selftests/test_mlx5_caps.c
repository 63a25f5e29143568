// SPDX-License-Identifier: GPL-2.0
/*
 * A device that can do less, by --mlx5 caps=NAME=VALUE; mlx5 must do without.
 *
 *	test_mlx5_caps NAME=VALUE...
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mlx5sim.h"
#include "rig.h"
#include "tap.h"

#define DEVICE		"mlx5_0"
#define LID		1
#define PAGE		4096ull
#define ACCESS		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
/* From this length on, offsets in a list of pages take more than 16 bits. */
#define LONG		(256 * MIB)

static struct ibv_context *ctx;
static struct ibv_device_attr_ex attr;
static struct rc_pair pair;

static void connect(void)
{
	if (rc_pair_init(&pair, ctx))
		bail("%s: %s", rc_failed_call(), strerror(errno));
}

/* Registers @size bytes, and shows that a WRITE gets to the end of them. */
static void works(const char *what, size_t size, bool by_umr)
{
	uint64_t umrs = mlx5sim_stat(LID, MLX5SIM_UMRS);
	unsigned int keys = mlx5sim_live_keys(LID);
	uint8_t *mem = rig_pages(size), text[] = "to the end";
	struct mlx5sim_key key;
	struct ibv_mr *mr, *from;
	uint64_t covered;
	struct ibv_sge sge;

	mr = ibv_reg_mr(pair.b.pd, mem, size, ACCESS);
	ok(mr, "%s: %zu KiB are registered", what, size / 1024);
	if (!mr)
		return;
	is(mlx5sim_stat(LID, MLX5SIM_UMRS) > umrs, by_umr, "%s: %s UMR", what,
	   by_umr ? "by" : "without");
	key = mlx5sim_key(LID, mr->lkey);
	covered = (uint64_t)key.count << key.log_page_size;
	/* Newer drivers take larger pages where memory allows: the last may lead too far. */
	ok(covered >= size && covered - size < 2ull << key.log_page_size,
	   "%s: the list covers all, %" PRIu64 " bytes", what, covered);
	free(key.entries);
	from = ibv_reg_mr(pair.a.pd, text, sizeof(text), IBV_ACCESS_LOCAL_WRITE);
	if (!from)
		bail("ibv_reg_mr: %s", strerror(errno));
	sge = (struct ibv_sge){
		.addr = (uintptr_t)text, .length = sizeof(text), .lkey = from->lkey,
	};
	mem += size - sizeof(text);
	is(rc_do(&pair.a, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)mem, mr->rkey), IBV_WC_SUCCESS,
	   "%s: WRITE", what);
	ok(!memcmp(mem, text, sizeof(text)), "%s: it arrived", what);
	is(ibv_dereg_mr(mr) ?: ibv_dereg_mr(from), 0, "%s: deregister", what);
	is(mlx5sim_live_keys(LID), keys, "%s: no key is left", what);
	munmap(mem + sizeof(text) - size, size);
}

static void no_page_faults(const char *what)
{
	uint8_t *mem = rig_pages(PAGE);
	struct ibv_mr *mr;

	is(attr.odp_caps.general_caps, 0, "%s: page faults are not offered", what);
	errno = 0;
	mr = ibv_reg_mr(pair.b.pd, mem, PAGE, ACCESS | IBV_ACCESS_ON_DEMAND);
	ok(!mr && (errno == EINVAL || errno == EOPNOTSUPP), "%s: registration with them: %s", what,
	   strerror(errno));
	mr = ibv_reg_mr(pair.b.pd, NULL, SIZE_MAX, ACCESS | IBV_ACCESS_ON_DEMAND);
	ok(!mr, "%s: nor the whole address space: %s", what, strerror(errno));
	munmap(mem, PAGE);
}

static void pg(const char *what)
{
	connect();
	no_page_faults(what);
	works(what, MIB, true);
}

/* A queue pair that others may send atomics to is refused. */
static void atomic(const char *what)
{
	is(attr.orig_attr.atomic_cap, IBV_ATOMIC_NONE, "%s: atomics are not offered", what);
	is(rc_pair_init(&pair, ctx), -1, "%s: a queue pair with atomics", what);
	is(errno, EOPNOTSUPP, "%s: %s", what, strerror(EOPNOTSUPP));
	ok(!strncmp(rc_failed_call(), "ibv_modify_qp", 13), "%s: at %s", what, rc_failed_call());
}

/* The list comes with the command, and page faults cannot be served. */
static void umr_modify_entity_size_disabled(const char *what)
{
	connect();
	no_page_faults(what);
	works(what, PAGE, false);
	works(what, MIB + 3 * PAGE, false);
}

static void umr_extended_translation_offset(const char *what)
{
	connect();
	ok(attr.odp_caps.general_caps & IBV_ODP_SUPPORT, "%s: page faults are offered", what);
	ok(!(attr.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT),
	   "%s: not for the whole address space", what);
	works(what, LONG - PAGE, true);
	works(what, LONG, false);
}

static const struct {
	const char *cap;
	void (*test)(const char *what);
} tests[] = {
	{ "pg=0", pg },
	{ "atomic=0", atomic },
	{ "umr_modify_entity_size_disabled=1", umr_modify_entity_size_disabled },
	{ "umr_extended_translation_offset=0", umr_extended_translation_offset },
};

static void run(const char *cap)
{
	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		if (!strcmp(tests[i].cap, cap)) {
			tests[i].test(cap);
			rc_pair_destroy(&pair);
			return;
		}
	}
	bail("no test for '%s'", cap);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		tap_skip_all("no capability is named");
	ctx = rc_open(DEVICE);
	if (!ctx || !mlx5sim_there())
		tap_skip_all("no simulated ConnectX");
	if (ibv_query_device_ex(ctx, NULL, &attr))
		bail("ibv_query_device_ex: %s", strerror(errno));
	for (int i = 1; i < argc; i++)
		run(argv[i]);
	is(ibv_close_device(ctx), 0, "close the device");
	is(system("modprobe -r mlx5_ib && modprobe -r mlx5_core"), 0, "unload the drivers");
	return tap_done();
}
