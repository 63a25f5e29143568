// SPDX-License-Identifier: GPL-2.0
/*
 * The unmodified mlx5 driver and libmlx5 on the simulated ConnectX: what verbs
 * offer, step by step, in strict mode. A rule that the driver breaks ends the run,
 * so each pass says as well that nothing was broken on the way.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "child.h"
#include "mlx5sim.h"
#include "rig.h"
#include "tap.h"

#define DEVICE		"mlx5_0"
#define LID		1
#define SIZE		MIB
#define CHUNK		(64 * KIB)
#define ALL_ACCESS	(RIG_ACCESS | IBV_ACCESS_MW_BIND)

/* Side a sends, side b is the target; each has a buffer and an MR. */
static struct ibv_context *ctx;
static struct rc_pair pair;
static uint8_t *mem_a, *mem_b;
static struct ibv_mr *mr_a, *mr_b;

static void fill(uint8_t *mem, size_t len, uint64_t seed)
{
	size_t i;

	for (i = 0; i < len; i += 8) {
		uint64_t r = random_next(&seed);

		memcpy(mem + i, &r, len - i < 8 ? len - i : 8);
	}
}

static struct ibv_sge sge_of(const struct ibv_mr *mr, const uint8_t *at, uint32_t len)
{
	return (struct ibv_sge){ .addr = (uintptr_t)at, .length = len, .lkey = mr->lkey };
}

static void reconnect(void)
{
	if (rc_pair_reconnect(&pair))
		bail("%s: %s", rc_failed_call(), strerror(errno));
}

static void test_attributes(void)
{
	struct ibv_device_attr_ex attr;
	struct ibv_port_attr port;

	is(ibv_query_device_ex(ctx, NULL, &attr), 0, "query the device");
	is(attr.orig_attr.atomic_cap, IBV_ATOMIC_HCA, "atomics are offered");
	ok(attr.odp_caps.general_caps & IBV_ODP_SUPPORT, "page faults are offered");
	is(ibv_query_port(ctx, 1, &port), 0, "query the port");
	is(port.state, IBV_PORT_ACTIVE, "the port is active");
	is(port.lid, LID, "its LID");
	is(port.link_layer, IBV_LINK_LAYER_INFINIBAND, "its link layer");
}

/* Offsets and lengths that begin and end everywhere in a page */
static void test_write_read(void)
{
	static const struct {
		uint32_t offset, length;
	} cases[] = {
		{ 0, 1 }, { 0, 4096 }, { 4095, 2 }, { 1, 65536 }, { 12345, 300001 }, { 0, SIZE },
	};
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint32_t off = cases[i].offset, len = cases[i].length;
		struct ibv_sge sge = sge_of(mr_a, mem_a + off, len);

		fill(mem_a + off, len, 1000 + i);
		memset(mem_b, 0x5a, SIZE);
		is(rc_do(&pair.a, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)mem_b + off, mr_b->rkey),
		   IBV_WC_SUCCESS, "WRITE %u bytes at %u", len, off);
		ok(!memcmp(mem_a + off, mem_b + off, len), "they arrived");
		ok((!off || mem_b[off - 1] == 0x5a) &&
		   (off + len == SIZE || mem_b[off + len] == 0x5a), "and nothing beside them");
		memset(mem_a, 0, SIZE);
		is(rc_do(&pair.a, IBV_WR_RDMA_READ, &sge, (uintptr_t)mem_b + off, mr_b->rkey),
		   IBV_WC_SUCCESS, "READ them back");
		ok(!memcmp(mem_a + off, mem_b + off, len), "they came back");
	}
}

