/* SPDX-License-Identifier: GPL-2.0 */
/*
 * vramsim: a simulated GPU's memory.
 *
 * vramsim_drv.c	module parameters, instances, removal
 * vramsim_ioctl.c	the user interface of include/uapi/drm/vramsim_drm.h
 * vramsim_bo.c		buffers: create, move, evict, pin, revoke, CPU mappings
 * vramsim_mem.c	memory: segments in VRAM or system memory
 * vramsim_cpu.c	access to memory with the CPU
 * vramsim_fence.c	fences that signal after a given time
 * vramsim_dmabuf.c	dma-buf exporter and importer
 * vramsim_amdgpu.c	the ioctls of amdgpu that allocators and libdrm ask
 * vramsim_debugfs.c	counters and a table of the buffers
 *
 * Locks, outermost first:
 * mmap_lock; the reservation lock of a buffer (obj->resv), which covers where
 * the buffer is and who uses it; vramsim_device.lock, which covers what is free
 * and which buffers there are. A second reservation lock is only ever tried.
 */
#ifndef _VRAMSIM_DRV_H_
#define _VRAMSIM_DRV_H_

#include <linux/atomic.h>
#include <linux/dma-buf.h>
#include <linux/dmabuf_compat.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include <drm/drm_device.h>
#include <drm/drm_gem.h>
#include <drm/drm_mm.h>
#include <drm/vramsim_drm.h>

struct drm_file;
struct drm_minor;
struct vramsim_fence;

/* The longest run of bytes that one entry of a scatterlist can describe */
#define VRAMSIM_MAX_SEGMENT	((u64)ALIGN_DOWN(UINT_MAX, PAGE_SIZE))

/* VRAM of plain pages is made of blocks of this size */
#define VRAMSIM_BLOCK_SHIFT	21

/* How much of the BAR the kernel maps at once */
#define VRAMSIM_WINDOW_SHIFT	24

/* The longest time that a fence may take */
#define VRAMSIM_MAX_FENCE_MS	(10 * 60 * 1000)

/**
 * struct vramsim_fault - one step that is asked to fail or to misbehave
 * @skip: calls that pass before the first one is hit
 * @count: calls that are hit, U32_MAX: all of them
 * @error: negative errno, 0 where the step does not fail
 */
struct vramsim_fault {
	u32 skip;
	u32 count;
	int error;
};

/**
 * struct vramsim_device - an instance
 * @drm: the DRM device
 * @bar: bus address of the BAR, 0 if VRAM is plain pages
 * @windows: kernel mappings of parts of the BAR, made at first use
 * @blocks: the plain pages, (1 << VRAMSIM_BLOCK_SHIFT) bytes each
 * @vram_size: bytes of VRAM
 * @lock: protects the members below
 * @mm: which part of VRAM is whose
 * @vram_used: bytes of VRAM that buffers have
 * @system_used: bytes of system memory that buffers have
 * @buffers: buffers of this device, imported ones excluded
 * @lru: those in VRAM, the one that was placed there first at the head
 * @lru_count: length of @lru
 * @pinned_bytes: bytes of pinned buffers
 * @pin_quota: limit of @pinned_bytes
 * @faults: what shall fail on any buffer; under @fault_lock
 * @fault_lock: protects @faults here and in all buffers
 * @fences: fences that have not signalled; under @fence_lock
 * @fence_lock: protects @fences
 * @objects: buffers that exist
 * @attached: attachments of importers
 * @mapped: mapped attachments
 * @pinned: pins
 * @vmapped: kernel CPU mappings
 * @exported: dma-bufs
 * @violations: importers that kept a mapping through move_notify
 * @moves: placement changes
 * @evictions: moves to make room
 * @revokes: revoked buffers
 * @callback_ns: time spent in callbacks of the dma-buf core, for importers
 */
struct vramsim_device {
	struct drm_device drm;
	phys_addr_t bar;
	void __iomem **windows;
	struct page **blocks;
	u64 vram_size;

	struct mutex lock; /* what is free, which buffers there are */
	struct drm_mm mm;
	u64 vram_used;
	u64 system_used;
	struct list_head buffers;
	struct list_head lru;
	unsigned int lru_count;
	u64 pinned_bytes;
	u64 pin_quota;

	spinlock_t fault_lock; /* faults here and in buffers */
	struct vramsim_fault faults[VRAMSIM_INJECT_STEPS];

	spinlock_t fence_lock; /* fences */
	struct list_head fences;

