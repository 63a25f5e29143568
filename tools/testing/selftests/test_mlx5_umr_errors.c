// SPDX-License-Identifier: GPL-2.0
/*
 * The adapter fails a work request that changes a key (UMR), each one that a dma-buf
 * MR needs in its life in turn. Whatever the driver makes of it, no live key leads to
 * memory that the exporter has back, errors are told, nothing leaks.
 *
 * The queue of these requests is in error after that. Drivers up to 5.10 never bring
 * it back: each later registration fails, too, until they are loaded anew. The test
 * does that, which ends the run if a key is left.
 *
 * The kernel's own driver does not pass: 7.2.12 warns, and goes on as if the UMR had
 * worked, so that after a move or a revoke the key leads to the old place.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mlx5_rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE		(1 * MIB)
#define SEGMENT		(16 * KIB)
#define IOVA		0x7700000000ull
#define UMR_OPCODE	0x25
#define FEWER		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)

#define VRAM		VRAMSIM_PLACEMENT_VRAM
#define SYSTEM		VRAMSIM_PLACEMENT_SYSTEM

static struct rig rig;

/**
 * struct subject - the MR that something happens to
 * @buf: its buffer
 * @mr: the MR, if @registered
 * @old: where the buffer was before
 * @dynamic: the MR follows moves
 */
struct subject {
	struct dmabuf *buf;
	struct mr mr;
	bool registered;
	struct place old;
	bool dynamic;
};

/**
 * struct operation - one that needs UMRs
 * @name: in test names
 * @dynamic: only MRs that follow moves have it
 * @prepare: what comes before it, or NULL
 * @run: the operation; 0, an errno or a completion's status
 * @told: its caller is told of a failure; else it succeeds in spite of it
 * @given_back: after it the exporter has the old place, or the whole buffer, back
 * @usable: a WRITE may succeed after that
 */
struct operation {
	const char *name;
	bool dynamic;
	void (*prepare)(struct subject *s);
	int (*run)(struct subject *s);
	bool told;
	bool given_back;
	bool usable;
};

static int reg(struct subject *s)
{
	int ret = rig_reg(&rig, dmabuf_fd(s->buf), 0, SIZE, IOVA, &s->mr);

	s->registered = !ret;
	return ret;
}

static int dereg(struct subject *s)
{
	int ret = mr_dereg(&s->mr);

	s->registered = ret;
	return ret;
}

static int write_some(struct subject *s)
{
	return rig_write(&rig, &s->mr, IOVA + 8 * KIB, "new bytes", 9);
}

static void must_register(struct subject *s)
{
	int ret = reg(s);

	if (ret)
		bail("register: %s", strerror(ret));
	if (write_some(s))
		bail("a WRITE fails before anything has happened");
	s->dynamic = !sim_gem(s->buf).pinned;
}

static int move(struct subject *s)
{
	return sim_move(s->buf, SYSTEM, VRAMSIM_MOVE_SHUFFLE, 0);
}

/* @segment_size: 0: as before */
static void register_and_move(struct subject *s, uint64_t segment_size)
{
	int ret;

	must_register(s);
	if (!s->dynamic)
		return;
	ret = sim_move_cut(s->buf, VRAM, segment_size);
	if (ret)
		bail("move: %s", strerror(ret));
}

static void move_as_before(struct subject *s)
{
	register_and_move(s, 0);
}

static void move_to_smaller(struct subject *s)
{
	register_and_move(s, SEGMENT / 4);
}

static void move_to_larger(struct subject *s)
{
	register_and_move(s, SEGMENT * 4);
}

static int revoke(struct subject *s)
{
	return sim_revoke(s->buf);
}

static int rereg(struct subject *s)
{
	return mr_rereg(&s->mr, IBV_REREG_MR_CHANGE_ACCESS, rig.pair.b.pd, 0, 0, 0, FEWER);
}

static const struct operation operations[] = {
	{ "register", false, NULL, reg, true, true, false },
	{ "move", true, must_register, move, false, true, false },
	{ "page fault", true, move_as_before, write_some, true, true, true },
	{ "smaller pages", true, move_to_smaller, write_some, true, true, true },
	{ "larger pages", true, move_to_larger, write_some, true, true, true },
	{ "revoke", false, must_register, revoke, false, true, false },
	{ "change access", false, must_register, rereg, true, false, true },
	{ "deregister", false, must_register, dereg, false, true, false },
};

