// SPDX-License-Identifier: GPL-2.0
/* Objects that are only a number: UAR pages, PDs, XRC and transport domains. */
#include <stdlib.h>

#include "model.h"

/* A new object of @size bytes in @t; NULL: none left */
static struct object *plain_new(struct table *t, size_t size, u16 uid)
{
	struct object *o = calloc(1, size);

	if (!o)
		return NULL;
	o->uid = uid;
	if (table_add(t, o))
		return o;
	free(o);
	return NULL;
}

static enum cmd_status plain_destroy(struct mlx5sim *m, struct table *t,
				     u32 number)
{
	struct object *o = object_to_destroy(m, t, number);

	if (!o)
		return CMD_BAD_RES_STATE;
	table_remove(t, o);
	return CMD_OK;
}

enum cmd_status cmd_alloc_uar(struct mlx5sim *m, struct cmd *c)
{
	struct object *o = plain_new(&m->uars, sizeof(struct uar), c->uid);

	if (!o)
		return CMD_NO_RESOURCE;
	ifc_set(alloc_uar_out, c->out, uar, o->number);
	return CMD_OK;
}

enum cmd_status cmd_dealloc_uar(struct mlx5sim *m, struct cmd *c)
{
	return plain_destroy(m, &m->uars,
			     ifc_get(dealloc_uar_in, c->in, uar));
}

enum cmd_status cmd_alloc_pd(struct mlx5sim *m, struct cmd *c)
{
	struct object *o = plain_new(&m->pds, sizeof(struct pd), c->uid);

	if (!o)
		return CMD_NO_RESOURCE;
	ifc_set(alloc_pd_out, c->out, pd, o->number);
	return CMD_OK;
}

enum cmd_status cmd_dealloc_pd(struct mlx5sim *m, struct cmd *c)
{
	return plain_destroy(m, &m->pds, ifc_get(dealloc_pd_in, c->in, pd));
}

enum cmd_status cmd_alloc_xrcd(struct mlx5sim *m, struct cmd *c)
{
	struct object *o = plain_new(&m->xrcds, sizeof(struct xrcd), c->uid);

	if (!o)
		return CMD_NO_RESOURCE;
	ifc_set(alloc_xrcd_out, c->out, xrcd, o->number);
	return CMD_OK;
}

enum cmd_status cmd_dealloc_xrcd(struct mlx5sim *m, struct cmd *c)
{
	return plain_destroy(m, &m->xrcds,
			     ifc_get(dealloc_xrcd_in, c->in, xrcd));
}

enum cmd_status cmd_alloc_td(struct mlx5sim *m, struct cmd *c)
{
	struct object *o = plain_new(&m->tds, sizeof(struct td), c->uid);

	if (!o)
		return CMD_NO_RESOURCE;
	ifc_set(alloc_transport_domain_out, c->out, transport_domain,
		o->number);
	return CMD_OK;
}

enum cmd_status cmd_dealloc_td(struct mlx5sim *m, struct cmd *c)
{
	return plain_destroy(m, &m->tds,
			     ifc_get(dealloc_transport_domain_in, c->in,
				     transport_domain));
}

enum cmd_status cmd_create_uctx(struct mlx5sim *m, struct cmd *c)
{
	struct object *o = plain_new(&m->uctxs, sizeof(struct uctx), 0);

	if (!o)
		return CMD_NO_RESOURCE;
	ifc_set(create_uctx_out, c->out, uid, o->number);
	return CMD_OK;
}

enum cmd_status cmd_destroy_uctx(struct mlx5sim *m, struct cmd *c)
{
	return plain_destroy(m, &m->uctxs,
			     ifc_get(destroy_uctx_in, c->in, uid));
}
