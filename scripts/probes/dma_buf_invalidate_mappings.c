// SPDX-License-Identifier: GPL-2.0
#include <linux/dma-buf.h>

void probe(struct dma_buf *dmabuf);

void probe(struct dma_buf *dmabuf)
{
	dma_buf_invalidate_mappings(dmabuf);
}
