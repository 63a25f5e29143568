// SPDX-License-Identifier: GPL-2.0
/* The frame of the tests of rules, see strict.h. */
#include "../../selftests/tap.h"
#include "strict.h"

#define MSEC			1000000ull

struct dev *d;
struct fqp *qa, *qb, *uq;
u32 key, free_key, odp_key;
u64 at, list;

static void setup(bool strict)
{
	const struct mlx5sim_config config = { .lid = 1, .strict = strict };
	struct qp_arg arg = { .type = MLX5_QPC_ST_REG_UMR };
	struct mkey_arg k = {
		.mode = MLX5_MKC_ACCESS_MODE_MTT, .octwords = 8, .free = true,
	};

	d = dev_running(&config);
	qp_pair(d, d, &qa, &qb, NULL);
	uq = qp_make(d, &arg);
	qp_connect(uq, 0, 0, NULL);
	key = mr_make(d, VA, SIZE, ALL_RIGHTS, &at);
	free_key = mkey_make(d, &k);
	k.free = false;
	k.start = VA;
	k.len = SIZE;
	k.log_page = 12;
	k.rights = ALL_RIGHTS;
	odp_key = mkey_make(d, &k);
	list = mem_alloc(PAGE);
}

static void teardown(void)
{
	dev_free(d);
	machine_reset();
}

int simple(u16 opcode, u16 op_mod, u32 word)
{
	u8 out[512];

	return dev_simple(d, opcode, op_mod, word, out, sizeof(out));
}

struct umr_arg enable(void)
{
	struct umr_arg u = {
		.key = free_key, .flags = UMR_OFFSET | UMR_MUST_BE_FREE,
		.mask = UMR_MASK_ENABLE, .list = list, .octwords = 8,
	};

	for (u32 i = 0; i < 16; i++)
		put_be64((u8 *)mem(list) + 8 * i, (at + i * PAGE) | 3);
	umr_mkc(&u, d, ALL_RIGHTS, VA, SIZE, 12);
	return u;
}

static void strict(const struct strict_case *c)
{
	u64 commands;

	setup(true);
	if (d->violation)
		diag("before the case: %s", d->text);
	d->violation = 0;
	c->run();
	ok(d->violation == c->rule, "%u %s: %s", c->rule, check_name(c->rule),
	   c->name);
	if (d->violation != c->rule)
		diag("got %u: %s", d->violation, d->text);
	commands = mlx5sim_stats(d->sim)->commands;
	simple(MLX5_CMD_OP_QUERY_ISSI, 0, 0);
	machine_run(MSEC);
	ok(mlx5sim_stats(d->sim)->commands == commands, "the device stopped");
	teardown();
}

static void lenient(const struct strict_case *c)
{
	bool reset = c->rule == CHK_CMD_STATE;

	setup(false);
	c->run();
	machine_run(MSEC);
	ok(!d->violation && mlx5sim_violation(d->sim) == c->rule,
	   "lenient: %s is noted (%u)", c->name, mlx5sim_violation(d->sim));
	ok(!simple(MLX5_CMD_OP_QUERY_ISSI, 0, 0) || reset,
	   "lenient: the device goes on");
	teardown();
}

static bool has_case(const struct strict_case *cases, u32 count,
		     enum check rule)
{
	for (u32 i = 0; i < count; i++)
		if (cases[i].rule == rule)
			return true;
	return false;
}

int strict_main(const struct strict_case *cases, u32 count, u32 first,
		u32 last)
{
	static const enum check rules[] = {
#define CHECK(number, name, text)	number,
#include "../model/checks.inc"
#undef CHECK
	};

	for (u32 i = 0; i < count; i++) {
		strict(&cases[i]);
		lenient(&cases[i]);
	}
	for (u32 i = 0; i < ARRAY_SIZE(rules); i++)
		if (rules[i] >= first && rules[i] <= last)
			ok(has_case(cases, count, rules[i]),
			   "rule %u %s has a case", rules[i],
			   check_name(rules[i]));
	return tap_done();
}
