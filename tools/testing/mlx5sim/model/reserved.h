/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reserved bits of the inputs of commands.
 *
 * gen-reserved makes the tables from mlx5_ifc.h, for the structures that are
 * named in reserved.list.
 */
#ifndef MODEL_RESERVED_H
#define MODEL_RESERVED_H

#include <stdbool.h>

#include "ifc.h"

/**
 * struct reserved - a reserved field, or a structure that has some
 * @first: position in bits
 * @width: in bits; 0 ends a table
 * @inner: the table of a structure, NULL for a reserved field
 */
struct reserved {
	u32 first;
	u32 width;
	const struct reserved *inner;
};

/* Whether a reserved bit is set; *@bit is the start of its field */
bool reserved_set(const struct reserved *r, const u8 *in, u32 *bit);

#include "reserved_tables.h"

#endif /* MODEL_RESERVED_H */
