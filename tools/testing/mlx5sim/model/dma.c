// SPDX-License-Identifier: GPL-2.0
/* Access to the bus. */
#include "model.h"

static void dma_trace(struct mlx5sim *m, const char *what, u64 addr, u32 len)
{
	if (m->trace_dma)
		trace(m, "\"event\":\"%s\",\"addr\":\"0x%llx\",\"len\":%u",
		      what, (unsigned long long)addr, len);
}

bool dma_read(struct mlx5sim *m, u64 addr, void *buf, u32 len)
{
	m->stats.dma_read += len;
	dma_trace(m, "dma_read", addr, len);
	if (!m->ops->dma_read(m->host, addr, buf, len))
		return true;
	memset(buf, 0, len);
	broken(m, CHK_DMA_ADDRESS, "read of %u bytes at 0x%llx", len,
	       (unsigned long long)addr);
	return false;
}

bool dma_write(struct mlx5sim *m, u64 addr, const void *buf, u32 len)
{
	m->stats.dma_written += len;
	dma_trace(m, "dma_write", addr, len);
	if (!m->ops->dma_write(m->host, addr, buf, len))
		return true;
	broken(m, CHK_DMA_ADDRESS, "write of %u bytes at 0x%llx", len,
	       (unsigned long long)addr);
	return false;
}
