// SPDX-License-Identifier: GPL-2.0
/*
 * DEVX memory (umem) on dma-bufs, as libmlx5 sends it: keys and whole queues in GPU
 * memory. Its user has no page faults and the adapter cannot take a umem away from
 * what uses it, so it is pinned for as long as it is there.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <infiniband/mlx5dv.h>

#include "child.h"
#include "mlx5_rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE		(1 * MIB)
#define PAGE		4096ull
#define OFFSET		(64 * KIB)
#define LENGTH		(512 * KIB)
#define IOVA		0x4400000000ull

#define VRAM		VRAMSIM_PLACEMENT_VRAM
#define SYSTEM		VRAMSIM_PLACEMENT_SYSTEM

/*
 * Fields of commands, by their names in the programmer's reference: first bit and
 * width. The kernel sets the bits that say that a umem is there.
 */
#define FIELD(first, width)	((first) << 8 | (width))
#define FIRST(field)		((field) >> 8)
#define WIDTH(field)		((field) & 0xff)

#define OPCODE			FIELD(0x00, 16)
#define OUT_NUMBER		FIELD(0x48, 24)	/* of what was created */
#define IN_BYTES		272		/* commands that create, without lists */
#define OUT_BYTES		16

#define CREATE_MKEY		0x200
#define MKC			0x80
#define MKC_RIGHTS		FIELD(MKC + 0x11, 5)	/* a, rw, rr, lw, lr */
#define MKC_ACCESS_MODE		FIELD(MKC + 0x16, 2)
#define MODE_MTT		1
#define MKC_QPN			FIELD(MKC + 0x20, 24)
#define ANY_QPN			0xffffff
#define MKC_VARIANT		FIELD(MKC + 0x38, 8)
#define VARIANT			0x42
#define MKC_PD			FIELD(MKC + 0x68, 24)
#define MKC_START		FIELD(MKC + 0x80, 64)
#define MKC_LEN			FIELD(MKC + 0xc0, 64)
#define MKC_OCTWORDS		FIELD(MKC + 0x1a0, 32)
#define MKC_LOG_PAGE		FIELD(MKC + 0x1da, 6)
#define MKEY_UMEM		FIELD(0x320, 32)

#define CREATE_CQ		0x400
#define CQC			0x80
#define CQC_LOG_SIZE		FIELD(CQC + 0x63, 5)
#define CQC_UAR			FIELD(CQC + 0x68, 24)
#define CQC_EQN			FIELD(CQC + 0xa0, 32)
#define CQC_DBR_UMEM		FIELD(CQC + 0x1a0, 32)
#define CQC_DBR			FIELD(CQC + 0x1c0, 64)
#define CQ_UMEM_OFFSET		FIELD(0x280, 64)
#define CQ_UMEM			FIELD(0x2c0, 32)

#define CREATE_QP		0x500
#define RST2INIT_QP		0x502
#define INIT2RTR_QP		0x503
#define RTR2RTS_QP		0x504
#define QPN			FIELD(0x48, 24)
#define QPC			0xc0
#define QPC_PM_STATE		FIELD(QPC + 0x13, 2)
#define MIGRATED		3
#define QPC_PD			FIELD(QPC + 0x28, 24)
#define QPC_MTU			FIELD(QPC + 0x40, 3)
#define MTU_4096		5
#define QPC_LOG_MSG_MAX		FIELD(QPC + 0x43, 5)
#define QPC_LOG_SQ_SIZE		FIELD(QPC + 0x51, 4)
#define QPC_UAR			FIELD(QPC + 0x68, 24)
#define QPC_REMOTE_QPN		FIELD(QPC + 0xa8, 24)
#define QPC_RLID		FIELD(QPC + 0xf0, 16)
#define QPC_PORT		FIELD(QPC + 0x1e8, 8)
#define QPC_CQN_SND		FIELD(QPC + 0x3e8, 24)
#define QPC_RWE			FIELD(QPC + 0x491, 1)
#define QPC_CQN_RCV		FIELD(QPC + 0x4e8, 24)
#define QPC_DBR			FIELD(QPC + 0x500, 64)
#define QPC_RQ_TYPE		FIELD(QPC + 0x565, 3)
#define NO_RQ			3
#define QPC_DBR_UMEM		FIELD(QPC + 0x720, 32)
#define WQ_UMEM_OFFSET		FIELD(0x800, 64)
#define WQ_UMEM			FIELD(0x840, 32)

