/* SPDX-License-Identifier: GPL-2.0 */
/* Commands: what a handler gets and gives, and the handlers of all files. */
#ifndef MODEL_CMD_H
#define MODEL_CMD_H

#include "object.h"

#define CMD_SLOTS		32
#define CMD_LOG_STRIDE		6
#define CMD_BLOCK_DATA		512
#define CMD_BLOCK_SIZE		576
/* No command of a driver is longer: 2 MiB is a key of 1 GiB in pages of 4 KiB */
#define CMD_MAX_LENGTH		(4u << 20)
/* A handler may read and write so much without a look at the lengths */
#define CMD_MIN_BUFFER		8192

/* Delivery status in the descriptor */
enum cmd_delivery {
	DELIVERY_OK		= 0x0,
	DELIVERY_SIGNATURE	= 0x1,
	DELIVERY_TOKEN		= 0x2,
	DELIVERY_BLOCK		= 0x3,
	DELIVERY_OUT_POINTER	= 0x4,
	DELIVERY_IN_POINTER	= 0x5,
	DELIVERY_FIRMWARE	= 0x6,
	DELIVERY_IN_LENGTH	= 0x7,
	DELIVERY_OUT_LENGTH	= 0x8,
	DELIVERY_TYPE		= 0x10,
};

/* First byte of the output */
enum cmd_status {
	CMD_OK			= 0x0,
	CMD_INTERNAL		= 0x1,
	CMD_BAD_OP		= 0x2,
	CMD_BAD_PARAM		= 0x3,
	CMD_BAD_SYS_STATE	= 0x4,
	CMD_BAD_RESOURCE	= 0x5,
	CMD_LIMIT		= 0x8,
	CMD_BAD_RES_STATE	= 0x9,
	CMD_NO_RESOURCE		= 0xf,
	CMD_BAD_QP_STATE	= 0x10,
	CMD_BAD_SIZE		= 0x40,
	CMD_BAD_IN_LENGTH	= 0x50,
	CMD_BAD_OUT_LENGTH	= 0x51,
};

/**
 * struct cmd - a command that is executed
 * @in: input, zeros behind its end up to CMD_MIN_BUFFER
 * @in_len: its length
 * @out: output, all zeros before
 * @out_len: room for it
 * @opcode: of the input
 * @op_mod: of the input
 * @uid: of the input, for opcodes that have it
 */
struct cmd {
	u8 *in;
	u32 in_len;
	u8 *out;
	u32 out_len;
	u16 opcode;
	u16 op_mod;
	u16 uid;
};

/**
 * struct cmd_slot - a command whose completion is late
 * @pending: whether there is one
 * @due_ns: when to complete
 * @lay: its descriptor
 * @c: the command, with output
 * @status: delivery status
 */
struct cmd_slot {
	bool pending;
	u64 due_ns;
	u8 lay[64];
	struct cmd c;
	u8 status;
};

typedef enum cmd_status cmd_handler(struct mlx5sim *m, struct cmd *c);

/* The descriptors whose bits are set in @slots were handed over. */
void cmd_doorbell(struct mlx5sim *m, u32 slots);
/* Complete what is due. */
void cmd_run_late(struct mlx5sim *m, u64 now);
void cmd_forget(struct mlx5sim *m);

/* The fields of a reserved kind that are set in an input; NULL if none */
const char *cmd_reserved(const struct cmd *c);

/* cmd_table.c: checks lengths, state and reserved bits, and calls the handler */
enum cmd_status cmd_execute(struct mlx5sim *m, struct cmd *c);
const char *cmd_name(u16 opcode);

/* Page list of an input that begins at @pas: number of entries */
static inline u32 cmd_pas_count(const struct cmd *c, const u8 *pas)
{
	size_t off = pas - c->in;

	return off < c->in_len ? (c->in_len - off) / 8 : 0;
}

/* caps.c */
cmd_handler cmd_query_hca_cap, cmd_set_hca_cap;
/* hca.c */
cmd_handler cmd_enable_hca, cmd_disable_hca, cmd_init_hca, cmd_teardown_hca,
	    cmd_query_pages, cmd_manage_pages, cmd_query_issi, cmd_set_issi,
	    cmd_query_adapter, cmd_query_special_contexts, cmd_nothing;
/* port.c */
cmd_handler cmd_query_hca_vport_context, cmd_modify_hca_vport_context,
	    cmd_query_hca_vport_gid, cmd_query_hca_vport_pkey, cmd_access_reg,
	    cmd_mad_ifc, cmd_query_vport_counter;
/* plain.c */
cmd_handler cmd_alloc_pd, cmd_dealloc_pd, cmd_alloc_uar, cmd_dealloc_uar,
	    cmd_alloc_xrcd, cmd_dealloc_xrcd, cmd_alloc_td, cmd_dealloc_td;
/* umem.c */
cmd_handler cmd_create_uctx, cmd_destroy_uctx, cmd_create_umem,
	    cmd_destroy_umem;
/* eq.c, cq.c */
cmd_handler cmd_create_eq, cmd_destroy_eq, cmd_query_eq;
cmd_handler cmd_create_cq, cmd_destroy_cq, cmd_query_cq, cmd_modify_cq;
/* srq_cmd.c */
cmd_handler cmd_create_xrc_srq, cmd_destroy_xrc_srq, cmd_query_xrc_srq,
	    cmd_arm_xrc_srq, cmd_create_rmp, cmd_destroy_rmp, cmd_query_rmp,
	    cmd_modify_rmp, cmd_arm_rq;
/* mkey.c */
cmd_handler cmd_create_mkey, cmd_destroy_mkey, cmd_query_mkey;
/* qp_cmd.c */
cmd_handler cmd_create_qp, cmd_destroy_qp, cmd_query_qp, cmd_modify_qp;
/* odp.c */
cmd_handler cmd_page_fault_resume;

#endif /* MODEL_CMD_H */
