// SPDX-License-Identifier: GPL-2.0
/* DEVX: registered user memory, for queues, doorbell records and keys. */
#include <stdlib.h>

#include "model.h"

#define LOG_PAGE_MIN		12	/* log_page_size counts from 4 KiB */
#define LOG_PAGE_MAX		52

u64 umem_addr(const struct umem *umem, u64 off)
{
	u64 at = off + umem->offset;

	if (at < off || at >> umem->log_page >= umem->count)
		return 0;
	return (umem->mtt[at >> umem->log_page] & MTT_ADDRESS) +
	       (at & (BIT_ULL(umem->log_page) - 1));
}

bool umem_writable(const struct umem *umem)
{
	for (u64 i = 0; i < umem->count; i++)
		if (!(umem->mtt[i] & MTT_WRITE))
			return false;
	return true;
}

bool umem_of_context(struct mlx5sim *m, bool valid, u32 id, struct umem **umem)
{
	*umem = valid ? object_get(m, &m->umems, id) : NULL;
	return !valid || *umem;
}

enum cmd_status cmd_create_umem(struct mlx5sim *m, struct cmd *c)
{
	const u8 *ctx = ifc_at(create_umem_in, c->in, umem);
	const u8 *mtt = ifc_at(create_umem_in, c->in, umem.mtt);
	u64 count = ifc_get(umem, ctx, num_of_mtt);
	u32 log_page = ifc_get(umem, ctx, log_page_size) + LOG_PAGE_MIN;
	u64 offset = ifc_get(umem, ctx, page_offset);
	struct umem *umem;

	if (!count || count > cmd_pas_count(c, mtt)) {
		broken(m, CHK_RING_PAGES, "UMEM: %llu entries, input has %u",
		       (unsigned long long)count, cmd_pas_count(c, mtt));
		return CMD_BAD_IN_LENGTH;
	}
	if (log_page > LOG_PAGE_MAX || offset >> log_page) {
		broken(m, CHK_CONTEXT, "UMEM: log page size %u, offset 0x%llx",
		       log_page, (unsigned long long)offset);
		return CMD_BAD_PARAM;
	}
	for (u64 i = 0; i < count; i++) {
		u64 entry = get_be64(mtt + 8 * i);

		if (!(entry & (BIT_ULL(log_page) - 1) &
		      ~(MTT_READ | MTT_WRITE)))
			continue;
		broken(m, CHK_MTT_ALIGN, "UMEM: entry 0x%llx, log page size %u",
		       (unsigned long long)entry, log_page);
		return CMD_BAD_PARAM;
	}
	umem = calloc(1, sizeof(*umem));
	if (!umem)
		return CMD_NO_RESOURCE;
	umem->mtt = calloc(count, sizeof(*umem->mtt));
	if (!umem->mtt || !table_add(&m->umems, &umem->obj)) {
		free(umem->mtt);
		free(umem);
		return CMD_NO_RESOURCE;
	}
	for (u64 i = 0; i < count; i++)
		umem->mtt[i] = get_be64(mtt + 8 * i);
	umem->obj.uid = c->uid;
	umem->log_page = log_page;
	umem->offset = offset;
	umem->count = count;
	ifc_set(create_umem_out, c->out, umem_id, umem->obj.number);
	trace(m, "\"event\":\"create_umem\",\"umem\":%u,\"log_page_size\":%u,\"offset\":%llu,\"entries\":%llu",
	      umem->obj.number, log_page, (unsigned long long)offset,
	      (unsigned long long)count);
	return CMD_OK;
}

enum cmd_status cmd_destroy_umem(struct mlx5sim *m, struct cmd *c)
{
	u32 number = ifc_get(destroy_umem_in, c->in, umem_id);
	struct umem *umem = object_to_destroy(m, &m->umems, number);

	if (!umem)
		return CMD_BAD_RES_STATE;
	free(umem->mtt);
	table_remove(&m->umems, &umem->obj);
	trace(m, "\"event\":\"destroy_umem\",\"umem\":%u", number);
	return CMD_OK;
}
