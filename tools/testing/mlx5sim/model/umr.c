// SPDX-License-Identifier: GPL-2.0
/*
 * UMR: a send request that changes a memory key and its translation table.
 *
 * The driver's own UMR queue may change all keys, and what it does wrong breaks
 * a rule.  Other queues may change keys of their protection domain (memory
 * windows, fast registration); what they do wrong is an error completion.
 */
#include <stdlib.h>

#include "model.h"

#define OCTWORD			16
#define XLT_GRANULE		4

/* The request: control segment of 16 bytes, then these */
#define UMR_CTRL		16
#define UMR_FLAGS		(UMR_CTRL + 0)
#define UMR_XLT_OCTWORDS	(UMR_CTRL + 4)
#define UMR_XLT_OFFSET		(UMR_CTRL + 6)
#define UMR_MKEY_MASK		(UMR_CTRL + 8)
#define UMR_XLT_OFFSET_47_16	(UMR_CTRL + 16)
#define UMR_MKC			64
#define UMR_LIST		128

#define FLAG_CHECK_QPN		0x08
#define FLAG_XLT_OFFSET		0x10
#define FLAG_CHECK_NOT_FREE	0x20	/* fail if it is not free */
#define FLAG_CHECK_FREE		0x40	/* fail if it is free */
#define FLAG_INLINE		0x80

/* Reserved bits of an MTT entry */
#define MTT_RESERVED		0xffcull

/**
 * struct mask_field - a bit of the mask and the fields that it lets change
 * @bit: of the mask
 * @first: position in the context
 * @width: in bits
 */
struct mask_field {
	u32 bit;
	u32 first;
	u32 width;
};

#define MASK(bit, field)	{ bit, ifc_off(mkc, field), ifc_width(mkc, field) }

#define MASK_PAGE_SIZE		1
#define MASK_KEY		13
#define MASK_ATOMIC		21
#define MASK_ORDERING_WRITE	25
#define MASK_ORDERING_READ	47

static const struct mask_field mask_fields[] = {
	MASK(0, len),
	MASK(0, length64),
	MASK(MASK_PAGE_SIZE, log_page_size),
	MASK(6, start_addr),
	MASK(7, pd),
	MASK(8, en_rinval),
	MASK(MASK_KEY, mkey_7_0),
	MASK(14, qpn),
	MASK(17, lr),
	MASK(18, lw),
	MASK(19, rr),
	MASK(20, rw),
	MASK(MASK_ATOMIC, a),
	MASK(23, small_fence_on_rdma_read_response),
	MASK(MASK_ORDERING_WRITE, relaxed_ordering_write),
	MASK(29, free),
	MASK(MASK_ORDERING_READ, relaxed_ordering_read),
};

/**
 * struct umr - a request, taken apart
 * @m: the device
 * @qp: the queue it came from
 * @wqe: the request
 * @key: the key to change
 * @own_queue: it came from the driver's UMR queue
 * @flags: FLAG_*
 * @mask: which fields of the context change
 * @octword: where in the table
 * @octwords: how much of it
 */
struct umr {
	struct mlx5sim *m;
	struct qp *qp;
	const struct send_wqe *wqe;
	struct mkey *key;
	bool own_queue;
	u32 flags;
	u64 mask;
	u64 octword;
	u64 octwords;
};

#define refuse(u, check, ...) ({				\
	broken((u)->m, check, __VA_ARGS__);			\
	false;							\
})

static u64 mask_allowed(struct mlx5sim *m)
{
	u64 mask = 0;

	for (u32 i = 0; i < ARRAY_SIZE(mask_fields); i++)
		mask |= BIT_ULL(mask_fields[i].bit);
	if (cap(m, umr_modify_entity_size_disabled))
		mask &= ~BIT_ULL(MASK_PAGE_SIZE);
	if (cap(m, umr_modify_atomic_disabled))
		mask &= ~BIT_ULL(MASK_ATOMIC);
	if (!cap(m, relaxed_ordering_write_umr))
		mask &= ~BIT_ULL(MASK_ORDERING_WRITE);
	if (!cap(m, relaxed_ordering_read_umr))
		mask &= ~BIT_ULL(MASK_ORDERING_READ);
	return mask;
}

