// SPDX-License-Identifier: GPL-2.0
/* All commands of the device: lengths, when they are allowed, who does them. */
#include "model.h"
#include "reserved.h"

/* Syndrome of a failed command: this mark, and the number of the broken rule */
#define SYNDROME		0x51000000u
#define SYNDROME_INJECTED	0x52000000u

/**
 * struct cmd_entry - one command
 * @opcode: its number
 * @name: of the opcode
 * @in_min: length of its input without the list at its end
 * @list: its input ends with a list
 * @state: the device must be there at least
 * @reserved: bits of the input that must be zero
 * @handler: does the command
 */
struct cmd_entry {
	u16 opcode;
	const char *name;
	u32 in_min;
	bool list;
	enum hca_state state;
	const struct reserved *reserved;
	cmd_handler *handler;
};

#define ENTRY(OP, type, fn, needs, has_list) {			\
	.opcode = MLX5_CMD_OP_##OP,				\
	.name = #OP,						\
	.in_min = ifc_bytes(type##_in),				\
	.list = (has_list),					\
	.state = (needs),					\
	.reserved = reserved_##type##_in,			\
	.handler = cmd_##fn,					\
}

#define PLAIN(OP, type, fn, needs)	ENTRY(OP, type, fn, needs, false)
#define LISTED(OP, type, fn, needs)	ENTRY(OP, type, fn, needs, true)

