// SPDX-License-Identifier: GPL-2.0
/* Questions of a test about the state of the device. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

#define OCTWORD			16

/**
 * struct table_walk - where in the table of a key
 * @key: the key
 * @next: index of the next entry
 * @repeated: how many entries from there on belong to a repeat block
 */
struct table_walk {
	const struct mkey *key;
	u64 next;
	u32 repeated;
};

static bool mtt_entry(const struct mkey *key, struct mlx5sim_xlt *e)
{
	u64 mtt = get_be64(key->xlt + 8 * e->index);

	e->addr = mtt & MTT_ADDRESS;
	e->len = BIT_ULL(key->log_page);
	e->readable = mtt & MTT_READ;
	e->writable = mtt & MTT_WRITE;
	return e->readable || e->writable;
}

/* A repeat block is no entry, those behind it count with their first round */
static bool list_entry(struct table_walk *w, struct mlx5sim_xlt *e)
{
	const u8 *p = w->key->xlt + OCTWORD * e->index;

	e->key = get_be32(p + KLM_KEY);
	e->addr = get_be64(p + KLM_ADDRESS);
	if (w->key->mode == MLX5_MKC_ACCESS_MODE_KSM) {
		e->len = BIT_ULL(w->key->log_page);
	} else if (w->repeated) {
		w->repeated--;
		e->len = get_be16(p + REPEATED_LENGTH);
	} else {
		e->len = get_be32(p);
		if (e->key == KLM_REPEAT)
			w->repeated = get_be16(p + REPEAT_ENTRIES);
	}
	return e->key && e->key != KLM_REPEAT && e->key != NULL_MKEY;
}

/* The next entry that is present; false: there is none */
static bool next_entry(struct table_walk *w, struct mlx5sim_xlt *e)
{
	bool present = false;

	while (!present && w->next < mkey_entries(w->key)) {
		*e = (struct mlx5sim_xlt){ .index = w->next++ };
		present = w->key->mode == MLX5_MKC_ACCESS_MODE_MTT ?
			  mtt_entry(w->key, e) : list_entry(w, e);
	}
	return present;
}

static struct mkey *find(const struct mlx5sim *m, u32 key)
{
	struct mkey *k = table_find(&m->mkeys, key >> 8);

	return k && (!(key & 0xff) || k->variant == (key & 0xff)) ? k : NULL;
}

long mlx5sim_key_xlt(const struct mlx5sim *m, u32 key, struct mlx5sim_xlt *out,
		     size_t max)
{
	struct table_walk w = { .key = find(m, key) };
	struct mlx5sim_xlt e;
	long count = 0;

	if (!w.key)
		return -1;
	while (next_entry(&w, &e)) {
		if ((size_t)count < max)
			out[count] = e;
		count++;
	}
	return count;
}

static bool span_maps(const struct mlx5sim *m, struct span s, u64 addr,
		      u64 len)
{
	u64 run;

	for (; s.len; s.addr += run, s.len -= run) {
		u64 memory;

		run = s.len;
		memory = mlx5sim_memory(m, s.addr, &run);
		if (memory != MLX5SIM_NOWHERE && memory <= addr + (len - 1) &&
		    addr <= memory + (run - 1))
			return true;
	}
	return false;
}

static bool key_maps(const struct mlx5sim *m, const struct mkey *key, u64 addr,
		     u64 len)
{
	u64 reached = mkey_entries_reached(key);

	for (u64 i = 0; i < reached; i++) {
		struct span s;

		if (mtt_span(key, i, &s) && span_maps(m, s, addr, len))
			return true;
	}
	return false;
}

bool mlx5sim_maps(const struct mlx5sim *m, u64 addr, u64 len, u32 *key)
{
	struct mkey *k;
	u32 at = 0;

	while ((k = table_step(&m->mkeys, &at))) {
		if (k->free || k->mode != MLX5_MKC_ACCESS_MODE_MTT ||
		    !key_maps(m, k, addr, len))
			continue;
		if (key)
			*key = mkey_key(k);
		return true;
	}
	return false;
}

/**
 * struct text - an answer that grows
 * @buf: where to
 * @size: room
 * @len: length of the whole, may exceed @size
 */
struct text {
	char *buf;
	size_t size;
	int len;
};

__attribute__((format(printf, 2, 3)))
static void say(struct text *t, const char *fmt, ...)
{
	size_t at = min_of((size_t)t->len, t->size);
	va_list ap;

	va_start(ap, fmt);
	t->len += vsnprintf(t->size ? t->buf + at : NULL, t->size - at, fmt,
			    ap);
	va_end(ap);
}

/* Whether @e follows @prev in the list and, with the same rights, in memory. */
static bool goes_on(const struct mlx5sim_xlt *prev, const struct mlx5sim_xlt *e)
{
	return e->index == prev->index + 1 && e->addr == prev->addr + prev->len &&
	       e->len == prev->len && e->key == prev->key &&
	       e->readable == prev->readable && e->writable == prev->writable;
}

