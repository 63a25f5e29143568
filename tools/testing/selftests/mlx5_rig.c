// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "mlx5_rig.h"
#include "sim.h"
#include "tap.h"

#define PAGE		4096ull
#define TIMEOUT_MS	30000

void mlx5_rig_up(struct rig *rig)
{
	struct dmabuf *buf;
	struct mr mr;
	int ret;

	if (!mlx5sim_there())
		tap_skip_all("no simulated ConnectX");
	setenv("RIG_DEVICE", MLX5_DEVICE, 1);
	rig_up(rig);
	buf = rig_vram(PAGE, NULL);
	ret = rig_reg(rig, dmabuf_fd(buf), 0, PAGE, 0, &mr);
	if (ret == EOPNOTSUPP || ret == EPROTONOSUPPORT)
		tap_skip_all("this kernel's mlx5 registers no dma-bufs: %s", strerror(ret));
	if (ret)
		bail("registering a page: %s", strerror(ret));
	mr_dereg(&mr);
	dmabuf_free(buf);
}

/*
 * Older kernels have CONFIG_DMABUF_MOVE_NOTIFY for this, which Debian does not set:
 * there the dma-buf core pins what an importer maps.  In newer ones it is no option.
 */
bool mlx5_follows_moves(void)
{
	struct utsname os;

	uname(&os);
	return atoi(os.release) >= 7;
}

struct place place_of(const struct dmabuf *buf)
{
	struct place place;

	place.segments = sim_segments(buf, &place.count);
	return place;
}

void place_free(struct place *place)
{
	free(place->segments);
	*place = (struct place){ 0 };
}

bool place_unmapped(const struct place *place)
{
	for (size_t i = 0; i < place->count; i++) {
		const struct drm_vramsim_segment *s = &place->segments[i];
		uint32_t key = mlx5sim_key_that_maps(MLX5_LID, s->address, s->length);

		if (key) {
			diag("  key %#x maps some of %#llx + %#llx", key,
			     (unsigned long long)s->address, (unsigned long long)s->length);
			return false;
		}
	}
	return true;
}

/* The bus address of a byte; bails out beyond the buffer. */
static uint64_t bus_address(const struct place *place, uint64_t offset)
{
	for (size_t i = 0; i < place->count; i++) {
		if (offset < place->segments[i].length)
			return place->segments[i].address + offset;
		offset -= place->segments[i].length;
	}
	bail("a place ends before the buffer does");
}

/* The entry at @index, or NULL.  They come in ascending order. */
static const struct mlx5sim_entry *entry_at(const struct mlx5sim_key *key, uint64_t index)
{
	size_t low = 0, high = key->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (key->entries[middle].index < index)
			low = middle + 1;
		else
			high = middle;
	}
	return low < key->count && key->entries[low].index == index ? &key->entries[low] : NULL;
}

static bool leads_to(const struct mlx5sim_key *key, uint64_t iova, const struct place *place,
		     uint64_t offset, uint64_t length)
{
	uint64_t page = 1ull << key->log_page_size;
	uint64_t first = key->start & ~(page - 1);
	uint64_t end = iova + length;
	uint64_t step;

	if (key->free || key->start != iova || key->len != length) {
		diag("  key %#x: free %d, start %#" PRIx64 ", length %#" PRIx64, key->key,
		     key->free, key->start, key->len);
		return false;
	}
	for (; iova < end; iova += step, offset += step) {
		const struct mlx5sim_entry *e = entry_at(key, (iova - first) / page);
		uint64_t want = bus_address(place, offset);
		uint64_t got = e ? e->addr + (iova & (page - 1)) : 0;

		if (!e || got != want || !e->readable || !e->writable) {
			diag("  key %#x: %#" PRIx64 " leads to %#" PRIx64 " (%s%s), not %#" PRIx64,
			     key->key, iova, got, e && e->readable ? "r" : "",
			     e && e->writable ? "w" : "", want);
			return false;
		}
		step = PAGE - iova % PAGE;
	}
	return true;
}

bool mlx5_leads_to(const struct mr *mr, uint64_t iova, const struct place *place,
		   uint64_t offset, uint64_t length)
{
	struct mlx5sim_key key = mlx5sim_key(MLX5_LID, mr->lkey);
	bool good = leads_to(&key, iova, place, offset, length);

	free(key.entries);
	return good;
}

size_t mlx5_entries(const struct mr *mr)
{
	struct mlx5sim_key key = mlx5sim_key(MLX5_LID, mr->lkey);

	free(key.entries);
	return key.count;
}

/* Fresh bytes; the buffer lasts until the next call. */
static uint8_t *fresh(uint32_t length)
{
	static uint8_t bytes[RIG_HOST_SIZE];
	static uint64_t state = 5;

	for (uint32_t i = 0; i < length; i += 8) {
		uint64_t random = random_next(&state);

		memcpy(bytes + i, &random, length - i < 8 ? length - i : 8);
	}
	return bytes;
}

