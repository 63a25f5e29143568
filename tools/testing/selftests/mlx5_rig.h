/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dma-buf MRs on a simulated ConnectX: what an MR's key has to look like in the
 * adapter, given where the exporter's memory is.
 */
#ifndef SELFTESTS_MLX5_RIG_H
#define SELFTESTS_MLX5_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mlx5sim.h"
#include "rig.h"

#define MLX5_DEVICE	"mlx5_0"
#define MLX5_LID	1

/*
 * rig_up() on mlx5_0.  Skips the whole test if this is no simulated ConnectX, or if
 * the kernel's driver registers no dma-bufs.
 */
void mlx5_rig_up(struct rig *rig);

/* Whether mlx5 follows a buffer that moves, or has it pinned. */
bool mlx5_follows_moves(void);

/* Where a vramsim buffer lies on the bus. */
struct place {
	struct drm_vramsim_segment *segments;
	size_t count;
};

struct place place_of(const struct dmabuf *buf);
void place_free(struct place *place);
/* True if not a byte of it is reached by a live key. */
bool place_unmapped(const struct place *place);

/*
 * True if the key of @mr leads, page by page, from @iova on to the @length bytes
 * of @place at @offset, for reading and for writing.
 */
bool mlx5_leads_to(const struct mr *mr, uint64_t iova, const struct place *place,
		   uint64_t offset, uint64_t length);
/* Present entries of an MR's translation. */
size_t mlx5_entries(const struct mr *mr);

/*
 * One transfer of @length bytes each, fresh random ones, between host memory and
 * the MR on @buf (whose @iova is that of @offset): true if it completes and the
 * bytes are where they should be.
 */
struct spot {
	struct rig *rig;
	const struct mr *mr;
	uint64_t iova;
	struct dmabuf *buf;
	uint64_t offset;
	uint32_t length;	/* a multiple of 8, as @iova is */
};

struct transfer {
	const char *name;
	bool (*run)(const struct spot *spot);
};

#define TRANSFERS	6
/* WRITE, READ, FETCH_AND_ADD, CMP_AND_SWP, SEND out of the MR, RECV into it */
extern const struct transfer transfers[TRANSFERS];

#endif /* SELFTESTS_MLX5_RIG_H */
