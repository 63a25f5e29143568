// SPDX-License-Identifier: GPL-2.0
/* What a driver says that its port can do. */
#include "../../selftests/tap.h"
#include "../model/cmd.h"
#include "fake.h"

#define CM_SUPPORTED		BIT(16)
#define DEVICE_MANAGEMENT	BIT(19)
#define SUBNET_MANAGER		BIT(1)

static struct dev *d;

static u32 port_caps(u32 *settable)
{
	u8 out[ifc_bytes(query_hca_vport_context_out)];
	const u8 *ctx = ifc_at(query_hca_vport_context_out, out,
			       hca_vport_context);

	ok(!dev_simple(d, MLX5_CMD_OP_QUERY_HCA_VPORT_CONTEXT, 0, 1 << 16, out,
		       sizeof(out)), "query the port");
	*settable = ifc_get(hca_vport_context, ctx, cap_mask1_field_select);
	return ifc_get(hca_vport_context, ctx, cap_mask1);
}

static int change(u32 mask, u32 caps, u32 other_fields)
{
	u8 in[ifc_bytes(modify_hca_vport_context_in)] = { 0 }, out[16];
	u8 *ctx = ifc_at(modify_hca_vport_context_in, in, hca_vport_context);

	ifc_set(modify_hca_vport_context_in, in, opcode,
		MLX5_CMD_OP_MODIFY_HCA_VPORT_CONTEXT);
	ifc_set(hca_vport_context, ctx, field_select, other_fields);
	ifc_set(hca_vport_context, ctx, cap_mask1_field_select, mask);
	ifc_set(hca_vport_context, ctx, cap_mask1, caps);
	return dev_cmd(d, in, sizeof(in), out, sizeof(out));
}

int main(void)
{
	const struct mlx5sim_config config = { .lid = 1, .strict = true };
	u32 settable;

	d = dev_running(&config);
	ok(!port_caps(&settable), "none at first");
	ok(settable & CM_SUPPORTED, "some may be changed");
	/* Drivers give ones for all that they do not change */
	ok(!change(CM_SUPPORTED, UINT32_MAX, 0), "set one");
	ok(port_caps(&settable) == CM_SUPPORTED, "that one and no other is set");
	ok(!change(DEVICE_MANAGEMENT, DEVICE_MANAGEMENT, 0), "set another");
	ok(!change(CM_SUPPORTED, 0, 0), "clear the first");
	ok(port_caps(&settable) == DEVICE_MANAGEMENT, "the other one is left");
	ok(change(SUBNET_MANAGER, SUBNET_MANAGER, 0) == CMD_BAD_PARAM,
	   "one that may not be changed");
	ok(change(CM_SUPPORTED, CM_SUPPORTED, 1) == CMD_BAD_PARAM,
	   "other fields are fixed");
	ok(port_caps(&settable) == DEVICE_MANAGEMENT, "a refusal changes nothing");
	ok(!d->violation, "no rule broken (%s)", d->text);
	mlx5sim_reset(d->sim);
	d->pages = 0;
	ok(!dev_boot(d) && !port_caps(&settable), "reset forgets");
	dev_free(d);
	machine_reset();
	return tap_done();
}
