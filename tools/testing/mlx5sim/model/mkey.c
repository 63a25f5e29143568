// SPDX-License-Identifier: GPL-2.0
/* Memory keys: commands, context, what a live key must keep. */
#include <stdlib.h>

#include "model.h"

#define OCTWORD			16
#define XLT_GRANULE		4	/* octwords: tables come in 64 bytes */
#define LOG_PAGE_MIN		12

u32 mkey_key(const struct mkey *key)
{
	return key->obj.number << 8 | key->variant;
}

struct mkey *mkey_find(const struct mlx5sim *m, u32 key)
{
	struct mkey *k = table_find(&m->mkeys, key >> 8);

	return k && !k->free && k->variant == (key & 0xff) ? k : NULL;
}

u64 mkey_entries(const struct mkey *key)
{
	switch (key->mode) {
	case MLX5_MKC_ACCESS_MODE_MTT:
		return key->octwords * 2;
	case MLX5_MKC_ACCESS_MODE_KLMS:
	case MLX5_MKC_ACCESS_MODE_KSM:
		return key->octwords;
	default:
		return 0;
	}
}

void mkey_decode(struct mkey *key)
{
	const u8 *mkc = key->mkc;

	key->mode = ifc_get(mkc, mkc, access_mode_1_0) |
		    ifc_get(mkc, mkc, access_mode_4_2) << 2;
	key->pd_number = ifc_get(mkc, mkc, pd);
	key->qpn = ifc_get(mkc, mkc, qpn);
	key->rights =
		(ifc_get(mkc, mkc, lr) ? RIGHT_LOCAL_READ : 0) |
		(ifc_get(mkc, mkc, lw) ? RIGHT_LOCAL_WRITE : 0) |
		(ifc_get(mkc, mkc, rr) ? RIGHT_REMOTE_READ : 0) |
		(ifc_get(mkc, mkc, rw) ? RIGHT_REMOTE_WRITE : 0) |
		(ifc_get(mkc, mkc, a) ? RIGHT_ATOMIC : 0);
	key->log_page = ifc_get(mkc, mkc, log_page_size);
	key->start = ifc_get(mkc, mkc, start_addr);
	key->len = ifc_get(mkc, mkc, len);
	key->variant = ifc_get(mkc, mkc, mkey_7_0);
	key->length64 = ifc_get(mkc, mkc, length64);
	key->free = ifc_get(mkc, mkc, free);
	key->umr_en = ifc_get(mkc, mkc, umr_en);
	key->remote_inval = ifc_get(mkc, mkc, en_rinval);
}

u64 mkey_entries_reached(const struct mkey *key)
{
	u64 page = BIT_ULL(key->log_page);
	u64 first = key->start & (page - 1);

	if (key->length64)
		return mkey_entries(key);
	return key->len ? ((first + key->len - 1) >> key->log_page) + 1 : 0;
}

static bool mtt_aligned(struct mlx5sim *m, const struct mkey *key)
{
	u64 low = BIT_ULL(key->log_page) - 1;
	u64 needed = mkey_entries_reached(key);

	for (u64 i = 0; i < needed; i++) {
		u64 entry = get_be64(key->xlt + 8 * i);

		if (!(entry & low & ~(MTT_READ | MTT_WRITE)))
			continue;
		broken(m, CHK_MTT_ALIGN,
		       "key 0x%x, entry %llu: 0x%llx, log page size %u",
		       mkey_key(key), (unsigned long long)i,
		       (unsigned long long)entry, key->log_page);
		return false;
	}
	return true;
}

/* What a key must keep while it is not free */
static bool live_key_good(struct mlx5sim *m, const struct mkey *key)
{
	bool paged = key->mode == MLX5_MKC_ACCESS_MODE_MTT ||
		     key->mode == MLX5_MKC_ACCESS_MODE_KSM;

	if (key->mode > MLX5_MKC_ACCESS_MODE_KSM ||
	    (paged && key->log_page < LOG_PAGE_MIN) ||
	    (!key->length64 && key->start + key->len < key->start)) {
		broken(m, CHK_MKEY_CONTEXT,
		       "key 0x%x: mode %u, log page size %u, start 0x%llx, length 0x%llx",
		       mkey_key(key), key->mode, key->log_page,
		       (unsigned long long)key->start,
		       (unsigned long long)key->len);
		return false;
	}
	if (!paged)
		return true;
	if (mkey_entries_reached(key) > mkey_entries(key)) {
		broken(m, CHK_MKEY_SHORT,
		       "key 0x%x: %llu entries, start 0x%llx and length 0x%llx need %llu",
		       mkey_key(key), (unsigned long long)mkey_entries(key),
		       (unsigned long long)key->start,
		       (unsigned long long)key->len,
		       (unsigned long long)mkey_entries_reached(key));
		return false;
	}
	return key->mode != MLX5_MKC_ACCESS_MODE_MTT || mtt_aligned(m, key);
}

