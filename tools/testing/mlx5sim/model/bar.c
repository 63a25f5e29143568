// SPDX-License-Identifier: GPL-2.0
/*
 * BAR 0: the initialization segment and the UAR pages with the doorbells.
 *
 * Registers are big endian: the values here are what the driver means.
 */
#include "model.h"

/* Initialization segment (struct mlx5_init_seg of the driver) */
#define REG_FW_REV		0x000
#define REG_CMDIF_REV		0x004
#define REG_CMDQ_ADDR_H		0x010
#define REG_CMDQ_ADDR_L		0x014
#define REG_CMD_DBELL		0x018
#define REG_TIMER_H		0x1000
#define REG_TIMER_L		0x1004
#define REG_HEALTH_COUNTER	0x1010

#define FW_REV			0x00100010	/* minor 16, major 16 */
#define CMDIF_REV		(5u << 16)
#define CMDQ_SIZES		(5u << 4 | CMD_LOG_STRIDE)	/* 32 slots */
#define CMDQ_ADDR_MASK		(~0xfffu)
#define CMDQ_INTERFACE		(7u << 8)
#define CMDQ_INTERFACE_OFF	BIT(8)

/* Doorbells of a UAR page */
#define UAR_CQ_ARM		0x20
#define UAR_EQ_ARM		0x40
#define UAR_EQ_UPDATE		0x48
#define UAR_SEND		0x800
#define UAR_SEND_STEP		0x100

static u32 register_read(struct mlx5sim *m, u64 off)
{
	u64 khz = cap(m, device_frequency_khz);
	u64 cycles, none;

	switch (off) {
	case REG_FW_REV:
		return FW_REV;
	case REG_CMDIF_REV:
		return CMDIF_REV;
	case REG_CMDQ_ADDR_H:
		return m->cmdq_addr_h;
	case REG_CMDQ_ADDR_L:
		return m->cmdq_addr_l | CMDQ_SIZES | (m->fatal ? CMDQ_INTERFACE_OFF : 0);
	case REG_TIMER_H:
	case REG_TIMER_L:
		cycles = now(m) / 1000 * khz / 1000;
		return off == REG_TIMER_H ? cycles >> 32 : (u32)cycles;
	case REG_HEALTH_COUNTER:
		if (inject_hit(m, INJECT_FATAL, 0, &none))
			device_fail(m);
		return ++m->health_counter;
	default:
		/* All others tell "ready, no error, not supported" as zero */
		return 0;
	}
}

u64 bar_read(struct mlx5sim *m, u64 off, unsigned int size)
{
	u32 value;

	if (size == 8)
		return bar_read(m, off, 4) << 32 | bar_read(m, off + 4, 4);
	value = off < UAR_FIRST * UAR_PAGE ? register_read(m, off & ~3ull) : 0;
	switch (size) {
	case 1:
		return value >> 8 * (3 - off % 4) & 0xff;
	case 2:
		return value >> 8 * (2 - off % 4 / 2 * 2) & 0xffff;
	default:
		return value;
	}
}

static void register_write(struct mlx5sim *m, u64 off, u32 val)
{
	switch (off) {
	case REG_CMDQ_ADDR_H:
		m->cmdq_addr_h = val;
		break;
	case REG_CMDQ_ADDR_L:
		m->cmdq_addr_l = val & CMDQ_ADDR_MASK;
		/* To ask for the full interface is to start it anew. */
		if (!(val & CMDQ_INTERFACE))
			m->fatal = false;
		break;
	case REG_CMD_DBELL:
		if (device_nested())
			m->cmd_waiting |= val;
		else
			cmd_doorbell(m, val);
		break;
	default:
		note(m, "write of 0x%x to register 0x%llx ignored", val,
		     (unsigned long long)off);
	}
}

static void uar_write(struct mlx5sim *m, u64 off, u64 val, unsigned int size)
{
	u32 page = off / UAR_PAGE;
	u32 reg = off % UAR_PAGE;

	if (!table_find(&m->uars, page)) {
		broken(m, CHK_DOORBELL, "offset 0x%x of UAR page %u", reg,
		       page);
		return;
	}
	if (reg == UAR_CQ_ARM && size == 8)
		cq_doorbell(m, val);
	else if (reg == UAR_EQ_ARM && size == 4)
		eq_doorbell(m, val, true);
	else if (reg == UAR_EQ_UPDATE && size == 4)
		eq_doorbell(m, val, false);
	else if (reg < UAR_SEND)
		broken(m, CHK_DOORBELL, "%u bytes at offset 0x%x", size, reg);
	else if (reg % UAR_SEND_STEP == 0 && size == 8)
		qp_doorbell(m, page, val);
	/* The rest of a request copied to the page is read from memory */
}

/* After a fatal error there is nobody to hear but those who start it anew. */
static bool heard(const struct mlx5sim *m, u64 off)
{
	return !m->fatal || off == REG_CMDQ_ADDR_H || off == REG_CMDQ_ADDR_L;
}

void bar_write(struct mlx5sim *m, u64 off, u64 val, unsigned int size)
{
	if (!heard(m, off))
		return;
	if (off >= UAR_FIRST * UAR_PAGE) {
		uar_write(m, off, val, size);
	} else if (size == 8) {
		register_write(m, off, val >> 32);
		register_write(m, off + 4, val);
	} else if (size == 4) {
		register_write(m, off, val);
	}
}
