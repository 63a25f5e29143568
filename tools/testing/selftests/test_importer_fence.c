// SPDX-License-Identifier: GPL-2.0
/*
 * The exporter's fences: a device gets no address before they have signalled,
 * who waits for them can be interrupted and killed, and others do not wait with
 * him.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "importer.h"
#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE		(64 * KIB)
#define LONG_FENCE_MS	60000
#define SOON_MS		1000	/* "at once", on a machine that is busy */

static bool nothing_mapped(const struct dmabuf *buf)
{
	struct drm_vramsim_gem_info info = sim_gem(buf);

	if (!info.mapped && !info.pinned)
		return true;
	diag("  mapped %u, pinned %u", info.mapped, info.pinned);
	return false;
}

/* An import waits for the fence, and sees what the copy behind it has brought. */
static void import_waits(uint32_t contract)
{
	const char *name = imp_contract(contract);
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	uint64_t started = now_ms();
	uint8_t bytes[2] = { 0 };
	int imp = imp_open();

	dmabuf_fill(buf, 0, 0x6b, SIZE);
	is(sim_move(buf, VRAMSIM_PLACEMENT_SYSTEM, 0, 700), 0, "%s: a move of 700 ms", name);
	is(imp_import(imp, buf, contract, 0, SIZE), 0, "%s: import", name);
	ok(now_ms() - started >= 700, "%s: waited for the copy", name);
	ok(!imp_read(imp, 0, &bytes[0], 1) && !imp_read(imp, SIZE - 1, &bytes[1], 1) &&
	   bytes[0] == 0x6b && bytes[1] == 0x6b, "%s: the data is there", name);
	close(imp);
	dmabuf_free(buf);
}

static void got_signal(int sig)
{
	(void)sig;
}

/* Ends with the errno of an import that waits for the fence. */
static pid_t start_waiter(const struct dmabuf *buf, uint32_t contract, int sa_flags)
{
	struct sigaction action = { .sa_handler = got_signal, .sa_flags = sa_flags };
	pid_t pid = fork();

	if (pid < 0)
		bail("fork: %s", strerror(errno));
	if (!pid) {
		sigaction(SIGUSR1, &action, NULL);
		_exit(imp_import(imp_open(), buf, contract, 0, SIZE));
	}
	return pid;
}

/* True if the child has ended within @ms; its status. */
static bool ended(pid_t pid, int *status, int ms)
{
	for (; ms > 0; ms -= 10) {
		if (waitpid(pid, status, WNOHANG) == pid)
			return true;
		usleep(10 * 1000);
	}
	return false;
}

/* The waiter is where it is to be: the exporter knows it. */
static bool waits(const struct dmabuf *buf)
{
	for (int ms = 5000; ms > 0; ms -= 20) {
		if (sim_gem(buf).mapped)
			return true;
		usleep(20 * 1000);
	}
	return false;
}

static void interrupted(uint32_t contract, bool restart)
{
	const char *how = restart ? "SA_RESTART" : "no SA_RESTART";
	const char *name = imp_contract(contract);
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	int status = 0;
	pid_t pid;

	is(sim_fence(buf, LONG_FENCE_MS), 0, "%s, %s: a fence of a minute", name, how);
	pid = start_waiter(buf, contract, restart ? SA_RESTART : 0);
	ok(waits(buf), "%s, %s: import waits", name, how);
	kill(pid, SIGUSR1);
	if (restart) {
		ok(!ended(pid, &status, SOON_MS), "%s, %s: goes on waiting after a signal", name,
		   how);
		ok(waits(buf), "%s, %s: with the call made anew", name, how);
		kill(pid, SIGKILL);
		ok(ended(pid, &status, SOON_MS) && WIFSIGNALED(status),
		   "%s, %s: SIGKILL ends it at once", name, how);
	} else {
		ok(ended(pid, &status, SOON_MS), "%s, %s: comes back at once", name, how);
		ok(WIFEXITED(status) && WEXITSTATUS(status) == EINTR, "%s, %s: with EINTR", name,
		   how);
	}
	ok(nothing_mapped(buf), "%s, %s: nothing mapped nor pinned", name, how);
	is(sim_gem(buf).attached, 0, "%s, %s: nothing attached", name, how);
	dmabuf_free(buf);
}

/* While one waits with a long fence, its file can be looked at, others go on. */
struct waiter {
	int imp;
	int ret;
	pthread_t thread;
};

static void *map_it(void *arg)
{
	struct waiter *waiter = arg;

	waiter->ret = imp_map(waiter->imp);
	return NULL;
}

static void start_map(struct waiter *waiter, int imp)
{
	*waiter = (struct waiter){ .imp = imp };
	if (pthread_create(&waiter->thread, NULL, map_it, waiter))
		bail("no thread");
}

#define FENCE_MS	10000	/* long enough for what has to come before its end */

