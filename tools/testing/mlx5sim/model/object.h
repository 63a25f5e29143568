/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Objects with a number, and the tables that find them.
 *
 * Every structure of an object begins with struct object.  A number is not used
 * again before the whole range was, so that use after destruction is seen.
 */
#ifndef MODEL_OBJECT_H
#define MODEL_OBJECT_H

#include <stdbool.h>

#include "check.h"
#include "ifc.h"

/**
 * struct object - what all objects have
 * @number: its number in its table
 * @users: objects that refer to it; it cannot be destroyed while there are any
 * @uid: DEVX context that made it, 0 for the kernel
 */
struct object {
	u32 number;
	u32 users;
	u16 uid;
};

/**
 * struct table - all objects of a kind
 * @kind: name for messages
 * @first: lowest number
 * @end: numbers are below this
 * @next: where the search for a free number starts
 * @live: objects in the table
 * @slots: length of @slot and @known
 * @slot: objects by number - @first
 * @known: whether that number was ever used
 */
struct table {
	const char *kind;
	u32 first;
	u32 end;
	u32 next;
	u32 live;
	u32 slots;
	struct object **slot;
	bool *known;
};

void table_init(struct table *t, const char *kind, u32 first, u32 end);
void table_forget(struct table *t);

/* Gives @o, allocated with malloc(), a number.  False: the table is full. */
bool table_add(struct table *t, struct object *o);

/* Frees @o. */
void table_remove(struct table *t, struct object *o);

/* NULL if there is none. */
void *table_find(const struct table *t, u32 number);

/* Whether there is or was one */
bool table_knew(const struct table *t, u32 number);

/* Object of a command: as above, and a broken rule if there is none */
void *object_get(struct mlx5sim *m, const struct table *t, u32 number);

/* As object_get() for an object to be destroyed: NULL also if it has users */
void *object_to_destroy(struct mlx5sim *m, const struct table *t, u32 number);

/* Steps through a table: the object after number *@at, from *@at == 0 on */
void *table_step(const struct table *t, u32 *at);

#endif /* MODEL_OBJECT_H */
