// SPDX-License-Identifier: GPL-2.0
/*
 * A long READ or WRITE whose memory is revoked under way ends in error, and a
 * READ never brings bytes that are not the buffer's: what has arrived is a piece
 * of the buffer, what has not is untouched.
 *
 *	test_rxe_read_revoke [--rounds N] [--seed N]
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rig.h"
#include "sim.h"
#include "tap.h"

#define SIZE	RIG_HOST_SIZE
#define WORDS	(SIZE / sizeof(uint64_t))
#define CANARY	0xc5c5c5c5c5c5c5c5ull
#define ENOUGH	3	/* revokes that must hit the middle of a transfer */

struct revoker {
	struct dmabuf *buf;
	uint64_t delay_ns;
	int err;
};

/* A word of the buffer tells where it is from, and is no canary. */
static uint64_t pattern(uint64_t round, size_t word)
{
	return round << 40 | word << 1 | 1;
}

static void *revoke_later(void *arg)
{
	struct revoker *revoker = arg;
	struct timespec delay = { .tv_nsec = revoker->delay_ns };

	nanosleep(&delay, NULL);
	revoker->err = sim_revoke(revoker->buf);
	return NULL;
}

static int transfer(struct rig *rig, enum ibv_wr_opcode opcode, const struct mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)rig->host, SIZE, rig->host_mr->lkey };

	return rc_do(&rig->pair.a, opcode, &sge, 0, mr->rkey);
}

/* Words of the buffer that are in host memory; -1 if any other bytes are. */
static ssize_t arrived(const uint64_t *host, uint64_t round)
{
	size_t count = 0;

	for (size_t i = 0; i < WORDS; i++) {
		if (host[i] == pattern(round, i)) {
			count++;
		} else if (host[i] != CANARY) {
			diag("  word %zu is %#llx", i, (unsigned long long)host[i]);
			return -1;
		}
	}
	return count;
}

static void check(struct rig *rig, enum ibv_wr_opcode opcode, const char *name, int rounds,
		  uint64_t *seed)
{
	uint64_t *host = (uint64_t *)rig->host;
	uint64_t *content = malloc(SIZE);
	int done = 0, refused = 0, middle = 0, other = 0, stale = 0, short_success = 0;
	uint64_t duration = 0;

	if (!content)
		bail("no memory");
	for (int round = 1; round <= rounds; round++) {
		struct revoker revoker = { .buf = rig_vram(SIZE, NULL) };
		pthread_t thread;
		uint64_t start;
		ssize_t words;
		struct mr mr;
		int status;

		for (size_t i = 0; i < WORDS; i++) {
			content[i] = pattern(round, i);
			host[i] = opcode == IBV_WR_RDMA_READ ? CANARY : pattern(round, i);
		}
		if (dmabuf_write(revoker.buf, 0, content, SIZE) ||
		    rig_reg(rig, dmabuf_fd(revoker.buf), 0, SIZE, 0, &mr))
			bail("set-up of round %d", round);

		/* the first rounds measure, the others aim at the middle */
		if (round > 2) {
			revoker.delay_ns = random_next(seed) % duration;
			if (pthread_create(&thread, NULL, revoke_later, &revoker))
				bail("pthread_create");
		}
		start = now_ns();
		status = transfer(rig, opcode, &mr);
		if (round <= 2)
			duration = now_ns() - start;
		else
			pthread_join(thread, NULL);
		if (revoker.err)
			bail("revoke: %s", strerror(revoker.err));

		if (status == IBV_WC_SUCCESS)
			done++;
		else if (status == IBV_WC_REM_ACCESS_ERR)
			refused++;
		else
			other++;
		if (status > 0 && status != IBV_WC_REM_ACCESS_ERR)
			diag("  round %d: %s", round, ibv_wc_status_str(status));
		else if (status < 0)
			diag("  round %d: no completion: %s", round, strerror(errno));
		if (opcode == IBV_WR_RDMA_READ) {
			words = arrived(host, round);
			stale += words < 0;
			short_success += status == IBV_WC_SUCCESS && words != WORDS;
			middle += status && words > 0;
		}
		if (status && rc_pair_reconnect(&rig->pair))
			bail("rc_pair_reconnect: %s", strerror(errno));
		mr_dereg(&mr);
		dmabuf_free(revoker.buf);
	}
	free(content);

	diag("%s: %d done, %d refused, %d of them in the middle; %llu us each", name, done,
	     refused, middle, (unsigned long long)duration / 1000);
	is(other, 0, "%s: success or remote access error, nothing else", name);
	ok(refused >= ENOUGH, "%s: revokes came early enough", name);
	if (opcode == IBV_WR_RDMA_READ) {
		ok(middle >= ENOUGH, "%s: revokes came late enough", name);
		is(stale, 0, "%s: no byte that is not the buffer's", name);
		is(short_success, 0, "%s: success only with all bytes", name);
	}
}

int main(int argc, char **argv)
{
	struct counters start;
	uint64_t seed;
	struct rig rig;
	int rounds;

	rig_up(&rig);
	rounds = option_number(argc, argv, "rounds", 40);
	seed = random_seed(argc, argv);
	counters_get(&start);
	check(&rig, IBV_WR_RDMA_READ, "READ", rounds, &seed);
	check(&rig, IBV_WR_RDMA_WRITE, "WRITE", rounds, &seed);
	ok(counters_back(&start, 1000), "counters are back");
	rig_down(&rig);
	return tap_done();
}
