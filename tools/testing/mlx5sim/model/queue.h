/* SPDX-License-Identifier: GPL-2.0 */
/* Queues in the driver's memory: buffers, event, completion, shared receive. */
#ifndef MODEL_QUEUE_H
#define MODEL_QUEUE_H

#include "object.h"

/**
 * struct ring - a buffer that a driver gave as a list of pages
 * @page: bus addresses
 * @pages: their number
 * @log_page: log2 of the page size
 * @offset: where the buffer begins in the first page
 */
struct ring {
	u64 *page;
	u32 pages;
	u32 log_page;
	u64 offset;
};

/**
 * struct pages_arg - the page list of a command
 * @pas: its entries, big endian
 * @count: how many the input has
 * @log_page_size: field of the context: log2 in units of 4 KiB
 * @page_offset: field of the context, in units of page size / 64
 * @umem: registered user memory in place of @pas; NULL if none
 * @umem_offset: where in @umem
 */
struct pages_arg {
	const u8 *pas;
	u32 count;
	u32 log_page_size;
	u32 page_offset;
	const struct umem *umem;
	u64 umem_offset;
};

enum cmd_status ring_init(struct mlx5sim *m, struct ring *r,
			  const struct pages_arg *arg, u64 bytes);
void ring_free(struct ring *r);
bool ring_read(struct mlx5sim *m, const struct ring *r, u64 off, void *buf,
	       u32 len);
bool ring_write(struct mlx5sim *m, const struct ring *r, u64 off,
		const void *buf, u32 len);

/* A doorbell record of a context, bus address in *@addr; false: not valid */
bool doorbell_record(struct mlx5sim *m, u64 dbr_addr, const struct umem *umem,
		     u64 *addr);

struct uar {
	struct object obj;
};

struct pd {
	struct object obj;
};

struct xrcd {
	struct object obj;
};

struct td {
	struct object obj;
};

struct uctx {
	struct object obj;
};

/* DEVX: pages of a user that queues and keys of that user may lie in */
struct umem {
	struct object obj;
	u32 log_page;
	u64 offset;
	u64 count;
	u64 *mtt;
};

/* Bus address of byte @off, 0 if beyond the end */
u64 umem_addr(const struct umem *umem, u64 off);
/* May the device write to all of it? */
bool umem_writable(const struct umem *umem);

struct eq {
	struct object obj;
	u8 eqc[ifc_bytes(eqc)];
	struct ring ring;
	u64 events;
	u32 log_size;
	u32 vector;
	u32 pi;
	u32 ci;
	bool armed;
};

#define EQE_SIZE		64
#define EQE_DATA		28

/* Write an event; @data has EQE_DATA bytes */
void eq_event(struct mlx5sim *m, struct eq *eq, u8 type, u8 subtype,
	      const u8 *data);
/* The event queue that takes events of this type; NULL if none */
struct eq *eq_for(struct mlx5sim *m, u8 type);
/* An event of a QP or SRQ */
void eq_qp_event(struct mlx5sim *m, u8 type, u32 number);
void eq_doorbell(struct mlx5sim *m, u32 value, bool arm);
void eq_destroy(struct mlx5sim *m, struct eq *eq);

enum cq_arm {
	CQ_DISARMED,
	CQ_ARMED_SOLICITED,
	CQ_ARMED_ANY,
};

struct cq {
	struct object obj;
	u8 cqc[ifc_bytes(cqc)];
	struct ring ring;
	struct eq *eq;
	struct umem *umem;
	u64 dbr;
	u32 log_size;
	u32 cqe_size;
	u32 pi;
	u32 ci;
	enum cq_arm arm;
	bool failed;
};

enum cqe_opcode {
	CQE_REQ			= 0,
	CQE_RESP_WRITE_IMM	= 1,
	CQE_RESP_SEND		= 2,
	CQE_RESP_SEND_IMM	= 3,
	CQE_RESP_SEND_INV	= 4,
	CQE_RESIZE		= 5,
	CQE_REQ_ERR		= 13,
	CQE_RESP_ERR		= 14,
};

/* Syndromes of error completions */
enum syndrome {
	SYN_NONE		= 0x00,
	SYN_LOCAL_LENGTH	= 0x01,
	SYN_LOCAL_QP_OP		= 0x02,
	SYN_LOCAL_PROT		= 0x04,
	SYN_FLUSH		= 0x05,
	SYN_MW_BIND		= 0x06,
	SYN_REMOTE_INVALID	= 0x12,
	SYN_REMOTE_ACCESS	= 0x13,
	SYN_REMOTE_OP		= 0x14,
	SYN_TRANSPORT_RETRY	= 0x15,
	SYN_RNR_RETRY		= 0x16,
};

/**
 * struct completion - what a CQE tells
 * @opcode: kind of CQE
 * @syndrome: for error CQEs
 * @wqe_opcode: of the request, requester only
 * @solicited: whether it counts as solicited
 * @qpn: queue pair
 * @user_index: of the QP, or of the XRC SRQ
 * @immediate: or invalidated key
 * @bytes: received, or read
 * @wqe_counter: which work request
 * @slid: LID of the sender
 * @src_qp: QP of the sender, datagrams only
 * @sl: service level, datagrams only
 * @grh: the message begins with one, datagrams only
 */
struct completion {
	enum cqe_opcode opcode;
	enum syndrome syndrome;
	u8 wqe_opcode;
	bool solicited;
	u32 qpn;
	u32 user_index;
	u32 immediate;
	u32 bytes;
	u16 wqe_counter;
	u16 slid;
	u32 src_qp;
	u8 sl;
	bool grh;
};

void cq_complete(struct mlx5sim *m, struct cq *cq, const struct completion *c);
/* Whether one more CQE has room */
bool cq_has_room(struct mlx5sim *m, struct cq *cq);
/* The same, had it only @entries */
bool cq_fits(struct mlx5sim *m, struct cq *cq, u32 entries);
void cq_doorbell(struct mlx5sim *m, u64 value);
void cq_destroy(struct mlx5sim *m, struct cq *cq);

/*
 * The UMEM of a context: NULL in *@umem if it has none.  False: it names one
 * that is not there.
 */
bool umem_of_context(struct mlx5sim *m, bool valid, u32 id, struct umem **umem);

/* DEVX: what lies behind a context, and has no name in the kernel's header */
#define TAIL_UMEM_OFFSET	0	/* 64 bits */
#define TAIL_UMEM_ID		64	/* 32 bits */

/*
 * Shared receive queues: RMP (what verbs call an SRQ) and XRC SRQ.  Their
 * entries form a list: the first 16 bytes of each name the next.
 */
struct srq {
	struct object obj;
	u8 context[ifc_bytes(rmpc)];	/* rmpc or xrc_srqc */
	struct ring ring;
	struct pd *pd;
	struct cq *cq;
	struct xrcd *xrcd;
	struct umem *umem;
	u64 dbr;
	u32 log_size;
	u32 log_stride;
	u32 user_index;
	u16 head;
	u16 taken;
	u16 limit;
	bool is_rmp;
};

/* Reads the next entry, without its link, to @wqe; false: nothing posted */
bool srq_take(struct mlx5sim *m, struct srq *srq, u8 *wqe, u32 *bytes,
	      u16 *index);
void srq_destroy(struct mlx5sim *m, struct srq *srq);

#endif /* MODEL_QUEUE_H */
