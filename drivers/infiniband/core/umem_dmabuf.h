/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * What the files of ib_umem_dmabuf.ko share with each other and with their
 * KUnit test.
 */

#ifndef _UMEM_DMABUF_H
#define _UMEM_DMABUF_H

#include <rdma/ib_umem_dmabuf.h>

/*
 * Does the dma-buf core's answer mean no?  It hands on what the exporter's attach
 * and pin say, in ERR_PTR(): a positive number becomes a pointer to nowhere.
 */
static inline bool umem_dmabuf_says_no(const void *answer)
{
	return IS_ERR(answer) || (unsigned long)answer < PAGE_SIZE;
}

int umem_dmabuf_trim(struct ib_umem_dmabuf *umem_dmabuf, struct sg_table *sgt);
void umem_dmabuf_untrim(struct ib_umem_dmabuf *umem_dmabuf);

#endif /* _UMEM_DMABUF_H */
