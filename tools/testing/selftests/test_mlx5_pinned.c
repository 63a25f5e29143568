// SPDX-License-Identifier: GPL-2.0
/*
 * An adapter that cannot be made to refuse a key, --mlx5
 * caps=umr_modify_atomic_disabled=1: an MR on a dma-buf is pinned, and cannot be
 * revoked.  The driver of 5.10 registers no host memory on it, whatever the rights,
 * so what data is carried goes from one dma-buf to the other.
 */
#include <errno.h>
#include <string.h>

#include "mlx5sim.h"
#include "restrack.h"
#include "rig.h"
#include "sim.h"
#include "tap.h"

#define DEVICE		"mlx5_0"
#define LID		1
#define SIZE		(4 * MIB)
#define LENGTH		(128 * KIB)

static struct rc_pair pair;

struct side {
	struct dmabuf *buf;
	struct ibv_mr *mr;
};

static struct side side_up(const char *what, struct ibv_pd *pd)
{
	struct side side = { .buf = rig_vram(SIZE, NULL) };
	uint64_t umrs = mlx5sim_stat(LID, MLX5SIM_UMRS);

	side.mr = ibv_reg_dmabuf_mr(pd, 0, SIZE, 0, dmabuf_fd(side.buf), RIG_ACCESS);
	ok(side.mr, "%s: register", what);
	if (!side.mr)
		bail("ibv_reg_dmabuf_mr: %s", strerror(errno));
	is(mlx5sim_stat(LID, MLX5SIM_UMRS), umrs, "%s: by the command alone", what);
	return side;
}

static void side_down(const char *what, struct side *side)
{
	is(ibv_dereg_mr(side->mr), 0, "%s: deregister", what);
	is(sim_gem(side->buf).pinned, 0, "%s: not pinned any more", what);
	is(sim_move(side->buf, VRAMSIM_PLACEMENT_SYSTEM, 0, 0), 0, "%s: moves again", what);
	dmabuf_free(side->buf);
}

/* @length bytes of @from at @offset to @to, there at the same place. */
static void carries(struct side *from, struct side *to, uint64_t offset)
{
	static uint8_t sent[LENGTH], there[LENGTH];
	uint64_t state = offset + 1;
	struct ibv_sge sge = {
		.addr = offset, .length = LENGTH, .lkey = from->mr->lkey,
	};
	size_t i;

	for (i = 0; i < LENGTH; i++)
		sent[i] = random_next(&state);
	if (dmabuf_write(from->buf, offset, sent, LENGTH))
		bail("%s: %s", dmabuf_failed_call(), strerror(errno));
	is(rc_do(&pair.a, IBV_WR_RDMA_WRITE, &sge, offset, to->mr->rkey), IBV_WC_SUCCESS,
	   "WRITE at %llu KiB", (unsigned long long)(offset / KIB));
	if (dmabuf_read(to->buf, offset, there, LENGTH))
		bail("%s: %s", dmabuf_failed_call(), strerror(errno));
	ok(!memcmp(sent, there, LENGTH), "  and the bytes are there");
}

int main(void)
{
	struct side from, to;
	struct ibv_context *ctx;
	unsigned int keys;
	char line[1024];

	if (!mlx5sim_there())
		tap_skip_all("no simulated ConnectX here");
	ctx = rc_open(DEVICE);
	if (!ctx || rc_pair_init(&pair, ctx))
		bail("%s: %s", rc_failed_call(), strerror(errno));
	keys = mlx5sim_live_keys(LID);

	from = side_up("source", pair.a.pd);
	restrack_show(line, sizeof(line));
	ok(restrack_says(line, "dmabuf_mode", "pinned"), "rdma says so: %s", line);
	to = side_up("target", pair.b.pd);
	ok(sim_gem(to.buf).pinned > 0, "the memory is pinned");
	is(sim_move(to.buf, VRAMSIM_PLACEMENT_SYSTEM, 0, 0), EBUSY, "and does not move");
	carries(&from, &to, 0);
	carries(&from, &to, SIZE - LENGTH);
	side_down("source", &from);
	side_down("target", &to);
	is(mlx5sim_live_keys(LID), keys, "no key is left");

	rc_pair_destroy(&pair);
	is(ibv_close_device(ctx), 0, "close");
	return tap_done();
}
