// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "refusal.h"

#define TRACING	"/sys/kernel/tracing/"
#define EVENT	"ib_umem_dmabuf_refuse"

static int put(const char *path, const char *text, int flags)
{
	int fd = open(path, O_WRONLY | flags);
	int err = 0;

	if (fd < 0)
		return errno;
	if (*text && write(fd, text, strlen(text)) < 0)
		err = errno;
	close(fd);
	return err;
}

int refusal_listen(void)
{
	int err = put(TRACING "events/ib_umem_dmabuf/" EVENT "/enable", "1", 0);

	return err ? err : put(TRACING "trace", "", O_TRUNC);
}

const char *refusal_layer(void)
{
	static char layer[64];
	FILE *trace = fopen(TRACING "trace", "r");
	char line[512];

	*layer = '\0';
	while (trace && !*layer && fgets(line, sizeof(line), trace)) {
		char *start = strstr(line, EVENT ": "), *end;

		start = start ? strstr(start, "layer=") : NULL;
		if (!start)
			continue;
		start += strlen("layer=");
		end = strstr(start, " cause=");
		if (end)
			snprintf(layer, sizeof(layer), "%.*s", (int)(end - start), start);
	}
	if (trace)
		fclose(trace);
	return layer;
}
