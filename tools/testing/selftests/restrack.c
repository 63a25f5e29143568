// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "restrack.h"
#include "tap.h"

void restrack_show(char *line, size_t size)
{
	char text[16384], *start, *end;
	FILE *pipe = popen("rdma -dd resource show mr", "r");

	if (!pipe)
		bail("popen: %s", strerror(errno));
	text[fread(text, 1, sizeof(text) - 1, pipe)] = '\0';
	if (pclose(pipe))
		bail("`rdma -dd resource show mr` failed");

	line[0] = '\0';
	start = strstr(text, "dmabuf_");
	if (!start)
		return;
	/* A line that begins with a blank continues the one before. */
	for (end = start; *end && (*end != '\n' || end[1] == ' ' || end[1] == '\t'); end++)
		if (*end == '\n')
			*end = ' ';
	*end = '\0';
	while (start > text && (start[-1] != '\n' || *start == ' ' || *start == '\t'))
		start--;
	if (strlen(start) >= size)
		bail("a long line: %s", start);
	strcpy(line, start);
}

bool restrack_says(const char *line, const char *name, const char *value)
{
	char want[128];

	snprintf(want, sizeof(want), "%s %s ", name, value);
	return strstr(line, want);
}

bool restrack_says_number(const char *line, const char *name, uint64_t value)
{
	char digits[32];

	snprintf(digits, sizeof(digits), "%" PRIu64, value);
	return restrack_says(line, name, digits);
}
