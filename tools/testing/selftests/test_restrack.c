// SPDX-License-Identifier: GPL-2.0
/*
 * What `rdma resource show mr -dd` says of a dma-buf MR, that a dump may run while
 * MRs come and go, and that an MR leaves no reference to its process behind.
 *
 *	test_restrack [--mrs N]
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "restrack.h"
#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE	(16 * KIB)
#define OFFSET	4096

static void show(char *line, size_t size)
{
	restrack_show(line, size);
	diag("%s", line);
}

/* rxe: a pinned buffer, mapped by the CPU */
static void check_cpu(const char *line)
{
	ok(restrack_says(line, "dmabuf_state", "pinned"), "the state");
	ok(restrack_says_number(line, "dmabuf_copies", 1) &&
	   restrack_says_number(line, "dmabuf_bytes", 1), "what the CPU has copied");
}

/* mlx5: entries of the adapter, and what happened to them; @line is used again */
static void check_entries(struct rig *rig, const struct mr *mr, struct dmabuf *buf, char *line,
			  size_t size)
{
	uint8_t byte = 2;

	ok(restrack_says(line, "dmabuf_state", "mapped"), "the state");
	ok(restrack_says_number(line, "dmabuf_page_size", OFFSET), "the page size");
	ok(restrack_says_number(line, "dmabuf_maps", 1) &&
	   restrack_says_number(line, "dmabuf_moves", 0) &&
	   restrack_says_number(line, "dmabuf_faults", 0), "mapped once");
	if (!rig->traits.follows) {
		is(sim_move(buf, VRAMSIM_PLACEMENT_SYSTEM, 0, 0), EBUSY, "it does not move");
		return;
	}
	is(sim_move(buf, VRAMSIM_PLACEMENT_SYSTEM, 0, 0), 0, "it moves");
	show(line, size);
	ok(restrack_says(line, "dmabuf_state", "unmapped") &&
	   restrack_says_number(line, "dmabuf_moves", 1), "a move is shown");
	is(rig_write(rig, mr, 0, &byte, 1), IBV_WC_SUCCESS, "WRITE after it");
	show(line, size);
	ok(restrack_says(line, "dmabuf_state", "mapped") &&
	   restrack_says_number(line, "dmabuf_maps", 2) &&
	   restrack_says_number(line, "dmabuf_faults", 1), "so is the page fault");
}

static void check_attributes(struct rig *rig)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	uint8_t byte = 1;
	char line[1024];
	struct mr mr;

	if (rig_reg(rig, dmabuf_fd(buf), OFFSET, SIZE - OFFSET, 0, &mr))
		bail("register");
	if (rig_write(rig, &mr, 0, &byte, 1))
		bail("WRITE");
	show(line, sizeof(line));
	ok(restrack_says(line, "dmabuf_exporter", "vramsim"), "the exporter is shown");
	ok(restrack_says_number(line, "dmabuf_inode", dmabuf_inode(buf)), "the dma-buf's inode");
	ok(restrack_says_number(line, "dmabuf_offset", OFFSET), "the offset");
	if (rig->traits.by_cpu)
		check_cpu(line);
	else
		check_entries(rig, &mr, buf, line, sizeof(line));
	if (sim_revoke(buf))
		bail("revoke");
	/* Who follows a buffer learns of it when it next looks for its pages. */
	ok(rig_write(rig, &mr, 0, &byte, 1) > 0, "a WRITE fails after a revoke");
	show(line, sizeof(line));
	ok(restrack_says(line, "dmabuf_state", "revoked"), "a revoke is shown");
	mr_dereg(&mr);
	restrack_show(line, sizeof(line));
	ok(!line[0], "the MR is gone after dereg");
	dmabuf_free(buf);
}

static pid_t dump_in_a_loop(void)
{
	pid_t pid = fork();

	if (pid < 0)
		bail("fork: %s", strerror(errno));
	if (!pid) {
		setpgid(0, 0);
		execlp("sh", "sh", "-c",
		       "while rdma -dd resource show mr > /dev/null; do :; done", NULL);
		_exit(127);
	}
	setpgid(pid, pid);
	return pid;
}

