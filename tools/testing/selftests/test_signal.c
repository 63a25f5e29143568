// SPDX-License-Identifier: GPL-2.0
/*
 * A registration that waits for the exporter's fence can be interrupted: it gives
 * EINTR, or starts anew with SA_RESTART, or dies with the process, and leaves
 * nothing behind.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "child.h"
#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE		(64 * KIB)
#define IOVA		0xa00000000ull
#define LONG_MS		60000
#define SHORT_MS	1500
#define ALARM_MS	100

static struct rig rig;
static volatile sig_atomic_t alarms;

static void count_alarm(int sig)
{
	(void)sig;
	alarms++;
}

/* A fence on a buffer that is revoked or freed is a timer still: let it expire. */
static struct dmabuf *fenced(uint32_t ms)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);

	if (sim_fence(buf, ms))
		bail("no fence");
	return buf;
}

static void alarm_in(int ms, int flags)
{
	struct sigaction action = { .sa_handler = count_alarm, .sa_flags = flags };
	struct itimerval timer = { .it_value.tv_usec = ms * 1000 };

	alarms = 0;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

static void test_interrupted(void)
{
	struct dmabuf *buf = fenced(LONG_MS);
	struct counters before;
	struct mr mr;
	uint64_t start, took;

	counters_get(&before);
	alarm_in(ALARM_MS, 0);
	start = now_ms();
	is(rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr), EINTR,
	   "signal in the wait for a fence: EINTR");
	took = now_ms() - start;
	ok(took >= ALARM_MS - 10 && took < 10000,
	   "it did wait, and no longer than to the signal (%" PRIu64 " ms)", took);
	is(alarms, 1, "the handler ran");
	ok(counters_back(&before, 0), "nothing left at the exporter");
	dmabuf_free(buf);
}

static void test_restarted(void)
{
	struct dmabuf *buf = fenced(SHORT_MS);
	uint64_t start = now_ms(), took;
	struct mr mr;

	alarm_in(ALARM_MS, SA_RESTART);
	is(rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr), 0,
	   "signal with SA_RESTART: the call starts anew and succeeds");
	took = now_ms() - start;
	is(alarms, 1, "the handler ran");
	ok(took >= SHORT_MS - 100, "not before the fence had signalled (%" PRIu64 " ms)", took);
	ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE), "the MR works");
	is(mr_dereg(&mr), 0, "deregister");
	dmabuf_free(buf);
}

/* A child on the device that waits: for the fence of @buf, or just so. */
struct waiter {
	struct dmabuf *buf;
	bool for_fence;
	int ready[2];
};

static int wait_in_child(void *arg)
{
	struct waiter *waiter = arg;
	struct ibv_context *ctx = rc_open(rig_device());
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	struct mr_reg reg = {
		.pd = pd,
		.fd = dmabuf_fd(waiter->buf),
		.length = SIZE,
		.iova = IOVA,
		.access = RIG_ACCESS,
	};
	struct mr mr;

	if (!pd)
		return 100;
	reg.driver_id = uverbs_driver_id(ctx);
	signal(SIGINT, SIG_DFL);
	if (write(waiter->ready[1], "", 1) != 1)
		return 101;
	if (waiter->for_fence)
		return mr_reg(&reg, &mr) ? 102 : 103;
	pause();
	return 104;
}

/* True when an importer has attached: the child is in the kernel, waiting. */
static bool attached(const struct dmabuf *buf, uint32_t count)
{
	struct drm_vramsim_gem_info info;

	for (int tries = 0; tries < 500; tries++) {
		if (!sim_gem_info(buf, &info) && info.attached == count)
			return true;
		usleep(10 * 1000);
	}
	return false;
}

/* How long the child lives on after @sig, in ms; -1 if it does not end by it */
static int64_t time_to_die(struct dmabuf *buf, int sig, bool for_fence)
{
	struct waiter waiter = { .buf = buf, .for_fence = for_fence };
	bool waits;
	uint64_t start;
	pid_t pid;
	char byte;

	if (pipe(waiter.ready))
		bail("pipe: %s", strerror(errno));
	pid = child_start(wait_in_child, &waiter);
	waits = read(waiter.ready[0], &byte, 1) == 1 && (!for_fence || attached(buf, 1));
	close(waiter.ready[0]);
	close(waiter.ready[1]);
	start = now_ms();
	kill(pid, sig);
	if (child_wait(pid, LONG_MS / 2) != CHILD_SIGNAL(sig) || !waits)
		return -1;
	return now_ms() - start;
}

static void test_killed(int sig, const char *name)
{
	struct dmabuf *buf = fenced(LONG_MS);
	struct counters before;
	int64_t idle, waiting;

	counters_get(&before);
	/* The end of any process takes its time on a slow machine. */
	idle = time_to_die(buf, sig, false);
	ok(idle >= 0, "%s ends a child that does nothing (%" PRId64 " ms)", name, idle);
	waiting = time_to_die(buf, sig, true);
	ok(waiting >= 0, "%s ends a child that registers and waits for the fence", name);
	ok(waiting < 1000 + 3 * idle, "%s: within a second (%" PRId64 " ms)", name, waiting);
	ok(counters_back(&before, 1000), "%s: nothing left at the exporter", name);
	dmabuf_free(buf);
}

int main(void)
{
	struct counters start;

	rig_up(&rig);
	if (!rig.traits.ours)
		tap_skip_all("the kernel's own code cannot be interrupted");
	counters_get(&start);
	test_interrupted();
	test_restarted();
	test_killed(SIGINT, "SIGINT");
	test_killed(SIGKILL, "SIGKILL");
	/* A pending fence may hold its buffer until it signals. */
	ok(counters_back(&start, LONG_MS + 5000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
