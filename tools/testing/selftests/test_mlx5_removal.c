// SPDX-License-Identifier: GPL-2.0
/*
 * The adapter or its driver goes while applications have dma-buf MRs: idle, under
 * traffic with moves, in the middle of a page fault or of a registration that waits for
 * the exporter.  Nothing reaches the memory then, the exporter has all of it back, the
 * application lives on with errors, and when the device is back all works as before.
 * The same after a fatal error of the adapter.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "child.h"
#include "mlx5_rig.h"
#include "netdev.h"
#include "sim.h"
#include "tap.h"

#define SIZE		(256 * KIB)
#define IOVA		0x9900000000ull
#define FENCE_MS	60000
#define SOON_MS		25000	/* "long before the fence", on a slow machine */
#define PATIENCE_MS	60000
#define MRS		4

/* What an application does when the device goes */
enum activity {
	WAIT,		/* has its MRs, and waits to be told to go on */
	TRAFFIC,	/* WRITEs all the time */
	FAULT,		/* has posted a WRITE to a buffer that is busy */
	REGISTER,	/* is about to register a buffer that is busy */
};

/* Shared with the application */
static struct app {
	struct dmabuf *buf;
	enum activity activity;
	_Atomic bool ready;
	_Atomic bool go_on;
	_Atomic uint64_t writes;
	_Atomic int dereg, reg, advise;	/* errnos of its later calls, -1: not yet */
} *app;

static struct rig_traits traits;
static char pci[PATH_MAX];		/* address of the adapter */

static int app_register(struct rig *rig, struct mr *mrs)
{
	int err = 0;

	for (int i = 0; i < MRS && !err; i++)
		err = rig_reg(rig, dmabuf_fd(app->buf), 0, SIZE, IOVA, &mrs[i]);
	return err;
}

static void app_traffic(struct rig *rig, const struct mr *mr)
{
	static const uint8_t zeros[4096];
	struct ibv_sge sge = { (uintptr_t)rig->host, sizeof(zeros), rig->host_mr->lkey };
	struct ibv_wc wc;

	/* The device may be gone in the middle of it, and no completion comes. */
	while (!app->go_on && !rc_post(&rig->pair.a, IBV_WR_RDMA_WRITE, &sge, IOVA, mr->rkey) &&
	       !rc_wait(&rig->pair.a, &wc, 1000)) {
		app->writes++;
		app->ready = true;
	}
}

static int app_main(void *arg)
{
	struct mr mrs[MRS];
	struct ibv_sge sge;
	struct rig rig;

	(void)arg;
	rig_up(&rig);
	if (app->activity == REGISTER) {
		app->ready = true;
		app->reg = app_register(&rig, mrs);
		return 0;
	}
	if (app_register(&rig, mrs))
		return 1;
	sge = (struct ibv_sge){ (uintptr_t)rig.host, 4096, rig.host_mr->lkey };
	if (app->activity == FAULT) {
		/* The parent moves the buffer, and says so. */
		app->ready = true;
		while (!app->go_on)
			usleep(1000);
		app->go_on = false;
		if (rc_post(&rig.pair.a, IBV_WR_RDMA_WRITE, &sge, IOVA, mrs[0].rkey))
			return 2;
	} else if (app->activity == TRAFFIC) {
		app_traffic(&rig, &mrs[0]);
	}
	app->ready = true;
	while (!app->go_on)
		usleep(1000);
	app->advise = mr_advise(&mrs[0], rig.pair.b.pd, IOVA, 4096);
	app->dereg = mr_dereg(&mrs[0]);
	app->reg = rig_reg(&rig, dmabuf_fd(app->buf), 0, SIZE, IOVA, &mrs[0]);
	/* The rest is left to the kernel. */
	return 0;
}

static bool until(_Atomic bool *flag)
{
	for (int ms = 0; !*flag && ms < PATIENCE_MS; ms++)
		usleep(1000);
	return *flag;
}

static pid_t app_start(struct dmabuf *buf, enum activity activity)
{
	pid_t pid;

	*app = (struct app){
		.buf = buf, .activity = activity, .dereg = -1, .reg = -1, .advise = -1,
	};
	pid = child_start(app_main, NULL);
	if (!until(&app->ready))
		bail("the application does not get ready");
	return pid;
}

static int unbind(void *arg)
{
	(void)arg;
	return run("echo %s > /sys/bus/pci/drivers/mlx5_core/unbind", pci) ? 0 : 1;
}

static void bind_again(const char *name)
{
	struct ibv_context *ctx;

	ok(run("echo %s > /sys/bus/pci/drivers/mlx5_core/bind", pci), "%s: bind the driver again",
	   name);
	ctx = mlx5_open();
	ok(ctx, "%s: the port comes up", name);
	if (ctx)
		ibv_close_device(ctx);
}

static void works_again(const char *name)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct rig rig;
	struct mr mr;

	rig_up(&rig);
	is(rig_reg(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, &mr), 0, "%s: register then", name);
	ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE), "%s: and it works", name);
	is(mr_dereg(&mr), 0, "%s: deregister", name);
	rig_down(&rig);
	dmabuf_free(buf);
}

