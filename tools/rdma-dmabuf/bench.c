// SPDX-License-Identifier: GPL-2.0
/*
 * rdma-dmabuf bench: what an MR on a dma-buf costs.
 *
 * The same transfers go to host memory, to the exporter's memory through a
 * dma-buf MR, and to the exporter's memory by way of a host buffer that the CPU
 * copies.  Rounds of the three take turns, so that what disturbs the machine
 * disturbs all of them, and ratios are formed within a round.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "bench.h"
#include "cmd.h"
#include "copies.h"
#include "dmabuf_alloc.h"
#include "rc_pair.h"

#define MIN_SIZE	4096
#define MAX_SIZE	(4ULL << 20)
#define ROUND_BYTES	(256 << 10)	/* a round repeats small transfers up to this */
#define COPIES_SIZE	(64 << 10)

struct bench {
	struct ibv_context *ctx;
	struct rc_pair pair;
	bool paired;
	size_t size;			/* of each of the buffers below */
	uint8_t *local;			/* of end A, which asks for the transfers */
	struct ibv_mr *local_mr;
	uint8_t *host;			/* of end B */
	struct ibv_mr *host_mr;
	struct dmabuf *buf;
	uint8_t *mapped;		/* the CPU's mapping of it */
	struct ibv_mr *buf_mr;
	uint8_t *seen;
	uint64_t staged_bytes;		/* copied by us so far */
};

struct options {
	const char *device;
	int gid_index;
	const char *exporter;
	uint64_t size;			/* 0: several */
	bool all;			/* every power of two */
	int iterations;			/* 0: by size */
	int rounds;
	uint64_t max_reg;		/* 0: no registration is measured */
	const char *json;
	bool instructions;
	bool check;
};

static const int mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			     IBV_ACCESS_REMOTE_READ;

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static int bench_init(struct bench *b, const struct options *o, size_t size)
{
	b->size = size;
	b->ctx = rc_open(o->device);
	if (!b->ctx)
		return call_failed(o->device ? o->device : "an RDMA device", rc_failed_call());
	if (rc_pair_init_gid(&b->pair, b->ctx, o->gid_index))
		return call_failed("RC pair", rc_failed_call());
	b->paired = true;
	b->local = calloc(1, size);
	b->host = calloc(1, size);
	b->seen = calloc(1, size);
	if (!b->local || !b->host || !b->seen)
		return call_failed("memory", "calloc");
	b->buf = dmabuf_alloc(o->exporter, size, NULL);
	if (!b->buf)
		return call_failed(o->exporter, dmabuf_failed_call());
	b->mapped = dmabuf_map_cpu(b->buf);
	if (!b->mapped)
		return call_failed(o->exporter, dmabuf_failed_call());
	b->local_mr = ibv_reg_mr(b->pair.a.pd, b->local, size, mr_access);
	if (!b->local_mr)
		return call_failed("host memory", "ibv_reg_mr");
	b->host_mr = ibv_reg_mr(b->pair.b.pd, b->host, size, mr_access);
	if (!b->host_mr)
		return call_failed("host memory", "ibv_reg_mr");
	b->buf_mr = ibv_reg_dmabuf_mr(b->pair.b.pd, 0, size, 0, dmabuf_fd(b->buf), mr_access);
	if (!b->buf_mr)
		return call_failed(o->exporter, "ibv_reg_dmabuf_mr");
	return RESULT_PASS;
}

static void bench_destroy(struct bench *b)
{
	if (b->buf_mr)
		ibv_dereg_mr(b->buf_mr);
	if (b->host_mr)
		ibv_dereg_mr(b->host_mr);
	if (b->local_mr)
		ibv_dereg_mr(b->local_mr);
	dmabuf_free(b->buf);
	free(b->seen);
	free(b->host);
	free(b->local);
	if (b->paired)
		rc_pair_destroy(&b->pair);
	if (b->ctx)
		ibv_close_device(b->ctx);
}

