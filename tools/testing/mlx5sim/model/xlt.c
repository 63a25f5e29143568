// SPDX-License-Identifier: GPL-2.0
/*
 * Translation: from an address in the space of a key to bus memory.
 *
 * A key without translation (PA) takes the address as it is.  An MTT key has a
 * table of pages.  A KLM key has a list of pieces of other keys, each of its own
 * length, a KSM key one of pieces of equal length.  In a KLM list, a repeat block
 * lets the pieces behind it be gone round again and again, each time a stride
 * further on: interleaved data.
 *
 * Pieces that follow each other on the bus are moved at once.
 */
#include "model.h"

#define OCTWORD			16
#define DEPTH_MAX		4
#define KLM_LENGTH_MAX		BIT_ULL(31)	/* what a length of 0 means */

/**
 * struct walk - one access on its way
 * @m: the device
 * @access: what is wanted
 * @buf: data, source or destination
 * @done: bytes moved
 * @run_addr: piece behind them, found and not moved yet: bus address
 * @run: its length
 * @steps: entries that may still be visited
 */
struct walk {
	struct mlx5sim *m;
	const struct access *access;
	u8 *buf;
	u32 done;
	u64 run_addr;
	u32 run;
	s32 steps;
};

static enum xlt_status walk_key(struct walk *w, u32 key, u64 va, u32 len,
				u32 rights, u32 depth);

/* Move what was found */
static enum xlt_status flush(struct walk *w)
{
	u8 *buf = w->buf + w->done;
	u32 len = w->run;
	bool good;

	if (!len)
		return XLT_OK;
	w->run = 0;
	good = w->access->write ? dma_write(w->m, w->run_addr, buf, len) :
				  dma_read(w->m, w->run_addr, buf, len);
	if (!good)
		return XLT_ERROR;
	w->done += len;
	return XLT_OK;
}

/* The next @len bytes are at @addr */
static enum xlt_status found(struct walk *w, u64 addr, u32 len)
{
	if (w->run && addr != w->run_addr + w->run) {
		enum xlt_status status = flush(w);

		if (status != XLT_OK)
			return status;
	}
	if (!w->run)
		w->run_addr = addr;
	w->run += len;
	return XLT_OK;
}

static bool step(struct walk *w)
{
	budget.steps--;
	return w->steps-- > 0;
}

static enum xlt_status walk_mtt(struct walk *w, const struct mkey *key, u64 va,
				u32 len)
{
	u64 page = BIT_ULL(key->log_page);
	u64 off = va - key->start + (key->start & (page - 1));

	while (len) {
		u64 index = off >> key->log_page;
		u64 at = off & (page - 1);
		u32 part = min_of(len, page - at);
		enum xlt_status status;
		u64 entry;

		if (index >= mkey_entries(key) || !step(w))
			return XLT_ERROR;
		entry = get_be64(key->xlt + 8 * index);
		if (!(entry & (w->access->write ? MTT_WRITE : MTT_READ)))
			return XLT_FAULT;
		status = found(w, (entry & MTT_ADDRESS) + at, part);
		if (status != XLT_OK)
			return status;
		off += part;
		len -= part;
	}
	return XLT_OK;
}

static u32 inner_rights(const struct walk *w)
{
	return w->access->write ? RIGHT_LOCAL_WRITE : RIGHT_LOCAL_READ;
}

static enum xlt_status walk_ksm(struct walk *w, const struct mkey *key, u64 va,
				u32 len, u32 depth)
{
	u64 page = BIT_ULL(key->log_page);
	u64 off = va - key->start + (key->start & (page - 1));

	while (len) {
		u64 index = off >> key->log_page;
		u64 at = off & (page - 1);
		u32 part = min_of(len, page - at);
		enum xlt_status status;
		const u8 *entry;

		if (index >= mkey_entries(key) || !step(w))
			return XLT_ERROR;
		entry = key->xlt + OCTWORD * index;
		status = walk_key(w, get_be32(entry + KLM_KEY),
				  get_be64(entry + KLM_ADDRESS) + at, part,
				  inner_rights(w), depth + 1);
		if (status != XLT_OK)
			return status;
		off += part;
		len -= part;
	}
	return XLT_OK;
}

/*
 * Whether @room entries of a list begin with a whole repeat block, and one round of
 * it is as long as the block says.
 */
static bool repeat_good(struct walk *w, const u8 *block, u64 room)
{
	u64 round = get_be32(block + REPEAT_ROUND);
	u32 count = get_be16(block + REPEAT_ENTRIES);

	if (!round || count >= room)
		return false;
	for (u32 i = 1; i <= count; i++) {
		if (!step(w))
			return false;
		round -= get_be16(block + OCTWORD * i + REPEATED_LENGTH);
	}
	return !round;
}

/* @len bytes from @off on, all of them in the rounds of a good repeat block */
static enum xlt_status walk_repeat(struct walk *w, const u8 *block, u64 off,
				   u32 len, u32 depth)
{
	u64 round = off / get_be32(block + REPEAT_ROUND);
	u32 count = get_be16(block + REPEAT_ENTRIES);

	off %= get_be32(block + REPEAT_ROUND);
	for (u32 i = 0; len; i++) {
		const u8 *entry = block + OCTWORD * (1 + i % count);
		u64 to = get_be64(entry + KLM_ADDRESS) + (round + i / count) *
			 get_be16(entry + REPEATED_STRIDE);
		u32 piece = get_be16(entry + REPEATED_LENGTH);
		enum xlt_status status;
		u32 part;

		if (!step(w))
			return XLT_ERROR;
		if (off >= piece) {
			off -= piece;
			continue;
		}
		part = min_of(len, piece - off);
		status = walk_key(w, get_be32(entry + KLM_KEY), to + off, part,
				  inner_rights(w), depth + 1);
		if (status != XLT_OK)
			return status;
		off = 0;
		len -= part;
	}
	return XLT_OK;
}

