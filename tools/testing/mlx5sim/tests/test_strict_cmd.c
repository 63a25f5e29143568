// SPDX-License-Identifier: GPL-2.0
/* The rules below 40 are broken: commands and objects. */
#include "strict.h"

static void cmd_descriptor(void)
{
	d->tamper.signature = true;
	simple(MLX5_CMD_OP_QUERY_ISSI, 0, 0);
}

static void cmd_descriptor_type(void)
{
	d->tamper.type = 9;
	simple(MLX5_CMD_OP_QUERY_ISSI, 0, 0);
}

static void cmd_descriptor_owner(void)
{
	d->tamper.not_owned = true;
	simple(MLX5_CMD_OP_QUERY_ISSI, 0, 0);
}

static void cmd_length_short(void)
{
	u8 in[ifc_bytes(create_mkey_in) - 16] = { 0 }, out[16];

	ifc_set(create_mkey_in, in, opcode, MLX5_CMD_OP_CREATE_MKEY);
	dev_cmd(d, in, sizeof(in), out, sizeof(out));
}

static void cmd_length_long(void)
{
	u8 in[32] = { 0 }, out[16];

	ifc_set(alloc_pd_in, in, opcode, MLX5_CMD_OP_ALLOC_PD);
	dev_cmd(d, in, sizeof(in), out, sizeof(out));
}

static void cmd_length_huge(void)
{
	d->tamper.in_len = 64 << 20;
	simple(MLX5_CMD_OP_QUERY_ISSI, 0, 0);
}

static void cmd_mailbox_token(void)
{
	u8 in[ifc_bytes(create_eq_in)] = { 0 }, out[16];

	d->tamper.token = d->token + 5;
	dev_cmd(d, in, sizeof(in), out, sizeof(out));
}

static void cmd_mailbox_number(void)
{
	u8 in[ifc_bytes(create_eq_in)] = { 0 }, out[16];

	d->tamper.block_number = 1;
	dev_cmd(d, in, sizeof(in), out, sizeof(out));
}

static void cmd_mailbox_short(void)
{
	u8 in[64] = { 0 }, out[16];

	ifc_set(create_mkey_in, in, opcode, MLX5_CMD_OP_CREATE_MKEY);
	d->tamper.in_len = 4096;
	dev_cmd(d, in, sizeof(in), out, sizeof(out));
}

static void cmd_opcode(void)
{
	simple(0x7777, 0, 0);
}

static void cmd_opcode_modifier(void)
{
	simple(MLX5_CMD_OP_MANAGE_PAGES, 9, 0);
}

static void cmd_reserved(void)
{
	u8 in[16] = { 0 }, out[16];

	ifc_set(alloc_pd_in, in, opcode, MLX5_CMD_OP_ALLOC_PD);
	ifc_set(alloc_pd_in, in, reserved_at_40, 1);
	dev_cmd(d, in, sizeof(in), out, sizeof(out));
}

/* A reserved bit in a context inside of the input */
static void cmd_reserved_inner(void)
{
	u8 in[ifc_bytes(create_mkey_in)] = { 0 }, out[16];

	ifc_set(create_mkey_in, in, opcode, MLX5_CMD_OP_CREATE_MKEY);
	ifc_set(create_mkey_in, in, memory_key_mkey_entry.reserved_at_40, 1);
	dev_cmd(d, in, sizeof(in), out, sizeof(out));
}

static void cmd_state(void)
{
	mlx5sim_reset(d->sim);
	mlx5sim_bar_write(d->sim, 0x10, d->cmdq >> 32, 4);
	mlx5sim_bar_write(d->sim, 0x14, (u32)d->cmdq, 4);
	simple(MLX5_CMD_OP_ALLOC_PD, 0, 0);
}

static void cap_value(void)
{
	u8 in[ifc_bytes(set_hca_cap_in)] = { 0 }, out[16];

	ifc_set(set_hca_cap_in, in, opcode, MLX5_CMD_OP_SET_HCA_CAP);
	ifc_set(cmd_hca_cap, in + 16, log_max_qp, 31);
	dev_cmd(d, in, sizeof(in), out, sizeof(out));
}

static void pages(void)
{
	u8 in[24] = { 0 }, out[16];

	ifc_set(manage_pages_in, in, opcode, MLX5_CMD_OP_MANAGE_PAGES);
	ifc_set(manage_pages_in, in, op_mod, 1);
	ifc_set(manage_pages_in, in, input_num_entries, 1);
	put_be64(in + 16, d->page[0]);
	dev_cmd(d, in, sizeof(in), out, sizeof(out));
}