static struct subject subject_new(const struct operation *op)
{
	static const struct dmabuf_opts opts = {
		.flags = VRAMSIM_CREATE_SCATTER, .segment_size = SEGMENT, .seed = 5,
	};
	struct subject s = { .buf = rig_vram(SIZE, &opts) };

	s.old = place_of(s.buf);
	if (op->prepare)
		op->prepare(&s);
	return s;
}

static void subject_free(struct subject *s)
{
	place_free(&s->old);
	dmabuf_free(s->buf);
}

/* How many UMRs an operation takes if all goes well; 0: there is no such operation here */
static uint64_t umrs_of(const struct operation *op)
{
	struct subject s = subject_new(op);
	uint64_t umrs = mlx5sim_stat(MLX5_LID, MLX5SIM_UMRS);
	int ret = 0;

	if (op->dynamic && !s.dynamic) {
		skip(op->name, "this MR is pinned");
		umrs = 0;
	} else if ((ret = op->run(&s))) {
		skip(op->name, strerror(ret));
		umrs = 0;
	} else {
		umrs = mlx5sim_stat(MLX5_LID, MLX5SIM_UMRS) - umrs;
		ok(umrs > 0, "%s: takes %llu UMRs", op->name, (unsigned long long)umrs);
	}
	if (s.registered && mr_dereg(&s.mr))
		bail("%s: deregister", op->name);
	subject_free(&s);
	return umrs;
}

/* The adapter is well again: on its own, or with drivers that are loaded anew. */
static void recover(const char *name)
{
	unsigned int keys = mlx5sim_live_keys(MLX5_LID);
	struct subject s = subject_new(&operations[0]);
	int ret = reg(&s);

	if (!ret) {
		ok(rig_works(&rig, &s.mr, IOVA, s.buf, 0, SIZE), "%s: the next MR works", name);
		is(dereg(&s), 0, "%s: deregister it", name);
		subject_free(&s);
		return;
	}
	ok(ret == EFAULT || ret == EIO, "%s: the next registration fails: %s", name,
	   strerror(ret));
	is(mlx5sim_live_keys(MLX5_LID), keys, "%s: it leaves no key", name);
	subject_free(&s);
	rig_down(&rig);
	ok(mlx5_reload(), "%s: load the drivers anew", name);
	mlx5_rig_up(&rig);
}

static void fail(const struct operation *op, unsigned int nth)
{
	unsigned int keys = mlx5sim_live_keys(MLX5_LID);
	struct subject s = subject_new(op);
	uint64_t injected = mlx5sim_stat(MLX5_LID, MLX5SIM_INJECTED);
	char name[64], order[32];
	int ret;

	snprintf(name, sizeof(name), "%s, UMR %u", op->name, nth);
	snprintf(order, sizeof(order), "cqe-error:%#x:%u", UMR_OPCODE, nth);
	mlx5sim_order(MLX5_LID, order);
	ret = op->run(&s);
	is(mlx5sim_stat(MLX5_LID, MLX5SIM_INJECTED) - injected, 1, "%s: the adapter fails it",
	   name);
	if (op->told)
		ok(ret > 0, "%s: told (%d)", name, ret);
	else
		is(ret, 0, "%s: goes on", name);
	if (op->given_back)
		ok(place_unmapped(&s.old), "%s: no key maps the old place", name);
	if (s.registered) {
		struct place place = place_of(s.buf);

		if (!sim_gem(s.buf).mapped)
			ok(place_unmapped(&place), "%s: no key maps what is not mapped", name);
		ret = write_some(&s);
		if (!op->usable)
			ok(ret > 0, "%s: a WRITE ends in an error (%d)", name, ret);
		else
			ok(ret >= 0, "%s: a WRITE completes (%d)", name, ret);
		is(dereg(&s), 0, "%s: deregister", name);
		ok(place_unmapped(&place), "%s: no key maps the buffer", name);
		place_free(&place);
	}
	is(mlx5sim_live_keys(MLX5_LID), keys, "%s: as many live keys as before", name);
	subject_free(&s);
	recover(name);
}

int main(void)
{
	struct counters start;

	mlx5_rig_up(&rig);
	counters_get(&start);
	for (size_t i = 0; i < sizeof(operations) / sizeof(*operations); i++) {
		uint64_t umrs = umrs_of(&operations[i]);

		for (uint64_t nth = 1; nth <= umrs; nth++)
			fail(&operations[i], nth);
	}
	ok(counters_back(&start, 2000), "all counters back to the start");
	rig_down(&rig);
	ok(mlx5_reload(), "unload the drivers and load them");
	return tap_done();
}
