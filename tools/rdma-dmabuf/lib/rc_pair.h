/* SPDX-License-Identifier: GPL-2.0 */
/* Two connected RC queue pairs on one device: the smallest RDMA set-up there is. */
#ifndef RC_PAIR_H
#define RC_PAIR_H

#include <infiniband/verbs.h>

struct rc_end {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

struct rc_pair {
	struct ibv_context *ctx;
	struct rc_end a, b;	/* each with a PD and a CQ of its own */
	union ibv_gid gid;
	int gid_index;
};

/* Opens @device (NULL: the first one); NULL and errno on failure, ENODEV: no such device. */
struct ibv_context *rc_open(const char *device);

/* Makes and connects both ends on @ctx, which stays the caller's; 0, or -1 and errno. */
int rc_pair_init(struct rc_pair *pair, struct ibv_context *ctx);
/* The same on a GID of the caller's choice; -1: the one that rc_pair_init() takes. */
int rc_pair_init_gid(struct rc_pair *pair, struct ibv_context *ctx, int gid_index);
void rc_pair_destroy(struct rc_pair *pair);
/* Brings both QPs through RESET to RTS again, e.g. after an error completion. */
int rc_pair_reconnect(struct rc_pair *pair);

/* The call that failed last in this thread, for messages: "ibv_create_qp" */
const char *rc_failed_call(void);

/* One signalled work request from @end; @opcode WRITE, READ, SEND. 0, or -1 and errno. */
int rc_post(struct rc_end *end, enum ibv_wr_opcode opcode, const struct ibv_sge *sge,
	    uint64_t remote_addr, uint32_t rkey);
/* The same for FETCH_AND_ADD (@compare_add is added) and CMP_AND_SWP. */
int rc_post_atomic(struct rc_end *end, enum ibv_wr_opcode opcode, const struct ibv_sge *sge,
		   uint64_t remote_addr, uint32_t rkey, uint64_t compare_add, uint64_t swap);
int rc_post_recv(struct rc_end *end, const struct ibv_sge *sge);

/* For what will come, but nobody knows when: a guest on a busy machine is slow. */
#define RC_PATIENCE_MS	120000

/* Waits for one completion: its enum ibv_wc_status, or -1 and errno (ETIMEDOUT). */
int rc_wait(struct rc_end *end, struct ibv_wc *wc, int timeout_ms);

/* Post and wait in one, for RC_PATIENCE_MS; returns as rc_wait() does. */
int rc_do(struct rc_end *end, enum ibv_wr_opcode opcode, const struct ibv_sge *sge,
	  uint64_t remote_addr, uint32_t rkey);

#endif /* RC_PAIR_H */
