// SPDX-License-Identifier: GPL-2.0
/* Bringing the device up and down, and the pages that it borrows meanwhile. */
#include <stdlib.h>

#include "model.h"

#define PAGES_BOOT		8	/* wanted before INIT_HCA */
#define PAGES_INIT		16	/* wanted for it */
#define PAGES_MAX		4096

/* Modifiers of MANAGE_PAGES and QUERY_PAGES */
#define PAGES_CANNOT_GIVE	0
#define PAGES_GIVE		1
#define PAGES_TAKE		2
#define QUERY_PAGES_BOOT	1
#define QUERY_PAGES_INIT	2

#define ISSI_SUPPORTED		0x3	/* 0 and 1 */

enum cmd_status cmd_nothing(struct mlx5sim *m, struct cmd *c)
{
	(void)m;
	(void)c;
	return CMD_OK;
}

enum cmd_status cmd_enable_hca(struct mlx5sim *m, struct cmd *c)
{
	(void)c;
	if (m->state == HCA_OFF)
		m->state = HCA_ENABLED;
	return CMD_OK;
}

enum cmd_status cmd_disable_hca(struct mlx5sim *m, struct cmd *c)
{
	(void)c;
	device_forget(m);
	return CMD_OK;
}

enum cmd_status cmd_init_hca(struct mlx5sim *m, struct cmd *c)
{
	(void)c;
	m->state = HCA_RUNNING;
	return CMD_OK;
}

enum cmd_status cmd_teardown_hca(struct mlx5sim *m, struct cmd *c)
{
	u32 profile = ifc_get(teardown_hca_in, c->in, profile);
	const char *kind = "";
	u32 left = device_leaks(m, &kind);

	if (profile == MLX5_TEARDOWN_HCA_IN_PROFILE_GRACEFUL_CLOSE && left)
		broken_if(!m->leak_injected, m, CHK_OBJECT_LEAK,
			  "%u objects left, the first is a %s", left, kind);
	m->state = HCA_ENABLED;
	return CMD_OK;
}

enum cmd_status cmd_query_pages(struct mlx5sim *m, struct cmd *c)
{
	u32 wanted = c->op_mod == QUERY_PAGES_BOOT ? PAGES_BOOT :
		     c->op_mod == QUERY_PAGES_INIT ? PAGES_INIT : 0;

	(void)m;
	ifc_set(query_pages_out, c->out, num_pages, wanted);
	return CMD_OK;
}

static bool has_page(const struct mlx5sim *m, u64 page)
{
	for (u32 i = 0; i < m->pages; i++)
		if (m->page[i] == page)
			return true;
	return false;
}

static enum cmd_status give_pages(struct mlx5sim *m, struct cmd *c, u32 count)
{
	const u8 *pas = ifc_at(manage_pages_in, c->in, pas);

	if (count > cmd_pas_count(c, pas))
		return CMD_BAD_IN_LENGTH;
	if (m->pages + count > PAGES_MAX)
		return CMD_LIMIT;
	if (!m->page)
		m->page = calloc(PAGES_MAX, sizeof(*m->page));
	if (!m->page)
		return CMD_INTERNAL;
	for (u32 i = 0; i < count; i++) {
		u64 page = get_be64(pas + 8 * i);

		if (!page || page % 4096 || has_page(m, page)) {
			broken(m, CHK_PAGES, "page 0x%llx given",
			       (unsigned long long)page);
			return CMD_BAD_PARAM;
		}
		m->page[m->pages++] = page;
	}
	return CMD_OK;
}

static enum cmd_status take_pages(struct mlx5sim *m, struct cmd *c, u32 count)
{
	u8 *pas = ifc_at(manage_pages_out, c->out, pas);
	u32 room = c->out_len > ifc_bytes(manage_pages_out) ?
		   (c->out_len - ifc_bytes(manage_pages_out)) / 8 : 0;
	u32 taken = 0;

	if (count > room) {
		broken(m, CHK_PAGES, "%u pages wanted, room for %u", count,
		       room);
		return CMD_BAD_OUT_LENGTH;
	}
	if (count && !m->pages) {
		broken(m, CHK_PAGES, "%u pages wanted back, there are none",
		       count);
		return CMD_BAD_PARAM;
	}
	while (taken < count && m->pages)
		put_be64(pas + 8 * taken++, m->page[--m->pages]);
	ifc_set(manage_pages_out, c->out, output_num_entries, taken);
	return CMD_OK;
}

enum cmd_status cmd_manage_pages(struct mlx5sim *m, struct cmd *c)
{
	u32 count = ifc_get(manage_pages_in, c->in, input_num_entries);

	switch (c->op_mod) {
	case PAGES_CANNOT_GIVE:
		return CMD_OK;
	case PAGES_GIVE:
		return give_pages(m, c, count);
	case PAGES_TAKE:
		return take_pages(m, c, count);
	default:
		broken(m, CHK_CMD_OPCODE, "MANAGE_PAGES, modifier 0x%x",
		       c->op_mod);
		return CMD_BAD_PARAM;
	}
}

enum cmd_status cmd_query_issi(struct mlx5sim *m, struct cmd *c)
{
	ifc_set(query_issi_out, c->out, current_issi, m->issi);
	ifc_set(query_issi_out, c->out, supported_issi_dw0, ISSI_SUPPORTED);
	return CMD_OK;
}

enum cmd_status cmd_set_issi(struct mlx5sim *m, struct cmd *c)
{
	u32 issi = ifc_get(set_issi_in, c->in, current_issi);

	if (issi > 1 || !(ISSI_SUPPORTED & BIT(issi))) {
		broken(m, CHK_CMD_OPCODE, "SET_ISSI %u", issi);
		return CMD_BAD_PARAM;
	}
	m->issi = issi;
	return CMD_OK;
}

enum cmd_status cmd_query_adapter(struct mlx5sim *m, struct cmd *c)
{
	static const char psid[16] = "SIM0000000001";

	(void)m;
	ifc_set(query_adapter_out, c->out, query_adapter_struct.ieee_vendor_id,
		0x2c9);
	memcpy(ifc_at(query_adapter_out, c->out,
		      query_adapter_struct.vsd_contd_psid), psid, sizeof(psid));
	return CMD_OK;
}

enum cmd_status cmd_query_special_contexts(struct mlx5sim *m, struct cmd *c)
{
	(void)m;
	ifc_set(query_special_contexts_out, c->out, null_mkey, NULL_MKEY);
	return CMD_OK;
}
