// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The key of a dma-buf MR and its translation table.
 *
 * The table is a list of bus addresses, one for each page of the key's page
 * size, beginning with the page that the key's first byte lies in.  An entry of
 * zero is not present: an access that meets it waits for the page fault to be
 * served.  The first and the last page may reach beyond the window; the key's
 * own start and length keep accesses inside.
 *
 * A key from the cache carries the entries of whoever had it before.  Nobody
 * can reach them as long as the page size makes the device index fewer; so
 * before a smaller page size takes effect on a live key, the entries that
 * become reachable are written.
 */

#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/gfp.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sizes.h>

#include "dmabuf.h"
#include "dmabuf_key.h"

/* A UMR writes the table in units of 64 bytes. */
#define XLT_UNIT_ENTRIES (MLX5_UMR_MTT_ALIGNMENT / sizeof(struct mlx5_mtt))

/* It counts the bytes in 16 byte units, of which it has room for 16 bits. */
#define XLT_MAX_BYTES \
	round_down(U16_MAX * MLX5_IB_UMR_OCTOWORD, MLX5_UMR_MTT_ALIGNMENT)

/*
 * What a key that follows moves is given room for, beyond what it needs at
 * first: at most so many entries, for pages as small as that allows.  An
 * exporter that falls back to scattered pages of the system is followed on
 * windows of up to 16 GiB, one that keeps to 64 KiB up to 256 GiB, one that
 * keeps to 2 MiB always.
 */
#define FOLLOW_MAX_ENTRIES SZ_4M

static const unsigned int follow_page_shifts[] = { 12, 16, 21 };

/**
 * struct mlx5_ib_dmabuf_zeros - what tables are zapped with
 * @virt: zeros, nothing but zeros
 * @dma: their address for the device
 * @size: bytes of them
 *
 * One for each device, made with the first MR that follows moves, so that
 * zapping has nothing to allocate.
 */
struct mlx5_ib_dmabuf_zeros {
	void *virt;
	dma_addr_t dma;
	size_t size;
};

static struct mlx5_ib_dev *key_dev(const struct mlx5_ib_dmabuf_key *key)
{
	return key->mr->dev;
}

static bool device_stopped(struct mlx5_ib_dev *dev)
{
	return dev->mdev->state == MLX5_DEVICE_STATE_INTERNAL_ERROR;
}

/**
 * mlx5_ib_dmabuf_num_entries - how many entries a table needs
 * @iova: address that the device uses for the first byte
 * @length: bytes, at least 1
 * @page_shift: log2 of the page size
 *
 * Context: any.
 * Return: the entries that the device can index.
 */
u64 mlx5_ib_dmabuf_num_entries(u64 iova, u64 length, unsigned int page_shift)
{
	u64 offset = iova & (BIT_ULL(page_shift) - 1);

	return (offset + length - 1 + BIT_ULL(page_shift)) >> page_shift;
}

static u64 follow_capacity(u64 iova, u64 length)
{
	u64 entries = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(follow_page_shifts); i++) {
		entries = mlx5_ib_dmabuf_num_entries(iova, length,
						     follow_page_shifts[i]);
		if (entries <= FOLLOW_MAX_ENTRIES)
			break;
	}
	return entries;
}

/**
 * mlx5_ib_dmabuf_key_can_stop - can the device be made to refuse a key?
 * @dev: the device
 *
 * By a UMR, without giving the key up, as a revoke needs it.  The driver's UMRs
 * that change access rights always name the one for atomics, which some devices
 * cannot change.
 *
 * Context: any.
 * Return: true if it can.
 */
bool mlx5_ib_dmabuf_key_can_stop(struct mlx5_ib_dev *dev)
{
	return !MLX5_CAP_GEN(dev->mdev, atomic) ||
	       !MLX5_CAP_GEN(dev->mdev, umr_modify_atomic_disabled);
}