bool mkey_update(struct mlx5sim *m, struct mkey *key)
{
	struct pd *old = key->pd;

	mkey_decode(key);
	key->pd = NULL;
	if (old)
		old->obj.users--;
	if (key->free)
		return true;
	key->pd = object_get(m, &m->pds, key->pd_number);
	if (!key->pd)
		return false;
	key->pd->obj.users++;
	return live_key_good(m, key);
}

void mkey_trace(struct mlx5sim *m, const struct mkey *key, const char *what)
{
	trace(m,
	      "\"event\":\"%s\",\"key\":\"0x%x\",\"mode\":%u,\"free\":%u,\"pd\":%u,\"rights\":\"0x%x\",\"start\":\"0x%llx\",\"len\":\"0x%llx\",\"log_page_size\":%u,\"octwords\":%llu",
	      what, mkey_key(key), key->mode, key->free, key->pd_number,
	      key->rights, (unsigned long long)key->start,
	      (unsigned long long)key->len, key->log_page,
	      (unsigned long long)key->octwords);
}

/*
 * Entries of a table, as lines of the trace.  Entries whose addresses follow each
 * other in equal steps are one line.
 */
static void trace_mtts(struct mlx5sim *m, const struct mkey *key, u64 first,
		       u64 count)
{
	u64 at = first, run;

	while (at < first + count) {
		u64 entry = get_be64(key->xlt + 8 * at);
		u64 step = 0;

		for (run = 1; at + run < first + count; run++) {
			u64 next = get_be64(key->xlt + 8 * (at + run));

			if (run == 1)
				step = next - entry;
			if (next - entry != step * run ||
			    (next & ~MTT_ADDRESS) != (entry & ~MTT_ADDRESS))
				break;
		}
		trace(m,
		      "\"event\":\"xlt\",\"key\":\"0x%x\",\"index\":%llu,\"count\":%llu,\"addr\":\"0x%llx\",\"step\":\"0x%llx\",\"read\":%u,\"write\":%u",
		      mkey_key(key), (unsigned long long)at,
		      (unsigned long long)run,
		      (unsigned long long)(entry & MTT_ADDRESS),
		      (unsigned long long)(run > 1 ? step : 0),
		      !!(entry & MTT_READ), !!(entry & MTT_WRITE));
		at += run;
	}
}

static void trace_xlt(struct mlx5sim *m, const struct mkey *key, u64 octword,
		      u64 octwords)
{
	if (!m->ops->trace)
		return;
	if (key->mode == MLX5_MKC_ACCESS_MODE_MTT) {
		trace_mtts(m, key, octword * 2, octwords * 2);
		return;
	}
	for (u64 i = octword; i < octword + octwords; i++) {
		const u8 *entry = key->xlt + OCTWORD * i;

		trace(m,
		      "\"event\":\"xlt\",\"key\":\"0x%x\",\"index\":%llu,\"count\":1,\"bytes\":%u,\"to\":\"0x%x\",\"addr\":\"0x%llx\"",
		      mkey_key(key), (unsigned long long)i, get_be32(entry),
		      get_be32(entry + 4),
		      (unsigned long long)get_be64(entry + 8));
	}
}

void mkey_write_xlt(struct mlx5sim *m, struct mkey *key, u64 octword,
		    const u8 *entries, u64 octwords)
{
	bool mtt = key->mode == MLX5_MKC_ACCESS_MODE_MTT;

	memcpy(key->xlt + octword * OCTWORD, entries, octwords * OCTWORD);
	m->stats.xlt_entries += mtt ? octwords * 2 : octwords;
	trace_xlt(m, key, octword, octwords);
}

/* The table as the command gives it: in the input, or as a UMEM */
static enum cmd_status initial_xlt(struct mlx5sim *m, struct cmd *c,
				   struct mkey *key)
{
	const u8 *list = ifc_at(create_mkey_in, c->in, klm_pas_mtt);
	/* DEVX: UMEM and offset, without a name in the kernel's header */
	const u8 *umem_id = ifc_at(create_mkey_in, c->in,
				   translations_octword_actual_size) + 4;
	u64 given = ifc_get(create_mkey_in, c->in,
			    translations_octword_actual_size);
	u64 offset = get_be64(umem_id + 4);
	u64 room = c->in_len > ifc_bytes(create_mkey_in) ?
		   (c->in_len - ifc_bytes(create_mkey_in)) / OCTWORD : 0;