static const struct cmd_entry entries[] = {
	PLAIN(ENABLE_HCA, enable_hca, enable_hca, HCA_OFF),
	PLAIN(DISABLE_HCA, disable_hca, disable_hca, HCA_OFF),
	PLAIN(QUERY_ISSI, query_issi, query_issi, HCA_ENABLED),
	PLAIN(SET_ISSI, set_issi, set_issi, HCA_ENABLED),
	PLAIN(QUERY_PAGES, query_pages, query_pages, HCA_ENABLED),
	LISTED(MANAGE_PAGES, manage_pages, manage_pages, HCA_ENABLED),
	PLAIN(QUERY_HCA_CAP, query_hca_cap, query_hca_cap, HCA_ENABLED),
	PLAIN(SET_HCA_CAP, set_hca_cap, set_hca_cap, HCA_ENABLED),
	PLAIN(INIT_HCA, init_hca, init_hca, HCA_ENABLED),
	PLAIN(TEARDOWN_HCA, teardown_hca, teardown_hca, HCA_ENABLED),
	PLAIN(SET_DRIVER_VERSION, set_driver_version, nothing, HCA_ENABLED),
	PLAIN(QUERY_ADAPTER, query_adapter, query_adapter, HCA_ENABLED),
	PLAIN(NOP, nop, nothing, HCA_ENABLED),
	PLAIN(QUERY_SPECIAL_CONTEXTS, query_special_contexts,
	      query_special_contexts, HCA_RUNNING),

	PLAIN(QUERY_HCA_VPORT_CONTEXT, query_hca_vport_context,
	      query_hca_vport_context, HCA_ENABLED),
	PLAIN(MODIFY_HCA_VPORT_CONTEXT, modify_hca_vport_context,
	      modify_hca_vport_context, HCA_ENABLED),
	PLAIN(QUERY_HCA_VPORT_GID, query_hca_vport_gid, query_hca_vport_gid,
	      HCA_ENABLED),
	PLAIN(QUERY_HCA_VPORT_PKEY, query_hca_vport_pkey, query_hca_vport_pkey,
	      HCA_ENABLED),
	PLAIN(QUERY_VPORT_COUNTER, query_vport_counter, query_vport_counter,
	      HCA_RUNNING),
	LISTED(ACCESS_REG, access_register, access_reg, HCA_ENABLED),
	PLAIN(MAD_IFC, mad_ifc, mad_ifc, HCA_RUNNING),

	PLAIN(ALLOC_UAR, alloc_uar, alloc_uar, HCA_RUNNING),
	PLAIN(DEALLOC_UAR, dealloc_uar, dealloc_uar, HCA_RUNNING),
	PLAIN(ALLOC_PD, alloc_pd, alloc_pd, HCA_RUNNING),
	PLAIN(DEALLOC_PD, dealloc_pd, dealloc_pd, HCA_RUNNING),
	PLAIN(ALLOC_XRCD, alloc_xrcd, alloc_xrcd, HCA_RUNNING),
	PLAIN(DEALLOC_XRCD, dealloc_xrcd, dealloc_xrcd, HCA_RUNNING),
	PLAIN(ALLOC_TRANSPORT_DOMAIN, alloc_transport_domain, alloc_td,
	      HCA_RUNNING),
	PLAIN(DEALLOC_TRANSPORT_DOMAIN, dealloc_transport_domain, dealloc_td,
	      HCA_RUNNING),

	PLAIN(CREATE_UCTX, create_uctx, create_uctx, HCA_RUNNING),
	PLAIN(DESTROY_UCTX, destroy_uctx, destroy_uctx, HCA_RUNNING),
	LISTED(CREATE_UMEM, create_umem, create_umem, HCA_RUNNING),
	PLAIN(DESTROY_UMEM, destroy_umem, destroy_umem, HCA_RUNNING),

	LISTED(CREATE_EQ, create_eq, create_eq, HCA_RUNNING),
	PLAIN(DESTROY_EQ, destroy_eq, destroy_eq, HCA_RUNNING),
	PLAIN(QUERY_EQ, query_eq, query_eq, HCA_RUNNING),
	LISTED(CREATE_CQ, create_cq, create_cq, HCA_RUNNING),
	PLAIN(DESTROY_CQ, destroy_cq, destroy_cq, HCA_RUNNING),
	PLAIN(QUERY_CQ, query_cq, query_cq, HCA_RUNNING),
	LISTED(MODIFY_CQ, modify_cq, modify_cq, HCA_RUNNING),

	LISTED(CREATE_XRC_SRQ, create_xrc_srq, create_xrc_srq, HCA_RUNNING),
	PLAIN(DESTROY_XRC_SRQ, destroy_xrc_srq, destroy_xrc_srq, HCA_RUNNING),
	PLAIN(QUERY_XRC_SRQ, query_xrc_srq, query_xrc_srq, HCA_RUNNING),
	PLAIN(ARM_XRC_SRQ, arm_xrc_srq, arm_xrc_srq, HCA_RUNNING),
	LISTED(CREATE_RMP, create_rmp, create_rmp, HCA_RUNNING),
	PLAIN(DESTROY_RMP, destroy_rmp, destroy_rmp, HCA_RUNNING),
	PLAIN(QUERY_RMP, query_rmp, query_rmp, HCA_RUNNING),
	LISTED(MODIFY_RMP, modify_rmp, modify_rmp, HCA_RUNNING),
	PLAIN(ARM_RQ, arm_rq, arm_rq, HCA_RUNNING),

	LISTED(CREATE_MKEY, create_mkey, create_mkey, HCA_RUNNING),
	PLAIN(DESTROY_MKEY, destroy_mkey, destroy_mkey, HCA_RUNNING),
	PLAIN(QUERY_MKEY, query_mkey, query_mkey, HCA_RUNNING),

	LISTED(CREATE_QP, create_qp, create_qp, HCA_RUNNING),
	PLAIN(DESTROY_QP, destroy_qp, destroy_qp, HCA_RUNNING),
	PLAIN(QUERY_QP, query_qp, query_qp, HCA_RUNNING),
	PLAIN(RST2INIT_QP, rst2init_qp, modify_qp, HCA_RUNNING),
	PLAIN(INIT2INIT_QP, init2init_qp, modify_qp, HCA_RUNNING),
	PLAIN(INIT2RTR_QP, init2rtr_qp, modify_qp, HCA_RUNNING),
	PLAIN(RTR2RTS_QP, rtr2rts_qp, modify_qp, HCA_RUNNING),
	PLAIN(RTS2RTS_QP, rts2rts_qp, modify_qp, HCA_RUNNING),
	PLAIN(SQERR2RTS_QP, sqerr2rts_qp, modify_qp, HCA_RUNNING),
	PLAIN(SQD_RTS_QP, sqd2rts_qp, modify_qp, HCA_RUNNING),
	PLAIN(2ERR_QP, qp_2err, modify_qp, HCA_RUNNING),
	PLAIN(2RST_QP, qp_2rst, modify_qp, HCA_RUNNING),

	PLAIN(PAGE_FAULT_RESUME, page_fault_resume, page_fault_resume,
	      HCA_RUNNING),
};