/* An MR that went with the device can be deregistered; all else gets EIO. */
static void app_ends(pid_t pid, const char *name)
{
	app->go_on = true;
	is(child_wait(pid, PATIENCE_MS), 0, "%s: the application ends well", name);
	is(app->dereg, 0, "%s: it could deregister", name);
	is(app->reg, EIO, "%s: it got EIO for registering", name);
	is(app->advise, EIO, "%s: for advice", name);
}

/* What nobody has attached any more can go where it likes. */
static void exporter_is_free(struct dmabuf *buf, const struct place *place, const char *name)
{
	struct drm_vramsim_gem_info info = sim_gem(buf);

	is(info.attached + info.mapped + info.pinned, 0,
	   "%s: the exporter has its all back, and the application lives", name);
	ok(place_unmapped(place), "%s: no key maps the memory", name);
	is(sim_move(buf, VRAMSIM_PLACEMENT_SYSTEM, 0, 0), info.revoked ? ENODEV : 0,
	   "%s: the buffer moves, if there is one", name);
}

enum before { MAPPED, MOVED, REVOKED };

/* The driver is unbound: nothing is left of the MRs of an application, and it comes back. */
static void all_over(struct dmabuf *buf, struct place *place, pid_t pid, const char *name)
{
	exporter_is_free(buf, place, name);
	app_ends(pid, name);
	bind_again(name);
	works_again(name);
	place_free(place);
	dmabuf_free(buf);
}

static void test_idle(const char *name, enum before before)
{
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct place place = place_of(buf);
	pid_t pid = app_start(buf, WAIT);

	if (before == MOVED)
		is(sim_move(buf, VRAMSIM_PLACEMENT_VRAM, VRAMSIM_MOVE_SHUFFLE, 0), 0, "%s", name);
	if (before == REVOKED)
		is(sim_revoke(buf), 0, "%s", name);
	is(unbind(NULL), 0, "%s: unbind the driver", name);
	all_over(buf, &place, pid, name);
}

static void test_traffic(void)
{
	const char *name = "under traffic and moves";
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	pid_t pid = app_start(buf, TRAFFIC), remover;
	int moves = 0;
	struct place place;

	for (int i = 0; i < 20; i++)
		moves += !sim_move(buf, VRAMSIM_PLACEMENT_VRAM, VRAMSIM_MOVE_SHUFFLE, 0);
	is(moves, traits.follows ? 20 : 0, "%s: %s", name,
	   traits.follows ? "it moves" : "it stays");
	ok(app->writes, "%s: there is some", name);
	remover = child_start(unbind, NULL);
	while (!child_ended(remover))
		sim_move(buf, VRAMSIM_PLACEMENT_VRAM, VRAMSIM_MOVE_SHUFFLE, 0);
	is(child_wait(remover, PATIENCE_MS), 0, "%s: unbind the driver", name);
	place = place_of(buf);
	all_over(buf, &place, pid, name);
}

/* The device waits for a page, the page fault for the exporter: nobody waits for them. */
static void test_fault(bool kill_it)
{
	const char *name = kill_it ? "kill -9 in a page fault" : "removal in a page fault";
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct counters start, moved;
	uint64_t faults, begun, took;
	pid_t pid;

	counters_get(&start);
	pid = app_start(buf, FAULT);
	faults = mlx5sim_stat(MLX5_LID, MLX5SIM_FAULTS);
	is(sim_move(buf, VRAMSIM_PLACEMENT_VRAM, VRAMSIM_MOVE_SHUFFLE, FENCE_MS), 0,
	   "%s: move, for a minute", name);
	/* Until the copy has ended, the exporter keeps the old place, too. */
	counters_get(&moved);
	start.vram_free = moved.vram_free;
	app->go_on = true;
	for (int ms = 0; ms < PATIENCE_MS && mlx5sim_stat(MLX5_LID, MLX5SIM_FAULTS) == faults;
	     ms += 10)
		usleep(10000);
	ok(mlx5sim_stat(MLX5_LID, MLX5SIM_FAULTS) > faults, "%s: the device faults", name);
	begun = now_ms();
	if (kill_it) {
		kill(pid, SIGKILL);
		is(child_wait(pid, 2 * FENCE_MS), CHILD_SIGNAL(SIGKILL), "%s: it is gone", name);
	} else {
		is(child_wait(child_start(unbind, NULL), 2 * FENCE_MS), 0,
		   "%s: unbind the driver", name);
	}
	took = now_ms() - begun;
	ok(took < SOON_MS || !traits.ours, "%s: long before the copy ends (%" PRIu64 " ms)", name,
	   took);
	ok(counters_back(&start, 5000), "%s: counters are back", name);
	if (!kill_it) {
		app_ends(pid, name);
		bind_again(name);
	}
	works_again(name);
	dmabuf_free(buf);
}

