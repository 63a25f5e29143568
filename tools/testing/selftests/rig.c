// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "mlx5_rig.h"
#include "netdev.h"
#include "rig.h"
#include "sim.h"
#include "tap.h"

const char *rig_device(void)
{
	const char *device = getenv("RIG_DEVICE");

	if (device && *device)
		return device;
	return access("/sys/class/infiniband/" MLX5_DEVICE, F_OK) ? RIG_DEVICE : MLX5_DEVICE;
}

static struct rig_traits traits_of(struct ibv_context *ctx)
{
	struct ibv_device_attr_ex attr = { 0 };
	struct rig_traits traits = { .name = ibv_get_device_name(ctx->device) };

	traits.by_cpu = strncmp(traits.name, "mlx5", 4);
	traits.ours = traits.by_cpu || mlx5_is_ours();
	traits.reregs = !traits.by_cpu;
	if (traits.by_cpu)
		return traits;
	if (ibv_query_device_ex(ctx, NULL, &attr))
		bail("ibv_query_device_ex: %s", strerror(errno));
	traits.core_pins = !mlx5_follows_moves();
	traits.faults = attr.odp_caps.general_caps & IBV_ODP_SUPPORT;
	traits.follows = traits.faults && !traits.core_pins;
	/* To the kernel's own code, an MR follows moves even where there are none. */
	traits.advises = traits.faults && (traits.follows || !traits.ours);
	return traits;
}

/*
 * The dma-buf core pins what is mapped, for want of CONFIG_DMABUF_MOVE_NOTIFY; our
 * driver has pinned it by then.
 */
struct rig_holds rig_holds(const struct rig *rig, uint32_t create)
{
	const struct rig_traits *t = &rig->traits;
	bool is_static = create & VRAMSIM_CREATE_STATIC;

	if (t->by_cpu)
		return (struct rig_holds){ .pinned = 1, .vmapped = 1 };
	if (is_static)
		return (struct rig_holds){ .pinned = 1, .mapped = 1 };
	return (struct rig_holds){
		.pinned = t->follows ? 0 : t->ours + t->core_pins,
		.mapped = 1,
	};
}

/* A kernel mapping that fails is NULL: its cause is lost. */
const struct rig_step rig_steps[RIG_STEPS] = {
	{ "attach", VRAMSIM_INJECT_ATTACH, ENOSPC },
	{ "pin", VRAMSIM_INJECT_PIN, ENOSPC },
	{ "map", VRAMSIM_INJECT_MAP, ENOSPC },
	{ "vmap", VRAMSIM_INJECT_VMAP, ENOMEM },
};

uint32_t rig_takes_step(const struct rig *rig, uint32_t step, uint32_t create)
{
	struct rig_holds holds = rig_holds(rig, create);

	switch (step) {
	case VRAMSIM_INJECT_ATTACH:
		return 1;
	case VRAMSIM_INJECT_PIN:
		return holds.pinned;
	case VRAMSIM_INJECT_MAP:
		return holds.mapped;
	case VRAMSIM_INJECT_VMAP:
		return holds.vmapped;
	default:
		bail("a registration has no step %u", step);
	}
}

void rig_up(struct rig *rig)
{
	const char *device = rig_device();
	int sim = sim_open();

	if (sim < 0)
		tap_skip_all("no vramsim");
	close(sim);
	*rig = (struct rig){ .ctx = rc_open(device) };
	if (!rig->ctx)
		tap_skip_all("no %s: %s", device, strerror(errno));
	rig->traits = traits_of(rig->ctx);
	rig->driver_id = uverbs_driver_id(rig->ctx);
	if (rig->driver_id < 0)
		bail("%s answers to no driver id", device);
	if (rc_pair_init(&rig->pair, rig->ctx))
		bail("%s: %s", rc_failed_call(), strerror(errno));
	rig->host = aligned_alloc(4096, RIG_HOST_SIZE);
	if (!rig->host)
		bail("no memory");
	/* A simulated adapter may have been told to fail a few times. */
	for (int tries = 0; tries < 10 && !rig->host_mr; tries++)
		rig->host_mr = ibv_reg_mr(rig->pair.a.pd, rig->host, RIG_HOST_SIZE, RIG_ACCESS);
	if (!rig->host_mr)
		bail("ibv_reg_mr: %s", strerror(errno));
}

void rig_down(struct rig *rig)
{
	ibv_dereg_mr(rig->host_mr);
	free(rig->host);
	rc_pair_destroy(&rig->pair);
	ibv_close_device(rig->ctx);
}

struct mr_reg rig_reg_args(struct rig *rig, int fd, uint64_t offset, uint64_t length,
			   uint64_t iova, uint32_t access)
{
	return (struct mr_reg){
		.pd = rig->pair.b.pd,
		.driver_id = rig->driver_id,
		.offset = offset,
		.length = length,
		.iova = iova,
		.fd = fd,
		.access = access,
	};
}

int rig_reg(struct rig *rig, int fd, uint64_t offset, uint64_t length, uint64_t iova,
	    struct mr *mr)
{
	struct mr_reg reg = rig_reg_args(rig, fd, offset, length, iova, RIG_ACCESS);

	return mr_reg(&reg, mr);
}

