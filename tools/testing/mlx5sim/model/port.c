// SPDX-License-Identifier: GPL-2.0
/*
 * The port: always up, 4x EDR, its LID and the subnet manager's are fixed.  What a
 * driver says that its port can do is kept and told back.
 *
 * There is no subnet manager and no management traffic; addresses are LIDs.
 */
#include "model.h"

#define GUID_PREFIX		0x5100000000000000ull
#define GID_PREFIX		0xfe80000000000000ull
#define GIDS			8
#define PKEYS			128
#define PKEY_DEFAULT		0xffff
#define ALL_PKEYS		0xffff

/* What a driver may say of its port: CM, SNMP tunnel, device management, vendor's */
#define PORT_CAPS_SETTABLE	0x001b0000u

#define PORT_ACTIVE		4
#define PORT_LINK_UP		5

/* Registers of ACCESS_REG; modifier 1 reads */
#define REG_PMTU		0x5003
#define REG_PTYS		0x5004
#define REG_PVLC		0x500f
#define REG_NODE_DESC		0x6001
#define REG_HOST_ENDIANNESS	0x7004
#define ACCESS_REG_READ		1
#define NODE_DESC_LEN		64

#define LINK_WIDTH_4X		2
#define LINK_SPEED_EDR		32
#define MTU_4096		5
#define VL_HW_CAP_4		4

static u64 guid(const struct mlx5sim *m)
{
	return GUID_PREFIX | m->lid;
}

/* 0: the entry is not valid */
u16 port_pkey(u32 index)
{
	return index ? 0 : PKEY_DEFAULT;
}

/* The one entry of the table that is not zero */
void port_gid(const struct mlx5sim *m, u8 *gid)
{
	put_be64(gid, GID_PREFIX);
	put_be64(gid + 8, guid(m));
}

/* Port 2 is asked for as well, by drivers that look for a second one */
enum cmd_status cmd_query_hca_vport_context(struct mlx5sim *m, struct cmd *c)
{
	u8 *ctx = ifc_at(query_hca_vport_context_out, c->out,
			 hca_vport_context);

	ifc_set(hca_vport_context, ctx, port_physical_state, PORT_LINK_UP);
	ifc_set(hca_vport_context, ctx, port_state, PORT_ACTIVE);
	ifc_set(hca_vport_context, ctx, vport_state, PORT_ACTIVE);
	ifc_set(hca_vport_context, ctx, system_image_guid, guid(m));
	ifc_set(hca_vport_context, ctx, port_guid, guid(m));
	ifc_set(hca_vport_context, ctx, node_guid, guid(m));
	ifc_set(hca_vport_context, ctx, lid, m->lid);
	ifc_set(hca_vport_context, ctx, sm_lid, 1);
	ifc_set(hca_vport_context, ctx, subnet_timeout, 18);
	ifc_set(hca_vport_context, ctx, cap_mask1, m->port_caps);
	ifc_set(hca_vport_context, ctx, cap_mask1_field_select,
		PORT_CAPS_SETTABLE);
	return CMD_OK;
}

enum cmd_status cmd_modify_hca_vport_context(struct mlx5sim *m, struct cmd *c)
{
	const u8 *ctx = ifc_at(modify_hca_vport_context_in, c->in,
			       hca_vport_context);
	u32 caps = ifc_get(hca_vport_context, ctx, cap_mask1);
	u32 change = ifc_get(hca_vport_context, ctx, cap_mask1_field_select);

	/* Policy and GUIDs, which the other mask selects, are fixed here */
	if (ifc_get(hca_vport_context, ctx, field_select) ||
	    change & ~PORT_CAPS_SETTABLE)
		return CMD_BAD_PARAM;
	m->port_caps = (m->port_caps & ~change) | (caps & change);
	return CMD_OK;
}

enum cmd_status cmd_query_hca_vport_gid(struct mlx5sim *m, struct cmd *c)
{
	u32 index = ifc_get(query_hca_vport_gid_in, c->in, gid_index);