static void test_atomics(void)
{
	struct ibv_sge sge = sge_of(mr_a, mem_a + 8, 8);
	uint64_t *remote = (uint64_t *)(mem_b + 64), *old = (uint64_t *)(mem_a + 8);
	struct ibv_wc wc;

	*remote = 40;
	is(rc_post_atomic(&pair.a, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, (uintptr_t)remote,
			  mr_b->rkey, 2, 0), 0, "post FETCH_AND_ADD");
	is(rc_wait(&pair.a, &wc, RC_PATIENCE_MS), IBV_WC_SUCCESS, "it completes");
	is(*old, 40, "it returns what was there");
	is(*remote, 42, "it has added");
	is(rc_post_atomic(&pair.a, IBV_WR_ATOMIC_CMP_AND_SWP, &sge, (uintptr_t)remote,
			  mr_b->rkey, 42, 7), 0, "post CMP_AND_SWP that matches");
	is(rc_wait(&pair.a, &wc, RC_PATIENCE_MS), IBV_WC_SUCCESS, "it completes");
	is(*remote, 7, "it has swapped");
	is(rc_post_atomic(&pair.a, IBV_WR_ATOMIC_CMP_AND_SWP, &sge, (uintptr_t)remote,
			  mr_b->rkey, 42, 8), 0, "post CMP_AND_SWP that does not match");
	is(rc_wait(&pair.a, &wc, RC_PATIENCE_MS), IBV_WC_SUCCESS, "it completes");
	is(*remote, 7, "it has not swapped");
	is(*old, 7, "it returns what was there");
}

static int post_send_imm(const struct ibv_sge *sge, unsigned int flags, uint32_t imm)
{
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_SEND_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED | flags,
		.sg_list = (struct ibv_sge *)sge,
		.num_sge = 1,
		.imm_data = htobe32(imm),
	};

	return ibv_post_send(pair.a.qp, &wr, &bad);
}

static void test_send_immediate(void)
{
	struct ibv_sge to = sge_of(mr_b, mem_b, 4096), from = sge_of(mr_a, mem_a, 1000);
	struct ibv_wc wc;

	fill(mem_a, 1000, 7);
	is(rc_post_recv(&pair.b, &to), 0, "post a receive");
	is(post_send_imm(&from, 0, 0xcafe0001), 0, "SEND with immediate");
	is(rc_wait(&pair.a, &wc, RC_PATIENCE_MS), IBV_WC_SUCCESS, "the send completes");
	is(rc_wait(&pair.b, &wc, RC_PATIENCE_MS), IBV_WC_SUCCESS, "the receive completes");
	is(wc.byte_len, 1000, "with its length");
	ok(wc.wc_flags & IBV_WC_WITH_IMM && be32toh(wc.imm_data) == 0xcafe0001,
	   "with its immediate");
	ok(!memcmp(mem_a, mem_b, 1000), "with its data");
}

/* Inline data is in the work request: no key, and free to change after the post. */
static void test_send_inline(void)
{
	struct ibv_qp_init_attr attr;
	struct ibv_qp_attr unused;
	struct ibv_sge to = sge_of(mr_b, mem_b, 4096), from = { 0 };
	char text[] = "inline";
	struct ibv_wc wc;

	if (ibv_query_qp(pair.a.qp, &unused, IBV_QP_CAP, &attr))
		bail("ibv_query_qp: %s", strerror(errno));
	ok(attr.cap.max_inline_data >= sizeof(text), "inline data is offered");
	from.addr = (uintptr_t)text;
	from.length = sizeof(text);
	is(rc_post_recv(&pair.b, &to), 0, "post a receive");
	is(post_send_imm(&from, IBV_SEND_INLINE, 1), 0, "SEND inline");
	is(rc_wait(&pair.a, &wc, RC_PATIENCE_MS), IBV_WC_SUCCESS, "the send completes");
	is(rc_wait(&pair.b, &wc, RC_PATIENCE_MS), IBV_WC_SUCCESS, "the receive completes");
	ok(!strcmp((char *)mem_b, "inline"), "with its data");
}

