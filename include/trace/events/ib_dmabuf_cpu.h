/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM ib_dmabuf_cpu

#if !defined(_TRACE_IB_DMABUF_CPU_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_IB_DMABUF_CPU_H

#include <linux/dma-buf.h>
#include <linux/fs.h>
#include <linux/tracepoint.h>
#include <rdma/ib_verbs.h>

/* A dma-buf is named by its inode number, which fstat() of the fd gives, too. */
DECLARE_EVENT_CLASS(ib_dmabuf_cpu,
	TP_PROTO(const struct ib_device *device, const struct dma_buf *dmabuf,
		 u64 offset, u64 length),

	TP_ARGS(device, dmabuf, offset, length),

	TP_STRUCT__entry(
		__string(device, dev_name(&device->dev))
		__string(exporter, dmabuf->exp_name)
		__field(u64, inode)
		__field(u64, offset)
		__field(u64, length)
	),

	TP_fast_assign(
		__assign_str(device, dev_name(&device->dev));
		__assign_str(exporter, dmabuf->exp_name);
		__entry->inode = file_inode(dmabuf->file)->i_ino;
		__entry->offset = offset;
		__entry->length = length;
	),

	TP_printk("dev=%s exporter=%s inode=%llu offset=%llu length=%llu",
		  __get_str(device), __get_str(exporter), __entry->inode,
		  __entry->offset, __entry->length)
);

DEFINE_EVENT(ib_dmabuf_cpu, ib_dmabuf_cpu_open,
	TP_PROTO(const struct ib_device *device, const struct dma_buf *dmabuf,
		 u64 offset, u64 length),
	TP_ARGS(device, dmabuf, offset, length)
);

DEFINE_EVENT(ib_dmabuf_cpu, ib_dmabuf_cpu_revoke,
	TP_PROTO(const struct ib_device *device, const struct dma_buf *dmabuf,
		 u64 offset, u64 length),
	TP_ARGS(device, dmabuf, offset, length)
);

DEFINE_EVENT(ib_dmabuf_cpu, ib_dmabuf_cpu_close,
	TP_PROTO(const struct ib_device *device, const struct dma_buf *dmabuf,
		 u64 offset, u64 length),
	TP_ARGS(device, dmabuf, offset, length)
);

#endif /* _TRACE_IB_DMABUF_CPU_H */

#include <trace/define_trace.h>