	atomic_t objects;
	atomic_t attached;
	atomic_t mapped;
	atomic_t pinned;
	atomic_t vmapped;
	atomic_t exported;
	atomic_t violations;
	atomic64_t moves;
	atomic64_t evictions;
	atomic64_t revokes;
	atomic64_t callback_ns;
};

#define to_vramsim(d)	container_of(d, struct vramsim_device, drm)

/**
 * struct vramsim_layout - how a buffer's memory shall be cut
 * @segment_size: longest run of bytes, 0: as the allocator finds it
 * @scatter: in pseudo-random order, never adjacent
 * @seed: of that order
 * @sparse: many segments share the same bytes of VRAM
 */
struct vramsim_layout {
	u64 segment_size;
	bool scatter;
	u32 seed;
	bool sparse;
};

/**
 * struct vramsim_segment - a run of adjacent bytes
 * @start: offset in the buffer
 * @addr: offset in VRAM, or physical address in system memory
 */
struct vramsim_segment {
	u64 start;
	u64 addr;
};

/**
 * struct vramsim_mem - the memory that a buffer has in one placement
 * @placement: VRAMSIM_PLACEMENT_VRAM or _SYSTEM
 * @count: number of segments
 * @size: bytes, as the buffer sees it
 * @nodes: the parts of VRAM, struct vramsim_node
 * @segments: in the order of the buffer, then one that starts at @size
 */
struct vramsim_mem {
	u32 placement;
	u32 count;
	u64 size;
	struct list_head nodes;
	struct vramsim_segment *segments;
};

static inline u64 vramsim_segment_length(const struct vramsim_mem *mem, u32 i)
{
	return mem->segments[i + 1].start - mem->segments[i].start;
}

/**
 * struct vramsim_bo - a buffer
 * @base: the GEM object; base.resv covers all members but the last ones
 * @mem: where it is, NULL once a revoked buffer has lost its memory
 * @layout: how its memory is cut
 * @flags: VRAMSIM_CREATE_*
 * @pin_policy: VRAMSIM_PIN_*
 * @dmabuf: its dma-buf, as long as that exists
 * @attached: attachments
 * @attached_p2p: those that take peer-to-peer addresses
 * @mapped: mapped attachments
 * @mapped_dynamic: those that have to unmap on move_notify
 * @pinned: pins
 * @vmap: the kernel's CPU mapping, NULL if there is none
 * @vmap_io: @vmap is an ioremap
 * @revoked: its memory is taken away, or will be when nobody uses it
 * @moves: placement changes
 * @notifies: move_notify calls
 * @maps: successful maps
 * @reason: why the last importer was turned away or sent to system memory
 * @faults: what shall fail; under vramsim_device.fault_lock
 * @import: mapping of an imported buffer
 * @link: in vramsim_device.buffers
 * @lru: in vramsim_device.lru, if in VRAM and not in use by a creator
 */
struct vramsim_bo {
	struct drm_gem_object base;
	struct vramsim_mem *mem;
	struct vramsim_layout layout;
	u32 flags;
	u32 pin_policy;
	struct dma_buf *dmabuf;
	u32 attached;
	u32 attached_p2p;
	u32 mapped;
	u32 mapped_dynamic;
	u32 pinned;
	void *vmap;
	bool vmap_io;
	bool revoked;
	u64 moves;
	u64 notifies;
	u64 maps;
	const char *reason;

	struct vramsim_fault faults[VRAMSIM_INJECT_STEPS];
	struct sg_table *import;
	struct list_head link;
	struct list_head lru;
};

#define to_vramsim_bo(o)	container_of(o, struct vramsim_bo, base)

static inline struct vramsim_device *vramsim_bo_device(const struct vramsim_bo *bo)
{
	return to_vramsim(bo->base.dev);
}

/* vramsim_drv.c */
extern bool vramsim_ask_p2pdma;
extern bool vramsim_poison_links;
extern bool vramsim_is_amdgpu;
extern u32 vramsim_policy;

/* vramsim_mem.c */
int vramsim_vram_init(struct vramsim_device *vdev);
struct vramsim_mem *vramsim_mem_create(struct vramsim_device *vdev, u32 placement,
				       u64 size, const struct vramsim_layout *layout);
void vramsim_mem_free(struct vramsim_device *vdev, struct vramsim_mem *mem);
phys_addr_t vramsim_mem_phys(struct vramsim_device *vdev,
			     const struct vramsim_mem *mem, u32 i);
