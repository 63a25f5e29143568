// SPDX-License-Identifier: GPL-2.0
/* The devices of this process: their life, and the way in from the host. */
#include <stdlib.h>

#include "model.h"

struct budget budget;
static struct mlx5sim *devices;
static u32 depth;

struct mlx5sim *device_by_lid(u16 lid)
{
	for (struct mlx5sim *m = devices; m; m = m->next)
		if (m->lid == lid)
			return m;
	return NULL;
}

u64 now(struct mlx5sim *m)
{
	return m->ops->now_ns(m->host);
}

bool device_nested(void)
{
	return depth > 1;
}

static void enter(void)
{
	if (depth++)
		return;
	budget = (struct budget){
		.bytes = BUDGET_BYTES,
		.steps = BUDGET_STEPS,
		.wqes = BUDGET_WQES,
	};
}

/* When does this device want its timer? */
static u64 next_deadline(struct mlx5sim *m)
{
	u64 next = UINT64_MAX;

	if (m->stopped)
		return next;
	if (m->cmd_waiting)
		return 0;
	for (u32 i = 0; i < CMD_SLOTS; i++)
		if (m->cmd_slot[i].pending)
			next = min_of(next, m->cmd_slot[i].due_ns);
	for (struct qp *qp = m->work; qp; qp = qp->next)
		next = min_of(next, qp->wake_ns);
	return next;
}

static void leave(void)
{
	if (--depth)
		return;
	for (struct mlx5sim *m = devices; m; m = m->next) {
		u64 next = next_deadline(m);

		/* A deadline that has passed is asked for again */
		if (next == m->timer_ns && next == UINT64_MAX)
			continue;
		m->timer_ns = next;
		m->ops->timer_set(m->host, next);
	}
}

static void tables_init(struct mlx5sim *m)
{
	table_init(&m->uars, "UAR", UAR_FIRST, MLX5SIM_BAR_SIZE / UAR_PAGE);
	table_init(&m->pds, "PD", 1, 1 << 16);
	table_init(&m->xrcds, "XRCD", 1, 1 << 16);
	table_init(&m->tds, "transport domain", 1, 1 << 16);
	table_init(&m->uctxs, "DEVX context", 1, 1 << 10);
	table_init(&m->umems, "UMEM", 1, 1 << 16);
	table_init(&m->eqs, "EQ", 1, 128);
	table_init(&m->cqs, "CQ", 1, 1 << 16);
	table_init(&m->srqs, "SRQ", 1, 1 << 16);
	table_init(&m->mkeys, "memory key", MKEY_FIRST_INDEX, 1 << 18);
	table_init(&m->qps, "QP", 0x40, 1 << 16);
}

u32 device_leaks(const struct mlx5sim *m, const char **kind)
{
	const struct table *tables[] = {
		&m->qps, &m->mkeys, &m->srqs, &m->cqs, &m->eqs, &m->umems,
		&m->xrcds, &m->pds, &m->tds,
	};
	u32 left = 0;

	for (u32 i = 0; i < ARRAY_SIZE(tables); i++) {
		if (tables[i]->live && !left)
			*kind = tables[i]->kind;
		left += tables[i]->live;
	}
	return left;
}

static void forget_plain(struct table *t)
{
	struct object *o;
	u32 at = 0;

	while ((o = table_step(t, &at)))
		table_remove(t, o);
	table_forget(t);
}

/* Users before what they use */
void device_forget(struct mlx5sim *m)
{
	struct object *o;
	u32 at;

	for (at = 0; (o = table_step(&m->qps, &at));)
		qp_destroy(m, (struct qp *)o);
	for (at = 0; (o = table_step(&m->mkeys, &at));)
		mkey_destroy(m, (struct mkey *)o);
	for (at = 0; (o = table_step(&m->srqs, &at));)
		srq_destroy(m, (struct srq *)o);
	for (at = 0; (o = table_step(&m->cqs, &at));)
		cq_destroy(m, (struct cq *)o);
	for (at = 0; (o = table_step(&m->eqs, &at));)
		eq_destroy(m, (struct eq *)o);
	for (at = 0; (o = table_step(&m->umems, &at));) {
		free(((struct umem *)o)->mtt);
		table_remove(&m->umems, o);
	}
	table_forget(&m->qps);
	table_forget(&m->mkeys);
	table_forget(&m->srqs);
	table_forget(&m->cqs);
	table_forget(&m->eqs);
	table_forget(&m->umems);
	forget_plain(&m->xrcds);
	forget_plain(&m->pds);
	forget_plain(&m->tds);
	forget_plain(&m->uctxs);
	forget_plain(&m->uars);
	cmd_forget(m);
	free(m->page);
	m->page = NULL;
	m->pages = 0;
	m->state = HCA_OFF;
	m->issi = 0;
	m->leak_injected = false;
	m->port_caps = 0;
	caps_reset(m);
}

void device_fail(struct mlx5sim *m)
{
	m->fatal = true;
	device_forget(m);
}

struct mlx5sim *mlx5sim_new(void *host, const struct mlx5sim_ops *ops,
			    const struct mlx5sim_config *config)
{
	struct mlx5sim *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->host = host;
	m->ops = ops;
	m->lid = config->lid;
	m->is_pf = config->is_pf;
	m->strict = config->strict;
	m->trace_dma = config->trace_dma;
	m->timer_ns = UINT64_MAX;
	tables_init(m);
	if (!m->lid || m->lid > 0xbfff || device_by_lid(m->lid)) {
		note(m, "LID not valid, or another device has it");
	} else if (!caps_init(m, config->caps)) {
		note(m, "list of capabilities not understood: %s",
		     config->caps);
	} else if (!inject_configure(&m->inject, config->faults)) {
		note(m, "list of faults not understood: %s", config->faults);
	} else {
		m->next = devices;
		devices = m;
		return m;
	}
	free(m);
	return NULL;
}

void mlx5sim_free(struct mlx5sim *m)
{
	struct mlx5sim **at = &devices;

	if (!m)
		return;
	device_forget(m);
	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
	free(m);
}

void mlx5sim_reset(struct mlx5sim *m)
{
	enter();
	device_forget(m);
	inject_reset(&m->inject);
	memset(&m->stats, 0, sizeof(m->stats));
	m->stopped = false;
	m->fatal = false;
	m->violation = 0;
	m->last_broken = 0;
	m->cmdq_addr_h = 0;
	m->cmdq_addr_l = 0;
	leave();
}

u64 mlx5sim_bar_read(struct mlx5sim *m, u64 off, unsigned int size)
{
	return bar_read(m, off, size);
}

void mlx5sim_bar_write(struct mlx5sim *m, u64 off, u64 val, unsigned int size)
{
	if (m->stopped)
		return;
	enter();
	bar_write(m, off, val, size);
	leave();
}

void mlx5sim_timer(struct mlx5sim *m)
{
	u32 waiting = m->cmd_waiting;

	if (m->stopped)
		return;
	enter();
	if (!device_nested()) {
		m->cmd_waiting = 0;
		cmd_doorbell(m, waiting);
		cmd_run_late(m, now(m));
		qp_run_due(m, now(m));
	}
	leave();
}

unsigned int mlx5sim_violation(const struct mlx5sim *m)
{
	return m->violation;
}

const struct mlx5sim_stats *mlx5sim_stats(const struct mlx5sim *m)
{
	return &m->stats;
}
