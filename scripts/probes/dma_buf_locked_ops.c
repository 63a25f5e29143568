// SPDX-License-Identifier: GPL-2.0
/* The core calls an exporter with the reservation lock held, and has unlocked variants. */
#include <linux/dma-buf.h>

void probe(struct dma_buf *dmabuf, void *map);

void probe(struct dma_buf *dmabuf, void *map)
{
	dma_buf_vunmap_unlocked(dmabuf, map);
}
