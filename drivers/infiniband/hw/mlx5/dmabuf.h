/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Memory regions on dma-bufs: what the rest of the driver calls */
#ifndef MLX5_IB_DMABUF_H
#define MLX5_IB_DMABUF_H

#include <rdma/uverbs_ioctl.h>
#include "mlx5_ib.h"

#if IS_ENABLED(CONFIG_MLX5_INFINIBAND_DMABUF)
extern const struct uapi_definition mlx5_ib_dmabuf_defs[];

void mlx5_ib_dmabuf_cleanup(struct mlx5_ib_dev *dev);
bool mlx5_ib_dmabuf_dereg_mr(struct mlx5_ib_mr *mr);
int mlx5_ib_dmabuf_rereg_mr(struct mlx5_ib_mr *mr, int flags, int access,
			    struct ib_pd *pd);
int mlx5_ib_dmabuf_fault(struct mlx5_ib_mr *mr, u64 io_virt, size_t bcnt,
			 u32 *bytes_mapped, bool map);
bool mlx5_ib_dmabuf_writable(const struct mlx5_ib_mr *mr);
int mlx5_ib_dmabuf_prefetch_error(struct ib_pd *pd, u32 lkey, int err);
int mlx5_ib_dmabuf_fill_res(struct sk_buff *msg, struct mlx5_ib_mr *mr);
#else
static const struct uapi_definition mlx5_ib_dmabuf_defs[] __maybe_unused = {
	{},
};

static inline void mlx5_ib_dmabuf_cleanup(struct mlx5_ib_dev *dev)
{
}

static inline bool mlx5_ib_dmabuf_dereg_mr(struct mlx5_ib_mr *mr)
{
	return false;
}

static inline int mlx5_ib_dmabuf_rereg_mr(struct mlx5_ib_mr *mr, int flags,
					  int access, struct ib_pd *pd)
{
	return -EOPNOTSUPP;
}

static inline int mlx5_ib_dmabuf_fault(struct mlx5_ib_mr *mr, u64 io_virt,
				       size_t bcnt, u32 *bytes_mapped, bool map)
{
	return -EFAULT;
}

static inline bool mlx5_ib_dmabuf_writable(const struct mlx5_ib_mr *mr)
{
	return false;
}

static inline int mlx5_ib_dmabuf_prefetch_error(struct ib_pd *pd, u32 lkey,
						int err)
{
	return err;
}

static inline int mlx5_ib_dmabuf_fill_res(struct sk_buff *msg,
					  struct mlx5_ib_mr *mr)
{
	return 0;
}
#endif

#endif /* MLX5_IB_DMABUF_H */