static bool can_write(struct mlx5_ib_dev *dev, u64 entries)
{
	if (MLX5_CAP_GEN(dev->mdev, umr_modify_entity_size_disabled) ||
	    !mlx5_ib_dmabuf_key_can_stop(dev))
		return false;
	return MLX5_CAP_GEN(dev->mdev, umr_extended_translation_offset) ||
	       entries <= MLX5_MAX_UMR_PAGES;
}

/**
 * mlx5_ib_dmabuf_key_can_follow - can a table be changed while it is in use?
 * @dev: the device
 * @iova: first address
 * @length: bytes
 * @access: &enum ib_access_flags
 *
 * Context: any.
 * Return: true if it can, given the room for later layouts that it gets.
 */
bool mlx5_ib_dmabuf_key_can_follow(struct mlx5_ib_dev *dev, u64 iova,
				   u64 length, int access)
{
	return can_write(dev, follow_capacity(iova, length)) &&
	       mlx5_ib_can_reconfig_with_umr(dev, 0, access);
}

/*
 * Walks the entries of a table in order.  A page that fits has no gap inside, so
 * that it is where its first byte is, in whichever segments the others are.
 */
struct xlt_walk {
	unsigned int page_shift;
	struct scatterlist *sg;	/* the next segment */
	s64 known;		/* bytes of it that earlier entries lead to */
	u64 left;		/* entries of earlier segments, still to come */
	u64 addr;		/* what the next one of these says */
};

static void xlt_walk_next_segment(struct xlt_walk *walk)
{
	u64 page_mask = BIT_ULL(walk->page_shift) - 1;
	s64 rest = sg_dma_len(walk->sg) - walk->known;

	if (rest > 0) {
		walk->addr = sg_dma_address(walk->sg) + walk->known;
		walk->left = (rest + page_mask) >> walk->page_shift;
		walk->known = (walk->left << walk->page_shift) - rest;
	} else {
		walk->known = -rest;
	}
	walk->sg = sg_next(walk->sg);
}

static void xlt_walk_begin(struct xlt_walk *walk,
			   const struct ib_umem_dmabuf *umem,
			   unsigned int page_shift, u64 first)
{
	struct scatterlist *sg = umem->umem.sg_head.sgl;

	*walk = (struct xlt_walk){
		.page_shift = page_shift,
		.sg = sg,
		/* The first page may begin before the list does. */
		.known = -(s64)(sg_dma_address(sg) &
				(BIT_ULL(page_shift) - 1)),
	};
	while (first >= walk->left) {
		first -= walk->left;
		walk->left = 0;
		xlt_walk_next_segment(walk);
	}
	walk->left -= first;
	walk->addr += first << page_shift;
}

static void xlt_walk_fill(struct xlt_walk *walk, __be64 *pas, u64 count,
			  u64 flags)
{
	u64 page_size = BIT_ULL(walk->page_shift);

	while (count) {
		u64 n, addr;

		if (!walk->left) {
			xlt_walk_next_segment(walk);
			continue;
		}
		n = min(count, walk->left);
		count -= n;
		walk->left -= n;
		for (addr = walk->addr; n; n--, addr += page_size)
			*pas++ = cpu_to_be64(addr | flags);
		walk->addr = addr;
	}
}

/**
 * mlx5_ib_dmabuf_fill_pas - write the addresses of a window's pages
 * @umem: mapped import
 * @iova: address that the device uses for the window's first byte
 * @page_shift: log2 of a page size that fits
 * @pas: one for each page
 * @flags: MLX5_IB_MTT_READ and MLX5_IB_MTT_WRITE, or 0
 *
 * Context: the reservation lock is held, or the import is pinned and mapped.
 */
void mlx5_ib_dmabuf_fill_pas(const struct ib_umem_dmabuf *umem, u64 iova,
			     unsigned int page_shift, __be64 *pas, u64 flags)
{
	struct xlt_walk walk;

	xlt_walk_begin(&walk, umem, page_shift, 0);
	xlt_walk_fill(&walk, pas,
		      mlx5_ib_dmabuf_num_entries(iova, umem->umem.length,
						 page_shift), flags);
}

