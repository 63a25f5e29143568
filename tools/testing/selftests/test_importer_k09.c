// SPDX-License-Identifier: GPL-2.0
/*
 * K09: all that ends an import, at once.  Threads import, access and release;
 * the exporter moves, notifies, revokes and frees; processes are killed in the
 * middle; somebody tries to unload the modules.  The kernel's own checks say
 * whether that went well, and the counters whether anything stayed.
 *
 * --seconds N: how long at least (20)
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "importer.h"
#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE		(256 * KIB)
#define BUFFERS		4
#define LONGER_MS	300000	/* on a slow machine */

/* A buffer that is shared out; whoever uses it has it locked against its end. */
static struct slot {
	pthread_rwlock_t lock;
	struct dmabuf *buf;
} slots[BUFFERS];

static atomic_bool stop;
static atomic_uint imports, refused, accesses, cut_off, moves, busy, revokes, kills, errors;

static void unexpected(const char *what, int error)
{
	if (atomic_fetch_add(&errors, 1) < 10)
		diag("%s: %s", what, strerror(error));
}

/* An import of some buffer, or false: then it has been revoked meanwhile. */
static bool import_any(int imp, uint64_t *random)
{
	struct slot *slot = &slots[random_next(random) % BUFFERS];
	uint64_t offset = random_next(random) % SIZE;
	uint64_t length = 1 + random_next(random) % (SIZE - offset);
	struct dmabuf_importer_create args = {
		.contract = random_next(random) % IMP_CONTRACTS,
		.offset = offset,
		.length = length,
		.access = DMABUF_IMPORTER_ACCESS_ALL,
		.notify_delay_ms = random_next(random) % 8 ? 0 : 2,
	};
	int ret;

	/* The fd is given up at once, the buffer may end as soon as that is done. */
	pthread_rwlock_rdlock(&slot->lock);
	args.fd = dup(dmabuf_fd(slot->buf));
	pthread_rwlock_unlock(&slot->lock);
	ret = imp_create_with(imp, &args);
	close(args.fd);
	if (!ret) {
		atomic_fetch_add(&imports, 1);
		return true;
	}
	if (ret == ENODEV)
		atomic_fetch_add(&refused, 1);
	else
		unexpected("import", ret);
	return false;
}

static void *keep_importing(void *arg)
{
	uint64_t random = (uintptr_t)arg;

	while (!atomic_load(&stop)) {
		int imp = imp_open();

		for (int i = 0; import_any(imp, &random) && i < 4; i++) {
			for (int j = random_next(&random) % 4; j; j--) {
				uint8_t byte = 0;
				int ret = imp_fault_write(imp, 0, &byte, 1);

				if (!ret)
					atomic_fetch_add(&accesses, 1);
				else if (ret == EACCES || ret == ENODEV)
					atomic_fetch_add(&cut_off, 1);
				else
					unexpected("access", ret);
			}
			if (random_next(&random) % 4 == 0)
				imp_revoke(imp);
			if (random_next(&random) % 2)
				break;	/* closing the file releases */
			imp_release(imp);
		}
		close(imp);
	}
	return NULL;
}

static void *keep_moving(void *arg)
{
	uint64_t random = (uintptr_t)arg;

	while (!atomic_load(&stop)) {
		struct slot *slot = &slots[random_next(&random) % BUFFERS];
		uint32_t place = random_next(&random) % 2 ? VRAMSIM_PLACEMENT_VRAM :
							    VRAMSIM_PLACEMENT_SYSTEM;
		int ret;

		pthread_rwlock_rdlock(&slot->lock);
		if (random_next(&random) % 4 == 0)
			ret = sim_move(slot->buf, 0, VRAMSIM_MOVE_NOTIFY_ONLY, 0);
		else
			ret = sim_move(slot->buf, place, VRAMSIM_MOVE_SHUFFLE,
				       random_next(&random) % 4 ? 0 : 3);
		pthread_rwlock_unlock(&slot->lock);
		if (!ret)
			atomic_fetch_add(&moves, 1);
		else if (ret == EBUSY)
			atomic_fetch_add(&busy, 1);
		else if (ret != ENODEV)
			unexpected("move", ret);
		usleep(1000);
	}
	return NULL;
}