static int transfer(struct bench *b, enum bench_op op, enum bench_path path, size_t size)
{
	enum ibv_wr_opcode opcode = op == OP_WRITE ?
				    IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
	struct ibv_sge sge = { (uintptr_t)b->local, size, b->local_mr->lkey };
	struct ibv_mr *mr = path == PATH_DMABUF ? b->buf_mr : b->host_mr;
	uint64_t remote = path == PATH_DMABUF ? 0 : (uintptr_t)b->host;
	int status;

	if (path == PATH_STAGED && op == OP_READ) {
		memcpy(b->host, b->mapped, size);
		b->staged_bytes += size;
	}
	status = rc_do(&b->pair.a, opcode, &sge, remote, mr->rkey);
	if (status < 0)
		return call_failed("transfer", rc_failed_call());
	if (status != IBV_WC_SUCCESS) {
		fprintf(stderr, "rdma-dmabuf: RDMA ended with '%s'\n",
			ibv_wc_status_str(status));
		return RESULT_FAIL;
	}
	if (path == PATH_STAGED && op == OP_WRITE) {
		memcpy(b->mapped, b->host, size);
		b->staged_bytes += size;
	}
	return RESULT_PASS;
}

/* One transfer of known bytes, which have to arrive where the path leads */
static int verify(struct bench *b, enum bench_op op, enum bench_path path, size_t size)
{
	bool write = op == OP_WRITE;
	const uint8_t *from, *to;
	int ret;

	memset(b->local, 0, size);
	memset(b->host, 0, size);
	if (dmabuf_fill(b->buf, 0, 0, size))
		return call_failed("exporter", dmabuf_failed_call());
	fill_pattern(b->seen, size, size + path);
	if (write)
		memcpy(b->local, b->seen, size);
	else if (path == PATH_HOST)
		memcpy(b->host, b->seen, size);
	else if (dmabuf_write(b->buf, 0, b->seen, size))
		return call_failed("exporter", dmabuf_failed_call());

	ret = transfer(b, op, path, size);
	if (ret)
		return ret;

	from = b->seen;
	to = b->local;
	if (write) {
		from = b->local;
		to = path == PATH_HOST ? b->host : b->seen;
		if (path != PATH_HOST && dmabuf_read(b->buf, 0, b->seen, size))
			return call_failed("exporter", dmabuf_failed_call());
	}
	if (memcmp(from, to, size)) {
		fprintf(stderr, "rdma-dmabuf: %s of %zu bytes: what arrived is not what was sent\n",
			write ? "WRITE" : "READ", size);
		return RESULT_FAIL;
	}
	return RESULT_PASS;
}

static int measure_traffic(struct bench *b, const struct options *o, struct traffic *t)
{
	int round, i, n, ret;

	t->rounds = o->rounds;
	t->iterations = o->iterations;
	if (!t->iterations)
		t->iterations = t->bytes < ROUND_BYTES ? ROUND_BYTES / t->bytes : 1;
	for (i = 0; i < PATHS; i++) {
		ret = verify(b, t->op, i, t->bytes);
		if (ret)
			return ret;
	}
	for (round = 0; round < t->rounds; round++) {
		for (i = 0; i < PATHS; i++) {
			/* Each path is the first one in every third round. */
			enum bench_path path = (round + i) % PATHS;
			double start = now_ns();

			for (n = 0; n < t->iterations; n++) {
				ret = transfer(b, t->op, path, t->bytes);
				if (ret)
					return ret;
			}
			t->cost[path][round] = (now_ns() - start) / t->iterations;
		}
	}
	return RESULT_PASS;
}

static int measure_registration(struct bench *b, struct registration *r, void *host,
				struct dmabuf *buf)
{
	struct ibv_pd *pd = b->pair.b.pd;
	int round, i;

