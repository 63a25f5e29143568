// SPDX-License-Identifier: GPL-2.0
/* Injected faults, capabilities, traces and questions. */
#include <stdlib.h>

#include "../../selftests/tap.h"
#include "../model/inject.h"
#include "../model/qp.h"
#include "fake.h"

#define VA		0x200000000000ull
#define MSEC		1000000ull

static struct dev *d;
static struct fqp *qa, *qb, *uq;

static void setup(const char *faults, const char *caps)
{
	const struct mlx5sim_config config = {
		.lid = 1, .strict = true, .faults = faults, .caps = caps,
	};
	struct qp_arg arg = { .type = MLX5_QPC_ST_REG_UMR };

	d = dev_running(&config);
	qp_pair(d, d, &qa, &qb, NULL);
	uq = qp_make(d, &arg);
	qp_connect(uq, 0, 0, NULL);
}

static void teardown(void)
{
	ok(!d->violation, "no rule broken (%s)", d->text);
	dev_free(d);
	machine_reset();
}

static int query(void)
{
	u8 out[112];

	return dev_simple(d, MLX5_CMD_OP_QUERY_ISSI, 0, 0, out, sizeof(out));
}

static int nop(void)
{
	struct wqe w;

	wqe_begin(&w, qa, WQE_NOP, SIGNALED, 0);
	wqe_post(&w);
	return !!cq_poll(qa->scq);
}

static void command_status(void)
{
	struct mkey_arg arg = { .mode = MLX5_MKC_ACCESS_MODE_MTT, .free = true };
	u32 key[3];

	/* The first CREATE_MKEY is that of the load */
	setup("0x200:3:8", NULL);
	for (u32 i = 0; i < 3; i++)
		key[i] = mkey_make(d, &arg);
	ok(key[0] && !key[1] && key[2], "the third CREATE_MKEY fails");
	ok(mlx5sim_stats(d->sim)->mkeys == 3, "it was not run");
	mlx5sim_reset(d->sim);
	d->pages = 0;
	ok(!dev_boot(d) && mkey_make(d, &arg) && !mkey_make(d, &arg),
	   "counted anew after reset");
	teardown();
}

static void command_late(void)
{
	u8 *lay;

	setup("cmd-delay:0x10a:2:5000000", NULL);
	lay = mem(d->cmdq + 64 * 3);
	ok(query() == -1 && lay[63] & 1, "the command is not completed");
	machine_run(4 * MSEC);
	ok(lay[63] & 1, "not after 4 ms");
	machine_run(2 * MSEC);
	ok(!(lay[63] & 1), "after 5 ms it is");
	ok(!query(), "the next one is not late");
	teardown();

	setup("cmd-drop:0x10a:2", NULL);
	ok(query() == -1, "completion lost");
	machine_run(1000 * MSEC);
	ok(*((u8 *)mem(d->cmdq + 64 * 3) + 63) & 1, "for good");
	ok(!query(), "the slot can be used again");
	teardown();
}

static void completion_late(void)
{
	setup("cqe-delay:0:2:5000000", NULL);
	ok(nop(), "the first NOP");
	ok(!nop(), "the second is late");
	ok(!nop(), "the third waits behind it");
	machine_run(4 * MSEC);
	ok(!cq_poll(qa->scq), "not after 4 ms");
	machine_run(2 * MSEC);
	ok(cqe_counter(cq_poll(qa->scq)) == 1 &&
	   cqe_counter(cq_poll(qa->scq)) == 2, "after 5 ms both, in order");
	teardown();

	setup("cqe-drop:0x25:1", NULL);
	{
		struct mkey_arg arg = {
			.mode = MLX5_MKC_ACCESS_MODE_MTT, .free = true,
		};
		struct umr_arg u = { .flags = UMR_INLINE };

		u.key = mkey_make(d, &arg);
		ok(umr(uq, &u) == -1, "completion of a UMR lost");
		ok(!umr(uq, &u), "the next one is there");
		ok(mlx5sim_stats(d->sim)->umrs == 2, "both were executed");
	}
	teardown();
}

