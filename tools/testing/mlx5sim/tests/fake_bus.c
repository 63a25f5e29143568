// SPDX-License-Identifier: GPL-2.0
/* The machine: memory, clock, interrupts, and the callbacks of the model. */
#include <stdio.h>
#include <stdlib.h>

#include "fake.h"

static u8 memory[MEM_SIZE];
static size_t used;
static u64 clock_ns = 1000;
static u64 hole;
static int hole_answer;
static bool swapped;
static struct dev *devs;

u32 machine_dma_reads, machine_dma_writes;

/**
 * struct kept - memory of the driver that lives until machine_reset()
 */
struct kept {
	struct kept *next;
	_Alignas(16) u8 bytes[];
};

static struct kept *kept;

void *keep(size_t bytes)
{
	struct kept *k = calloc(1, sizeof(*k) + bytes);

	if (!k)
		abort();
	k->next = kept;
	kept = k;
	return k->bytes;
}

u64 mem_alloc(size_t bytes)
{
	u64 addr = MEM_BASE + PAGE + used;

	bytes = round_up_to(bytes, PAGE);
	if (used + bytes + PAGE > MEM_SIZE) {
		fprintf(stderr, "fake: out of memory\n");
		exit(1);
	}
	memset(memory + PAGE + used, 0, bytes);
	used += bytes;
	return addr;
}

void *mem(u64 addr)
{
	return memory + (addr - MEM_BASE);
}

void machine_reset(void)
{
	struct kept *next;

	for (; kept; kept = next) {
		next = kept->next;
		free(kept);
	}
	used = 0;
	hole = 0;
	swapped = false;
}

void machine_hole(u64 addr, int answer)
{
	hole = addr;
	hole_answer = answer;
}

void machine_swap_pages(void)
{
	swapped = true;
}

u64 machine_now(void)
{
	return clock_ns;
}

static int reach(u64 addr, size_t len)
{
	if (hole && addr < hole + PAGE && addr + len > hole)
		return hole_answer;
	if (addr < MEM_BASE || len > MEM_SIZE ||
	    addr - MEM_BASE > MEM_SIZE - len)
		return MLX5SIM_DMA_NONE;
	return 0;
}

static int dma_read(void *host, u64 addr, void *buf, size_t len)
{
	int answer = reach(addr, len);

	(void)host;
	machine_dma_reads++;
	if (!answer)
		memcpy(buf, mem(addr), len);
	return answer;
}

static int dma_write(void *host, u64 addr, const void *buf, size_t len)
{
	int answer = reach(addr, len);

	(void)host;
	machine_dma_writes++;
	if (!answer)
		memcpy(mem(addr), buf, len);
	return answer;
}

/* Page by page, as of an IOMMU that knows no larger ones */
static u64 memory_behind(void *host, u64 addr, u64 *len)
{
	(void)host;
	if (!swapped)
		return addr;
	*len = *len < PAGE - addr % PAGE ? *len : PAGE - addr % PAGE;
	return reach(addr, 1) ? MLX5SIM_NOWHERE : addr ^ PAGE;
}

static void msix(void *host, unsigned int vector)
{
	struct dev *d = host;

	d->msix[vector]++;
}

static u64 now_ns(void *host)
{
	(void)host;
	return clock_ns;
}

static void timer_set(void *host, u64 deadline_ns)
{
	struct dev *d = host;

	d->deadline = deadline_ns;
}

static void log_line(void *host, const char *text)
{
	(void)host;
	if (getenv("FAKE_LOG"))
		fprintf(stderr, "# %s\n", text);
}

static void trace_line(void *host, const char *json)
{
	struct dev *d = host;
	size_t old = d->traces ? strlen(d->traces) : 0;

	if (!d->keep_traces)
		return;
	d->traces = realloc(d->traces, old + strlen(json) + 2);
	sprintf(d->traces + old, "%s\n", json);
}

static void violation(void *host, unsigned int number, const char *text)
{
	struct dev *d = host;

	d->violation = number;
	snprintf(d->text, sizeof(d->text), "%s", text);
}

static const struct mlx5sim_ops ops = {
	.dma_read = dma_read,
	.dma_write = dma_write,
	.msix = msix,
	.now_ns = now_ns,
	.timer_set = timer_set,
	.log = log_line,
	.memory = memory_behind,
	.trace = trace_line,
	.violation = violation,
};

struct dev *dev_new(const struct mlx5sim_config *config)
{
	struct dev *d = calloc(1, sizeof(*d));

	d->deadline = UINT64_MAX;
	d->sim = mlx5sim_new(d, &ops, config);
	if (!d->sim) {
		free(d);
		return NULL;
	}
	d->next = devs;
	devs = d;
	return d;
}

void dev_free(struct dev *d)
{
	struct dev **at = &devs;

	while (*at != d)
		at = &(*at)->next;
	*at = d->next;
	mlx5sim_free(d->sim);
	free(d->traces);
	free(d);
}

u32 dev_traced(const struct dev *d, const char *text)
{
	const char *at = d->traces;
	u32 count = 0;

	while (at && (at = strstr(at, text))) {
		at += strlen(text);
		count++;
	}
	return count;
}

void machine_run(u64 ns)
{
	u64 end = clock_ns + ns;

	for (u32 step = 0; step < RUN_STEPS; step++) {
		struct dev *first = NULL;

		for (struct dev *d = devs; d; d = d->next)
			if (d->deadline <= end &&
			    (!first || d->deadline < first->deadline))
				first = d;
		if (!first)
			break;
		if (first->deadline > clock_ns)
			clock_ns = first->deadline;
		first->deadline = UINT64_MAX;
		mlx5sim_timer(first->sim);
	}
	if (end > clock_ns)
		clock_ns = end;
}
