/* SPDX-License-Identifier: GPL-2.0 */
/* Memory keys, their translation, and UMR. */
#ifndef MODEL_MKEY_H
#define MODEL_MKEY_H

#include "object.h"

enum rights {
	RIGHT_LOCAL_READ	= 0x01,
	RIGHT_LOCAL_WRITE	= 0x02,
	RIGHT_REMOTE_READ	= 0x04,
	RIGHT_REMOTE_WRITE	= 0x08,
	RIGHT_ATOMIC		= 0x10,
};

#define MTT_READ		0x1ull
#define MTT_WRITE		0x2ull
#define MTT_ADDRESS		(~0xfffull)

/* The null key: writes vanish, reads give zeros, in a KSM list: a page fault */
#define NULL_MKEY		0x00000200u
/*
 * Entry of a KLM or KSM list: length (KLM), key, address.  With KLM_REPEAT for a key
 * it begins a repeat block: bytes of one round, number of rounds, and how many
 * entries follow that are gone round; these have a stride and a length of 16 bits.
 */
#define KLM_KEY			4
#define KLM_ADDRESS		8
#define KLM_REPEAT		0x400u
#define REPEAT_ROUND		0
#define REPEAT_COUNT		8
#define REPEAT_ENTRIES		14
#define REPEATED_STRIDE		0
#define REPEATED_LENGTH		2
/* Ends the list of a receive work request */
#define TERMINATING_LKEY	0x00000100u
#define MKEY_FIRST_INDEX	0x100u
#define ANY_QPN			0xffffffu

/**
 * struct mkey - a memory key
 * @obj: its number is the index; the key is number << 8 | @variant
 * @mkc: context as the driver gave it, with all later changes
 * @pd: NULL while the key is free
 * @umem: user memory that the table was copied from
 * @xlt: translation table, 16 bytes for each octword
 * @octwords: its capacity
 * @mode: MLX5_MKC_ACCESS_MODE_*
 *
 * The rest are fields of @mkc, kept for speed by mkey_decode().
 */
struct mkey {
	struct object obj;
	u8 mkc[ifc_bytes(mkc)];
	struct pd *pd;
	struct umem *umem;
	u8 *xlt;
	u64 octwords;
	u32 mode;
	u32 pd_number;
	u32 qpn;
	u32 rights;
	u32 log_page;
	u64 start;
	u64 len;
	u8 variant;
	bool length64;
	bool free;
	bool umr_en;
	bool remote_inval;
};

u32 mkey_key(const struct mkey *key);
/* The live entry of the table for @key, its variant compared; NULL if none */
struct mkey *mkey_find(const struct mlx5sim *m, u32 key);
void mkey_decode(struct mkey *key);
/*
 * The context has changed: decode it, follow the PD, and check what a live key
 * must keep.  False: it does not.
 */
bool mkey_update(struct mlx5sim *m, struct mkey *key);
/* Copy octwords to the table; both counts were checked */
void mkey_write_xlt(struct mlx5sim *m, struct mkey *key, u64 octword,
		    const u8 *entries, u64 octwords);
void mkey_destroy(struct mlx5sim *m, struct mkey *key);
/* Entries of the table; and those that start and length let an access reach */
u64 mkey_entries(const struct mkey *key);
u64 mkey_entries_reached(const struct mkey *key);
/* Trace a key, what = "create_mkey" and so on */
void mkey_trace(struct mlx5sim *m, const struct mkey *key, const char *what);

enum xlt_status {
	XLT_OK,
	XLT_ERROR,
	XLT_FAULT,
};

/**
 * struct access - who wants to reach memory, and how
 * @key: the memory key
 * @pd: protection domain of the QP; NULL: any (the UMR queue)
 * @qpn: the QP, for keys that are bound to one
 * @rights: all of these are needed
 * @write: direction, seen from the device
 */
struct access {
	u32 key;
	const struct pd *pd;
	u32 qpn;
	u32 rights;
	bool write;
};

/*
 * Copy @len bytes between @buf and the memory at @va of a key.  *@done tells
 * how many bytes were copied when the answer is not XLT_OK.
 */
enum xlt_status mem_copy(struct mlx5sim *m, const struct access *a, u64 va,
			 void *buf, u32 len, u32 *done);

/* Whether the key itself allows all of an access, whatever it leads to */
bool mem_allowed(struct mlx5sim *m, const struct access *a, u64 va, u64 len);

/**
 * struct span - a piece of bus memory that a key leads to
 * @addr: bus address
 * @len: bytes
 */
struct span {
	u64 addr;
	u64 len;
};

/*
 * Part of an MTT key that start and length let an access reach through entry
 * @index.  False: nothing, or the entry is not present.
 */
bool mtt_span(const struct mkey *key, u64 index, struct span *span);

struct qp;
struct send_wqe;
/* Execute a UMR request; SYN_NONE on success */
enum syndrome umr_execute(struct mlx5sim *m, struct qp *qp,
			  const struct send_wqe *wqe);
/* LOCAL_INV and SEND with invalidate; false: not allowed */
bool mkey_invalidate(struct mlx5sim *m, u32 key, const struct pd *pd,
		     bool remote);

#endif /* MODEL_MKEY_H */
