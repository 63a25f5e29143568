/* SPDX-License-Identifier: GPL-2.0 */
/* Allocators of dma-bufs: one interface, one exporter each. */
#ifndef DMABUF_ALLOC_H
#define DMABUF_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dmabuf;

/* What a caller may ask for; zero means "as the exporter likes". */
struct dmabuf_opts {
	bool system;		/* vramsim: in system memory, not in VRAM */
	uint32_t flags;		/* vramsim: VRAMSIM_CREATE_* */
	uint32_t pin;		/* vramsim: VRAMSIM_PIN_* */
	uint64_t segment_size;	/* vramsim */
	uint32_t seed;		/* vramsim */
};

/*
 * Allocate @size bytes, rounded up to whole pages, from @exporter: "vramsim",
 * "vramsim:N" (Nth instance), "vgem", "udmabuf" or "heap:NAME".  Returns NULL
 * and sets errno: ENODEV means that the exporter is not there, EINVAL a name,
 * size or option that it does not have, anything else comes from its call.
 */
struct dmabuf *dmabuf_alloc(const char *exporter, size_t size,
			    const struct dmabuf_opts *opts);
/* Closes the fd if it is still open, the GEM handle and the device; keeps errno. */
void dmabuf_free(struct dmabuf *buf);

/* The call that failed last in this thread, for messages: "DRM_IOCTL_PRIME_HANDLE_TO_FD" */
const char *dmabuf_failed_call(void);

/* The dma-buf's fd, -1 after dmabuf_close_fd() */
int dmabuf_fd(const struct dmabuf *buf);
/* The application gives up its fd; the buffer and its handle stay. */
void dmabuf_close_fd(struct dmabuf *buf);
size_t dmabuf_size(const struct dmabuf *buf);
const char *dmabuf_exporter(const struct dmabuf *buf);
/* Number that the kernel knows the dma-buf by (debugfs dma_buf/bufinfo) */
uint64_t dmabuf_inode(const struct dmabuf *buf);
/* "vram", "system", "none" (revoked), or "unknown" where nobody can tell */
const char *dmabuf_placement(const struct dmabuf *buf);

/*
 * The exporter's own view: vramsim's GEM_ACCESS, elsewhere the CPU mapping of
 * the memory between DMA_BUF_IOCTL_SYNC calls.  0, or -1 and errno.
 */
int dmabuf_read(struct dmabuf *buf, size_t offset, void *to, size_t length);
int dmabuf_write(struct dmabuf *buf, size_t offset, const void *from, size_t length);
int dmabuf_fill(struct dmabuf *buf, size_t offset, uint8_t byte, size_t length);

/* CPU mapping of the whole buffer, made at the first call; NULL and errno */
void *dmabuf_map_cpu(struct dmabuf *buf);

/* vramsim and vgem: the open DRM node and the GEM handle; -1 and 0 elsewhere */
int dmabuf_drm_fd(const struct dmabuf *buf);
uint32_t dmabuf_handle(const struct dmabuf *buf);

#endif /* DMABUF_ALLOC_H */
