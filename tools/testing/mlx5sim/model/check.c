// SPDX-License-Identifier: GPL-2.0
/* Rules that a driver broke, and the log. */
#include <stdarg.h>
#include <stdio.h>

#include "model.h"

static const struct {
	const char *name;
	const char *text;
} rules[] = {
#define CHECK(number, name, text)	[number] = { #name, text },
#include "checks.inc"
#undef CHECK
};

const char *check_name(enum check check)
{
	return rules[check].name;
}

void broken(struct mlx5sim *m, enum check check, const char *fmt, ...)
{
	char detail[256], text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(detail, sizeof(detail), fmt, ap);
	va_end(ap);
	snprintf(text, sizeof(text), "%u %s: %s: %s", check, rules[check].name,
		 rules[check].text, detail);
	if (m->stopped)
		return;
	if (m->of_user) {
		note(m, "refused to a user: %s", text);
		return;
	}
	note(m, "broken rule %s", text);
	trace(m, "\"event\":\"violation\",\"number\":%u,\"name\":\"%s\"", check,
	      check_name(check));
	m->last_broken = check;
	if (!m->violation)
		m->violation = check;
	if (!m->strict)
		return;
	m->stopped = true;
	if (m->ops->violation)
		m->ops->violation(m->host, check, text);
}

void note(struct mlx5sim *m, const char *fmt, ...)
{
	char text[600];
	va_list ap;
	int n;

	if (!m->ops->log)
		return;
	n = snprintf(text, sizeof(text), "mlx5sim %u: ", m->lid);
	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - n, fmt, ap);
	va_end(ap);
	m->ops->log(m->host, text);
}
