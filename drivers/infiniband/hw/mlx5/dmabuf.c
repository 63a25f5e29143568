// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory regions on dma-bufs, e.g. on the memory of a GPU.
 *
 * An MR has one of three modes, the best that exporter, kernel and device have
 * in common and the administrator allows:
 *
 * dynamic
 *	The exporter moves the memory whenever it likes.  Its notice takes all
 *	translations from the key; the page fault of the next access maps the
 *	memory at its new place.
 *
 * revocable
 *	The memory is pinned.  An exporter that has to take it away nevertheless
 *	makes the device refuse the key for good.
 *
 * pinned
 *	The same for the few devices that cannot be made to refuse a key.
 *
 * What happens to a key happens under the reservation lock of the dma-buf, in
 * which the exporter's notices arrive.  Page faults look an MR up under
 * dev->odp_srcu and take that lock inside; whoever holds it never waits for
 * them.
 */

#include <linux/delay.h>
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/srcu.h>
#include <linux/wait.h>
#include <rdma/ib_umem_dmabuf.h>
#include <rdma/rdma_netlink.h>
#include <rdma/uverbs_dmabuf_mr.h>

#include "dmabuf.h"
#include "dmabuf_key.h"

/*
 * How long a page fault waits for a fence of the exporter before it lets the
 * device ask again: deregistering any MR of the device waits for page faults.
 */
#define FAULT_WAIT msecs_to_jiffies(100)

/*
 * How long the exporter may fail to map the memory until accesses fail, and the
 * time between two attempts.
 */
#define FAULT_GIVE_UP (10 * HZ)
#define FAULT_PAUSE_MS 20

/**
 * struct mlx5_ib_dmabuf - what makes an MR one on a dma-buf
 * @key: its key, and with it the import and the MR
 * @failing: mapping the memory fails again and again
 * @failing_since: jiffies when that began
 * @failed_at: jiffies when it failed last
 * @faults: how often a page fault or a prefetch found no translations
 *
 * All but @faults belong to the reservation lock of the dma-buf.
 */
struct mlx5_ib_dmabuf {
	struct mlx5_ib_dmabuf_key key;
	bool failing;
	unsigned long failing_since;
	unsigned long failed_at;
	atomic64_t faults;
};

static struct dma_resv *dmabuf_resv(const struct mlx5_ib_dmabuf *dmabuf)
{
	return dmabuf->key.umem->dmabuf->resv;
}

static void dmabuf_move_notify(struct dma_buf_attachment *attach)
{
	struct ib_umem_dmabuf *umem = attach->importer_priv;
	struct mlx5_ib_dmabuf *dmabuf = umem->private;

	if (!dmabuf)
		return;
	mlx5_update_odp_stats(dmabuf->key.mr, invalidations,
			      ib_umem_num_pages(&umem->umem));
	mlx5_ib_dmabuf_key_zap(&dmabuf->key);
}

static const struct dma_buf_attach_ops dmabuf_attach_ops = {
	.allow_peer2peer = true,
	.move_notify = dmabuf_move_notify,
};

static void dmabuf_revoke(void *priv)
{
	struct mlx5_ib_dmabuf *dmabuf = priv;

	mlx5_ib_dmabuf_key_kill(&dmabuf->key);
}

/* Looked at once more by those who import it, who then hold on to it. */
static int fd_is_dynamic(struct mlx5_ib_dev *dev, int fd, u64 offset,
			 u64 length)
{
	struct dma_buf *dmabuf;
	bool dynamic;

	dmabuf = ib_umem_dmabuf_get_window(&dev->ib_dev, fd, offset, length);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	dynamic = dma_buf_is_dynamic(dmabuf);
	dma_buf_put(dmabuf);
	return dynamic;
}

/*
 * Who serves page faults is asked for, not who can have them: the driver serves
 * none of those of a representor.
 */
