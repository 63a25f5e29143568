/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* MRs whose memory is a dma-buf */
#ifndef RXE_DMABUF_H
#define RXE_DMABUF_H

#if IS_ENABLED(CONFIG_RDMA_RXE_DMABUF)
void rxe_dmabuf_init(struct rxe_dev *rxe);
void rxe_dmabuf_dereg(struct rxe_mem *mem);
void rxe_dmabuf_cleanup(struct rxe_mem *mem);
int rxe_dmabuf_copy(struct rxe_mem *mem, u64 iova, void *addr, int length,
		    enum copy_direction dir, u32 *crcp);
int rxe_dmabuf_atomic(struct rxe_mem *mem, struct rxe_pkt_info *pkt,
		      u64 *orig);
#else
static inline void rxe_dmabuf_init(struct rxe_dev *rxe) { }
static inline void rxe_dmabuf_dereg(struct rxe_mem *mem) { }
static inline void rxe_dmabuf_cleanup(struct rxe_mem *mem) { }

static inline int rxe_dmabuf_copy(struct rxe_mem *mem, u64 iova, void *addr,
				  int length, enum copy_direction dir,
				  u32 *crcp)
{
	return -EOPNOTSUPP;
}

static inline int rxe_dmabuf_atomic(struct rxe_mem *mem,
				    struct rxe_pkt_info *pkt, u64 *orig)
{
	return -EOPNOTSUPP;
}
#endif

#endif /* RXE_DMABUF_H */