	if (index >= GIDS)
		return CMD_BAD_PARAM;
	ifc_set(query_hca_vport_gid_out, c->out, gids_num, 1);
	if (!index)
		port_gid(m, ifc_at(query_hca_vport_gid_out, c->out, gid));
	return CMD_OK;
}

enum cmd_status cmd_query_hca_vport_pkey(struct mlx5sim *m, struct cmd *c)
{
	u32 index = ifc_get(query_hca_vport_pkey_in, c->in, pkey_index);
	u8 *pkey = ifc_at(query_hca_vport_pkey_out, c->out, pkey);

	(void)m;
	if (index >= PKEYS && index != ALL_PKEYS)
		return CMD_BAD_PARAM;
	/* An entry of 32 bits holds a key of 16 */
	put_be32(pkey, port_pkey(index == ALL_PKEYS ? 0 : index));
	return CMD_OK;
}

enum cmd_status cmd_query_vport_counter(struct mlx5sim *m, struct cmd *c)
{
	u8 *out = c->out;
	u64 packets = m->stats.wqes;

	ifc_set(query_vport_counter_out, out, transmitted_ib_unicast.packets,
		packets);
	ifc_set(query_vport_counter_out, out, transmitted_ib_unicast.octets,
		m->stats.dma_read);
	ifc_set(query_vport_counter_out, out, received_ib_unicast.packets,
		packets);
	ifc_set(query_vport_counter_out, out, received_ib_unicast.octets,
		m->stats.dma_written);
	return CMD_OK;
}

static void read_ptys(u8 *reg)
{
	ifc_set(ptys_reg, reg, proto_mask, 1);
	ifc_set(ptys_reg, reg, ib_link_width_capability, LINK_WIDTH_4X);
	ifc_set(ptys_reg, reg, ib_proto_capability, LINK_SPEED_EDR);
	ifc_set(ptys_reg, reg, ib_link_width_admin, LINK_WIDTH_4X);
	ifc_set(ptys_reg, reg, ib_proto_admin, LINK_SPEED_EDR);
	ifc_set(ptys_reg, reg, ib_link_width_oper, LINK_WIDTH_4X);
	ifc_set(ptys_reg, reg, ib_proto_oper, LINK_SPEED_EDR);
}

enum cmd_status cmd_access_reg(struct mlx5sim *m, struct cmd *c)
{
	u32 id = ifc_get(access_register_in, c->in, register_id);
	u8 *reg = ifc_at(access_register_out, c->out, register_data);
	const u8 *in = ifc_at(access_register_in, c->in, register_data);

	/* The register comes back as it was asked for: port, selectors */
	memcpy(reg, in, min_of(c->in_len - ifc_bytes(access_register_in),
			       (u64)CMD_MIN_BUFFER - ifc_bytes(access_register_out)));
	switch (id) {
	case REG_PMTU:
		ifc_set(pmtu_reg, reg, max_mtu, 4096);
		ifc_set(pmtu_reg, reg, admin_mtu, 4096);
		ifc_set(pmtu_reg, reg, oper_mtu, 4096);
		break;
	case REG_PTYS:
		read_ptys(reg);
		break;
	case REG_PVLC:
		ifc_set(pvlc_reg, reg, vl_hw_cap, VL_HW_CAP_4);
		ifc_set(pvlc_reg, reg, vl_admin, VL_HW_CAP_4);
		ifc_set(pvlc_reg, reg, vl_operational, VL_HW_CAP_4);
		break;
	case REG_NODE_DESC:
		if (c->op_mod == ACCESS_REG_READ)
			strncpy((char *)reg, "mlx5sim", NODE_DESC_LEN);
		break;
	case REG_HOST_ENDIANNESS:
		break;
	default:
		note(m, "register 0x%x is not there", id);
		return CMD_BAD_PARAM;
	}
	return CMD_OK;
}

/* No management traffic: the request comes back as the answer */
enum cmd_status cmd_mad_ifc(struct mlx5sim *m, struct cmd *c)
{
	(void)m;
	memcpy(ifc_at(mad_ifc_out, c->out, response_mad_packet),
	       ifc_at(mad_ifc_in, c->in, mad), 256);
	return CMD_OK;
}
