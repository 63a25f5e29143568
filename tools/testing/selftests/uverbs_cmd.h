/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The uverbs commands as the kernel sees them, without libibverbs' opinion:
 * any attribute can be left out, wrong or point nowhere.
 *
 * Functions return 0 or a positive errno, so that a test can say
 * is(mr_reg(...), EINVAL, ...).
 */
#ifndef SELFTESTS_UVERBS_CMD_H
#define SELFTESTS_UVERBS_CMD_H

#include <stdint.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

struct uverbs_cmd {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attr[12];
};

/* The driver's number, which the header of each ioctl names; -1 if unknown. */
int uverbs_driver_id(struct ibv_context *ctx);

void uverbs_cmd_init(struct uverbs_cmd *cmd, int driver_id, uint16_t object, uint16_t method);
/* Adders; the attribute's place in the command is returned. */
struct ib_uverbs_attr *uverbs_cmd_idr(struct uverbs_cmd *cmd, uint16_t id, uint32_t handle);
struct ib_uverbs_attr *uverbs_cmd_in(struct uverbs_cmd *cmd, uint16_t id, uint64_t value,
				     uint16_t size);
struct ib_uverbs_attr *uverbs_cmd_ptr(struct uverbs_cmd *cmd, uint16_t id, const void *ptr,
				      uint16_t size);
int uverbs_cmd_run(struct ibv_context *ctx, struct uverbs_cmd *cmd);

/* A memory region known by its kernel handle only. */
struct mr {
	struct ibv_context *ctx;
	int driver_id;
	uint32_t handle;
	uint32_t lkey;
	uint32_t rkey;
};

/* What goes into REG_DMABUF_MR. */
struct mr_reg {
	struct ibv_pd *pd;
	int driver_id;
	uint64_t offset;
	uint64_t length;
	uint64_t iova;
	int fd;
	uint32_t access;
	uint32_t omit;		/* bit N: leave attribute N out */
	uint32_t *lkey_at;	/* response pointers, NULL: good ones */
	uint32_t *rkey_at;
};

int mr_reg(const struct mr_reg *reg, struct mr *mr);
int mr_dereg(struct mr *mr);
/*
 * @flags: IBV_REREG_MR_*; the write() command, as libibverbs sends it for host MRs.
 * The keys may be new ones then.
 */
int mr_rereg(struct mr *mr, uint32_t flags, struct ibv_pd *pd, uint64_t start, uint64_t length,
	     uint64_t iova, uint32_t access);

/* What goes into ADVISE_MR beside the list of ranges. */
struct mr_advice {
	struct ibv_pd *pd;
	int driver_id;
	uint64_t advice;	/* IBV_ADVISE_MR_ADVICE_* */
	uint32_t flags;		/* IBV_ADVISE_MR_FLAG_FLUSH: the call waits until it is done */
};

int mr_advise_as(const struct mr_advice *advice, const struct ibv_sge *list, uint32_t count);
/* One range for writing, and waits. */
int mr_advise(struct mr *mr, struct ibv_pd *pd, uint64_t addr, uint32_t length);

#endif /* SELFTESTS_UVERBS_CMD_H */