static void umr_init(const struct mlx5_ib_dmabuf_key *key,
		     struct mlx5_umr_wr *wr, int send_flags)
{
	const struct mlx5_ib_mr *mr = key->mr;

	*wr = (struct mlx5_umr_wr){
		.wr.opcode = MLX5_IB_WR_UMR,
		.wr.send_flags = send_flags,
		.pd = mr->ibmr.pd,
		.mkey = mr->mmkey.key,
		.virt_addr = mr->mmkey.iova,
		.length = mr->mmkey.size,
		.access_flags = mr->access_flags,
		.page_shift = key->page_shift,
	};
	if (!(send_flags & MLX5_IB_SEND_UMR_ENABLE_MR))
		wr->wr.send_flags |= MLX5_IB_SEND_UMR_FAIL_IF_FREE;
}

/*
 * Memory that a part of a table is composed in: as much as is wanted, else half
 * of it, and so on.  A page there always is, if need be the driver's last one.
 */
struct xlt_buffer {
	void *virt;
	size_t size;
	bool emergency;
};

static void xlt_buffer_get(struct xlt_buffer *buf, size_t wanted)
{
	unsigned int order = get_order(wanted);

	for (;; order--) {
		gfp_t gfp = GFP_KERNEL | __GFP_NOWARN;

		if (order)
			gfp |= __GFP_NORETRY;
		buf->virt = (void *)__get_free_pages(gfp, order);
		if (buf->virt || !order)
			break;
	}
	buf->emergency = !buf->virt;
	if (buf->emergency)
		buf->virt = (void *)mlx5_ib_get_xlt_emergency_page();
	buf->size = min(wanted, PAGE_SIZE << order);
}

static void xlt_buffer_put(struct xlt_buffer *buf)
{
	if (buf->emergency)
		mlx5_ib_put_xlt_emergency_page();
	else
		free_pages((unsigned long)buf->virt, get_order(buf->size));
}

/*
 * Write entries [first, last) of the present mapping, first being the first of
 * a unit.  The rest of the last unit is zeroed.  What last_flags say happens
 * with the last of the writes, after which all of them are done.
 */
static int key_write(struct mlx5_ib_dmabuf_key *key, u64 first, u64 last,
		     unsigned int page_shift, int last_flags)
{
	struct device *ddev = key_dev(key)->ib_dev.dev.parent;
	u64 units = DIV_ROUND_UP(last - first, XLT_UNIT_ENTRIES);
	struct ib_sge sge = {
		.lkey = key_dev(key)->umrc.pd->local_dma_lkey,
	};
	struct xlt_buffer buf;
	struct mlx5_umr_wr wr;
	struct xlt_walk walk;
	int err = 0;

	xlt_buffer_get(&buf, min_t(u64, units * MLX5_UMR_MTT_ALIGNMENT,
				   XLT_MAX_BYTES));
	sge.addr = dma_map_single(ddev, buf.virt, buf.size, DMA_TO_DEVICE);
	if (dma_mapping_error(ddev, sge.addr)) {
		err = -ENOMEM;
		goto out;
	}

	/* An enabling UMR demands that the key is free, each one before it, too. */
	umr_init(key, &wr, MLX5_IB_SEND_UMR_UPDATE_XLT |
			   (last_flags & MLX5_IB_SEND_UMR_ENABLE_MR));
	last_flags |= wr.wr.send_flags;
	wr.wr.send_flags &= ~MLX5_IB_SEND_UMR_ENABLE_MR;
	wr.page_shift = page_shift;
	wr.wr.sg_list = &sge;
	wr.wr.num_sge = 1;

	xlt_walk_begin(&walk, key->umem, page_shift, first);
	while (first < last && !err) {
		u64 count = min_t(u64, last - first,
				  buf.size / sizeof(struct mlx5_mtt));
		size_t bytes = count * sizeof(struct mlx5_mtt);

		sge.length = ALIGN(bytes, MLX5_UMR_MTT_ALIGNMENT);
		dma_sync_single_for_cpu(ddev, sge.addr, sge.length,
					DMA_TO_DEVICE);
		xlt_walk_fill(&walk, buf.virt, count, MLX5_IB_MTT_PRESENT);
		memset(buf.virt + bytes, 0, sge.length - bytes);
		dma_sync_single_for_device(ddev, sge.addr, sge.length,
					   DMA_TO_DEVICE);

		wr.offset = first * sizeof(struct mlx5_mtt);
		wr.xlt_size = sge.length;
		first += count;
		if (first == last)
			wr.wr.send_flags = last_flags;
		err = mlx5_ib_post_send_wait(key_dev(key), &wr);
	}
	dma_unmap_single(ddev, sge.addr, buf.size, DMA_TO_DEVICE);
out:
	xlt_buffer_put(&buf);
	return err;
}

