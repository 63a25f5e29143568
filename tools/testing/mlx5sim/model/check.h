/* SPDX-License-Identifier: GPL-2.0 */
/* The numbered rules of checks.inc, as an enum, and how to report one. */
#ifndef MODEL_CHECK_H
#define MODEL_CHECK_H

struct mlx5sim;

#define CHECK(number, name, text)	CHK_##name = number,
enum check {
#include "checks.inc"
};

#undef CHECK

const char *check_name(enum check check);

/*
 * The driver broke @check.  Strict mode tells the host and stops the device;
 * else the caller goes on and answers as a device would.
 */
__attribute__((format(printf, 3, 4)))
void broken(struct mlx5sim *m, enum check check, const char *fmt, ...);

/*
 * The same if it was @by_driver.  Else what a user asked for or an injected fault
 * led to it, and it is only noted.
 */
#define broken_if(by_driver, m, check, ...) ({			\
	if (by_driver)						\
		broken(m, check, __VA_ARGS__);			\
	else							\
		note(m, __VA_ARGS__);				\
})

/* One line for a person, marked with the device */
__attribute__((format(printf, 2, 3)))
void note(struct mlx5sim *m, const char *fmt, ...);

#endif /* MODEL_CHECK_H */
