/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The key of a dma-buf MR and its translation table */
#ifndef MLX5_IB_DMABUF_KEY_H
#define MLX5_IB_DMABUF_KEY_H

#include <rdma/ib_umem_dmabuf.h>
#include "mlx5_ib.h"

/* The page sizes that a translation table can have. */
#define MLX5_IB_DMABUF_PGSZ_BITMAP \
	GENMASK_ULL(MLX5_MKEY_PAGE_SHIFT_MASK, MLX5_ADAPTER_PAGE_SHIFT)

/**
 * enum mlx5_ib_dmabuf_key_state - what the device does with a key
 * @MLX5_IB_DMABUF_KEY_FREE: refuses it; a UMR may enable it
 * @MLX5_IB_DMABUF_KEY_LIVE: translates with it; what is not translated faults
 * @MLX5_IB_DMABUF_KEY_DEAD: refuses it for good; its index stays taken
 * @MLX5_IB_DMABUF_KEY_GONE: does not know it any more: it had to be destroyed
 */
enum mlx5_ib_dmabuf_key_state {
	MLX5_IB_DMABUF_KEY_FREE,
	MLX5_IB_DMABUF_KEY_LIVE,
	MLX5_IB_DMABUF_KEY_DEAD,
	MLX5_IB_DMABUF_KEY_GONE,
};

/**
 * struct mlx5_ib_dmabuf_key - a key whose table follows an imported dma-buf
 * @mr: the driver's MR, which holds the key itself
 * @umem: the import
 * @capacity: entries that the table has room for
 * @entries: entries that the device can index, given @page_shift
 * @page_shift: page size, as the last UMR that completed has set it
 * @state: see &enum mlx5_ib_dmabuf_key_state
 * @loaded: the entries are those of the present mapping, not all zero
 *
 * Two things always hold while the key is live: an entry that the device can
 * index is either zero or an address of the present mapping, and nothing is
 * written beyond the capacity.
 *
 * Protected by the reservation lock of the dma-buf.
 */
struct mlx5_ib_dmabuf_key {
	struct mlx5_ib_mr *mr;
	struct ib_umem_dmabuf *umem;
	u64 capacity;
	u64 entries;
	unsigned int page_shift;
	enum mlx5_ib_dmabuf_key_state state;
	bool loaded;
};

static inline bool
mlx5_ib_dmabuf_key_follows(const struct mlx5_ib_dmabuf_key *key)
{
	return key->umem->contract == IB_UMEM_DMABUF_DYNAMIC;
}

bool mlx5_ib_dmabuf_key_can_stop(struct mlx5_ib_dev *dev);
bool mlx5_ib_dmabuf_key_can_follow(struct mlx5_ib_dev *dev, u64 iova,
				   u64 length, int access);

int mlx5_ib_dmabuf_key_create(struct mlx5_ib_dmabuf_key *key, struct ib_pd *pd,
			      u64 iova, int access);
int mlx5_ib_dmabuf_key_load(struct mlx5_ib_dmabuf_key *key);
int mlx5_ib_dmabuf_key_show(struct mlx5_ib_dmabuf_key *key);
void mlx5_ib_dmabuf_key_hide(struct mlx5_ib_dmabuf_key *key);
void mlx5_ib_dmabuf_key_zap(struct mlx5_ib_dmabuf_key *key);
void mlx5_ib_dmabuf_key_kill(struct mlx5_ib_dmabuf_key *key);
int mlx5_ib_dmabuf_key_modify(struct mlx5_ib_dmabuf_key *key,
			      struct ib_pd *pd, int access);
void mlx5_ib_dmabuf_key_put(struct mlx5_ib_dmabuf_key *key);

u64 mlx5_ib_dmabuf_num_entries(u64 iova, u64 length, unsigned int page_shift);
void mlx5_ib_dmabuf_fill_pas(const struct ib_umem_dmabuf *umem, u64 iova,
			     unsigned int page_shift, __be64 *pas, u64 flags);

#endif /* MLX5_IB_DMABUF_KEY_H */
