// SPDX-License-Identifier: GPL-2.0
/*
 * K09: threads that register, deregister, transfer, revoke, move, close and free
 * the same few buffers at once, in processes that are killed in the middle of it,
 * while somebody tries to unload the modules.  The kernel must not complain, and
 * nothing may be left.
 *
 *	test_k09 [--seconds N] [--seed N]
 *
 * Here the threads do not know of each other: a handle, an fd or a key may be
 * gone or be another one's by the time it is used.  test_storm is the orderly one.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xf86drm.h>

#include "child.h"
#include "netdev.h"
#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SLOTS		8
#define SIZE		(64 * KIB)
#define IOVA		0x1200000000ull
#define LIFE_MS		1500	/* of a process, at most */
#define NONE		UINT32_MAX

enum action {
	CREATE, FREE, EXPORT, CLOSE, REGISTER, DEREGISTER, REVOKE, MOVE, FENCE, TRANSFER,
	ACTIONS
};

static const char *const action_names[ACTIONS] = {
	"create", "free", "export", "close", "register", "deregister", "revoke", "move",
	"fence", "transfer",
};

/* Of each action: how often it was tried, and how often it came through */
static struct {
	_Atomic uint64_t tried[ACTIONS];
	_Atomic uint64_t done[ACTIONS];
	_Atomic uint64_t unloads_refused;
	_Atomic uint64_t unloads_done;
	_Atomic bool acting;		/* the process has come so far */
	_Atomic bool stop;
} *shared;

/* Plain numbers, that any thread uses and changes */
static struct slot {
	_Atomic uint32_t gem;
	_Atomic int fd;
	_Atomic uint32_t mr;
	_Atomic uint32_t rkey;
} slots[SLOTS];

static struct rig rig;
static int drm;

static int render(unsigned long request, void *arg)
{
	return ioctl(drm, request, arg) ? errno : 0;
}

static int create(struct slot *slot, uint64_t dice)
{
	struct drm_vramsim_gem_create args = {
		.size = SIZE,
		.placement = dice & 1 ? VRAMSIM_PLACEMENT_VRAM : VRAMSIM_PLACEMENT_SYSTEM,
		.flags = dice & 2 ? VRAMSIM_CREATE_STATIC : 0,
	};
	int err = render(DRM_IOCTL_VRAMSIM_GEM_CREATE, &args);
	uint32_t old;

	if (err)
		return err;
	old = atomic_exchange(&slot->gem, args.handle);
	if (old)
		drmCloseBufferHandle(drm, old);
	return 0;
}

static int export_fd(struct slot *slot)
{
	int fd, old;

	if (drmPrimeHandleToFD(drm, atomic_load(&slot->gem), DRM_CLOEXEC | DRM_RDWR, &fd))
		return errno;
	old = atomic_exchange(&slot->fd, fd);
	if (old >= 0)
		close(old);
	return 0;
}

static int deregister(uint32_t handle)
{
	struct mr mr = { .ctx = rig.ctx, .driver_id = rig.driver_id, .handle = handle };

	return handle == NONE ? ENOENT : mr_dereg(&mr);
}

static int register_mr(struct slot *slot)
{
	struct mr mr;
	int err = rig_reg(&rig, atomic_load(&slot->fd), 0, SIZE, IOVA, &mr);

	if (err)
		return err;
	atomic_store(&slot->rkey, mr.rkey);
	deregister(atomic_exchange(&slot->mr, mr.handle));
	return 0;
}

static int act(enum action action, struct slot *slot, uint64_t dice)
{
	struct drm_vramsim_gem_revoke revoke = { .handle = atomic_load(&slot->gem) };
	struct drm_vramsim_gem_fence fence = { .handle = revoke.handle, .fence_ms = dice % 4 };
	struct drm_vramsim_gem_move move = {
		.handle = revoke.handle,
		.placement = dice & 1 ? VRAMSIM_PLACEMENT_VRAM : VRAMSIM_PLACEMENT_SYSTEM,
		.flags = VRAMSIM_MOVE_SHUFFLE,
		.fence_ms = dice % 3,
	};
	int fd;

	switch (action) {
	case CREATE:
		return create(slot, dice);
	case FREE:
		return drmCloseBufferHandle(drm, atomic_exchange(&slot->gem, 0)) ? errno : 0;
	case EXPORT:
		return export_fd(slot);
	case CLOSE:
		fd = atomic_exchange(&slot->fd, -1);
		return fd >= 0 && !close(fd) ? 0 : EBADF;
	case REGISTER:
		return register_mr(slot);
	case DEREGISTER:
		return deregister(atomic_exchange(&slot->mr, NONE));
	case REVOKE:
		return render(DRM_IOCTL_VRAMSIM_GEM_REVOKE, &revoke);
	case MOVE:
		return render(DRM_IOCTL_VRAMSIM_GEM_MOVE, &move);
	case FENCE:
		return render(DRM_IOCTL_VRAMSIM_GEM_FENCE, &fence);
	default:
		return EINVAL;
	}
}

