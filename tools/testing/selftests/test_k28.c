// SPDX-License-Identifier: GPL-2.0
/*
 * K28: relaxed ordering is accepted on a dma-buf, gets into the key where the adapter
 * knows it, and stays there when the buffer moves; a rereg changes it where a UMR can.
 * Elsewhere the flag means nothing.  The argument says what the adapter was given:
 *
 *	test_k28 none	nothing (the model's default)
 *	test_k28 key	caps=relaxed_ordering_write=1,relaxed_ordering_read=1
 *	test_k28 umr	the same, and relaxed_ordering_write_umr=1,relaxed_ordering_read_umr=1
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mlx5_rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE	(64 * KIB)
#define IOVA	0x1400000000ull
#define RELAXED	IBV_ACCESS_RELAXED_ORDERING

static struct rig rig;
static bool in_key, by_umr;

static void key_is(const struct mr *mr, bool relaxed, const char *when)
{
	struct mlx5sim_key key = mlx5sim_key(MLX5_LID, mr->lkey);

	is(key.relaxed_write, relaxed, "%s: writes are %s", when,
	   relaxed ? "relaxed" : "in order");
	is(key.relaxed_read, relaxed, "%s: reads are %s", when, relaxed ? "relaxed" : "in order");
	free(key.entries);
}

static int change(struct mr *mr, uint32_t access)
{
	return mr_rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, 0, 0, 0, access);
}

static void test(struct dmabuf *buf, const char *kind, bool relaxed)
{
	uint32_t access = RIG_ACCESS | (relaxed ? RELAXED : 0);
	struct mr_reg reg = rig_reg_args(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, access);
	char name[64];
	struct mr mr;
	int err;

	snprintf(name, sizeof(name), "%s, %s", kind, relaxed ? "relaxed" : "in order");
	if (!is(mr_reg(&reg, &mr), 0, "%s: register", name))
		return;
	key_is(&mr, relaxed && in_key, name);
	ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE), "%s: works", name);
	if (sim_move(buf, VRAMSIM_PLACEMENT_VRAM, VRAMSIM_MOVE_SHUFFLE, 0) == 0) {
		ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE), "%s, moved: works", name);
		key_is(&mr, relaxed && in_key, "moved");
	}

	/* What a UMR cannot change stays, or the MR gets another key. */
	err = change(&mr, access ^ RELAXED);
	if (!in_key || by_umr)
		is(err, 0, "%s: rereg to the other one", name);
	else
		ok(!err || err == EOPNOTSUPP, "%s: rereg to the other one, or EOPNOTSUPP", name);
	key_is(&mr, in_key && relaxed == !!err, "rereg");
	ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE), "%s: works then", name);
	is(mr_dereg(&mr), 0, "%s: deregister", name);
}

/* Keys go back to the driver's cache: nobody must inherit it. */
static void test_others(void)
{
	struct ibv_mr *host = ibv_reg_mr(rig.pair.b.pd, rig.host, SIZE, RIG_ACCESS);
	struct mr view = { .lkey = host ? host->lkey : 0 };

	if (!host)
		bail("ibv_reg_mr: %s", strerror(errno));
	key_is(&view, false, "host memory afterwards");
	ibv_dereg_mr(host);
}

int main(int argc, char **argv)
{
	static const struct dmabuf_opts fixed = { .flags = VRAMSIM_CREATE_STATIC };
	const char *given = argc > 1 ? argv[1] : "none";
	struct counters start;
	struct dmabuf *buf;

	by_umr = !strcmp(given, "umr");
	in_key = by_umr || !strcmp(given, "key");
	mlx5_rig_up(&rig);
	counters_get(&start);
	for (int round = 0; round < 2; round++) {
		const char *kind = round ? "static buffer" : "buffer that could move";

		buf = rig_vram(SIZE, round ? &fixed : NULL);
		test(buf, kind, true);
		test(buf, kind, false);
		test_others();
		dmabuf_free(buf);
	}
	ok(counters_back(&start, 2000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