/* The request is not executed, and those behind it are flushed. */
static void completion_in_error(void)
{
	static const u8 syndromes[] = { 0, SYN_LOCAL_QP_OP, SYN_FLUSH };
	u8 *cqe;

	setup("cqe-error:0:2,cqe-error:0x25:2", NULL);
	for (u32 i = 0; i < ARRAY_SIZE(syndromes); i++) {
		struct wqe w;

		wqe_begin(&w, qa, WQE_NOP, SIGNALED, 0);
		wqe_queue(&w);
	}
	qp_ring(qa);
	for (u32 i = 0; i < ARRAY_SIZE(syndromes); i++) {
		cqe = wait_cqe(qa->scq, MSEC);
		ok(cqe && cqe_counter(cqe) == i &&
		   cqe_syndrome(cqe) == syndromes[i],
		   "NOP %u: syndrome 0x%x", i, syndromes[i]);
	}
	ok(qp_state(qa) == MLX5_QPC_STATE_ERR, "the QP is in error");
	{
		struct mkey_arg arg = {
			.mode = MLX5_MKC_ACCESS_MODE_MTT, .free = true,
		};
		struct umr_arg u = { .flags = UMR_INLINE };
		struct umr_arg lives = { 0 };
		u64 at;

		u.key = mkey_make(d, &arg);
		ok(!umr(uq, &u), "the first UMR");
		lives.key = mr_make(d, VA, PAGE, ALL_RIGHTS, &at);
		umr_mkc(&lives, d, 0, 0, 0, 12);
		lives.mask = UMR_MASK_FREE;
		ifc_set(mkc, lives.mkc, free, 1);
		ok(umr(uq, &lives) == SYN_LOCAL_QP_OP, "the second fails");
		ok(mlx5sim_maps(d->sim, at, PAGE, NULL), "it changed nothing");
		ok(umr(uq, &u) == SYN_FLUSH, "the third is flushed");
		ok(mlx5sim_stats(d->sim)->umrs == 1, "one was executed");
		ok(mlx5sim_stats(d->sim)->injected == 2, "two faults counted");
	}
	teardown();
}

/* Faults ordered while the device runs count from then on. */
static void ordered(void)
{
	char answer[64];
	u32 failed = 0;

	setup("cqe-error:0:9", NULL);
	ok(nop() && nop(), "two NOPs");
	ok(mlx5sim_order(d->sim, "cqe-drop:0:2"), "order");
	ok(nop() && !nop() && nop(), "the second from now on");
	ok(mlx5sim_order(d->sim, "cqe-drop:0:1,cqe-drop:0:3"), "order two");
	ok(!nop() && nop() && !nop(), "both");
	ok(!mlx5sim_order(d->sim, "cqe-drop:0:1,nonsense"), "not understood");
	ok(nop(), "nothing was ordered");
	for (u32 i = 0; i < 2 * INJECTIONS; i++)
		failed += mlx5sim_order(d->sim, "0x10a:1:3") && query() == 3;
	ok(failed == 2 * INJECTIONS, "what has happened takes no room");
	for (u32 i = 0; i < INJECTIONS - 1; i++)
		mlx5sim_order(d->sim, "0x10a:1000:3");
	ok(!mlx5sim_order(d->sim, "0x10a:1:3"), "no room for more");
	ok(mlx5sim_ask(d->sim, "order 0x10a:1:3", answer, sizeof(answer)) > 0 &&
	   strstr(answer, "error"), "as text: %s", answer);
	mlx5sim_reset(d->sim);
	ok(mlx5sim_ask(d->sim, "order 0x800:1:3", answer, sizeof(answer)) > 0 &&
	   !strcmp(answer, "{\"ordered\":1}"),
	   "a reset forgot them: %s", answer);
	d->pages = 0;
	mlx5sim_reset(d->sim);
	ok(!dev_boot(d), "the device loads");
	ok(mlx5sim_stats(d->sim)->injected == 0, "and has no fault");
	teardown();
}

static u32 interface(void)
{
	return mlx5sim_bar_read(d->sim, 0x14, 4) >> 8 & 7;
}

