// SPDX-License-Identifier: GPL-2.0
/*
 * Files of debugfs that say what is made to fail.  One of them may be what makes this
 * process' own allocations fail, so that restoring is tried again.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "fault_attr.h"
#include "tap.h"

#define TRIES	1000

static bool put(const char *path, const char *value)
{
	FILE *file = fopen(path, "w");

	if (!file)
		return false;
	fputs(value, file);
	return !fclose(file);
}

static bool get(const char *path, char *value, size_t size)
{
	FILE *file = fopen(path, "r");
	bool good = file && fgets(value, size, file);

	if (file)
		fclose(file);
	return good;
}

static const char *path_of(const struct fault_attr *attr)
{
	static char path[128];

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s", attr->path);
	return path;
}

void fault_attrs_set(struct fault_attr *attrs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *path = path_of(&attrs[i]);

		if (!get(path, attrs[i].saved, sizeof(attrs[i].saved)) ||
		    !put(path, attrs[i].value))
			bail("%s: %s", path, strerror(errno));
	}
}

void fault_attrs_restore(struct fault_attr *attrs, size_t count)
{
	while (count--) {
		const char *path = path_of(&attrs[count]);

		for (int tries = 0; !put(path, attrs[count].saved); tries++)
			if (tries == TRIES)
				bail("%s: %s", path, strerror(errno));
	}
}
