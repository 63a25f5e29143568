/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A small machine with a small driver, to test the model without QEMU.
 *
 * The machine has memory at MEM_BASE, a clock that only moves when a test says
 * so, and any number of devices.  The driver does what mlx5_core and mlx5_ib do,
 * as far as the tests need it, in a plain way: one page per buffer piece, one
 * command at a time, completions polled.
 */
#ifndef FAKE_H
#define FAKE_H

#include <stdbool.h>

#include "../model/check.h"
#include "../model/ifc.h"
#include "../model/mlx5sim.h"

#define MEM_BASE		0x100000000ull
#define MEM_SIZE		(64u << 20)
#define PAGE			4096u
#define NO_MEMORY_AT		0x7000000000ull	/* nothing answers here */

#define RUN_STEPS		100000u	/* timers in one machine_run() */

/* Bus memory, zeroed; memory is only given back by machine_reset() */
u64 mem_alloc(size_t bytes);
void *mem(u64 addr);
/* Zeroed memory of the driver, given back by machine_reset() */
void *keep(size_t bytes);
/* Let the clock run: all timers that are due until now + @ns */
void machine_run(u64 ns);
u64 machine_now(void);
/* Forget all memory; no device may be left */
void machine_reset(void);
/* Calls of the callbacks for DMA so far */
extern u32 machine_dma_reads, machine_dma_writes;
/* Let DMA to [@addr, @addr + PAGE) fail with @answer, 0: none */
void machine_hole(u64 addr, int answer);
/* Until machine_reset(): for questions, an IOMMU swaps even and odd pages of memory. */
void machine_swap_pages(void);

struct dev;

/**
 * struct tamper - what a test spoils in the next command; zero leaves it alone
 * @type: of the descriptor
 * @signature: do not fix the signature
 * @not_owned: hand over a descriptor that software owns
 * @in_len: added to the length of the input
 * @token: of the input's mailboxes
 * @block_number: added to that of the input's mailboxes
 */
struct tamper {
	u8 type;
	bool signature;
	bool not_owned;
	int in_len;
	u8 token;
	u32 block_number;
};

/**
 * struct dev - a device and its driver
 * @sim: the device
 * @deadline: of its timer
 * @msix: interrupts by vector
 * @violation: number of the rule broken, 0 if none
 * @text: what the model said about it
 * @traces: lines of trace, if @keep_traces
 * @syndrome: of the last command
 * @cmdq: command queue
 * @uar: its page of doorbells
 * @pd: protection domain
 * @cmd_eq: for commands
 * @async_eq: for errors
 * @page_eq: for page requests
 * @comp_eq: for completions
 * @pf_eq: for page faults
 * @pa_key: reaches all memory
 * @pages: given to the device
 */
struct dev {
	struct mlx5sim *sim;
	struct dev *next;
	u64 deadline;
	u32 msix[MLX5SIM_NUM_VECTORS];
	u32 violation;
	char text[512];
	bool keep_traces;
	char *traces;
	u32 syndrome;
	struct tamper tamper;
	u64 cmdq;
	u8 token;
	u32 uar;
	u32 pd;
	struct queue *cmd_eq;
	struct queue *async_eq;
	struct queue *page_eq;
	struct queue *comp_eq;
	struct queue *pf_eq;
	u32 pa_key;
	u64 page[64];
	u32 pages;
};

/* Lenient devices have .strict = false; NULL: what mlx5sim_new() refused */
struct dev *dev_new(const struct mlx5sim_config *config);
void dev_free(struct dev *d);
/* Number of times that @text is in the trace */
u32 dev_traced(const struct dev *d, const char *text);

/* Status of the command; -1: no completion */
int dev_cmd(struct dev *d, const void *in, u32 in_len, void *out, u32 out_len);
/* Ring for the slot again without a new command */
void dev_ring_cmd(struct dev *d, u32 slots);
/* A command whose input is opcode, modifier and one word at byte 8 */
int dev_simple(struct dev *d, u16 opcode, u16 op_mod, u32 word8, void *out,
	       u32 out_len);

/* The load and the unload of mlx5_core and mlx5_ib; 0 or the failing opcode */
int dev_boot(struct dev *d);
int dev_shutdown(struct dev *d);
/* As above, for tests that only want a device that runs */
struct dev *dev_running(const struct mlx5sim_config *config);

