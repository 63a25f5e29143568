// SPDX-License-Identifier: GPL-2.0
/*
 * rdma-dmabuf demo: what one can do to a dma-buf over RDMA, and the proof.
 *
 * End B of an RC pair registers a window in the middle of each exporter's
 * buffer, end A has host memory.  After every operation the whole buffer is read
 * through the exporter's own view and compared with what it has to be, so a
 * single byte that is missing, or written outside the window, is found.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <arpa/inet.h>

#include "cmd.h"
#include "dmabuf_alloc.h"
#include "rc_pair.h"

#define MAX_EXPORTERS	8
#define BUFFER_SIZE	(1024 * 1024)
#define WINDOW_OFFSET	(64 * 1024 + 512)	/* inside a page, as sub-allocations are */
#define WINDOW_LENGTH	8192
#define WINDOW_IOVA	0x7f0000000200ULL	/* same offset in its page */
#define ATOMIC_AT	1024			/* in the window */
#define CANARY		0xa5
#define GUARD		4096			/* around the host's memory */

struct subject {
	const char *exporter;
	struct dmabuf *buf;
	struct rc_pair pair;
	bool paired;
	struct ibv_mr *mr;		/* of end B, on the dma-buf */
	struct ibv_mr *host_mr;		/* of end A */
	uint8_t *host;			/* GUARD, window, GUARD */
	uint8_t *expect;		/* the whole dma-buf */
	uint8_t *seen;
};

static int subject_init(struct subject *s, struct ibv_context *ctx, int gid_index)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	const size_t host_size = WINDOW_LENGTH + 2 * GUARD;

	s->buf = dmabuf_alloc(s->exporter, BUFFER_SIZE, NULL);
	if (!s->buf)
		return call_failed(s->exporter, dmabuf_failed_call());
	s->host = malloc(host_size);
	s->expect = malloc(BUFFER_SIZE);
	s->seen = malloc(BUFFER_SIZE);
	if (!s->host || !s->expect || !s->seen)
		return call_failed("memory", "malloc");
	memset(s->host, CANARY, host_size);
	memset(s->expect, CANARY, BUFFER_SIZE);
	if (dmabuf_fill(s->buf, 0, CANARY, BUFFER_SIZE))
		return call_failed(s->exporter, dmabuf_failed_call());
	if (rc_pair_init_gid(&s->pair, ctx, gid_index))
		return call_failed("RC pair", rc_failed_call());
	s->paired = true;
	s->host_mr = ibv_reg_mr(s->pair.a.pd, s->host, host_size, IBV_ACCESS_LOCAL_WRITE);
	if (!s->host_mr)
		return call_failed("host memory", "ibv_reg_mr");
	s->mr = ibv_reg_dmabuf_mr(s->pair.b.pd, WINDOW_OFFSET, WINDOW_LENGTH, WINDOW_IOVA,
				  dmabuf_fd(s->buf), access);
	if (!s->mr)
		return call_failed(s->exporter, "ibv_reg_dmabuf_mr");
	/* The MR holds the buffer from here on. */
	dmabuf_close_fd(s->buf);
	return RESULT_PASS;
}

static void subject_destroy(struct subject *s)
{
	if (s->mr)
		ibv_dereg_mr(s->mr);
	if (s->host_mr)
		ibv_dereg_mr(s->host_mr);
	if (s->paired)
		rc_pair_destroy(&s->pair);
	dmabuf_free(s->buf);
	free(s->host);
	free(s->expect);
	free(s->seen);
}

static struct ibv_sge host_sge(const struct subject *s, uint32_t length)
{
	return (struct ibv_sge){ (uintptr_t)s->host + GUARD, length, s->host_mr->lkey };
}

static struct ibv_sge window_sge(const struct subject *s)
{
	return (struct ibv_sge){ WINDOW_IOVA, WINDOW_LENGTH, s->mr->lkey };
}

/* Tells what is not as it has to be. */
__printf(2, 3)
static bool wrong(const struct subject *s, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "rdma-dmabuf: %s: ", s->exporter);
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	va_end(args);
	return false;
}

