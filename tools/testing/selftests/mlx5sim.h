/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a test asks of the simulated ConnectX (tools/testing/mlx5sim) behind the
 * back of its driver, through QEMU's device mlx5sim-window.
 *
 * @lid names the adapter: 1 is the first one, mlx5_0.  All but the first function
 * bail out if there is no answer.  One thread at a time.
 */
#ifndef SELFTESTS_MLX5SIM_H
#define SELFTESTS_MLX5SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether there is a window to ask through. */
bool mlx5sim_there(void);

/* One of the adapter's counters since its reset: */
uint64_t mlx5sim_stat(uint16_t lid, const char *name);
#define MLX5SIM_COMMANDS	"commands"	/* executed */
#define MLX5SIM_MKEYS		"mkeys"		/* CREATE_MKEY that succeeded */
#define MLX5SIM_UMRS		"umrs"		/* UMR work requests executed */
#define MLX5SIM_XLT_ENTRIES	"xlt_entries"	/* written by CREATE_MKEY and UMR */
#define MLX5SIM_WQES		"wqes"		/* send queue entries completed */
#define MLX5SIM_CQES		"cqes"		/* completion queue entries written */
#define MLX5SIM_FAULTS		"faults"	/* page faults reported */
#define MLX5SIM_RESUMES		"resumes"	/* page faults resumed */
#define MLX5SIM_INJECTED	"injected"	/* faults on purpose that happened */
#define MLX5SIM_DMA_READ	"dma_read"	/* bytes */
#define MLX5SIM_DMA_WRITTEN	"dma_written"	/* bytes */

/*
 * Orders faults on purpose, a list as Documentation/mlx5sim.rst has it, which count
 * from now on: "cqe-error:0x25:1" is the next UMR.  Bails out if it is not understood.
 */
void mlx5sim_order(uint16_t lid, const char *faults);

/*
 * Where the bus address @addr leads in the machine's memory, after an IOMMU if there is
 * one: the address, and in @len how many of so many bytes follow it there; MLX5SIM_NOWHERE
 * if it leads nowhere.
 */
uint64_t mlx5sim_memory(uint16_t lid, uint64_t addr, uint64_t *len);
#define MLX5SIM_NOWHERE		UINT64_MAX

/*
 * The key that lets an access reach some of the machine's memory [addr, addr + len),
 * the first one if there are several, or 0.  Free keys do not count.
 */
uint32_t mlx5sim_key_that_maps(uint16_t lid, uint64_t addr, uint64_t len);

/* Whether the adapter has that key, free or not: its index is not for another one. */
bool mlx5sim_has_key(uint16_t lid, uint32_t key);

/* Memory keys, those of the driver itself included: all, and those that are not free. */
unsigned int mlx5sim_keys(uint16_t lid);
unsigned int mlx5sim_live_keys(uint16_t lid);
/* The same when they have become @want, or have not for RC_PATIENCE_MS */
unsigned int mlx5sim_live_keys_soon(uint16_t lid, unsigned int want);

/* The translation of a memory key: present entries that an access can reach. */
struct mlx5sim_entry {
	uint64_t index;		/* position in the key's list */
	uint64_t addr;		/* bus address or, if @key, address in that key's space */
	uint64_t len;		/* bytes that the entry covers */
	uint32_t key;		/* the key that it leads to: KLM and KSM lists */
	bool readable, writable;
};

struct mlx5sim_key {
	uint32_t key;
	bool free;		/* no access is possible */
	uint64_t start;
	uint64_t len;
	unsigned int log_page_size;
	bool relaxed_write;	/* writes may pass each other */
	bool relaxed_read;
	uint64_t capacity;	/* entries that the list has room for */
	size_t count;
	struct mlx5sim_entry *entries;	/* @count of them, for free() */
};

struct mlx5sim_key mlx5sim_key(uint16_t lid, uint32_t key);

#endif /* SELFTESTS_MLX5SIM_H */
