/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a test asks of the test importer (importer/dmabuf_importer.c).
 * Functions return 0 or a positive errno unless they say otherwise.
 */
#ifndef SELFTESTS_IMPORTER_H
#define SELFTESTS_IMPORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <drm/vramsim_drm.h>

#include "dmabuf_alloc.h"
#include "importer/dmabuf_importer.h"

#define IMP_CONTRACTS	3

/* Name of DMABUF_IMPORTER_DYNAMIC, _PINNED, _REVOCABLE. */
const char *imp_contract(uint32_t contract);

/* Loads the module if need be; skips the whole test without it or vramsim. */
void imp_setup(void);

/*
 * Can the kernel move a dma-buf that is mapped (CONFIG_DMABUF_MOVE_NOTIFY)?  If
 * not, it pins the buffer of each dynamic import as long as it is mapped.
 */
bool imp_kernel_moves(void);

/* A new importer, without an import: its fd, or bails out. */
int imp_open(void);
int imp_create(int imp, const struct dmabuf *buf, uint32_t contract,
	       uint64_t offset, uint64_t length);
int imp_create_with(int imp, const struct dmabuf_importer_create *args);
int imp_map(int imp);
int imp_unmap(int imp);
int imp_revoke(int imp);
int imp_release(int imp);

/* imp_create(), and imp_map() if dynamic: what a registration does. */
int imp_import(int imp, const struct dmabuf *buf, uint32_t contract,
	       uint64_t offset, uint64_t length);

/* Bail out on failure. */
struct dmabuf_importer_info imp_info(int imp);
struct dmabuf_importer_info imp_info_for(int imp, uint64_t iova, uint64_t page_sizes);

/*
 * The translation in a malloc()ed array of *@count elements; @kind and
 * @page_size as in struct dmabuf_importer_segments.
 */
int imp_segments(int imp, uint32_t kind, uint64_t page_size,
		 struct dmabuf_importer_segment **list, size_t *count);

/*
 * True if the translation is right in all three forms, given that the exporter
 * (vramsim, no IOMMU) has cut its buffer like this: the list ends on the pages
 * of the window, the runs are exact to the byte, and the largest page size for
 * @iova is found and its blocks lead to the same addresses.
 */
bool imp_translation_right(int imp, const struct drm_vramsim_segment *cut, size_t count,
			   uint64_t offset, uint64_t length, uint64_t iova);

/* By the importer's device; any length. */
int imp_read(int imp, uint64_t offset, void *to, size_t length);
int imp_write(int imp, uint64_t offset, const void *from, size_t length);
/* The same, and a dynamic import is mapped first if it is not. */
int imp_fault_read(int imp, uint64_t offset, void *to, size_t length);
int imp_fault_write(int imp, uint64_t offset, const void *from, size_t length);

/*
 * True if device and exporter see each other's writes in the whole window,
 * which is @length bytes at @offset of @buf, and the bytes around it (in the
 * same pages) keep what they had.  @seed makes the pattern.
 */
bool imp_works(int imp, struct dmabuf *buf, uint64_t offset, uint64_t length,
	       uint32_t seed);

#endif /* SELFTESTS_IMPORTER_H */
