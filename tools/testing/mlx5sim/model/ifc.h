/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Access to big-endian structures, by the names of the kernel's mlx5_ifc.h.
 *
 * That header describes each structure with one array of u8 per field, as long
 * as the field has bits: offsetof() is the position in bits, sizeof() the width.
 * The kernel's header is not part of this project; the Makefile says where it is.
 */
#ifndef MODEL_IFC_H
#define MODEL_IFC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;

/* What mlx5_ifc.h takes from other headers of the kernel */
#define BIT(n)			(1u << (n))
#define BIT_ULL(n)		(1ull << (n))
#define DECLARE_FLEX_ARRAY(type, name) \
	struct { struct { } empty_##name; type name[]; }

#include MLX5SIM_IFC

#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))

#define ifc_bits(type)		struct mlx5_ifc_##type##_bits
#define ifc_bytes(type)		(sizeof(ifc_bits(type)) / 8)
#define ifc_off(type, field)	offsetof(ifc_bits(type), field)
#define ifc_width(type, field)	sizeof(((ifc_bits(type) *)0)->field)

/* Where @field of the structure at @p begins; it begins with a byte */
#define ifc_at(type, p, field) \
	((u8 *)(p) + ifc_off(type, field) / 8)
#define ifc_get(type, p, field) \
	ifc_load((p), ifc_off(type, field), ifc_width(type, field))
#define ifc_set(type, p, field, value) \
	ifc_store((p), ifc_off(type, field), ifc_width(type, field), (value))

/* Value of @width bits at bit @first; more than 56 bits begin with a byte */
static inline u64 ifc_load(const void *buf, size_t first, size_t width)
{
	const u8 *p = buf;
	size_t end = first + width;
	u64 value = 0;

	for (size_t i = first / 8; i < (end + 7) / 8; i++)
		value = value << 8 | p[i];
	value >>= -end % 8;
	return width < 64 ? value & (BIT_ULL(width) - 1) : value;
}

static inline void ifc_store(void *buf, size_t first, size_t width, u64 value)
{
	u8 *p = buf;
	size_t end = first + width;
	u64 mask = (width < 64 ? BIT_ULL(width) - 1 : UINT64_MAX);

	value &= mask;
	value <<= -end % 8;
	mask <<= -end % 8;
	for (size_t i = (end + 7) / 8; i-- > first / 8; ) {
		p[i] = (p[i] & ~mask) | value;
		value >>= 8;
		mask >>= 8;
	}
}

static inline u16 get_be16(const void *p)
{
	return ifc_load(p, 0, 16);
}

static inline u32 get_be32(const void *p)
{
	return ifc_load(p, 0, 32);
}

static inline u64 get_be64(const void *p)
{
	return ifc_load(p, 0, 64);
}

static inline void put_be16(void *p, u16 value)
{
	ifc_store(p, 0, 16, value);
}

static inline void put_be32(void *p, u32 value)
{
	ifc_store(p, 0, 32, value);
}

static inline void put_be64(void *p, u64 value)
{
	ifc_store(p, 0, 64, value);
}

#define min_of(a, b)		((a) < (b) ? (a) : (b))
#define round_up_to(n, to)	(((n) + (to) - 1) / (to) * (to))

#endif /* MODEL_IFC_H */
