/* SPDX-License-Identifier: GPL-2.0 */
/* The device: all that its parts share. */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "mlx5sim.h"

#include "cmd.h"
#include "inject.h"
#include "mkey.h"
#include "object.h"
#include "qp.h"
#include "queue.h"

#define UAR_PAGE		4096u
#define UAR_FIRST		16u

/* Work of one call from the host; what is left over is done by the timer */
#define BUDGET_BYTES		(32u << 20)
#define BUDGET_STEPS		BIT(20)
#define BUDGET_WQES		2048u

/* Faults of QPs that are gone, which may still be resumed */
#define ORPHANS			1024

/* Translation tables of all keys together */
#define XLT_BYTES_MAX		(256ull << 20)

enum hca_state {
	HCA_OFF,
	HCA_ENABLED,
	HCA_RUNNING,
};

/* The types of capabilities that the device has, as QUERY_HCA_CAP counts */
enum cap_type {
	CAP_GENERAL		= 0,
	CAP_ODP			= 2,
	CAP_ATOMIC		= 3,
	CAP_TYPES,
};

/* The highest number that a type has in mlx5_ifc.h's generation, room included */
#define CAP_TYPE_LAST		0x3fu
#define CAP_BYTES		256u

/**
 * struct budget - what the current call from a host may still do, all devices
 * @bytes: of user data to move
 * @steps: of translation tables to walk
 * @wqes: send requests to execute
 */
struct budget {
	int64_t bytes;
	int64_t steps;
	int64_t wqes;
};

struct mlx5sim {
	void *host;
	const struct mlx5sim_ops *ops;
	struct mlx5sim *next;
	u16 lid;
	bool is_pf;
	bool strict;
	bool trace_dma;

	bool stopped;
	bool fatal;		/* it has given up, and knows nothing any more */
	enum check violation;
	enum check last_broken;
	bool leak_injected;	/* the driver could not destroy something */
	bool of_user;	/* what is executed was composed by a user of verbs */
	struct mlx5sim_stats stats;
	struct injections inject;

	/* registers */
	u32 cmdq_addr_h;
	u32 cmdq_addr_l;
	u32 health_counter;

	/* work that is not done at once */
	u32 cmd_waiting;
	struct cmd_slot cmd_slot[CMD_SLOTS];
	struct qp *work;
	u64 timer_ns;

	enum hca_state state;
	u16 issi;
	u32 port_caps;
	u8 cap_max[CAP_TYPES][CAP_BYTES];
	u8 cap_cur[CAP_TYPES][CAP_BYTES];
	u64 *page;
	u32 pages;
	u64 xlt_bytes;
	u32 fault_token;
	struct fault orphan[ORPHANS];
	u32 next_orphan;

	struct table uars;
	struct table pds;
	struct table xrcds;
	struct table tds;
	struct table uctxs;
	struct table umems;
	struct table eqs;
	struct table cqs;
	struct table srqs;
	struct table mkeys;
	struct table qps;
};

/* device.c */
extern struct budget budget;
struct mlx5sim *device_by_lid(u16 lid);
u64 now(struct mlx5sim *m);
/* Forget all objects, the pages and the state */
void device_forget(struct mlx5sim *m);
/* As after a fatal error: nothing is known and nothing heard until it is started anew */
void device_fail(struct mlx5sim *m);
/* Whether a host's call is being worked on, further up in the call chain */
bool device_nested(void);
/* Number of objects that TEARDOWN_HCA should not find; *@kind names one */
u32 device_leaks(const struct mlx5sim *m, const char **kind);

/* dma.c: false, and a broken rule, if no memory answers */
bool dma_read(struct mlx5sim *m, u64 addr, void *buf, u32 len);
bool dma_write(struct mlx5sim *m, u64 addr, const void *buf, u32 len);

/* bar.c */
void bar_write(struct mlx5sim *m, u64 off, u64 val, unsigned int size);
u64 bar_read(struct mlx5sim *m, u64 off, unsigned int size);

/* port.c */
u16 port_pkey(u32 index);
void port_gid(const struct mlx5sim *m, u8 *gid);

/* caps.c */
bool caps_init(struct mlx5sim *m, const char *overrides);
void caps_reset(struct mlx5sim *m);
#define cap(m, field) \
	ifc_get(cmd_hca_cap, (m)->cap_cur[CAP_GENERAL], field)

/* trace.c: one JSON object; @fmt gives its members behind time and device */
__attribute__((format(printf, 2, 3)))
void trace(struct mlx5sim *m, const char *fmt, ...);

#endif /* MODEL_MODEL_H */
