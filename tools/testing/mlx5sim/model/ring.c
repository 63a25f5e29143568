// SPDX-License-Identifier: GPL-2.0
/* Buffers of queues: pages of the driver, or of a DEVX user's memory. */
#include <stdlib.h>

#include "model.h"

#define LOG_PAGE_MIN		12
#define LOG_PAGE_MAX		(LOG_PAGE_MIN + 31)
#define LOG_OFFSET_QUANTA	6	/* page_offset counts 1/64 of a page */

static enum cmd_status ring_from_umem(struct mlx5sim *m, struct ring *r,
				      const struct pages_arg *arg, u64 bytes)
{
	u64 last = arg->umem_offset + bytes - 1;

	if (last < arg->umem_offset || !umem_addr(arg->umem, last)) {
		broken(m, CHK_RING_PAGES, "%llu bytes at 0x%llx of UMEM %u",
		       (unsigned long long)bytes,
		       (unsigned long long)arg->umem_offset,
		       arg->umem->obj.number);
		return CMD_BAD_SIZE;
	}
	r->log_page = arg->umem->log_page;
	r->offset = arg->umem_offset + arg->umem->offset;
	r->pages = arg->umem->count;
	r->page = calloc(r->pages, sizeof(*r->page));
	if (!r->page)
		return CMD_NO_RESOURCE;
	for (u32 i = 0; i < r->pages; i++)
		r->page[i] = arg->umem->mtt[i] & MTT_ADDRESS;
	return CMD_OK;
}

enum cmd_status ring_init(struct mlx5sim *m, struct ring *r,
			  const struct pages_arg *arg, u64 bytes)
{
	u64 pages;

	memset(r, 0, sizeof(*r));
	if (!bytes)
		return CMD_OK;
	if (arg->umem)
		return ring_from_umem(m, r, arg, bytes);
	r->log_page = LOG_PAGE_MIN + arg->log_page_size;
	if (r->log_page > LOG_PAGE_MAX) {
		broken(m, CHK_RING_PAGES, "log page size %u", r->log_page);
		return CMD_BAD_SIZE;
	}
	r->offset = (u64)arg->page_offset << (r->log_page - LOG_OFFSET_QUANTA);
	pages = (r->offset + bytes + BIT_ULL(r->log_page) - 1) >> r->log_page;
	if (pages > arg->count) {
		broken(m, CHK_RING_PAGES, "%llu pages needed, %u given",
		       (unsigned long long)pages, arg->count);
		return CMD_BAD_SIZE;
	}
	r->page = calloc(pages, sizeof(*r->page));
	if (!r->page)
		return CMD_NO_RESOURCE;
	r->pages = pages;
	for (u32 i = 0; i < pages; i++) {
		u64 page = get_be64(arg->pas + 8 * i);

		/* The low bits of an entry may tell that it is valid */
		r->page[i] = page & MTT_ADDRESS;
		if (!r->page[i] ||
		    (r->page[i] & (BIT_ULL(r->log_page) - 1))) {
			broken(m, CHK_RING_PAGES,
			       "page %u at 0x%llx, log page size %u", i,
			       (unsigned long long)page, r->log_page);
			ring_free(r);
			return CMD_BAD_PARAM;
		}
	}
	return CMD_OK;
}

void ring_free(struct ring *r)
{
	free(r->page);
	memset(r, 0, sizeof(*r));
}

/* Bytes from @off to the end of its page, and where they are */
static u32 ring_piece(const struct ring *r, u64 off, u32 len, u64 *addr)
{
	u64 at = r->offset + off;
	u64 in_page = at & (BIT_ULL(r->log_page) - 1);

	*addr = r->page[at >> r->log_page] + in_page;
	return min_of(len, BIT_ULL(r->log_page) - in_page);
}

bool ring_read(struct mlx5sim *m, const struct ring *r, u64 off, void *buf,
	       u32 len)
{
	u8 *p = buf;

	while (len) {
		u64 addr;
		u32 part = ring_piece(r, off, len, &addr);

		if (!dma_read(m, addr, p, part))
			return false;
		p += part;
		off += part;
		len -= part;
	}
	return true;
}

bool ring_write(struct mlx5sim *m, const struct ring *r, u64 off,
		const void *buf, u32 len)
{
	const u8 *p = buf;

	while (len) {
		u64 addr;
		u32 part = ring_piece(r, off, len, &addr);

		if (!dma_write(m, addr, p, part))
			return false;
		p += part;
		off += part;
		len -= part;
	}
	return true;
}

bool doorbell_record(struct mlx5sim *m, u64 dbr_addr, const struct umem *umem,
		     u64 *addr)
{
	*addr = umem ? umem_addr(umem, dbr_addr) : dbr_addr;
	if (*addr && *addr % 4 == 0)
		return true;
	broken(m, CHK_DOORBELL_RECORD, "0x%llx%s",
	       (unsigned long long)dbr_addr, umem ? " of a UMEM" : "");
	return false;
}