static void fatal(void)
{
	struct mkey_arg arg = { .mode = MLX5_MKC_ACCESS_MODE_MTT, .free = true };
	char answer[512];
	u32 key;

	setup("fatal:2", NULL);
	key = mkey_make(d, &arg);
	mlx5sim_bar_read(d->sim, 0x1010, 4);
	ok(key && nop() && !interface(), "the first look at its health");
	mlx5sim_bar_read(d->sim, 0x1010, 4);
	ok(interface() == 1, "the second: it has no interface");
	ok(mlx5sim_ask(d->sim, "keys", answer, sizeof(answer)) > 0 && !strstr(answer, "0x"),
	   "nor keys: %s", answer);
	ok(!nop(), "it hears no doorbell");
	mlx5sim_bar_write(d->sim, 0x14, 1u << 8, 4);
	ok(interface() == 1, "nor one who wants it off");
	d->pages = 0;
	ok(!dev_boot(d) && !interface(), "started anew, it loads");
	ok(query() == 0, "and answers");
	teardown();
}

static void resume(void)
{
	struct mkey_arg odp = {
		.mode = MLX5_MKC_ACCESS_MODE_MTT, .rights = ALL_RIGHTS,
		.len = PAGE, .log_page = 12, .octwords = 1,
	};
	struct pf pf;
	u8 *cqe;

	setup("resume-error:2", NULL);
	post_write(qa, 0, 0, mkey_make(d, &odp), 0, 64);
	pf_poll(d, &pf);
	pf_resume(d, &pf, false);
	machine_run(1);
	ok(pf_poll(d, &pf), "first resume: the fault comes again");
	pf_resume(d, &pf, false);
	cqe = wait_cqe(qa->scq, MSEC);
	ok(cqe && cqe_syndrome(cqe) == SYN_LOCAL_PROT,
	   "second resume counts as one with error");
	teardown();
}

static u64 general_cap(u16 current, size_t first, size_t width)
{
	u8 out[16 + 4096];

	dev_simple(d, MLX5_CMD_OP_QUERY_HCA_CAP, current, 0, out, sizeof(out));
	return ifc_load(out + 16, first, width);
}

#define CAP(current, field) \
	general_cap(current, ifc_off(cmd_hca_cap, field), \
		    ifc_width(cmd_hca_cap, field))

static void capabilities(void)
{
	setup(NULL, NULL);
	ok(CAP(1, pg) && CAP(1, atomic) && !CAP(1, roce), "defaults");
	ok(CAP(0, log_max_qp) == 14 && CAP(1, log_max_qp) == 12,
	   "highest value, and what the driver chose");
	teardown();
	setup(NULL, "pg=0,umr_modify_entity_size_disabled=1");
	ok(!CAP(1, pg) && CAP(0, umr_modify_entity_size_disabled),
	   "switched by the test");
	teardown();
}

static void traces(void)
{
	u64 at;
	u32 key;
	char text[64];

	setup(NULL, NULL);
	d->keep_traces = true;
	key = mr_make(d, VA, 64 * PAGE, ALL_RIGHTS, &at);
	snprintf(text, sizeof(text), "\"event\":\"create_mkey\",\"key\":\"0x%x\"",
		 key);
	ok(dev_traced(d, text) == 1, "CREATE_MKEY is traced");
	snprintf(text, sizeof(text), "\"index\":0,\"count\":64,\"addr\":\"0x%llx\"",
		 (unsigned long long)at);
	ok(dev_traced(d, text) == 1, "64 contiguous entries are one line");
	mkey_remove(d, key);
	ok(dev_traced(d, "\"event\":\"destroy_mkey\"") == 1,
	   "DESTROY_MKEY is traced");
	ok(!dev_traced(d, "dma_read"), "DMA is not, unless wanted");
	teardown();
}

