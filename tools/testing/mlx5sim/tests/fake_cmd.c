// SPDX-License-Identifier: GPL-2.0
/* The driver: commands, load and unload. */
#include <stdlib.h>

#include "fake.h"

#define BLOCK_ALLOC		1024	/* for 576 bytes */
#define BLOCK_DATA		512
#define CMD_SLOT		3

#define EVENT_CMD		BIT_ULL(0x0a)
#define EVENT_PAGES		BIT_ULL(0x0b)
#define EVENT_FAULT		BIT_ULL(0x0c)
#define EVENTS_ASYNC		0x1f02beull

/* What of a message is behind its first 16 bytes */
static u32 behind(u32 len)
{
	return len > 16 ? len - 16 : 0;
}

/* Mailboxes for it */
static u64 chain_make(const u8 *data, u32 len, u8 token, u32 first_number)
{
	u32 count = (len + BLOCK_DATA - 1) / BLOCK_DATA;
	u64 chain = count ? mem_alloc(count * BLOCK_ALLOC) : 0;

	for (u32 i = 0; i < count; i++) {
		u8 *block = mem(chain + i * BLOCK_ALLOC);
		u32 part = min_of(len, BLOCK_DATA);

		if (data)
			memcpy(block, data + i * BLOCK_DATA, part);
		if (i + 1 < count)
			put_be64(block + 560, chain + (i + 1) * BLOCK_ALLOC);
		put_be32(block + 568, i + first_number);
		block[573] = token;
		len -= part;
	}
	return chain;
}

static void chain_read(u64 chain, u8 *to, u32 len)
{
	while (len) {
		const u8 *block = mem(chain);
		u32 part = min_of(len, BLOCK_DATA);

		memcpy(to, block, part);
		to += part;
		len -= part;
		chain = get_be64(block + 560);
	}
}

static u8 sum(const u8 *p, u32 len)
{
	u8 s = 0;

	while (len--)
		s ^= *p++;
	return s;
}

void dev_ring_cmd(struct dev *d, u32 slots)
{
	mlx5sim_bar_write(d->sim, 0x18, slots, 4);
}

int dev_cmd(struct dev *d, const void *in, u32 in_len, void *out, u32 out_len)
{
	struct tamper t = d->tamper;
	u8 *lay = mem(d->cmdq + 64 * CMD_SLOT);
	u8 inline_out[16];
	u64 out_chain;

	memset(&d->tamper, 0, sizeof(d->tamper));
	if (++d->token == 0)
		d->token = 1;
	out_chain = chain_make(NULL, behind(out_len), d->token, 0);
	memset(lay, 0, 64);
	lay[0] = t.type ? t.type : 7;
	put_be32(lay + 4, in_len + t.in_len);
	put_be64(lay + 8, chain_make((const u8 *)in + 16, behind(in_len),
				     t.token ? t.token : d->token,
				     t.block_number));
	memcpy(lay + 16, in, min_of(in_len, 16));
	put_be64(lay + 48, out_chain);
	put_be32(lay + 56, out_len);
	lay[60] = d->token;
	lay[63] = !t.not_owned;
	lay[61] = ~sum(lay, 64) ^ t.signature;
	dev_ring_cmd(d, BIT(CMD_SLOT));
	if (lay[63] & 1 || t.not_owned)
		return -1;
	memcpy(inline_out, lay + 32, 16);
	memcpy(out, inline_out, min_of(out_len, 16));
	chain_read(out_chain, (u8 *)out + 16, behind(out_len));
	d->syndrome = get_be32(inline_out + 4);
	return lay[63] >> 1 ? 0x1000 | lay[63] >> 1 : inline_out[0];
}

int dev_simple(struct dev *d, u16 opcode, u16 op_mod, u32 word8, void *out,
	       u32 out_len)
{
	u8 in[16] = { 0 };

	put_be16(in, opcode);
	put_be16(in + 6, op_mod);
	put_be32(in + 8, word8);
	return dev_cmd(d, in, sizeof(in), out, out_len);
}

static int simple(struct dev *d, u16 opcode, u16 op_mod, u32 word8)
{
	u8 out[16];

	return dev_simple(d, opcode, op_mod, word8, out, sizeof(out));
}

/* The input of ENABLE_HCA and its like is shorter than that of INIT_HCA */
static int init_hca(struct dev *d)
{
	u8 in[ifc_bytes(init_hca_in)] = { 0 }, out[16];

	ifc_set(init_hca_in, in, opcode, MLX5_CMD_OP_INIT_HCA);
	return dev_cmd(d, in, sizeof(in), out, sizeof(out));
}