static bool completes(const char *what, int status)
{
	if (status)
		diag("  %s: status %d (%s)", what, status,
		     status < 0 ? strerror(errno) : ibv_wc_status_str(status));
	return !status;
}

static bool same(const char *where, const void *got, const void *want, uint32_t length)
{
	bool good = !memcmp(got, want, length);

	if (!good)
		diag("  %s: other bytes than were sent", where);
	return good;
}

static bool exporter_sees(const struct spot *spot, const void *want, uint32_t length)
{
	static uint8_t seen[RIG_HOST_SIZE];

	if (dmabuf_read(spot->buf, spot->offset, seen, length))
		bail("the exporter's view: %s", strerror(errno));
	return same("the exporter's view", seen, want, length);
}

static void exporter_puts(const struct spot *spot, const void *bytes, uint32_t length)
{
	if (dmabuf_write(spot->buf, spot->offset, bytes, length))
		bail("the exporter's access: %s", strerror(errno));
}

static struct ibv_sge host_sge(const struct spot *spot, uint32_t length)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)spot->rig->host,
		.length = length,
		.lkey = spot->rig->host_mr->lkey,
	};
}

static struct ibv_sge mr_sge(const struct spot *spot)
{
	return (struct ibv_sge){
		.addr = spot->iova,
		.length = spot->length,
		.lkey = spot->mr->lkey,
	};
}

static bool run_write(const struct spot *spot)
{
	const uint8_t *sent = fresh(spot->length);

	return completes("WRITE", rig_write(spot->rig, spot->mr, spot->iova, sent, spot->length)) &&
	       exporter_sees(spot, sent, spot->length);
}

static bool run_read(const struct spot *spot)
{
	static uint8_t got[RIG_HOST_SIZE];
	const uint8_t *sent = fresh(spot->length);

	exporter_puts(spot, sent, spot->length);
	return completes("READ", rig_read(spot->rig, spot->mr, spot->iova, got, spot->length)) &&
	       same("what READ brings", got, sent, spot->length);
}

static bool run_atomic(const struct spot *spot, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = host_sge(spot, 8);
	struct rc_end *end = &spot->rig->pair.a;
	uint64_t old, swap, want;
	struct ibv_wc wc;

	memcpy(&old, fresh(16), 8);
	memcpy(&swap, fresh(16), 8);
	want = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? old + 3 : swap;
	exporter_puts(spot, &old, 8);
	memset(spot->rig->host, 0, 8);
	if (rc_post_atomic(end, opcode, &sge, spot->iova, spot->mr->rkey,
			   opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 3 : old, swap))
		bail("%s: %s", rc_failed_call(), strerror(errno));
	return completes("atomic", rc_wait(end, &wc, TIMEOUT_MS)) &&
	       same("what the atomic brings", spot->rig->host, &old, 8) &&
	       exporter_sees(spot, &want, 8);
}

static bool run_fetch_add(const struct spot *spot)
{
	return run_atomic(spot, IBV_WR_ATOMIC_FETCH_AND_ADD);
}

static bool run_cmp_swap(const struct spot *spot)
{
	return run_atomic(spot, IBV_WR_ATOMIC_CMP_AND_SWP);
}

/* A message of @from, as long as @sge, that @to has posted @recv for */
static bool message(struct rc_end *from, const struct ibv_sge *sge, struct rc_end *to,
		    const struct ibv_sge *recv)
{
	struct ibv_wc wc;

	if (rc_post_recv(to, recv))
		bail("%s: %s", rc_failed_call(), strerror(errno));
	return completes("SEND", rc_do(from, IBV_WR_SEND, sge, 0, 0)) &&
	       completes("RECV", rc_wait(to, &wc, TIMEOUT_MS)) && wc.byte_len == sge->length;
}

static bool run_send(const struct spot *spot)
{
	struct ibv_sge from = mr_sge(spot), to = host_sge(spot, spot->length);
	struct rc_pair *pair = &spot->rig->pair;
	const uint8_t *sent = fresh(spot->length);

	exporter_puts(spot, sent, spot->length);
	return message(&pair->b, &from, &pair->a, &to) &&
	       same("what was received", spot->rig->host, sent, spot->length);
}

static bool run_recv(const struct spot *spot)
{
	struct ibv_sge from = host_sge(spot, spot->length), to = mr_sge(spot);
	struct rc_pair *pair = &spot->rig->pair;
	const uint8_t *sent = fresh(spot->length);

	memcpy(spot->rig->host, sent, spot->length);
	return message(&pair->a, &from, &pair->b, &to) && exporter_sees(spot, sent, spot->length);
}

const struct transfer transfers[TRANSFERS] = {
	{ "WRITE", run_write },
	{ "READ", run_read },
	{ "FETCH_AND_ADD", run_fetch_add },
	{ "CMP_AND_SWP", run_cmp_swap },
	{ "SEND", run_send },
	{ "RECV", run_recv },
};