/* Layout and mapping are those that the key was created for. */
static int key_enable(struct mlx5_ib_dmabuf_key *key)
{
	int err;

	err = key_write(key, 0, key->entries, key->page_shift,
			MLX5_IB_SEND_UMR_ENABLE_MR |
			MLX5_IB_SEND_UMR_UPDATE_PD_ACCESS |
			MLX5_IB_SEND_UMR_UPDATE_TRANSLATION);
	if (!err)
		key->state = MLX5_IB_DMABUF_KEY_LIVE;
	return err;
}

/*
 * The entries that are reachable now are all zero.  Those that become reachable
 * have to be written before the page size makes them so, the others after it.
 */
static int key_resize(struct mlx5_ib_dmabuf_key *key, u64 entries,
		      unsigned int page_shift)
{
	u64 reachable = ALIGN(key->entries, XLT_UNIT_ENTRIES);
	struct mlx5_umr_wr wr;
	int err;

	if (reachable < entries) {
		err = key_write(key, reachable, entries, page_shift, 0);
		if (err)
			return err;
	}

	umr_init(key, &wr, MLX5_IB_SEND_UMR_UPDATE_TRANSLATION);
	wr.page_shift = page_shift;
	err = mlx5_ib_post_send_wait(key_dev(key), &wr);
	if (err)
		return err;
	key->page_shift = page_shift;
	key->entries = entries;

	return key_write(key, 0, min(reachable, entries), page_shift, 0);
}

/*
 * The largest page size that fits, but none above that of a single entry for
 * the whole window: a place that is better aligned than need be is no reason to
 * change the page size of a key.
 */
static u64 best_pgsz(const struct ib_umem_dmabuf *umem, u64 iova)
{
	u64 last = iova + umem->umem.length - 1;
	int shift = clamp(fls64(iova ^ last), PAGE_SHIFT, 63);

	return ib_umem_dmabuf_find_best_pgsz(umem, MLX5_IB_DMABUF_PGSZ_BITMAP &
					     GENMASK_ULL(shift, 0), iova);
}

static int key_refill(struct mlx5_ib_dmabuf_key *key)
{
	const struct mlx5_core_mkey *mmkey = &key->mr->mmkey;
	unsigned int page_shift;
	u64 page_size, entries;
	int err;

	page_size = best_pgsz(key->umem, mmkey->iova);
	if (!page_size)
		return -EINVAL;
	page_shift = ilog2(page_size);
	entries = mlx5_ib_dmabuf_num_entries(mmkey->iova, mmkey->size,
					     page_shift);
	if (entries > key->capacity)
		return -E2BIG;

	if (page_shift == key->page_shift)
		err = key_write(key, 0, entries, page_shift, 0);
	else
		err = key_resize(key, entries, page_shift);
	if (!err)
		return 0;

	/* Some of the new entries may be there. */
	key->loaded = true;
	mlx5_ib_dmabuf_key_zap(key);
	return err;
}

