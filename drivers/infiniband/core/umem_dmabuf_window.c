// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The window of an imported dma-buf in the exporter's scatter list.
 *
 * Lists come in any shape: entries of any length up to 4 GiB - 1, neighbours
 * that continue each other or do not, totals beyond 4 GiB.  Positions in the
 * window are therefore 64 bit everywhere, and what matters to a page table is
 * not an entry but a run: as many entries as continue each other on the bus.
 */

#include <linux/bitops.h>
#include <linux/export.h>
#include <linux/kernel.h>

#include "umem_dmabuf.h"

/* The next entry of the list, which begins at @pos of the dma-buf. */
static void layout_add(struct ib_umem_dmabuf *umem_dmabuf,
		       struct scatterlist *sg, u64 pos)
{
	struct ib_umem_dmabuf_layout *layout = &umem_dmabuf->layout;
	u64 first = umem_dmabuf->umem.address;
	u64 next = pos + sg_dma_len(sg);
	u64 from = max(pos, first);
	u64 dma, skew;

	if (next <= from || pos >= first + umem_dmabuf->umem.length)
		return;

	dma = sg_dma_address(sg) + (from - pos);
	pos = from - first;
	skew = dma - pos;
	if (!pos) {
		*layout = (struct ib_umem_dmabuf_layout){ .skew = skew };
	} else if (dma != layout->end) {
		if (!layout->border)
			layout->border = pos;
		layout->odd |= skew ^ layout->skew;
		layout->odd |= pos ^ layout->border;
	}
	layout->end = dma + (next - from);
}

/**
 * umem_dmabuf_trim - cut the exporter's list to the pages of the window
 * @umem_dmabuf: an import whose umem.address and umem.length say the window
 * @sgt: the exporter's list
 *
 * Changes address and length of the first and the last entry in place, so that
 * everything that walks &ib_umem_dmabuf.umem sees the window and nothing else.
 * umem_dmabuf_untrim() must run before the exporter sees its list again.
 *
 * Context: any; for a live import the reservation lock is held.
 * Return: 0, or -EINVAL (with @sgt untouched) if the list is shorter than the
 * window.
 */
int umem_dmabuf_trim(struct ib_umem_dmabuf *umem_dmabuf, struct sg_table *sgt)
{
	struct ib_umem *umem = &umem_dmabuf->umem;
	u64 end = (u64)umem->address + umem->length;
	u64 page_end = ALIGN(end, PAGE_SIZE);
	u64 start = ALIGN_DOWN(umem->address, PAGE_SIZE);
	struct scatterlist *sg, *first = NULL, *last = NULL;
	unsigned int i, nmap = 0;
	u64 first_offset = 0;
	u64 pos = 0;

	for_each_sgtable_dma_sg(sgt, sg, i) {
		u64 next = pos + sg_dma_len(sg);

		if (next > start) {
			if (!first) {
				first = sg;
				first_offset = start - pos;
			}
			layout_add(umem_dmabuf, sg, pos);
			last = sg;
			nmap++;
		}
		pos = next;
		if (pos >= page_end)
			break;
	}
	if (pos < end)
		return -EINVAL;

	umem_dmabuf->first_sg = first;
	umem_dmabuf->first_sg_offset = first_offset;
	umem_dmabuf->last_sg = last;
	umem_dmabuf->last_sg_trim = pos > page_end ? pos - page_end : 0;

	sg_dma_address(first) += umem_dmabuf->first_sg_offset;
	sg_dma_len(first) -= umem_dmabuf->first_sg_offset;
	sg_dma_len(last) -= umem_dmabuf->last_sg_trim;

	umem->sg_head.sgl = first;
	umem->sg_head.nents = nmap;
	umem->nmap = nmap;
	return 0;
}
EXPORT_SYMBOL_GPL(umem_dmabuf_trim);

/**
 * umem_dmabuf_untrim - give the exporter's list back as it came
 * @umem_dmabuf: an import that umem_dmabuf_trim() succeeded on
 *
 * Context: any; for a live import the reservation lock is held.
 */