static void trace_of_dma(void)
{
	const struct mlx5sim_config config = {
		.lid = 1, .strict = true, .trace_dma = true,
	};
	char text[64];
	u64 at;
	u32 key;

	d = dev_running(&config);
	qp_pair(d, d, &qa, &qb, NULL);
	key = mr_make(d, VA, PAGE, ALL_RIGHTS, &at);
	d->keep_traces = true;
	post_write(qa, VA + 64, key, key, VA, 32);
	snprintf(text, sizeof(text), "\"event\":\"dma_write\",\"addr\":\"0x%llx\",\"len\":32",
		 (unsigned long long)at + 64);
	ok(dev_traced(d, text) == 1, "DMA of data is traced");
	teardown();
}

/* What is said of the list of a new key with these MTT entries, the last out of reach. */
static void key_with(const u64 *mtts, u32 count, char *answer, size_t size)
{
	struct mkey_arg arg = {
		.mode = MLX5_MKC_ACCESS_MODE_MTT, .rights = ALL_RIGHTS,
		.start = VA, .len = (count - 1) * PAGE, .log_page = 12,
		.octwords = (count + 1) / 2, .count = (count + 1) / 2,
	};
	char question[64];
	u8 list[64] = { 0 };
	u32 key;

	for (u32 i = 0; i < count; i++)
		put_be64(list + 8 * i, mtts[i]);
	arg.entries = list;
	key = mkey_make(d, &arg);
	snprintf(question, sizeof(question), "xlt 0x%x", key);
	mlx5sim_ask(d->sim, question, answer, size);
	mkey_remove(d, key);
}

static void questions(void)
{
	/* Goes on; goes on with other rights; a gap; elsewhere; out of reach */
	static const u64 runs[] = {
		0x10003, 0x11003, 0x12001, 0, 0x14001, 0x8001, 0x9001,
	};

	struct mkey_arg arg = {
		.mode = MLX5_MKC_ACCESS_MODE_MTT, .rights = ALL_RIGHTS,
		.start = VA + 0x800, .len = PAGE, .log_page = 12, .octwords = 1,
	};
	u8 list[16];
	u64 buf;
	u32 key, found;
	char question[64], answer[1024];
	int len;

	setup(NULL, NULL);
	buf = mem_alloc(4 * PAGE);
	put_be64(list, buf | 3);
	put_be64(list + 8, (buf + 2 * PAGE) | 1);
	arg.entries = list;
	arg.count = 1;
	key = mkey_make(d, &arg);
	ok(mlx5sim_maps(d->sim, buf + 0x800, 1, &found) && found == key,
	   "first byte is mapped");
	ok(!mlx5sim_maps(d->sim, buf, 0x800, NULL),
	   "what lies before the start is not");
	ok(mlx5sim_maps(d->sim, buf + 0x7ff, 2, NULL), "a range that overlaps");
	ok(mlx5sim_maps(d->sim, buf + 2 * PAGE, 0x800, NULL), "second page");
	ok(!mlx5sim_maps(d->sim, buf + 2 * PAGE + 0x800, PAGE, NULL),
	   "what lies behind the length is not");
	ok(!mlx5sim_maps(d->sim, buf + PAGE, PAGE, NULL), "page between");
	snprintf(question, sizeof(question), "xlt 0x%x", key);
	len = mlx5sim_ask(d->sim, question, answer, sizeof(answer));
	ok(len == (int)strlen(answer) && strstr(answer, "\"write\":0}") &&
	   strstr(answer, "\"capacity\":8"), "translation list as text: %s",
	   answer);
	ok(mlx5sim_ask(d->sim, question, answer, 10) == len &&
	   strlen(answer) == 9, "cut at the size");
	key_with(runs, ARRAY_SIZE(runs), answer, sizeof(answer));
	ok(strstr(answer, "\"xlt\":[{\"index\":0,\"count\":2,\"addr\":\"0x10000\",") &&
	   strstr(answer, "},{\"index\":2,\"count\":1,\"addr\":\"0x12000\",") &&
	   strstr(answer, "},{\"index\":4,\"count\":1,\"addr\":\"0x14000\",") &&
	   strstr(answer, "},{\"index\":5,\"count\":1,\"addr\":\"0x8000\",") &&
	   !strstr(answer, "\"index\":6,"),
	   "entries that follow each other are one item: %s", answer);
	snprintf(question, sizeof(question), "maps 0x%llx 4096",
		 (unsigned long long)buf);
	mlx5sim_ask(d->sim, question, answer, sizeof(answer));
	snprintf(question, sizeof(question), "{\"maps\":1,\"key\":\"0x%x\"}",
		 key);
	ok(!strcmp(answer, question), "maps as text: %s", answer);
	ok(mlx5sim_ask(d->sim, "stats", answer, sizeof(answer)) > 0 &&
	   strstr(answer, "\"mkeys\":3"), "stats: %s", answer);
	ok(mlx5sim_ask(d->sim, "keys", answer, sizeof(answer)) > 0, "keys: %s",
	   answer);
	ok(mlx5sim_ask(d->sim, "why", answer, sizeof(answer)) == -1,
	   "not a question");
	ok(mlx5sim_key_xlt(d->sim, 0xabcdef00, NULL, 0) == -1, "no such key");
	mkey_remove(d, key);
	ok(!mlx5sim_maps(d->sim, buf, 4 * PAGE, NULL), "nothing after removal");
	teardown();
}

