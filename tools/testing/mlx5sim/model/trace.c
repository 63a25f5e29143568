// SPDX-License-Identifier: GPL-2.0
/* The trace: one JSON object a line. */
#include <stdarg.h>
#include <stdio.h>

#include "model.h"

void trace(struct mlx5sim *m, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	int n;

	if (!m->ops->trace)
		return;
	n = snprintf(text, sizeof(text), "{\"ns\":%llu,\"device\":%u,",
		     (unsigned long long)now(m), m->lid);
	va_start(ap, fmt);
	n += vsnprintf(text + n, sizeof(text) - n, fmt, ap);
	va_end(ap);
	/* No event is as long as the buffer, but a cut one would not be JSON */
	if (n < (int)sizeof(text) - 1) {
		text[n] = '}';
		text[n + 1] = '\0';
		m->ops->trace(m->host, text);
	}
}
