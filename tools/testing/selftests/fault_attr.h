/* SPDX-License-Identifier: GPL-2.0 */
/* The settings of the kernel's fault injection. */
#ifndef SELFTESTS_FAULT_ATTR_H
#define SELFTESTS_FAULT_ATTR_H

#include <stddef.h>

struct fault_attr {
	const char *path;	/* below /sys/kernel/debug */
	const char *value;
	char saved[32];
};

/* Each gets its value; what they were is saved.  Ends the test if one cannot be set. */
void fault_attrs_set(struct fault_attr *attrs, size_t count);
/* All as they were, the last one first. */
void fault_attrs_restore(struct fault_attr *attrs, size_t count);

#endif /* SELFTESTS_FAULT_ATTR_H */
