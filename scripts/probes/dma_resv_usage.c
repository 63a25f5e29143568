// SPDX-License-Identifier: GPL-2.0
#include <linux/dma-resv.h>

int probe(struct dma_resv *resv);

int probe(struct dma_resv *resv)
{
	return dma_resv_test_signaled(resv, DMA_RESV_USAGE_BOOKKEEP);
}