static bool same_bytes(const struct subject *s, const char *where, const uint8_t *seen,
		       const uint8_t *expect, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++) {
		if (seen[i] != expect[i])
			return wrong(s, "%s: byte %zu is 0x%02x, not 0x%02x", where, i,
				     seen[i], expect[i]);
	}
	return true;
}

/* The exporter's own view of every byte */
static bool buffer_as_expected(struct subject *s)
{
	if (dmabuf_read(s->buf, 0, s->seen, BUFFER_SIZE))
		return wrong(s, "%s: %s", dmabuf_failed_call(), strerror(errno));
	return same_bytes(s, "buffer", s->seen, s->expect, BUFFER_SIZE);
}

/* The host's memory holds @length bytes of @data and is untouched around them. */
static bool host_as_expected(struct subject *s, const void *data, size_t length)
{
	uint8_t expect[WINDOW_LENGTH + 2 * GUARD];

	memset(expect, CANARY, sizeof(expect));
	memcpy(expect + GUARD, data, length);
	return same_bytes(s, "host memory", s->host, expect, sizeof(expect));
}

static bool completes(const struct subject *s, struct rc_end *end,
		      enum ibv_wc_status status)
{
	struct ibv_wc wc;
	int got = rc_wait(end, &wc, RC_PATIENCE_MS);

	if (got < 0)
		return wrong(s, "%s: %s", rc_failed_call(), strerror(errno));
	if (got != (int)status)
		return wrong(s, "ended with '%s', not with '%s'",
			     ibv_wc_status_str(got), ibv_wc_status_str(status));
	return true;
}

static bool posted(const struct subject *s, int ret)
{
	return !ret || wrong(s, "%s: %s", rc_failed_call(), strerror(errno));
}

/* New bytes in the window, written by the exporter itself */
static bool exporter_writes(struct subject *s, uint32_t seed)
{
	fill_pattern(s->expect + WINDOW_OFFSET, WINDOW_LENGTH, seed);
	if (dmabuf_write(s->buf, WINDOW_OFFSET, s->expect + WINDOW_OFFSET, WINDOW_LENGTH))
		return wrong(s, "%s: %s", dmabuf_failed_call(), strerror(errno));
	return true;
}

static bool check_write(struct subject *s)
{
	struct ibv_sge sge = host_sge(s, WINDOW_LENGTH);

	fill_pattern(s->host + GUARD, WINDOW_LENGTH, 1);
	memcpy(s->expect + WINDOW_OFFSET, s->host + GUARD, WINDOW_LENGTH);
	return posted(s, rc_post(&s->pair.a, IBV_WR_RDMA_WRITE, &sge, WINDOW_IOVA, s->mr->rkey)) &&
	       completes(s, &s->pair.a, IBV_WC_SUCCESS) && buffer_as_expected(s);
}

static bool check_read(struct subject *s)
{
	struct ibv_sge sge = host_sge(s, WINDOW_LENGTH);

	memset(s->host + GUARD, 0, WINDOW_LENGTH);
	return exporter_writes(s, 2) &&
	       posted(s, rc_post(&s->pair.a, IBV_WR_RDMA_READ, &sge, WINDOW_IOVA, s->mr->rkey)) &&
	       completes(s, &s->pair.a, IBV_WC_SUCCESS) &&
	       host_as_expected(s, s->expect + WINDOW_OFFSET, WINDOW_LENGTH) &&
	       buffer_as_expected(s);
}

static bool check_receive(struct subject *s)
{
	struct ibv_sge from = host_sge(s, WINDOW_LENGTH);
	struct ibv_sge to = window_sge(s);

	fill_pattern(s->host + GUARD, WINDOW_LENGTH, 3);
	memcpy(s->expect + WINDOW_OFFSET, s->host + GUARD, WINDOW_LENGTH);
	return posted(s, rc_post_recv(&s->pair.b, &to)) &&
	       posted(s, rc_post(&s->pair.a, IBV_WR_SEND, &from, 0, 0)) &&
	       completes(s, &s->pair.a, IBV_WC_SUCCESS) &&
	       completes(s, &s->pair.b, IBV_WC_SUCCESS) && buffer_as_expected(s);
}

