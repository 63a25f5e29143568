// SPDX-License-Identifier: GPL-2.0
/* Access to the bus. */
#include "model.h"

static void dma_trace(struct mlx5sim *m, const char *what, u64 addr, u32 len)
{
	if (m->trace_dma)
		trace(m, "\"event\":\"%s\",\"addr\":\"0x%llx\",\"len\":%u",
		      what, (unsigned long long)addr, len);
}

/* What the host answered; false: nothing was moved */
static bool answered(struct mlx5sim *m, int answer, const char *what, u64 addr,
		     u32 len)
{
	if (answer == MLX5SIM_DMA_REFUSED)
		note(m, "%s of %u bytes at 0x%llx refused", what, len,
		     (unsigned long long)addr);
	else if (answer)
		broken(m, CHK_DMA_ADDRESS, "%s of %u bytes at 0x%llx", what,
		       len, (unsigned long long)addr);
	return !answer;
}

/* As far as the host tells in one go */
static u64 memory_run(const struct mlx5sim *m, u64 addr, u64 *len)
{
	return m->ops->memory ? m->ops->memory(m->host, addr, len) : addr;
}

u64 mlx5sim_memory(const struct mlx5sim *m, u64 addr, u64 *len)
{
	u64 wanted = *len, first = memory_run(m, addr, len);

	while (*len < wanted) {
		u64 more = wanted - *len;
		u64 next = memory_run(m, addr + *len, &more);

		if (next != (first == MLX5SIM_NOWHERE ? first : first + *len))
			break;
		*len += more;
	}
	return first;
}

bool dma_read(struct mlx5sim *m, u64 addr, void *buf, u32 len)
{
	int answer;

	m->stats.dma_read += len;
	dma_trace(m, "dma_read", addr, len);
	answer = m->ops->dma_read(m->host, addr, buf, len);
	if (answer)
		memset(buf, 0, len);
	return answered(m, answer, "read", addr, len);
}

bool dma_write(struct mlx5sim *m, u64 addr, const void *buf, u32 len)
{
	m->stats.dma_written += len;
	dma_trace(m, "dma_write", addr, len);
	return answered(m, m->ops->dma_write(m->host, addr, buf, len), "write",
			addr, len);
}
