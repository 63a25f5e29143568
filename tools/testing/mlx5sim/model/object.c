// SPDX-License-Identifier: GPL-2.0
/* Tables of objects. */
#include <stdlib.h>

#include "model.h"

void table_init(struct table *t, const char *kind, u32 first, u32 end)
{
	*t = (struct table){ .kind = kind, .first = first, .end = end };
}

void table_forget(struct table *t)
{
	free(t->slot);
	free(t->known);
	table_init(t, t->kind, t->first, t->end);
}

static bool table_grow(struct table *t)
{
	u32 most = t->end - t->first;
	u32 slots = t->slots ? t->slots * 2 : 64;
	struct object **slot;
	bool *known;

	if (t->slots == most)
		return false;
	slots = min_of(slots, most);
	slot = realloc(t->slot, slots * sizeof(*slot));
	if (!slot)
		return false;
	t->slot = slot;
	known = realloc(t->known, slots * sizeof(*known));
	if (!known)
		return false;
	t->known = known;
	memset(slot + t->slots, 0, (slots - t->slots) * sizeof(*slot));
	memset(known + t->slots, 0, (slots - t->slots) * sizeof(*known));
	t->slots = slots;
	return true;
}

bool table_add(struct table *t, struct object *o)
{
	u32 at = t->next;

	if (at == t->slots && !table_grow(t)) {
		if (t->live == t->slots)
			return false;
		at = 0;
	}
	while (t->slot[at]) {
		at = (at + 1) % t->slots;
		if (at == t->next && !table_grow(t))
			return false;
	}
	t->slot[at] = o;
	t->known[at] = true;
	t->next = at + 1;
	t->live++;
	o->number = t->first + at;
	return true;
}

void table_remove(struct table *t, struct object *o)
{
	t->slot[o->number - t->first] = NULL;
	t->live--;
	free(o);
}

void *table_find(const struct table *t, u32 number)
{
	u32 at = number - t->first;

	return number >= t->first && at < t->slots ? t->slot[at] : NULL;
}

bool table_knew(const struct table *t, u32 number)
{
	u32 at = number - t->first;

	return number >= t->first && at < t->slots && t->known[at];
}

void *object_get(struct mlx5sim *m, const struct table *t, u32 number)
{
	struct object *o = table_find(t, number);

	if (o)
		return o;
	if (table_knew(t, number))
		broken(m, CHK_OBJECT_DESTROYED, "%s 0x%x", t->kind, number);
	else
		broken(m, CHK_OBJECT_DEAD, "%s 0x%x", t->kind, number);
	return NULL;
}

void *object_to_destroy(struct mlx5sim *m, const struct table *t, u32 number)
{
	struct object *o = object_get(m, t, number);

	if (!o || !o->users)
		return o;
	/* Nobody but its user knows what a UMEM is used for */
	broken_if(!m->leak_injected && t != &m->umems, m, CHK_OBJECT_BUSY,
		  "%s 0x%x has %u users", t->kind, number, o->users);
	return NULL;
}

void *table_step(const struct table *t, u32 *at)
{
	while (*at < t->slots) {
		struct object *o = t->slot[(*at)++];

		if (o)
			return o;
	}
	return NULL;
}