/* Completion events: the queue is armed before, between and after completions. */
static void test_events(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
	struct ibv_cq *cq = channel ? ibv_create_cq(ctx, 16, NULL, channel, 0) : NULL;
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = cq ? ibv_create_qp(pair.a.pd, &init) : NULL;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_sge sge = sge_of(mr_a, mem_a, 64);
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
	struct pollfd fd = { .events = POLLIN };
	struct ibv_cq *event_cq;
	void *context;
	struct ibv_wc wc[8];
	struct ibv_qp_attr to_init = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = RIG_ACCESS,
	};

	if (!qp)
		bail("no queue pair with events: %s", strerror(errno));
	fd.fd = channel->fd;
	is(ibv_modify_qp(qp, &to_init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			 IBV_QP_ACCESS_FLAGS), 0, "to INIT");
	is(ibv_req_notify_cq(cq, 0), 0, "arm");
	is(poll(&fd, 1, 0), 0, "no event yet");
	is(ibv_post_recv(qp, &wr, &bad), 0, "post a receive");
	is(ibv_post_recv(qp, &wr, &bad), 0, "and another");
	is(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0, "to ERROR: both are flushed");
	is(poll(&fd, 1, RC_PATIENCE_MS), 1, "an event comes");
	is(ibv_get_cq_event(channel, &event_cq, &context), 0, "take it");
	ok(event_cq == cq, "it is of this queue");
	is(ibv_poll_cq(cq, 8, wc), 2, "two completions");
	ok(wc[0].status == IBV_WC_WR_FLUSH_ERR && wc[1].status == IBV_WC_WR_FLUSH_ERR,
	   "both flushed");
	is(poll(&fd, 1, 0), 0, "one event for both");
	is(ibv_req_notify_cq(cq, 0), 0, "arm again");
	is(ibv_post_recv(qp, &wr, &bad), 0, "post a receive in ERROR");
	is(poll(&fd, 1, RC_PATIENCE_MS), 1, "an event comes");
	is(ibv_get_cq_event(channel, &event_cq, &context), 0, "take it");
	ibv_ack_cq_events(cq, 2);
	is(ibv_destroy_qp(qp) ?: ibv_destroy_cq(cq) ?: ibv_destroy_comp_channel(channel), 0,
	   "all is destroyed");
}

static void error_case(const char *what, enum ibv_wr_opcode opcode, struct ibv_sge sge,
		       uint64_t addr, uint32_t rkey, enum ibv_wc_status want)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = { 0 };

	is(rc_do(&pair.a, opcode, &sge, addr, rkey), want, "%s: %s", what,
	   ibv_wc_status_str(want));
	ibv_query_qp(pair.a.qp, &attr, IBV_QP_STATE, &init);
	is(attr.qp_state, IBV_QPS_ERR, "its queue pair is in ERROR");
	is(rc_do(&pair.a, IBV_WR_RDMA_WRITE, &sge, addr, rkey), IBV_WC_WR_FLUSH_ERR,
	   "the next request is flushed");
	reconnect();
}

static void test_errors(void)
{
	struct ibv_sge good = sge_of(mr_a, mem_a, 64), bad = good, huge = good;
	uint64_t there = (uintptr_t)mem_b;
	struct ibv_mr *read_only;
	uint32_t dead;

	bad.lkey ^= 0x7f;
	huge.addr = (uintptr_t)mem_a + SIZE - 8;
	error_case("WRITE with a bad rkey", IBV_WR_RDMA_WRITE, good, there, mr_b->rkey ^ 0x7f,
		   IBV_WC_REM_ACCESS_ERR);
	error_case("READ with a bad rkey", IBV_WR_RDMA_READ, good, there, mr_b->rkey ^ 0x7f,
		   IBV_WC_REM_ACCESS_ERR);
	error_case("WRITE across the end", IBV_WR_RDMA_WRITE, good, there + SIZE - 8, mr_b->rkey,
		   IBV_WC_REM_ACCESS_ERR);
	error_case("WRITE with a bad lkey", IBV_WR_RDMA_WRITE, bad, there, mr_b->rkey,
		   IBV_WC_LOC_PROT_ERR);
	error_case("WRITE from across the end", IBV_WR_RDMA_WRITE, huge, there, mr_b->rkey,
		   IBV_WC_LOC_PROT_ERR);
	error_case("WRITE with a key of another PD", IBV_WR_RDMA_WRITE, good, (uintptr_t)mem_a,
		   mr_a->rkey, IBV_WC_REM_ACCESS_ERR);
	read_only = ibv_reg_mr(pair.b.pd, mem_b, SIZE, IBV_ACCESS_REMOTE_READ);
	if (!read_only)
		bail("ibv_reg_mr: %s", strerror(errno));
	is(rc_do(&pair.a, IBV_WR_RDMA_READ, &good, there, read_only->rkey), IBV_WC_SUCCESS,
	   "READ of a read-only MR");
	error_case("WRITE to a read-only MR", IBV_WR_RDMA_WRITE, good, there, read_only->rkey,
		   IBV_WC_REM_ACCESS_ERR);
	dead = read_only->rkey;
	is(ibv_dereg_mr(read_only), 0, "deregister");
	error_case("READ of a dead MR", IBV_WR_RDMA_READ, good, there, dead,
		   IBV_WC_REM_ACCESS_ERR);
}

