// SPDX-License-Identifier: GPL-2.0
/*
 * Instances: each is a DRM device over the BAR of an ivshmem-plain PCI device
 * that a module parameter names, or over plain pages.
 */

#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/platform_device.h>

#include <drm/amdgpu_drm.h>
#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include <drm/drm_ioctl.h>
#include <drm/drm_managed.h>
#include <drm/drm_prime.h>
#include <drm/drm_print.h>

#include "vramsim_drv.h"

#define IVSHMEM_VENDOR	0x1af4
#define IVSHMEM_DEVICE	0x1110
#define IVSHMEM_BAR	2

#define MAX_INSTANCES	16

static bool pci;
module_param(pci, bool, 0444);
MODULE_PARM_DESC(pci, "Take every ivshmem-plain PCI device (default: N)");

static char *bdf[MAX_INSTANCES];
static int bdf_count;
module_param_array(bdf, charp, &bdf_count, 0444);
MODULE_PARM_DESC(bdf, "Take the ivshmem-plain devices with these PCI addresses (DDDD:BB:DD.F,...)");

static unsigned int vram_mb[MAX_INSTANCES];
static int vram_mb_count;
module_param_array(vram_mb, uint, &vram_mb_count, 0444);
MODULE_PARM_DESC(vram_mb, "Make instances with so many MiB of plain pages (N,...)");

static char *policy = "in_place";
module_param(policy, charp, 0444);
MODULE_PARM_DESC(policy, "Pin VRAM where it is (in_place, the default) or in system memory unless all importers are peer-to-peer (amdgpu)");

static char *present_as = "vramsim";
module_param(present_as, charp, 0444);
MODULE_PARM_DESC(present_as, "Name of the DRM driver: vramsim (default) or amdgpu, with some of amdgpu's ioctls");

bool vramsim_poison_links;
module_param_named(poison, vramsim_poison_links, bool, 0444);
MODULE_PARM_DESC(poison, "Scatterlists have page links that crash whoever follows them (default: N)");

bool vramsim_ask_p2pdma;
module_param_named(p2pdma, vramsim_ask_p2pdma, bool, 0444);
MODULE_PARM_DESC(p2pdma, "Bus addresses of VRAM only for importers that pci_p2pdma says can reach it (default: N)");

u32 vramsim_policy;
bool vramsim_is_amdgpu;

static struct platform_device *vramsim_platform_devices[MAX_INSTANCES];

DEFINE_DRM_GEM_FOPS(vramsim_fops);

/* The numbers of both sets of ioctls are indices in one table. */
static const struct drm_ioctl_desc vramsim_ioctls[] = {
	DRM_IOCTL_DEF_DRV(AMDGPU_GEM_CREATE, vramsim_amdgpu_gem_create, DRM_RENDER_ALLOW),
	DRM_IOCTL_DEF_DRV(AMDGPU_GEM_MMAP, vramsim_amdgpu_gem_mmap, DRM_RENDER_ALLOW),
	DRM_IOCTL_DEF_DRV(AMDGPU_INFO, vramsim_amdgpu_info, DRM_RENDER_ALLOW),
	DRM_IOCTL_DEF_DRV(VRAMSIM_INFO, vramsim_ioctl_info, DRM_RENDER_ALLOW),
	DRM_IOCTL_DEF_DRV(VRAMSIM_GEM_CREATE, vramsim_ioctl_gem_create, DRM_RENDER_ALLOW),
	DRM_IOCTL_DEF_DRV(VRAMSIM_GEM_MMAP, vramsim_ioctl_gem_mmap, DRM_RENDER_ALLOW),
	DRM_IOCTL_DEF_DRV(VRAMSIM_GEM_INFO, vramsim_ioctl_gem_info, DRM_RENDER_ALLOW),
	DRM_IOCTL_DEF_DRV(VRAMSIM_GEM_ACCESS, vramsim_ioctl_gem_access, DRM_RENDER_ALLOW),
	DRM_IOCTL_DEF_DRV(VRAMSIM_GEM_MOVE, vramsim_ioctl_gem_move, DRM_RENDER_ALLOW),
	DRM_IOCTL_DEF_DRV(VRAMSIM_GEM_REVOKE, vramsim_ioctl_gem_revoke, DRM_RENDER_ALLOW),
	DRM_IOCTL_DEF_DRV(VRAMSIM_GEM_FENCE, vramsim_ioctl_gem_fence, DRM_RENDER_ALLOW),
	DRM_IOCTL_DEF_DRV(VRAMSIM_INJECT, vramsim_ioctl_inject, DRM_RENDER_ALLOW),
	DRM_IOCTL_DEF_DRV(VRAMSIM_SEGMENTS, vramsim_ioctl_segments,
			  DRM_RENDER_ALLOW | DRM_ROOT_ONLY),
};

