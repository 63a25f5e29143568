// SPDX-License-Identifier: GPL-2.0
/* Two connected RC queue pairs on one device. */
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rc_pair.h"

#define PORT		1
#define MAX_WR		128
#define MAX_SGE		4
#define MAX_RD_ATOMIC	16
#define SETTLE_MS	50

static __thread const char *failed_call = "nothing";

const char *rc_failed_call(void)
{
	return failed_call;
}

static int fail(int error, const char *call)
{
	errno = error;
	failed_call = call;
	return -1;
}

struct ibv_context *rc_open(const char *device)
{
	struct ibv_context *ctx = NULL;
	struct ibv_device **list;
	bool found = false;
	int num, i;

	list = ibv_get_device_list(&num);
	if (!list) {
		/* ENOSYS: the kernel has no RDMA at all */
		fail(errno == ENOSYS ? ENODEV : errno, "ibv_get_device_list");
		return NULL;
	}
	for (i = 0; i < num && !found; i++) {
		if (device && strcmp(ibv_get_device_name(list[i]), device))
			continue;
		found = true;
		ctx = ibv_open_device(list[i]);
		if (!ctx)
			fail(errno, "ibv_open_device");
	}
	if (!found)
		fail(ENODEV, "ibv_get_device_list");
	i = errno;
	ibv_free_device_list(list);
	errno = i;
	return ctx;
}

/* RoCE v2 over IPv4 where there is one, else any RoCE v2, else the first GID. */
static int choose_gid(struct ibv_context *ctx, int table_len)
{
	struct ibv_gid_entry entry;
	int choice = 0;
	int i;

	for (i = table_len - 1; i >= 0; i--) {
		static const uint8_t v4_mapped[12] = { [10] = 0xff, [11] = 0xff };

		if (ibv_query_gid_ex(ctx, PORT, i, &entry, 0) ||
		    entry.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		choice = i;
		if (!memcmp(entry.gid.raw, v4_mapped, sizeof(v4_mapped)))
			break;
	}
	return choice;
}

static int end_init(struct rc_end *end, struct ibv_context *ctx)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = MAX_WR,
			.max_recv_wr = MAX_WR,
			.max_send_sge = MAX_SGE,
			.max_recv_sge = MAX_SGE,
		},
	};

	end->pd = ibv_alloc_pd(ctx);
	if (!end->pd)
		return fail(errno, "ibv_alloc_pd");
	end->cq = ibv_create_cq(ctx, 2 * MAX_WR, NULL, NULL, 0);
	if (!end->cq)
		return fail(errno, "ibv_create_cq");
	attr.send_cq = end->cq;
	attr.recv_cq = end->cq;
	end->qp = ibv_create_qp(end->pd, &attr);
	if (!end->qp)
		return fail(errno, "ibv_create_qp");
	return 0;
}

static void end_destroy(struct rc_end *end)
{
	if (end->qp)
		ibv_destroy_qp(end->qp);
	if (end->cq)
		ibv_destroy_cq(end->cq);
	if (end->pd)
		ibv_dealloc_pd(end->pd);
	memset(end, 0, sizeof(*end));
}

/* From any state to RTS, with packet sequence numbers of its own */
static int end_connect(const struct rc_pair *pair, struct rc_end *end,
		       const struct rc_end *peer, uint32_t sq_psn, uint32_t rq_psn)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_port_attr port;
	int ret;

	ret = ibv_query_port(pair->ctx, PORT, &port);
	if (ret)
		return fail(ret, "ibv_query_port");
	ret = ibv_modify_qp(end->qp, &attr, IBV_QP_STATE);
	if (ret)
		return fail(ret, "ibv_modify_qp to RESET");

	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = PORT;
	attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	ret = ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			    IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (ret)
		return fail(ret, "ibv_modify_qp to INIT");

	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = port.active_mtu;
	attr.dest_qp_num = peer->qp->qp_num;
	attr.rq_psn = rq_psn;
	attr.max_dest_rd_atomic = MAX_RD_ATOMIC;
	attr.min_rnr_timer = 12;	/* 0.64 ms */
	attr.ah_attr.dlid = port.lid;
	attr.ah_attr.port_num = PORT;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.grh.dgid = pair->gid;
	attr.ah_attr.grh.sgid_index = pair->gid_index;
	attr.ah_attr.grh.hop_limit = 64;
	ret = ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (ret)
		return fail(ret, "ibv_modify_qp to RTR");

	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = sq_psn;
	attr.max_rd_atomic = MAX_RD_ATOMIC;
	attr.timeout = 20;		/* 4.3 s: a software device under load is slow */
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	ret = ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN |
			    IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT |
			    IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
	if (ret)
		return fail(ret, "ibv_modify_qp to RTS");
	return 0;
}