/* Nothing posted: RNR retries until a receive comes, and an end to them. */
static void test_rnr(void)
{
	struct ibv_sge to = sge_of(mr_b, mem_b, 4096), from = sge_of(mr_a, mem_a, 100);
	struct ibv_wc wc;

	is(post_send_imm(&from, 0, 3), 0, "SEND with no receive posted");
	is(rc_wait(&pair.a, &wc, 20), -1, "it does not complete");
	is(rc_post_recv(&pair.b, &to), 0, "post a receive");
	is(rc_wait(&pair.a, &wc, RC_PATIENCE_MS), IBV_WC_SUCCESS, "now it does");
	is(rc_wait(&pair.b, &wc, RC_PATIENCE_MS), IBV_WC_SUCCESS, "and so does the receive");
	/* Too long for the receive */
	to.length = 50;
	is(rc_post_recv(&pair.b, &to), 0, "post a receive that is too short");
	is(post_send_imm(&from, 0, 4), 0, "SEND more than that");
	is(rc_wait(&pair.a, &wc, RC_PATIENCE_MS), IBV_WC_REM_INV_REQ_ERR, "the sender is told");
	is(rc_wait(&pair.b, &wc, RC_PATIENCE_MS), IBV_WC_LOC_LEN_ERR, "the receiver as well");
	reconnect();
}

static uint64_t faults(void)
{
	return mlx5sim_stat(LID, "faults");
}