static struct drm_driver vramsim_driver = {
	.driver_features = DRIVER_GEM | DRIVER_RENDER,
	.fops = &vramsim_fops,
	.ioctls = vramsim_ioctls,
	.num_ioctls = ARRAY_SIZE(vramsim_ioctls),
	.name = "vramsim",
	.desc = "simulated GPU memory",
	DRM_DRIVER_DATE("20260801")
	.major = 1,
	.minor = 0,
	.prime_handle_to_fd = drm_gem_prime_handle_to_fd,
	.prime_fd_to_handle = drm_gem_prime_fd_to_handle,
	.gem_prime_import = vramsim_import,
	.gem_prime_import_sg_table = vramsim_import_table,
#ifdef CONFIG_DEBUG_FS
	.debugfs_init = vramsim_debugfs_init,
#endif
};

static ssize_t simulated_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "vramsim\n");
}
static DEVICE_ATTR_RO(simulated);

static struct attribute *vramsim_attrs[] = {
	&dev_attr_simulated.attr,
	NULL
};
ATTRIBUTE_GROUPS(vramsim);

/* Make the DRM device on @dev; @bar is 0 if VRAM is to be plain pages. */
static int vramsim_add(struct device *dev, phys_addr_t bar, u64 size)
{
	struct vramsim_device *vdev;
	int ret;

	vdev = devm_drm_dev_alloc(dev, &vramsim_driver, struct vramsim_device, drm);
	if (IS_ERR(vdev))
		return PTR_ERR(vdev);
	vdev->bar = bar;
	vdev->vram_size = size;
	vdev->pin_quota = U64_MAX;
	mutex_init(&vdev->lock);
	spin_lock_init(&vdev->fault_lock);
	spin_lock_init(&vdev->fence_lock);
	INIT_LIST_HEAD(&vdev->buffers);
	INIT_LIST_HEAD(&vdev->lru);
	INIT_LIST_HEAD(&vdev->fences);
	ret = vramsim_vram_init(vdev);
	if (ret)
		return ret;
	dev_set_drvdata(dev, vdev);
	ret = drm_dev_register(&vdev->drm, 0);
	if (ret)
		return ret;
	if (bar)
		drm_info(&vdev->drm, "simulated GPU memory: %llu MiB of VRAM in a BAR at %pap\n",
			 size >> 20, &bar);
	else
		drm_info(&vdev->drm, "simulated GPU memory: %llu MiB of VRAM in plain pages\n",
			 size >> 20);
	return 0;
}

/*
 * The device goes away, maybe with buffers in use: nobody reaches them any
 * more, importers hear of it, and what they have pinned or mapped is given back
 * when they let go.
 */
static void vramsim_drop(struct device *dev)
{
	struct vramsim_device *vdev = dev_get_drvdata(dev);
	struct vramsim_bo *bo = NULL;

	drm_dev_unplug(&vdev->drm);
	vramsim_fence_expire_all(vdev);
	while ((bo = vramsim_bo_next(vdev, bo))) {
		dma_resv_lock(bo->base.resv, NULL);
		dma_resv_wait_timeout(bo->base.resv, DMA_RESV_USAGE_BOOKKEEP, false,
				      MAX_SCHEDULE_TIMEOUT);
		vramsim_bo_revoke(bo);
		dma_resv_unlock(bo->base.resv);
	}
	vramsim_vram_unmap(vdev);
}

static bool vramsim_pci_wanted(struct pci_dev *pdev)
{
	int i;

	for (i = 0; i < bdf_count; i++)
		if (!strcmp(bdf[i], pci_name(pdev)))
			return true;
	return pci;
}

static int vramsim_pci_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	phys_addr_t bar = pci_resource_start(pdev, IVSHMEM_BAR);
	u64 size = pci_resource_len(pdev, IVSHMEM_BAR);
	int ret;

	if (!vramsim_pci_wanted(pdev))
		return -ENODEV;
	if (!(pci_resource_flags(pdev, IVSHMEM_BAR) & IORESOURCE_MEM) || !bar || !size) {
		pci_err(pdev, "no memory in BAR %d\n", IVSHMEM_BAR);
		return -ENODEV;
	}
	ret = pcim_enable_device(pdev);
	if (ret)
		return ret;
	ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (ret)
		return ret;
	ret = pci_request_region(pdev, IVSHMEM_BAR, "vramsim");
	if (ret)
		return ret;
	ret = arch_io_reserve_memtype_wc(bar, size);
	if (ret)
		goto err_region;
	ret = vramsim_add(&pdev->dev, bar, size);
	if (ret)
		goto err_memtype;
	return 0;

err_memtype:
	arch_io_free_memtype_wc(bar, size);
err_region:
	pci_release_region(pdev, IVSHMEM_BAR);
	return ret;
}

