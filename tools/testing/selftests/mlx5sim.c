// SPDX-License-Identifier: GPL-2.0
/*
 * The other side is tools/testing/mlx5sim/qemu/window.c: a question is a string at
 * the start of BAR 0; the adapter's LID written to BAR 2 puts the JSON answer behind
 * it and the answer's length into the next register.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mlx5sim.h"
#include "rc_pair.h"
#include "tap.h"

#define WINDOW_ID	"0x1234:0x6d35"
#define ANSWER		0x1000
#define REG_LID		0
#define REG_LENGTH	1
#define NO_DEVICE	0xffffffffu
#define NO_QUESTION	0xfffffffeu

static struct {
	char *memory;
	size_t size;
	_Atomic uint32_t *registers;
} window;

static bool read_line(const char *folder, const char *name, char *line, size_t size)
{
	char path[256];
	bool got;
	FILE *in;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	in = fopen(path, "re");
	if (!in)
		return false;
	got = fgets(line, size, in);
	fclose(in);
	if (got)
		line[strcspn(line, "\n")] = '\0';
	return got;
}

static bool is_window(const char *folder)
{
	char vendor[16], device[16], id[40];

	if (!read_line(folder, "vendor", vendor, sizeof(vendor)) ||
	    !read_line(folder, "device", device, sizeof(device)))
		return false;
	snprintf(id, sizeof(id), "%s:%s", vendor, device);
	return !strcmp(id, WINDOW_ID);
}

static void enable_device(const char *folder)
{
	char path[256];
	FILE *out;

	snprintf(path, sizeof(path), "%s/enable", folder);
	out = fopen(path, "we");
	if (!out || fputs("1", out) < 0 || fclose(out))
		bail("%s: %s", path, strerror(errno));
}

static void *map_bar(const char *folder, int number, size_t *size)
{
	char path[256];
	struct stat st;
	void *mapped;
	int fd;

	snprintf(path, sizeof(path), "%s/resource%d", folder, number);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		bail("%s: %s", path, strerror(errno));
	mapped = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED)
		bail("mmap %s: %s", path, strerror(errno));
	close(fd);
	*size = st.st_size;
	return mapped;
}

bool mlx5sim_there(void)
{
	size_t registers_size;
	glob_t devices;

	if (window.memory)
		return true;
	if (glob("/sys/bus/pci/devices/*", 0, NULL, &devices))
		return false;
	for (size_t i = 0; i < devices.gl_pathc && !window.memory; i++) {
		const char *folder = devices.gl_pathv[i];

		if (!is_window(folder))
			continue;
		enable_device(folder);
		window.registers = map_bar(folder, 2, &registers_size);
		window.memory = map_bar(folder, 0, &window.size);
	}
	globfree(&devices);
	return window.memory;
}

/* The answer, which lasts until the next question. */
__attribute__((format(printf, 2, 3)))
static const char *ask(uint16_t lid, const char *fmt, ...)
{
	uint32_t length;
	va_list ap;

	if (!mlx5sim_there())
		bail("no mlx5sim-window in this guest");
	va_start(ap, fmt);
	vsnprintf(window.memory, ANSWER, fmt, ap);
	va_end(ap);
	/* One plain access each: the question before, the answer behind. */
	atomic_store_explicit(&window.registers[REG_LID], lid, memory_order_release);
	length = atomic_load_explicit(&window.registers[REG_LENGTH], memory_order_acquire);
	if (length == NO_DEVICE)
		bail("mlx5sim: no adapter has LID %u", lid);
	if (length == NO_QUESTION)
		bail("mlx5sim: what is '%s'?", window.memory);
	if (length >= window.size - ANSWER)
		bail("mlx5sim: '%s': %u bytes of answer are too many", window.memory, length);
	return window.memory + ANSWER;
}