/* Local and remote sides of each operation, with pages there and not there */
static void test_odp(void)
{
	struct ibv_device_attr_ex attr = { 0 };
	uint32_t want = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
			IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;
	uint8_t *a = rig_pages(SIZE), *b = rig_pages(SIZE);
	struct ibv_mr *odp_a, *odp_b;
	struct ibv_sge sge, to;
	uint64_t before;
	struct ibv_wc wc;

	ibv_query_device_ex(ctx, NULL, &attr);
	is(attr.odp_caps.per_transport_caps.rc_odp_caps & want, want, "RC may fault everywhere");
	odp_a = ibv_reg_mr(pair.a.pd, a, SIZE, RIG_ACCESS | IBV_ACCESS_ON_DEMAND);
	odp_b = ibv_reg_mr(pair.b.pd, b, SIZE, RIG_ACCESS | IBV_ACCESS_ON_DEMAND);
	if (!odp_a || !odp_b)
		bail("ODP registration: %s", strerror(errno));
	sge = sge_of(odp_a, a + 100, 200000);
	to = sge_of(odp_b, b + 100, 300000);

	before = faults();
	fill(a, SIZE, 21);
	is(rc_do(&pair.a, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)b + 77, odp_b->rkey), 0,
	   "WRITE from ODP to ODP");
	ok(!memcmp(a + 100, b + 77, 200000), "the data");
	ok(faults() > before, "by way of page faults (%llu)",
	   (unsigned long long)(faults() - before));

	before = faults();
	is(rc_do(&pair.a, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)b + 77, odp_b->rkey), 0,
	   "the same again");
	is(faults(), before, "without any fault");

	/* The driver is told that the pages go, and the device must not use them. */
	if (madvise(a, SIZE, MADV_DONTNEED) || madvise(b, SIZE, MADV_DONTNEED))
		bail("madvise: %s", strerror(errno));
	fill(b, SIZE, 22);
	is(rc_do(&pair.a, IBV_WR_RDMA_READ, &sge, (uintptr_t)b + 500, odp_b->rkey), 0,
	   "READ after the pages were given back");
	ok(!memcmp(a + 100, b + 500, 200000), "the data");
	ok(faults() > before, "by way of page faults");

	madvise(a, SIZE, MADV_DONTNEED);
	madvise(b, SIZE, MADV_DONTNEED);
	fill(a, SIZE, 23);
	before = faults();
	is(rc_post_recv(&pair.b, &to), 0, "post a receive into ODP");
	is(post_send_imm(&sge, 0, 5), 0, "SEND from ODP");
	is(rc_wait(&pair.a, &wc, RC_PATIENCE_MS), 0, "the send completes");
	is(rc_wait(&pair.b, &wc, RC_PATIENCE_MS), 0, "the receive completes");
	ok(!memcmp(a + 100, b + 100, 200000), "the data");
	ok(faults() > before, "by way of page faults");

	madvise(a, SIZE, MADV_DONTNEED);
	madvise(b, SIZE, MADV_DONTNEED);
	sge = sge_of(odp_a, a, 8);
	before = faults();
	is(rc_post_atomic(&pair.a, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, (uintptr_t)b + 8192,
			  odp_b->rkey, 5, 0), 0, "FETCH_AND_ADD on ODP");
	is(rc_wait(&pair.a, &wc, RC_PATIENCE_MS), 0, "it completes");
	is(*(uint64_t *)(b + 8192), 5, "it has added");
	ok(faults() > before, "by way of page faults");

	/* No memory behind the key any more: a fault that nobody can serve */
	munmap(b, SIZE);
	is(rc_do(&pair.a, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)b, odp_b->rkey),
	   IBV_WC_REM_ACCESS_ERR, "WRITE where the memory is gone");
	reconnect();
	is(ibv_dereg_mr(odp_a) ?: ibv_dereg_mr(odp_b), 0, "deregister");
	munmap(a, SIZE);
}

/* One key for the whole address space; memory that comes later belongs to it. */
static void test_implicit_odp(void)
{
	struct ibv_device_attr_ex attr = { 0 };
	struct ibv_sge sge = sge_of(mr_a, mem_a, 100000);
	struct ibv_mr *all;
	uint8_t *late;

	ibv_query_device_ex(ctx, NULL, &attr);
	if (!(attr.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT)) {
		skip("implicit ODP", "this driver does not offer it here");
		return;
	}
	all = ibv_reg_mr(pair.b.pd, NULL, SIZE_MAX, RIG_ACCESS | IBV_ACCESS_ON_DEMAND);
	ok(all, "register the address space");
	if (!all)
		return;
	late = rig_pages(SIZE);
	fill(mem_a, SIZE, 31);
	is(rc_do(&pair.a, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)late + 123, all->rkey), 0,
	   "WRITE to memory that was not there then");
	ok(!memcmp(mem_a, late + 123, 100000), "the data");
	munmap(late, SIZE);
	is(rc_do(&pair.a, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)late + 123, all->rkey),
	   IBV_WC_REM_ACCESS_ERR, "WRITE where it is gone");
	reconnect();
	is(ibv_dereg_mr(all), 0, "deregister");
}

static int bind_type2(struct ibv_mw *mw, uint32_t rkey, uint64_t addr, uint64_t len)
{
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {
			.mw = mw,
			.rkey = rkey,
			.bind_info = {
				.mr = mr_b,
				.addr = addr,
				.length = len,
				.mw_access_flags = IBV_ACCESS_REMOTE_WRITE |
						   IBV_ACCESS_REMOTE_READ,
			},
		},
	};

	return ibv_post_send(pair.b.qp, &wr, &bad);
}

