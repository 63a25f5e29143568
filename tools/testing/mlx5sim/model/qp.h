/* SPDX-License-Identifier: GPL-2.0 */
/* Queue pairs, their work requests, and the RC engine. */
#ifndef MODEL_QP_H
#define MODEL_QP_H

#include "mkey.h"
#include "queue.h"

#define WQE_BB			64	/* basic block of the send queue */
#define WQE_MAX			1024
#define WQE_MAX_SGE		64
#define RQ_WQE_MAX		512

enum wqe_opcode {
	WQE_NOP			= 0x00,
	WQE_SEND_INVAL		= 0x01,
	WQE_RDMA_WRITE		= 0x08,
	WQE_RDMA_WRITE_IMM	= 0x09,
	WQE_SEND		= 0x0a,
	WQE_SEND_IMM		= 0x0b,
	WQE_RDMA_READ		= 0x10,
	WQE_ATOMIC_CS		= 0x11,
	WQE_ATOMIC_FA		= 0x12,
	WQE_LOCAL_INV		= 0x1b,
	WQE_UMR			= 0x25,
};

/**
 * struct sge - a piece of memory of a work request
 * @key: memory key; not for inline data
 * @addr: address in the space of @key
 * @len: bytes
 * @data: inline data in the work request, NULL if none
 */
struct sge {
	u32 key;
	u64 addr;
	u32 len;
	const u8 *data;
};

/**
 * struct send_wqe - a send work request, parsed
 * @raw: its bytes
 * @bytes: how many
 * @index: position in the queue, in basic blocks, 16 bits
 * @qpn: that the request names
 * @opcode: enum wqe_opcode
 * @signaled: success gives a CQE
 * @solicited: the receiver's CQE is solicited
 * @imm: immediate data, or a key
 * @remote_va: RDMA and atomics
 * @rkey: RDMA and atomics
 * @swap_add: atomics
 * @compare: atomics
 * @xrc_srqn: XRC
 * @av: address vector, datagrams only
 * @av_full: it has the second half, with the GRH
 * @sges: number of @sge
 * @length: sum of their lengths
 * @sge: local memory
 */
struct send_wqe {
	u8 raw[WQE_MAX];
	u32 bytes;
	u16 index;
	u32 qpn;
	u8 opcode;
	bool signaled;
	bool solicited;
	u32 imm;
	u64 remote_va;
	u32 rkey;
	u64 swap_add;
	u64 compare;
	u32 xrc_srqn;
	const u8 *av;
	bool av_full;
	u32 sges;
	u64 length;
	struct sge sge[WQE_MAX_SGE];
};

/* Parse @w->raw, @w->bytes long, for a QP type; NULL or what is wrong */
const char *wqe_parse(struct send_wqe *w, u32 qp_type);
/* Parse a receive work request to @sge; number of entries */
u32 rwqe_parse(const u8 *raw, u32 bytes, struct sge *sge, u32 max);
/* Copy bytes [@off, @off + @len) of a list of SGEs of @pd from or to @buf */
enum xlt_status sge_copy(struct mlx5sim *m, const struct qp *qp,
			 const struct pd *pd, const struct sge *sge, u32 sges, u64 off, u8 *buf,
			 u32 len, bool write, u32 *done);

enum fault_side {
	SIDE_REQUESTER,
	SIDE_RESPONDER,
	SIDES,
};

/* Bits of the type of a page fault */
#define FAULT_REQUESTER		0x1
#define FAULT_WRITE		0x2
#define FAULT_RDMA		0x4

/**
 * struct fault - the page fault of one side of a QP
 * @pending: reported and not resumed; the side waits
 * @rejected: resumed with error; the side fails when it runs next
 * @token: that the resume has to name
 * @wq: work queue number that the resume has to name
 * @type: FAULT_* bits
 * @where: position of the fault, to see whether there is progress
 * @what: the same
 * @repeats: how often the same position has faulted
 */
struct fault {
	bool pending;
	bool rejected;
	u32 token;
	u32 wq;
	u8 type;
	u64 where;
	u64 what;
	u32 repeats;
};

/**
 * struct requester - the sending half
 * @ci: next request to execute, in basic blocks
 * @pi: what the driver has posted, as last read
 * @loaded: @wqe is the request at @ci
 * @wqe: the request
 * @done: bytes of it that are done
 * @retries: transport retries left behind
 * @rnr_retries: RNR retries left behind
 * @atomic_old: result of an atomic that @done tells is executed
 * @held_ns: until when the completion below is held back, 0 if there is none
 * @held: this completion
 */
struct requester {
	u16 ci;
	u16 pi;
	bool loaded;
	struct send_wqe wqe;
	u64 done;
	u32 retries;
	u32 rnr_retries;
	u64 atomic_old;
	u64 held_ns;
	struct completion held;
};

/**
 * struct responder - the receiving half
 * @ci: next receive request, counted
 * @active: a message is being received to @sge
 * @index: of the receive request
 * @sges: number of @sge
 * @sge: where the message goes
 * @from_srq: it came from the SRQ
 */
struct responder {
	u16 ci;
	bool active;
	u16 index;
	u32 sges;
	struct sge sge[WQE_MAX_SGE];
	struct srq *from_srq;
};

