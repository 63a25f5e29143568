// SPDX-License-Identifier: GPL-2.0
/* Event queues. */
#include <stdlib.h>

#include "model.h"

#define LOG_EQ_SIZE_MAX		22
#define COUNTER_MASK		0xffffffu

#define EQE_TYPE		1
#define EQE_SUBTYPE		3
#define EQE_DATA_AT		32
#define EQE_OWNER		63

/* Data of an event of a QP or SRQ */
#define QP_EVENT_NUMBER		24

static u32 eq_used(const struct eq *eq)
{
	return (eq->pi - eq->ci) & COUNTER_MASK;
}

static void eq_interrupt(struct mlx5sim *m, struct eq *eq)
{
	eq->armed = false;
	m->ops->msix(m->host, eq->vector);
}

void eq_event(struct mlx5sim *m, struct eq *eq, u8 type, u8 subtype,
	      const u8 *data)
{
	u32 at = eq->pi & (BIT(eq->log_size) - 1);
	u8 eqe[EQE_SIZE] = { 0 };

	if (m->stopped)
		return;
	if (eq_used(eq) >= BIT(eq->log_size)) {
		broken(m, CHK_EQ_OVERRUN, "EQ %u, event type 0x%x",
		       eq->obj.number, type);
		return;
	}
	eqe[EQE_TYPE] = type;
	eqe[EQE_SUBTYPE] = subtype;
	memcpy(eqe + EQE_DATA_AT, data, EQE_DATA);
	eqe[EQE_OWNER] = eq->pi >> eq->log_size & 1;
	/* The owner byte hands it over, so it goes last */
	ring_write(m, &eq->ring, (u64)at * EQE_SIZE, eqe, EQE_OWNER);
	ring_write(m, &eq->ring, (u64)at * EQE_SIZE + EQE_OWNER,
		   eqe + EQE_OWNER, 1);
	eq->pi = (eq->pi + 1) & COUNTER_MASK;
	if (eq->armed)
		eq_interrupt(m, eq);
}

struct eq *eq_for(struct mlx5sim *m, u8 type)
{
	struct eq *eq;
	u32 at = 0;

	while ((eq = table_step(&m->eqs, &at)))
		if (type < 64 && eq->events & BIT_ULL(type))
			return eq;
	return NULL;
}

void eq_qp_event(struct mlx5sim *m, u8 type, u32 number)
{
	struct eq *eq = eq_for(m, type);
	u8 data[EQE_DATA] = { 0 };

	put_be32(data + QP_EVENT_NUMBER, number);
	if (eq)
		eq_event(m, eq, type, 0, data);
}

/* Event queue number and consumer counter; @arm asks for an interrupt */
void eq_doorbell(struct mlx5sim *m, u32 value, bool arm)
{
	struct eq *eq = table_find(&m->eqs, value >> 24);
	u32 ci = value & COUNTER_MASK;

	if (!eq) {
		broken(m, CHK_DOORBELL, "EQ %u", value >> 24);
		return;
	}
	if (((eq->pi - ci) & COUNTER_MASK) > BIT(eq->log_size)) {
		broken(m, CHK_EQ_CONSUMER, "EQ %u: consumer 0x%x, producer 0x%x",
		       eq->obj.number, ci, eq->pi);
		return;
	}
	eq->ci = ci;
	if (!arm)
		return;
	if (eq_used(eq))
		eq_interrupt(m, eq);
	else
		eq->armed = true;
}

enum cmd_status cmd_create_eq(struct mlx5sim *m, struct cmd *c)
{
	const u8 *eqc = ifc_at(create_eq_in, c->in, eq_context_entry);
	const u8 *pas = ifc_at(create_eq_in, c->in, pas);
	u32 log_size = ifc_get(eqc, eqc, log_eq_size);
	u32 vector = ifc_get(eqc, eqc, intr);
	struct pages_arg pages = {
		.pas = pas,
		.count = cmd_pas_count(c, pas),
		.log_page_size = ifc_get(eqc, eqc, log_page_size),
		.page_offset = ifc_get(eqc, eqc, page_offset),
	};
	enum cmd_status status;
	struct eq *eq;

	if (log_size > LOG_EQ_SIZE_MAX || vector >= MLX5SIM_NUM_VECTORS) {
		broken(m, CHK_CONTEXT, "EQ: log size %u, vector %u", log_size,
		       vector);
		return CMD_BAD_PARAM;
	}
	if (!object_get(m, &m->uars, ifc_get(eqc, eqc, uar_page)))
		return CMD_BAD_RESOURCE;
	eq = calloc(1, sizeof(*eq));
	if (!eq)
		return CMD_NO_RESOURCE;
	status = ring_init(m, &eq->ring, &pages, (u64)EQE_SIZE << log_size);
	if (status == CMD_OK && !table_add(&m->eqs, &eq->obj))
		status = CMD_LIMIT;
	if (status != CMD_OK) {
		ring_free(&eq->ring);
		free(eq);
		return status;
	}
	memcpy(eq->eqc, eqc, sizeof(eq->eqc));
	eq->obj.uid = c->uid;
	eq->log_size = log_size;
	eq->vector = vector;
	eq->events = get_be64(ifc_at(create_eq_in, c->in, event_bitmask));
	ifc_set(create_eq_out, c->out, eq_number, eq->obj.number);
	return CMD_OK;
}

void eq_destroy(struct mlx5sim *m, struct eq *eq)
{
	ring_free(&eq->ring);
	table_remove(&m->eqs, &eq->obj);
}

enum cmd_status cmd_destroy_eq(struct mlx5sim *m, struct cmd *c)
{
	struct eq *eq = object_to_destroy(m, &m->eqs,
					  ifc_get(destroy_eq_in, c->in,
						  eq_number));

	if (!eq)
		return CMD_BAD_RES_STATE;
	eq_destroy(m, eq);
	return CMD_OK;
}

enum cmd_status cmd_query_eq(struct mlx5sim *m, struct cmd *c)
{
	struct eq *eq = object_get(m, &m->eqs,
				   ifc_get(query_eq_in, c->in, eq_number));
	u8 *eqc = ifc_at(query_eq_out, c->out, eq_context_entry);

	if (!eq)
		return CMD_BAD_RESOURCE;
	memcpy(eqc, eq->eqc, sizeof(eq->eqc));
	ifc_set(eqc, eqc, producer_counter, eq->pi);
	ifc_set(eqc, eqc, consumer_counter, eq->ci);
	ifc_set(query_eq_out, c->out, event_bitmask, eq->events);
	return CMD_OK;
}
