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

static int register_forever(void *arg)
{
	struct dmabuf *buf = arg;
	struct ibv_context *ctx = rc_open(RIG_DEVICE);
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	struct mr_reg reg = {
		.pd = pd,
		.fd = dmabuf_fd(buf),
		.length = SIZE,
		.iova = IOVA,
		.access = RIG_ACCESS,
	};
	struct mr mr;

	if (!pd)
		return 100;
	reg.driver_id = uverbs_driver_id(ctx);
	signal(SIGINT, SIG_DFL);
	return mr_reg(&reg, &mr) ? 101 : 102;
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

static void test_killed(int sig, const char *name)
{
	struct dmabuf *buf = fenced(LONG_MS);
	struct counters before;
	uint64_t start, took;
	pid_t pid;

	counters_get(&before);
	pid = child_start(register_forever, buf);
	ok(attached(buf, 1), "%s: a child registers and waits for the fence", name);
	kill(pid, sig);
	start = now_ms();
	is(child_wait(pid, 20000), CHILD_SIGNAL(sig), "%s: it ends the child", name);
	took = now_ms() - start;
	ok(took < 1000, "%s: within a second (%" PRIu64 " ms)", name, took);
	ok(counters_back(&before, 1000), "%s: nothing left at the exporter", name);
	dmabuf_free(buf);
}

int main(void)
{
	struct counters start;

	rig_up(&rig);
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