/* Every action but TRANSFER: that needs a queue pair of its own. */
static void *actor(void *arg)
{
	/* What builds up comes more often than what tears down. */
	static const enum action deck[] = {
		CREATE, CREATE, EXPORT, EXPORT, EXPORT, REGISTER, REGISTER, REGISTER, REGISTER,
		DEREGISTER, DEREGISTER, CLOSE, FREE, REVOKE, MOVE, MOVE, FENCE,
	};
	uint64_t random = *(uint64_t *)arg;

	while (!atomic_load(&shared->stop)) {
		uint64_t dice = random_next(&random);
		enum action action = deck[dice % (sizeof(deck) / sizeof(*deck))];

		atomic_fetch_add(&shared->tried[action], 1);
		if (!act(action, &slots[dice / 64 % SLOTS], dice / 1024))
			atomic_fetch_add(&shared->done[action], 1);
	}
	return NULL;
}

static int chaos(void *arg)
{
	uint64_t random = *(uint64_t *)arg, seeds[3];
	uint8_t bytes[512];
	pthread_t thread;

	rig_up(&rig);
	drm = sim_open();
	for (int i = 0; i < SLOTS; i++) {
		atomic_store(&slots[i].fd, -1);
		atomic_store(&slots[i].mr, NONE);
	}
	for (int i = 0; i < 3; i++) {
		seeds[i] = random_next(&random);
		if (pthread_create(&thread, NULL, actor, &seeds[i]))
			bail("pthread_create");
	}
	atomic_store(&shared->acting, true);
	while (!atomic_load(&shared->stop)) {
		uint64_t dice = random_next(&random);
		struct mr mr = { .rkey = atomic_load(&slots[dice % SLOTS].rkey) };
		uint64_t addr = IOVA + dice / 64 % (SIZE - sizeof(bytes));

		if (!mr.rkey) {
			usleep(1000);
			continue;
		}
		atomic_fetch_add(&shared->tried[TRANSFER], 1);
		if (!(dice & 512 ? rig_write(&rig, &mr, addr, bytes, sizeof(bytes)) :
				 rig_read(&rig, &mr, addr, bytes, sizeof(bytes))))
			atomic_fetch_add(&shared->done[TRANSFER], 1);
	}
	return 0;
}

static int unload(void *arg)
{
	/* mlx5_ib may be unloaded at any time: test_mlx5_removal. */
	static const char *const modules[] = { "vramsim", "ib_umem_dmabuf", "rdma_rxe" };
	int count = rig.traits.by_cpu ? 3 : rig.traits.ours ? 2 : 1;

	(void)arg;
	for (int i = 0; !atomic_load(&shared->stop); i = (i + 1) % count) {
		int err = module_unload(modules[i]);

		if (err == EBUSY || err == EWOULDBLOCK)
			atomic_fetch_add(&shared->unloads_refused, 1);
		else
			atomic_fetch_add(&shared->unloads_done, 1);
		usleep(100 * 1000);
	}
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t seconds = option_number(argc, argv, "seconds", 15), random, seed, deadline;
	int kills = 0, other_ends = 0;
	struct counters start;
	struct dmabuf *keeper;
	pid_t unloader;

	random = random_seed(argc, argv);
	rig_up(&rig);
	counters_get(&start);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (shared == MAP_FAILED)
		bail("mmap");

	/* Open device and buffer: no moment at which the modules could go. */
	keeper = rig_vram(SIZE, NULL);
	unloader = child_start(unload, NULL);
	deadline = now_ms() + 1000 * seconds;
	while (now_ms() < deadline || kills + other_ends < 3) {
		pid_t pid;
		int status;

		seed = random_next(&random);
		atomic_store(&shared->acting, false);
		pid = child_start(chaos, &seed);
		for (int i = 0; i < 6000 && !atomic_load(&shared->acting); i++)
			usleep(10 * 1000);
		usleep((LIFE_MS / 3 + random_next(&random) % (LIFE_MS * 2 / 3)) * 1000);
		kill(pid, SIGKILL);
		status = child_wait(pid, 60000);
		if (status == CHILD_SIGNAL(SIGKILL))
			kills++;
		else
			other_ends++;
	}
	atomic_store(&shared->stop, true);
	is(child_wait(unloader, 20000), 0, "the one who unloads ends");

	for (int i = 0; i < ACTIONS; i++) {
		uint64_t done = atomic_load(&shared->done[i]);

		diag("%-12s %8" PRIu64 " of %8" PRIu64, action_names[i], done,
		     atomic_load(&shared->tried[i]));
		ok(done, "%s: it came to that", action_names[i]);
	}
	diag("%-12s %8d", "kill -9", kills);
	diag("%-12s %8" PRIu64, "unload", atomic_load(&shared->unloads_refused));
	ok(kills >= 3, "processes were killed");
	is(other_ends, 0, "no process ended in another way");
	ok(atomic_load(&shared->unloads_refused) >= 3, "unloading was tried");
	is(atomic_load(&shared->unloads_done), 0, "and refused, each time");
	dmabuf_free(keeper);
	ok(counters_back(&start, 20000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
