// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "mlx5_rig.h"
#include "netdev.h"
#include "restrack.h"
#include "sim.h"
#include "tap.h"

#define PAGE		4096ull
#define MLX5_PAGE_MAX	(2 * GIB)
#define PORT_MS		60000

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
	if (ret == EPROTONOSUPPORT && !mlx5_is_ours())
		tap_skip_all("this kernel's mlx5 registers no dma-bufs");
	if (ret)
		bail("registering a page: %s", strerror(ret));
	mr_dereg(&mr);
	dmabuf_free(buf);
}

struct ibv_context *mlx5_open(void)
{
	uint64_t give_up = now_ms() + PORT_MS;
	struct ibv_context *ctx = NULL;

	while (now_ms() < give_up) {
		struct ibv_port_attr port;

		if (!ctx)
			ctx = rc_open(MLX5_DEVICE);
		if (ctx && !ibv_query_port(ctx, 1, &port) && port.state == IBV_PORT_ACTIVE)
			return ctx;
		usleep(10000);
	}
	if (ctx)
		ibv_close_device(ctx);
	return NULL;
}

bool mlx5_reload(void)
{
	struct ibv_context *ctx;

	if (!run("modprobe -r mlx5_ib && modprobe -r mlx5_core && modprobe mlx5_ib"))
		return false;
	ctx = mlx5_open();
	return ctx && !ibv_close_device(ctx);
}

/* Of the kernel that runs: 5.10 is 5. */
static int kernel_major(void)
{
	struct utsname os;

	uname(&os);
	return atoi(os.release);
}

bool mlx5_is_ours(void)
{
	return !access("/sys/module/ib_umem_dmabuf", F_OK) && kernel_major() < 6;
}

/*
 * A move takes CONFIG_DMABUF_MOVE_NOTIFY, which Debian does not set and the debug
 * kernel does; from 6.19 on it is no option any more.  Without it the dma-buf core pins
 * what an importer maps.  A revoke gets through to all MRs on a buffer that can move.
 */
enum mlx5_mode mlx5_mode(void)
{
	const char *kernel = getenv("VM_KERNEL");

	if (!kernel)
		bail("no $VM_KERNEL: which kernel is this?");
	return kernel_major() >= 7 || !strcmp(kernel, "debug") ? MLX5_DYNAMIC : MLX5_REVOCABLE;
}

const char *mlx5_mode_name(enum mlx5_mode mode)
{
	return mode == MLX5_DYNAMIC ? "dynamic" : "revocable";
}

bool mlx5_says_mode(enum mlx5_mode mode)
{
	char line[1024];
	bool good;

	restrack_show(line, sizeof(line));
	good = mlx5_is_ours() ? restrack_says(line, "dmabuf_mode", mlx5_mode_name(mode)) : !*line;
	if (!good)
		diag("  rdma says: %s", line);
	return good;
}

bool mlx5_follows_moves(void)
{
	return mlx5_mode() == MLX5_DYNAMIC;
}

bool mlx5_small_pages(void)
{
	return kernel_major() == 6;
}

