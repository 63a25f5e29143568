// SPDX-License-Identifier: GPL-2.0
/*
 * The answer to the application: written without the exporter's lock held, and
 * if it cannot be written, the MR is gone as if it had been deregistered.  And
 * the PD counts each MR once, on the good path and on all bad ones.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE	(64 * KIB)
#define IOVA	0x900000000ull
#define PAGE	4096

static struct rig rig;
static struct dmabuf *buf;

/* A PD that nothing refers to can be freed; one with an MR cannot. */
static void pd_is_free(struct ibv_pd *pd, const char *name)
{
	is(ibv_dealloc_pd(pd), 0, "%s: the PD can be freed", name);
}

static struct mr_reg reg_in(struct ibv_pd *pd)
{
	struct mr_reg reg = rig_reg_args(&rig, dmabuf_fd(buf), 0, SIZE, IOVA, RIG_ACCESS);

	reg.pd = pd;
	return reg;
}

static void bad_response(const char *name, uint32_t *lkey_at, uint32_t *rkey_at)
{
	struct ibv_pd *pd = ibv_alloc_pd(rig.ctx);
	struct mr_reg reg = reg_in(pd);
	struct counters before;
	struct mr mr;

	counters_get(&before);
	reg.lkey_at = lkey_at;
	reg.rkey_at = rkey_at;
	for (int i = 0; i < 10; i++)
		is(mr_reg(&reg, &mr), EFAULT, "%s: EFAULT", name);
	ok(counters_back(&before, 0), "%s: nothing left at the exporter", name);
	pd_is_free(pd, name);
}

static void test_bad_responses(void)
{
	uint32_t *read_only = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t *gone = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t *kernel = (uint32_t *)0xffff888000000000ull;

	if (read_only == MAP_FAILED || gone == MAP_FAILED)
		bail("mmap");
	bad_response("lkey to a read-only page", read_only, NULL);
	bad_response("rkey to a read-only page", NULL, read_only);
	bad_response("lkey to nowhere", gone, NULL);
	bad_response("rkey to nowhere", NULL, gone);
	bad_response("lkey to a kernel address", kernel, NULL);
	bad_response("both to a read-only page", read_only, read_only);
	munmap(read_only, PAGE);
	munmap(gone, PAGE);
}

/*
 * A page that comes only when another thread brings it, and that thread takes
 * the exporter's lock first: with the lock held by the registration, it would
 * never come.
 */
struct fault_server {
	int uffd;
	int moved;	/* errno of the move, -1: no fault came */
};

static void *serve_fault(void *arg)
{
	static uint8_t zeros[PAGE] __attribute__((aligned(PAGE)));
	struct fault_server *server = arg;
	struct uffdio_copy copy = { .src = (uintptr_t)zeros, .len = PAGE };
	struct uffd_msg msg;

	if (read(server->uffd, &msg, sizeof(msg)) != sizeof(msg))
		return NULL;
	usleep(100 * 1000);
	server->moved = sim_move(buf, VRAMSIM_PLACEMENT_SYSTEM, 0, 0);
	copy.dst = msg.arg.pagefault.address & ~(PAGE - 1ull);
	ioctl(server->uffd, UFFDIO_COPY, &copy);
	return NULL;
}

static void test_slow_response(void)
{
	struct fault_server server = { .uffd = syscall(SYS_userfaultfd, O_CLOEXEC), .moved = -1 };
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register area = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct mr_reg reg = reg_in(rig.pair.b.pd);
	pthread_t thread;
	uint32_t *page;
	struct mr mr;

	if (server.uffd < 0) {
		skip("response in a page that another thread brings", "userfaultfd: %s",
		     strerror(errno));
		return;
	}
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	area.range.start = (uintptr_t)page;
	area.range.len = PAGE;
	if (page == MAP_FAILED || ioctl(server.uffd, UFFDIO_API, &api) ||
	    ioctl(server.uffd, UFFDIO_REGISTER, &area) ||
	    pthread_create(&thread, NULL, serve_fault, &server))
		bail("userfaultfd: %s", strerror(errno));
	reg.lkey_at = page;
	is(mr_reg(&reg, &mr), 0, "response in a page that another thread brings: registered");
	pthread_join(thread, NULL);
	is(server.moved, rig.traits.follows ? 0 : EBUSY,
	   "that thread took the exporter's lock meanwhile");
	ok(rig_works(&rig, &mr, IOVA, buf, 0, SIZE), "the MR works");
	is(mr_dereg(&mr), 0, "deregister");
	munmap(page, PAGE);
	close(server.uffd);
}

/* With @others there is one kernel mapping already, and nobody asks for it. */
static void steps_fail(const struct mr_reg *reg, bool others)
{
	struct mr mr;

	for (size_t i = 0; i < RIG_STEPS; i++) {
		const struct rig_step *step = &rig_steps[i];

		if (!rig_takes_step(&rig, step->step, 0) ||
		    (others && step->step == VRAMSIM_INJECT_VMAP))
			continue;
		sim_inject(buf, step->step, 1, ENOSPC);
		is(mr_reg(reg, &mr), step->seen, "%s fails", step->name);
	}
}

static void test_pd_count(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(rig.ctx);
	struct mr_reg reg = reg_in(pd), bad = reg;
	struct mr mr, second;

	is(mr_reg(&reg, &mr), 0, "register");
	is(mr_reg(&reg, &second), 0, "register once more");
	is(ibv_dealloc_pd(pd), EBUSY, "the PD of two MRs: EBUSY");
	is(mr_dereg(&mr), 0, "deregister one");
	is(ibv_dealloc_pd(pd), EBUSY, "the PD of one MR: EBUSY");

	/* A failure at each step must not take the count of the MR that is there. */
	bad.fd = -1;
	is(mr_reg(&bad, &mr), EBADF, "a bad fd");
	steps_fail(&reg, true);
	bad = reg;
	bad.length = SIZE + 1;
	is(mr_reg(&bad, &mr), EINVAL, "a window too long");
	is(ibv_dealloc_pd(pd), EBUSY, "the PD of one MR after failures: EBUSY");
	is(mr_dereg(&second), 0, "deregister it");

	steps_fail(&reg, false);
	pd_is_free(pd, "after it all");
}

int main(void)
{
	struct counters start;

	rig_up(&rig);
	counters_get(&start);
	buf = rig_vram(SIZE, NULL);
	test_bad_responses();
	test_slow_response();
	test_pd_count();
	dmabuf_free(buf);
	ok(counters_back(&start, 1000), "all counters back to the start");
	rig_down(&rig);
	return tap_done();
}
