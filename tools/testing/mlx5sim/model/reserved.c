// SPDX-License-Identifier: GPL-2.0
/* Reserved bits of the inputs of commands. */
#include "reserved.h"
#include "reserved_tables.inc"

static bool any_set(const u8 *in, u32 first, u32 width)
{
	u32 end = first + width;
	u8 set = 0;

	/* Reserved fields can be long: whole bytes go fast */
	for (; first < end && first % 8; first++)
		set |= ifc_load(in, first, 1);
	for (; first + 8 <= end; first += 8)
		set |= in[first / 8];
	for (; first < end; first++)
		set |= ifc_load(in, first, 1);
	return set;
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