#define CREATE_UMEM		"0xa08"

/* A buffer that holds all of a connection: what lies where */
#define AT_CQ			(0 * PAGE)
#define LOG_CQES		6
#define AT_SQ			(1 * PAGE)
#define LOG_BLOCKS		6
#define BLOCK			64u
#define AT_CQ_DBR		(2 * PAGE)
#define AT_QP_DBR		(2 * PAGE + 64)
#define AT_SOURCE		(16 * PAGE)
#define AT_TARGET		(64 * PAGE)
#define CQE_BYTES		64
#define CQE_OWN			63	/* its last byte: opcode, owner bit */
#define CQE_INVALID		0xf1
#define SEND_DBR		4

static struct rig rig;
/* Of one umem: the dma-buf core of older kernels pins, too, what moves. */
static uint32_t pins;

static void set(uint8_t *command, unsigned int field, uint64_t value)
{
	unsigned int bit = FIRST(field) + WIDTH(field);

	for (unsigned int i = 0; i < WIDTH(field); i++, value >>= 1) {
		bit--;
		if (value & 1)
			command[bit / 8] |= 0x80 >> bit % 8;
	}
}

static uint64_t get(const uint8_t *answer, unsigned int field)
{
	uint64_t value = 0;

	for (unsigned int bit = FIRST(field); bit < FIRST(field) + WIDTH(field); bit++)
		value = value << 1 | (answer[bit / 8] >> (7 - bit % 8) & 1);
	return value;
}

#define ALL_ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* @pages: the sizes of pages that the umem may have in the adapter */
static struct mlx5dv_devx_umem *umem_reg_for(uint32_t access, int fd, uint64_t offset,
					     uint64_t length, uint64_t pages)
{
	struct mlx5dv_devx_umem_in in = {
		.addr = (void *)(uintptr_t)offset,
		.size = length,
		.access = access,
		.pgsz_bitmap = pages,
		.comp_mask = MLX5DV_UMEM_MASK_DMABUF,
		.dmabuf_fd = fd,
	};

	errno = 0;
	return mlx5dv_devx_umem_reg_ex(rig.ctx, &in);
}

static struct mlx5dv_devx_umem *umem_reg(int fd, uint64_t offset, uint64_t length, uint64_t pages)
{
	return umem_reg_for(ALL_ACCESS, fd, offset, length, pages);
}

static struct mlx5dv_devx_umem *must_reg(struct dmabuf *buf, uint64_t offset, uint64_t length)
{
	struct mlx5dv_devx_umem *umem = umem_reg(dmabuf_fd(buf), offset, length, PAGE);

	if (!umem)
		bail("umem of a dma-buf: %s", strerror(errno));
	return umem;
}

/* 0 or errno */
static int umem_error(int fd, uint64_t offset, uint64_t length, uint64_t pages)
{
	struct mlx5dv_devx_umem *umem = umem_reg(fd, offset, length, pages);

	if (!umem)
		return errno;
	mlx5dv_devx_umem_dereg(umem);
	return 0;
}

static struct dmabuf *scattered(void)
{
	static const struct dmabuf_opts opts = {
		.flags = VRAMSIM_CREATE_SCATTER, .segment_size = 16 * KIB, .seed = 3,
	};

	return rig_vram(SIZE, &opts);
}

static uint32_t pd_number(struct ibv_pd *pd)
{
	struct mlx5dv_pd out;
	struct mlx5dv_obj obj = { .pd = { .in = pd, .out = &out } };

	if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD))
		bail("number of a PD: %s", strerror(errno));
	return out.pdn;
}

/* Runs a command that creates something; its number is put to *@number */
static struct mlx5dv_devx_obj *create(const char *what, uint8_t in[IN_BYTES], uint32_t *number)
{
	uint8_t out[OUT_BYTES] = { 0 };
	struct mlx5dv_devx_obj *object = mlx5dv_devx_obj_create(rig.ctx, in, IN_BYTES, out,
								sizeof(out));

