// SPDX-License-Identifier: GPL-2.0
/*
 * Devices and modules go when their users have gone: `rdma link del` waits for
 * the application, module unload is refused, and in the end all is clean.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "child.h"
#include "netdev.h"
#include "rig.h"
#include "sim.h"
#include "tap.h"

#define DEVICE	"rxe9"
#define SIZE	(64 * KIB)
#define FENCE_MS	60000
#define PATIENCE_MS	60000	/* a guest under load is slow */
#define IOVA	0xf00000000ull

/* How the application that holds the device is to behave */
struct holder {
	struct dmabuf *buf;
	int ready[2];		/* it says: registered, or about to */
	int leave[2];		/* it is told to go */
};

static struct dmabuf *vram;

static int hold(void *arg)
{
	struct holder *holder = arg;
	struct ibv_context *ctx = rc_open(DEVICE);
	struct mr_reg reg = {
		.pd = ctx ? ibv_alloc_pd(ctx) : NULL,
		.fd = dmabuf_fd(holder->buf),
		.length = SIZE,
		.iova = IOVA,
		.access = RIG_ACCESS,
	};
	struct mr mr;
	char byte = 0;

	if (!reg.pd)
		return 10;
	reg.driver_id = uverbs_driver_id(ctx);
	if (mr_reg(&reg, &mr))
		return 11;
	if (write(holder->ready[1], &byte, 1) != 1)
		return 12;
	if (read(holder->leave[0], &byte, 1) != 1)
		return 13;
	/* The device is on its way out, but not for us. */
	if (mr_dereg(&mr) || mr_reg(&reg, &mr))
		return 14;
	return 0;
}

static int delete_link(void *arg)
{
	(void)arg;
	return run("rdma link del " DEVICE) ? 0 : 1;
}

static pid_t start_holder(struct holder *holder, struct dmabuf *buf)
{
	pid_t pid;

	holder->buf = buf;
	if (pipe(holder->ready) || pipe(holder->leave))
		bail("pipe: %s", strerror(errno));
	pid = child_start(hold, holder);
	close(holder->ready[1]);
	return pid;
}

static void end_holder(struct holder *holder)
{
	if (write(holder->leave[1], "", 1) != 1)
		bail("write: %s", strerror(errno));
	close(holder->ready[0]);
	close(holder->leave[0]);
	close(holder->leave[1]);
}

static void test_link_del(const char *name, bool kill_it)
{
	struct counters before;
	struct holder holder;
	pid_t app, del;
	char byte;

	counters_get(&before);
	if (!soft_rdma_add(DEVICE, "rxe", 99))
		bail("no rxe");
	app = start_holder(&holder, vram);
	ok(read(holder.ready[0], &byte, 1) == 1, "%s: an application has an MR", name);
	del = child_start(delete_link, NULL);
	sleep(1);
	ok(!child_ended(del), "%s: `rdma link del` waits for it", name);
	ok(!child_ended(app), "%s: the application lives", name);
	if (kill_it) {
		kill(app, SIGKILL);
		end_holder(&holder);
		is(child_wait(app, PATIENCE_MS), CHILD_SIGNAL(SIGKILL), "%s: it is killed", name);
	} else {
		end_holder(&holder);
		is(child_wait(app, PATIENCE_MS), 0,
		   "%s: it deregisters, registers anew, and exits", name);
	}
	is(child_wait(del, PATIENCE_MS), 0, "%s: `rdma link del` ends", name);
	ok(access("/sys/class/infiniband/" DEVICE, F_OK), "%s: the device is gone", name);
	soft_rdma_del(DEVICE);
	ok(counters_back(&before, 1000), "%s: all counters back", name);
}