/**
 * mlx5_ib_dmabuf_key_load - make the device translate to the present mapping
 * @key: a key without translations, free or live
 *
 * A free key becomes a live one.
 *
 * Context: sleeps; the reservation lock is held and the import is mapped; for a
 * free key both have been so since it was created.
 * Return: 0; -EINVAL if the layout does not fit pages; -E2BIG if it needs more
 * entries than the table has; -ENODEV if the key is dead; else the device's
 * error, after which there are no translations.
 */
int mlx5_ib_dmabuf_key_load(struct mlx5_ib_dmabuf_key *key)
{
	int err;

	dma_resv_assert_held(key->umem->dmabuf->resv);

	if (key->state > MLX5_IB_DMABUF_KEY_LIVE)
		return -ENODEV;
	if (key->loaded)
		return 0;

	if (key->state == MLX5_IB_DMABUF_KEY_FREE)
		err = key_enable(key);
	else
		err = key_refill(key);
	if (!err)
		key->loaded = true;
	return err;
}

static int key_zero(struct mlx5_ib_dmabuf_key *key)
{
	const struct mlx5_ib_dmabuf_zeros *zeros = key_dev(key)->dmabuf_zeros;
	struct ib_sge sge = {
		.lkey = key_dev(key)->umrc.pd->local_dma_lkey,
		.addr = zeros->dma,
	};
	u64 bytes = ALIGN(key->entries, XLT_UNIT_ENTRIES) *
		    sizeof(struct mlx5_mtt);
	struct mlx5_umr_wr wr;
	int err;

	umr_init(key, &wr, MLX5_IB_SEND_UMR_UPDATE_XLT);
	wr.wr.sg_list = &sge;
	wr.wr.num_sge = 1;
	for (; wr.offset < bytes; wr.offset += sge.length) {
		sge.length = min_t(u64, bytes - wr.offset, zeros->size);
		wr.xlt_size = sge.length;
		err = mlx5_ib_post_send_wait(key_dev(key), &wr);
		if (err)
			return err;
	}
	return 0;
}

/**
 * mlx5_ib_dmabuf_key_zap - take all translations from a key that follows moves
 * @key: the key
 *
 * When this returns no DMA through the key runs; what comes faults.  Cannot
 * fail: a key that cannot be zapped is killed.
 *
 * Context: sleeps, and allocates nothing as long as the device carries UMRs out;
 * the reservation lock is held.
 */
void mlx5_ib_dmabuf_key_zap(struct mlx5_ib_dmabuf_key *key)
{
	dma_resv_assert_held(key->umem->dmabuf->resv);

	if (!key->loaded)
		return;
	if (!device_stopped(key_dev(key)) && key_zero(key))
		mlx5_ib_dmabuf_key_kill(key);
	key->loaded = false;
}

static struct xarray *key_index(const struct mlx5_ib_dmabuf_key *key)
{
	return mlx5_ib_dmabuf_key_follows(key) ? &key_dev(key)->odp_mkeys :
						 &key_dev(key)->dmabuf_pinned;
}

/**
 * mlx5_ib_dmabuf_key_show - let page faults and prefetches find a key
 * @key: a key; of one that is pinned, prefetches learn just that
 *
 * Context: sleeps.
 * Return: 0 or -ENOMEM.
 */
int mlx5_ib_dmabuf_key_show(struct mlx5_ib_dmabuf_key *key)
{
	struct mlx5_core_mkey *mmkey = &key->mr->mmkey;

	return xa_err(xa_store(key_index(key), mlx5_base_mkey(mmkey->key),
			       mmkey, GFP_KERNEL));
}

/**
 * mlx5_ib_dmabuf_key_hide - keep new page faults and prefetches from finding it
 * @key: a key, hidden or not: its index may have a new owner already
 *
 * Context: any.
 */
void mlx5_ib_dmabuf_key_hide(struct mlx5_ib_dmabuf_key *key)
{
	struct mlx5_core_mkey *mmkey = &key->mr->mmkey;

	xa_cmpxchg(key_index(key), mlx5_base_mkey(mmkey->key), mmkey, NULL, 0);
}

