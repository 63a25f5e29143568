// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * MRs whose memory is a dma-buf, e.g. of a GPU.
 *
 * What the memory is and how it is reached is ib_dmabuf_cpu's business; here is
 * how such an MR is made, and what takes the place of the page tables of
 * rxe_mr.c when data moves.
 *
 * A responder resource may hold on to an MR for as long as its peer might ask
 * for a replay, far beyond dereg.  So dereg gives the memory back, and only what
 * answers latecomers lives until the last reference, which may go in a softirq.
 */
#include <rdma/ib_dmabuf_cpu.h>
#include <rdma/rdma_netlink.h>
#include <rdma/uverbs_dmabuf_mr.h>
#include "rxe.h"
#include "rxe_loc.h"
#include "rxe_dmabuf.h"

static struct ib_mr *rxe_reg_dmabuf_mr(struct ib_pd *ibpd, u64 offset,
				       u64 length, u64 iova, int fd,
				       int access)
{
	struct rxe_dev *rxe = to_rdev(ibpd->device);
	struct rxe_pd *pd = to_rpd(ibpd);
	struct ib_dmabuf_cpu *dmabuf;
	struct rxe_mem *mem;

	dmabuf = ib_dmabuf_cpu_get(ibpd->device, offset, length, fd);
	if (IS_ERR(dmabuf))
		return ERR_CAST(dmabuf);

	mem = rxe_alloc(&rxe->mr_pool);
	if (!mem) {
		ib_dmabuf_cpu_close(dmabuf);
		ib_dmabuf_cpu_free(dmabuf);
		return ERR_PTR(-ENOMEM);
	}

	/* Peers can find the MR by its index, but not use it until it is valid. */
	mem->dmabuf = dmabuf;
	rxe_add_index(mem);
	rxe_add_ref(pd);
	rxe_mem_init(access, mem);

	mem->ibmr.device = ibpd->device;
	mem->ibmr.pd = ibpd;
	mem->ibmr.iova = iova;
	mem->ibmr.length = length;
	mem->access = access;
	mem->iova = iova;
	mem->length = length;
	mem->type = RXE_MEM_TYPE_MR;
	mem->state = RXE_MEM_STATE_VALID;
	return &mem->ibmr;
}

/**
 * rxe_dmabuf_dereg - give the memory of an MR back
 * @mem: MR that is being deregistered, of any kind
 *
 * Waits for accesses that run and for those who dump the MR, but not for
 * references to @mem.  May sleep.
 */
void rxe_dmabuf_dereg(struct rxe_mem *mem)
{
	/* fill_res_mr_entry looks at MRs of any kind */
	uverbs_untrack_dmabuf_mr(&mem->ibmr);
	if (mem->dmabuf)
		ib_dmabuf_cpu_close(mem->dmabuf);
}

/**
 * rxe_dmabuf_cleanup - free what outlived the dereg of an MR
 * @mem: MR without references, of any kind
 *
 * Any context.
 */
void rxe_dmabuf_cleanup(struct rxe_mem *mem)
{
	ib_dmabuf_cpu_free(mem->dmabuf);
}

/**
 * rxe_dmabuf_copy - move data between a packet and a dma-buf MR
 * @mem: the MR
 * @iova: first address, which the caller has checked to be in the MR
 * @addr: first byte in the packet
 * @length: bytes
 * @dir: which way
 * @crcp: checksum to continue over the data, or NULL
 *
 * The checksum is computed over the packet: the memory may be slow to read back
 * and change meanwhile.  Any context but hard interrupts.
 *
 * Return: 0, or -EKEYREVOKED if the MR has lost its memory.
 */
int rxe_dmabuf_copy(struct rxe_mem *mem, u64 iova, void *addr, int length,
		    enum copy_direction dir, u32 *crcp)
{
	u64 offset = iova - mem->iova;
	int err;

	if (dir == to_mem_obj)
		err = ib_dmabuf_cpu_write(mem->dmabuf, offset, addr, length);
	else
		err = ib_dmabuf_cpu_read(mem->dmabuf, offset, addr, length);
	if (!err && crcp)
		*crcp = rxe_crc32(to_rdev(mem->ibmr.device), *crcp, addr,
				  length);
	return err;
}

/**
 * rxe_dmabuf_atomic - execute an atomic request on a dma-buf MR
 * @mem: the MR
 * @pkt: the request, whose range the caller has checked
 * @orig: gets the value before
 *
 * The caller holds the lock that makes atomic operations of the device atomic.
 *
 * Return: 0, -EINVAL if the address is not aligned, -EKEYREVOKED if the MR has
 * lost its memory.
 */
int rxe_dmabuf_atomic(struct rxe_mem *mem, struct rxe_pkt_info *pkt, u64 *orig)
{
	u64 offset = atmeth_va(pkt) - mem->iova;
	u64 operand = atmeth_swap_add(pkt);

	if (pkt->opcode == IB_OPCODE_RC_COMPARE_SWAP ||
	    pkt->opcode == IB_OPCODE_RD_COMPARE_SWAP)
		return ib_dmabuf_cpu_cmp_swap(mem->dmabuf, offset,
					      atmeth_comp(pkt), operand, orig);
	return ib_dmabuf_cpu_fetch_add(mem->dmabuf, offset, operand, orig);
}

/* `rdma resource show mr -dd` */
static int rxe_dmabuf_fill_res(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct rxe_mem *mem = to_rmr(ibmr);
	struct ib_dmabuf_cpu_info info;
	struct nlattr *table;

	if (!mem->dmabuf)
		return 0;

	ib_dmabuf_cpu_query(mem->dmabuf, &info);
	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	if (!table)
		return -EMSGSIZE;
	if (rdma_nl_put_driver_string(msg, "dmabuf_exporter", info.exporter) ||
	    rdma_nl_put_driver_string(msg, "dmabuf_state", info.state) ||
	    rdma_nl_put_driver_u64(msg, "dmabuf_inode", info.inode) ||
	    rdma_nl_put_driver_u64(msg, "dmabuf_offset", info.offset) ||
	    rdma_nl_put_driver_u64(msg, "dmabuf_copies", info.copies) ||
	    rdma_nl_put_driver_u64(msg, "dmabuf_bytes", info.bytes)) {
		nla_nest_cancel(msg, table);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, table);
	return 0;
}

static const struct ib_device_ops rxe_dmabuf_ops = {
	.fill_res_mr_entry = rxe_dmabuf_fill_res,
};

DECLARE_UVERBS_DMABUF_MR(rxe_dmabuf_mr, rxe_reg_dmabuf_mr);

static const struct uapi_definition rxe_dmabuf_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_MR, &rxe_dmabuf_mr),
	{},
};

/**
 * rxe_dmabuf_init - give a device the method that registers dma-buf MRs
 * @rxe: device, not registered yet: registration is what looks at the methods
 */
void rxe_dmabuf_init(struct rxe_dev *rxe)
{
	rxe->ib_dev.driver_def = rxe_dmabuf_defs;
	ib_set_device_ops(&rxe->ib_dev, &rxe_dmabuf_ops);
}