static void others_go_on(void)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL), *other = rig_vram(SIZE, NULL);
	int imp = imp_open(), neighbour = imp_open(), elsewhere = imp_open();
	struct waiter waiter;
	uint64_t started;

	is(imp_create(imp, buf, DMABUF_IMPORTER_DYNAMIC, 0, SIZE), 0, "long fence: import");
	is(imp_create(neighbour, buf, DMABUF_IMPORTER_DYNAMIC, 0, SIZE), 0,
	   "long fence: a second one of the same buffer");
	is(imp_import(elsewhere, other, DMABUF_IMPORTER_PINNED, 0, SIZE), 0,
	   "long fence: one of another buffer");
	started = now_ms();
	is(sim_fence(buf, FENCE_MS), 0, "long fence: of %d ms", FENCE_MS);
	start_map(&waiter, imp);
	ok(waits(buf), "long fence: map waits");

	is(imp_read(imp, 0, &(char){ 0 }, 1), EFAULT, "long fence: the device has no address yet");
	is(imp_info(imp).notifies, 0, "long fence: the import can be looked at");
	is(imp_release(elsewhere), 0, "long fence: the other buffer's import can go");
	is(imp_release(neighbour), 0, "long fence: so can the second one of this buffer");
	ok(now_ms() - started < FENCE_MS, "long fence: all that before it signals");
	pthread_join(waiter.thread, NULL);
	is(waiter.ret, 0, "long fence: map ends");
	ok(now_ms() - started >= FENCE_MS, "long fence: not before the fence");
	ok(imp_works(imp, buf, 0, SIZE, 1), "long fence: data both ways");
	close(imp);
	close(neighbour);
	close(elsewhere);
	dmabuf_free(buf);
	dmabuf_free(other);
}

/* The buffer is revoked, or only announced to move, while a map waits. */
static void taken_while_waiting(bool revoke)
{
	const char *what = revoke ? "revoked" : "notified";
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct waiter waiter;
	int imp = imp_open();

	is(imp_create(imp, buf, DMABUF_IMPORTER_DYNAMIC, 0, SIZE), 0, "%s in the wait: import",
	   what);
	is(sim_fence(buf, FENCE_MS), 0, "%s in the wait: fence", what);
	start_map(&waiter, imp);
	ok(waits(buf), "%s in the wait: map waits", what);
	if (revoke) {
		is(imp_revoke(imp), 0, "%s in the wait", what);
	} else {
		is(sim_move(buf, 0, VRAMSIM_MOVE_NOTIFY_ONLY, 0), 0, "%s in the wait", what);
		is(pthread_tryjoin_np(waiter.thread, NULL), EBUSY,
		   "%s in the wait: map goes on waiting", what);
	}
	pthread_join(waiter.thread, NULL);
	is(waiter.ret, revoke ? ENODEV : 0, "%s in the wait: map says %s", what,
	   strerror(revoke ? ENODEV : 0));
	is(imp_info(imp).notifies, 0, "%s in the wait: no device to be stopped", what);
	if (!revoke)
		ok(imp_works(imp, buf, 0, SIZE, 2), "%s in the wait: data both ways", what);
	close(imp);
	ok(nothing_mapped(buf), "%s in the wait: nothing left", what);
	dmabuf_free(buf);
}

/* Two threads fault on one import; one is enough to map it. */
static void two_faults(void)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct waiter waiters[2];
	int imp = imp_open();

	is(imp_create(imp, buf, DMABUF_IMPORTER_DYNAMIC, 0, SIZE), 0, "two faults: import");
	is(sim_fence(buf, 1000), 0, "two faults: fence");
	for (int i = 0; i < 2; i++)
		start_map(&waiters[i], imp);
	for (int i = 0; i < 2; i++) {
		pthread_join(waiters[i].thread, NULL);
		is(waiters[i].ret, 0, "two faults: thread %d", i);
	}
	is(imp_info(imp).maps, 1, "two faults: mapped once");
	ok(imp_works(imp, buf, 0, SIZE, 3), "two faults: data both ways");
	close(imp);
	dmabuf_free(buf);
}

/* A device that is fed with moves cannot be kept from mapping for good. */
static void endless_moves(void)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct waiter waiter;
	unsigned int moves = 0;
	int imp = imp_open();

	is(imp_create(imp, buf, DMABUF_IMPORTER_DYNAMIC, 0, SIZE), 0, "endless moves: import");
	is(sim_move(buf, VRAMSIM_PLACEMENT_SYSTEM, 0, 100), 0, "endless moves: first one");
	start_map(&waiter, imp);
	while (moves < 100 && pthread_tryjoin_np(waiter.thread, NULL)) {
		if (sim_move(buf, ++moves & 1 ? VRAMSIM_PLACEMENT_VRAM : VRAMSIM_PLACEMENT_SYSTEM,
			     0, 50))
			break;
	}
	ok(moves < 100, "endless moves: map won after %u moves", moves);
	is(waiter.ret, 0, "endless moves: map");
	close(imp);
	dmabuf_free(buf);
}

int main(void)
{
	struct counters start;
	bool kernel_moves;

	imp_setup();
	kernel_moves = imp_kernel_moves();
	counters_get(&start);
	for (uint32_t contract = 0; contract < IMP_CONTRACTS; contract++) {
		import_waits(contract);
		interrupted(contract, false);
		interrupted(contract, true);
	}
	others_go_on();
	taken_while_waiting(false);
	taken_while_waiting(true);
	two_faults();
	if (kernel_moves)
		endless_moves();
	ok(counters_back(&start, LONG_FENCE_MS + 5000), "counters are back");
	return tap_done();
}
