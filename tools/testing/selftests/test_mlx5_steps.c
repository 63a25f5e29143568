// SPDX-License-Identifier: GPL-2.0
/*
 * The life of a few dma-buf MRs, step by step, for the adapter's trace (--out) to be
 * compared with that of another kernel: tools/testing/mlx5sim/traces.
 *
 * In $OUT/steps there is a line for each step: how long the trace was at its end, and
 * its name.  The steps are the same on all kernels; one that a kernel refuses has to be
 * refused, and leaves an empty place in the trace.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "mlx5_rig.h"
#include "sim.h"
#include "tap.h"

#define PAGE		(4 * KIB)
#define BLOCK		(2 * MIB)
#define IOVA		0x20000000000ull

#define VRAM		VRAMSIM_PLACEMENT_VRAM
#define SYSTEM		VRAMSIM_PLACEMENT_SYSTEM

static struct rig rig;
static char trace_path[256];
static FILE *steps;

static void open_steps(void)
{
	const char *out = getenv("OUT");
	char path[256];

	if (!out)
		tap_skip_all("no $OUT: needs --out");
	snprintf(trace_path, sizeof(trace_path), "%s/mlx5-%d.jsonl", out, MLX5_LID);
	snprintf(path, sizeof(path), "%s/steps", out);
	steps = fopen(path, "we");
	if (!steps)
		bail("%s: %s", path, strerror(errno));
}

static void step(const char *name)
{
	struct stat st;

	if (stat(trace_path, &st))
		bail("%s: %s", trace_path, strerror(errno));
	fprintf(steps, "%lld %s\n", (long long)st.st_size, name);
}

/* A step is over when what it was to give has come. */
static void step_is(int got, int want, const char *what, const char *name)
{
	char both[128];

	snprintf(both, sizeof(both), "%s: %s", what, name);
	is(got, want, "%s", both);
	step(both);
}

static int write_word(const struct mr *mr, uint64_t iova)
{
	uint64_t word = iova;

	return rig_write(&rig, mr, iova, &word, sizeof(word));
}

/* Where moves are followed they succeed; where buffers are pinned they must not. */
static int moved(void)
{
	return mlx5_follows_moves() ? 0 : EBUSY;
}

static void size_steps(const char *what, uint64_t size, uint64_t segment)
{
	struct dmabuf_opts opts = {
		.flags = VRAMSIM_CREATE_SCATTER, .segment_size = segment, .seed = 1,
	};
	struct dmabuf *buf = rig_vram(size, &opts);
	struct mr mr;

	step_is(rig_reg(&rig, dmabuf_fd(buf), 0, size, IOVA, &mr), 0, what, "register");
	step_is(write_word(&mr, IOVA), 0, what, "WRITE");
	step_is(sim_move(buf, VRAM, VRAMSIM_MOVE_SHUFFLE, 0), moved(), what, "move");
	step_is(write_word(&mr, IOVA), 0, what, "WRITE after the move");
	step_is(mr_dereg(&mr), 0, what, "deregister");
	step_is(rig_reg(&rig, dmabuf_fd(buf), 0, size, IOVA, &mr), 0, what, "register again");
	step_is(mr_dereg(&mr), 0, what, "deregister again");
	dmabuf_free(buf);
}

static void window_steps(void)
{
	static const struct dmabuf_opts opts = {
		.flags = VRAMSIM_CREATE_SCATTER, .segment_size = PAGE, .seed = 2,
	};
	static const char what[] = "odd window";
	struct dmabuf *buf = rig_vram(4 * MIB, &opts);
	struct mr mr;

	step_is(rig_reg(&rig, dmabuf_fd(buf), 0x2100, 0x81000, IOVA + 0x100, &mr), 0, what,
		"register");
	step_is(write_word(&mr, IOVA + 0x100), 0, what, "WRITE");
	step_is(mr_dereg(&mr), 0, what, "deregister");
	dmabuf_free(buf);
}

static void layout_steps(void)
{
	static const struct dmabuf_opts opts = {
		.flags = VRAMSIM_CREATE_SCATTER, .segment_size = BLOCK, .seed = 3,
	};
	static const char what[] = "layout";
	struct dmabuf *buf = rig_vram(4 * BLOCK, &opts);
	struct mr mr;

	step_is(rig_reg(&rig, dmabuf_fd(buf), 0, 4 * BLOCK, IOVA, &mr), 0, what, "register blocks");
	step_is(sim_move_cut(buf, VRAM, PAGE), moved(), what, "move to pages");
	step_is(write_word(&mr, IOVA), 0, what, "WRITE to pages");
	step_is(sim_move_cut(buf, VRAM, 4 * BLOCK), moved(), what, "move to one piece");
	step_is(write_word(&mr, IOVA), 0, what, "WRITE to one piece");
	step_is(sim_move_cut(buf, SYSTEM, 64 * KIB), moved(), what, "move to system memory");
	step_is(mr_advise(&mr, rig.pair.b.pd, IOVA, 4 * BLOCK), mlx5_follows_moves() ||
		!mlx5_is_ours() ? 0 : EOPNOTSUPP, what, "prefetch");
	step_is(write_word(&mr, IOVA), 0, what, "WRITE after the prefetch");
	step_is(mr_dereg(&mr), 0, what, "deregister");
	dmabuf_free(buf);
}