static void vramsim_pci_remove(struct pci_dev *pdev)
{
	vramsim_drop(&pdev->dev);
	arch_io_free_memtype_wc(pci_resource_start(pdev, IVSHMEM_BAR),
				pci_resource_len(pdev, IVSHMEM_BAR));
	/* Newer kernels leave this to the driver, also with a managed device. */
	pci_release_region(pdev, IVSHMEM_BAR);
}

/* No MODULE_DEVICE_TABLE: an ivshmem device may belong to somebody else. */
static const struct pci_device_id vramsim_pci_ids[] = {
	{ PCI_DEVICE(IVSHMEM_VENDOR, IVSHMEM_DEVICE) },
	{ }
};

static struct pci_driver vramsim_pci_driver = {
	.name = "vramsim",
	.id_table = vramsim_pci_ids,
	.probe = vramsim_pci_probe,
	.remove = vramsim_pci_remove,
	.driver.dev_groups = vramsim_groups,
};

static void vramsim_platform_drop(void *dev)
{
	vramsim_drop(dev);
}

static int vramsim_platform_probe(struct platform_device *pdev)
{
	u64 size = (u64)vram_mb[pdev->id] << 20;
	int ret;

	ret = dma_coerce_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (ret)
		return ret;
	ret = vramsim_add(&pdev->dev, 0, ALIGN(size, 1 << VRAMSIM_BLOCK_SHIFT));
	if (ret)
		return ret;
	/* Not by a remove function: what that returns differs between kernels. */
	return devm_add_action_or_reset(&pdev->dev, vramsim_platform_drop, &pdev->dev);
}

static struct platform_driver vramsim_platform_driver = {
	.driver.name = "vramsim",
	.driver.dev_groups = vramsim_groups,
	.probe = vramsim_platform_probe,
};

static void vramsim_remove_platform_devices(void)
{
	int i;

	for (i = 0; i < vram_mb_count; i++)
		platform_device_unregister(vramsim_platform_devices[i]);
}

static int vramsim_add_platform_devices(void)
{
	struct platform_device *pdev;
	int i;

	for (i = 0; i < vram_mb_count; i++) {
		pdev = platform_device_register_simple("vramsim", i, NULL, 0);
		if (IS_ERR(pdev)) {
			vram_mb_count = i;
			vramsim_remove_platform_devices();
			return PTR_ERR(pdev);
		}
		vramsim_platform_devices[i] = pdev;
	}
	return 0;
}

static int vramsim_parse(void)
{
	int i;

	if (!strcmp(policy, "amdgpu")) {
		vramsim_policy = VRAMSIM_POLICY_AMDGPU;
	} else if (strcmp(policy, "in_place")) {
		pr_err("vramsim: policy=%s: neither in_place nor amdgpu\n", policy);
		return -EINVAL;
	}
	for (i = 0; i < vram_mb_count; i++)
		if (!vram_mb[i]) {
			pr_err("vramsim: vram_mb: an instance needs memory\n");
			return -EINVAL;
		}
	if (!strcmp(present_as, "vramsim"))
		return 0;
	if (strcmp(present_as, "amdgpu")) {
		pr_err("vramsim: present_as=%s: neither vramsim nor amdgpu\n", present_as);
		return -EINVAL;
	}
	if (driver_find("amdgpu", &pci_bus_type)) {
		pr_err("vramsim: the real amdgpu is loaded: cannot present as amdgpu\n");
		return -EBUSY;
	}
	vramsim_is_amdgpu = true;
	vramsim_driver.name = "amdgpu";
	vramsim_driver.desc = "simulated GPU memory (vramsim), not an AMD GPU";
	vramsim_driver.major = 3;
	vramsim_driver.minor = 40;
	return 0;
}

static int __init vramsim_init(void)
{
	int ret;

	ret = vramsim_parse();
	if (ret)
		return ret;
	ret = vramsim_fence_init();
	if (ret)
		return ret;
	ret = pci_register_driver(&vramsim_pci_driver);
	if (ret)
		goto err_fence;
	ret = platform_driver_register(&vramsim_platform_driver);
	if (ret)
		goto err_pci;
	ret = vramsim_add_platform_devices();
	if (ret)
		goto err_platform;
	return 0;

err_platform:
	platform_driver_unregister(&vramsim_platform_driver);
err_pci:
	pci_unregister_driver(&vramsim_pci_driver);
err_fence:
	vramsim_fence_exit();
	return ret;
}

static void __exit vramsim_exit(void)
{
	vramsim_remove_platform_devices();
	platform_driver_unregister(&vramsim_platform_driver);
	pci_unregister_driver(&vramsim_pci_driver);
	vramsim_fence_exit();
}

module_init(vramsim_init);
module_exit(vramsim_exit);

MODULE_DESCRIPTION("Simulated GPU memory");
MODULE_LICENSE("GPL v2");
