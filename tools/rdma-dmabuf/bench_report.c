// SPDX-License-Identifier: GPL-2.0
/* What rdma-dmabuf bench says: a table, JSON, and whether targets are met. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "bench.h"
#include "cmd.h"
#include "stats.h"

#define TARGET_RATIO	0.95
#define TARGET_STAGED	1.5	/* where the device moves the data */
#define TARGET_FROM	(64 << 10)	/* smaller transfers are all overhead */
#define TARGET_REG	(1024UL * 1024 * 1024)

static const char *const path_names[PATHS] = { "host", "dmabuf", "staged" };
static const char *const operation_names[OPS] = { "WRITE", "READ" };

/* Speed relative to host memory: the inverse of the cost's ratio */
static struct summary speed_over(const struct traffic *t, enum bench_path path)
{
	return summarize_ratio(t->cost[path], t->cost[PATH_DMABUF], t->rounds);
}

static struct summary registration_ratio(const struct registration *r)
{
	return summarize_ratio(r->reg[PATH_DMABUF], r->reg[PATH_HOST], r->rounds);
}

static double all_copies(const struct copies *c, enum bench_path path)
{
	return c->device[path] + c->staging[path];
}

/* "1.003 (0.998 .. 1.010)", in a buffer that the next four calls reuse */
static const char *print_ratio(struct summary s)
{
	static char buffers[4][40];
	static unsigned int next;
	char *buffer = buffers[next++ % 4];

	snprintf(buffer, sizeof(buffers[0]), "%.3f (%.3f .. %.3f)", s.median, s.q1, s.q3);
	return buffer;
}

void print_table(const struct results *results)
{
	struct utsname os;
	int i;

	uname(&os);
	printf("device     %s, Linux %s\n", results->device, os.release);
	printf("exporter   %s, memory in %s\n", results->exporter, results->placement);
	printf("path       host: host memory; dmabuf: MR on the dma-buf; staged: host memory,\n"
	       "           from and to where the CPU copies\n");
	if (results->instructions)
		printf("cost       thousands of instructions, as QEMU counts them (string\n"
		       "           instructions: one for an iteration)\n");
	else
		printf("cost       microseconds\n");
	printf("           median of the rounds; ratios are of a round: median (quartiles)\n");

	printf("\n%-6s %8s %7s %7s %10s %10s %10s  %-24s %-24s\n", "op", "#bytes", "#iters",
	       "#rounds", "host", "dmabuf", "staged", "speed, dmabuf/host",
	       "speed, dmabuf/staged");
	for (i = 0; i < results->num_traffic; i++) {
		const struct traffic *t = &results->traffic[i];
		int path;

		printf("%-6s %8s %7d %7d", operation_names[t->op], print_size(t->bytes),
		       t->iterations, t->rounds);
		for (path = 0; path < PATHS; path++)
			printf(" %10.1f", summarize(t->cost[path], t->rounds).median / 1000);
		printf("  %-24s %-24s\n", print_ratio(speed_over(t, PATH_HOST)),
		       print_ratio(speed_over(t, PATH_STAGED)));
	}

	if (results->num_copies)
		printf("\nBytes that the CPU copies for each that arrives, device + application\n");
	else
		printf("\nCopies: not counted, %s is not rxe or the kernel has no kprobe events\n",
		       results->device);
	for (i = 0; i < results->num_copies; i++) {
		const struct copies *c = &results->copies[i];
		int path;

		printf("%-6s", operation_names[c->op]);
		for (path = 0; path < PATHS; path++)
			printf("   %s %.2f + %.2f", path_names[path], c->device[path],
			       c->staging[path]);
		printf("\n");
	}

	if (results->num_registration)
		printf("\n%8s %7s  %14s %14s %14s %14s  %s\n", "#bytes", "#rounds", "reg host",
		       "reg dmabuf", "dereg host", "dereg dmabuf", "cost of reg, dmabuf/host");
	for (i = 0; i < results->num_registration; i++) {
		const struct registration *r = &results->registration[i];

		printf("%8s %7d  %14.1f %14.1f %14.1f %14.1f  %s\n", print_size(r->bytes),
		       r->rounds,
		       summarize(r->reg[PATH_HOST], r->rounds).median / 1000,
		       summarize(r->reg[PATH_DMABUF], r->rounds).median / 1000,
		       summarize(r->dereg[PATH_HOST], r->rounds).median / 1000,
		       summarize(r->dereg[PATH_DMABUF], r->rounds).median / 1000,
		       print_ratio(registration_ratio(r)));
	}
}

static void json_summary(FILE *out, const char *key, struct summary s, const char *end)
{
	fprintf(out, "\"%s\": { \"median\": %.6g, \"q1\": %.6g, \"q3\": %.6g }%s", key, s.median,
		s.q1, s.q3, end);
}