/* Without UMRs the last resort is to make the device forget the key. */
static int key_destroy(struct mlx5_ib_dmabuf_key *key)
{
	struct mlx5_ib_mr *mr = key->mr;
	int err;

	/* Somebody else may get the index at once. */
	mlx5_ib_dmabuf_key_hide(key);
	err = mlx5_core_destroy_mkey(key_dev(key)->mdev, &mr->mmkey);
	if (err)
		return err;
	key->state = MLX5_IB_DMABUF_KEY_GONE;
	if (mr->cache_ent)
		detach_mr_from_cache(mr);
	return 0;
}

/**
 * mlx5_ib_dmabuf_key_kill - make the device refuse a key for good
 * @key: the key
 *
 * When this returns no DMA through the key runs, and none will.  The key's
 * index stays taken, unless the device does not even carry a UMR out any more:
 * then the key is destroyed.
 *
 * Context: sleeps, and allocates nothing as long as the device carries UMRs out;
 * the reservation lock is held.
 */
void mlx5_ib_dmabuf_key_kill(struct mlx5_ib_dmabuf_key *key)
{
	dma_resv_assert_held(key->umem->dmabuf->resv);

	key->loaded = false;
	if (key->state > MLX5_IB_DMABUF_KEY_LIVE)
		return;
	key->state = MLX5_IB_DMABUF_KEY_DEAD;
	if (!mlx5_mr_cache_invalidate(key->mr) || device_stopped(key_dev(key)))
		return;
	if (key_destroy(key) && !device_stopped(key_dev(key)))
		mlx5_ib_err(key_dev(key),
			    "key 0x%x still reaches memory that its owner wants back\n",
			    key->mr->mmkey.key);
}

/**
 * mlx5_ib_dmabuf_key_modify - change the protection domain and the rights
 * @key: a key
 * @pd: the protection domain that it shall have
 * @access: &enum ib_access_flags that it shall have
 *
 * Context: sleeps; the reservation lock is held.
 * Return: 0; -EINVAL if the key is not live; -EOPNOTSUPP if the device cannot;
 * else the device's error.  Nothing has changed then.
 */
int mlx5_ib_dmabuf_key_modify(struct mlx5_ib_dmabuf_key *key,
			      struct ib_pd *pd, int access)
{
	struct mlx5_ib_dev *dev = key_dev(key);
	struct mlx5_ib_mr *mr = key->mr;
	struct mlx5_umr_wr wr;
	int err;

	dma_resv_assert_held(key->umem->dmabuf->resv);

	if (key->state != MLX5_IB_DMABUF_KEY_LIVE)
		return -EINVAL;
	if (!mlx5_ib_dmabuf_key_can_stop(dev) ||
	    !mlx5_ib_can_reconfig_with_umr(dev, mr->access_flags, access))
		return -EOPNOTSUPP;

	umr_init(key, &wr, MLX5_IB_SEND_UMR_UPDATE_PD_ACCESS);
	wr.pd = pd;
	wr.access_flags = access;
	err = mlx5_ib_post_send_wait(dev, &wr);
	if (err)
		return err;

	mr->ibmr.pd = pd;
	mr->mmkey.pd = to_mpd(pd)->pdn;
	mr->access_flags = access;
	return 0;
}

static int zeros_get(struct mlx5_ib_dev *dev)
{
	struct device *ddev = dev->ib_dev.dev.parent;
	struct mlx5_ib_dmabuf_zeros *zeros;

	if (READ_ONCE(dev->dmabuf_zeros))
		return 0;

	zeros = kzalloc(sizeof(*zeros), GFP_KERNEL);
	if (!zeros)
		return -ENOMEM;
	for (zeros->size = XLT_MAX_BYTES; ; zeros->size /= 2) {
		zeros->size = round_down(zeros->size, MLX5_UMR_MTT_ALIGNMENT);
		zeros->virt = dma_alloc_coherent(ddev, zeros->size, &zeros->dma,
						 GFP_KERNEL | __GFP_NOWARN);
		if (zeros->virt || zeros->size < PAGE_SIZE)
			break;
	}
	if (!zeros->virt) {
		kfree(zeros);
		return -ENOMEM;
	}

	/* Two MRs may be the first ones. */
	if (cmpxchg(&dev->dmabuf_zeros, NULL, zeros)) {
		dma_free_coherent(ddev, zeros->size, zeros->virt, zeros->dma);
		kfree(zeros);
	}
	return 0;
}