	if (!object)
		bail("create %s: %s, syndrome %#x", what, strerror(errno),
		     be32toh(*(uint32_t *)(out + 4)));
	*number = get(out, OUT_NUMBER);
	return object;
}

/* A key on @length bytes of a umem from its start on */
static struct mlx5dv_devx_obj *key_on(const struct mlx5dv_devx_umem *umem, uint64_t length,
				      struct mr *mr)
{
	uint8_t in[IN_BYTES] = { 0 };
	struct mlx5dv_devx_obj *object;
	uint32_t index;

	set(in, OPCODE, CREATE_MKEY);
	set(in, MKC_RIGHTS, 0x1f);
	set(in, MKC_ACCESS_MODE, MODE_MTT);
	set(in, MKC_QPN, ANY_QPN);
	set(in, MKC_VARIANT, VARIANT);
	set(in, MKC_PD, pd_number(rig.pair.b.pd));
	set(in, MKC_START, IOVA);
	set(in, MKC_LEN, length);
	set(in, MKC_OCTWORDS, (length / PAGE + 1) / 2);
	set(in, MKC_LOG_PAGE, __builtin_ctzll(PAGE));
	set(in, MKEY_UMEM, umem->umem_id);
	object = create("key", in, &index);
	*mr = (struct mr){ .lkey = index << 8 | VARIANT, .rkey = index << 8 | VARIANT };
	return object;
}

static void stays(struct dmabuf *buf)
{
	is(sim_move(buf, SYSTEM, 0, 0), EBUSY, "the buffer does not move");
	is(sim_move(buf, VRAM, VRAMSIM_MOVE_SHUFFLE, 0), EBUSY, "nor within VRAM");
}

/* A key in the umem carries data of every kind; what it uses, it keeps. */
static void test_key(void)
{
	struct dmabuf *buf = scattered();
	struct mlx5dv_devx_umem *umem = must_reg(buf, OFFSET, LENGTH);
	struct spot spot = { &rig, NULL, IOVA, buf, OFFSET, 64 * KIB };
	struct place place = place_of(buf);
	struct mlx5dv_devx_obj *key;
	struct mr mr;

	pins = sim_gem(buf).pinned;
	ok(pins > 0, "umem: pinned");
	key = key_on(umem, LENGTH, &mr);
	ok(mlx5_leads_to(&mr, IOVA, &place, OFFSET, LENGTH), "the key leads to the window");
	spot.mr = &mr;
	for (size_t i = 0; i < TRANSFERS; i++)
		ok(transfers[i].run(&spot), "%s through the key: data right", transfers[i].name);
	ok(rig_works(&rig, &mr, IOVA, buf, OFFSET, LENGTH), "all of the window");
	stays(buf);
	ok(mlx5dv_devx_umem_dereg(umem), "while a key is on it, it cannot be deregistered");
	is(sim_gem(buf).pinned, pins, "it is still pinned");
	ok(rig_works(&rig, &mr, IOVA, buf, OFFSET, LENGTH), "and still right");
	is(mlx5dv_devx_obj_destroy(key), 0, "destroy the key");
	ok(place_unmapped(&place), "no key leads there");
	is(mlx5dv_devx_umem_dereg(umem), 0, "deregister the umem");
	is(sim_gem(buf).pinned, 0, "no longer pinned");
	is(sim_move(buf, SYSTEM, 0, 0), 0, "it moves again");
	place_free(&place);
	dmabuf_free(buf);
}

/* Two umems on one buffer, one of them on all of it, pages as large as can be */
static void test_two(void)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct mlx5dv_devx_umem *a = must_reg(buf, 0, SIZE);
	struct mlx5dv_devx_umem *b = umem_reg(dmabuf_fd(buf), PAGE, PAGE, ~(PAGE - 1));

	ok(b, "two: a second umem on the buffer");
	is(sim_gem(buf).pinned, 2 * pins, "two: pinned twice");
	is(mlx5dv_devx_umem_dereg(a), 0, "two: deregister the first");
	is(sim_move(buf, SYSTEM, 0, 0), EBUSY, "two: the other one holds it");
	is(b ? mlx5dv_devx_umem_dereg(b) : -1, 0, "two: deregister the other one");
	is(sim_move(buf, SYSTEM, 0, 0), 0, "two: it moves again");
	dmabuf_free(buf);
}