static void revoke_steps(void)
{
	static const char what[] = "revoke";
	struct dmabuf *buf = rig_vram(BLOCK, NULL);
	struct mr mr;

	step_is(rig_reg(&rig, dmabuf_fd(buf), 0, BLOCK, IOVA, &mr), 0, what, "register");
	step_is(sim_revoke(buf), 0, what, "revoke");
	step_is(write_word(&mr, IOVA), IBV_WC_REM_ACCESS_ERR, what, "WRITE");
	step_is(mr_dereg(&mr), 0, what, "deregister");
	dmabuf_free(buf);
}

static void rereg_steps(void)
{
	static const char what[] = "rereg";
	struct dmabuf *buf = rig_vram(BLOCK, NULL);
	struct ibv_pd *pd = rig.pair.b.pd;
	struct mr mr;

	step_is(rig_reg(&rig, dmabuf_fd(buf), 0, BLOCK, IOVA, &mr), 0, what, "register");
	step_is(mr_rereg(&mr, IBV_REREG_MR_CHANGE_ACCESS, pd, 0, 0, 0, IBV_ACCESS_LOCAL_WRITE |
			 IBV_ACCESS_REMOTE_WRITE), 0, what, "other rights");
	step_is(mr_rereg(&mr, IBV_REREG_MR_CHANGE_PD, rig.pair.a.pd, 0, 0, 0, 0), 0, what,
		"other PD");
	step_is(mr_dereg(&mr), 0, what, "deregister");
	dmabuf_free(buf);
}

static int mw_write(struct ibv_mw *mw, uint64_t iova)
{
	struct mr as_mr = { .rkey = mw->rkey };

	return write_word(&as_mr, iova);
}

/*
 * libmlx5 binds to no MR that it knows to be on a dma-buf.  The adapter does: with an
 * MR's handle and keys in a structure of zeroes, which stands for any MR.
 */
static int mw_bind(struct ibv_mw *mw, const struct mr *mr, uint64_t iova, uint64_t length)
{
	union {
		struct ibv_mr mr;
		char libibverbs[256];	/* keeps more behind it */
	} any = {
		.mr = {
			.context = mr->ctx, .pd = rig.pair.b.pd, .handle = mr->handle,
			.lkey = mr->lkey, .rkey = mr->rkey,
		},
	};
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {
			.mr = &any.mr, .addr = iova, .length = length,
			.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
		},
	};
	struct ibv_wc wc;

	return ibv_bind_mw(rig.pair.b.qp, mw, &bind) ?: rc_wait(&rig.pair.b, &wc, RC_PATIENCE_MS);
}

static void mw_steps(void)
{
	static const char what[] = "memory window";
	struct dmabuf *buf = rig_vram(BLOCK, NULL);
	struct ibv_pd *pd = rig.pair.b.pd;
	struct ibv_mw *mw;
	struct mr mr;

	step_is(rig_reg(&rig, dmabuf_fd(buf), 0, BLOCK, IOVA, &mr), 0, what, "register");
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	step_is(!mw, 0, what, "allocate");
	if (!mw)
		bail("no memory window");
	step_is(mw_bind(mw, &mr, IOVA + PAGE, 4 * PAGE), 0, what, "bind");
	step_is(mw_write(mw, IOVA + PAGE), 0, what, "WRITE");
	step_is(sim_move(buf, VRAM, VRAMSIM_MOVE_SHUFFLE, 0), moved(), what, "move");
	step_is(mw_write(mw, IOVA + PAGE), 0, what, "WRITE after the move");
	step_is(ibv_dealloc_mw(mw), 0, what, "free");
	step_is(mr_dereg(&mr), 0, what, "deregister");
	dmabuf_free(buf);
}

int main(void)
{
	struct counters start;

	mlx5_rig_up(&rig);
	counters_get(&start);
	open_steps();
	step("start");
	size_steps("4 KiB", PAGE, PAGE);
	size_steps("2 MiB", BLOCK, BLOCK);
	size_steps("64 MiB", 32 * BLOCK, BLOCK);
	window_steps();
	layout_steps();
	rereg_steps();
	mw_steps();
	revoke_steps();
	fclose(steps);
	ok(counters_back(&start, 2000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
