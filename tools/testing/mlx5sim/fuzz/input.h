/* SPDX-License-Identifier: GPL-2.0 */
/* The bytes of the fuzzer, taken one after the other; zeros when they end. */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <string.h>

#include "fake.h"

struct input {
	const u8 *data;
	size_t left;
};

static inline void take(struct input *in, void *to, size_t bytes)
{
	size_t part = min_of(bytes, in->left);

	memset(to, 0, bytes);
	if (part)
		memcpy(to, in->data, part);
	in->data += part;
	in->left -= part;
}

static inline u8 take8(struct input *in)
{
	u8 value;

	take(in, &value, sizeof(value));
	return value;
}

static inline u32 take32(struct input *in)
{
	u32 value;

	take(in, &value, sizeof(value));
	return value;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#endif /* FUZZ_INPUT_H */