struct connection {
	struct dmabuf *buf;
	struct mlx5dv_devx_umem *umem;
	struct mlx5dv_devx_uar *uar;
	struct mlx5dv_devx_obj *cq, *qp, *key;
	struct mr mr;
	uint32_t cqn, qpn;
	uint16_t posted;
};

static void put(struct connection *c, uint64_t at, const void *from, size_t length)
{
	if (dmabuf_write(c->buf, at, from, length))
		bail("exporter: %s", strerror(errno));
}

static void take(struct connection *c, uint64_t at, void *to, size_t length)
{
	if (dmabuf_read(c->buf, at, to, length))
		bail("exporter: %s", strerror(errno));
}

static void cq_command(const struct connection *c, uint8_t in[IN_BYTES])
{
	uint32_t eqn;

	if (mlx5dv_devx_query_eqn(rig.ctx, 0, &eqn))
		bail("number of an EQ: %s", strerror(errno));
	memset(in, 0, IN_BYTES);
	set(in, OPCODE, CREATE_CQ);
	set(in, CQC_LOG_SIZE, LOG_CQES);
	set(in, CQC_UAR, c->uar->page_id);
	set(in, CQC_EQN, eqn);
	set(in, CQC_DBR_UMEM, c->umem->umem_id);
	set(in, CQC_DBR, AT_CQ_DBR);
	set(in, CQ_UMEM_OFFSET, AT_CQ);
	set(in, CQ_UMEM, c->umem->umem_id);
}

static void make_cq(struct connection *c)
{
	uint8_t in[IN_BYTES], invalid = CQE_INVALID;

	for (unsigned int i = 0; i < 1u << LOG_CQES; i++)
		put(c, AT_CQ + i * CQE_BYTES + CQE_OWN, &invalid, 1);
	cq_command(c, in);
	c->cq = create("CQ", in, &c->cqn);
}

static void modify(struct connection *c, uint16_t opcode)
{
	uint8_t in[IN_BYTES] = { 0 }, out[OUT_BYTES] = { 0 };
	struct ibv_port_attr port;

	if (ibv_query_port(rig.ctx, 1, &port))
		bail("port: %s", strerror(errno));
	set(in, OPCODE, opcode);
	set(in, QPN, c->qpn);
	set(in, QPC_PM_STATE, MIGRATED);
	set(in, QPC_RWE, 1);
	set(in, QPC_MTU, MTU_4096);
	set(in, QPC_LOG_MSG_MAX, 30);
	set(in, QPC_PORT, 1);
	set(in, QPC_RLID, port.lid);
	set(in, QPC_REMOTE_QPN, c->qpn);
	if (mlx5dv_devx_obj_modify(c->qp, in, sizeof(in), out, sizeof(out)))
		bail("modify the QP, %#x: %s, syndrome %#x", opcode, strerror(errno),
		     be32toh(*(uint32_t *)(out + 4)));
}

/* Connected to itself */
static void make_qp(struct connection *c)
{
	uint8_t in[IN_BYTES] = { 0 };

	set(in, OPCODE, CREATE_QP);
	set(in, QPC_PM_STATE, MIGRATED);
	set(in, QPC_PD, pd_number(rig.pair.b.pd));
	set(in, QPC_LOG_SQ_SIZE, LOG_BLOCKS);
	set(in, QPC_UAR, c->uar->page_id);
	set(in, QPC_CQN_SND, c->cqn);
	set(in, QPC_CQN_RCV, c->cqn);
	set(in, QPC_RQ_TYPE, NO_RQ);
	set(in, QPC_DBR_UMEM, c->umem->umem_id);
	set(in, QPC_DBR, AT_QP_DBR);
	set(in, WQ_UMEM_OFFSET, AT_SQ);
	set(in, WQ_UMEM, c->umem->umem_id);
	c->qp = create("QP", in, &c->qpn);
	modify(c, RST2INIT_QP);
	modify(c, INIT2RTR_QP);
	modify(c, RTR2RTS_QP);
}

