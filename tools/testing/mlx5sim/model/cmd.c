// SPDX-License-Identifier: GPL-2.0
/*
 * Transport of commands: descriptors, mailboxes, completion.
 *
 * The driver writes a descriptor of 64 bytes to a slot of the command queue and
 * rings the doorbell.  The first 16 bytes of input and output lie in it, the rest
 * in chains of mailboxes.  The answer is written to the output, then the
 * descriptor is handed back, then an event tells so, if there is a queue for it.
 */
#include <stdlib.h>

#include "model.h"

/* Descriptor */
#define LAY_TYPE		0
#define LAY_IN_LENGTH		4
#define LAY_IN_POINTER		8
#define LAY_IN			16
#define LAY_OUT			32
#define LAY_OUT_POINTER		48
#define LAY_OUT_LENGTH		56
#define LAY_TOKEN		60
#define LAY_RESERVED		62
#define LAY_STATUS_OWN		63
#define LAY_SIZE		64
#define LAY_INLINE		16
/* Opcode and modifier, or status and syndrome: no command is shorter */
#define CMD_HEAD		8
#define LAY_TYPE_CMD		7
#define LAY_OWNER_HW		0x1

/* Mailbox, behind its data */
#define BLOCK_NEXT		560
#define BLOCK_NUMBER		568
#define BLOCK_TOKEN		573
#define BLOCK_ALIGN		512

#define EVENT_CMD		MLX5_EVENT_TYPE_CODING_COMMAND_INTERFACE_COMPLETION

static bool descriptor_good(struct mlx5sim *m, u32 slot, const u8 *lay)
{
	u8 sum = 0;

	for (u32 i = 0; i < LAY_SIZE; i++)
		sum ^= lay[i];
	if (!(lay[LAY_STATUS_OWN] & LAY_OWNER_HW))
		broken(m, CHK_CMD_DESCRIPTOR, "slot %u belongs to software",
		       slot);
	else if (sum != 0xff)
		broken(m, CHK_CMD_DESCRIPTOR, "slot %u: signature", slot);
	else if (lay[LAY_TYPE] != LAY_TYPE_CMD)
		broken(m, CHK_CMD_DESCRIPTOR, "slot %u: type 0x%x", slot,
		       lay[LAY_TYPE]);
	else if (lay[1] || lay[2] || lay[3] || lay[LAY_RESERVED])
		broken(m, CHK_CMD_DESCRIPTOR, "slot %u: reserved bytes", slot);
	else
		return true;
	return false;
}

/*
 * Copy the part of a message that lies in mailboxes, to or from @buf.  Only
 * the data of an output mailbox is written, the driver linked them before.
 */
static bool chain_copy(struct mlx5sim *m, const u8 *lay, bool out, u8 *buf,
		       u32 len)
{
	u64 at = get_be64(lay + (out ? LAY_OUT_POINTER : LAY_IN_POINTER));
	u8 block[CMD_BLOCK_SIZE];

	for (u32 number = 0; len; number++) {
		u32 part = min_of(len, CMD_BLOCK_DATA);

		if (!at || at % BLOCK_ALIGN) {
			broken(m, CHK_CMD_MAILBOX, "%s block %u at 0x%llx",
			       out ? "output" : "input", number,
			       (unsigned long long)at);
			return false;
		}
		if (!dma_read(m, at, block, sizeof(block)))
			return false;
		if (block[BLOCK_TOKEN] != lay[LAY_TOKEN] ||
		    get_be32(block + BLOCK_NUMBER) != number) {
			broken(m, CHK_CMD_MAILBOX,
			       "%s block %u: token 0x%x for 0x%x, number %u",
			       out ? "output" : "input", number,
			       block[BLOCK_TOKEN], lay[LAY_TOKEN],
			       get_be32(block + BLOCK_NUMBER));
			return false;
		}
		if (!out)
			memcpy(buf, block, part);
		else if (!dma_write(m, at, buf, part))
			return false;
		buf += part;
		len -= part;
		at = get_be64(block + BLOCK_NEXT);
	}
	return true;
}

static u64 slot_addr(const struct mlx5sim *m, u32 slot)
{
	return ((u64)m->cmdq_addr_h << 32 | m->cmdq_addr_l) +
	       (slot << CMD_LOG_STRIDE);
}

static void slot_free(struct cmd_slot *s)
{
	free(s->c.in);
	free(s->c.out);
	memset(s, 0, sizeof(*s));
}

/*
 * Give the descriptor back.  A command that made the queue for the events of
 * commands has none itself, because the driver did not wait for it by event.
 */
