// SPDX-License-Identifier: GPL-2.0
/* Reserved bits of the inputs of commands. */
#include "reserved.h"
#include "reserved_tables.inc"

static bool any_set(const u8 *in, u32 first, u32 width)
{
	while (width) {
		u32 part = min_of(width, 8 - first % 8);

		if (ifc_load(in, first, part))
			return true;
		first += part;
		width -= part;
	}
	return false;
}

bool reserved_set(const struct reserved *r, const u8 *in, u32 *bit)
{
	for (; r->width; r++) {
		/* Structures begin with a byte */
		if (r->inner ? reserved_set(r->inner, in + r->first / 8, bit) :
			       any_set(in, r->first, r->width)) {
			*bit = r->inner ? *bit + r->first : r->first;
			return true;
		}
	}
	return false;
}