/**
 * struct queue - an event or completion queue of the driver
 * @number: of the device
 * @buf: buffer
 * @dbr: doorbell record (CQ)
 * @log_size: entries
 * @entry: bytes of one
 * @ci: consumer counter
 */
struct queue {
	u32 number;
	u64 buf;
	u64 dbr;
	u32 log_size;
	u32 entry;
	u32 ci;
};

struct queue *eq_make(struct dev *d, u32 log_size, u32 vector, u64 events);
int eq_remove(struct dev *d, struct queue *eq);
/* The next event, 64 bytes; NULL: none.  Consumes it, rings if @update. */
u8 *eq_poll(struct dev *d, struct queue *eq, bool update);
void eq_ring(struct dev *d, struct queue *eq, bool arm);

struct queue *cq_make(struct dev *d, u32 log_size, u32 cqe_bytes);
int cq_remove(struct dev *d, struct queue *cq);
/* The next CQE, its 64 bytes; NULL: none.  Updates the record. */
u8 *cq_poll(struct queue *cq);
void cq_ring(struct dev *d, struct queue *cq, bool solicited);

#define cqe_opcode(cqe)		((cqe)[63] >> 4)
#define cqe_syndrome(cqe)	((cqe)[55])
#define cqe_bytes(cqe)		get_be32((cqe) + 44)
#define cqe_imm(cqe)		get_be32((cqe) + 36)
#define cqe_counter(cqe)	get_be16((cqe) + 60)

/**
 * struct mkey_arg - a key to be made
 * @pd: 0: that of the device
 * @entries: initial table, 8 bytes (MTT) or 16 each
 * @count: octwords of it
 */
struct mkey_arg {
	u32 mode;
	u32 rights;
	u32 pd;
	u32 qpn;
	u64 start;
	u64 len;
	u32 log_page;
	u64 octwords;
	bool length64;
	bool free;
	bool no_umr;
	bool rinval;
	const u8 *entries;
	u32 count;
	u32 umem;
};

/* Rights, as the model counts them */
#define LR			0x01
#define LW			0x02
#define RR			0x04
#define RW			0x08
#define AT			0x10
#define ALL_RIGHTS		0x1f

/* The key; 0: refused */
u32 mkey_make(struct dev *d, const struct mkey_arg *arg);
int mkey_remove(struct dev *d, u32 key);
/* An MTT key for @bytes of fresh memory at address @va; *@at: its bus address */
u32 mr_make(struct dev *d, u64 va, u64 bytes, u32 rights, u64 *at);

/**
 * struct fqp - a QP of the driver
 */
struct fqp {
	struct dev *d;
	u32 qpn;
	u32 type;
	u64 buf;
	u64 dbr;
	u32 log_sq;
	u32 log_rq;
	u32 log_stride;
	u64 sq_off;
	u16 sq_pi;
	u16 rq_pi;
	u32 uar;
	struct queue *scq;
	struct queue *rcq;
};

/**
 * struct qp_arg - a QP to be made; zero gives a plain RC QP
 * @srqn: receive from there
 * @scq: NULL: a new one
 * @rcq: NULL: the same
 * @log_sq: 0: 6
 */
struct qp_arg {
	u32 type;
	u32 srqn;
	u32 xrcd;
	u32 pd;
	struct queue *scq;
	struct queue *rcq;
	u32 log_sq;
};

struct fqp *qp_make(struct dev *d, const struct qp_arg *arg);
int qp_remove(struct fqp *qp);
/**
 * struct link_arg - how two QPs are connected; zero: no retries, all rights
 * @q_key: datagrams
 * @pkey_index: partition
 */
struct link_arg {
	u32 q_key;
	u32 pkey_index;
	u32 rnr_retry;
	u32 retry_count;
	u32 ack_timeout;
	u32 min_rnr_nak;
	bool no_remote;
};

int qp_modify(struct fqp *qp, u16 opcode, u32 remote_qpn, u16 lid,
	      const struct link_arg *arg);
/* To RTS, connected to QP @remote at @lid */
int qp_connect(struct fqp *qp, u32 remote_qpn, u16 lid,
	       const struct link_arg *arg);
u32 qp_state(struct fqp *qp);
/* A connected pair, on one or two devices */
void qp_pair(struct dev *a, struct dev *b, struct fqp **qa, struct fqp **qb,
	     const struct link_arg *arg);