/* A registration that waits can only be ended by its own process. */
static void test_registration(void)
{
	const char *name = "removal in a registration";
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct counters start;
	pid_t pid, remover;
	uint64_t begun;

	counters_get(&start);
	if (sim_fence(buf, FENCE_MS))
		bail("no fence");
	pid = app_start(buf, REGISTER);
	for (int ms = 0; ms < PATIENCE_MS && !sim_gem(buf).attached; ms += 10)
		usleep(10000);
	is(sim_gem(buf).attached, 1, "%s: an application registers and waits", name);
	remover = child_start(unbind, NULL);
	sleep(1);
	ok(!child_ended(remover), "%s: unbinding waits for it", name);
	begun = now_ms();
	kill(pid, SIGKILL);
	is(child_wait(pid, PATIENCE_MS), CHILD_SIGNAL(SIGKILL), "%s: the application is killed",
	   name);
	is(child_wait(remover, PATIENCE_MS), 0, "%s: the driver is unbound", name);
	ok(now_ms() - begun < SOON_MS, "%s: long before the fence", name);
	ok(counters_back(&start, 1000), "%s: counters are back", name);
	bind_again(name);
	works_again(name);
	dmabuf_free(buf);
}

/*
 * The adapter gives up, and its driver starts it anew; devlink lets it do so once in
 * twenty minutes.  It looks every two seconds.
 */
static void test_fatal(void)
{
	const char *name = "fatal error";
	uint64_t begun = now_ms(), slowest = 0;
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct ibv_context *ctx;
	int wrong = 0;
	pid_t pid = app_start(buf, WAIT);
	struct place place;

	mlx5sim_order(MLX5_LID, "fatal:1");
	while (sim_gem(buf).attached && now_ms() - begun < PATIENCE_MS) {
		uint64_t start = now_ms(), took;
		int err = sim_move(buf, VRAMSIM_PLACEMENT_VRAM, VRAMSIM_MOVE_SHUFFLE, 0);

		took = now_ms() - start;
		slowest = took > slowest ? took : slowest;
		wrong += err && (err != EBUSY || traits.follows);
		usleep(1000);
	}
	is(wrong, 0, "%s: the exporter moves on all the while", name);
	ok(slowest < SOON_MS, "%s: without waiting (%" PRIu64 " ms)", name, slowest);
	place = place_of(buf);
	exporter_is_free(buf, &place, name);
	app_ends(pid, name);
	ctx = mlx5_open();
	ok(ctx, "%s: the port comes up by itself", name);
	if (ctx)
		ibv_close_device(ctx);
	works_again(name);
	place_free(&place);
	dmabuf_free(buf);
}

static bool in_use(int err)
{
	return err == EBUSY || err == EWOULDBLOCK;
}

/* The driver may go at any time, and takes the MRs with it; what it stands on may not. */
static void test_unload(void)
{
	const char *name = "unload";
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct place place = place_of(buf);
	pid_t pid = app_start(buf, WAIT);

	if (traits.ours)
		ok(in_use(module_unload("ib_umem_dmabuf")), "%s: ib_umem_dmabuf is in use", name);
	ok(in_use(module_unload("vramsim")), "%s: vramsim is in use", name);
	is(module_unload("mlx5_ib"), 0, "%s: mlx5_ib goes", name);
	exporter_is_free(buf, &place, name);
	app_ends(pid, name);
	if (traits.ours) {
		run("modprobe -q -r rdma_rxe dmabuf_importer");
		is(module_unload("ib_umem_dmabuf"), 0, "%s: ib_umem_dmabuf goes after it", name);
		ok(!module_loaded("ib_umem_dmabuf"), "%s: it is gone", name);
	}
	ok(mlx5_reload(), "%s: load all of it again", name);
	works_again(name);
	place_free(&place);
	dmabuf_free(buf);
}

static void find_device(void)
{
	char link[PATH_MAX];

	if (!realpath("/sys/class/infiniband/" MLX5_DEVICE "/device", link))
		bail(MLX5_DEVICE ": %s", strerror(errno));
	strcpy(pci, strrchr(link, '/') + 1);
}

int main(void)
{
	struct counters start;
	struct rig rig;

	mlx5_rig_up(&rig);
	traits = rig.traits;
	rig_down(&rig);
	counters_get(&start);
	find_device();
	app = mmap(NULL, sizeof(*app), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (app == MAP_FAILED)
		bail("mmap");

	test_idle("mapped", MAPPED);
	if (traits.follows)
		test_idle("moved, not mapped", MOVED);
	test_idle("revoked", REVOKED);
	test_traffic();
	if (traits.follows) {
		test_fault(false);
		test_fault(true);
		ok(counters_back(&start, FENCE_MS + 5000), "the exporter's copies have ended");
	}
	if (traits.ours)
		test_registration();
	else
		skip("removal in a registration", "the kernel's own code cannot be interrupted");
	test_fatal();
	test_unload();
	ok(counters_back(&start, FENCE_MS + 5000), "all counters back to the start");
	return tap_done();
}