static struct connection connection_new(void)
{
	struct connection c = { .buf = scattered() };

	c.umem = must_reg(c.buf, 0, SIZE);
	c.uar = mlx5dv_devx_alloc_uar(rig.ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
	if (!c.uar)
		bail("UAR: %s", strerror(errno));
	make_cq(&c);
	make_qp(&c);
	c.key = key_on(c.umem, SIZE, &c.mr);
	return c;
}

/* The request is written to VRAM, as a GPU does, and the adapter told of it. */
static void post_write(struct connection *c, uint32_t length)
{
	struct {
		struct mlx5_wqe_ctrl_seg ctrl;
		struct mlx5_wqe_raddr_seg remote;
		struct mlx5_wqe_data_seg local;
	} wqe = {
		.remote.raddr = htobe64(IOVA + AT_TARGET),
		.remote.rkey = htobe32(c->mr.rkey),
	};
	uint32_t record = htobe32(++c->posted);
	uint64_t bell;

	mlx5dv_set_ctrl_seg(&wqe.ctrl, c->posted - 1, MLX5_OPCODE_RDMA_WRITE, 0, c->qpn,
			    MLX5_WQE_CTRL_CQ_UPDATE, sizeof(wqe) / 16, 0, 0);
	mlx5dv_set_data_seg(&wqe.local, length, c->mr.lkey, IOVA + AT_SOURCE);
	put(c, AT_SQ + (c->posted - 1u) % (1u << LOG_BLOCKS) * BLOCK, &wqe, sizeof(wqe));
	put(c, AT_QP_DBR + SEND_DBR, &record, sizeof(record));
	memcpy(&bell, &wqe, sizeof(bell));
	atomic_store_explicit((_Atomic uint64_t *)c->uar->reg_addr, bell, memory_order_release);
}

/* The next completion; true if it is that of the last request, and good */
static bool completes(struct connection *c)
{
	unsigned int index = (c->posted - 1u) % (1u << LOG_CQES);
	bool owner = (c->posted - 1u) >> LOG_CQES & 1;
	uint64_t give_up = now_ms() + RC_PATIENCE_MS;
	uint32_t record = htobe32(c->posted);
	struct mlx5_cqe64 cqe;

	do {
		if (now_ms() > give_up)
			return false;
		take(c, AT_CQ + index * CQE_BYTES, &cqe, sizeof(cqe));
	} while (cqe.op_own == CQE_INVALID || mlx5dv_get_cqe_owner(&cqe) != owner);
	put(c, AT_CQ_DBR, &record, sizeof(record));
	return mlx5dv_get_cqe_opcode(&cqe) == MLX5_CQE_REQ &&
	       be16toh(cqe.wqe_counter) == (uint16_t)(c->posted - 1);
}

static bool writes_once(struct connection *c, uint32_t length)
{
	static uint8_t sent[128 * KIB], got[128 * KIB];
	static uint64_t state = 9;

	for (uint32_t i = 0; i < length; i++)
		sent[i] = random_next(&state);
	put(c, AT_SOURCE, sent, length);
	post_write(c, length);
	if (!completes(c))
		return false;
	take(c, AT_TARGET, got, length);
	return !memcmp(sent, got, length);
}

static void connection_free(struct connection *c)
{
	is(mlx5dv_devx_obj_destroy(c->key), 0, "queues: destroy the key");
	is(mlx5dv_devx_obj_destroy(c->qp), 0, "queues: destroy the QP");
	is(mlx5dv_devx_obj_destroy(c->cq), 0, "queues: destroy the CQ");
	mlx5dv_devx_free_uar(c->uar);
	is(mlx5dv_devx_umem_dereg(c->umem), 0, "queues: deregister the umem");
	is(sim_gem(c->buf).pinned, 0, "queues: no longer pinned");
	dmabuf_free(c->buf);
}

/* Work requests, completions, doorbell records, data: all of it in VRAM */
static void test_queues(void)
{
	struct connection c = connection_new();
	int right = 0, rounds = 3 << LOG_CQES;

	while (right < rounds && writes_once(&c, 1 + right * 600))
		right++;
	is(right, rounds, "queues: WRITEs from VRAM to VRAM, with queues in VRAM");
	is(sim_gem(c.buf).pinned, pins, "queues: pinned once");
	ok(mlx5dv_devx_umem_dereg(c.umem), "queues: while in use the umem is not deregistered");
	ok(writes_once(&c, 100), "queues: WRITE after that");
	connection_free(&c);
}

/* The exporter may revoke, but the memory is the adapter's until the umem is gone. */
static void test_revoke(void)
{
	struct connection c = connection_new();
	struct counters start, now;
	uint64_t before;

	counters_get(&start);
	before = start.vram_free;
	is(sim_revoke(c.buf), 0, "revoke");
	counters_get(&now);
	is(now.vram_free, before, "revoke: the memory is not given away");
	is(umem_error(dmabuf_fd(c.buf), 0, SIZE, PAGE), ENODEV, "revoke: no new umem");
	is(mlx5dv_devx_obj_destroy(c.key) ?: mlx5dv_devx_obj_destroy(c.qp) ?:
	   mlx5dv_devx_obj_destroy(c.cq), 0, "revoke: destroy what is on it");
	mlx5dv_devx_free_uar(c.uar);
	is(mlx5dv_devx_umem_dereg(c.umem), 0, "revoke: deregister the umem");
	counters_get(&now);
	is(now.vram_free, before + SIZE, "revoke: then the memory is free");
	dmabuf_free(c.buf);
}

static void test_refused(void)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	int fd = dmabuf_fd(buf), other = open("/dev/null", O_RDWR | O_CLOEXEC);