	if (ifc_get(create_mkey_in, c->in, mkey_umem_valid)) {
		struct umem *umem = object_get(m, &m->umems,
					       get_be32(umem_id));

		if (!umem)
			return CMD_BAD_RESOURCE;
		if (offset % 8 || offset / 8 > umem->count ||
		    umem->count - offset / 8 > key->octwords * 2) {
			broken(m, CHK_XLT_BOUNDS,
			       "UMEM %u with %llu entries for %llu octwords",
			       umem->obj.number,
			       (unsigned long long)umem->count,
			       (unsigned long long)key->octwords);
			return CMD_BAD_SIZE;
		}
		for (u64 i = offset / 8; i < umem->count; i++)
			put_be64(key->xlt + i * 8 - offset, umem->mtt[i]);
		umem->obj.users++;
		key->umem = umem;
		return CMD_OK;
	}
	if (given > key->octwords || given > room) {
		broken(m, CHK_XLT_BOUNDS,
		       "%llu octwords given, table has %llu, input %llu",
		       (unsigned long long)given,
		       (unsigned long long)key->octwords,
		       (unsigned long long)room);
		return CMD_BAD_SIZE;
	}
	if (given)
		mkey_write_xlt(m, key, 0, list, given);
	return CMD_OK;
}

static enum cmd_status mkey_init(struct mlx5sim *m, struct cmd *c,
				 struct mkey *key)
{
	enum cmd_status status;
	u64 size = ifc_get(mkc, key->mkc, translations_octword_size);
	u64 bytes;

	/* A driver rounds what it writes up to a granule, so tables end so */
	key->octwords = round_up_to(size, XLT_GRANULE);
	bytes = key->octwords * OCTWORD;
	if (bytes > XLT_BYTES_MAX - m->xlt_bytes)
		return CMD_LIMIT;
	key->xlt = calloc(1, bytes + OCTWORD);
	if (!key->xlt || !table_add(&m->mkeys, &key->obj))
		return CMD_NO_RESOURCE;
	m->xlt_bytes += bytes;
	key->obj.uid = c->uid;
	mkey_decode(key);
	mkey_trace(m, key, "create_mkey");
	status = initial_xlt(m, c, key);
	if (status == CMD_OK && !mkey_update(m, key))
		status = CMD_BAD_PARAM;
	return status;
}

enum cmd_status cmd_create_mkey(struct mlx5sim *m, struct cmd *c)
{
	struct mkey *key = calloc(1, sizeof(*key));
	enum cmd_status status;

	if (!key)
		return CMD_NO_RESOURCE;
	memcpy(key->mkc, ifc_at(create_mkey_in, c->in, memory_key_mkey_entry),
	       sizeof(key->mkc));
	status = mkey_init(m, c, key);
	if (status == CMD_OK) {
		m->stats.mkeys++;
		ifc_set(create_mkey_out, c->out, mkey_index, key->obj.number);
	} else if (key->obj.number) {
		mkey_destroy(m, key);
	} else {
		free(key->xlt);
		free(key);
	}
	return status;
}

void mkey_destroy(struct mlx5sim *m, struct mkey *key)
{
	if (key->pd)
		key->pd->obj.users--;
	if (key->umem)
		key->umem->obj.users--;
	m->xlt_bytes -= key->octwords * OCTWORD;
	free(key->xlt);
	table_remove(&m->mkeys, &key->obj);
}

enum cmd_status cmd_destroy_mkey(struct mlx5sim *m, struct cmd *c)
{
	struct mkey *key = object_to_destroy(m, &m->mkeys,
					     ifc_get(destroy_mkey_in, c->in,
						     mkey_index));

	if (!key)
		return CMD_BAD_RES_STATE;
	mkey_trace(m, key, "destroy_mkey");
	mkey_destroy(m, key);
	return CMD_OK;
}

enum cmd_status cmd_query_mkey(struct mlx5sim *m, struct cmd *c)
{
	struct mkey *key = object_get(m, &m->mkeys,
				      ifc_get(query_mkey_in, c->in,
					      mkey_index));
	u8 *mkc = ifc_at(query_mkey_out, c->out, memory_key_mkey_entry);
	u8 *xlt = ifc_at(query_mkey_out, c->out, bsf0_klm0_pas_mtt0_1);
	u64 room = c->out + c->out_len > xlt ? c->out + c->out_len - xlt : 0;

	if (!key)
		return CMD_BAD_RESOURCE;
	memcpy(mkc, key->mkc, sizeof(key->mkc));
	memcpy(xlt, key->xlt, min_of(room, key->octwords * OCTWORD));
	return CMD_OK;
}
