// SPDX-License-Identifier: GPL-2.0
/*
 * Datagrams: UD queue pairs, and the two of management.
 *
 * A datagram is a message with a header in front, room for a GRH that is zero if
 * the sender wanted none.  It arrives or it is lost; nobody tells the sender.
 */
#include "model.h"

/* Address vector of the request */
#define AV_QKEY			0
#define AV_DQPN			8
#define AV_RATE_SL		12
#define AV_RLID			14
#define AV_TCLASS		26
#define AV_HOP_LIMIT		27
#define AV_GRH_FLOW		28
#define AV_RGID			32
#define QPN_MASK		0xffffffu
#define SL_MASK			0xf
#define FLOW_MASK		0xfffffu
#define FLOW_HAS_GRH		BIT(30)
#define QKEY_OF_QP		BIT(31)	/* the sender's own is meant */

#define GRH_VERSION		(6u << 28)
#define GRH_TCLASS_SHIFT	20
#define GRH_LENGTH		4
#define GRH_NEXT		6
#define GRH_HOP_LIMIT		7
#define GRH_SGID		8
#define GRH_DGID		24
#define GRH_NEXT_BTH		0x1b
#define PACKET_EXTRA		24	/* BTH, DETH, ICRC */
#define PACKET_IMMEDIATE	4

/* The numbers that the two of management have on the wire */
#define QPN_SMI			0
#define QPN_GSI			1

static u32 wire_qpn(const struct qp *qp)
{
	return qp->type == MLX5_QPC_ST_QP0 ? QPN_SMI :
	       qp->type == MLX5_QPC_ST_QP1 ? QPN_GSI : qp->obj.number;
}

static struct qp *find_receiver(const struct mlx5sim *m, u32 qpn)
{
	u32 at = 0;
	struct qp *qp;

	if (qpn > QPN_GSI)
		return table_find(&m->qps, qpn);
	while ((qp = table_step(&m->qps, &at)))
		if (wire_qpn(qp) == qpn)
			return qp;
	return NULL;
}

static u16 qp_pkey(const struct qp *qp)
{
	return port_pkey(ifc_get(qpc, qp->qpc,
				 primary_address_path.pkey_index));
}

static bool accepts(const struct qp *qp, u16 pkey, u32 qkey)
{
	return qp_is_datagram(qp->type) && qp_receives(qp) &&
	       pkey && qp_pkey(qp) == pkey &&
	       (qp->type == MLX5_QPC_ST_QP0 ||
		ifc_get(qpc, qp->qpc, q_key) == qkey);
}

static void build_grh(const struct mlx5sim *m, const struct send_wqe *w,
		      u8 *grh)
{
	u32 imm = w->opcode == WQE_SEND_IMM ? PACKET_IMMEDIATE : 0;

	put_be32(grh, GRH_VERSION |
		 (u32)w->av[AV_TCLASS] << GRH_TCLASS_SHIFT |
		 (get_be32(w->av + AV_GRH_FLOW) & FLOW_MASK));
	put_be16(grh + GRH_LENGTH,
		 PACKET_EXTRA + imm + round_up_to(w->length, 4));
	grh[GRH_NEXT] = GRH_NEXT_BTH;
	grh[GRH_HOP_LIMIT] = w->av[AV_HOP_LIMIT];
	port_gid(m, grh + GRH_SGID);
	memcpy(grh + GRH_DGID, w->av + AV_RGID, 16);
}

void datagram_send(struct mlx5sim *m, const struct qp *qp,
		   const struct send_wqe *w, u8 *packet)
{
	struct origin from = {
		.slid = m->lid,
		.src_qp = wire_qpn(qp),
		.sl = w->av[AV_RATE_SL] & SL_MASK,
		.grh = w->av_full &&
		       get_be32(w->av + AV_GRH_FLOW) & FLOW_HAS_GRH,
		.header = DATAGRAM_HEADER,
	};
	struct mlx5sim *peer = device_by_lid(get_be16(w->av + AV_RLID));
	u32 qpn = get_be32(w->av + AV_DQPN) & QPN_MASK;
	u32 qkey = get_be32(w->av + AV_QKEY);
	struct qp *to;

	if (!peer || peer->stopped)
		return;
	if (qkey & QKEY_OF_QP)
		qkey = ifc_get(qpc, qp->qpc, q_key);
	to = find_receiver(peer, qpn);
	if (!to || !accepts(to, qp_pkey(qp), qkey))
		return;
	memset(packet, 0, DATAGRAM_HEADER);
	if (from.grh)
		build_grh(m, w, packet);
	responder_send(peer, to, w, 0, packet, DATAGRAM_HEADER + w->length,
		       true, &from);
}