static bool check_send(struct subject *s)
{
	struct ibv_sge from = window_sge(s);
	struct ibv_sge to = host_sge(s, WINDOW_LENGTH);

	memset(s->host + GUARD, 0, WINDOW_LENGTH);
	return exporter_writes(s, 4) && posted(s, rc_post_recv(&s->pair.a, &to)) &&
	       posted(s, rc_post(&s->pair.b, IBV_WR_SEND, &from, 0, 0)) &&
	       completes(s, &s->pair.b, IBV_WC_SUCCESS) &&
	       completes(s, &s->pair.a, IBV_WC_SUCCESS) &&
	       host_as_expected(s, s->expect + WINDOW_OFFSET, WINDOW_LENGTH) &&
	       buffer_as_expected(s);
}

static bool do_atomic(struct subject *s, enum ibv_wr_opcode opcode, uint64_t compare_add,
		      uint64_t swap, uint64_t after)
{
	struct ibv_sge sge = host_sge(s, sizeof(uint64_t));
	uint8_t *at = s->expect + WINDOW_OFFSET + ATOMIC_AT;
	uint64_t before;

	memset(s->host + GUARD, CANARY, WINDOW_LENGTH);
	memcpy(&before, at, sizeof(before));
	memcpy(at, &after, sizeof(after));
	return posted(s, rc_post_atomic(&s->pair.a, opcode, &sge, WINDOW_IOVA + ATOMIC_AT,
					s->mr->rkey, compare_add, swap)) &&
	       completes(s, &s->pair.a, IBV_WC_SUCCESS) &&
	       host_as_expected(s, &before, sizeof(before)) && buffer_as_expected(s);
}

static uint64_t atomic_value(const struct subject *s)
{
	uint64_t value;

	memcpy(&value, s->expect + WINDOW_OFFSET + ATOMIC_AT, sizeof(value));
	return value;
}

static bool check_fetch_add(struct subject *s)
{
	const uint64_t add = 0x0123456789abcdefULL;

	return do_atomic(s, IBV_WR_ATOMIC_FETCH_AND_ADD, add, 0, atomic_value(s) + add);
}

static bool check_cmp_swap(struct subject *s)
{
	const uint64_t swap = 0xfedcba9876543210ULL;

	return do_atomic(s, IBV_WR_ATOMIC_CMP_AND_SWP, atomic_value(s), swap, swap);
}

static bool check_cmp_swap_differs(struct subject *s)
{
	return do_atomic(s, IBV_WR_ATOMIC_CMP_AND_SWP, ~atomic_value(s), 0, atomic_value(s));
}

/* The last one on a connection: it ends in the error state. */
static bool check_refusal(struct subject *s)
{
	struct ibv_sge sge = host_sge(s, 16);

	return posted(s, rc_post(&s->pair.a, IBV_WR_RDMA_WRITE, &sge,
				 WINDOW_IOVA + WINDOW_LENGTH - 8, s->mr->rkey)) &&
	       completes(s, &s->pair.a, IBV_WC_REM_ACCESS_ERR) && buffer_as_expected(s);
}

static const struct check {
	const char *operation;
	const char *text;
	bool (*run)(struct subject *s);
} checks[] = {
	{ "WRITE", "8192 bytes arrive", check_write },
	{ "READ", "8192 bytes are fetched", check_read },
	{ "SEND", "8192 bytes are received into it", check_receive },
	{ "SEND", "8192 bytes are sent from it", check_send },
	{ "FETCH_ADD", "old value returned, sum stored", check_fetch_add },
	{ "CMP_SWP", "old value returned, new one stored", check_cmp_swap },
	{ "CMP_SWP", "another value there: not stored", check_cmp_swap_differs },
	{ "WRITE", "8 bytes too far: refused, none stored", check_refusal },
	{ }
};

static void print_head(const char *device, const struct rc_pair *pair)
{
	char gid[INET6_ADDRSTRLEN];
	struct utsname os;

	uname(&os);
	inet_ntop(AF_INET6, pair->gid.raw, gid, sizeof(gid));
	printf("%s, GID %d (%s), Linux %s\n\n", device, pair->gid_index, gid, os.release);
	printf("%-10s %-10s %8s  %-9s %7s %7s  %-14s  %-10s  %-10s\n", "exporter", "placement",
	       "dma-buf", "mode", "offset", "length", "iova", "lkey", "rkey");
}

