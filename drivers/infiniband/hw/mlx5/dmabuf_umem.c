// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * DEVX umems on dma-bufs: memory that applications give to objects which they
 * make by commands of their own.
 */

#include <linux/err.h>
#include <linux/log2.h>
#include <linux/sizes.h>

#include "dmabuf_key.h"
#include "dmabuf_umem.h"

/* A umem has no address of its own: its bytes count from its first page. */
static u64 umem_start(const struct ib_umem_dmabuf *umem)
{
	struct ib_umem_dmabuf_run run = {};

	ib_umem_dmabuf_next_run(umem, &run);
	return run.dma;
}

/**
 * mlx5_ib_dmabuf_get_umem - import a dma-buf for a DEVX umem
 * @dev: the device
 * @fd: file descriptor of the dma-buf
 * @offset: first byte of the window
 * @length: bytes in the window
 * @access: &enum ib_access_flags
 * @pgsz_bitmap: page sizes that the application allows
 * @page_shift: log2 of the page size to use
 * @page_offset: bytes before the window in the first page
 * @entries: pages
 *
 * Pinned, and not revocable: the device cannot take a umem away from the
 * objects that use it.
 *
 * Context: user; sleeps, interruptibly.
 * Return: the import, mapped; the errors of ib_umem_dmabuf_get_pinned();
 * -EINVAL if no page size fits, -E2BIG if there are too many pages for a
 * command.
 */
struct ib_umem_dmabuf *
mlx5_ib_dmabuf_get_umem(struct mlx5_ib_dev *dev, int fd, u64 offset,
			u64 length, int access, u64 pgsz_bitmap,
			int *page_shift, u32 *page_offset, int *entries)
{
	struct ib_umem_dmabuf *umem;
	u64 page_size, start, num;
	int err;

	umem = ib_umem_dmabuf_get_pinned(&dev->ib_dev, offset, length, fd,
					 access);
	if (IS_ERR(umem))
		return umem;

	start = umem_start(umem);
	page_size = ib_umem_dmabuf_find_best_pgsz(umem, pgsz_bitmap &
						  MLX5_IB_DMABUF_PGSZ_BITMAP,
						  start);
	if (!page_size) {
		err = -EINVAL;
		goto err_release;
	}
	num = mlx5_ib_dmabuf_num_entries(start, length, ilog2(page_size));
	if (num > SZ_1G / sizeof(struct mlx5_mtt)) {
		err = -E2BIG;
		goto err_release;
	}

	*page_shift = ilog2(page_size);
	*page_offset = start & (page_size - 1);
	*entries = num;
	return umem;

err_release:
	ib_umem_dmabuf_release(umem);
	return ERR_PTR(ib_umem_dmabuf_refuse(&dev->ib_dev, "device", err));
}

/**
 * mlx5_ib_dmabuf_fill_umem - write the pages of a DEVX umem
 * @umem: from mlx5_ib_dmabuf_get_umem()
 * @page_shift: from there, too
 * @pas: one for each page
 *
 * Context: any.
 */
void mlx5_ib_dmabuf_fill_umem(const struct ib_umem_dmabuf *umem, int page_shift,
			      __be64 *pas)
{
	mlx5_ib_dmabuf_fill_pas(umem, umem_start(umem), page_shift, pas,
				MLX5_IB_MTT_READ |
				(umem->umem.writable ? MLX5_IB_MTT_WRITE : 0));
}
