// SPDX-License-Identifier: GPL-2.0
/*
 * The capabilities of the device: an InfiniBand function with RC, UMR, atomics
 * and on-demand paging, no Ethernet, no steering.  What is not in the table is
 * zero.  Fields with value zero are listed so that a test can switch them on.
 */
#include <stdlib.h>

#include "model.h"

/**
 * struct cap_field - one capability
 * @name: as in mlx5_ifc.h, and for a test that overrides it
 * @type: which structure
 * @first: position in bits
 * @width: in bits
 * @value: what the device offers
 * @coded: bigger is not more: SET_HCA_CAP may write any value
 */
struct cap_field {
	const char *name;
	enum cap_type type;
	u32 first;
	u32 width;
	u64 value;
	bool coded;
};

#define FIELD(cap_type, ifc_type, field, label, val, is_coded) {	\
	.name = label,							\
	.type = cap_type,						\
	.first = ifc_off(ifc_type, field),				\
	.width = ifc_width(ifc_type, field),				\
	.value = (val),							\
	.coded = (is_coded),						\
}

#define GENERAL(field, value) \
	FIELD(CAP_GENERAL, cmd_hca_cap, field, #field, value, false)
#define CODED(field, value) \
	FIELD(CAP_GENERAL, cmd_hca_cap, field, #field, value, true)
#define ATOMIC(field, value) \
	FIELD(CAP_ATOMIC, atomic_caps, field, #field, value, true)
#define ODP(field, value) \
	FIELD(CAP_ODP, odp_cap, transport_page_fault_scheme_cap.field, \
	      #field, value, false)
#define ODP_TOP(field, value) \
	FIELD(CAP_ODP, odp_cap, field, #field, value, false)

static const struct cap_field fields[] = {
	/* identity; vhca_id follows the LID */
	CODED(vhca_id, 0),
	CODED(port_type, 0),			/* InfiniBand */
	GENERAL(num_ports, 1),
	GENERAL(ib_virt, 1),			/* ports by commands, no MADs */
	CODED(gid_table_size, 0),		/* 8 */
	CODED(pkey_table_size, 0),		/* 128 */
	CODED(cmdif_checksum, 0),
	CODED(log_uar_page_sz, 0),
	CODED(device_frequency_khz, 156250),

	/* sizes */
	GENERAL(log_max_srq_sz, 15),
	GENERAL(log_max_qp_sz, 15),
	GENERAL(log_max_qp, 14),
	GENERAL(log_max_srq, 14),
	GENERAL(log_max_cq_sz, 22),
	GENERAL(log_max_cq, 14),
	GENERAL(log_max_eq_sz, 22),
	GENERAL(log_max_mkey, 17),
	GENERAL(log_max_eq, 6),
	GENERAL(max_num_eqs, 32),
	GENERAL(max_indirection, 4),
	GENERAL(log_max_mrw_sz, 40),
	GENERAL(log_max_klm_list_size, 16),
	GENERAL(log_max_ra_req_qp, 4),
	GENERAL(log_max_ra_res_qp, 4),
	GENERAL(log_max_msg, 30),
	GENERAL(log_pg_sz, 12),
	GENERAL(max_wqe_sz_sq, WQE_MAX),
	GENERAL(max_wqe_sz_rq, RQ_WQE_MAX),
	GENERAL(log_max_pd, 15),
	GENERAL(log_max_xrcd, 15),
	GENERAL(log_max_rmp, 14),
	GENERAL(log_max_transport_domain, 0),
	GENERAL(bf, 1),
	GENERAL(log_bf_reg_size, 9),
	CODED(local_ca_ack_delay, 15),

	/* transports and operations */
	GENERAL(rc, 1),
	GENERAL(uc, 1),
	GENERAL(ud, 1),
	GENERAL(xrc, 1),
	GENERAL(atomic, 1),
	GENERAL(imaicl, 1),
	GENERAL(basic_cyclic_rcv_wqe, 1),
	GENERAL(compact_address_vector, 1),
	GENERAL(cqe_version, 1),		/* user index in the CQE */
	GENERAL(cq_resize, 1),
	GENERAL(cq_moderation, 1),
	GENERAL(cqe_128_always, 0),
	GENERAL(sctr_data_cqe, 0),
	GENERAL(driver_version, 1),
	GENERAL(set_deth_sqpn, 0),
	GENERAL(roce, 0),

	/* memory */
	GENERAL(pg, 1),
	GENERAL(fixed_buffer_size, 1),
	GENERAL(null_mkey, 1),
	GENERAL(umr_extended_translation_offset, 1),
	GENERAL(umr_modify_entity_size_disabled, 0),
	GENERAL(umr_modify_atomic_disabled, 0),
	GENERAL(umr_indirect_mkey_disabled, 0),
	GENERAL(relaxed_ordering_write, 0),
	GENERAL(relaxed_ordering_read, 0),
	GENERAL(relaxed_ordering_write_umr, 0),
	GENERAL(relaxed_ordering_read_umr, 0),
	GENERAL(mkey_by_name, 0),

	/* DEVX */
	GENERAL(log_max_uctx, 9),
	GENERAL(log_max_umem, 15),
	GENERAL(uctx_cap, 0),
	GENERAL(general_obj_types, 0),

	ATOMIC(atomic_req_8B_endianness_mode, 0),
	ATOMIC(supported_atomic_req_8B_endianness_mode_1, 1),
	ATOMIC(atomic_operations, 3),		/* compare and swap, fetch and add */
	ATOMIC(atomic_size_qp, 8),
	ATOMIC(atomic_size_dc, 0),

	ODP(sig, 1),
	ODP(page_prefetch, 0),
	ODP(rc_odp_caps.send, 1),
	ODP(rc_odp_caps.receive, 1),
	ODP(rc_odp_caps.write, 1),
	ODP(rc_odp_caps.read, 1),
	ODP(rc_odp_caps.atomic, 1),
	ODP(rc_odp_caps.srq_receive, 0),
	ODP(xrc_odp_caps.send, 0),
	ODP(xrc_odp_caps.receive, 0),
	ODP(xrc_odp_caps.write, 0),
	ODP(xrc_odp_caps.read, 0),
	ODP(xrc_odp_caps.atomic, 0),
	ODP(xrc_odp_caps.srq_receive, 0),
	ODP(ud_odp_caps.send, 1),
	ODP_TOP(mem_page_fault, 0),
};

/* "NAME=VALUE" at *@at */
static bool override(struct mlx5sim *m, const char **at)
{
	size_t len = strcspn(*at, "=,");
	char *rest;
	u64 value;

	if ((*at)[len] != '=')
		return false;
	value = strtoull(*at + len + 1, &rest, 0);
	if (rest == *at + len + 1 || (*rest && *rest != ','))
		return false;
	for (u32 i = 0; i < ARRAY_SIZE(fields); i++) {
		const struct cap_field *f = &fields[i];

		if (strlen(f->name) != len || strncmp(f->name, *at, len) ||
		    (f->width < 64 && value >> f->width))
			continue;
		ifc_store(m->cap_max[f->type], f->first, f->width, value);
		*at = rest + !!*rest;
		return true;
	}
	return false;
}

bool caps_init(struct mlx5sim *m, const char *overrides)
{
	for (u32 i = 0; i < ARRAY_SIZE(fields); i++) {
		const struct cap_field *f = &fields[i];

		ifc_store(m->cap_max[f->type], f->first, f->width, f->value);
	}
	ifc_set(cmd_hca_cap, m->cap_max[CAP_GENERAL], vhca_id, m->lid);
	while (overrides && *overrides)
		if (!override(m, &overrides))
			return false;
	caps_reset(m);
	return true;
}

void caps_reset(struct mlx5sim *m)
{
	memcpy(m->cap_cur, m->cap_max, sizeof(m->cap_cur));
}

static bool cap_type_known(u32 type)
{
	return type == CAP_GENERAL || type == CAP_ODP || type == CAP_ATOMIC;
}

/* Bit 0 of the modifier asks for the values in use, else for the highest */
enum cmd_status cmd_query_hca_cap(struct mlx5sim *m, struct cmd *c)
{
	u32 type = c->op_mod >> 1;

	if (type > CAP_TYPE_LAST)
		return CMD_BAD_PARAM;
	/* Of what it has not, a device tells that it can do nothing */
	if (!cap_type_known(type))
		return CMD_OK;
	memcpy(ifc_at(query_hca_cap_out, c->out, capability),
	       c->op_mod & 1 ? m->cap_cur[type] : m->cap_max[type], CAP_BYTES);
	return CMD_OK;
}

enum cmd_status cmd_set_hca_cap(struct mlx5sim *m, struct cmd *c)
{
	const u8 *in = ifc_at(set_hca_cap_in, c->in, capability);
	u32 type = c->op_mod >> 1;

	if (!cap_type_known(type)) {
		broken(m, CHK_CMD_OPCODE, "SET_HCA_CAP of type 0x%x", type);
		return CMD_BAD_PARAM;
	}
	for (u32 i = 0; i < ARRAY_SIZE(fields); i++) {
		const struct cap_field *f = &fields[i];

		if (f->type != type || f->coded ||
		    ifc_load(in, f->first, f->width) <=
		    ifc_load(m->cap_max[type], f->first, f->width))
			continue;
		broken(m, CHK_CAP_VALUE, "%s", f->name);
		return CMD_BAD_PARAM;
	}
	/* Of the atomic ones a driver sets the mode, and sends nothing else */
	if (type == CAP_ATOMIC)
		ifc_set(atomic_caps, m->cap_cur[type],
			atomic_req_8B_endianness_mode,
			ifc_get(atomic_caps, in, atomic_req_8B_endianness_mode));
	else
		memcpy(m->cap_cur[type], in, CAP_BYTES);
	return CMD_OK;
}