static void check_race(struct rig *rig, uint64_t mrs)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	pid_t dumper = dump_in_a_loop();
	struct ibv_mr *host;
	uint64_t done = 0;
	int status;

	for (; done < mrs; done++) {
		struct mr mr;

		if (rig_reg(rig, dmabuf_fd(buf), 0, SIZE, 0, &mr) || mr_dereg(&mr))
			break;
		/* The dump looks into MRs of host memory, too. */
		host = ibv_reg_mr(rig->pair.b.pd, rig->host, SIZE, RIG_ACCESS);
		if (!host || ibv_dereg_mr(host))
			break;
	}
	is(done, mrs, "MRs come and go while others look");
	ok(!waitpid(dumper, &status, WNOHANG), "the dumps go on to the end");
	kill(-dumper, SIGKILL);
	waitpid(dumper, NULL, 0);
	dmabuf_free(buf);
}

/* Objects of a slab cache that are in use, or -1. */
static long slab_objects(const char *cache)
{
	FILE *file = fopen("/proc/slabinfo", "r");
	char line[512], name[64];
	long objects, found = -1;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%63s %ld", name, &objects) == 2 && !strcmp(name, cache))
			found = objects;
	if (file)
		fclose(file);
	return found;
}

/* A process: says that it has an MR, and has it until all others have one, too. */
static int hold_one(int ready, int go)
{
	struct ibv_context *ctx = rc_open(rig_device());
	struct dmabuf *buf = dmabuf_alloc("vramsim", SIZE, NULL);
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	struct mr_reg reg = { .pd = pd, .length = SIZE, .access = RIG_ACCESS };
	struct mr mr;
	char byte = 0;

	if (!buf || !pd)
		return 1;
	reg.driver_id = uverbs_driver_id(ctx);
	reg.fd = dmabuf_fd(buf);
	if (mr_reg(&reg, &mr) || write(ready, &byte, 1) != 1)
		return 1;
	close(ready);
	return read(go, &byte, 1) || mr_dereg(&mr);
}

static void start_holder(const int *ready, const int *go)
{
	pid_t pid = fork();

	if (pid < 0)
		bail("fork: %s", strerror(errno));
	if (pid)
		return;
	close(ready[0]);
	close(go[1]);
	_exit(hold_one(ready[1], go[0]));
}

/*
 * All have their MR at the same time: a driver that keeps its MRs for later use, as mlx5
 * does, forgets the process of the last use at the next one.
 */
static void check_tasks(void)
{
	enum { PROCESSES = 100 };
	const char *name = "no task_struct is left behind";
	int ready[2], go[2], status, failed = 0, holders = 0;
	long before, after;
	char byte;

	if (!access("/sys/kernel/debug/kmemleak", F_OK)) {
		skip(name, "KASAN holds freed objects back; kmemleak finds the leak here");
		return;
	}
	before = slab_objects("task_struct");
	if (before < 0) {
		skip(name, "no /proc/slabinfo");
		return;
	}
	if (pipe(ready) || pipe(go))
		bail("pipe: %s", strerror(errno));
	for (int i = 0; i < PROCESSES; i++)
		start_holder(ready, go);
	close(ready[1]);
	close(go[0]);
	while (read(ready[0], &byte, 1) == 1)
		holders++;
	is(holders, PROCESSES, "%d processes have an MR at the same time", PROCESSES);
	close(go[1]);
	for (int i = 0; i < PROCESSES; i++)
		failed += wait(&status) < 0 || status;
	is(failed, 0, "all deregister");
	close(ready[0]);
	sleep(1);
	after = slab_objects("task_struct");
	diag("task_struct: %ld before, %ld after", before, after);
	ok(after < before + PROCESSES / 2, "%s", name);
}

int main(int argc, char **argv)
{
	struct counters start;
	struct rig rig;
	uint64_t mrs;

	rig_up(&rig);
	if (!rig.traits.ours)
		tap_skip_all("the kernel's own driver shows nothing of a dma-buf");
	mrs = option_number(argc, argv, "mrs", 2000);
	if (system("rdma -V > /dev/null 2>&1"))
		tap_skip_all("no rdma command (package iproute2)");
	counters_get(&start);
	check_attributes(&rig);
	check_race(&rig, mrs);
	check_tasks();
	ok(counters_back(&start, 1000), "counters are back");
	rig_down(&rig);
	return tap_done();
}
