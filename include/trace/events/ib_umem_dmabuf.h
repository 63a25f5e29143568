/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM ib_umem_dmabuf

#if !defined(_TRACE_IB_UMEM_DMABUF_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_IB_UMEM_DMABUF_H

#include <linux/dma-buf.h>
#include <linux/fs.h>
#include <linux/tracepoint.h>
#include <rdma/ib_umem_dmabuf.h>
#include <rdma/ib_verbs.h>

TRACE_DEFINE_ENUM(IB_UMEM_DMABUF_DYNAMIC);
TRACE_DEFINE_ENUM(IB_UMEM_DMABUF_PINNED);
TRACE_DEFINE_ENUM(IB_UMEM_DMABUF_REVOCABLE);

#define show_umem_dmabuf_contract(contract)				\
	__print_symbolic(contract,					\
			 { IB_UMEM_DMABUF_DYNAMIC, "dynamic" },		\
			 { IB_UMEM_DMABUF_PINNED, "pinned" },		\
			 { IB_UMEM_DMABUF_REVOCABLE, "revocable" })

/* A dma-buf is named by its inode number, which fstat() of the fd gives, too. */
DECLARE_EVENT_CLASS(ib_umem_dmabuf,
		    TP_PROTO(const struct ib_umem_dmabuf *umem_dmabuf),
		    TP_ARGS(umem_dmabuf),
		    TP_STRUCT__entry(__string(device, dev_name(&umem_dmabuf->umem.ibdev->dev))
				     __string(exporter, umem_dmabuf->dmabuf->exp_name)
				     __field(u64, inode)
				     __field(u64, offset)
				     __field(u64, length)
				     __field(u64, maps)
				     __field(u64, moves)
				     __field(int, contract)
				     __field(int, nmap)
				     __field(bool, pinned)
				     __field(bool, peer2peer)
		    ),
		    TP_fast_assign(__assign_str(device, dev_name(&umem_dmabuf->umem.ibdev->dev));
				   __assign_str(exporter, umem_dmabuf->dmabuf->exp_name);
				   __entry->inode = file_inode(umem_dmabuf->dmabuf->file)->i_ino;
				   __entry->offset = umem_dmabuf->umem.address;
				   __entry->length = umem_dmabuf->umem.length;
				   __entry->maps = umem_dmabuf->maps;
				   __entry->moves = umem_dmabuf->moves;
				   __entry->contract = umem_dmabuf->contract;
				   __entry->nmap = umem_dmabuf->umem.nmap;
				   __entry->pinned = umem_dmabuf->pinned;
				   __entry->peer2peer = umem_dmabuf->attach &&
							umem_dmabuf->attach->peer2peer;
		    ),
		    TP_printk("dev=%s exporter=%s inode=%llu offset=%llu length=%llu contract=%s p2p=%d pinned=%d nmap=%d maps=%llu moves=%llu",
			      __get_str(device), __get_str(exporter),
			      __entry->inode, __entry->offset, __entry->length,
			      show_umem_dmabuf_contract(__entry->contract),
			      __entry->peer2peer, __entry->pinned,
			      __entry->nmap, __entry->maps, __entry->moves)
);

DEFINE_EVENT(ib_umem_dmabuf, ib_umem_dmabuf_attach,
	     TP_PROTO(const struct ib_umem_dmabuf *umem_dmabuf),
	     TP_ARGS(umem_dmabuf)
);

DEFINE_EVENT(ib_umem_dmabuf, ib_umem_dmabuf_map,
	     TP_PROTO(const struct ib_umem_dmabuf *umem_dmabuf),
	     TP_ARGS(umem_dmabuf)
);

DEFINE_EVENT(ib_umem_dmabuf, ib_umem_dmabuf_unmap,
	     TP_PROTO(const struct ib_umem_dmabuf *umem_dmabuf),
	     TP_ARGS(umem_dmabuf)
);

DEFINE_EVENT(ib_umem_dmabuf, ib_umem_dmabuf_move,
	     TP_PROTO(const struct ib_umem_dmabuf *umem_dmabuf),
	     TP_ARGS(umem_dmabuf)
);

DEFINE_EVENT(ib_umem_dmabuf, ib_umem_dmabuf_revoke,
	     TP_PROTO(const struct ib_umem_dmabuf *umem_dmabuf),
	     TP_ARGS(umem_dmabuf)
);

TRACE_EVENT(ib_umem_dmabuf_refuse,
	    TP_PROTO(const struct ib_device *device, const char *layer,
		     long cause, int err),
	    TP_ARGS(device, layer, cause, err),
	    TP_STRUCT__entry(__string(device, dev_name(&device->dev))
			     __string(layer, layer)
			     __field(long, cause)
			     __field(int, err)
	    ),
	    TP_fast_assign(__assign_str(device, dev_name(&device->dev));
			   __assign_str(layer, layer);
			   __entry->cause = cause;
			   __entry->err = err;
	    ),
	    TP_printk("dev=%s layer=%s cause=%ld err=%d", __get_str(device),
		      __get_str(layer), __entry->cause, __entry->err)
);

#endif /* _TRACE_IB_UMEM_DMABUF_H */

#include <trace/define_trace.h>