/* Removal while a registration waits for a fence, and cannot get out by itself */
static void test_link_del_fence(void)
{
	const char *name = "removal during a fence";
	struct dmabuf *buf = rig_vram(SIZE, NULL);
	struct drm_vramsim_gem_info info = { 0 };
	struct counters before;
	struct holder holder;
	uint64_t start;
	pid_t app, del;

	if (!soft_rdma_add(DEVICE, "rxe", 99))
		bail("no rxe");
	counters_get(&before);
	if (sim_fence(buf, FENCE_MS))
		bail("no fence");
	app = start_holder(&holder, buf);
	for (int tries = 0; tries < 500 && !info.attached; tries++) {
		usleep(10 * 1000);
		sim_gem_info(buf, &info);
	}
	is(info.attached, 1, "%s: an application registers and waits", name);
	del = child_start(delete_link, NULL);
	sleep(1);
	ok(!child_ended(del), "%s: `rdma link del` waits for it", name);
	start = now_ms();
	kill(app, SIGKILL);
	is(child_wait(app, PATIENCE_MS), CHILD_SIGNAL(SIGKILL), "%s: the application is killed", name);
	is(child_wait(del, PATIENCE_MS), 0, "%s: `rdma link del` ends", name);
	ok(now_ms() - start < 30000, "%s: long before the fence", name);
	end_holder(&holder);
	soft_rdma_del(DEVICE);
	ok(counters_back(&before, 1000), "%s: all counters back", name);
	dmabuf_free(buf);
}

static bool in_use(int err)
{
	return err == EBUSY || err == EWOULDBLOCK;
}

static void test_unload(void)
{
	struct rig rig;
	struct mr mr;

	rig_up(&rig);
	is(rig_reg(&rig, dmabuf_fd(vram), 0, SIZE, IOVA, &mr), 0, "register");
	ok(in_use(module_unload("rdma_rxe")), "rdma_rxe with an MR: in use");
	ok(in_use(module_unload("ib_umem_dmabuf")), "ib_umem_dmabuf under rdma_rxe: in use");
	ok(in_use(module_unload("vramsim")), "vramsim with a buffer: in use");
	ok(rig_works(&rig, &mr, IOVA, vram, 0, SIZE), "the MR works");
	is(mr_dereg(&mr), 0, "deregister");
	rig_down(&rig);
	ok(in_use(module_unload("ib_umem_dmabuf")), "ib_umem_dmabuf without an MR: in use, by rxe");
}

/* Everything out and in again.  The guest has rxe0 on dummy0. */
static void test_reload(void)
{
	struct rig rig;
	struct mr mr;

	ok(run("rdma link del " RIG_DEVICE), "`rdma link del " RIG_DEVICE "`");
	is(module_unload("rdma_rxe"), 0, "rdma_rxe is unloaded");
	/* The test importer is another user of the core, if it is there. */
	run("modprobe -q -r dmabuf_importer");
	is(module_unload("ib_umem_dmabuf"), 0, "ib_umem_dmabuf is unloaded");
	ok(!module_loaded("rdma_rxe") && !module_loaded("ib_umem_dmabuf"), "both are gone");
	ok(run("modprobe rdma_rxe && rdma link add " RIG_DEVICE " type rxe netdev dummy0"),
	   "and loaded anew");
	ok(soft_rdma_wait(RIG_DEVICE, 0), RIG_DEVICE " is up again");
	rig_up(&rig);
	is(rig_reg(&rig, dmabuf_fd(vram), 0, SIZE, IOVA, &mr), 0, "register");
	ok(rig_works(&rig, &mr, IOVA, vram, 0, SIZE), "the MR works");
	is(mr_dereg(&mr), 0, "deregister");
	rig_down(&rig);
}

int main(void)
{
	struct counters start;
	struct rig rig;

	rig_up(&rig);
	if (!rig.traits.by_cpu)
		tap_skip_all("for adapters there is test_mlx5_removal");
	rig_down(&rig);
	counters_get(&start);
	vram = rig_vram(SIZE, NULL);
	test_link_del("link del, application exits", false);
	test_link_del("link del, application is killed", true);
	test_link_del_fence();
	test_unload();
	test_reload();
	dmabuf_free(vram);
	ok(counters_back(&start, FENCE_MS + 5000), "all counters back to the start");
	return tap_done();
}