/**
 * mlx5_ib_dmabuf_cleanup - free what a device's dma-buf MRs had in common
 * @dev: the device, which has no MRs any more
 *
 * Context: may sleep.
 */
void mlx5_ib_dmabuf_cleanup(struct mlx5_ib_dev *dev)
{
	struct mlx5_ib_dmabuf_zeros *zeros = dev->dmabuf_zeros;

	WARN_ON(!xa_empty(&dev->dmabuf_pinned));
	if (!zeros)
		return;
	dma_free_coherent(dev->ib_dev.dev.parent, zeros->size, zeros->virt,
			  zeros->dma);
	kfree(zeros);
	dev->dmabuf_zeros = NULL;
}

/*
 * A key that the cache does not have: one that is larger, one with rights that
 * a UMR cannot give it, or one of a device whose UMRs write no tables, which is
 * live with its table at once.
 */
static struct mlx5_ib_mr *
create_mr(const struct mlx5_ib_dmabuf_key *key, struct ib_pd *pd, u64 iova,
	  int access, bool with_umr)
{
	struct mlx5_ib_dev *dev = to_mdev(pd->device);
	u64 length = key->umem->umem.length;
	size_t inlen = MLX5_ST_SZ_BYTES(create_mkey_in);
	u64 pairs = DIV_ROUND_UP(key->entries, 2);
	bool pg = MLX5_CAP_GEN(dev->mdev, pg);
	struct mlx5_ib_mr *mr;
	void *mkc;
	u32 *in;
	int err;

	if (key->capacity > U32_MAX)
		return ERR_PTR(-E2BIG);
	if (!with_umr) {
		if (pairs > (INT_MAX - inlen) / MLX5_IB_UMR_OCTOWORD)
			return ERR_PTR(-E2BIG);
		inlen += pairs * MLX5_IB_UMR_OCTOWORD;
	}

	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	in = kvzalloc(inlen, GFP_KERNEL);
	if (!mr || !in) {
		err = -ENOMEM;
		goto err_free;
	}

	mkc = MLX5_ADDR_OF(create_mkey_in, in, memory_key_mkey_entry);
	set_mkc_access_pd_addr_fields(mkc, access, iova,
				      with_umr ? dev->umrc.pd : pd);
	MLX5_SET(mkc, mkc, free, with_umr);
	MLX5_SET(mkc, mkc, umr_en, 1);
	MLX5_SET(mkc, mkc, access_mode_1_0, MLX5_MKC_ACCESS_MODE_MTT);
	MLX5_SET64(mkc, mkc, len, length);
	MLX5_SET(mkc, mkc, log_page_size, key->page_shift);
	MLX5_SET(mkc, mkc, translations_octword_size,
		 ALIGN(key->capacity, XLT_UNIT_ENTRIES) / 2);
	MLX5_SET(create_mkey_in, in, pg_access, pg);
	if (!with_umr) {
		MLX5_SET(create_mkey_in, in, translations_octword_actual_size,
			 pairs);
		mlx5_ib_dmabuf_fill_pas(key->umem, iova, key->page_shift,
					MLX5_ADDR_OF(create_mkey_in, in,
						     klm_pas_mtt),
					pg ? MLX5_IB_MTT_PRESENT : 0);
	}

	err = mlx5_ib_create_mkey(dev, &mr->mmkey, in, inlen);
	if (err)
		goto err_free;
	kvfree(in);

	mr->dev = dev;
	mr->ibmr.pd = pd;
	mr->access_flags = access;
	mr->desc_size = sizeof(struct mlx5_mtt);
	mr->mmkey.type = MLX5_MKEY_MR;
	mr->mmkey.pd = to_mpd(pd)->pdn;
	return mr;

err_free:
	kvfree(in);
	kfree(mr);
	return ERR_PTR(err);
}

