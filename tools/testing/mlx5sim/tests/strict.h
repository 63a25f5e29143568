/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tests of the rules of checks.inc: each case breaks one, on a strict device, which
 * stops with its number, and on a lenient one, which goes on.
 */
#ifndef STRICT_H
#define STRICT_H

#include "fake.h"

#define VA			0x300000000000ull
#define SIZE			(16 * PAGE)

/* What a case finds: a device, a pair of RC QPs, a queue for UMR */
extern struct dev *d;
extern struct fqp *qa, *qb, *uq;
extern u32 key;			/* MTT, all present, of 16 pages at VA */
extern u32 free_key;		/* MTT, free, 8 octwords */
extern u32 odp_key;		/* MTT, nothing present */
extern u64 at;			/* memory of the first */
extern u64 list;		/* a page for a list */

/**
 * struct strict_case - a way to break a rule
 * @rule: its number
 * @name: of the case
 * @run: breaks it
 */
struct strict_case {
	enum check rule;
	const char *name;
	void (*run)(void);
};

#define CASE(rule, function)	{ CHK_##rule, #function, function }

/* A command with one word of input; its status */
int simple(u16 opcode, u16 op_mod, u32 word);
/* The enabling UMR of the free key, for a case to spoil */
struct umr_arg enable(void);
/* Run all cases; each rule from @first to @last must have one; exit status */
int strict_main(const struct strict_case *cases, u32 count, u32 first,
		u32 last);

#endif /* STRICT_H */
