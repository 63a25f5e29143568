// SPDX-License-Identifier: GPL-2.0
/*
 * Work requests: taking them apart.
 *
 * A send request is a list of segments of 16 bytes: control first, then what the
 * transport and the operation need, then local memory.
 */
#include "model.h"

#define SEG			16

/* Control segment */
#define CTRL_INDEX		1	/* u16 */
#define CTRL_OPCODE		3
#define CTRL_QPN_DS		4
#define CTRL_FM_CE_SE		11
#define CTRL_IMM		12
#define CE_SHIFT		2
#define CE_MASK			0x3
#define CE_ALWAYS		2
#define SE_SOLICITED		0x2

/* Address vector of a datagram: the second half is there if a flag says so */
#define AV_HALF			16
#define AV_FULL			48
#define AV_DQPN			8
#define AV_DQPN_FULL		BIT(31)
#define INLINE_FLAG		BIT(31)
#define INLINE_LENGTH_MASK	0x3ffu
#define LENGTH_MAX		BIT(31)	/* what a length of 0 means */

static bool has_remote_address(u8 opcode)
{
	return opcode == WQE_RDMA_WRITE || opcode == WQE_RDMA_WRITE_IMM ||
	       opcode == WQE_RDMA_READ || opcode == WQE_ATOMIC_CS ||
	       opcode == WQE_ATOMIC_FA;
}

/* Local memory: segments from @at on */
static const char *parse_sges(struct send_wqe *w, u32 at)
{
	while (at + SEG <= w->bytes) {
		const u8 *seg = w->raw + at;
		struct sge *sge = &w->sge[w->sges];
		u32 count = get_be32(seg);

		if (w->sges == WQE_MAX_SGE)
			return "too many segments";
		memset(sge, 0, sizeof(*sge));
		if (count & INLINE_FLAG) {
			sge->len = count & INLINE_LENGTH_MASK;
			sge->data = seg + 4;
			if (at + 4 + sge->len > w->bytes)
				return "inline data beyond the end";
			at += round_up_to(4 + sge->len, SEG);
		} else {
			sge->len = count ? count : LENGTH_MAX;
			sge->key = get_be32(seg + 4);
			sge->addr = get_be64(seg + 8);
			at += SEG;
		}
		w->length += sge->len;
		w->sges++;
	}
	return NULL;
}

const char *wqe_parse(struct send_wqe *w, u32 qp_type)
{
	const u8 *seg = w->raw + SEG;
	u32 need = SEG;

	w->index = get_be16(w->raw + CTRL_INDEX);
	w->opcode = w->raw[CTRL_OPCODE];
	w->qpn = get_be32(w->raw + CTRL_QPN_DS) >> 8;
	w->signaled = (w->raw[CTRL_FM_CE_SE] >> CE_SHIFT & CE_MASK) >=
		      CE_ALWAYS;
	w->solicited = w->raw[CTRL_FM_CE_SE] & SE_SOLICITED;
	w->imm = get_be32(w->raw + CTRL_IMM);
	w->sges = 0;
	w->length = 0;
	w->remote_va = 0;
	w->rkey = 0;
	if (w->opcode == WQE_NOP || w->opcode == WQE_UMR ||
	    w->opcode == WQE_LOCAL_INV)
		return NULL;
	if (qp_is_datagram(qp_type)) {
		w->av = seg;
		w->av_full = get_be32(seg + AV_DQPN) & AV_DQPN_FULL;
		need += w->av_full ? AV_FULL : AV_HALF;
		seg = w->raw + need;
	}
	if (qp_type == MLX5_QPC_ST_XRC) {
		w->xrc_srqn = get_be32(seg) & 0xffffff;
		need += SEG;
		seg += SEG;
	}
	if (has_remote_address(w->opcode)) {
		w->remote_va = get_be64(seg);
		w->rkey = get_be32(seg + 8);
		need += SEG;
		seg += SEG;
	}
	if (w->opcode == WQE_ATOMIC_CS || w->opcode == WQE_ATOMIC_FA) {
		w->swap_add = get_be64(seg);
		w->compare = get_be64(seg + 8);
		need += SEG;
	}
	if (w->bytes < need)
		return "too short for its opcode";
	return parse_sges(w, need);
}

u32 rwqe_parse(const u8 *raw, u32 bytes, struct sge *sge, u32 max)
{
	u32 sges = 0;

	for (u32 at = 0; at + SEG <= bytes && sges < max; at += SEG) {
		u32 count = get_be32(raw + at);
		u32 key = get_be32(raw + at + 4);

		if (!count && key == TERMINATING_LKEY)
			break;
		sge[sges++] = (struct sge){
			.key = key,
			.addr = get_be64(raw + at + 8),
			.len = count ? count : LENGTH_MAX,
		};
	}
	return sges;
}

enum xlt_status sge_copy(struct mlx5sim *m, const struct qp *qp,
			 const struct pd *pd, const struct sge *sge, u32 sges, u64 off, u8 *buf,
			 u32 len, bool write, u32 *done)
{
	struct access access = {
		.pd = pd,
		.qpn = qp->obj.number,
		.rights = write ? RIGHT_LOCAL_WRITE : RIGHT_LOCAL_READ,
		.write = write,
	};

	*done = 0;
	for (; sges && len; sge++, sges--) {
		enum xlt_status status = XLT_OK;
		u32 part, moved;

		if (off >= sge->len) {
			off -= sge->len;
			continue;
		}
		part = min_of(len, sge->len - off);
		moved = part;
		if (sge->data && write)
			return XLT_ERROR;
		access.key = sge->key;
		if (sge->data)
			memcpy(buf, sge->data + off, part);
		else
			status = mem_copy(m, &access, sge->addr + off, buf,
					  part, &moved);
		*done += moved;
		if (status != XLT_OK)
			return status;
		buf += part;
		len -= part;
		off = 0;
	}
	return len ? XLT_ERROR : XLT_OK;
}