	is(umem_error(fd, 0, SIZE, PAGE), 0, "refused: a good one");
	is(umem_error(-1, 0, SIZE, PAGE), EBADF, "refused: file -1");
	is(umem_error(9999, 0, SIZE, PAGE), EBADF, "refused: a file that is not open");
	is(umem_error(other, 0, SIZE, PAGE), EINVAL, "refused: no dma-buf");
	is(umem_error(fd, 0, SIZE + PAGE, PAGE), EINVAL, "refused: a page too long");
	is(umem_error(fd, SIZE, PAGE, PAGE), EINVAL, "refused: behind the end");
	is(umem_error(fd, PAGE, SIZE, PAGE), EINVAL, "refused: beyond the end");
	is(umem_error(fd, -PAGE, 2 * PAGE, PAGE), EINVAL, "refused: around the end of all");
	is(umem_error(fd, 0, SIZE, 0), EINVAL, "refused: no page size");
	close(other);
	is(umem_error(fd, 0, SIZE, PAGE), 0, "refused: a good one again");
	is(sim_gem(buf).pinned, 0, "refused: nothing is pinned");
	dmabuf_free(buf);
}

/* Registered without LOCAL_WRITE, it is not for what the adapter writes. */
static void test_read_only(void)
{
	struct connection c = { .buf = scattered() };
	uint8_t in[IN_BYTES], out[OUT_BYTES] = { 0 };
	int error;

	c.umem = umem_reg_for(IBV_ACCESS_REMOTE_READ, dmabuf_fd(c.buf), 0, SIZE, PAGE);
	c.uar = mlx5dv_devx_alloc_uar(rig.ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
	if (!c.umem || !c.uar)
		bail("umem to read: %s", strerror(errno));
	cq_command(&c, in);
	errno = 0;
	c.cq = mlx5dv_devx_obj_create(rig.ctx, in, sizeof(in), out, sizeof(out));
	error = errno;
	diag("%s", strerror(error));
	/* Newer kernels leave it to the answer to say what was wrong. */
	ok(!c.cq && (error == EINVAL || error == EREMOTEIO), "read only: no CQ there");
	if (c.cq)
		mlx5dv_devx_obj_destroy(c.cq);
	is(mlx5dv_devx_umem_dereg(c.umem), 0, "read only: deregister");
	c.umem = must_reg(c.buf, 0, SIZE);
	make_cq(&c);
	is(mlx5dv_devx_obj_destroy(c.cq), 0, "read only: a CQ in a umem to write, and it goes");
	is(mlx5dv_devx_umem_dereg(c.umem), 0, "read only: deregister the one to write");
	mlx5dv_devx_free_uar(c.uar);
	is(sim_gem(c.buf).pinned, 0, "read only: no longer pinned");
	dmabuf_free(c.buf);
}

/* Each step fails once: told, and undone. */
static void test_steps(void)
{
	static const struct {
		const char *name;
		uint32_t step;
		int error;
	} steps[] = {
		{ "attach", VRAMSIM_INJECT_ATTACH, ENOMEM },
		{ "pin", VRAMSIM_INJECT_PIN, ENOMEM },
		{ "pin", VRAMSIM_INJECT_PIN, EBUSY },
		{ "map", VRAMSIM_INJECT_MAP, ENOMEM },
		{ "map", VRAMSIM_INJECT_MAP, ENOSPC },
	};
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	int fd = dmabuf_fd(buf);

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		if (sim_inject(buf, steps[i].step, 1, steps[i].error))
			bail("inject");
		is(umem_error(fd, 0, SIZE, PAGE), steps[i].error, "%s fails: %s", steps[i].name,
		   strerror(steps[i].error));
		is(sim_gem(buf).pinned, 0, "%s fails: not pinned", steps[i].name);
	}
	mlx5sim_order(MLX5_LID, CREATE_UMEM ":1:8");
	ok(umem_error(fd, 0, SIZE, PAGE) > 0, "the adapter refuses: told");
	is(sim_gem(buf).pinned, 0, "the adapter refuses: not pinned");
	is(umem_error(fd, 0, SIZE, PAGE), 0, "the next one works");
	dmabuf_free(buf);
}

