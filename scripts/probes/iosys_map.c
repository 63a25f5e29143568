// SPDX-License-Identifier: GPL-2.0
#include <linux/dma-buf.h>
#include <linux/iosys-map.h>

int probe(struct dma_buf *dmabuf, struct iosys_map *map);

int probe(struct dma_buf *dmabuf, struct iosys_map *map)
{
	return dmabuf->ops->vmap(dmabuf, map);
}