static int transfer(struct rig *rig, enum ibv_wr_opcode opcode, const struct mr *mr,
		    uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)rig->host,
		.length = length,
		.lkey = rig->host_mr->lkey,
	};
	int status = rc_do(&rig->pair.a, opcode, &sge, addr, mr->rkey);

	if (status && rc_pair_reconnect(&rig->pair))
		bail("%s: %s", rc_failed_call(), strerror(errno));
	return status;
}

int rig_write(struct rig *rig, const struct mr *mr, uint64_t addr, const void *from,
	      uint32_t length)
{
	memcpy(rig->host, from, length);
	return transfer(rig, IBV_WR_RDMA_WRITE, mr, addr, length);
}

int rig_read(struct rig *rig, const struct mr *mr, uint64_t addr, void *to, uint32_t length)
{
	int status = transfer(rig, IBV_WR_RDMA_READ, mr, addr, length);

	memcpy(to, rig->host, length);
	return status;
}

struct dmabuf *rig_vram(uint64_t size, const struct dmabuf_opts *opts)
{
	struct dmabuf *buf = dmabuf_alloc("vramsim", size, opts);

	if (!buf)
		bail("%" PRIu64 " bytes of vramsim: %s", size, strerror(errno));
	return buf;
}

struct dmabuf *rig_vgem(uint64_t size)
{
	struct dmabuf *buf;

	if (!run("modprobe -q vgem"))
		return NULL;
	buf = dmabuf_alloc("vgem", size, NULL);
	if (!buf)
		bail("%" PRIu64 " bytes of vgem: %s", size, strerror(errno));
	return buf;
}

bool rig_works(struct rig *rig, const struct mr *mr, uint64_t iova, struct dmabuf *buf,
	       uint64_t offset, uint32_t length)
{
	static uint64_t state = 1;
	uint8_t *sent = malloc(length), *seen = calloc(1, length);
	bool good = false;
	int status;

	if (!sent || !seen)
		bail("no memory");
	for (uint32_t i = 0; i < length; i++)
		sent[i] = random_next(&state);

	status = rig_write(rig, mr, iova, sent, length);
	if (status) {
		diag("  WRITE: status %d (%s)", status, ibv_wc_status_str(status));
		goto out;
	}
	if (dmabuf_read(buf, offset, seen, length)) {
		diag("  exporter's view: %s", strerror(errno));
		goto out;
	}
	if (memcmp(sent, seen, length)) {
		diag("  the exporter does not see what was written");
		goto out;
	}
	memset(seen, 0, length);
	status = rig_read(rig, mr, iova, seen, length);
	if (status)
		diag("  READ: status %d (%s)", status, ibv_wc_status_str(status));
	else if (memcmp(sent, seen, length))
		diag("  READ brings other bytes than were written");
	else
		good = true;
out:
	free(sent);
	free(seen);
	return good;
}

bool rig_host_mrs_work(struct rig *rig, int count)
{
	enum { SIZE = 8192 };
	uint8_t *memory = rig_pages(SIZE), sent[64];
	int good;

	for (good = 0; good < count; good++) {
		struct ibv_mr *mr = ibv_reg_mr(rig->pair.b.pd, memory, SIZE, RIG_ACCESS);
		struct mr view = { .rkey = mr ? mr->rkey : 0 };
		uint8_t *at = memory + SIZE / 2 - sizeof(sent) / 2;

		if (!mr)
			break;
		memset(sent, good + 1, sizeof(sent));
		if (rig_write(rig, &view, (uintptr_t)at, sent, sizeof(sent)) ||
		    memcmp(at, sent, sizeof(sent)) || ibv_dereg_mr(mr))
			break;
	}
	munmap(memory, SIZE);
	if (good < count)
		diag("  host MR %d does not work: %s", good, strerror(errno));
	return good == count;
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

uint8_t *rig_pages(size_t size)
{
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED)
		bail("%zu bytes: %s", size, strerror(errno));
	return mem;
}

bool clock_counts_instructions(void)
{
	unsigned long loops = 1000000;
	uint64_t start = now_ns(), took;

	/* Two instructions a loop, and what interrupts take */
	asm volatile("1: dec %0\n\tjnz 1b" : "+r"(loops));
	took = now_ns() - start;
	return took >= 2000000 && took < 2200000;
}

uint64_t now_ms(void)
{
	return now_ns() / 1000000;
}

/* Marsaglia's xorshift64*; zero would stay zero. */
uint64_t random_next(uint64_t *state)
{
	uint64_t x = *state ? *state : 1;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * 0x2545f4914f6cdd1dull >> 16;
}

uint64_t option_number(int argc, char **argv, const char *name, uint64_t otherwise)
{
	for (int i = 1; i < argc; i++) {
		char *end;
		uint64_t number;

		if (strncmp(argv[i], "--", 2) || strcmp(argv[i] + 2, name))
			continue;
		if (i + 1 == argc)
			bail("%s needs a number", argv[i]);
		number = strtoull(argv[i + 1], &end, 0);
		if (!*argv[i + 1] || *end)
			bail("%s %s: not a number", argv[i], argv[i + 1]);
		return number;
	}
	return otherwise;
}

uint64_t random_seed(int argc, char **argv)
{
	uint64_t seed = option_number(argc, argv, "seed", time(NULL) ^ (uint64_t)getpid() << 32);

	diag("seed %" PRIu64 " (--seed %" PRIu64 " repeats it)", seed, seed);
	return seed;
}
