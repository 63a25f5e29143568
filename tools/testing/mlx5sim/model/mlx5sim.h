/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mlx5sim: a software model of a ConnectX (mlx5) adapter.
 *
 * This is everything a host of the model needs: a QEMU device, a unit test
 * or a fuzzer creates a device with its callbacks, hands over every access
 * to BAR 0 and calls mlx5sim_timer() when the time asked for has come.
 *
 * The model is single threaded: a host with threads calls all devices of a
 * process under one lock. A callback may call back into any device (a DMA
 * write that lands in a BAR); such work is queued and done by the timer.
 */
#ifndef MLX5SIM_H
#define MLX5SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MLX5SIM_VENDOR_ID	0x15b3
#define MLX5SIM_DEVICE_ID_PF	0x1017	/* ConnectX-5 */
#define MLX5SIM_DEVICE_ID_VF	0x1018	/* ConnectX-5 virtual function */
#define MLX5SIM_BAR_SIZE	(32u << 20)
#define MLX5SIM_NUM_VECTORS	16

/* timer_set() with this deadline: no call is wanted any more */
#define MLX5SIM_TIMER_OFF	UINT64_MAX
/* What memory() returns for a bus address that leads to no memory */
#define MLX5SIM_NOWHERE		UINT64_MAX

/* No memory answers: the driver gave an address that it must not give */
#define MLX5SIM_DMA_NONE	(-1)
/* The target exists and refuses: an error completion, but no broken rule */
#define MLX5SIM_DMA_REFUSED	1

struct mlx5sim;

/**
 * struct mlx5sim_ops - what a host does for the model
 * @dma_read: copy @len bytes at bus address @addr to @buf; 0, or
 *	MLX5SIM_DMA_NONE when no memory answers there, or MLX5SIM_DMA_REFUSED
 * @dma_write: copy @len bytes from @buf to bus address @addr; the same
 * @msix: raise MSI-X vector @vector, which is below MLX5SIM_NUM_VECTORS
 * @now_ns: time of the model in nanoseconds, never runs backwards
 * @timer_set: call mlx5sim_timer() once at or after @deadline_ns; replaces an
 *	earlier deadline; MLX5SIM_TIMER_OFF cancels; a deadline in the past
 *	means soon, but never from within this callback
 * @log: one line for a person, without a newline; may be NULL
 * @trace: one JSON object, without a newline; may be NULL: nothing is traced
 * @memory: where in the machine's memory bus address @addr leads, after an IOMMU
 *	if there is one, or MLX5SIM_NOWHERE; @len, at least 1, shrinks to the
 *	bytes that this holds for; may be NULL: bus addresses are the machine's
 * @violation: the driver broke rule @number of check.h; only called in strict
 *	mode, at most once until a reset; the host ends the run; may be NULL
 *
 * The first argument is the host pointer given to mlx5sim_new().
 */
struct mlx5sim_ops {
	int (*dma_read)(void *host, uint64_t addr, void *buf, size_t len);
	int (*dma_write)(void *host, uint64_t addr, const void *buf,
			 size_t len);
	void (*msix)(void *host, unsigned int vector);
	uint64_t (*now_ns)(void *host);
	void (*timer_set)(void *host, uint64_t deadline_ns);
	void (*log)(void *host, const char *text);
	void (*trace)(void *host, const char *json);
	uint64_t (*memory)(void *host, uint64_t addr, uint64_t *len);
	void (*violation)(void *host, unsigned int number, const char *text);
};

/**
 * struct mlx5sim_config - one device
 * @lid: its address on the fabric, 1 to 0xbfff, one device of a process each
 * @is_pf: profile of a physical function (more of the driver runs), else VF
 * @strict: stop at the first violation of the protocol by the driver
 * @faults: list of faults to inject, separated by commas, or NULL:
 *	"OP:N:STATUS" the Nth command OP fails with STATUS and is not run;
 *	"cmd-delay:OP:N:NS", "cmd-drop:OP:N" its completion is late or lost;
 *	"cqe-delay:OP:N:NS", "cqe-drop:OP:N" the same for the completion of the
 *	Nth send queue entry with opcode OP;
 *	"cqe-error:OP:N" that entry is not executed and completes in error;
 *	"resume-error:N" the Nth PAGE_FAULT_RESUME counts as one with error.
 *	Numbers in C notation; N starts at 1.
 * @caps: list "NAME=VALUE", separated by commas, or NULL: values for fields
 *	of the capabilities, by their name in mlx5_ifc.h ("pg=0,atomic=0")
 * @trace_dma: trace each DMA access, not only objects, UMR and faults
 *
 * The strings need to live only until mlx5sim_new() returns.
 */
struct mlx5sim_config {
	uint16_t lid;
	bool is_pf;
	bool strict;
	const char *faults;
	const char *caps;
	bool trace_dma;
};

/**
 * mlx5sim_new() - create a device in the state after power-on
 * @host: first argument of all callbacks
 * @ops: callbacks; must stay valid until mlx5sim_free()
 * @config: what kind of device
 *
 * Return: the device; NULL when there is no memory, the LID is taken or not
 * valid, or a string of @config is not understood (@ops->log tells which).
 */
