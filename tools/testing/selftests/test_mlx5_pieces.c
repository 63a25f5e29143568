// SPDX-License-Identifier: GPL-2.0
/*
 * No pages in one piece for the table of a key while a buffer is registered, or while a
 * page fault is served: the table is written in more, smaller pieces, and is the same.
 */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "fault_attr.h"
#include "mlx5_rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE		(32 * MIB)
#define IOVA		0x77000000000ull

static struct rig rig;

/* Any allocation of four pages and more fails, of whoever; the last line begins it. */
static struct fault_attr no_pieces[] = {
	{ .path = "fail_page_alloc/ignore-gfp-wait", .value = "N" },
	{ .path = "fail_page_alloc/min-order", .value = "2" },
	{ .path = "fail_page_alloc/verbose", .value = "0" },
	{ .path = "fail_page_alloc/times", .value = "-1" },
	{ .path = "fail_page_alloc/probability", .value = "100" },
};

#define NO_PIECES	(sizeof(no_pieces) / sizeof(*no_pieces))

static void register_spot(struct spot *spot, struct mr *mr)
{
	int ret = rig_reg(&rig, dmabuf_fd(spot->buf), 0, spot->length, spot->iova, mr);

	if (ret)
		bail("register: %s", strerror(ret));
	spot->mr = mr;
}

/* A WRITE whose page fault brings all entries. */
static void fault_in(struct spot *spot, struct mr *mr)
{
	uint8_t byte = 1;

	if (sim_move_cut(spot->buf, VRAMSIM_PLACEMENT_VRAM, 4 * KIB))
		bail("move");
	is(mlx5_entries(mr), 0, "a move leaves no entry");
	is(rig_write(&rig, mr, spot->iova, &byte, 1), IBV_WC_SUCCESS, "page fault");
}

static void check_table(const char *name, const struct spot *spot)
{
	struct place place = place_of(spot->buf);

	ok(mlx5_leads_to(spot->mr, spot->iova, &place, 0, spot->length),
	   "%s: the key leads to the buffer", name);
	is(mlx5_entries(spot->mr), spot->length / (4 * KIB), "%s: an entry for each page", name);
	place_free(&place);
	ok(words_exporter_puts(spot, 3) && words_read(spot, 3), "%s: READ of all bytes", name);
}

/* The UMRs of @fill, with pages in one piece or without */
static uint64_t umrs_of(void (*fill)(struct spot *spot, struct mr *mr), struct spot *spot,
			struct mr *mr, bool pieces)
{
	uint64_t before = mlx5sim_stat(MLX5_LID, MLX5SIM_UMRS);

	if (!pieces)
		fault_attrs_set(no_pieces, NO_PIECES);
	fill(spot, mr);
	if (!pieces)
		fault_attrs_restore(no_pieces, NO_PIECES);
	return mlx5sim_stat(MLX5_LID, MLX5SIM_UMRS) - before;
}

static void test_register(struct spot *spot, struct mr *mr)
{
	uint64_t many, few = umrs_of(register_spot, spot, mr, true);

	is(mr_dereg(mr), 0, "deregister");
	many = umrs_of(register_spot, spot, mr, false);
	ok(many > few, "registration: %" PRIu64 " UMRs, without pieces %" PRIu64, few, many);
	check_table("registration", spot);
}

static void test_fault(struct spot *spot, struct mr *mr)
{
	uint64_t many, few = umrs_of(fault_in, spot, mr, true);

	many = umrs_of(fault_in, spot, mr, false);
	ok(many > few, "page fault: %" PRIu64 " UMRs, without pieces %" PRIu64, few, many);
	check_table("page fault", spot);
}

int main(void)
{
	static const struct dmabuf_opts pages = {
		.flags = VRAMSIM_CREATE_SCATTER, .segment_size = 4 * KIB, .seed = 30,
	};
	struct spot spot = { .rig = &rig, .iova = IOVA, .length = SIZE };
	struct mr mr;

	if (access("/sys/kernel/debug/fail_page_alloc", F_OK))
		tap_skip_all("this kernel has no fault injection");
	mlx5_rig_up(&rig);
	spot.buf = rig_vram(SIZE, &pages);
	test_register(&spot, &mr);
	if (mlx5_follows_moves())
		test_fault(&spot, &mr);
	else
		skip("page fault", "the buffer is pinned");
	is(mr_dereg(&mr), 0, "deregister");
	dmabuf_free(spot.buf);
	rig_down(&rig);
	return tap_done();
}
