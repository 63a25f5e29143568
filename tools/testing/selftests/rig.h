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
#define RIG_DEVICE	"rxe0"	/* where the environment's RIG_DEVICE does not say otherwise */
#define RIG_HOST_SIZE	(1 * MIB)

#define RIG_ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

struct rig {
	struct ibv_context *ctx;
	int driver_id;
	struct rc_pair pair;
	uint8_t *host;		/* RIG_HOST_SIZE bytes on side a, */
	struct ibv_mr *host_mr;	/* registered there */
};

/* The device that rig_up() takes. */
const char *rig_device(void);
/* Skips the whole test if the device or vramsim is missing; else works or bails out. */
void rig_up(struct rig *rig);
void rig_down(struct rig *rig);

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