struct mlx5sim *mlx5sim_new(void *host, const struct mlx5sim_ops *ops,
			    const struct mlx5sim_config *config);

/** mlx5sim_free() - remove a device and forget all its objects; NULL is no device */
void mlx5sim_free(struct mlx5sim *m);

/**
 * mlx5sim_reset() - back to the state after mlx5sim_new()
 *
 * Counters of injected faults start again, the violation flag is cleared.
 */
void mlx5sim_reset(struct mlx5sim *m);

/**
 * mlx5sim_bar_read() - the driver reads @size bytes (1, 2, 4 or 8) of BAR 0
 *
 * Return: the value as a big-endian device gives it: the byte at @off is the
 * most significant one.
 */
uint64_t mlx5sim_bar_read(struct mlx5sim *m, uint64_t off, unsigned int size);

/** mlx5sim_bar_write() - the driver writes; @val as in mlx5sim_bar_read() */
void mlx5sim_bar_write(struct mlx5sim *m, uint64_t off, uint64_t val,
		       unsigned int size);

/** mlx5sim_timer() - the deadline given to timer_set() has come */
void mlx5sim_timer(struct mlx5sim *m);

/** mlx5sim_violation() - number of the rule broken since reset, 0 if none */
unsigned int mlx5sim_violation(const struct mlx5sim *m);

/**
 * struct mlx5sim_stats - work done since reset
 * @commands: commands executed
 * @mkeys: CREATE_MKEY that succeeded
 * @umrs: UMR work requests executed
 * @xlt_entries: translation entries written by CREATE_MKEY and UMR
 * @wqes: send queue entries completed, in error or not
 * @cqes: completion queue entries written
 * @faults: page faults reported
 * @resumes: page faults resumed
 * @injected: faults on purpose that happened
 * @dma_read: bytes read
 * @dma_written: bytes written
 */
struct mlx5sim_stats {
	uint64_t commands;
	uint64_t mkeys;
	uint64_t umrs;
	uint64_t xlt_entries;
	uint64_t wqes;
	uint64_t cqes;
	uint64_t faults;
	uint64_t resumes;
	uint64_t injected;
	uint64_t dma_read;
	uint64_t dma_written;
};

const struct mlx5sim_stats *mlx5sim_stats(const struct mlx5sim *m);

/**
 * struct mlx5sim_xlt - one entry of the translation list of a key
 * @index: position in the list
 * @addr: bus address (MTT), or address in the space of @key (KLM, KSM)
 * @len: bytes that the entry covers
 * @key: the key it refers to, 0 for MTT
 * @readable: MTT: the entry lets the device read
 * @writable: MTT: the entry lets the device write
 */
struct mlx5sim_xlt {
	uint64_t index;
	uint64_t addr;
	uint64_t len;
	uint32_t key;
	bool readable;
	bool writable;
};

/**
 * mlx5sim_key_xlt() - the translation list of a memory key, present entries
 * @key: the full 32-bit key or, with the low byte 0, its index << 8
 * @out: receives up to @max entries
 *
 * Return: number of present entries (may exceed @max), or -1: no such key.
 */
long mlx5sim_key_xlt(const struct mlx5sim *m, uint32_t key,
		     struct mlx5sim_xlt *out, size_t max);

/**
 * mlx5sim_memory() - where a bus address leads in the machine's memory
 * @addr: the bus address
 * @len: bytes from there on, at least 1; receives how many of them are in one piece
 *
 * Return: the first one's address, or MLX5SIM_NOWHERE.
 */
uint64_t mlx5sim_memory(const struct mlx5sim *m, uint64_t addr, uint64_t *len);

/**
 * mlx5sim_maps() - does a live key lead to this memory of the machine?
 * @addr: start of the range
 * @len: its length, at least 1
 * @key: receives the first such key; may be NULL
 *
 * Only what start and length of a key let an access reach counts: a page
 * that the first or last entry covers beyond the bounds does not. Free keys
 * and the keys without translation (physical addresses) do not count either.
 */
bool mlx5sim_maps(const struct mlx5sim *m, uint64_t addr, uint64_t len,
		  uint32_t *key);

/**
 * mlx5sim_order() - order faults of a device that runs
 * @faults: a list as in struct mlx5sim_config, counted from now on; a reset
 *	forgets them
 *
 * Return: false, and nothing is ordered: not understood, or too many.
 */
bool mlx5sim_order(struct mlx5sim *m, const char *faults);

/**
 * mlx5sim_ask() - all this as text, for a monitor or a debug window
 * @question: "xlt KEY", "memory ADDR LEN", "maps ADDR LEN", "stats", "keys" or
 *	"order FAULTS"
 * @answer: receives one JSON object, cut at @size
 *
 * Of a list of pages, "xlt" has the entries that an access can reach; those that
 * follow each other in memory are one item.
 *
 * Return: length of the whole answer as snprintf() does, or -1: not a question.
 */
int mlx5sim_ask(struct mlx5sim *m, const char *question, char *answer,
		size_t size);

#endif /* MLX5SIM_H */