/* Puts @at behind the next value of @name; numbers come plain or as "0x...". */
static uint64_t number(const char **at, const char *name)
{
	char key[32];
	const char *p;

	snprintf(key, sizeof(key), "\"%s\":", name);
	p = strstr(*at, key);
	if (!p)
		bail("mlx5sim: no \"%s\" in the answer: %.200s", name, *at);
	p += strlen(key);
	p += *p == '"';
	return strtoull(p, (char **)at, 0);
}

uint64_t mlx5sim_stat(uint16_t lid, const char *name)
{
	const char *at = ask(lid, "stats");

	return number(&at, name);
}

void mlx5sim_order(uint16_t lid, const char *faults)
{
	const char *at = ask(lid, "order %s", faults);

	number(&at, "ordered");
}

uint64_t mlx5sim_memory(uint16_t lid, uint64_t addr, uint64_t *len)
{
	const char *at = ask(lid, "memory %#" PRIx64 " %#" PRIx64, addr, *len);
	uint64_t memory = number(&at, "memory");

	*len = number(&at, "len");
	return memory;
}

uint32_t mlx5sim_key_that_maps(uint16_t lid, uint64_t addr, uint64_t len)
{
	const char *at = ask(lid, "maps %#" PRIx64 " %#" PRIx64, addr, len);

	return number(&at, "maps") ? number(&at, "key") : 0;
}

bool mlx5sim_has_key(uint16_t lid, uint32_t key)
{
	return !strstr(ask(lid, "xlt %#x", key), "\"error\"");
}

static unsigned int count_keys(uint16_t lid, bool free_ones)
{
	const char *at = ask(lid, "keys");
	unsigned int count = 0;

	for (at = strstr(at, "\"free\":"); at; at = strstr(at, "\"free\":"))
		count += !number(&at, "free") || free_ones;
	return count;
}

unsigned int mlx5sim_keys(uint16_t lid)
{
	return count_keys(lid, true);
}

unsigned int mlx5sim_live_keys(uint16_t lid)
{
	return count_keys(lid, false);
}

unsigned int mlx5sim_live_keys_soon(uint16_t lid, unsigned int want)
{
	unsigned int keys = mlx5sim_live_keys(lid);

	for (int ms = 0; keys != want && ms < RC_PATIENCE_MS; ms += 10) {
		usleep(10000);
		keys = mlx5sim_live_keys(lid);
	}
	return keys;
}

/* Room for @more entries behind those that are there */
static struct mlx5sim_entry *more_entries(struct mlx5sim_key *key, size_t *room, uint64_t more)
{
	if (key->count + more > *room) {
		*room = 2 * *room + more;
		key->entries = realloc(key->entries, *room * sizeof(*key->entries));
		if (!key->entries)
			bail("no memory for %zu entries", *room);
	}
	key->count += more;
	return key->entries + key->count - more;
}

struct mlx5sim_key mlx5sim_key(uint16_t lid, uint32_t key)
{
	const char *at = ask(lid, "xlt %#x", key);
	struct mlx5sim_key k = { 0 };
	size_t room = 0;

	k.key = number(&at, "key");
	k.free = number(&at, "free");
	k.start = number(&at, "start");
	k.len = number(&at, "len");
	k.log_page_size = number(&at, "log_page_size");
	k.relaxed_write = number(&at, "relaxed_write");
	k.relaxed_read = number(&at, "relaxed_read");
	k.capacity = number(&at, "capacity");
	while (strchr(at, '{')) {
		struct mlx5sim_entry first = { .index = number(&at, "index") }, *entry;
		uint64_t count = number(&at, "count");

		first.addr = number(&at, "addr");
		first.len = number(&at, "len");
		first.key = number(&at, "key");
		first.readable = number(&at, "read");
		first.writable = number(&at, "write");
		entry = more_entries(&k, &room, count);
		for (uint64_t i = 0; i < count; i++) {
			entry[i] = first;
			entry[i].index += i;
			entry[i].addr += i * first.len;
		}
	}
	return k;
}