static enum xlt_status walk_klm(struct walk *w, const struct mkey *key, u64 va,
				u32 len, u32 depth)
{
	u64 entries = mkey_entries(key);
	u64 off = va - key->start;

	for (u64 i = 0; len && i < entries; i++) {
		const u8 *entry = key->xlt + OCTWORD * i;
		u32 to = get_be32(entry + KLM_KEY);
		u64 piece = get_be32(entry);
		bool repeat = to == KLM_REPEAT;
		enum xlt_status status;
		u32 part;

		if (!step(w))
			return XLT_ERROR;
		if (repeat) {
			if (!repeat_good(w, entry, entries - i))
				return XLT_ERROR;
			piece *= get_be32(entry + REPEAT_COUNT);
			i += get_be16(entry + REPEAT_ENTRIES);
		} else if (!piece && to) {
			/* 0 means the maximum, but without a key nothing */
			piece = KLM_LENGTH_MAX;
		}
		if (off >= piece) {
			off -= piece;
			continue;
		}
		part = min_of(len, piece - off);
		if (repeat)
			status = walk_repeat(w, entry, off, part, depth);
		else
			status = walk_key(w, to,
					  get_be64(entry + KLM_ADDRESS) + off,
					  part, inner_rights(w), depth + 1);
		if (status != XLT_OK)
			return status;
		off = 0;
		len -= part;
	}
	return len ? XLT_ERROR : XLT_OK;
}

/* The null key: in the list of an implicit ODP key it marks what is not there */
static enum xlt_status walk_null(struct walk *w, u32 len, u32 depth)
{
	enum xlt_status status;

	if (depth)
		return XLT_FAULT;
	status = flush(w);
	if (status != XLT_OK)
		return status;
	if (!w->access->write)
		memset(w->buf + w->done, 0, len);
	w->done += len;
	return XLT_OK;
}

static bool allowed(const struct access *a, const struct mkey *key, u64 va,
		    u64 len, u32 rights)
{
	if ((key->rights & rights) != rights)
		return false;
	if (a->pd && (key->pd != a->pd ||
		      (key->qpn != ANY_QPN && key->qpn != a->qpn)))
		return false;
	return key->length64 ||
	       (va >= key->start && len <= key->len &&
		va - key->start <= key->len - len);
}

static enum xlt_status walk_key(struct walk *w, u32 keyval, u64 va, u32 len,
				u32 rights, u32 depth)
{
	const struct mkey *key;

	if (keyval == NULL_MKEY && cap(w->m, null_mkey))
		return walk_null(w, len, depth);
	key = mkey_find(w->m, keyval);
	if (!key || depth > DEPTH_MAX ||
	    !allowed(w->access, key, va, len, rights))
		return XLT_ERROR;
	switch (key->mode) {
	case MLX5_MKC_ACCESS_MODE_PA:
		return found(w, va, len);
	case MLX5_MKC_ACCESS_MODE_MTT:
		return walk_mtt(w, key, va, len);
	case MLX5_MKC_ACCESS_MODE_KLMS:
		return walk_klm(w, key, va, len, depth);
	case MLX5_MKC_ACCESS_MODE_KSM:
		return walk_ksm(w, key, va, len, depth);
	default:
		return XLT_ERROR;
	}
}

bool mem_allowed(struct mlx5sim *m, const struct access *a, u64 va, u64 len)
{
	const struct mkey *key = mkey_find(m, a->key);

	if (a->key == NULL_MKEY && cap(m, null_mkey))
		return true;
	return key && allowed(a, key, va, len, a->rights);
}

enum xlt_status mem_copy(struct mlx5sim *m, const struct access *a, u64 va,
			 void *buf, u32 len, u32 *done)
{
	struct walk w = {
		.m = m,
		.access = a,
		.buf = buf,
		.steps = BUDGET_STEPS,
	};
	enum xlt_status status = walk_key(&w, a->key, va, len, a->rights, 0);

	/* What came before a fault or an error is moved as well */
	if (flush(&w) != XLT_OK)
		status = XLT_ERROR;
	*done = w.done;
	return status;
}

bool mtt_span(const struct mkey *key, u64 index, struct span *span)
{
	u64 page = BIT_ULL(key->log_page);
	u64 first = key->start & (page - 1);
	u64 entry = get_be64(key->xlt + 8 * index);
	u64 from, to;

	/* In bytes from the start of the first page */
	if (index > UINT64_MAX >> key->log_page)
		return false;
	from = index << key->log_page;
	to = from + page;
	if (from < first)
		from = first;
	if (!key->length64 && to > first + key->len)
		to = first + key->len;
	if (from >= to || !(entry & (MTT_READ | MTT_WRITE)))
		return false;
	span->addr = (entry & MTT_ADDRESS) + (from & (page - 1));
	span->len = to - from;
	return true;
}