static void print_subject(const char *device, const struct subject *s)
{
	char mode[32];

	/* rxe has one mode only, and a state. */
	mr_attribute(device, s->mr->rkey, "drv_dmabuf_mode", mode, sizeof(mode));
	if (!strcmp(mode, "unknown"))
		mr_attribute(device, s->mr->rkey, "drv_dmabuf_state", mode, sizeof(mode));
	printf("%-10s %-10s %8" PRIu64 "  %-9s %7d %7d  0x%012llx  0x%08x  0x%08x\n", s->exporter,
	       dmabuf_placement(s->buf), dmabuf_inode(s->buf), mode, WINDOW_OFFSET,
	       WINDOW_LENGTH, WINDOW_IOVA, s->mr->lkey, s->mr->rkey);
}

static int run(struct ibv_context *ctx, int gid_index, struct subject *subjects, int num)
{
	const char *device = ibv_get_device_name(ctx->device);
	const struct check *check;
	int failures = 0;
	int ret, i;

	for (i = 0; i < num; i++) {
		ret = subject_init(&subjects[i], ctx, gid_index);
		if (ret)
			return ret;
	}
	print_head(device, &subjects[0].pair);
	for (i = 0; i < num; i++)
		print_subject(device, &subjects[i]);

	printf("\n%-10s %-38s", "operation", "");
	for (i = 0; i < num; i++)
		printf(" %-10s", subjects[i].exporter);
	printf("\n");
	for (check = checks; check->operation; check++) {
		printf("%-10s %-38s", check->operation, check->text);
		for (i = 0; i < num; i++) {
			bool ok = check->run(&subjects[i]);

			failures += !ok;
			printf(" %-10s", ok ? "ok" : "WRONG");
		}
		printf("\n");
		fflush(stdout);
	}
	printf("\nAfter each operation the exporter's own view of all %d bytes was compared.\n",
	       BUFFER_SIZE);
	printf("path: dmabuf\n");
	return failures ? RESULT_FAIL : RESULT_PASS;
}

static int print_usage(FILE *to, int result)
{
	fprintf(to,
		"usage: rdma-dmabuf demo [OPTION]...\n"
		"  -d, --ib-dev DEVICE     RDMA device (default: the first)\n"
		"  -x, --gid-index INDEX   GID (default, or -1: RoCE v2 over IPv4)\n"
		"  -e, --exporter NAME     vramsim[:N], vgem, udmabuf or heap:NAME; may be repeated\n"
		"                          (default: vramsim and vgem)\n"
		"  -h, --help\n");
	return result;
}

int cmd_demo(int argc, char **argv)
{
	static const struct option options[] = {
		{ "ib-dev", required_argument, NULL, 'd' },
		{ "gid-index", required_argument, NULL, 'x' },
		{ "exporter", required_argument, NULL, 'e' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	struct subject subjects[MAX_EXPORTERS] = { };
	const char *device = NULL;
	struct ibv_context *ctx;
	int gid_index = -1;
	int num = 0;
	char *end;
	int ret, c;

	while ((c = getopt_long(argc, argv, "d:x:e:h", options, NULL)) != -1) {
		switch (c) {
		case 'd':
			device = optarg;
			break;
		case 'x':
			gid_index = strtol(optarg, &end, 10);
			if (*end || end == optarg)
				return print_usage(stderr, RESULT_USAGE);
			break;
		case 'e':
			if (num == MAX_EXPORTERS)
				return print_usage(stderr, RESULT_USAGE);
			subjects[num++].exporter = optarg;
			break;
		case 'h':
			return print_usage(stdout, RESULT_PASS);
		default:
			return print_usage(stderr, RESULT_USAGE);
		}
	}
	if (optind < argc)
		return print_usage(stderr, RESULT_USAGE);
	if (!num) {
		subjects[num++].exporter = "vramsim";
		subjects[num++].exporter = "vgem";
	}

	ctx = rc_open(device);
	if (!ctx)
		return call_failed(device ? device : "an RDMA device", rc_failed_call());
	ret = run(ctx, gid_index, subjects, num);
	while (num--)
		subject_destroy(&subjects[num]);
	ibv_close_device(ctx);
	return ret;
}
