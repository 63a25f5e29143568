/* SPDX-License-Identifier: GPL-2.0 */
/*
 * vramsim's own commands on a file and a GEM handle, for the tests of vramsim
 * itself.  Functions return 0 or a positive errno unless they say otherwise.
 */
#ifndef SELFTESTS_VRAM_H
#define SELFTESTS_VRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <drm/vramsim_drm.h>

#define KIB	1024ull
#define MIB	(1024 * KIB)
#define GIB	(1024 * MIB)
#define TIB	(1024 * GIB)
#define PAGE	4096ull

#define VRAM	VRAMSIM_PLACEMENT_VRAM
#define SYSTEM	VRAMSIM_PLACEMENT_SYSTEM

/*
 * The Nth instance of vramsim, whatever it calls itself, or -1.  $VRAMSIM_NODE
 * names another node for number 0.
 */
int vram_open(int number);
/* An open node of stock vgem, which is loaded if need be, or -1. */
int vgem_open(void);

int vram_info(int fd, struct drm_vramsim_info *info);
int vram_create(int fd, struct drm_vramsim_gem_create args, uint32_t *handle);
/* A plain buffer; bails out if there is none to be had. */
uint32_t vram_new(int fd, uint64_t size, uint32_t placement, uint32_t flags);
int vram_close(int fd, uint32_t handle);
int vram_gem_info(int fd, uint32_t handle, struct drm_vramsim_gem_info *info);
uint32_t vram_placement(int fd, uint32_t handle);
int vram_read(int fd, uint32_t handle, uint64_t offset, void *to, uint64_t length);
int vram_write(int fd, uint32_t handle, uint64_t offset, const void *from, uint64_t length);
int vram_fill(int fd, uint32_t handle, uint64_t offset, uint8_t byte, uint64_t length);
int vram_move(int fd, uint32_t handle, uint32_t placement, uint32_t flags, uint32_t fence_ms);
int vram_revoke(int fd, uint32_t handle);
int vram_fence(int fd, uint32_t handle, uint32_t ms);
int vram_inject(int fd, uint32_t handle, uint32_t step, uint32_t nth, uint32_t count,
		int32_t error);
/* The segments, to be freed, and how many. */
struct drm_vramsim_segment *vram_segments(int fd, uint32_t handle, uint32_t *count);
/* CPU mapping through the render node; NULL and errno. */
void *vram_map(int fd, uint32_t handle, uint64_t size);

/* A dma-buf of the buffer, or -1 and errno. */
int vram_export(int fd, uint32_t handle);
/* As an importer: makes a handle of a dma-buf. */
int vram_import(int fd, int dmabuf, uint32_t *handle);

/* Contents that tell where they belong: reproducible from @seed and position. */
void pattern_make(uint8_t *to, uint64_t offset, size_t length, uint32_t seed);
int pattern_write(int fd, uint32_t handle, uint64_t size, uint32_t seed);
bool pattern_check(int fd, uint32_t handle, uint64_t size, uint32_t seed);

double seconds(void);
/* Whether all that counts users is zero, and VRAM as free as in @start. */
bool info_clean(int fd, const struct drm_vramsim_info *start);

#endif /* SELFTESTS_VRAM_H */