/**
 * mlx5_ib_dmabuf_key_create - get a key for an import
 * @key: zeroed but for @key->umem; @key->mr is set
 * @pd: the protection domain
 * @iova: first address
 * @access: &enum ib_access_flags
 *
 * The key is free, and mlx5_ib_dmabuf_key_load() makes it a live one.  Where
 * UMRs write no tables it is live and loaded.
 *
 * Context: sleeps; the reservation lock is held and the import is mapped.
 * Return: 0; -EINVAL if the layout does not fit pages; -E2BIG if it needs more
 * entries than a key can have; -ENOMEM; or the device's error.
 */
int mlx5_ib_dmabuf_key_create(struct mlx5_ib_dmabuf_key *key, struct ib_pd *pd,
			      u64 iova, int access)
{
	struct mlx5_ib_dev *dev = to_mdev(pd->device);
	u64 length = key->umem->umem.length;
	struct mlx5_ib_mr *mr;
	u64 page_size;
	bool with_umr;
	int err;

	dma_resv_assert_held(key->umem->dmabuf->resv);

	page_size = best_pgsz(key->umem, iova);
	if (!page_size)
		return -EINVAL;
	key->page_shift = ilog2(page_size);
	key->entries = mlx5_ib_dmabuf_num_entries(iova, length,
						  key->page_shift);
	key->capacity = key->entries;
	if (mlx5_ib_dmabuf_key_follows(key)) {
		key->capacity = max(key->entries,
				    follow_capacity(iova, length));
		err = zeros_get(dev);
		if (err)
			return err;
	}

	with_umr = can_write(dev, key->capacity);
	if (!with_umr && mlx5_ib_dmabuf_key_follows(key))
		return -E2BIG;
	mr = ERR_PTR(-EOPNOTSUPP);
	if (with_umr)
		mr = alloc_mr_from_cache(pd, NULL, iova, length, 0, 0,
					 order_base_2(max_t(u64, key->capacity,
							    XLT_UNIT_ENTRIES)),
					 access);
	if (!IS_ERR(mr))
		key->capacity = BIT_ULL(mr->order);
	else if (PTR_ERR(mr) == -E2BIG || PTR_ERR(mr) == -EOPNOTSUPP)
		mr = create_mr(key, pd, iova, access, with_umr);
	if (IS_ERR(mr))
		return PTR_ERR(mr);

	mr->ibmr.lkey = mr->mmkey.key;
	mr->ibmr.rkey = mr->mmkey.key;
	key->mr = mr;
	if (!with_umr) {
		key->state = MLX5_IB_DMABUF_KEY_LIVE;
		key->loaded = true;
	}
	return 0;
}

/**
 * mlx5_ib_dmabuf_key_put - give a key back, and free its MR
 * @key: the key
 *
 * When this returns no DMA through the key runs.  The caller has seen to it
 * that no callback looks at the key any more: it may have a new owner at once.
 *
 * Context: sleeps; the reservation lock is held.
 */
void mlx5_ib_dmabuf_key_put(struct mlx5_ib_dmabuf_key *key)
{
	struct mlx5_ib_dev *dev = key_dev(key);
	struct mlx5_ib_mr *mr = key->mr;

	dma_resv_assert_held(key->umem->dmabuf->resv);

	if (mr->cache_ent) {
		mlx5_mr_cache_free(dev, mr);
		return;
	}
	if (key->state != MLX5_IB_DMABUF_KEY_GONE && key_destroy(key))
		mlx5_ib_dmabuf_key_kill(key);
	kfree(mr);
}