/**
 * struct qp - a queue pair
 * @qpc: context, as the driver gave it, with all later changes
 * @commanded: state that a command brought it to; @state may be a later error
 * @queued: it is in the work list of the device
 * @next: there
 * @wake_ns: when it wants to run
 * @idle_polls: how often a QP in error found nothing to flush
 */
struct qp {
	struct object obj;
	u8 qpc[ifc_bytes(qpc)];
	struct ring ring;
	struct pd *pd;
	struct cq *send_cq;
	struct cq *recv_cq;
	struct srq *srq;
	struct xrcd *xrcd;
	struct umem *umem;
	u64 dbr;
	u32 type;
	u32 state;
	u32 commanded;
	u32 user_index;
	u32 uar_page;
	bool has_sq;
	bool has_rq;
	u32 log_sq_size;
	u32 log_rq_size;
	u32 log_rq_stride;
	u64 sq_offset;
	struct requester req;
	struct responder resp;
	struct fault fault[SIDES];
	bool queued;
	struct qp *next;
	u64 wake_ns;
	u32 idle_polls;
};

/* qp.c: life of a QP between the commands */
void qp_doorbell(struct mlx5sim *m, u32 uar_page, u64 value);
void qp_wake(struct mlx5sim *m, struct qp *qp, u64 when);
/* Run what is due, within the budget. */
void qp_run_due(struct mlx5sim *m, u64 now);
void qp_unqueue(struct mlx5sim *m, struct qp *qp);
void qp_destroy(struct mlx5sim *m, struct qp *qp);
/* To the error state; what is queued is flushed, now or later */
void qp_error(struct mlx5sim *m, struct qp *qp);
/* A send request failed: the same, if it is not the send queue alone that stops */
void qp_send_error(struct mlx5sim *m, struct qp *qp);
void qp_reset_queues(struct mlx5sim *m, struct qp *qp);
/* The QP at the other end; *@peer is its device */
struct qp *qp_peer(const struct qp *qp, struct mlx5sim **peer);
bool budget_left(void);

/* What the type and the state of a QP mean */
bool qp_is_datagram(u32 type);
bool qp_receives(const struct qp *qp);
bool qp_flushes_sends(const struct qp *qp);

/* requester.c */
void requester_run(struct mlx5sim *m, struct qp *qp);

/* What a responder answers */
enum answer {
	ANSWER_ACK,
	ANSWER_NONE,		/* no answer: a timeout for the requester */
	ANSWER_RNR,
	ANSWER_WAIT,		/* page fault at the responder */
	ANSWER_NAK_INVALID,
	ANSWER_NAK_ACCESS,
	ANSWER_NAK_OP,
};

/**
 * struct origin - where a message comes from
 * @slid: LID of the sender
 * @src_qp: its QP, datagrams only
 * @sl: service level, datagrams only
 * @grh: the header is one, datagrams only
 * @header: bytes in front of the data that the request knows nothing of
 */
struct origin {
	u16 slid;
	u32 src_qp;
	u8 sl;
	bool grh;
	u32 header;
};

/* responder.c: the QP and @m are those of the responder */
enum answer responder_check(struct mlx5sim *m, struct qp *qp,
			    const struct qp *from);
enum answer responder_write(struct mlx5sim *m, struct qp *qp,
			    const struct send_wqe *w, u64 off, u8 *buf,
			    u32 len);
enum answer responder_read(struct mlx5sim *m, struct qp *qp,
			   const struct send_wqe *w, u64 off, u8 *buf,
			   u32 len);
enum answer responder_atomic(struct mlx5sim *m, struct qp *qp,
			     const struct send_wqe *w, u64 *old);
enum answer responder_send(struct mlx5sim *m, struct qp *qp,
			   const struct send_wqe *w, u64 off, u8 *buf,
			   u32 len, bool last, const struct origin *from);
enum answer responder_write_imm(struct mlx5sim *m, struct qp *qp,
				const struct send_wqe *w,
				const struct origin *from);
void responder_flush(struct mlx5sim *m, struct qp *qp);

/* datagram.c */
#define DATAGRAM_HEADER		40
#define DATAGRAM_MAX		4096	/* the MTU of the port */

/* Send @packet, which has room for the header and then the data */
void datagram_send(struct mlx5sim *m, const struct qp *qp,
		   const struct send_wqe *w, u8 *packet);

/* odp.c: report a fault; false: this QP cannot have one */
bool fault_requester(struct mlx5sim *m, struct qp *qp);
/* @off: bytes of the message that were received */
bool fault_receive(struct mlx5sim *m, struct qp *qp, u64 off);
/* @done: bytes of the operation of @total bytes at @va that are done */
bool fault_rdma(struct mlx5sim *m, struct qp *qp, const struct send_wqe *w,
		u64 total, u64 done, bool write);
/* A side moved data: the next fault at the same place is a new one */
void fault_progress(struct qp *qp, enum fault_side side);
/* The QP goes away or is reset: a resume that still comes is no mistake */
void fault_orphan(struct mlx5sim *m, struct qp *qp);

#endif /* MODEL_QP_H */