static bool device_can_follow(struct mlx5_ib_dev *dev, u64 iova, u64 length,
			      int access)
{
	return IS_ENABLED(CONFIG_DMABUF_MOVE_NOTIFY) &&
	       IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING) &&
	       dev->odp_pf_eq.core &&
	       ib_umem_dmabuf_pin_policy() != IB_UMEM_DMABUF_PIN_PREFER &&
	       mlx5_ib_dmabuf_key_can_follow(dev, iova, length, access);
}

static struct ib_umem_dmabuf *import_dynamic(struct mlx5_ib_dev *dev,
					     u64 offset, u64 length, int fd,
					     int access)
{
	struct ib_umem_dmabuf *umem;
	int err;

	umem = ib_umem_dmabuf_get(&dev->ib_dev, offset, length, fd, access,
				  &dmabuf_attach_ops);
	if (IS_ERR(umem))
		return umem;

	if (dma_resv_lock_interruptible(umem->dmabuf->resv, NULL)) {
		err = ib_umem_dmabuf_refuse(&dev->ib_dev, "lock", -ERESTARTSYS);
		goto err_release;
	}
	err = ib_umem_dmabuf_map_pages(umem);
	if (!err)
		return umem;

	dma_resv_unlock(umem->dmabuf->resv);
err_release:
	ib_umem_dmabuf_release(umem);
	return ERR_PTR(err);
}

/* Returns with the reservation lock held and the window mapped. */
static struct ib_umem_dmabuf *import(struct mlx5_ib_dev *dev, u64 offset,
				     u64 length, u64 iova, int fd, int access)
{
	struct ib_umem_dmabuf *umem;
	int dynamic;

	dynamic = fd_is_dynamic(dev, fd, offset, length);
	if (dynamic < 0)
		return ERR_PTR(dynamic);

	if (dynamic && device_can_follow(dev, iova, length, access))
		return import_dynamic(dev, offset, length, fd, access);
	if (mlx5_ib_dmabuf_key_can_stop(dev))
		return ib_umem_dmabuf_get_pinned_revocable_and_lock(&dev->ib_dev,
								    offset,
								    length, fd,
								    access);
	umem = ib_umem_dmabuf_get_pinned(&dev->ib_dev, offset, length, fd,
					 access);
	if (!IS_ERR(umem))
		ib_umem_dmabuf_revoke_lock(umem);
	return umem;
}

/*
 * Page faults end first, since they take the reservation lock.  Then callbacks
 * end, so that none meets a key that belongs to somebody else.
 */
static void dmabuf_destroy(struct mlx5_ib_dmabuf *dmabuf)
{
	struct ib_umem_dmabuf *umem = dmabuf->key.umem;
	struct mlx5_ib_mr *mr = dmabuf->key.mr;

	mlx5_ib_dmabuf_key_hide(&dmabuf->key);
	if (mlx5_ib_dmabuf_key_follows(&dmabuf->key)) {
		synchronize_srcu(&mr->dev->odp_srcu);
		wait_event(mr->q_deferred_work,
			   !atomic_read(&mr->num_deferred_work));
	}

	ib_umem_dmabuf_revoke_lock(umem);
	ib_umem_dmabuf_set_revoke_locked(umem, NULL, NULL);
	mr->dmabuf = NULL;
	mlx5_ib_dmabuf_key_put(&dmabuf->key);
	ib_umem_dmabuf_revoke_unlock(umem);

	ib_umem_dmabuf_release(umem);
	kfree(dmabuf);
}

/* From here on page faults, prefetches and the exporter may find the MR. */
static int dmabuf_publish(struct mlx5_ib_dmabuf *dmabuf)
{
	struct mlx5_ib_mr *mr = dmabuf->key.mr;

	mr->dmabuf = dmabuf;
	if (mlx5_ib_dmabuf_key_follows(&dmabuf->key)) {
		mr->odp_stats = (struct ib_odp_counters){};
		init_waitqueue_head(&mr->q_deferred_work);
		atomic_set(&mr->num_deferred_work, 0);
		dmabuf->key.umem->private = dmabuf;
	} else {
		ib_umem_dmabuf_set_revoke_locked(dmabuf->key.umem,
						 dmabuf_revoke, dmabuf);
	}
	return mlx5_ib_dmabuf_key_show(&dmabuf->key);
}