static bool find_key(struct umr *u)
{
	u32 key = u->wqe->imm;
	struct mlx5sim *m = u->m;

	u->key = u->own_queue ? object_get(m, &m->mkeys, key >> 8) :
				table_find(&m->mkeys, key >> 8);
	if (!u->key)
		return false;
	/* A request that sets the variant may name the key that is to be */
	if (u->key->variant != (key & 0xff) &&
	    (u->own_queue || !(u->mask & BIT_ULL(MASK_KEY))))
		return refuse(u, CHK_UMR_KEY, "key 0x%x, it is 0x%x", key,
			      mkey_key(u->key));
	if (!u->key->umr_en)
		return refuse(u, CHK_UMR_DISABLED, "key 0x%x", key);
	return u->own_queue || u->key->pd_number == u->qp->pd->obj.number;
}

static bool state_good(struct umr *u)
{
	struct mkey *key = u->key;

	if (u->flags & FLAG_CHECK_QPN && key->qpn != ANY_QPN &&
	    key->qpn != u->qp->obj.number)
		return false;
	if ((u->flags & FLAG_CHECK_FREE && key->free) ||
	    (u->flags & FLAG_CHECK_NOT_FREE && !key->free))
		return refuse(u, CHK_UMR_FREE_STATE,
			      "key 0x%x is %sfree, flags 0x%x", mkey_key(key),
			      key->free ? "" : "not ", u->flags);
	if (u->mask & ~mask_allowed(u->m))
		return refuse(u, CHK_UMR_MASK, "key 0x%x: mask 0x%llx",
			      mkey_key(key), (unsigned long long)u->mask);
	return true;
}

static bool list_bounds_good(struct umr *u)
{
	if (u->octword % XLT_GRANULE || u->octwords % XLT_GRANULE)
		return refuse(u, CHK_XLT_ALIGN,
			      "key 0x%x: octword %llu, %llu of them",
			      mkey_key(u->key), (unsigned long long)u->octword,
			      (unsigned long long)u->octwords);
	if (u->octword + u->octwords > u->key->octwords)
		return refuse(u, CHK_XLT_BOUNDS,
			      "key 0x%x: octword %llu, %llu of them, table has %llu",
			      mkey_key(u->key), (unsigned long long)u->octword,
			      (unsigned long long)u->octwords,
			      (unsigned long long)u->key->octwords);
	return true;
}

static bool list_read(struct umr *u, u8 *list)
{
	const u8 *seg = u->wqe->raw + UMR_LIST;
	u32 bytes = u->octwords * OCTWORD;
	struct access access;
	u32 done;

	if (u->flags & FLAG_INLINE) {
		if (u->wqe->bytes < UMR_LIST + bytes)
			return refuse(u, CHK_WQE_FORMAT,
				      "UMR of %u bytes with a list of %u",
				      u->wqe->bytes, bytes);
		memcpy(list, seg, bytes);
		return true;
	}
	if (u->wqe->bytes < UMR_LIST + OCTWORD)
		return refuse(u, CHK_WQE_FORMAT,
			      "UMR of %u bytes without a list", u->wqe->bytes);
	access = (struct access){
		.key = get_be32(seg + 4),
		.pd = u->qp->pd,
		.qpn = u->qp->obj.number,
		.rights = RIGHT_LOCAL_READ,
	};
	if (get_be32(seg) < bytes ||
	    mem_copy(u->m, &access, get_be64(seg + 8), list, bytes, &done))
		return refuse(u, CHK_UMR_LIST,
			      "%u bytes at 0x%llx through key 0x%x, needed %u",
			      get_be32(seg),
			      (unsigned long long)get_be64(seg + 8), access.key,
			      bytes);
	return true;
}

/*
 * Entries must be aligned to the page size of the key as soon as an access can
 * reach them.  A request that changes the context is checked with the new one.
 */