bool mlx5_behind_iommu(void)
{
	static int known = -1;
	glob_t groups;

	if (known < 0) {
		known = !glob("/sys/kernel/iommu_groups/*", 0, NULL, &groups);
		if (known)
			globfree(&groups);
	}
	return known;
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

bool place_holds(const struct place *place, const struct dmabuf *buf)
{
	struct place now = place_of(buf);
	bool same = now.count == place->count &&
		    !memcmp(now.segments, place->segments, now.count * sizeof(*now.segments));

	place_free(&now);
	return same;
}

static int by_address(const void *a, const void *b)
{
	const struct drm_vramsim_segment *left = a, *right = b;

	return left->address < right->address ? -1 : left->address > right->address;
}

/* Asks for runs of neighbours, in whatever order they are in the buffer. */
bool place_unmapped(const struct place *place)
{
	size_t bytes = place->count * sizeof(*place->segments);
	struct drm_vramsim_segment *sorted = malloc(bytes);
	uint32_t key = 0;
	size_t i = 0;

	if (!sorted)
		bail("no memory");
	memcpy(sorted, place->segments, bytes);
	qsort(sorted, place->count, sizeof(*sorted), by_address);
	while (i < place->count && !key) {
		uint64_t start = sorted[i].address, end = start;

		for (; i < place->count && sorted[i].address <= end; i++)
			if (sorted[i].address + sorted[i].length > end)
				end = sorted[i].address + sorted[i].length;
		key = mlx5sim_key_that_maps(MLX5_LID, start, end - start);
		if (key)
			diag("  key %#x maps some of %#" PRIx64 " + %#" PRIx64, key, start,
			     end - start);
	}
	free(sorted);
	return !key;
}

/* A position in a place, which only goes on. */
struct walk {
	const struct place *place;
	size_t segment;
	uint64_t at;		/* offset in the segment */
};

/* Goes on by @bytes, to where a byte is; bails out beyond the buffer. */
static void walk_on(struct walk *w, uint64_t bytes)
{
	for (w->at += bytes; w->segment < w->place->count &&
	     w->at >= w->place->segments[w->segment].length; w->segment++)
		w->at -= w->place->segments[w->segment].length;
	if (w->segment == w->place->count)
		bail("a place ends before the buffer does");
}

static uint64_t walk_address(const struct walk *w)
{
	return w->place->segments[w->segment].address + w->at;
}

/* Bytes to the end of the segment */
static uint64_t walk_left(const struct walk *w)
{
	return w->place->segments[w->segment].length - w->at;
}

static uint64_t min_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* As mlx5sim_memory(), which is only asked where it knows better. */
static uint64_t memory_at(uint64_t address, uint64_t *len)
{
	return mlx5_behind_iommu() ? mlx5sim_memory(MLX5_LID, address, len) : address;
}

static bool is_live(const struct mlx5sim_key *key, uint64_t iova, uint64_t length)
{
	if (!key->free && key->start == iova && key->len == length)
		return true;
	diag("  key %#x: free %d, start %#" PRIx64 ", length %#" PRIx64, key->key, key->free,
	     key->start, key->len);
	return false;
}

/* The address in the key's space of the page that entry @index leads to */
static uint64_t page_start(const struct mlx5sim_key *key, uint64_t index)
{
	uint64_t page = 1ull << key->log_page_size;

	return (key->start & ~(page - 1)) + index * page;
}

/* Entry by entry and segment by segment: the addresses within one of each are in line. */
static bool leads_to(const struct mlx5sim_key *key, uint64_t iova, const struct place *place,
		     uint64_t offset, uint64_t length)
{
	const struct mlx5sim_entry *e = key->entries, *end = e + key->count;
	uint64_t page = 1ull << key->log_page_size;
	uint64_t first = page_start(key, 0);
	struct walk w = { .place = place };

	walk_on(&w, offset);
	for (;;) {
		uint64_t in_page = iova & (page - 1);
		uint64_t want = walk_address(&w), got, step;

		while (e < end && e->index < (iova - first) / page)
			e++;
		if (e == end || e->index > (iova - first) / page) {
			diag("  key %#x: no entry for %#" PRIx64, key->key, iova);
			return false;
		}
		step = min_of(page - in_page, walk_left(&w));
		got = memory_at(e->addr + in_page, &step);
		if (got != want || !e->readable || !e->writable) {
			diag("  key %#x: %#" PRIx64 " leads to %#" PRIx64 " (%s%s), not %#" PRIx64,
			     key->key, iova, got, e->readable ? "r" : "",
			     e->writable ? "w" : "", want);
			return false;
		}
		if (step >= length)
			return true;
		length -= step;
		iova += step;
		walk_on(&w, step);
	}
}

bool mlx5_leads_to(const struct mr *mr, uint64_t iova, const struct place *place,
		   uint64_t offset, uint64_t length)
{
	struct mlx5sim_key key = mlx5sim_key(MLX5_LID, mr->lkey);
	bool good = is_live(&key, iova, length) && leads_to(&key, iova, place, offset, length);

	free(key.entries);
	return good;
}

/* Looks at runs of entries, with what is not present between them. */
bool mlx5_leads_nowhere_else(const struct mr *mr, uint64_t iova, const struct place *place,
			     uint64_t offset, uint64_t length)
{
	struct mlx5sim_key key = mlx5sim_key(MLX5_LID, mr->lkey);
	const struct mlx5sim_entry *e = key.entries, *end = e + key.count;
	bool good = is_live(&key, iova, length);

	while (e < end && good) {
		uint64_t from = max_of(page_start(&key, e->index), iova), to;

		for (e++; e < end && e->index == e[-1].index + 1; e++)
			;
		to = min_of(page_start(&key, e[-1].index + 1), iova + length);
		good = leads_to(&key, from, place, offset + from - iova, to - from);
	}
	free(key.entries);
	return good;
}

size_t mlx5_entries(const struct mr *mr)
{
	struct mlx5sim_key key = mlx5sim_key(MLX5_LID, mr->lkey);

	free(key.entries);
	return key.count;
}

/* Whether pages of that size can be mapped where each segment is. */
static bool pages_fit(uint64_t page, uint64_t iova, struct walk w, uint64_t length)
{
	bool merge = mlx5_is_ours();

	for (;;) {
		uint64_t address = walk_address(&w), left = walk_left(&w);
		bool in_line;

		if ((address - iova) % page)
			return false;
		if (left >= length)
			return true;
		length -= left;
		iova += left;
		walk_on(&w, left);
		in_line = merge && walk_address(&w) == address + left;
		if (!in_line && iova % page)
			return false;
	}
}

struct place mlx5_bus_place(const struct mr *mr)
{
	struct mlx5sim_key key = mlx5sim_key(MLX5_LID, mr->lkey);
	struct place bus = { calloc(key.count, sizeof(*bus.segments)), key.count };

	if (!bus.segments)
		bail("a key without entries");
	for (size_t i = 0; i < key.count; i++)
		bus.segments[i] = (struct drm_vramsim_segment){
			key.entries[i].addr, key.entries[i].len,
		};
	free(key.entries);
	return bus;
}

size_t mlx5_fewest_entries(const struct mr *mr, uint64_t iova, const struct place *place,
			   uint64_t offset, uint64_t length)
{
	uint64_t page = mlx5_small_pages() ? PAGE : MLX5_PAGE_MAX;
	struct place bus = { 0 };
	struct walk w = { .place = place };

	if (mlx5_behind_iommu()) {
		bus = mlx5_bus_place(mr);
		w.place = &bus;
		offset = iova % bus.segments[0].length;
	}
	walk_on(&w, offset);
	while (page > PAGE && !pages_fit(page, iova, w, length))
		page /= 2;
	place_free(&bus);
	return (iova % page + length - 1) / page + 1;
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
	return completes("atomic", rc_wait(end, &wc, RC_PATIENCE_MS)) &&
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
	       completes("RECV", rc_wait(to, &wc, RC_PATIENCE_MS)) && wc.byte_len == sge->length;
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

/* What belongs @at bytes into a spot: a bijection of its place and the seed. */
static uint8_t *words(uint64_t at, uint32_t length, uint64_t seed)
{
	static uint64_t made[RIG_HOST_SIZE / 8];

	for (uint32_t i = 0; i < (length + 7) / 8; i++)
		made[i] = ((seed << 48) + at / 8 + i) * 0x9e3779b97f4a7c15ull;
	return (uint8_t *)made;
}

/* Goes through the spot in pieces of host memory's size. */
static bool words_do(const struct spot *spot, uint64_t seed,
		     bool (*run)(const struct spot *piece, uint8_t *words))
{
	struct spot piece = *spot;

	for (uint64_t at = 0; at < spot->length; at += piece.length) {
		piece.iova = spot->iova + at;
		piece.offset = spot->offset + at;
		piece.length = min_of(spot->length - at, RIG_HOST_SIZE);
		if (!run(&piece, words(at, piece.length, seed))) {
			diag("  in %u bytes at offset %#" PRIx64, piece.length, piece.offset);
			return false;
		}
	}
	return true;
}

static bool piece_write(const struct spot *piece, uint8_t *words)
{
	return completes("WRITE", rig_write(piece->rig, piece->mr, piece->iova, words,
					    piece->length));
}

static bool piece_read(const struct spot *piece, uint8_t *words)
{
	static uint8_t got[RIG_HOST_SIZE];

	return completes("READ", rig_read(piece->rig, piece->mr, piece->iova, got,
					  piece->length)) &&
	       same("what READ brings", got, words, piece->length);
}

static bool piece_exporter_puts(const struct spot *piece, uint8_t *words)
{
	exporter_puts(piece, words, piece->length);
	return true;
}

static bool piece_exporter_sees(const struct spot *piece, uint8_t *words)
{
	return exporter_sees(piece, words, piece->length);
}

bool words_write(const struct spot *spot, uint64_t seed)
{
	return words_do(spot, seed, piece_write);
}

bool words_read(const struct spot *spot, uint64_t seed)
{
	return words_do(spot, seed, piece_read);
}

bool words_exporter_puts(const struct spot *spot, uint64_t seed)
{
	return words_do(spot, seed, piece_exporter_puts);
}

bool words_exporter_sees(const struct spot *spot, uint64_t seed)
{
	return words_do(spot, seed, piece_exporter_sees);
}
