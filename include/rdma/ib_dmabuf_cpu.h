/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
#ifndef _RDMA_IB_DMABUF_CPU_H
#define _RDMA_IB_DMABUF_CPU_H

#include <linux/types.h>

struct ib_device;
struct ib_dmabuf_cpu;

/**
 * struct ib_dmabuf_cpu_info - what resource tracking shows of a buffer
 * @exporter: name of the exporter; valid until ib_dmabuf_cpu_close()
 * @state: "static" (the exporter cannot take the memory away), "pinned" or
 *	"revoked"; a constant string
 * @inode: inode number of the dma-buf
 * @offset: first byte of the window, in bytes from the start of the dma-buf
 * @copies: accesses made so far, atomic operations included
 * @bytes: bytes that these accesses moved
 */
struct ib_dmabuf_cpu_info {
	const char *exporter;
	const char *state;
	u64 inode;
	u64 offset;
	u64 copies;
	u64 bytes;
};

struct ib_dmabuf_cpu *ib_dmabuf_cpu_get(struct ib_device *ibdev, u64 offset,
					u64 length, int fd);
void ib_dmabuf_cpu_close(struct ib_dmabuf_cpu *buf);
void ib_dmabuf_cpu_free(struct ib_dmabuf_cpu *buf);

int ib_dmabuf_cpu_write(struct ib_dmabuf_cpu *buf, u64 offset,
			const void *src, size_t length);
int ib_dmabuf_cpu_read(struct ib_dmabuf_cpu *buf, u64 offset, void *dst,
		       size_t length);
int ib_dmabuf_cpu_fetch_add(struct ib_dmabuf_cpu *buf, u64 offset, u64 add,
			    u64 *orig);
int ib_dmabuf_cpu_cmp_swap(struct ib_dmabuf_cpu *buf, u64 offset, u64 compare,
			   u64 swap, u64 *orig);

void ib_dmabuf_cpu_query(const struct ib_dmabuf_cpu *buf,
			 struct ib_dmabuf_cpu_info *info);

#endif /* _RDMA_IB_DMABUF_CPU_H */