static bool list_entries_good(struct umr *u, const u8 *list)
{
	u64 page_bits = BIT_ULL(u->key->log_page) - 1;
	u64 reached = u->key->free || u->mask ?
		      0 : mkey_entries_reached(u->key);

	if (u->key->mode != MLX5_MKC_ACCESS_MODE_MTT)
		return true;
	for (u64 i = 0; i < u->octwords * 2; i++) {
		u64 entry = get_be64(list + 8 * i);
		u64 index = u->octword * 2 + i;
		u64 low = index < reached ?
			  page_bits & ~(MTT_READ | MTT_WRITE) : MTT_RESERVED;

		if (entry & low)
			return refuse(u, CHK_MTT_ALIGN,
				      "key 0x%x, entry %llu: 0x%llx, log page size %u",
				      mkey_key(u->key),
				      (unsigned long long)index,
				      (unsigned long long)entry,
				      u->key->log_page);
	}
	return true;
}

static bool update_xlt(struct umr *u)
{
	u8 *list;
	bool good;

	if (!u->octwords)
		return true;
	if (!list_bounds_good(u))
		return false;
	list = malloc(u->octwords * OCTWORD);
	if (!list)
		return false;
	good = list_read(u, list) && list_entries_good(u, list);
	if (good)
		mkey_write_xlt(u->m, u->key, u->octword, list, u->octwords);
	free(list);
	return good;
}

static bool update_context(struct umr *u)
{
	const u8 *new = u->wqe->raw + UMR_MKC;
	u8 *mkc = u->key->mkc;

	if (!u->mask)
		return true;
	for (u32 i = 0; i < ARRAY_SIZE(mask_fields); i++) {
		const struct mask_field *f = &mask_fields[i];

		if (u->mask & BIT_ULL(f->bit))
			ifc_store(mkc, f->first, f->width,
				  ifc_load(new, f->first, f->width));
	}
	return mkey_update(u->m, u->key);
}

static enum syndrome execute(struct mlx5sim *m, struct qp *qp,
			     const struct send_wqe *wqe)
{
	const u8 *raw = wqe->raw;
	struct umr u = {
		.m = m,
		.qp = qp,
		.wqe = wqe,
		.own_queue = qp->type == MLX5_QPC_ST_REG_UMR,
		.flags = raw[UMR_FLAGS],
		.mask = get_be64(raw + UMR_MKEY_MASK),
		.octwords = get_be16(raw + UMR_XLT_OCTWORDS),
	};

	m->stats.umrs++;
	if (wqe->bytes < UMR_LIST) {
		broken(m, CHK_WQE_FORMAT, "UMR of %u bytes", wqe->bytes);
		return SYN_LOCAL_QP_OP;
	}
	if (u.flags & FLAG_XLT_OFFSET)
		u.octword = get_be16(raw + UMR_XLT_OFFSET) |
			    (u64)get_be32(raw + UMR_XLT_OFFSET_47_16) << 16;
	trace(m,
	      "\"event\":\"umr\",\"qp\":\"0x%x\",\"key\":\"0x%x\",\"flags\":\"0x%x\",\"mask\":\"0x%llx\",\"octword\":%llu,\"octwords\":%llu",
	      qp->obj.number, wqe->imm, u.flags, (unsigned long long)u.mask,
	      (unsigned long long)u.octword, (unsigned long long)u.octwords);
	if (!find_key(&u) || !state_good(&u) || !update_xlt(&u) ||
	    !update_context(&u))
		return SYN_MW_BIND;
	mkey_trace(m, u.key, "mkey");
	return SYN_NONE;
}

enum syndrome umr_execute(struct mlx5sim *m, struct qp *qp,
			  const struct send_wqe *wqe)
{
	enum syndrome syndrome;

	m->of_user = qp->type != MLX5_QPC_ST_REG_UMR;
	syndrome = execute(m, qp, wqe);
	m->of_user = false;
	return syndrome;
}

bool mkey_invalidate(struct mlx5sim *m, u32 key, const struct pd *pd,
		     bool remote)
{
	struct mkey *k = mkey_find(m, key);

	if (!k || !k->umr_en || k->pd != pd || (remote && !k->remote_inval))
		return false;
	ifc_set(mkc, k->mkc, free, 1);
	mkey_update(m, k);
	mkey_trace(m, k, "invalidate");
	return true;
}