static void say_run(struct text *t, const char *sep, const struct mlx5sim_xlt *e,
		    u64 count)
{
	say(t, "%s{\"index\":%" PRIu64 ",\"count\":%" PRIu64 ",\"addr\":\"0x%" PRIx64 "\",\"len\":\"0x%" PRIx64 "\",\"key\":\"0x%x\",\"read\":%u,\"write\":%u}",
	    sep, e->index, count, e->addr, e->len, e->key, e->readable,
	    e->writable);
}

static void say_xlt(const struct mlx5sim *m, struct text *t, u32 key)
{
	const struct mkey *k = find(m, key);
	struct table_walk w = { .key = k };
	struct mlx5sim_xlt first, prev, e;
	const char *sep = "";
	u64 count = 0, end;

	if (!k) {
		say(t, "{\"error\":\"no such key\"}");
		return;
	}
	say(t, "{\"key\":\"0x%x\",\"free\":%u,\"mode\":%u,\"start\":\"0x%" PRIx64 "\",\"len\":\"0x%" PRIx64 "\",\"log_page_size\":%u,\"relaxed_write\":%u,\"relaxed_read\":%u,\"capacity\":%" PRIu64 ",\"xlt\":[",
	    mkey_key(k), k->free, k->mode, k->start, k->len, k->log_page,
	    (u32)ifc_get(mkc, k->mkc, relaxed_ordering_write),
	    (u32)ifc_get(mkc, k->mkc, relaxed_ordering_read), mkey_entries(k));
	/* What earlier users of a table of pages have left behind is out of reach. */
	end = k->mode == MLX5_MKC_ACCESS_MODE_MTT ? mkey_entries_reached(k) :
						    mkey_entries(k);
	while (next_entry(&w, &e) && e.index < end) {
		if (count && !goes_on(&prev, &e)) {
			say_run(t, sep, &first, count);
			sep = ",";
			count = 0;
		}
		if (!count)
			first = e;
		count++;
		prev = e;
	}
	if (count)
		say_run(t, sep, &first, count);
	say(t, "]}");
}

static void say_memory(const struct mlx5sim *m, struct text *t, u64 addr, u64 len)
{
	u64 memory = mlx5sim_memory(m, addr, &len);

	say(t, "{\"memory\":\"0x%" PRIx64 "\",\"len\":\"0x%" PRIx64 "\"}", memory, len);
}

static void say_keys(const struct mlx5sim *m, struct text *t)
{
	const char *sep = "";
	struct mkey *k;
	u32 at = 0;

	say(t, "{\"keys\":[");
	while ((k = table_step(&m->mkeys, &at))) {
		say(t, "%s{\"key\":\"0x%x\",\"free\":%u,\"mode\":%u}", sep,
		    mkey_key(k), k->free, k->mode);
		sep = ",";
	}
	say(t, "]}");
}

static void say_stats(const struct mlx5sim *m, struct text *t)
{
	const struct mlx5sim_stats *s = &m->stats;

	say(t, "{\"commands\":%" PRIu64 ",\"mkeys\":%" PRIu64 ",\"umrs\":%" PRIu64 ",\"xlt_entries\":%" PRIu64 ",\"wqes\":%" PRIu64 ",\"cqes\":%" PRIu64 ",\"faults\":%" PRIu64 ",\"resumes\":%" PRIu64 ",\"injected\":%" PRIu64 ",\"dma_read\":%" PRIu64 ",\"dma_written\":%" PRIu64 "}",
	    s->commands, s->mkeys, s->umrs, s->xlt_entries, s->wqes, s->cqes,
	    s->faults, s->resumes, s->injected, s->dma_read, s->dma_written);
}

static void say_ordered(struct mlx5sim *m, struct text *t, const char *faults)
{
	if (mlx5sim_order(m, faults))
		say(t, "{\"ordered\":%u}", m->inject.count - m->inject.configured);
	else
		say(t, "{\"error\":\"list of faults not understood\"}");
}

int mlx5sim_ask(struct mlx5sim *m, const char *question, char *answer,
		size_t size)
{
	static const char order[] = "order ";
	struct text t = { .buf = answer, .size = size };
	unsigned long long a, b;
	char end;
	u32 key;

	if (!strcmp(question, "stats")) {
		say_stats(m, &t);
	} else if (!strcmp(question, "keys")) {
		say_keys(m, &t);
	} else if (!strncmp(question, order, strlen(order))) {
		say_ordered(m, &t, question + strlen(order));
	} else if (sscanf(question, "xlt %lli %c", (long long *)&a, &end) == 1) {
		say_xlt(m, &t, a);
	} else if (sscanf(question, "memory %lli %lli %c", (long long *)&a,
			  (long long *)&b, &end) == 2 && b) {
		say_memory(m, &t, a, b);
	} else if (sscanf(question, "maps %lli %lli %c", (long long *)&a,
			  (long long *)&b, &end) == 2 && b) {
		if (mlx5sim_maps(m, a, b, &key))
			say(&t, "{\"maps\":1,\"key\":\"0x%x\"}", key);
		else
			say(&t, "{\"maps\":0}");
	} else {
		return -1;
	}
	return t.len;
}