static struct ib_mr *mlx5_ib_reg_dmabuf_mr(struct ib_pd *pd, u64 offset,
					   u64 length, u64 iova, int fd,
					   int access)
{
	struct mlx5_ib_dev *dev = to_mdev(pd->device);
	struct mlx5_ib_dmabuf *dmabuf;
	struct ib_umem_dmabuf *umem;
	int err;

	dmabuf = kzalloc(sizeof(*dmabuf), GFP_KERNEL);
	if (!dmabuf)
		return ERR_PTR(-ENOMEM);

	umem = import(dev, offset, length, iova, fd, access);
	if (IS_ERR(umem)) {
		kfree(dmabuf);
		return ERR_CAST(umem);
	}

	dmabuf->key.umem = umem;
	err = mlx5_ib_dmabuf_key_create(&dmabuf->key, pd, iova, access);
	if (err) {
		ib_umem_dmabuf_revoke_unlock(umem);
		ib_umem_dmabuf_release(umem);
		kfree(dmabuf);
		goto err_refuse;
	}

	err = dmabuf_publish(dmabuf);
	if (!err)
		err = mlx5_ib_dmabuf_key_load(&dmabuf->key);
	ib_umem_dmabuf_revoke_unlock(umem);
	if (!err)
		return &dmabuf->key.mr->ibmr;

	dmabuf_destroy(dmabuf);
err_refuse:
	return ERR_PTR(ib_umem_dmabuf_refuse(&dev->ib_dev, "device", err));
}

/**
 * mlx5_ib_dmabuf_dereg_mr - deregister an MR if it is one on a dma-buf
 * @mr: MR of any kind; of those on dma-bufs nothing is left
 *
 * Context: sleeps.
 * Return: true if it was one on a dma-buf.
 */
bool mlx5_ib_dmabuf_dereg_mr(struct mlx5_ib_mr *mr)
{
	/* mlx5_ib_dmabuf_fill_res() looks at MRs of any kind */
	uverbs_untrack_dmabuf_mr(&mr->ibmr);
	if (!mr->dmabuf)
		return false;
	dmabuf_destroy(mr->dmabuf);
	return true;
}

/**
 * mlx5_ib_dmabuf_rereg_mr - change the protection domain or the rights of an MR
 * @mr: MR on a dma-buf
 * @flags: what to change, &enum ib_mr_rereg_flags
 * @access: the new rights, if they change
 * @pd: the protection domain to have
 *
 * Context: sleeps, interruptibly.
 * Return: 0; -EOPNOTSUPP for a change of the translation, or one that the
 * device cannot make; -EINVAL for rights that such an MR cannot have, or if it
 * has lost its memory; -EINTR; else the device's error.  Nothing has changed
 * then.
 */
int mlx5_ib_dmabuf_rereg_mr(struct mlx5_ib_mr *mr, int flags, int access,
			    struct ib_pd *pd)
{
	struct mlx5_ib_dmabuf *dmabuf = mr->dmabuf;
	int err;

	if (flags & IB_MR_REREG_TRANS)
		return -EOPNOTSUPP;
	if (!(flags & IB_MR_REREG_ACCESS))
		access = mr->access_flags;
	if (access & ~UVERBS_REG_DMABUF_MR_ACCESS)
		return -EINVAL;

	err = dma_resv_lock_interruptible(dmabuf_resv(dmabuf), NULL);
	if (err)
		return err;
	if (dmabuf->key.umem->revoked)
		err = -EINVAL;
	else
		err = mlx5_ib_dmabuf_key_modify(&dmabuf->key, pd, access);
	if (!err)
		dmabuf->key.umem->umem.writable = ib_access_writable(access);
	dma_resv_unlock(dmabuf_resv(dmabuf));
	return err;
}

/*
 * An error code that is not -EAGAIN ends the access.  That is for what will not
 * change, and for an exporter that has failed for too long.
 */