int write_json(const struct results *results, const char *path)
{
	const char *unit = results->instructions ? "instructions" : "ns";
	FILE *out = fopen(path, "we");
	struct utsname os;
	char key[32];
	int i, p;

	if (!out)
		return -1;
	uname(&os);
	fprintf(out, "{\n  \"kernel\": \"%s\",\n  \"device\": \"%s\",\n  \"exporter\": \"%s\",\n",
		os.release, results->device, results->exporter);
	fprintf(out, "  \"placement\": \"%s\",\n  \"cost_unit\": \"%s\",\n  \"traffic\": [",
		results->placement, unit);
	for (i = 0; i < results->num_traffic; i++) {
		const struct traffic *t = &results->traffic[i];

		fprintf(out, "%s\n    { \"operation\": \"%s\", \"bytes\": %" PRIu64
			", \"iterations\": %d, \"rounds\": %d,\n", i ? "," : "",
			operation_names[t->op], t->bytes, t->iterations, t->rounds);
		for (p = 0; p < PATHS; p++) {
			fprintf(out, "      ");
			snprintf(key, sizeof(key), "%s_%s", path_names[p], unit);
			json_summary(out, key, summarize(t->cost[p], t->rounds), ",\n");
		}
		fprintf(out, "      ");
		json_summary(out, "dmabuf_speed_over_host", speed_over(t, PATH_HOST), ",\n      ");
		json_summary(out, "dmabuf_speed_over_staged", speed_over(t, PATH_STAGED), " }");
	}
	fprintf(out, "\n  ],\n  \"copied_bytes_per_byte\": [");
	for (i = 0; i < results->num_copies; i++) {
		const struct copies *c = &results->copies[i];

		fprintf(out, "%s\n    { \"operation\": \"%s\"", i ? "," : "",
			operation_names[c->op]);
		for (p = 0; p < PATHS; p++)
			fprintf(out, ", \"%s_device\": %.4f, \"%s_application\": %.4f",
				path_names[p], c->device[p], path_names[p], c->staging[p]);
		fprintf(out, " }");
	}
	fprintf(out, "\n  ],\n  \"registration\": [");
	for (i = 0; i < results->num_registration; i++) {
		const struct registration *r = &results->registration[i];

		fprintf(out, "%s\n    { \"bytes\": %" PRIu64 ", \"rounds\": %d,\n", i ? "," : "",
			r->bytes, r->rounds);
		for (p = 0; p < PATH_STAGED; p++) {
			snprintf(key, sizeof(key), "%s_reg_%s", path_names[p], unit);
			fprintf(out, "      ");
			json_summary(out, key, summarize(r->reg[p], r->rounds), ",\n");
			snprintf(key, sizeof(key), "%s_dereg_%s", path_names[p], unit);
			fprintf(out, "      ");
			json_summary(out, key, summarize(r->dereg[p], r->rounds), ",\n");
		}
		fprintf(out, "      ");
		json_summary(out, "dmabuf_reg_cost_over_host", registration_ratio(r), " }");
	}
	fprintf(out, "\n  ]\n}\n");
	/* A full disk shows at the latest here. */
	return fclose(out) ? -1 : 0;
}

static bool target(const char *text, const char *at, double value, bool met)
{
	printf("%-56s %-10s %8.3f  %s\n", text, at, value, met ? "met" : "MISSED");
	return met;
}

bool print_targets(const struct results *results)
{
	bool met = true;
	char at[32];
	int i;

	printf("\n%-56s %-10s %8s\n", "target", "at", "measured");
	for (i = 0; i < results->num_traffic; i++) {
		const struct traffic *t = &results->traffic[i];
		double over_host = speed_over(t, PATH_HOST).median;
		double over_staged = speed_over(t, PATH_STAGED).median;

		if (t->bytes < TARGET_FROM)
			continue;
		snprintf(at, sizeof(at), "%s %s", operation_names[t->op],
			 print_size(t->bytes));
		met &= target("dma-buf MR at least 0.95 x as fast as host memory", at, over_host,
			      over_host >= TARGET_RATIO);
		if (!results->software)
			met &= target("dma-buf MR at least 1.5 x as fast as staged", at,
				      over_staged, over_staged >= TARGET_STAGED);
	}
	for (i = 0; i < results->num_copies; i++) {
		const struct copies *c = &results->copies[i];
		double fewer = all_copies(c, PATH_STAGED) - all_copies(c, PATH_DMABUF);

		met &= target("copies of each byte: one fewer than staged",
			      operation_names[c->op], fewer, fewer > 0.99 && fewer < 1.01);
	}
	for (i = 0; i < results->num_registration; i++) {
		const struct registration *r = &results->registration[i];
		double ratio = registration_ratio(r).median;

		if (r->bytes != TARGET_REG)
			continue;
		met &= target("registration costs at most what host memory costs",
			      print_size(r->bytes), ratio, ratio <= 1);
	}
	return met;
}