/* Revokes a buffer under its importers, and puts a new one in its place. */
static void *keep_revoking(void *arg)
{
	uint64_t random = (uintptr_t)arg;

	while (!atomic_load(&stop)) {
		struct slot *slot = &slots[random_next(&random) % BUFFERS];
		struct dmabuf *old, *fresh = rig_vram(SIZE, NULL);
		int ret = sim_revoke(slot->buf);

		if (ret)
			unexpected("revoke", ret);
		atomic_fetch_add(&revokes, 1);
		usleep(2000);
		pthread_rwlock_wrlock(&slot->lock);
		old = slot->buf;
		slot->buf = fresh;
		pthread_rwlock_unlock(&slot->lock);
		dmabuf_free(old);
		usleep(10000);
	}
	return NULL;
}

/* Processes that import one buffer, often behind a fence, until they are killed. */
static void *keep_killing(void *arg)
{
	uint64_t random = (uintptr_t)arg;
	struct dmabuf *buf = rig_vram(SIZE, NULL);

	while (!atomic_load(&stop)) {
		uint32_t contract = random_next(&random) % IMP_CONTRACTS;
		pid_t pid;

		if (random_next(&random) % 2)
			sim_fence(buf, 20);
		pid = fork();
		if (!pid) {
			int imp = imp_open();

			for (;;) {
				imp_import(imp, buf, contract, 0, SIZE);
				imp_release(imp);
			}
		}
		usleep(random_next(&random) % 30000);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		atomic_fetch_add(&kills, 1);
	}
	dmabuf_free(buf);
	return NULL;
}

static bool too_few(void)
{
	return imports < 300 || accesses < 300 || !refused || !cut_off || moves < 50 ||
	       revokes < 50 || kills < 30;
}

int main(int argc, char **argv)
{
	void *(*const work[])(void *) = {
		keep_importing, keep_importing, keep_importing, keep_importing,
		keep_moving, keep_revoking, keep_killing,
	};
	static const char *const modules[] = { "dmabuf_importer", "ib_umem_dmabuf", "vramsim" };
	const size_t threads = sizeof(work) / sizeof(*work);
	uint64_t seconds = option_number(argc, argv, "seconds", 20);
	uint64_t seed = random_seed(argc, argv), end;
	unsigned int unloads = 0, unloaded = 0;
	struct counters start;
	pthread_t thread[threads];
	int held;

	imp_setup();
	counters_get(&start);
	held = imp_open();
	for (int i = 0; i < BUFFERS; i++) {
		pthread_rwlock_init(&slots[i].lock, NULL);
		slots[i].buf = rig_vram(SIZE, NULL);
	}
	for (size_t i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, work[i], (void *)(uintptr_t)(seed + i)))
			bail("no thread");
	end = now_ms() + seconds * 1000;
	while (now_ms() < end || (too_few() && now_ms() < end + LONGER_MS)) {
		for (size_t i = 0; i < sizeof(modules) / sizeof(*modules); i++, unloads++)
			unloaded += !syscall(SYS_delete_module, modules[i], O_NONBLOCK);
		usleep(100 * 1000);
	}
	atomic_store(&stop, true);
	for (size_t i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < BUFFERS; i++)
		dmabuf_free(slots[i].buf);
	close(held);

	diag("%u imports, %u refused as revoked, %u accesses, %u cut off", imports, refused,
	     accesses, cut_off);
	diag("%u moves, %u busy, %u revokes, %u kills, %u unloads tried", moves, busy, revokes,
	     kills, unloads);
	is(errors, 0, "no unexpected error");
	is(unloaded, 0, "no module went away");
	ok(!too_few(), "there was enough of everything");
	ok(counters_back(&start, 2000), "counters are back");
	return tap_done();
}