static int fault_error(struct mlx5_ib_dmabuf *dmabuf, int err)
{
	switch (err) {
	case -E2BIG:
	case -EFAULT:
	case -EINVAL:
	case -ENODEV:
	case -EOPNOTSUPP:
		return -EFAULT;
	case -ERESTARTSYS:
		return err;
	}
	/* Mapped, and waiting for a fence. */
	if (dmabuf->key.umem->sgt)
		return -EAGAIN;

	if (!dmabuf->failing ||
	    time_after(jiffies, dmabuf->failed_at + FAULT_GIVE_UP)) {
		dmabuf->failing = true;
		dmabuf->failing_since = jiffies;
	}
	dmabuf->failed_at = jiffies;
	if (time_after(jiffies, dmabuf->failing_since + FAULT_GIVE_UP))
		return -EFAULT;
	return -EAGAIN;
}

static int fault_map(struct mlx5_ib_dmabuf *dmabuf)
{
	struct ib_umem_dmabuf *umem = dmabuf->key.umem;
	int err;

	if (dmabuf->key.loaded)
		return 0;
	atomic64_inc(&dmabuf->faults);

	err = ib_umem_dmabuf_map_pages_timeout(umem, FAULT_WAIT);
	if (!err) {
		err = mlx5_ib_dmabuf_key_load(&dmabuf->key);
		if (err) {
			ib_umem_dmabuf_unmap_pages(umem);
			ib_umem_dmabuf_refuse(umem->umem.ibdev, "device", err);
		}
	}
	if (err)
		return fault_error(dmabuf, err);
	dmabuf->failing = false;
	return 0;
}

/**
 * mlx5_ib_dmabuf_fault - give an MR its translations back
 * @mr: dynamic MR on a dma-buf
 * @io_virt: first address that is asked for
 * @bcnt: bytes that are asked for
 * @bytes_mapped: if not NULL, increased by @bcnt on success
 * @map: map the memory if it is not mapped
 *
 * All of the MR is mapped at once, and one that is mapped already costs
 * nothing.
 *
 * Context: sleeps, interruptibly unless in a kernel thread; dev->odp_srcu is
 * held.
 * Return: an upper bound of the pages that the range touches, or 0 if the MR is
 * not mapped and was not to be; -EAGAIN if the access shall be tried again;
 * -EFAULT if it must fail; -EINTR or -ERESTARTSYS after a signal.
 */
int mlx5_ib_dmabuf_fault(struct mlx5_ib_mr *mr, u64 io_virt, size_t bcnt,
			 u32 *bytes_mapped, bool map)
{
	struct mlx5_ib_dmabuf *dmabuf = mr->dmabuf;
	struct dma_resv *resv = dmabuf_resv(dmabuf);
	u64 offset = io_virt - mr->mmkey.iova;
	bool loaded, failing;
	int err = 0;

	if (io_virt < mr->mmkey.iova || offset >= mr->mmkey.size ||
	    mr->mmkey.size - offset < bcnt)
		return -EFAULT;

	if (current->flags & PF_KTHREAD)
		dma_resv_lock(resv, NULL);
	else
		err = dma_resv_lock_interruptible(resv, NULL);
	if (err)
		return err;
	if (map)
		err = fault_map(dmabuf);
	loaded = dmabuf->key.loaded;
	failing = dmabuf->failing;
	dma_resv_unlock(resv);

	if (err == -EAGAIN && failing)
		msleep(FAULT_PAUSE_MS);
	if (err || !loaded)
		return err;
	if (bytes_mapped)
		*bytes_mapped += min_t(size_t, bcnt, U32_MAX - *bytes_mapped);
	/* A memory window may lie differently in its pages than the MR does. */
	return min_t(u64, DIV_ROUND_UP(mr->mmkey.size, PAGE_SIZE) + 2, INT_MAX);
}

/**
 * mlx5_ib_dmabuf_writable - may a prefetch be for writing?
 * @mr: MR on a dma-buf
 *
 * Context: any.
 * Return: true if the MR's rights allow any kind of write.
 */