static void test_memory_window(enum ibv_mw_type type)
{
	const char *name = type == IBV_MW_TYPE_1 ? "type 1" : "type 2";
	struct ibv_mw *mw = ibv_alloc_mw(pair.b.pd, type);
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {
			.mr = mr_b, .addr = (uintptr_t)mem_b + 4096, .length = 8192,
			.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
		},
	};
	struct ibv_sge sge = sge_of(mr_a, mem_a, 8192);
	struct ibv_wc wc;
	uint32_t rkey;

	ok(mw, "%s: allocate a window", name);
	if (!mw)
		return;
	rkey = type == IBV_MW_TYPE_1 ? mw->rkey : ibv_inc_rkey(mw->rkey);
	is(type == IBV_MW_TYPE_1 ? ibv_bind_mw(pair.b.qp, mw, &bind) :
	   bind_type2(mw, rkey, (uintptr_t)mem_b + 4096, 8192), 0, "%s: bind it", name);
	is(rc_wait(&pair.b, &wc, RC_PATIENCE_MS), 0, "it is bound");
	if (type == IBV_MW_TYPE_1)
		rkey = mw->rkey;
	fill(mem_a, 8192, 41);
	is(rc_do(&pair.a, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)mem_b + 4096, rkey), 0,
	   "WRITE through it");
	ok(!memcmp(mem_a, mem_b + 4096, 8192), "the data");
	is(rc_do(&pair.a, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)mem_b + 4097, rkey),
	   IBV_WC_REM_ACCESS_ERR, "not beyond its end");
	reconnect();
	is(ibv_dealloc_mw(mw), 0, "%s: free it", name);
	is(rc_do(&pair.a, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)mem_b + 4096, rkey),
	   IBV_WC_REM_ACCESS_ERR, "its key is dead");
	reconnect();
}

/* Two queue pairs that share a receive queue, and its limit event */
static void test_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ibv_srq_attr limit = { .srq_limit = 2 };
	struct ibv_srq *srq = ibv_create_srq(pair.b.pd, &init);
	struct ibv_qp_init_attr qp_init = {
		.send_cq = pair.b.cq, .recv_cq = pair.b.cq, .srq = srq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
	};
	struct ibv_sge sge = sge_of(mr_b, mem_b, 4096), from = sge_of(mr_a, mem_a, 512);
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_qp *own = pair.b.qp, *shared;
	struct ibv_async_event event;
	struct ibv_wc wc;
	int i;

	ok(srq, "create a shared receive queue");
	if (!srq)
		return;
	shared = ibv_create_qp(pair.b.pd, &qp_init);
	if (!shared)
		bail("ibv_create_qp: %s", strerror(errno));
	pair.b.qp = shared;
	reconnect();
	for (i = 0; i < 3; i++) {
		sge.addr = (uintptr_t)mem_b + i * 4096;
		wr.wr_id = 100 + i;
		is(ibv_post_srq_recv(srq, &wr, &bad), 0, "post a receive to it");
	}
	is(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0, "ask for an event below 2");
	for (i = 0; i < 3; i++) {
		fill(mem_a, 512, 50 + i);
		is(post_send_imm(&from, 0, i), 0, "SEND to it");
		is(rc_wait(&pair.a, &wc, RC_PATIENCE_MS), 0, "the send completes");
		is(rc_wait(&pair.b, &wc, RC_PATIENCE_MS), 0, "the receive completes");
		is(wc.wr_id, 100 + i, "in the order of posting");
		ok(!memcmp(mem_a, mem_b + i * 4096, 512), "the data");
	}
	/* Those of queue pairs in error come first. */
	do {
		if (ibv_get_async_event(ctx, &event))
			bail("ibv_get_async_event: %s", strerror(errno));
		ibv_ack_async_event(&event);
	} while (event.event_type == IBV_EVENT_QP_ACCESS_ERR ||
		 event.event_type == IBV_EVENT_QP_REQ_ERR);
	is(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED, "the event of the limit");
	pair.b.qp = own;
	is(ibv_destroy_qp(shared) ?: ibv_destroy_srq(srq), 0, "all is destroyed");
	reconnect();
}

