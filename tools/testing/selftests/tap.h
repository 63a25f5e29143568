/* SPDX-License-Identifier: GPL-2.0 */
/*
 * TAP for C, all of it.  Include it in the one C file of a test.
 *
 *	int main(void)
 *	{
 *		if (!device_there())
 *			tap_skip_all("no device");
 *		ok(2 + 2 == 4, "sums are right");
 *		return tap_done();
 *	}
 */
#ifndef SELFTESTS_TAP_H
#define SELFTESTS_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define TAP_EXIT_FAIL	1
#define TAP_EXIT_SKIP	4	/* as in kselftest */

static struct {
	unsigned int tests;
	unsigned int failed;
} tap __attribute__((unused));

/* Prints a remark; each line of it gets its own '#'. */
__attribute__((format(printf, 1, 2), unused))
static void diag(const char *fmt, ...)
{
	char text[1024], *line, *rest = text;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	while ((line = rest)) {
		for (rest = line; *rest && *rest != '\n'; rest++)
			;
		if (*rest)
			*rest++ = '\0';
		else
			rest = NULL;
		if (rest && !*rest)
			rest = NULL;
		printf("# %s\n", line);
	}
	fflush(stdout);
}

__attribute__((format(printf, 3, 0), unused))
static void tap_line(bool good, const char *directive, const char *fmt, va_list ap)
{
	printf("%sok %u - ", good ? "" : "not ", ++tap.tests);
	vprintf(fmt, ap);
	printf("%s\n", directive);
	fflush(stdout);
	if (!good)
		tap.failed++;
}

__attribute__((format(printf, 4, 5), unused))
static bool tap_ok(bool good, const char *where, int line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tap_line(good, "", fmt, ap);
	va_end(ap);
	if (!good)
		diag("  failed at %s:%d", where, line);
	return good;
}

/* One test: passes if @cond holds.  Its name may be formatted.  Gives @cond. */
#define ok(cond, ...) tap_ok(!!(cond), __FILE__, __LINE__, __VA_ARGS__)

/* As ok(@got == @want), and prints both when they differ. */
#define is(got, want, ...) ({						\
	long long tap_got = (long long)(got);				\
	long long tap_want = (long long)(want);				\
	bool tap_same = ok(tap_got == tap_want, __VA_ARGS__);		\
									\
	if (!tap_same)							\
		diag("  got %lld, want %lld", tap_got, tap_want);	\
	tap_same;							\
})

/* One test that cannot be made here; says why. */
__attribute__((format(printf, 2, 3), unused))
static void skip(const char *name, const char *fmt, ...)
{
	va_list ap;

	printf("ok %u - %s # SKIP ", ++tap.tests, name);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
}

/*
 * Nothing of this file can be tested here.  prove takes any status but 0 for a
 * failure, whatever the plan says, so the status of kselftest is for others.
 */
__attribute__((format(printf, 1, 2), noreturn, unused))
static void tap_skip_all(const char *fmt, ...)
{
	va_list ap;

	printf("1..0 # SKIP ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	exit(getenv("HARNESS_ACTIVE") ? 0 : TAP_EXIT_SKIP);
}

/* The test itself cannot go on. */
__attribute__((format(printf, 1, 2), noreturn, unused))
static void bail(const char *fmt, ...)
{
	va_list ap;

	printf("Bail out! ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	exit(TAP_EXIT_FAIL);
}

/* Ends the test: prints the plan, gives main()'s return value. */
__attribute__((unused))
static int tap_done(void)
{
	printf("1..%u\n", tap.tests);
	if (tap.failed)
		diag("%u of %u failed", tap.failed, tap.tests);
	fflush(stdout);
	return tap.failed || !tap.tests ? TAP_EXIT_FAIL : 0;
}

#endif /* SELFTESTS_TAP_H */