static int give_pages(struct dev *d, u16 which)
{
	u8 in[ifc_bytes(manage_pages_in) + 8 * 32] = { 0 };
	u8 query[16], out[16];
	u32 count;

	if (dev_simple(d, MLX5_CMD_OP_QUERY_PAGES, which, 0, query,
		       sizeof(query)))
		return -1;
	count = ifc_get(query_pages_out, query, num_pages);
	ifc_set(manage_pages_in, in, opcode, MLX5_CMD_OP_MANAGE_PAGES);
	ifc_set(manage_pages_in, in, op_mod, 1);
	ifc_set(manage_pages_in, in, input_num_entries, count);
	for (u32 i = 0; i < count; i++) {
		d->page[d->pages] = mem_alloc(PAGE);
		put_be64(in + ifc_bytes(manage_pages_in) + 8 * i,
			 d->page[d->pages++]);
	}
	return dev_cmd(d, in, ifc_bytes(manage_pages_in) + 8 * count, out,
		       sizeof(out));
}

static bool take_one(struct dev *d, u64 page)
{
	for (u32 i = 0; i < d->pages; i++) {
		if (d->page[i] != page)
			continue;
		d->page[i] = d->page[--d->pages];
		return true;
	}
	return false;
}

/* All pages come back, each once */
static int take_pages(struct dev *d)
{
	u8 in[16] = { 0 }, out[ifc_bytes(manage_pages_out) + 8 * 10];

	while (d->pages) {
		u32 count;

		ifc_set(manage_pages_in, in, opcode, MLX5_CMD_OP_MANAGE_PAGES);
		ifc_set(manage_pages_in, in, op_mod, 2);
		ifc_set(manage_pages_in, in, input_num_entries, 10);
		if (dev_cmd(d, in, sizeof(in), out, sizeof(out)))
			return -1;
		count = ifc_get(manage_pages_out, out, output_num_entries);
		for (u32 i = 0; i < count; i++)
			if (!take_one(d, get_be64(out + 16 + 8 * i)))
				return -1;
		if (!count)
			return -1;
	}
	return 0;
}

/* Read a kind of capability, change it with @change, write it back */
static int set_caps(struct dev *d, u16 type, void (*change)(u8 *cap))
{
	u8 out[16 + 4096], in[ifc_bytes(set_hca_cap_in)] = { 0 };
	u8 done[16];

	if (dev_simple(d, MLX5_CMD_OP_QUERY_HCA_CAP, type << 1 | 1, 0, out,
		       sizeof(out)) ||
	    dev_simple(d, MLX5_CMD_OP_QUERY_HCA_CAP, type << 1, 0, out,
		       sizeof(out)))
		return -1;
	ifc_set(set_hca_cap_in, in, opcode, MLX5_CMD_OP_SET_HCA_CAP);
	ifc_set(set_hca_cap_in, in, op_mod, type << 1);
	memcpy(in + 16, out + 16, 256);
	change(in + 16);
	return dev_cmd(d, in, sizeof(in), done, sizeof(done));
}

static void change_general(u8 *cap)
{
	ifc_set(cmd_hca_cap, cap, log_max_qp, 12);
}

static void change_atomic(u8 *cap)
{
	ifc_set(atomic_caps, cap, atomic_req_8B_endianness_mode, 1);
}

static int driver_version(struct dev *d)
{
	u8 in[ifc_bytes(set_driver_version_in)] = { 0 }, out[16];

	ifc_set(set_driver_version_in, in, opcode,
		MLX5_CMD_OP_SET_DRIVER_VERSION);
	return dev_cmd(d, in, sizeof(in), out, sizeof(out));
}

static int query_port(struct dev *d, u32 port)
{
	u8 out[ifc_bytes(query_hca_vport_context_out)];

	return dev_simple(d, MLX5_CMD_OP_QUERY_HCA_VPORT_CONTEXT, 0,
			  port << 16, out, sizeof(out));
}

static int read_register(struct dev *d, u16 id)
{
	u8 in[16 + 64] = { 0 }, out[16 + 64];

	ifc_set(access_register_in, in, opcode, MLX5_CMD_OP_ACCESS_REG);
	ifc_set(access_register_in, in, op_mod, 1);
	ifc_set(access_register_in, in, register_id, id);
	return dev_cmd(d, in, sizeof(in), out, sizeof(out));
}

#define TRY(opcode, step)	do { if (step) return opcode; } while (0)