	for (round = 0; round < r->rounds; round++) {
		for (i = 0; i < PATH_STAGED; i++) {
			enum bench_path path = (round + i) % PATH_STAGED;
			const char *call;
			double start, registered;
			struct ibv_mr *mr;

			start = now_ns();
			if (path == PATH_HOST) {
				call = "ibv_reg_mr";
				mr = ibv_reg_mr(pd, host, r->bytes, mr_access);
			} else {
				call = "ibv_reg_dmabuf_mr";
				mr = ibv_reg_dmabuf_mr(pd, 0, r->bytes, 0, dmabuf_fd(buf),
						       mr_access);
			}
			registered = now_ns();
			if (!mr)
				return call_failed(print_size(r->bytes), call);
			if (ibv_dereg_mr(mr))
				return call_failed(print_size(r->bytes), "ibv_dereg_mr");
			r->dereg[path][round] = now_ns() - registered;
			r->reg[path][round] = registered - start;
		}
	}
	return RESULT_PASS;
}

static int all_registrations(struct bench *b, const struct options *o, struct results *results)
{
	struct dmabuf *buf;
	int ret = RESULT_PASS;
	uint64_t bytes;
	void *host;

	/* Present beforehand: what is measured is not the page faults. */
	host = mmap(NULL, o->max_reg, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (host == MAP_FAILED)
		return call_failed("host memory", "mmap");
	buf = dmabuf_alloc(o->exporter, o->max_reg, NULL);
	if (!buf)
		ret = call_failed(o->exporter, dmabuf_failed_call());
	for (bytes = MIN_SIZE; !ret; bytes *= 16) {
		struct registration *r = &results->registration[results->num_registration];

		r->bytes = bytes < o->max_reg ? bytes : o->max_reg;
		r->rounds = r->bytes > (64 << 20) && o->rounds > 5 ? 5 : o->rounds;
		ret = measure_registration(b, r, host, buf);
		results->num_registration += !ret;
		if (bytes >= o->max_reg)
			break;
	}
	dmabuf_free(buf);
	munmap(host, o->max_reg);
	return ret;
}

static int count_copies(struct bench *b, enum bench_op op, struct copies *c)
{
	const int repeats = 4;
	uint64_t device;
	int i, n, ret;

	c->op = op;
	for (i = 0; i < PATHS; i++) {
		uint64_t before = b->staged_bytes;

		if (copies_start())
			return call_failed("counting copies", copies_failed_call());
		for (n = 0; n < repeats; n++) {
			ret = transfer(b, op, i, COPIES_SIZE);
			if (ret)
				return ret;
		}
		if (copies_stop(&device))
			return call_failed("counting copies", copies_failed_call());
		c->device[i] = (double)device / (repeats * COPIES_SIZE);
		c->staging[i] = (double)(b->staged_bytes - before) / (repeats * COPIES_SIZE);
	}
	return RESULT_PASS;
}

static int all_copies(struct bench *b, struct results *results)
{
	int ret = RESULT_PASS;
	int i;

	if (copies_init(results->device)) {
		if (errno == ENODEV)
			return RESULT_PASS;	/* the report says so */
		ret = call_failed("counting copies", copies_failed_call());
	}
	for (i = 0; i < OPS && !ret; i++) {
		ret = count_copies(b, i, &results->copies[i]);
		results->num_copies += !ret;
	}
	copies_fini();
	return ret;
}

static int run(struct bench *b, const struct options *o, struct results *results)
{
	uint64_t first = o->size ? o->size : MIN_SIZE;
	uint64_t last = o->size ? o->size : MAX_SIZE;
	int factor = o->all ? 2 : 4;
	uint64_t bytes;
	int ret, i;

	ret = bench_init(b, o, last > COPIES_SIZE ? last : COPIES_SIZE);
	if (ret)
		return ret;
	results->device = ibv_get_device_name(b->ctx->device);
	results->exporter = o->exporter;
	results->instructions = o->instructions;
	results->software = copies_by_cpu(results->device);
	for (i = 0; i < OPS; i++) {
		for (bytes = first; bytes <= last; bytes *= factor) {
			struct traffic *t = &results->traffic[results->num_traffic];

			t->op = i;
			t->bytes = bytes;
			ret = measure_traffic(b, o, t);
			if (ret)
				return ret;
			results->num_traffic++;
		}
	}
	results->placement = dmabuf_placement(b->buf);
	ret = all_copies(b, results);
	if (!ret && o->max_reg)
		ret = all_registrations(b, o, results);
	if (ret)
		return ret;

	print_table(results);
	if (o->json && write_json(results, o->json))
		return call_failed("results", o->json);
	if (o->check && !print_targets(results))
		return RESULT_FAIL;
	return RESULT_PASS;
}

static int print_usage(FILE *to, int result)
{
	fprintf(to,
		"usage: rdma-dmabuf bench [OPTION]...\n"
		"  -d, --ib-dev DEVICE     RDMA device (default: the first)\n"
		"  -x, --gid-index INDEX   GID (default, or -1: RoCE v2 over IPv4)\n"
		"  -e, --exporter NAME     vramsim[:N] (default), vgem, udmabuf or heap:NAME\n"
		"  -s, --size SIZE         one size of transfers (default: 4K, 16K .. 4M)\n"
		"  -a, --all               every power of two from 4K to 4M\n"
		"  -n, --iters N           transfers in a round (default: 256K worth of them)\n"
		"  -r, --rounds N          rounds, at most 101 (default: 11)\n"
		"  -R, --max-reg SIZE      registrations from 4K to SIZE (default: 1G, 0: none)\n"
		"  -j, --json FILE         the results for programs\n"
		"  -i, --instructions      CLOCK_MONOTONIC counts instructions (QEMU -icount shift=0)\n"
		"  -c, --check             exit with 1 if a target is missed\n"
		"  -h, --help\n");
	return result;
}

static int parse_number(const char *text, int min, int max, int *number)
{
	char *end;
	long value;

	value = strtol(text, &end, 10);
	if (end == text || *end || value < min || value > max)
		return -1;
	*number = value;
	return 0;
}

int cmd_bench(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "ib-dev", required_argument, NULL, 'd' },
		{ "gid-index", required_argument, NULL, 'x' },
		{ "exporter", required_argument, NULL, 'e' },
		{ "size", required_argument, NULL, 's' },
		{ "all", no_argument, NULL, 'a' },
		{ "iters", required_argument, NULL, 'n' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "max-reg", required_argument, NULL, 'R' },
		{ "json", required_argument, NULL, 'j' },
		{ "instructions", no_argument, NULL, 'i' },
		{ "check", no_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	struct options o = {
		.gid_index = -1,
		.exporter = "vramsim",
		.rounds = 11,
		.max_reg = 1 << 30,
	};
	struct results *results;
	struct bench b = { };
	int bad = 0;
	int ret, c;

	while ((c = getopt_long(argc, argv, "d:x:e:s:an:r:R:j:ich", long_options, NULL)) != -1) {
		switch (c) {
		case 'd':
			o.device = optarg;
			break;
		case 'x':
			bad |= parse_number(optarg, -1, 255, &o.gid_index);
			break;
		case 'e':
			o.exporter = optarg;
			break;
		case 's':
			bad |= parse_size(optarg, &o.size) || !o.size || o.size > UINT32_MAX;
			break;
		case 'a':
			o.all = true;
			break;
		case 'n':
			bad |= parse_number(optarg, 1, 1000000, &o.iterations);
			break;
		case 'r':
			bad |= parse_number(optarg, 1, MAX_ROUNDS, &o.rounds);
			break;
		case 'R':
			bad |= parse_size(optarg, &o.max_reg);
			break;
		case 'j':
			o.json = optarg;
			break;
		case 'i':
			o.instructions = true;
			break;
		case 'c':
			o.check = true;
			break;
		case 'h':
			return print_usage(stdout, RESULT_PASS);
		default:
			return print_usage(stderr, RESULT_USAGE);
		}
		if (bad) {
			fprintf(stderr, "rdma-dmabuf: bench: bad value '%s' of -%c\n", optarg, c);
			return print_usage(stderr, RESULT_USAGE);
		}
	}
	if (optind < argc) {
		fprintf(stderr, "rdma-dmabuf: bench: what is '%s'?\n", argv[optind]);
		return print_usage(stderr, RESULT_USAGE);
	}

	results = calloc(1, sizeof(*results));
	if (!results)
		return call_failed("memory", "calloc");
	ret = run(&b, &o, results);
	bench_destroy(&b);
	free(results);
	return ret;
}