static void complete(struct mlx5sim *m, u32 slot, struct eq *eq_before)
{
	struct cmd_slot *s = &m->cmd_slot[slot];
	u8 data[EQE_DATA] = { 0 };
	u8 status_own = s->status << 1;

	if (m->stopped) {
		slot_free(s);
		return;
	}
	if (s->status == DELIVERY_OK) {
		u32 len = s->c.out_len;

		if (len > LAY_INLINE &&
		    !chain_copy(m, s->lay, true, s->c.out + LAY_INLINE,
				len - LAY_INLINE))
			status_own = DELIVERY_OUT_POINTER << 1;
		dma_write(m, slot_addr(m, slot) + LAY_OUT, s->c.out,
			  LAY_INLINE);
	}
	slot_free(s);
	dma_write(m, slot_addr(m, slot) + LAY_STATUS_OWN, &status_own, 1);
	if (eq_before && eq_for(m, EVENT_CMD) == eq_before) {
		put_be32(data, BIT(slot));
		eq_event(m, eq_before, EVENT_CMD, 0, data);
	}
}

static enum cmd_delivery receive(struct mlx5sim *m, u32 slot)
{
	struct cmd_slot *s = &m->cmd_slot[slot];
	struct cmd *c = &s->c;

	c->in_len = get_be32(s->lay + LAY_IN_LENGTH);
	c->out_len = get_be32(s->lay + LAY_OUT_LENGTH);
	c->opcode = get_be16(s->lay + LAY_IN);
	if (c->in_len < CMD_HEAD || c->in_len > CMD_MAX_LENGTH) {
		broken(m, CHK_CMD_LENGTH, "%s: input of %u bytes",
		       cmd_name(c->opcode), c->in_len);
		return DELIVERY_IN_LENGTH;
	}
	if (c->out_len < CMD_HEAD || c->out_len > CMD_MAX_LENGTH) {
		broken(m, CHK_CMD_LENGTH, "%s: output of %u bytes",
		       cmd_name(c->opcode), c->out_len);
		return DELIVERY_OUT_LENGTH;
	}
	c->in = calloc(1, c->in_len + CMD_MIN_BUFFER);
	c->out = calloc(1, c->out_len + CMD_MIN_BUFFER);
	if (!c->in || !c->out)
		return DELIVERY_FIRMWARE;
	memcpy(c->in, s->lay + LAY_IN, LAY_INLINE);
	if (c->in_len > LAY_INLINE &&
	    !chain_copy(m, s->lay, false, c->in + LAY_INLINE,
			c->in_len - LAY_INLINE))
		return DELIVERY_IN_POINTER;
	c->uid = get_be16(c->in + 2);
	c->op_mod = get_be16(c->in + 6);
	return DELIVERY_OK;
}

static void run_slot(struct mlx5sim *m, u32 slot)
{
	struct eq *eq_before = eq_for(m, EVENT_CMD);
	struct cmd_slot *s = &m->cmd_slot[slot];
	u64 delay;

	slot_free(s);
	if (!dma_read(m, slot_addr(m, slot), s->lay, LAY_SIZE))
		return;
	if (!descriptor_good(m, slot, s->lay)) {
		if (!(s->lay[LAY_STATUS_OWN] & LAY_OWNER_HW))
			return;
		s->status = DELIVERY_SIGNATURE;
	} else {
		s->status = receive(m, slot);
	}
	if (s->status == DELIVERY_OK && !m->stopped)
		cmd_execute(m, &s->c);
	if (s->status == DELIVERY_OK &&
	    inject_hit(m, INJECT_CMD_DROP, s->c.opcode, &delay)) {
		slot_free(s);
	} else if (s->status == DELIVERY_OK &&
		   inject_hit(m, INJECT_CMD_DELAY, s->c.opcode, &delay)) {
		s->due_ns = now(m) + delay;
		s->pending = true;
	} else {
		complete(m, slot, eq_before);
	}
}

void cmd_doorbell(struct mlx5sim *m, u32 slots)
{
	for (u32 slot = 0; slot < CMD_SLOTS && !m->stopped; slot++)
		if (slots & BIT(slot))
			run_slot(m, slot);
}

void cmd_run_late(struct mlx5sim *m, u64 now)
{
	for (u32 slot = 0; slot < CMD_SLOTS; slot++)
		if (m->cmd_slot[slot].pending &&
		    m->cmd_slot[slot].due_ns <= now)
			complete(m, slot, eq_for(m, EVENT_CMD));
}

void cmd_forget(struct mlx5sim *m)
{
	m->cmd_waiting = 0;
	/* The command that asks for this is not pending, it is completed later */
	for (u32 slot = 0; slot < CMD_SLOTS; slot++)
		if (m->cmd_slot[slot].pending)
			slot_free(&m->cmd_slot[slot]);
}
