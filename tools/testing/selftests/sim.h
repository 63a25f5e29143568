/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a test asks of vramsim, and what vramsim counts.
 * Functions return 0 or a positive errno unless they say otherwise.
 */
#ifndef SELFTESTS_SIM_H
#define SELFTESTS_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <drm/vramsim_drm.h>

#include "dmabuf_alloc.h"

/* An open render node of vramsim, or -1. */
int sim_open(void);

int sim_gem_info(const struct dmabuf *buf, struct drm_vramsim_gem_info *info);
/* The same, or bails out. */
struct drm_vramsim_gem_info sim_gem(const struct dmabuf *buf);
/* @placement: VRAMSIM_PLACEMENT_*, @flags: VRAMSIM_MOVE_* */
int sim_move(const struct dmabuf *buf, uint32_t placement, uint32_t flags, uint32_t fence_ms);
/* A move to segments of another size; 0: as before. */
int sim_move_cut(const struct dmabuf *buf, uint32_t placement, uint64_t segment_size);
int sim_revoke(const struct dmabuf *buf);
int sim_fence(const struct dmabuf *buf, uint32_t fence_ms);
/* Lets the next @count calls of @step fail with @error; 0 takes it back. */
int sim_inject(const struct dmabuf *buf, uint32_t step, uint32_t count, int32_t error);
/* The same, from the @nth call on. */
int sim_inject_nth(const struct dmabuf *buf, uint32_t step, uint32_t nth, uint32_t count,
		   int32_t error);

/* As @inject says, for all buffers of the device that @buf is on. */
int sim_inject_device(const struct dmabuf *buf, const struct drm_vramsim_inject *inject);
/*
 * The segments of @buf by bus address, where no IOMMU is in between, in a
 * malloc()ed array of *@count elements; bails out on failure.
 */
struct drm_vramsim_segment *sim_segments(const struct dmabuf *buf, size_t *count);

/*
 * Nanoseconds that the first vramsim has spent in callbacks of the dma-buf core, on
 * behalf of importers; bails out if debugfs does not tell.
 */
uint64_t sim_callback_ns(void);

/* What must be as before when a test has cleaned up. */
struct counters {
	uint64_t vram_free;
	uint32_t objects, attached, mapped, pinned, vmapped, exported;
	uint32_t fds;			/* of this process */
};

/* Bails out if there is no vramsim. */
void counters_get(struct counters *now);
/*
 * True if all are as in @start.  What a killed process held is freed a moment
 * after its end, so it looks again for up to @timeout_ms; names what differs.
 */
bool counters_back(const struct counters *start, int timeout_ms);

#endif /* SELFTESTS_SIM_H */