void umem_dmabuf_untrim(struct ib_umem_dmabuf *umem_dmabuf)
{
	struct ib_umem *umem = &umem_dmabuf->umem;

	sg_dma_address(umem_dmabuf->first_sg) -= umem_dmabuf->first_sg_offset;
	sg_dma_len(umem_dmabuf->first_sg) += umem_dmabuf->first_sg_offset;
	sg_dma_len(umem_dmabuf->last_sg) += umem_dmabuf->last_sg_trim;

	umem_dmabuf->first_sg = NULL;
	umem_dmabuf->first_sg_offset = 0;
	umem_dmabuf->last_sg = NULL;
	umem_dmabuf->last_sg_trim = 0;

	umem->sg_head.sgl = NULL;
	umem->sg_head.nents = 0;
	umem->nmap = 0;
}
EXPORT_SYMBOL_GPL(umem_dmabuf_untrim);

/**
 * ib_umem_dmabuf_next_run - walk the window in stretches without a gap
 * @umem_dmabuf: a mapped import
 * @run: all zero to begin with; each call turns it into the next stretch
 *
 * The runs are exact to the byte: together they are the window, the first
 * starts at its offset, the last ends with its length.  A run may be longer
 * than 4 GiB, since entries that continue each other are one run.
 *
 * Context: any; the reservation lock is held.
 * Return: false when there are no more.
 */
bool ib_umem_dmabuf_next_run(const struct ib_umem_dmabuf *umem_dmabuf,
			     struct ib_umem_dmabuf_run *run)
{
	const struct ib_umem *umem = &umem_dmabuf->umem;
	u64 skip = 0;

	run->pos += run->length;
	if (run->pos >= umem->length)
		return false;

	if (!run->sg) {
		run->sg = umem_dmabuf->first_sg;
		skip = umem->address & ~PAGE_MASK;
	}
	while (skip >= sg_dma_len(run->sg)) {
		skip -= sg_dma_len(run->sg);
		run->sg = sg_next(run->sg);
	}

	run->dma = sg_dma_address(run->sg) + skip;
	run->length = sg_dma_len(run->sg) - skip;
	for (;;) {
		struct scatterlist *last = run->sg;

		run->length = min_t(u64, run->length, umem->length - run->pos);
		if (run->pos + run->length == umem->length)
			return true;
		run->sg = sg_next(last);
		if (sg_dma_len(run->sg) &&
		    sg_dma_address(run->sg) != run->dma + run->length)
			return true;
		run->length += sg_dma_len(run->sg);
	}
}
EXPORT_SYMBOL_GPL(ib_umem_dmabuf_next_run);

/**
 * ib_umem_dmabuf_find_best_pgsz - the largest page size that the layout allows
 * @umem_dmabuf: a mapped import
 * @pgsz_bitmap: the page sizes that the device has, each a bit of its own
 * @iova: address that the device will use for the first byte of the window
 *
 * A page size fits if every run sits at the same place in a page on the bus as
 * it does in @iova, and if runs meet at page boundaries only.  The first and
 * the last page may reach beyond the window: the key's own start and length
 * have to keep the device inside.  Costs the same for each window: the runs were
 * looked at when it was mapped.
 *
 * Context: any; the reservation lock is held.
 * Return: bytes, or 0 if no page size of the device fits.  That is the case for
 * a list with an entry that ends inside a page in the middle of the window,
 * which a page table cannot express; drivers answer -EINVAL.
 */
u64 ib_umem_dmabuf_find_best_pgsz(const struct ib_umem_dmabuf *umem_dmabuf,
				  u64 pgsz_bitmap, u64 iova)
{
	const struct ib_umem_dmabuf_layout *layout = &umem_dmabuf->layout;
	u64 odd = layout->odd | (layout->skew ^ iova);

	if (layout->border)
		odd |= iova + layout->border;
	if (odd)
		pgsz_bitmap &= GENMASK_ULL(__ffs64(odd), 0);
	return pgsz_bitmap ? BIT_ULL(fls64(pgsz_bitmap) - 1) : 0;
}
EXPORT_SYMBOL_GPL(ib_umem_dmabuf_find_best_pgsz);