static int connect_both(struct rc_pair *pair)
{
	/* A late packet of an earlier connection must not fit into this one. */
	static uint32_t psn;
	uint32_t a_psn, b_psn;

	psn += 0x20000;
	a_psn = psn & 0xffffff;
	b_psn = (psn + 0x10000) & 0xffffff;
	if (end_connect(pair, &pair->a, &pair->b, a_psn, b_psn) ||
	    end_connect(pair, &pair->b, &pair->a, b_psn, a_psn))
		return -1;
	return 0;
}

int rc_pair_init_gid(struct rc_pair *pair, struct ibv_context *ctx, int gid_index)
{
	struct ibv_port_attr port;
	int ret;

	memset(pair, 0, sizeof(*pair));
	pair->ctx = ctx;
	ret = ibv_query_port(ctx, PORT, &port);
	if (ret)
		return fail(ret, "ibv_query_port");
	pair->gid_index = gid_index < 0 ? choose_gid(ctx, port.gid_tbl_len) : gid_index;
	if (ibv_query_gid(ctx, PORT, pair->gid_index, &pair->gid))
		return fail(errno, "ibv_query_gid");
	if (end_init(&pair->a, ctx) || end_init(&pair->b, ctx) || connect_both(pair)) {
		ret = errno;
		rc_pair_destroy(pair);
		errno = ret;
		return -1;
	}
	return 0;
}

int rc_pair_init(struct rc_pair *pair, struct ibv_context *ctx)
{
	return rc_pair_init_gid(pair, ctx, -1);
}

void rc_pair_destroy(struct rc_pair *pair)
{
	end_destroy(&pair->a);
	end_destroy(&pair->b);
}

static void drain(struct rc_end *end)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(end->cq, 1, &wc) > 0)
		;
}

/*
 * A software device reports an error a moment before it moves its queue pairs to
 * the error state.  One that was reset in that moment would be in error again, so
 * give it time; a queue pair that has no error of its own costs all of it.
 */
static void settle(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int ms;

	for (ms = 0; ms < SETTLE_MS; ms++) {
		if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) ||
		    attr.qp_state == IBV_QPS_ERR)
			return;
		usleep(1000);
	}
}

int rc_pair_reconnect(struct rc_pair *pair)
{
	settle(pair->a.qp);
	settle(pair->b.qp);
	if (connect_both(pair))
		return -1;
	drain(&pair->a);
	drain(&pair->b);
	return 0;
}

static int post_send(struct rc_end *end, struct ibv_send_wr *wr, const struct ibv_sge *sge)
{
	struct ibv_send_wr *bad;
	int ret;

	wr->sg_list = (struct ibv_sge *)sge;
	wr->num_sge = sge ? 1 : 0;
	wr->send_flags = IBV_SEND_SIGNALED;
	ret = ibv_post_send(end->qp, wr, &bad);
	return ret ? fail(ret, "ibv_post_send") : 0;
}

int rc_post(struct rc_end *end, enum ibv_wr_opcode opcode, const struct ibv_sge *sge,
	    uint64_t remote_addr, uint32_t rkey)
{
	struct ibv_send_wr wr = { .opcode = opcode };

	wr.wr.rdma.remote_addr = remote_addr;
	wr.wr.rdma.rkey = rkey;
	return post_send(end, &wr, sge);
}

int rc_post_atomic(struct rc_end *end, enum ibv_wr_opcode opcode, const struct ibv_sge *sge,
		   uint64_t remote_addr, uint32_t rkey, uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr wr = { .opcode = opcode };

	wr.wr.atomic.remote_addr = remote_addr;
	wr.wr.atomic.rkey = rkey;
	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	return post_send(end, &wr, sge);
}

int rc_post_recv(struct rc_end *end, const struct ibv_sge *sge)
{
	struct ibv_recv_wr wr = {
		.sg_list = (struct ibv_sge *)sge,
		.num_sge = sge ? 1 : 0,
	};
	struct ibv_recv_wr *bad;
	int ret;

	ret = ibv_post_recv(end->qp, &wr, &bad);
	return ret ? fail(ret, "ibv_post_recv") : 0;
}

static long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

int rc_wait(struct rc_end *end, struct ibv_wc *wc, int timeout_ms)
{
	long long deadline = now_ms() + timeout_ms;
	unsigned int polls = 0;
	int ret;

	for (;;) {
		ret = ibv_poll_cq(end->cq, 1, wc);
		if (ret > 0)
			return wc->status;
		if (ret < 0)
			return fail(EIO, "ibv_poll_cq");
		if (now_ms() >= deadline)
			return fail(ETIMEDOUT, "ibv_poll_cq");
		/* Software devices work on this CPU: let them, and do not spin for long. */
		if (++polls < 1000)
			sched_yield();
		else
			usleep(100);
	}
}

int rc_do(struct rc_end *end, enum ibv_wr_opcode opcode, const struct ibv_sge *sge,
	  uint64_t remote_addr, uint32_t rkey)
{
	struct ibv_wc wc;

	if (rc_post(end, opcode, sge, remote_addr, rkey))
		return -1;
	return rc_wait(end, &wc, RC_PATIENCE_MS);
}