bool vramsim_mem_is_io(struct vramsim_device *vdev, const struct vramsim_mem *mem);
u64 vramsim_mem_window(const struct vramsim_mem *mem, u64 *size);
u32 vramsim_mem_find(const struct vramsim_mem *mem, u64 offset);

/* vramsim_cpu.c */
void vramsim_vram_unmap(struct vramsim_device *vdev);
int vramsim_mem_access(struct vramsim_device *vdev, const struct vramsim_mem *mem,
		       u32 op, u64 offset, void *buf, u64 length);
int vramsim_mem_copy(struct vramsim_device *vdev, const struct vramsim_mem *to,
		     const struct vramsim_mem *from);
void *vramsim_mem_vmap(struct vramsim_device *vdev, const struct vramsim_mem *mem,
		       bool *io);
void vramsim_mem_vunmap(void *vaddr, bool io);

/* vramsim_bo.c */
extern const struct drm_gem_object_funcs vramsim_bo_funcs;
struct vramsim_bo *vramsim_bo_create(struct vramsim_device *vdev,
				     const struct drm_vramsim_gem_create *args);
struct vramsim_bo *vramsim_bo_next(struct vramsim_device *vdev, struct vramsim_bo *prev);
int vramsim_bo_lock_idle(struct vramsim_bo *bo);
int vramsim_bo_notify(struct vramsim_bo *bo);
int vramsim_bo_move(struct vramsim_bo *bo, u32 placement,
		    const struct vramsim_layout *layout, u32 fence_ms);
int vramsim_bo_pin(struct vramsim_bo *bo, struct dma_buf_attachment *attach);
void vramsim_bo_unpin(struct vramsim_bo *bo);
void vramsim_bo_revoke(struct vramsim_bo *bo);
void vramsim_bo_reap(struct vramsim_bo *bo);
int vramsim_bo_vmap(struct vramsim_bo *bo, struct iosys_map *map);
void vramsim_bo_vunmap(struct vramsim_bo *bo);
int vramsim_bo_hit(struct vramsim_bo *bo, u32 step);

/* vramsim_fence.c */
int vramsim_fence_init(void);
void vramsim_fence_exit(void);
struct vramsim_fence *vramsim_fence_create(struct vramsim_bo *bo, u32 ms);
void vramsim_fence_cancel(struct vramsim_fence *fence);
void vramsim_fence_start(struct vramsim_fence *fence, struct vramsim_mem *from);
void vramsim_fence_expire_all(struct vramsim_device *vdev);

/* vramsim_dmabuf.c */
struct dma_buf *vramsim_export(struct drm_gem_object *obj, int flags);
struct drm_gem_object *vramsim_import(struct drm_device *drm, struct dma_buf *dmabuf);
struct drm_gem_object *vramsim_import_table(struct drm_device *drm,
					    struct dma_buf_attachment *attach,
					    struct sg_table *sgt);

/* vramsim_ioctl.c */
int vramsim_ioctl_info(struct drm_device *drm, void *data, struct drm_file *file);
int vramsim_ioctl_gem_create(struct drm_device *drm, void *data, struct drm_file *file);
int vramsim_ioctl_gem_mmap(struct drm_device *drm, void *data, struct drm_file *file);
int vramsim_ioctl_gem_info(struct drm_device *drm, void *data, struct drm_file *file);
int vramsim_ioctl_gem_access(struct drm_device *drm, void *data, struct drm_file *file);
int vramsim_ioctl_gem_move(struct drm_device *drm, void *data, struct drm_file *file);
int vramsim_ioctl_gem_revoke(struct drm_device *drm, void *data, struct drm_file *file);
int vramsim_ioctl_gem_fence(struct drm_device *drm, void *data, struct drm_file *file);
int vramsim_ioctl_inject(struct drm_device *drm, void *data, struct drm_file *file);
int vramsim_ioctl_segments(struct drm_device *drm, void *data, struct drm_file *file);

/* vramsim_amdgpu.c */
int vramsim_amdgpu_gem_create(struct drm_device *drm, void *data, struct drm_file *file);
int vramsim_amdgpu_gem_mmap(struct drm_device *drm, void *data, struct drm_file *file);
int vramsim_amdgpu_info(struct drm_device *drm, void *data, struct drm_file *file);

/* vramsim_debugfs.c */
#ifdef CONFIG_DEBUG_FS
void vramsim_debugfs_init(struct drm_minor *minor);
#endif

#endif /* _VRAMSIM_DRV_H_ */
