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

#define MLX5_LID	1

/*
 * rig_up() on mlx5_0.  Skips the whole test if this is no simulated ConnectX, or if
 * the kernel is one whose driver registers no dma-bufs; one that should and does not
 * is an error.
 */
void mlx5_rig_up(struct rig *rig);

/* What an MR does when the exporter wants its memory back */
enum mlx5_mode {
	MLX5_DYNAMIC,	/* follows a move by a page fault; ends with a revoke */
	MLX5_REVOCABLE,	/* does not let it move; ends with a revoke */
};

/*
 * The mode that an MR on a vramsim buffer has to have on this kernel.  On a static
 * buffer it is MLX5_REVOCABLE; of a revoke of such a one nobody is told.
 */
enum mlx5_mode mlx5_mode(void);
const char *mlx5_mode_name(enum mlx5_mode mode);
/*
 * Whether the kernel agrees, as far as it tells: this project's driver names the mode
 * of the only dma-buf MR in `rdma resource show mr`, the kernels' own name none.
 */
bool mlx5_says_mode(enum mlx5_mode mode);
/* Whether the driver is this project's. */
bool mlx5_is_ours(void);

/* mlx5_0, when its port is active; NULL if that takes more than a minute. */
struct ibv_context *mlx5_open(void);
/*
 * Unloads the drivers, which ends the run if they leave an object in the adapter, and
 * loads them again; true if the port comes up.
 */
bool mlx5_reload(void);

/* Whether mlx5 follows a buffer that moves, or has it pinned. */
bool mlx5_follows_moves(void);
/* Whether it writes an entry for each page of 4 KiB, whatever the segments are. */
bool mlx5_small_pages(void);

/* Whether an IOMMU translates the addresses that the adapter uses. */
bool mlx5_behind_iommu(void);

/* Where a vramsim buffer lies in the machine's memory. */
struct place {
	struct drm_vramsim_segment *segments;
	size_t count;
};

struct place place_of(const struct dmabuf *buf);
void place_free(struct place *place);
/* Whether the buffer is still there. */
bool place_holds(const struct place *place, const struct dmabuf *buf);
/* True if not a byte of it is reached by a live key. */
bool place_unmapped(const struct place *place);

/*
 * True if the key of @mr leads, page by page, from @iova on to the @length bytes
 * of @place at @offset, for reading and for writing.
 */
bool mlx5_leads_to(const struct mr *mr, uint64_t iova, const struct place *place,
		   uint64_t offset, uint64_t length);
/* The same for those pages that it leads anywhere for: all, some, none. */
bool mlx5_leads_nowhere_else(const struct mr *mr, uint64_t iova, const struct place *place,
			     uint64_t offset, uint64_t length);
/* The pages of an MR's key, where they are on the bus. */
struct place mlx5_bus_place(const struct mr *mr);
/* Present entries of an MR's translation, those that an access can reach. */
size_t mlx5_entries(const struct mr *mr);
/*
 * The fewest that there can be on this kernel for an MR on that window of @place, or
 * behind an IOMMU for the bus addresses that @mr has.
 */
size_t mlx5_fewest_entries(const struct mr *mr, uint64_t iova, const struct place *place,
			   uint64_t offset, uint64_t length);

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

/*
 * All bytes of a spot of any length, through the MR by WRITE and READ, or from the
 * exporter's side: made such that no 8 of them are like any others, or compared with
 * that.  True if all went well; @seed makes others.
 */
bool words_write(const struct spot *spot, uint64_t seed);
bool words_read(const struct spot *spot, uint64_t seed);
bool words_exporter_puts(const struct spot *spot, uint64_t seed);
bool words_exporter_sees(const struct spot *spot, uint64_t seed);

#endif /* SELFTESTS_MLX5_RIG_H */