/* Receive: one segment */
void post_recv(struct fqp *qp, u32 key, u64 addr, u32 len);

/**
 * struct wqe - a send request that is built
 */
struct wqe {
	struct fqp *qp;
	u8 raw[1024];
	u32 bytes;
};

#define SIGNALED		0x08
#define SOLICITED		0x02

void wqe_begin(struct wqe *w, struct fqp *qp, u8 opcode, u8 flags, u32 imm);
void wqe_remote(struct wqe *w, u64 va, u32 rkey);
void wqe_atomic(struct wqe *w, u64 swap_add, u64 compare);

/**
 * struct av_arg - where a datagram goes
 * @half: without the second half, that is for the GRH
 */
struct av_arg {
	u32 qpn;
	u32 q_key;
	u16 lid;
	u8 sl;
	bool grh;
	bool half;
};

#define AV_HOP_LIMIT		64
#define AV_TCLASS		0x5a
#define AV_FLOW			0x12345
#define AV_DGID			0xfe80000000000000ull

void wqe_av(struct wqe *w, const struct av_arg *arg);
void wqe_sge(struct wqe *w, u32 key, u64 addr, u32 len);
void wqe_inline(struct wqe *w, const void *data, u32 len);
/* Write it to the queue and ring; wqe_queue() does not ring */
void wqe_queue(struct wqe *w);
void wqe_post(struct wqe *w);
void qp_ring(struct fqp *qp);

/* The usual requests, posted with a CQE wanted */
void post_write(struct fqp *qp, u64 va, u32 rkey, u32 key, u64 addr, u32 len);
void post_read(struct fqp *qp, u64 va, u32 rkey, u32 key, u64 addr, u32 len);
void post_send(struct fqp *qp, u32 key, u64 addr, u32 len);

/**
 * struct umr_arg - a UMR request
 * @key: to change
 * @mkc: new context, for the fields of @mask
 * @list: table entries, @octwords of them, in bus memory through @list_key
 */
struct umr_arg {
	u32 key;
	u8 flags;
	u64 mask;
	u8 mkc[64];
	u64 list;
	u32 list_key;
	u32 list_len;
	u32 octwords;
	u64 octword;
	bool no_list;
};

#define UMR_OFFSET		0x10
#define UMR_MUST_BE_FREE	0x20
#define UMR_MUST_NOT_BE_FREE	0x40
#define UMR_INLINE		0x80
#define UMR_MASK_LEN		BIT_ULL(0)
#define UMR_MASK_PAGE_SIZE	BIT_ULL(1)
#define UMR_MASK_START		BIT_ULL(6)
#define UMR_MASK_PD		BIT_ULL(7)
#define UMR_MASK_KEY		BIT_ULL(13)
#define UMR_MASK_QPN		BIT_ULL(14)
#define UMR_MASK_RIGHTS		(0x1full << 17)
#define UMR_MASK_FREE		BIT_ULL(29)
#define UMR_MASK_ENABLE		(UMR_MASK_LEN | UMR_MASK_PAGE_SIZE | \
				 UMR_MASK_START | UMR_MASK_PD | UMR_MASK_KEY | \
				 UMR_MASK_RIGHTS | UMR_MASK_FREE)

void post_umr(struct fqp *qp, const struct umr_arg *arg);
/* Post and wait; syndrome of the CQE, 0: good, -1: no CQE */
int umr(struct fqp *qp, const struct umr_arg *arg);
/* A context for a UMR */
/* The context of a key: what CREATE_MKEY and UMR have in common */
void fill_mkc(u8 *mkc, struct dev *d, u32 rights, u64 start, u64 len,
	      u32 log_page);
void umr_mkc(struct umr_arg *arg, struct dev *d, u32 rights, u64 start, u64 len,
	     u32 log_page);

/* The next CQE after the clock ran for @ns; NULL: none */
u8 *wait_cqe(struct queue *cq, u64 ns);

/* Page fault events, taken apart */
struct pf {
	u32 subtype;
	u32 type;
	u32 token;
	u32 wq;
	u32 committed;
	u16 wqe_index;
	u32 rkey;
	u64 va;
	u32 length;
};

bool pf_poll(struct dev *d, struct pf *pf);
int pf_resume(struct dev *d, const struct pf *pf, bool error);

#endif /* FAKE_H */
