// SPDX-License-Identifier: GPL-2.0
/*
 * What a message costs the host: calls for DMA.  Its time is theirs and that of
 * the copy, so a count shows what a clock would show, and is the same everywhere.
 */
#include "../../selftests/tap.h"
#include "../model/qp.h"
#include "fake.h"

#define BYTES			0x10000u
#define PAGES			(BYTES / PAGE)

/* Of one signaled request: doorbell record, request; CQE, and its last byte */
#define READS_REQUEST		2
#define WRITES_REQUEST		2

static struct dev *d;
static struct fqp *qa, *qb;

/* An MTT key of 4 KiB pages, each @stride pages behind the one before */
static u32 make_key(u32 stride, u64 *at)
{
	u8 list[PAGES * 8];
	struct mkey_arg arg = {
		.mode = MLX5_MKC_ACCESS_MODE_MTT,
		.rights = ALL_RIGHTS,
		.len = BYTES,
		.log_page = 12,
		.octwords = PAGES / 2,
		.entries = list,
		.count = PAGES / 2,
	};

	*at = mem_alloc(BYTES * stride);
	for (u32 i = 0; i < PAGES; i++)
		put_be64(list + 8 * i, (*at + i * stride * PAGE) | 3);
	return mkey_make(d, &arg);
}

static void fill(u64 at, u32 stride)
{
	for (u32 i = 0; i < BYTES; i++)
		*((u8 *)mem(at + i / PAGE * stride * PAGE) + i % PAGE) =
			i * 7 + (i >> 8);
}

static bool same(u64 a, u32 stride_a, u64 b, u32 stride_b)
{
	for (u32 i = 0; i < PAGES; i++)
		if (memcmp(mem(a + i * stride_a * PAGE),
			   mem(b + i * stride_b * PAGE), PAGE))
			return false;
	return true;
}

static void message(u8 opcode, u32 stride_local, u32 stride_remote)
{
	u32 pieces_local = stride_local == 1 ? 1 : PAGES;
	u32 pieces_remote = stride_remote == 1 ? 1 : PAGES;
	bool is_read = opcode == WQE_RDMA_READ;
	u32 from = is_read ? pieces_remote : pieces_local;
	u32 to = is_read ? pieces_local : pieces_remote;
	u64 local, remote;
	u32 reads, writes;
	u32 lkey, rkey;

	d = dev_running(&(struct mlx5sim_config){ .lid = 1, .strict = true });
	qp_pair(d, d, &qa, &qb, NULL);
	lkey = make_key(stride_local, &local);
	rkey = make_key(stride_remote, &remote);
	fill(is_read ? remote : local, is_read ? stride_remote : stride_local);
	machine_run(0);		/* each QP looked at its queue once */
	reads = machine_dma_reads;
	writes = machine_dma_writes;
	if (is_read)
		post_read(qa, 0, rkey, lkey, 0, BYTES);
	else
		post_write(qa, 0, rkey, lkey, 0, BYTES);
	reads = machine_dma_reads - reads;
	writes = machine_dma_writes - writes;
	ok(reads == from + READS_REQUEST && writes == to + WRITES_REQUEST,
	   "%s of %u bytes from %u pieces to %u: %u reads, %u writes",
	   is_read ? "READ" : "WRITE", BYTES, from, to, reads, writes);
	ok(wait_cqe(qa->scq, 0) &&
	   same(local, stride_local, remote, stride_remote), "data arrived");
	dev_free(d);
	machine_reset();
}

/* A request longer than a basic block is read at once, in two where it wraps */
static void request(void)
{
	u32 reads, most = 0;
	u8 data[200] = { 0 };
	u64 at;
	u32 key;

	d = dev_running(&(struct mlx5sim_config){ .lid = 1, .strict = true });
	qp_pair(d, d, &qa, &qb, NULL);
	key = mr_make(d, 0, PAGE, ALL_RIGHTS, &at);
	for (u32 i = 0; i < 40; i++) {
		struct wqe w;

		reads = machine_dma_reads;
		wqe_begin(&w, qa, WQE_RDMA_WRITE, SIGNALED, 0);
		wqe_remote(&w, 0, key);
		wqe_inline(&w, data, sizeof(data));
		wqe_post(&w);
		reads = machine_dma_reads - reads;
		most = reads > most ? reads : most;
		ok(cq_poll(qa->scq), "request %u", i);
	}
	ok(most == 4, "requests of 4 blocks: %u reads at most", most);
	dev_free(d);
	machine_reset();
}

int main(void)
{
	message(WQE_RDMA_WRITE, 1, 1);
	message(WQE_RDMA_WRITE, 2, 2);
	message(WQE_RDMA_WRITE, 1, 2);
	message(WQE_RDMA_WRITE, 2, 1);
	message(WQE_RDMA_READ, 1, 1);
	message(WQE_RDMA_READ, 2, 1);
	request();
	return tap_done();
}
