/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * /dev/dmabuf_importer: ib_umem_dmabuf driven from user space.
 *
 * An open file holds at most one import.  Closing the file, or dying, releases
 * it.  All structures are the same on 32 and 64 bit.
 */
#ifndef DMABUF_IMPORTER_H
#define DMABUF_IMPORTER_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* dmabuf_importer_create.contract */
#define DMABUF_IMPORTER_DYNAMIC		0
#define DMABUF_IMPORTER_PINNED		1
#define DMABUF_IMPORTER_REVOCABLE	2

/* dmabuf_importer_create.flags */
#define DMABUF_IMPORTER_NO_P2P		0x1 /* dynamic only: system memory, please */

/* dmabuf_importer_create.access: enum ib_access_flags, all that a dma-buf MR may have */
#define DMABUF_IMPORTER_ACCESS_ALL	0xf

/**
 * struct dmabuf_importer_create - import a window of a dma-buf
 * @fd: file descriptor of the dma-buf
 * @contract: DMABUF_IMPORTER_*
 * @offset: first byte of the window
 * @length: bytes in the window
 * @access: &enum ib_access_flags
 * @flags: DMABUF_IMPORTER_NO_P2P
 * @notify_delay_ms: how long the importer's device takes to let go of the
 *	memory, in move_notify and in the revoke callback
 * @pad: must be zero
 *
 * Pinned imports are mapped when this returns, a dynamic one is not.  -EBUSY
 * if the file has an import.
 */
struct dmabuf_importer_create {
	__s32 fd;
	__u32 contract;
	__u64 offset;
	__u64 length;
	__u32 access;
	__u32 flags;
	__u32 notify_delay_ms;
	__u32 pad;
};

/* dmabuf_importer_info.state */
#define DMABUF_IMPORTER_IMPORTED	0x1
#define DMABUF_IMPORTER_MAPPED		0x2
#define DMABUF_IMPORTER_IS_PINNED	0x4
#define DMABUF_IMPORTER_REVOKED		0x8
#define DMABUF_IMPORTER_P2P		0x10 /* the exporter may give bus addresses */

/**
 * struct dmabuf_importer_info - what the importer knows
 * @iova: address that the wire would use for the window's first byte (in)
 * @page_sizes: bitmap of page sizes that the device has, 0 for all (in)
 * @page_size: largest of them that fits, 0 if none does or not mapped (out)
 * @state: DMABUF_IMPORTER_* (out)
 * @segments: segments of the window, 0 if not mapped (out)
 * @notifies: move_notify calls seen by a dynamic import (out)
 * @revokes: calls of the revoke callback (out)
 * @maps: times that the window was mapped, says the core (out)
 * @moves: times that the exporter announced a move, says the core (out)
 * @map_errors: times that mapping failed, says the core (out)
 *
 * @notifies and @revokes count for the file and outlive the import.
 */
struct dmabuf_importer_info {
	__u64 iova;
	__u64 page_sizes;
	__u64 page_size;
	__u32 state;
	__u32 segments;
	__u32 notifies;
	__u32 revokes;
	__u64 maps;
	__u64 moves;
	__u64 map_errors;
};

/**
 * struct dmabuf_importer_segment - a run of adjacent bus addresses
 * @address: first bus address
 * @length: bytes
 */
struct dmabuf_importer_segment {
	__u64 address;
	__u64 length;
};

/* dmabuf_importer_segments.kind */
#define DMABUF_IMPORTER_SG		0 /* as the exporter cut them: the umem's list */
#define DMABUF_IMPORTER_RUNS		1 /* adjacent ones joined */
#define DMABUF_IMPORTER_BLOCKS		2 /* of @page_size, as a driver fills its table */

/**
 * struct dmabuf_importer_segments - read the translation
 * @first: first segment wanted (in)
 * @count: room in @ptr (in), segments written (out)
 * @kind: DMABUF_IMPORTER_SG, _RUNS or _BLOCKS (in)
 * @page_size: with DMABUF_IMPORTER_BLOCKS their size, else 0 (in)
 * @ptr: array of &struct dmabuf_importer_segment (in)
 *
 * Fewer than there is room for: these were the last.  -EFAULT if the window is
 * not mapped.
 */
struct dmabuf_importer_segments {
	__u64 first;
	__u32 count;
	__u32 kind;
	__u64 page_size;
	__u64 ptr;
};

/* dmabuf_importer_access.flags */
#define DMABUF_IMPORTER_WRITE		0x1
#define DMABUF_IMPORTER_FAULT		0x2 /* map if need be */

#define DMABUF_IMPORTER_ACCESS_MAX	0x100000

/**
 * struct dmabuf_importer_access - what the importer's device would do by DMA
 * @offset: first byte, from the start of the window
 * @length: bytes, at most DMABUF_IMPORTER_ACCESS_MAX
 * @flags: DMABUF_IMPORTER_WRITE, DMABUF_IMPORTER_FAULT
 * @ptr: user memory to write from or read to
 *
 * -EINVAL beyond the window, -EFAULT if it is not mapped (or for a bad @ptr),
 * -EACCES if it is revoked.
 */
struct dmabuf_importer_access {
	__u64 offset;
	__u32 length;
	__u32 flags;
	__u64 ptr;
};

#define DMABUF_IMPORTER_IOC		0xdb

#define DMABUF_IMPORTER_IOC_CREATE \
	_IOW(DMABUF_IMPORTER_IOC, 0, struct dmabuf_importer_create)
/* Map, as a page fault or a prefetch would; 0 if it is mapped already */
#define DMABUF_IMPORTER_IOC_MAP		_IO(DMABUF_IMPORTER_IOC, 1)
/* Give up the mapping, to be mapped again on demand */
#define DMABUF_IMPORTER_IOC_UNMAP	_IO(DMABUF_IMPORTER_IOC, 2)
/* The importer gives up for good, as a driver does whose device is removed */
#define DMABUF_IMPORTER_IOC_REVOKE	_IO(DMABUF_IMPORTER_IOC, 3)
#define DMABUF_IMPORTER_IOC_RELEASE	_IO(DMABUF_IMPORTER_IOC, 4)
#define DMABUF_IMPORTER_IOC_INFO \
	_IOWR(DMABUF_IMPORTER_IOC, 5, struct dmabuf_importer_info)
#define DMABUF_IMPORTER_IOC_SEGMENTS \
	_IOWR(DMABUF_IMPORTER_IOC, 6, struct dmabuf_importer_segments)
#define DMABUF_IMPORTER_IOC_ACCESS \
	_IOW(DMABUF_IMPORTER_IOC, 7, struct dmabuf_importer_access)

#endif /* DMABUF_IMPORTER_H */
