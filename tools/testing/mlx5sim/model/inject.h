/* SPDX-License-Identifier: GPL-2.0 */
/* Faults that a test asks for. */
#ifndef MODEL_INJECT_H
#define MODEL_INJECT_H

#include <stdbool.h>

#include "ifc.h"

#define INJECTIONS		16

enum inject_kind {
	INJECT_CMD_STATUS,
	INJECT_CMD_DELAY,
	INJECT_CMD_DROP,
	INJECT_CQE_DELAY,
	INJECT_CQE_DROP,
	INJECT_CQE_ERROR,
	INJECT_RESUME_ERROR,
	INJECT_FATAL,
	INJECT_KINDS,
};

/**
 * struct injection - one fault
 * @kind: what happens
 * @opcode: of the command or send request that it happens to
 * @nth: to which of them, from 1 on
 * @value: status or delay
 * @seen: how many there were
 */
struct injection {
	enum inject_kind kind;
	u32 opcode;
	u64 nth;
	u64 value;
	u64 seen;
};

/**
 * struct injections - all of them
 * @count: how many there are
 * @configured: how many of them, the first ones, are there again after a reset
 * @list: the faults
 */
struct injections {
	u32 count;
	u32 configured;
	struct injection list[INJECTIONS];
};

struct mlx5sim;

/* The list that a device comes with; false: not understood */
bool inject_configure(struct injections *i, const char *text);
void inject_reset(struct injections *i);
/* Count one event; true: it is the one, *@value tells the parameter */
bool inject_hit(struct mlx5sim *m, enum inject_kind kind, u32 opcode,
		u64 *value);

#endif /* MODEL_INJECT_H */