/* An exporter of the old kind, which cannot move what is attached */
static void test_static(void)
{
	static const struct dmabuf_opts opts = { .flags = VRAMSIM_CREATE_STATIC };
	struct dmabuf *buf = rig_vram(SIZE, &opts);
	struct mlx5dv_devx_umem *umem = must_reg(buf, 0, SIZE);
	struct mlx5dv_devx_obj *key;
	struct mr mr;

	key = key_on(umem, SIZE, &mr);
	ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE), "static exporter: data right");
	is(mlx5dv_devx_obj_destroy(key) ?: mlx5dv_devx_umem_dereg(umem), 0,
	   "static exporter: deregister");
	dmabuf_free(buf);
}

static int write_until_killed(void *arg)
{
	struct connection c;
	const int *ready = arg;

	mlx5_rig_up(&rig);
	c = connection_new();
	if (writes_once(&c, 1000) && write(ready[1], "x", 1) != 1)
		return 1;
	for (;;)
		writes_once(&c, 100 * KIB);
	return 0;
}

static void test_kill(void)
{
	char byte;
	int ready[2];
	pid_t child;

	if (pipe(ready))
		bail("pipe: %s", strerror(errno));
	child = child_start(write_until_killed, ready);
	close(ready[1]);
	is(read(ready[0], &byte, 1), 1, "kill: the child writes with queues in VRAM");
	usleep(50000);
	kill(child, SIGKILL);
	is(child_wait(child, RC_PATIENCE_MS), CHILD_SIGNAL(SIGKILL), "kill: it ends");
	close(ready[0]);
}

int main(void)
{
	unsigned int keys;
	struct counters start;

	mlx5_rig_up(&rig);
	counters_get(&start);
	keys = mlx5sim_live_keys(MLX5_LID);
	test_key();
	test_two();
	test_queues();
	test_revoke();
	test_refused();
	test_read_only();
	test_steps();
	test_static();
	test_kill();
	ok(counters_back(&start, 10000), "all counters back to the start");
	is(mlx5sim_live_keys(MLX5_LID), keys, "as many live keys as before");
	rig_down(&rig);
	ok(mlx5_reload(), "unload the drivers and load them");
	return tap_done();
}
