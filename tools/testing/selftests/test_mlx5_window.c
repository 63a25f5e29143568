// SPDX-License-Identifier: GPL-2.0
/* The window through which tests ask the simulated ConnectX; needs two of them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "child.h"
#include "mlx5sim.h"
#include "rig.h"
#include "tap.h"

#define SIZE		(64 * KIB)
#define NO_LID		77

static uint16_t lid_of(struct ibv_context *ctx)
{
	struct ibv_port_attr port;

	if (ibv_query_port(ctx, 1, &port))
		bail("ibv_query_port: %s", strerror(errno));
	return port.lid;
}

static int ask_nobody(void *arg)
{
	(void)arg;
	if (!freopen("/dev/null", "w", stdout))
		return 0;
	mlx5sim_stat(NO_LID, MLX5SIM_COMMANDS);
	return 0;
}

/* Asking a device that is not there ends a test. */
static void test_no_device(void)
{
	is(child_run(ask_nobody, NULL, 10000), TAP_EXIT_FAIL, "no answer for LID %d", NO_LID);
}

/* What one adapter has is not the other one's. */
static void test_device(struct ibv_context *ctx, uint16_t lid, uint16_t other)
{
	uint8_t *mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	uint64_t commands = mlx5sim_stat(lid, MLX5SIM_COMMANDS);
	uint64_t mkeys = mlx5sim_stat(lid, MLX5SIM_MKEYS);
	uint64_t umrs = mlx5sim_stat(lid, MLX5SIM_UMRS);
	unsigned int live = mlx5sim_live_keys(lid), live_there = mlx5sim_live_keys(other);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct mlx5sim_key key;
	struct ibv_mr *mr;
	uint64_t addr;

	if (!pd || mem == MAP_FAILED)
		bail("no PD or no memory: %s", strerror(errno));
	mr = ibv_reg_mr(pd, mem, SIZE, IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		bail("ibv_reg_mr: %s", strerror(errno));
	ok(mlx5sim_stat(lid, MLX5SIM_COMMANDS) > commands, "LID %u: stats: commands", lid);
	ok(mlx5sim_stat(lid, MLX5SIM_MKEYS) > mkeys, "LID %u: stats: keys", lid);
	ok(mlx5sim_stat(lid, MLX5SIM_UMRS) > umrs, "LID %u: stats: UMR", lid);
	is(mlx5sim_live_keys(lid), live + 1, "LID %u: keys: one more", lid);
	is(mlx5sim_live_keys(other), live_there, "LID %u: keys: none more", other);

	key = mlx5sim_key(lid, mr->lkey);
	is(key.key, mr->lkey, "LID %u: xlt: of the key", lid);
	ok(!key.free && key.start == (uintptr_t)mem && key.len == SIZE,
	   "LID %u: xlt: start and length", lid);
	is(key.count << key.log_page_size, SIZE, "LID %u: xlt: entries", lid);
	addr = key.count ? key.entries[0].addr : 0;
	ok(addr && key.entries[0].readable, "LID %u: xlt: the first one may be read", lid);
	free(key.entries);
	is(mlx5sim_key_that_maps(lid, addr, 1), mr->lkey, "LID %u: maps: the key", lid);
	is(mlx5sim_key_that_maps(other, addr, 1), 0, "LID %u: maps: no key", other);

	is(ibv_dereg_mr(mr) ?: ibv_dealloc_pd(pd), 0, "LID %u: deregister", lid);
	is(mlx5sim_key_that_maps(lid, addr, 1), 0, "LID %u: maps: no key any more", lid);
	is(mlx5sim_live_keys(lid), live, "LID %u: keys: as before", lid);
	munmap(mem, SIZE);
}

int main(void)
{
	struct ibv_context *first = rc_open("mlx5_0"), *second = rc_open("mlx5_1");

	if (!mlx5sim_there() || !first || !second)
		tap_skip_all("needs two simulated ConnectX");
	is(lid_of(first), 1, "LID of the first");
	is(lid_of(second), 2, "LID of the second");
	test_no_device();
	test_device(first, 1, 2);
	test_device(second, 2, 1);
	is(ibv_close_device(first) ?: ibv_close_device(second), 0, "close the devices");
	return tap_done();
}
