/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * What the files of ib_umem_dmabuf.ko share with each other and with their
 * KUnit test.
 */

#ifndef _UMEM_DMABUF_H
#define _UMEM_DMABUF_H

#include <rdma/ib_umem_dmabuf.h>

int umem_dmabuf_trim(struct ib_umem_dmabuf *umem_dmabuf, struct sg_table *sgt);
void umem_dmabuf_untrim(struct ib_umem_dmabuf *umem_dmabuf);

#endif /* _UMEM_DMABUF_H */