/* Of memory behind an IOMMU */
static void translated(void)
{
	struct mkey_arg arg = {
		.mode = MLX5_MKC_ACCESS_MODE_MTT, .rights = ALL_RIGHTS,
		.start = VA, .len = 2 * PAGE, .log_page = 13, .octwords = 1, .count = 1,
	};
	char question[64], answer[256];
	u8 list[16] = { 0 };
	u64 buf, len;

	setup(NULL, NULL);
	buf = mem_alloc(4 * PAGE);
	if (buf & PAGE)
		buf += PAGE;
	put_be64(list, buf | 3);
	arg.entries = list;
	mkey_make(d, &arg);
	len = 2 * PAGE;
	ok(mlx5sim_memory(d->sim, buf, &len) == buf && len == 2 * PAGE,
	   "without an IOMMU: as it is");
	machine_swap_pages();
	len = 2 * PAGE;
	ok(mlx5sim_memory(d->sim, buf + 16, &len) == buf + PAGE + 16 &&
	   len == PAGE - 16, "with one: as far as it is in one piece");
	len = 3 * PAGE;
	ok(mlx5sim_memory(d->sim, buf + PAGE, &len) == buf && len == PAGE,
	   "what goes on elsewhere is another piece");
	len = 2 * PAGE;
	ok(mlx5sim_memory(d->sim, MEM_BASE - 2 * PAGE, &len) == MLX5SIM_NOWHERE &&
	   len == 2 * PAGE, "nowhere");
	snprintf(question, sizeof(question), "memory 0x%llx 1",
		 (unsigned long long)buf);
	mlx5sim_ask(d->sim, question, answer, sizeof(answer));
	snprintf(question, sizeof(question),
		 "{\"memory\":\"0x%llx\",\"len\":\"0x1\"}",
		 (unsigned long long)buf + PAGE);
	ok(!strcmp(answer, question), "as text: %s", answer);
	ok(mlx5sim_maps(d->sim, buf, 1, NULL) &&
	   mlx5sim_maps(d->sim, buf + PAGE, 1, NULL), "all of a large page is mapped");
	ok(!mlx5sim_maps(d->sim, buf + 2 * PAGE, PAGE, NULL), "but not more");
	arg.log_page = 12;
	arg.len = PAGE;
	arg.start = VA + 4 * PAGE;
	put_be64(list, (buf + 2 * PAGE) | 3);
	mkey_make(d, &arg);
	ok(mlx5sim_maps(d->sim, buf + 3 * PAGE, PAGE, NULL) &&
	   !mlx5sim_maps(d->sim, buf + 2 * PAGE, PAGE, NULL),
	   "a key maps what lies behind its bus address, not what lies there");
	teardown();
}

int main(void)
{
	command_status();
	command_late();
	completion_late();
	completion_in_error();
	ordered();
	fatal();
	resume();
	capabilities();
	traces();
	trace_of_dma();
	questions();
	translated();
	return tap_done();
}
