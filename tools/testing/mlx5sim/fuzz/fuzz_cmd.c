// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzer of commands: any sequence of them, with any input, on a device that
 * runs and has objects of all kinds.
 *
 * An input is a list of commands: opcode, modifier, lengths, bytes.  The bytes
 * are laid over the start and the context of an input that is zero otherwise.
 */
#include "input.h"

#define COMMANDS_MAX	24
#define INPUT_MAX	4096
#define OUTPUT_MAX	4096

static const u16 opcodes[] = {
	0x100, 0x101, 0x102, 0x103, 0x104, 0x105, 0x107, 0x108, 0x109, 0x10a,
	0x10b, 0x10d, 0x200, 0x201, 0x202, 0x203, 0x204, 0x301, 0x302, 0x303,
	0x400, 0x401, 0x402, 0x403, 0x500, 0x501, 0x502, 0x503, 0x504, 0x505,
	0x506, 0x507, 0x50a, 0x50b, 0x50c, 0x50d, 0x50e, 0x703, 0x705, 0x706,
	0x707, 0x708, 0x762, 0x764, 0x765, 0x770, 0x800, 0x801, 0x802, 0x803,
	0x805, 0x80d, 0x80e, 0x80f, 0x816, 0x817, 0x90c, 0x90d, 0x90e, 0x90f,
	0xa04, 0xa06, 0xa08, 0xa0a,
};

/* Lengths of inputs and parts of them, so that the fuzzer need not find them */
static const u32 lengths[] = {
	16, ifc_bytes(create_mkey_in), ifc_bytes(create_cq_in),
	ifc_bytes(create_qp_in), ifc_bytes(create_eq_in),
	ifc_bytes(rst2init_qp_in), ifc_bytes(create_rmp_in),
	ifc_bytes(create_xrc_srq_in), ifc_bytes(create_umem_in),
	ifc_bytes(set_hca_cap_in), ifc_bytes(modify_cq_in),
	ifc_bytes(modify_rmp_in),
};

static void one_command(struct dev *d, struct input *in)
{
	static u8 cmd[INPUT_MAX], out[OUTPUT_MAX];
	u32 len = lengths[take8(in) % ARRAY_SIZE(lengths)] +
		  take8(in) % 16 * 8;
	u8 shape = take8(in);

	memset(cmd, 0, sizeof(cmd));
	put_be16(cmd, opcodes[take8(in) % ARRAY_SIZE(opcodes)]);
	cmd[7] = take8(in);
	take(in, cmd + 8, 8);
	/* Context, then the page list, or all of it */
	take(in, cmd + 16, shape & 1 ? 64 : 16);
	if (shape & 2)
		take(in, cmd + ifc_bytes(create_qp_in) % INPUT_MAX, 32);
	if (shape & 4)
		take(in, cmd + 24 + shape % 64 * 4, 16);
	if (shape & 8)
		put_be64(cmd + ifc_bytes(create_cq_in), MEM_BASE + PAGE);
	if (shape & 16) {
		d->tamper.in_len = (s32)take32(in);
		d->tamper.token = take8(in);
	}
	len = min_of(len, INPUT_MAX);
	dev_cmd(d, cmd, len, out, shape & 32 ? 16 : OUTPUT_MAX);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	const struct mlx5sim_config config = { .lid = 1 };
	struct input in = { data, size };
	struct dev *d = dev_running(&config);
	struct fqp *qa, *qb;
	u64 at;

	qp_pair(d, d, &qa, &qb, NULL);
	mr_make(d, 0x1000, 0x4000, ALL_RIGHTS, &at);
	for (u32 i = 0; i < COMMANDS_MAX && in.left; i++)
		one_command(d, &in);
	machine_run(1000000);
	post_write(qa, 0x1000, 0x10042, 0x10042, 0x1000, 64);
	machine_run(1000000);
	dev_free(d);
	machine_reset();
	return 0;
}
