/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The set-up of most tests: an RDMA device, a connected pair of queue pairs, host
 * memory on side a, and dma-buf MRs on side b, which a reaches by WRITE and READ.
 */
#ifndef SELFTESTS_RIG_H
#define SELFTESTS_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dmabuf_alloc.h"
#include "rc_pair.h"
#include "uverbs_cmd.h"

#define KIB		1024ull
#define MIB		(1024 * KIB)
#define GIB		(1024 * MIB)
#define RIG_DEVICE	"rxe0"
#define MLX5_DEVICE	"mlx5_0"
#define RIG_HOST_SIZE	(1 * MIB)

#define RIG_ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/*
 * What tests have to expect of one device and not of another: all of it is here and
 * in rig_holds().
 * @ours: dma-bufs are registered by this project's code, not by the kernel's own
 * @by_cpu: a device of software: it copies by vmap() and has no use for DMA
 * @follows: it follows a buffer that moves by page faults, and pins only a static one
 * @core_pins: the dma-buf core pins what is mapped, beside what the driver pins
 * @faults: on-demand paging
 * @advises: ibv_advise_mr() fetches the pages of a dma-buf MR
 * @reregs: it can change an MR's rights and PD
 * @name: in messages
 */
struct rig_traits {
	bool ours;
	bool by_cpu;
	bool follows;
	bool core_pins;
	bool faults;
	bool advises;
	bool reregs;
	const char *name;
};

struct rig {
	struct ibv_context *ctx;
	struct rig_traits traits;
	int driver_id;
	struct rc_pair pair;
	uint8_t *host;		/* RIG_HOST_SIZE bytes on side a, */
	struct ibv_mr *host_mr;	/* registered there */
};

/* The device that rig_up() takes: $RIG_DEVICE, or else the one that this guest has. */
const char *rig_device(void);
/* Skips the whole test if the device or vramsim is missing; else works or bails out. */
void rig_up(struct rig *rig);
void rig_down(struct rig *rig);

/* What one MR holds at the exporter, in the exporter's counts; @create: its flags */
struct rig_holds {
	uint32_t pinned;
	uint32_t mapped;
	uint32_t vmapped;	/* by all MRs of a buffer together */
};

struct rig_holds rig_holds(const struct rig *rig, uint32_t create);

/* The exporter's steps that can fail a registration */
struct rig_step {
	const char *name;
	uint32_t step;		/* VRAMSIM_INJECT_* */
	int seen;		/* errno of the registration when it gives ENOSPC */
};

#define RIG_STEPS	4
extern const struct rig_step rig_steps[RIG_STEPS];	/* attach, pin, map, vmap */
/* How often a registration takes it; of vmap, the first one of a buffer. */
uint32_t rig_takes_step(const struct rig *rig, uint32_t step, uint32_t create);

/* Registers with all access rights on side b.  0 or errno. */
int rig_reg(struct rig *rig, int fd, uint64_t offset, uint64_t length, uint64_t iova,
	    struct mr *mr);
/* A registration on side b to be varied before mr_reg(). */
struct mr_reg rig_reg_args(struct rig *rig, int fd, uint64_t offset, uint64_t length,
			   uint64_t iova, uint32_t access);

/*
 * One WRITE or READ of side a, up to RIG_HOST_SIZE bytes: the completion's
 * status, or -1 if none came.  After an error the pair is connected anew.
 */
int rig_write(struct rig *rig, const struct mr *mr, uint64_t addr, const void *from,
	      uint32_t length);
int rig_read(struct rig *rig, const struct mr *mr, uint64_t addr, void *to, uint32_t length);

/* A vramsim buffer, or bails out. */
struct dmabuf *rig_vram(uint64_t size, const struct dmabuf_opts *opts);
/* A buffer of the kernel's own vgem, or NULL if this kernel has none. */
struct dmabuf *rig_vgem(uint64_t size);

/*
 * True if @mr, whose iova is that of @offset in @buf, carries data both ways:
 * a fresh pattern is written over RDMA, looked at by the exporter, read back.
 */
bool rig_works(struct rig *rig, const struct mr *mr, uint64_t iova, struct dmabuf *buf,
	       uint64_t offset, uint32_t length);

/* True if one host MR after the other, @count of them, registers, works and goes. */
bool rig_host_mrs_work(struct rig *rig, int count);

uint64_t now_ns(void);
/* @size bytes of fresh memory in pages of their own, for munmap(); or bails out. */
uint8_t *rig_pages(size_t size);

uint64_t now_ms(void);
/* Whether now_ns() counts the guest's instructions: QEMU's --icount 0 */
bool clock_counts_instructions(void);

/* The random numbers of a test: same seed, same numbers. */
uint64_t random_next(uint64_t *state);
/* --seed N, or one from the clock; printed. */
uint64_t random_seed(int argc, char **argv);
/* The number behind --NAME, or @otherwise. */
uint64_t option_number(int argc, char **argv, const char *name, uint64_t otherwise);

#endif /* SELFTESTS_RIG_H */