static int boot_core(struct dev *d)
{
	u8 out[ifc_bytes(query_adapter_out)];

	d->cmdq = mem_alloc(PAGE);
	mlx5sim_bar_write(d->sim, 0x10, d->cmdq >> 32, 4);
	mlx5sim_bar_write(d->sim, 0x14, (u32)d->cmdq, 4);
	TRY(0x104, simple(d, MLX5_CMD_OP_ENABLE_HCA, 0, 0));
	TRY(0x10a, dev_simple(d, MLX5_CMD_OP_QUERY_ISSI, 0, 0, out, 112));
	TRY(0x10b, simple(d, MLX5_CMD_OP_SET_ISSI, 0, 1));
	TRY(0x108, give_pages(d, 1));
	TRY(0x109, set_caps(d, 0, change_general));
	TRY(0x109, set_caps(d, 3, change_atomic));
	TRY(0x108, give_pages(d, 2));
	TRY(0x102, init_hca(d));
	TRY(0x10d, driver_version(d));
	TRY(0x101, dev_simple(d, MLX5_CMD_OP_QUERY_ADAPTER, 0, 0, out,
			      sizeof(out)));
	TRY(0x802, dev_simple(d, MLX5_CMD_OP_ALLOC_UAR, 0, 0, out, 16));
	d->uar = ifc_get(alloc_uar_out, out, uar);
	d->cmd_eq = eq_make(d, 6, 0, EVENT_CMD);
	TRY(0x301, !d->cmd_eq);
	eq_ring(d, d->cmd_eq, true);
	d->async_eq = eq_make(d, 6, 0, EVENTS_ASYNC & ~EVENT_CMD &
			      ~EVENT_PAGES & ~EVENT_FAULT);
	d->page_eq = eq_make(d, 6, 0, EVENT_PAGES);
	d->comp_eq = eq_make(d, 8, 1, 0);
	TRY(0x301, !d->async_eq || !d->page_eq || !d->comp_eq);
	eq_ring(d, d->async_eq, true);
	eq_ring(d, d->comp_eq, true);
	return 0;
}

static int boot_ib(struct dev *d)
{
	struct mkey_arg pa = {
		.mode = MLX5_MKC_ACCESS_MODE_PA,
		.rights = LR | LW,
		.length64 = true,
	};
	u8 out[ifc_bytes(query_special_contexts_out)];
	static const u16 registers[] = { 0x5004, 0x5003, 0x500f, 0x6001 };

	for (u32 port = 1; port <= 2; port++)
		TRY(0x762, query_port(d, port));
	for (u32 i = 0; i < ARRAY_SIZE(registers); i++)
		TRY(0x805, read_register(d, registers[i]));
	TRY(0x800, dev_simple(d, MLX5_CMD_OP_ALLOC_PD, 0, 0, out, 16));
	d->pd = ifc_get(alloc_pd_out, out, pd);
	TRY(0x203, dev_simple(d, MLX5_CMD_OP_QUERY_SPECIAL_CONTEXTS, 0, 0, out,
			      sizeof(out)));
	d->pf_eq = eq_make(d, 6, 1, EVENT_FAULT);
	TRY(0x301, !d->pf_eq);
	eq_ring(d, d->pf_eq, true);
	d->pa_key = mkey_make(d, &pa);
	TRY(0x200, !d->pa_key);
	return 0;
}

int dev_boot(struct dev *d)
{
	int failed = boot_core(d);

	return failed ? failed : boot_ib(d);
}

static int remove_eq(struct dev *d, struct queue **eq)
{
	int status = eq_remove(d, *eq);

	*eq = NULL;
	return status;
}

int dev_shutdown(struct dev *d)
{
	TRY(0x202, mkey_remove(d, d->pa_key));
	TRY(0x302, remove_eq(d, &d->pf_eq));
	TRY(0x801, simple(d, MLX5_CMD_OP_DEALLOC_PD, 0, d->pd));
	TRY(0x302, remove_eq(d, &d->comp_eq));
	TRY(0x302, remove_eq(d, &d->page_eq));
	TRY(0x302, remove_eq(d, &d->async_eq));
	TRY(0x302, remove_eq(d, &d->cmd_eq));
	TRY(0x803, simple(d, MLX5_CMD_OP_DEALLOC_UAR, 0, d->uar));
	TRY(0x103, simple(d, MLX5_CMD_OP_TEARDOWN_HCA, 0, 0));
	TRY(0x108, take_pages(d));
	TRY(0x105, simple(d, MLX5_CMD_OP_DISABLE_HCA, 0, 0));
	return 0;
}

struct dev *dev_running(const struct mlx5sim_config *config)
{
	struct dev *d = dev_new(config);

	if (d && !dev_boot(d))
		return d;
	abort();
}
