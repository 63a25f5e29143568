// SPDX-License-Identifier: GPL-2.0
/*
 * The few ioctls of amdgpu that allocators of dma-bufs and libdrm_amdgpu use,
 * for a vramsim that was told to present itself as amdgpu: create a buffer,
 * get its mmap offset, and the queries by which libdrm sets itself up.
 */

#include <linux/string.h>
#include <linux/uaccess.h>

#include <drm/amdgpu_drm.h>
#include <drm/drm_file.h>
#include <drm/drm_vma_manager.h>

#include "vramsim_drv.h"

#define AMDGPU_DEVICE_ID	0x73bf
#define AMDGPU_DOMAINS		(AMDGPU_GEM_DOMAIN_CPU | AMDGPU_GEM_DOMAIN_GTT | \
				 AMDGPU_GEM_DOMAIN_VRAM)
#define AMDGPU_ALIGNMENT	SZ_2M		/* what the allocator gives anyway */

/* libdrm looks for nothing but plausible address ranges here. */
#define AMDGPU_VA_START		0x200000ULL
#define AMDGPU_VA_END		0x800000000000ULL
#define AMDGPU_HIGH_VA_START	0xffff800000000000ULL
#define AMDGPU_HIGH_VA_END	0xffffffffffe00000ULL

int vramsim_amdgpu_gem_create(struct drm_device *drm, void *data, struct drm_file *file)
{
	union drm_amdgpu_gem_create *args = data;
	struct drm_vramsim_gem_create create = {
		.placement = VRAMSIM_PLACEMENT_SYSTEM,
	};
	struct vramsim_bo *bo;
	u32 handle;
	int ret;

	if (!vramsim_is_amdgpu)
		return -EINVAL;
	/* What else a real one has, such as doorbells and on-chip memory, is not there. */
	if (!args->in.bo_size || args->in.bo_size > U64_MAX - PAGE_SIZE ||
	    args->in.alignment > AMDGPU_ALIGNMENT ||
	    !args->in.domains || args->in.domains & ~(u64)AMDGPU_DOMAINS)
		return -EINVAL;
	if (args->in.domains & AMDGPU_GEM_DOMAIN_VRAM)
		create.placement = VRAMSIM_PLACEMENT_VRAM;
	create.size = PAGE_ALIGN(args->in.bo_size);

	bo = vramsim_bo_create(to_vramsim(drm), &create);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	ret = drm_gem_handle_create(file, &bo->base, &handle);
	drm_gem_object_put(&bo->base);
	if (ret)
		return ret;
	memset(args, 0, sizeof(*args));
	args->out.handle = handle;
	return 0;
}

int vramsim_amdgpu_gem_mmap(struct drm_device *drm, void *data, struct drm_file *file)
{
	union drm_amdgpu_gem_mmap *args = data;
	struct drm_vramsim_gem_mmap map = { .handle = args->in.handle };
	int ret;

	if (!vramsim_is_amdgpu)
		return -EINVAL;
	ret = vramsim_ioctl_gem_mmap(drm, &map, file);
	if (ret)
		return ret;
	memset(args, 0, sizeof(*args));
	args->out.addr_ptr = map.offset;
	return 0;
}

static int vramsim_amdgpu_reply(const struct drm_amdgpu_info *args, const void *reply,
				size_t size)
{
	size = min_t(size_t, size, args->return_size);
	return copy_to_user(u64_to_user_ptr(args->return_pointer), reply, size) ? -EFAULT : 0;
}

static int vramsim_amdgpu_device_info(const struct drm_amdgpu_info *args)
{
	struct drm_amdgpu_info_device info = {
		.device_id = AMDGPU_DEVICE_ID,
		.family = AMDGPU_FAMILY_NV,
		.num_shader_engines = 1,
		.virtual_address_offset = AMDGPU_VA_START,
		.virtual_address_max = AMDGPU_VA_END,
		.virtual_address_alignment = PAGE_SIZE,
		.pte_fragment_size = PAGE_SIZE,
		.gart_page_size = PAGE_SIZE,
		.high_va_offset = AMDGPU_HIGH_VA_START,
		.high_va_max = AMDGPU_HIGH_VA_END,
	};

	return vramsim_amdgpu_reply(args, &info, sizeof(info));
}

static int vramsim_amdgpu_memory(struct vramsim_device *vdev, const struct drm_amdgpu_info *args)
{
	u64 system = (u64)totalram_pages() << PAGE_SHIFT;
	struct drm_amdgpu_info_vram_gtt sizes = {
		.vram_size = vdev->vram_size,
		.vram_cpu_accessible_size = vdev->vram_size,
		.gtt_size = system,
	};
	struct drm_amdgpu_memory_info memory = {};
	u64 vram_used, system_used;

	mutex_lock(&vdev->lock);
	vram_used = vdev->vram_used;
	system_used = vdev->system_used;
	mutex_unlock(&vdev->lock);

	switch (args->query) {
	case AMDGPU_INFO_VRAM_GTT:
		return vramsim_amdgpu_reply(args, &sizes, sizeof(sizes));
	case AMDGPU_INFO_VRAM_USAGE:
	case AMDGPU_INFO_VIS_VRAM_USAGE:
		return vramsim_amdgpu_reply(args, &vram_used, sizeof(vram_used));
	case AMDGPU_INFO_GTT_USAGE:
		return vramsim_amdgpu_reply(args, &system_used, sizeof(system_used));
	}

	memory.vram.total_heap_size = vdev->vram_size;
	memory.vram.usable_heap_size = vdev->vram_size;
	memory.vram.heap_usage = vram_used;
	memory.vram.max_allocation = vdev->vram_size;
	memory.cpu_accessible_vram = memory.vram;
	memory.gtt.total_heap_size = system;
	memory.gtt.usable_heap_size = system;
	memory.gtt.heap_usage = system_used;
	memory.gtt.max_allocation = system;
	return vramsim_amdgpu_reply(args, &memory, sizeof(memory));
}

int vramsim_amdgpu_info(struct drm_device *drm, void *data, struct drm_file *file)
{
	const struct drm_amdgpu_info *args = data;
	u32 working = 1;

	if (!vramsim_is_amdgpu || !args->return_size || !args->return_pointer)
		return -EINVAL;

	switch (args->query) {
	case AMDGPU_INFO_ACCEL_WORKING:
		return vramsim_amdgpu_reply(args, &working, sizeof(working));
	case AMDGPU_INFO_DEV_INFO:
		return vramsim_amdgpu_device_info(args);
	case AMDGPU_INFO_READ_MMR_REG:
		/* All registers of this GPU read as zero. */
		if (clear_user(u64_to_user_ptr(args->return_pointer), args->return_size))
			return -EFAULT;
		return 0;
	case AMDGPU_INFO_VRAM_GTT:
	case AMDGPU_INFO_VRAM_USAGE:
	case AMDGPU_INFO_VIS_VRAM_USAGE:
	case AMDGPU_INFO_GTT_USAGE:
	case AMDGPU_INFO_MEMORY:
		return vramsim_amdgpu_memory(to_vramsim(drm), args);
	}
	return -EINVAL;
}
