// SPDX-License-Identifier: GPL-2.0
/* Faults that a test asks for: which, and when it is their turn. */
#include <stdlib.h>

#include "model.h"

/* How many numbers follow the name of a fault, and how many of them are given */
static const struct {
	const char *name;
	bool has_opcode;
	bool has_value;
} kinds[INJECT_KINDS] = {
	[INJECT_CMD_STATUS]	= { "", true, true },
	[INJECT_CMD_DELAY]	= { "cmd-delay:", true, true },
	[INJECT_CMD_DROP]	= { "cmd-drop:", true, false },
	[INJECT_CQE_DELAY]	= { "cqe-delay:", true, true },
	[INJECT_CQE_DROP]	= { "cqe-drop:", true, false },
	[INJECT_CQE_ERROR]	= { "cqe-error:", true, false },
	[INJECT_RESUME_ERROR]	= { "resume-error:", false, false },
	[INJECT_FATAL]		= { "fatal:", false, false },
};

/* A number, then @end or, for ',', also the end of the text */
static bool number(const char **at, char end, u64 *value)
{
	char *rest;

	if (**at < '0' || **at > '9')
		return false;
	*value = strtoull(*at, &rest, 0);
	if (*rest != end && !(end == ',' && !*rest))
		return false;
	*at = rest + !!*rest;
	return true;
}

static bool parse_one(const char **at, struct injection *i)
{
	u64 opcode = 0;

	/* The kind without a name is the last to be tried */
	for (u32 k = INJECT_KINDS; k-- > 0; ) {
		size_t len = strlen(kinds[k].name);

		if (strncmp(*at, kinds[k].name, len))
			continue;
		*at += len;
		i->kind = k;
		break;
	}
	if (kinds[i->kind].has_opcode && !number(at, ':', &opcode))
		return false;
	i->opcode = opcode;
	if (!number(at, kinds[i->kind].has_value ? ':' : ',', &i->nth) ||
	    !i->nth)
		return false;
	return !kinds[i->kind].has_value || number(at, ',', &i->value);
}

static bool parse(struct injections *i, const char *text)
{
	while (text && *text) {
		if (i->count == INJECTIONS)
			return false;
		i->list[i->count] = (struct injection){ 0 };
		if (!parse_one(&text, &i->list[i->count]))
			return false;
		i->count++;
	}
	return true;
}

bool inject_configure(struct injections *i, const char *text)
{
	if (!parse(i, text))
		return false;
	i->configured = i->count;
	return true;
}

/* Those ordered before that have happened */
static void forget_done(struct injections *i)
{
	u32 kept = i->configured;

	for (u32 n = kept; n < i->count; n++)
		if (i->list[n].seen < i->list[n].nth)
			i->list[kept++] = i->list[n];
	i->count = kept;
}

bool mlx5sim_order(struct mlx5sim *m, const char *faults)
{
	struct injections *i = &m->inject;
	u32 count;

	forget_done(i);
	count = i->count;
	if (parse(i, faults))
		return true;
	i->count = count;
	return false;
}

void inject_reset(struct injections *i)
{
	i->count = i->configured;
	for (u32 n = 0; n < i->count; n++)
		i->list[n].seen = 0;
}

bool inject_hit(struct mlx5sim *m, enum inject_kind kind, u32 opcode,
		u64 *value)
{
	bool hit = false;

	for (u32 n = 0; n < m->inject.count; n++) {
		struct injection *i = &m->inject.list[n];

		if (i->kind != kind || i->opcode != opcode ||
		    ++i->seen != i->nth)
			continue;
		hit = true;
		*value = i->value;
		m->stats.injected++;
		note(m, "injected: %s0x%x, number %llu", kinds[kind].name,
		     opcode, (unsigned long long)i->nth);
	}
	return hit;
}