static void object_dead(void)
{
	simple(MLX5_CMD_OP_DESTROY_QP, 0, 0x3333);
}

static void object_destroyed(void)
{
	u32 qpn = qa->qpn;

	qp_remove(qa);
	simple(MLX5_CMD_OP_QUERY_QP, 0, qpn);
}

static void object_destroyed_key(void)
{
	struct umr_arg u = enable();

	mkey_remove(d, free_key);
	umr(uq, &u);
}

static void object_busy(void)
{
	simple(MLX5_CMD_OP_DEALLOC_PD, 0, d->pd);
}

static void object_leak(void)
{
	simple(MLX5_CMD_OP_TEARDOWN_HCA, 0, 0);
}

static void context(void)
{
	eq_make(d, 5, MLX5SIM_NUM_VECTORS, 0);
}

/* A CQ whose context a case has spoiled */
static void make_cq(u64 page, u64 dbr)
{
	u8 in[ifc_bytes(create_cq_in) + 8] = { 0 }, out[16];
	u8 *cqc = ifc_at(create_cq_in, in, cq_context);

	ifc_set(create_cq_in, in, opcode, MLX5_CMD_OP_CREATE_CQ);
	ifc_set(cqc, cqc, log_cq_size, 6);
	ifc_set(cqc, cqc, uar_page, d->uar);
	ifc_set(cqc, cqc, c_eqn_or_apu_element, d->comp_eq->number);
	ifc_set(cqc, cqc, dbr_addr, dbr);
	put_be64(ifc_at(create_cq_in, in, pas), page);
	dev_cmd(d, in, page ? sizeof(in) : sizeof(in) - 8, out, sizeof(out));
}

static void ring_pages(void)
{
	make_cq(0, list);
}

static void ring_pages_align(void)
{
	u8 in[ifc_bytes(create_cq_in) + 8] = { 0 }, out[16];
	u8 *cqc = ifc_at(create_cq_in, in, cq_context);

	ifc_set(create_cq_in, in, opcode, MLX5_CMD_OP_CREATE_CQ);
	ifc_set(cqc, cqc, log_cq_size, 6);
	ifc_set(cqc, cqc, log_page_size, 2);
	ifc_set(cqc, cqc, uar_page, d->uar);
	ifc_set(cqc, cqc, c_eqn_or_apu_element, d->comp_eq->number);
	ifc_set(cqc, cqc, dbr_addr, list);
	put_be64(ifc_at(create_cq_in, in, pas), MEM_BASE + PAGE);
	dev_cmd(d, in, sizeof(in), out, sizeof(out));
}

static void record_missing(void)
{
	make_cq(list, 0);
}

static void record_unaligned(void)
{
	make_cq(list, list + 2);
}

static void qp_state_rule(void)
{
	qp_modify(qa, MLX5_CMD_OP_RST2INIT_QP, 0, 0, NULL);
}

static const struct strict_case cases[] = {
	CASE(CMD_DESCRIPTOR, cmd_descriptor),
	CASE(CMD_DESCRIPTOR, cmd_descriptor_type),
	CASE(CMD_DESCRIPTOR, cmd_descriptor_owner),
	CASE(CMD_LENGTH, cmd_length_short),
	CASE(CMD_LENGTH, cmd_length_long),
	CASE(CMD_LENGTH, cmd_length_huge),
	CASE(CMD_MAILBOX, cmd_mailbox_token),
	CASE(CMD_MAILBOX, cmd_mailbox_number),
	CASE(CMD_MAILBOX, cmd_mailbox_short),
	CASE(CMD_OPCODE, cmd_opcode),
	CASE(CMD_OPCODE, cmd_opcode_modifier),
	CASE(CMD_RESERVED, cmd_reserved),
	CASE(CMD_RESERVED, cmd_reserved_inner),
	CASE(CMD_STATE, cmd_state),
	CASE(CAP_VALUE, cap_value),
	CASE(PAGES, pages),
	CASE(OBJECT_DEAD, object_dead),
	CASE(OBJECT_DESTROYED, object_destroyed),
	CASE(OBJECT_DESTROYED, object_destroyed_key),
	CASE(OBJECT_BUSY, object_busy),
	CASE(OBJECT_LEAK, object_leak),
	CASE(CONTEXT, context),
	CASE(RING_PAGES, ring_pages),
	CASE(RING_PAGES, ring_pages_align),
	CASE(DOORBELL_RECORD, record_missing),
	CASE(DOORBELL_RECORD, record_unaligned),
	CASE(QP_STATE, qp_state_rule),
};

int main(void)
{
	return strict_main(cases, ARRAY_SIZE(cases), 1, 39);
}
