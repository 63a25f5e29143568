/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* DEVX umems on dma-bufs */
#ifndef MLX5_IB_DMABUF_UMEM_H
#define MLX5_IB_DMABUF_UMEM_H

#include <rdma/ib_umem_dmabuf.h>
#include "mlx5_ib.h"

#if IS_ENABLED(CONFIG_MLX5_INFINIBAND_DMABUF)
struct ib_umem_dmabuf *
mlx5_ib_dmabuf_get_umem(struct mlx5_ib_dev *dev, int fd, u64 offset,
			u64 length, int access, u64 pgsz_bitmap,
			int *page_shift, u32 *page_offset, int *entries);
void mlx5_ib_dmabuf_fill_umem(const struct ib_umem_dmabuf *umem, int page_shift,
			      __be64 *pas);
#else
static inline struct ib_umem_dmabuf *
mlx5_ib_dmabuf_get_umem(struct mlx5_ib_dev *dev, int fd, u64 offset,
			u64 length, int access, u64 pgsz_bitmap,
			int *page_shift, u32 *page_offset, int *entries)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline void mlx5_ib_dmabuf_fill_umem(const struct ib_umem_dmabuf *umem,
					    int page_shift, __be64 *pas)
{
}
#endif

#endif /* MLX5_IB_DMABUF_UMEM_H */
