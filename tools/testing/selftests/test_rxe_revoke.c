// SPDX-License-Identifier: GPL-2.0
/*
 * After a revoke each kind of access to an rxe MR ends with the error that the
 * contract names, the key is not given out again before dereg, and all goes back.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "rig.h"
#include "sim.h"
#include "tap.h"

#define IOVA	0x10000ull
#define SIZE	(64 * KIB)

enum op { WRITE, READ, FETCH_ADD, CMP_SWP };
static const char *const op_name[] = { "WRITE", "READ", "FETCH_ADD", "CMP_SWP" };

static int wait_for(struct rc_end *end)
{
	struct ibv_wc wc;

	return rc_wait(end, &wc, RC_PATIENCE_MS);
}

static void reconnect(struct rig *rig)
{
	if (rc_pair_reconnect(&rig->pair))
		bail("rc_pair_reconnect: %s", strerror(errno));
}

/* One operation of @from, with @sge on its own side and @remote on the other. */
static int run(struct rig *rig, struct rc_end *from, enum op op, uint64_t addr, uint32_t lkey,
	       uint64_t remote, uint32_t rkey)
{
	struct ibv_sge sge = {
		.addr = addr,
		.length = op == WRITE || op == READ ? 4096 : 8,
		.lkey = lkey,
	};
	int status;

	switch (op) {
	case WRITE:
		status = rc_do(from, IBV_WR_RDMA_WRITE, &sge, remote, rkey);
		break;
	case READ:
		status = rc_do(from, IBV_WR_RDMA_READ, &sge, remote, rkey);
		break;
	default:
		if (rc_post_atomic(from, op == FETCH_ADD ? IBV_WR_ATOMIC_FETCH_AND_ADD :
				   IBV_WR_ATOMIC_CMP_AND_SWP, &sge, remote, rkey, 1, 2))
			bail("rc_post_atomic: %s", strerror(errno));
		status = wait_for(from);
	}
	if (status)
		reconnect(rig);
	return status;
}

static int remote(struct rig *rig, enum op op, const struct mr *mr, uint64_t iova)
{
	return run(rig, &rig->pair.a, op, (uintptr_t)rig->host, rig->host_mr->lkey, iova,
		   mr->rkey);
}

static int local(struct rig *rig, enum op op, const struct mr *mr, uint64_t iova)
{
	return run(rig, &rig->pair.b, op, iova, mr->lkey, (uintptr_t)rig->host,
		   rig->host_mr->rkey);
}

/* A SEND from @from to @to: the statuses of both sides. */
static void send_recv(struct rig *rig, struct rc_end *from, struct ibv_sge send,
		      struct rc_end *to, struct ibv_sge recv, int *sent, int *received)
{
	if (rc_post_recv(to, &recv) || rc_post(from, IBV_WR_SEND, &send, 0, 0))
		bail("post: %s", strerror(errno));
	*sent = wait_for(from);
	*received = *sent == IBV_WC_LOC_PROT_ERR ? -1 : wait_for(to);
	if (*sent || *received)
		reconnect(rig);
}

static void check_sends(struct rig *rig, const struct mr *mr, bool revoked)
{
	struct ibv_sge host = { (uintptr_t)rig->host, 4096, rig->host_mr->lkey };
	struct ibv_sge vram = { IOVA, 4096, mr->lkey };
	int sent, received;

	send_recv(rig, &rig->pair.a, host, &rig->pair.b, vram, &sent, &received);
	if (revoked) {
		is(received, IBV_WC_LOC_PROT_ERR,
		   "RECV into revoked memory: local protection error");
		is(sent, IBV_WC_REM_OP_ERR, "its sender: remote operation error");
	} else {
		ok(!sent && !received, "RECV into the MR");
	}

	send_recv(rig, &rig->pair.b, vram, &rig->pair.a, host, &sent, &received);
	if (revoked)
		is(sent, IBV_WC_LOC_PROT_ERR,
		   "SEND of revoked memory: local protection error");
	else
		ok(!sent && !received, "SEND from the MR");
}

/* The key of a revoked MR is still its own, however many come after it. */
static void check_key_is_kept(struct rig *rig, const struct mr *mr)
{
	enum { OTHERS = 300 };
	struct dmabuf *buf = rig_vram(4096, NULL);
	bool kept = true;

	for (int i = 0; i < OTHERS; i++) {
		struct mr other;
		int err = rig_reg(rig, dmabuf_fd(buf), 0, 4096, 0, &other);

		if (err)
			bail("register: %s", strerror(err));
		kept &= other.lkey >> 8 != mr->lkey >> 8;
		mr_dereg(&other);
	}
	ok(kept, "the key is not given out again in %d registrations", OTHERS);
	dmabuf_free(buf);
}

int main(void)
{
	struct drm_vramsim_gem_info info;
	struct counters start;
	struct dmabuf *buf;
	struct mr mr;
	struct rig rig;

	rig_up(&rig);
	counters_get(&start);
	buf = rig_vram(SIZE, NULL);
	is(rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr), 0, "register");
	dmabuf_close_fd(buf);
	ok(!sim_gem_info(buf, &info) && info.pinned == 1 && info.mapped == 0 &&
	   info.vmapped == 1 && info.attached_p2p == 0,
	   "pinned once, mapped for the CPU only, no peer-to-peer claimed");

	for (enum op op = WRITE; op <= CMP_SWP; op++) {
		is(remote(&rig, op, &mr, IOVA), IBV_WC_SUCCESS, "%s to the MR", op_name[op]);
		is(local(&rig, op, &mr, IOVA), IBV_WC_SUCCESS, "%s with the MR at the local side",
		   op_name[op]);
	}
	check_sends(&rig, &mr, false);

	is(sim_revoke(buf), 0, "revoke");
	ok(!sim_gem_info(buf, &info) && info.pinned == 0 && info.vmapped == 1,
	   "the pin is gone when the revoke returns; the mapping waits for dereg");

	for (enum op op = WRITE; op <= CMP_SWP; op++) {
		is(remote(&rig, op, &mr, IOVA), IBV_WC_REM_ACCESS_ERR,
		   "%s to revoked memory: remote access error", op_name[op]);
		is(local(&rig, op, &mr, IOVA), IBV_WC_LOC_PROT_ERR,
		   "%s with revoked memory at the local side: local protection error",
		   op_name[op]);
	}
	check_sends(&rig, &mr, true);
	is(sim_revoke(buf), 0, "a second revoke does no harm");
	check_key_is_kept(&rig, &mr);

	is(mr_dereg(&mr), 0, "dereg");
	ok(!sim_gem_info(buf, &info) && info.vmapped == 0 && info.attached == 0,
	   "dereg gives back mapping and attachment");
	is(remote(&rig, WRITE, &mr, IOVA), IBV_WC_REM_ACCESS_ERR, "the key is dead after dereg");

	dmabuf_free(buf);
	ok(counters_back(&start, 1000), "counters are back");
	rig_down(&rig);
	return tap_done();
}