/*
 * Traffic without end between two MRs with page faults, whose pages are given back
 * all the time; tells through a pipe, @arg, once it runs.
 */
static int endless_traffic(void *arg)
{
	int ready = *(int *)arg;
	struct ibv_context *own = rc_open(DEVICE);
	uint8_t *from = rig_pages(SIZE), *to = rig_pages(SIZE);
	struct ibv_mr *from_mr, *to_mr;
	struct rc_pair p;
	unsigned int n;

	if (!own || rc_pair_init(&p, own))
		return 1;
	from_mr = ibv_reg_mr(p.a.pd, from, SIZE, RIG_ACCESS | IBV_ACCESS_ON_DEMAND);
	to_mr = ibv_reg_mr(p.b.pd, to, SIZE, RIG_ACCESS | IBV_ACCESS_ON_DEMAND);
	if (!from_mr || !to_mr)
		return 2;
	for (;;) {
		for (n = 0; n < SIZE / CHUNK; n++) {
			struct ibv_sge sge = sge_of(from_mr, from + n * CHUNK, CHUNK);

			if (rc_post(&p.a, n % 2 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, &sge,
				    (uintptr_t)to + n * CHUNK, to_mr->rkey))
				return 3;
		}
		for (n = 0; n < SIZE / CHUNK; n++) {
			struct ibv_wc wc;

			if (rc_wait(&p.a, &wc, RC_PATIENCE_MS))
				return 4;
		}
		if (write(ready, "r", 1) != 1)
			return 5;
		madvise(from, SIZE, MADV_DONTNEED);
		madvise(to, SIZE, MADV_DONTNEED);
	}
}

static void test_kill(void)
{
	long keys = mlx5sim_live_keys(LID);
	int round;

	for (round = 0; round < 5; round++) {
		int ready[2];
		pid_t pid;
		char c;

		if (pipe(ready))
			bail("pipe: %s", strerror(errno));
		pid = child_start(endless_traffic, &ready[1]);
		close(ready[1]);
		is(read(ready[0], &c, 1), 1, "a process with traffic and page faults");
		usleep(round * 7000);
		kill(pid, SIGKILL);
		close(ready[0]);
		is(child_wait(pid, RC_PATIENCE_MS), CHILD_SIGNAL(SIGKILL), "killed");
	}
	is(mlx5sim_live_keys_soon(LID, keys), keys, "its keys are gone");
}

int main(void)
{
	ctx = rc_open(DEVICE);
	if (!ctx)
		tap_skip_all("no %s: %s", DEVICE, strerror(errno));
	if (rc_pair_init(&pair, ctx))
		bail("%s: %s", rc_failed_call(), strerror(errno));
	mem_a = rig_pages(SIZE);
	mem_b = rig_pages(SIZE);
	mr_a = ibv_reg_mr(pair.a.pd, mem_a, SIZE, ALL_ACCESS);
	mr_b = ibv_reg_mr(pair.b.pd, mem_b, SIZE, ALL_ACCESS);
	if (!mr_a || !mr_b)
		bail("ibv_reg_mr: %s", strerror(errno));

	test_attributes();
	test_write_read();
	test_atomics();
	test_send_immediate();
	test_send_inline();
	test_events();
	test_errors();
	test_rnr();
	test_odp();
	test_implicit_odp();
	test_memory_window(IBV_MW_TYPE_1);
	test_memory_window(IBV_MW_TYPE_2);
	test_srq();
	test_kill();

	is(ibv_dereg_mr(mr_a) ?: ibv_dereg_mr(mr_b), 0, "deregister");
	rc_pair_destroy(&pair);
	is(ibv_close_device(ctx), 0, "close the device");
	return tap_done();
}