bool mlx5_ib_dmabuf_writable(const struct mlx5_ib_mr *mr)
{
	return mr->dmabuf->key.umem->umem.writable;
}

/**
 * mlx5_ib_dmabuf_prefetch_error - why is there nothing to prefetch?
 * @pd: protection domain of the prefetch
 * @lkey: a key that page faults do not know, or that does not allow it
 * @err: the answer, unless @lkey is that of a pinned MR on a dma-buf
 *
 * Context: any.
 * Return: -EOPNOTSUPP for a pinned MR on a dma-buf, else @err.
 */
int mlx5_ib_dmabuf_prefetch_error(struct ib_pd *pd, u32 lkey, int err)
{
	struct xarray *pinned = &to_mdev(pd->device)->dmabuf_pinned;
	const struct mlx5_core_mkey *mmkey;

	/* An MR leaves the index, under this lock, before it goes. */
	xa_lock(pinned);
	mmkey = xa_load(pinned, mlx5_base_mkey(lkey));
	if (mmkey && mmkey->key == lkey &&
	    container_of(mmkey, struct mlx5_ib_mr, mmkey)->ibmr.pd == pd)
		err = -EOPNOTSUPP;
	xa_unlock(pinned);
	return err;
}

static const char *const mode_names[] = {
	[IB_UMEM_DMABUF_DYNAMIC] = "dynamic",
	[IB_UMEM_DMABUF_PINNED] = "pinned",
	[IB_UMEM_DMABUF_REVOCABLE] = "revocable",
};

static const char *state_name(const struct mlx5_ib_dmabuf *dmabuf,
			      const struct ib_umem_dmabuf_info *info)
{
	if (info->revoked)
		return "revoked";
	if (READ_ONCE(dmabuf->key.state) > MLX5_IB_DMABUF_KEY_LIVE)
		return "dead";
	return info->mapped ? "mapped" : "unmapped";
}

/**
 * mlx5_ib_dmabuf_fill_res - `rdma resource show mr -dd`
 * @msg: netlink message
 * @mr: MR on a dma-buf
 *
 * Takes no lock: values may stem from different moments.
 *
 * Context: may sleep.
 * Return: 0, or -EMSGSIZE.
 */
int mlx5_ib_dmabuf_fill_res(struct sk_buff *msg, struct mlx5_ib_mr *mr)
{
	const struct mlx5_ib_dmabuf *dmabuf = mr->dmabuf;
	struct ib_umem_dmabuf_info info;
	struct nlattr *table;

	ib_umem_dmabuf_query(dmabuf->key.umem, &info);
	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	if (!table)
		return -EMSGSIZE;
	if (rdma_nl_put_driver_string(msg, "dmabuf_exporter", info.exporter) ||
	    rdma_nl_put_driver_string(msg, "dmabuf_mode",
				      mode_names[info.contract]) ||
	    rdma_nl_put_driver_string(msg, "dmabuf_state",
				      state_name(dmabuf, &info)) ||
	    rdma_nl_put_driver_u32(msg, "dmabuf_p2p", info.peer2peer) ||
	    rdma_nl_put_driver_u64(msg, "dmabuf_inode", info.inode) ||
	    rdma_nl_put_driver_u64(msg, "dmabuf_offset", info.offset) ||
	    rdma_nl_put_driver_u64(msg, "dmabuf_page_size",
				   BIT_ULL(READ_ONCE(dmabuf->key.page_shift))) ||
	    rdma_nl_put_driver_u64(msg, "dmabuf_maps", info.maps) ||
	    rdma_nl_put_driver_u64(msg, "dmabuf_moves", info.moves) ||
	    rdma_nl_put_driver_u64(msg, "dmabuf_faults",
				   atomic64_read(&dmabuf->faults))) {
		nla_nest_cancel(msg, table);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, table);
	return 0;
}

DECLARE_UVERBS_DMABUF_MR(mlx5_ib_dmabuf_mr, mlx5_ib_reg_dmabuf_mr);

const struct uapi_definition mlx5_ib_dmabuf_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_MR, &mlx5_ib_dmabuf_mr),
	{},
};