static const struct cmd_entry *find(u16 opcode)
{
	for (u32 i = 0; i < ARRAY_SIZE(entries); i++)
		if (entries[i].opcode == opcode)
			return &entries[i];
	return NULL;
}

const char *cmd_name(u16 opcode)
{
	const struct cmd_entry *e = find(opcode);

	return e ? e->name : "?";
}

static bool destroys(const struct cmd_entry *e)
{
	return !strncmp(e->name, "DESTROY_", 8) ||
	       !strncmp(e->name, "DEALLOC_", 8);
}

static enum cmd_status check(struct mlx5sim *m, const struct cmd_entry *e,
			     struct cmd *c)
{
	u32 bit;

	if (m->state < e->state) {
		broken(m, CHK_CMD_STATE, "%s in state %u", e->name, m->state);
		return CMD_BAD_SYS_STATE;
	}
	if (c->in_len < e->in_min || (!e->list && c->in_len > e->in_min)) {
		broken(m, CHK_CMD_LENGTH, "%s with %u bytes for %u", e->name,
		       c->in_len, e->in_min);
		return CMD_BAD_IN_LENGTH;
	}
	if (reserved_set(e->reserved, c->in, &bit)) {
		broken(m, CHK_CMD_RESERVED, "%s: bit 0x%x", e->name, bit);
		return CMD_BAD_PARAM;
	}
	/* An object that processes share can outlive the one that made it */
	if (c->uid && c->uid != MLX5_SHARED_RESOURCE_UID &&
	    !table_knew(&m->uctxs, c->uid)) {
		broken(m, CHK_OBJECT_DEAD, "%s of DEVX context 0x%x", e->name,
		       c->uid);
		return CMD_BAD_RESOURCE;
	}
	return CMD_OK;
}

static enum cmd_status run(struct mlx5sim *m, struct cmd *c, u32 *syndrome)
{
	const struct cmd_entry *e = find(c->opcode);
	enum cmd_status status;
	u64 injected;

	if (!e) {
		/* DEVX lets a user try any command */
		broken_if(!c->uid, m, CHK_CMD_OPCODE, "0x%x, modifier 0x%x",
			  c->opcode, c->op_mod);
		return CMD_BAD_OP;
	}
	if (inject_hit(m, INJECT_CMD_STATUS, c->opcode, &injected)) {
		m->leak_injected |= destroys(e);
		*syndrome = SYNDROME_INJECTED;
		return injected;
	}
	status = check(m, e, c);
	if (status == CMD_OK && !m->stopped)
		status = e->handler(m, c);
	return status;
}

enum cmd_status cmd_execute(struct mlx5sim *m, struct cmd *c)
{
	u32 syndrome = SYNDROME;
	enum cmd_status status;

	m->last_broken = 0;
	m->stats.commands++;
	status = run(m, c, &syndrome);
	if (status != CMD_OK) {
		/* A failed command has nothing but status and syndrome */
		memset(c->out, 0, c->out_len);
		c->out[0] = status;
		put_be32(c->out + 4, syndrome | m->last_broken);
		note(m, "%s (0x%x), modifier 0x%x: status 0x%x",
		     cmd_name(c->opcode), c->opcode, c->op_mod, status);
	}
	return status;
}
