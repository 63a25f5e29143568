/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
#ifndef _UAPI_VRAMSIM_DRM_H_
#define _UAPI_VRAMSIM_DRM_H_

#include "drm.h"

#if defined(__cplusplus)
extern "C" {
#endif

/*
 * vramsim, a simulated GPU's memory.
 *
 * The render node allocates buffers in simulated VRAM or in system memory,
 * exports and imports them as dma-bufs, lets the CPU map them, and does on
 * request what a GPU driver does on its own: move, evict, revoke, fail.
 *
 * The commands start at 0x40 so that they and amdgpu's (which the driver
 * answers when it is told to present itself as amdgpu) share one table.
 */
#define DRM_VRAMSIM_INFO		0x40
#define DRM_VRAMSIM_GEM_CREATE		0x41
#define DRM_VRAMSIM_GEM_MMAP		0x42
#define DRM_VRAMSIM_GEM_INFO		0x43
#define DRM_VRAMSIM_GEM_ACCESS		0x44
#define DRM_VRAMSIM_GEM_MOVE		0x45
#define DRM_VRAMSIM_GEM_REVOKE		0x46
#define DRM_VRAMSIM_GEM_FENCE		0x47
#define DRM_VRAMSIM_INJECT		0x48
#define DRM_VRAMSIM_SEGMENTS		0x49

/* Where a buffer's memory lies */
#define VRAMSIM_PLACEMENT_NONE		0	/* revoked: no memory at all */
#define VRAMSIM_PLACEMENT_VRAM		1
#define VRAMSIM_PLACEMENT_SYSTEM	2
#define VRAMSIM_PLACEMENT_FOREIGN	3	/* imported: its exporter knows */

/* Default policy of an instance, see the module parameter "policy" */
#define VRAMSIM_POLICY_IN_PLACE		0	/* pin VRAM where it is */
#define VRAMSIM_POLICY_AMDGPU		1	/* system unless all attachments are P2P */

/**
 * struct drm_vramsim_info - describe the device
 * @vram_size: bytes of simulated VRAM (out)
 * @vram_free: bytes of it that no buffer has (out)
 * @bar_bus: bus address of the VRAM BAR, 0 if VRAM is plain pages (out)
 * @policy: VRAMSIM_POLICY_* (out)
 * @objects: buffers that exist, imported ones excluded (out)
 * @attached: attachments of importers over all buffers (out)
 * @mapped: mapped attachments over all buffers (out)
 * @pinned: pins over all buffers (out)
 * @vmapped: kernel CPU mappings over all buffers (out)
 * @exported: buffers that have a dma-buf at the moment (out)
 * @violations: times that an importer kept its mapping through a move_notify,
 *	against the rules; 0 is the only good value (out)
 * @moves: placement changes since the module was loaded (out)
 * @evictions: moves that the allocator asked for, to make room (out)
 * @revokes: buffers revoked since the module was loaded (out)
 */
struct drm_vramsim_info {
	__u64 vram_size;
	__u64 vram_free;
	__u64 bar_bus;
	__u32 policy;
	__u32 objects;
	__u32 attached;
	__u32 mapped;
	__u32 pinned;
	__u32 vmapped;
	__u32 exported;
	__u32 violations;
	__u64 moves;
	__u64 evictions;
	__u64 revokes;
};

/*
 * drm_vramsim_gem_create.flags
 *
 * A scattered buffer has its segments in pseudo-random order, none right after
 * its neighbour.  A sparse one is for translation only: its segments share a
 * small window of VRAM, and there is no access for the CPU; it needs a BAR.  An
 * uncleared one keeps what the memory held, also when it is revoked: for
 * buffers so big that nobody wants to touch all of them; CAP_SYS_ADMIN.
 */
#define VRAMSIM_CREATE_STATIC		(1 << 0) /* export without pin and move_notify */
#define VRAMSIM_CREATE_NO_VMAP		(1 << 1) /* the kernel cannot map it for the CPU */
#define VRAMSIM_CREATE_SCATTER		(1 << 2) /* segments never adjacent */
#define VRAMSIM_CREATE_SPARSE		(1 << 3) /* VRAM addresses repeat */
#define VRAMSIM_CREATE_NO_P2P		(1 << 4) /* importers never get bus addresses of VRAM */
#define VRAMSIM_CREATE_LOCKED		(1 << 5) /* never moved on another buffer's behalf */
#define VRAMSIM_CREATE_UNCLEARED	(1 << 6) /* keeps what the memory held */

/* drm_vramsim_gem_create.pin */
#define VRAMSIM_PIN_ALLOW		0	/* as the device's policy says */
#define VRAMSIM_PIN_REFUSE		1	/* -EOPNOTSUPP */
#define VRAMSIM_PIN_DOWNGRADE		2	/* moves to system memory, then pins */

/**
 * struct drm_vramsim_gem_create - create a buffer, zero filled
 * @size: bytes, rounded up to whole pages by the driver (in, out)
 * @segment_size: longest segment of a mapping, a multiple of the page size; 0:
 *	as the allocator finds it; never more than 4 GiB - 4 KiB (in)
 * @placement: VRAMSIM_PLACEMENT_VRAM or _SYSTEM (in)
 * @flags: VRAMSIM_CREATE_* (in)
 * @pin: VRAMSIM_PIN_* (in)
 * @seed: order of the segments with VRAMSIM_CREATE_SCATTER (in)
 * @handle: GEM handle (out)
 * @pad: must be zero
 *
 * Other buffers are moved out of VRAM if need be.
 *
 * -EINVAL for wrong arguments, -ENOSPC without room in VRAM, -ENOMEM, -E2BIG
 * for more than 2^24 segments, -EOPNOTSUPP for a sparse buffer without BAR,
 * -EACCES for an uncleared one without CAP_SYS_ADMIN.
 */
struct drm_vramsim_gem_create {
	__u64 size;
	__u64 segment_size;
	__u32 placement;
	__u32 flags;
	__u32 pin;
	__u32 seed;
	__u32 handle;
	__u32 pad;
};

/**
 * struct drm_vramsim_gem_mmap - get the offset to mmap() a buffer at
 * @handle: GEM handle (in)
 * @pad: must be zero
 * @offset: offset for mmap() on the render node (out)
 *
 * -EOPNOTSUPP for a sparse buffer, -EINVAL for an imported one.
 */
struct drm_vramsim_gem_mmap {
	__u32 handle;
	__u32 pad;
	__u64 offset;
};

/**
 * struct drm_vramsim_gem_info - what the exporter knows of a buffer
 * @handle: GEM handle (in)
 * @placement: VRAMSIM_PLACEMENT_* (out)
 * @size: bytes (out)
 * @attached: attachments of importers (out)
 * @attached_p2p: of these, the ones that take peer-to-peer addresses (out)
 * @mapped: mapped attachments (out)
 * @pinned: pins, those included that the dma-buf core adds by itself (out)
 * @vmapped: kernel CPU mappings (out)
 * @segments: segments that a mapping has in the current placement (out)
 * @revoked: 1 after VRAMSIM_GEM_REVOKE (out)
 * @pad: zero (out)
 * @dmabuf_inode: inode number of the dma-buf, 0 if never exported (out)
 * @moves: placement changes (out)
 * @notifies: move_notify calls made (out)
 * @maps: successful maps since creation (out)
 */
struct drm_vramsim_gem_info {
	__u32 handle;
	__u32 placement;
	__u64 size;
	__u32 attached;
	__u32 attached_p2p;
	__u32 mapped;
	__u32 pinned;
	__u32 vmapped;
	__u32 segments;
	__u32 revoked;
	__u32 pad;
	__u64 dmabuf_inode;
	__u64 moves;
	__u64 notifies;
	__u64 maps;
};

/* drm_vramsim_gem_access.op */
#define VRAMSIM_ACCESS_READ		0
#define VRAMSIM_ACCESS_WRITE		1
#define VRAMSIM_ACCESS_FILL		2	/* every byte = low byte of @ptr */

/**
 * struct drm_vramsim_gem_access - the GPU's own view of a buffer
 * @handle: GEM handle (in)
 * @op: VRAMSIM_ACCESS_* (in)
 * @offset: first byte (in)
 * @length: bytes (in)
 * @ptr: user memory that is read or written, or the byte to fill with (in)
 *
 * Follows the buffer wherever it is; waits for its moving fence first.
 * -EINVAL beyond the buffer, -ENODEV if it is revoked, -EOPNOTSUPP if sparse.
 */
struct drm_vramsim_gem_access {
	__u32 handle;
	__u32 op;
	__u64 offset;
	__u64 length;
	__u64 ptr;
};

/* drm_vramsim_gem_move.flags */
#define VRAMSIM_MOVE_SHUFFLE		(1 << 0) /* always to other addresses */
#define VRAMSIM_MOVE_NOTIFY_ONLY	(1 << 1) /* tell the importers, move nothing */

/**
 * struct drm_vramsim_gem_move - move a buffer
 * @handle: GEM handle (in)
 * @placement: where to (in)
 * @flags: VRAMSIM_MOVE_* (in)
 * @fence_ms: the copy takes that long: until then the buffer carries an
 *	exclusive fence, and the data is where importers find it when the
 *	fence has signalled; 0: no fence; at most 600000 (in)
 * @segment_size: new segment size, 0: as before (in)
 *
 * Waits for earlier fences first.  VRAMSIM_MOVE_NOTIFY_ONLY does not, and goes with
 * no other argument than the handle.
 *
 * -EBUSY if the buffer is pinned, mapped by the kernel, or kept mapped by an
 * importer; -ENODEV if revoked, -ENOSPC without room, -EOPNOTSUPP for a sparse
 * buffer to system memory, -EINVAL for wrong arguments and imported buffers.
 */
struct drm_vramsim_gem_move {
	__u32 handle;
	__u32 placement;
	__u32 flags;
	__u32 fence_ms;
	__u64 segment_size;
};

/**
 * struct drm_vramsim_gem_revoke - take a buffer's memory away
 * @handle: GEM handle (in)
 * @pad: must be zero
 *
 * Calls move_notify of all importers, pinned ones included; later maps and
 * pins fail with -ENODEV.  The memory is overwritten with 0x5a and given back
 * as soon as no pin, map or kernel CPU mapping is left.  Does nothing more the
 * second time.  Waits for fences first.
 */
struct drm_vramsim_gem_revoke {
	__u32 handle;
	__u32 pad;
};

/**
 * struct drm_vramsim_gem_fence - put an exclusive fence on a buffer
 * @handle: GEM handle (in)
 * @fence_ms: signals after that time, at most 600000 (in)
 *
 * Waits for earlier fences first.  -ENODEV if the buffer is revoked.
 */
struct drm_vramsim_gem_fence {
	__u32 handle;
	__u32 fence_ms;
};

/* drm_vramsim_inject.step */
#define VRAMSIM_INJECT_ATTACH		0
#define VRAMSIM_INJECT_PIN		1
#define VRAMSIM_INJECT_MAP		2
#define VRAMSIM_INJECT_VMAP		3
#define VRAMSIM_INJECT_NOTIFY_IN_ATTACH	4	/* no failure: a move_notify inside attach */
#define VRAMSIM_INJECT_NOTIFY_IN_PIN	5	/* no failure: a move_notify inside pin */
#define VRAMSIM_INJECT_SHORT_MAP	6	/* no failure: drops the last segment */
#define VRAMSIM_INJECT_PIN_QUOTA	7	/* pins of this device: -ENOMEM above @nth pages */
#define VRAMSIM_INJECT_STEPS		8

/**
 * struct drm_vramsim_inject - make a step fail or misbehave
 * @handle: GEM handle, or 0 for every buffer of the device (in)
 * @step: VRAMSIM_INJECT_* (in)
 * @nth: the first call that is hit, counted from this one on, 1 is the next (in)
 * @count: calls that are hit from there on, 0 takes the injection back (in)
 * @error: positive errno to fail with, up to 4095; 0 where the step does not
 *	fail; attach and pin also take -1 to -4095, for an exporter that answers
 *	with the positive number by mistake (in)
 * @pad: must be zero
 *
 * A new call for the same step replaces the old one.  A @count of 0xffffffff
 * means all calls.  Without handle it needs CAP_SYS_ADMIN (-EACCES).
 */
struct drm_vramsim_inject {
	__u32 handle;
	__u32 step;
	__u32 nth;
	__u32 count;
	__s32 error;
	__u32 pad;
};

/**
 * struct drm_vramsim_segment - one segment of a buffer
 * @address: byte offset in VRAM, or physical address in system memory
 * @length: bytes
 */
struct drm_vramsim_segment {
	__u64 address;
	__u64 length;
};

/**
 * struct drm_vramsim_segments - list the segments of a buffer
 * @handle: GEM handle (in)
 * @count: room in @ptr (in), segments there are (out)
 * @ptr: array of &struct drm_vramsim_segment (in)
 *
 * Needs CAP_SYS_ADMIN (-EACCES), since it shows addresses.
 */
struct drm_vramsim_segments {
	__u32 handle;
	__u32 count;
	__u64 ptr;
};

#define DRM_IOCTL_VRAMSIM_INFO \
	DRM_IOR(DRM_COMMAND_BASE + DRM_VRAMSIM_INFO, struct drm_vramsim_info)
#define DRM_IOCTL_VRAMSIM_GEM_CREATE \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_VRAMSIM_GEM_CREATE, struct drm_vramsim_gem_create)
#define DRM_IOCTL_VRAMSIM_GEM_MMAP \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_VRAMSIM_GEM_MMAP, struct drm_vramsim_gem_mmap)
#define DRM_IOCTL_VRAMSIM_GEM_INFO \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_VRAMSIM_GEM_INFO, struct drm_vramsim_gem_info)
#define DRM_IOCTL_VRAMSIM_GEM_ACCESS \
	DRM_IOW(DRM_COMMAND_BASE + DRM_VRAMSIM_GEM_ACCESS, struct drm_vramsim_gem_access)
#define DRM_IOCTL_VRAMSIM_GEM_MOVE \
	DRM_IOW(DRM_COMMAND_BASE + DRM_VRAMSIM_GEM_MOVE, struct drm_vramsim_gem_move)
#define DRM_IOCTL_VRAMSIM_GEM_REVOKE \
	DRM_IOW(DRM_COMMAND_BASE + DRM_VRAMSIM_GEM_REVOKE, struct drm_vramsim_gem_revoke)
#define DRM_IOCTL_VRAMSIM_GEM_FENCE \
	DRM_IOW(DRM_COMMAND_BASE + DRM_VRAMSIM_GEM_FENCE, struct drm_vramsim_gem_fence)
#define DRM_IOCTL_VRAMSIM_INJECT \
	DRM_IOW(DRM_COMMAND_BASE + DRM_VRAMSIM_INJECT, struct drm_vramsim_inject)
#define DRM_IOCTL_VRAMSIM_SEGMENTS \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_VRAMSIM_SEGMENTS, struct drm_vramsim_segments)

#if defined(__cplusplus)
}
#endif

#endif /* _UAPI_VRAMSIM_DRM_H_ */
