// SPDX-License-Identifier: GPL-2.0
/*
 * mlx5sim as a PCI device of QEMU: "-device mlx5sim,lid=1".
 *
 * The model does the work; this gives it a bus, interrupts, a clock and files.
 * All of it runs under the big QEMU lock, which is the one lock over all devices
 * that the model asks for.
 */
#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "qemu/timer.h"
#include "qapi/error.h"
#include "hw/boards.h"
#include "hw/pci/msix.h"
#include "hw/pci/pci.h"
#include "hw/pci/pcie.h"
#include "hw/qdev-properties.h"
#include "migration/vmstate.h"
#include "sysemu/runstate.h"
#include "mlx5sim.h"
#include "host.h"

#define MSIX_BAR		2
#define MSIX_BAR_SIZE		0x2000
#define MSIX_PBA		0x1000
#define EXPRESS_CAP		0x60

/* A model gone mad must not fill the disk: then come no more lines. */
#define LOG_LINES		2000
#define TRACE_BYTES_DEFAULT	(256ull << 20)

struct mlx5sim_pci {
	PCIDevice pci;
	MemoryRegion bar;
	MemoryRegion msix;
	QEMUTimer timer;
	struct mlx5sim *model;
	struct mlx5sim_ops ops;
	QTAILQ_ENTRY(mlx5sim_pci) next;

	/* properties */
	uint16_t lid;
	bool pf;
	bool strict;
	bool peer_read;
	bool trace_dma;
	char *faults;
	char *caps;
	char *trace;
	uint64_t trace_max;

	FILE *trace_file;
	uint64_t traced;
	unsigned int logged;
	char last_log[256];
};

static QTAILQ_HEAD(, mlx5sim_pci) devices = QTAILQ_HEAD_INITIALIZER(devices);

struct mlx5sim *mlx5sim_host_find(uint16_t lid)
{
	struct mlx5sim_pci *dev;

	QTAILQ_FOREACH(dev, &devices, next) {
		if (dev->lid == lid)
			return dev->model;
	}
	return NULL;
}

/*
 * Memory that is not the machine's own: another device's BAR. The address is the
 * device's, so an IOMMU has its say.
 */
static bool is_peer(struct mlx5sim_pci *dev, uint64_t addr, size_t len)
{
	hwaddr offset, run = len;
	MemoryRegion *region;

	RCU_READ_LOCK_GUARD();
	region = address_space_translate(pci_get_address_space(&dev->pci), addr,
					 &offset, &run, false,
					 MEMTXATTRS_UNSPECIFIED);
	return region != current_machine->ram;
}

static int move(struct mlx5sim_pci *dev, uint64_t addr, void *buf, size_t len,
		DMADirection direction)
{
	switch (pci_dma_rw(&dev->pci, addr, buf, len, direction,
			   MEMTXATTRS_UNSPECIFIED)) {
	case MEMTX_OK:
		return 0;
	case MEMTX_DECODE_ERROR:
		return MLX5SIM_DMA_NONE;
	default:
		return MLX5SIM_DMA_REFUSED;
	}
}

static int host_dma_read(void *host, uint64_t addr, void *buf, size_t len)
{
	struct mlx5sim_pci *dev = host;

	if (!dev->peer_read && is_peer(dev, addr, len))
		return MLX5SIM_DMA_REFUSED;
	return move(dev, addr, buf, len, DMA_DIRECTION_TO_DEVICE);
}

static int host_dma_write(void *host, uint64_t addr, const void *buf,
			  size_t len)
{
	return move(host, addr, (void *)buf, len, DMA_DIRECTION_FROM_DEVICE);
}

/* Where an IOMMU has no entry, how far that holds: the smallest page there is */
#define IOMMU_PAGE 4096

/* Of an IOMMU's answer only the page that it is about can be relied on. */
static uint64_t host_memory(void *host, uint64_t addr, uint64_t *len)
{
	struct mlx5sim_pci *dev = host;
	IOMMUTLBEntry found;
	uint64_t offset;

	if (pci_device_iommu_address_space(&dev->pci) == &address_space_memory)
		return addr;
	RCU_READ_LOCK_GUARD();
	found = address_space_get_iotlb_entry(pci_get_address_space(&dev->pci),
					      addr, false,
					      MEMTXATTRS_UNSPECIFIED);
	if (found.perm == IOMMU_NONE) {
		*len = MIN(*len, IOMMU_PAGE - addr % IOMMU_PAGE);
		return MLX5SIM_NOWHERE;
	}
	offset = addr & found.addr_mask;
	*len = MIN(*len, found.addr_mask - offset + 1);
	return found.translated_addr + offset;
}

static void host_msix(void *host, unsigned int vector)
{
	struct mlx5sim_pci *dev = host;

	msix_notify(&dev->pci, vector);
}

static uint64_t host_now_ns(void *host)
{
	return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

static void host_timer_set(void *host, uint64_t deadline_ns)
{
	struct mlx5sim_pci *dev = host;

	if (deadline_ns == MLX5SIM_TIMER_OFF)
		timer_del(&dev->timer);
	else
		timer_mod_ns(&dev->timer, MIN(deadline_ns, INT64_MAX));
}

static void host_timer(void *opaque)
{
	struct mlx5sim_pci *dev = opaque;

	mlx5sim_timer(dev->model);
}

static void host_log(void *host, const char *text)
{
	struct mlx5sim_pci *dev = host;

	pstrcpy(dev->last_log, sizeof(dev->last_log), text);
	if (dev->logged > LOG_LINES)
		return;
	if (dev->logged++ == LOG_LINES)
		text = "mlx5sim: more than enough lines, no more from now on";
	fprintf(stderr, "%s\n", text);
}

static void host_trace(void *host, const char *json)
{
	struct mlx5sim_pci *dev = host;
	size_t len = strlen(json) + 1;

	if (dev->traced > dev->trace_max)
		return;
	dev->traced += len;
	if (dev->traced > dev->trace_max) {
		host_log(dev, "mlx5sim: trace-max reached: the trace ends here");
		json = "{\"event\":\"trace-max\"}";
	}
	fprintf(dev->trace_file, "%s\n", json);
}

/* The log has the reason; the run ends as soon as QEMU's main loop gets to it. */
static void host_violation(void *host, unsigned int number, const char *text)
{
	struct mlx5sim_pci *dev = host;

	fprintf(stderr, "mlx5sim %u: VIOLATION %u, the run ends\n", dev->lid,
		number);
	qemu_system_shutdown_request(SHUTDOWN_CAUSE_HOST_ERROR);
}

static const struct mlx5sim_ops ops = {
	.dma_read = host_dma_read,
	.dma_write = host_dma_write,
	.msix = host_msix,
	.now_ns = host_now_ns,
	.timer_set = host_timer_set,
	.log = host_log,
	.memory = host_memory,
	.violation = host_violation,
};

static uint64_t bar_read(void *opaque, hwaddr addr, unsigned int size)
{
	struct mlx5sim_pci *dev = opaque;

	return mlx5sim_bar_read(dev->model, addr, size);
}

static void bar_write(void *opaque, hwaddr addr, uint64_t val,
		      unsigned int size)
{
	struct mlx5sim_pci *dev = opaque;

	mlx5sim_bar_write(dev->model, addr, val, size);
}

static const MemoryRegionOps bar_ops = {
	.read = bar_read,
	.write = bar_write,
	.endianness = DEVICE_BIG_ENDIAN,
	.valid = { .min_access_size = 1, .max_access_size = 8 },
	.impl = { .min_access_size = 1, .max_access_size = 8 },
};

static bool open_trace(struct mlx5sim_pci *dev, Error **errp)
{
	if (!dev->trace)
		return true;
	dev->trace_file = fopen(dev->trace, "w");
	if (!dev->trace_file) {
		error_setg_file_open(errp, errno, dev->trace);
		return false;
	}
	/* Whole lines, at once: tests read it while the guest runs. */
	setvbuf(dev->trace_file, NULL, _IOLBF, 0);
	return true;
}

static bool create_model(struct mlx5sim_pci *dev, Error **errp)
{
	const struct mlx5sim_config config = {
		.lid = dev->lid,
		.is_pf = dev->pf,
		.strict = dev->strict,
		.faults = dev->faults,
		.caps = dev->caps,
		.trace_dma = dev->trace_dma,
	};

	if (dev->trace_dma && !dev->trace) {
		error_setg(errp, "trace-dma needs trace=FILE");
		return false;
	}
	timer_init_ns(&dev->timer, QEMU_CLOCK_VIRTUAL, host_timer, dev);
	dev->ops = ops;
	if (dev->trace)
		dev->ops.trace = host_trace;
	dev->model = mlx5sim_new(dev, &dev->ops, &config);
	if (!dev->model) {
		error_setg(errp, "%s", dev->last_log);
		return false;
	}
	return true;
}

static void destroy(struct mlx5sim_pci *dev)
{
	mlx5sim_free(dev->model);
	dev->model = NULL;
	timer_del(&dev->timer);
	if (dev->trace_file)
		fclose(dev->trace_file);
	dev->trace_file = NULL;
}

static bool map_bars(struct mlx5sim_pci *dev, Error **errp)
{
	const uint8_t mem64 = PCI_BASE_ADDRESS_SPACE_MEMORY |
			      PCI_BASE_ADDRESS_MEM_TYPE_64;
	PCIDevice *pci = &dev->pci;
	unsigned int i;

	memory_region_init_io(&dev->bar, OBJECT(dev), &bar_ops, dev, "mlx5sim",
			      MLX5SIM_BAR_SIZE);
	pci_register_bar(pci, 0, mem64 | PCI_BASE_ADDRESS_MEM_PREFETCH,
			 &dev->bar);
	memory_region_init(&dev->msix, OBJECT(dev), "mlx5sim-msix",
			   MSIX_BAR_SIZE);
	pci_register_bar(pci, MSIX_BAR, mem64, &dev->msix);
	if (msix_init(pci, MLX5SIM_NUM_VECTORS, &dev->msix, MSIX_BAR, 0,
		      &dev->msix, MSIX_BAR, MSIX_PBA, 0, errp) < 0)
		return false;
	for (i = 0; i < MLX5SIM_NUM_VECTORS; i++)
		msix_vector_use(pci, i);
	return pcie_endpoint_cap_init(pci, EXPRESS_CAP) >= 0;
}

static void pci_realize(PCIDevice *pci, Error **errp)
{
	struct mlx5sim_pci *dev = container_of(pci, struct mlx5sim_pci, pci);

	if (!open_trace(dev, errp))
		return;
	if (!create_model(dev, errp) || !map_bars(dev, errp)) {
		destroy(dev);
		return;
	}
	pci_config_set_device_id(pci->config, dev->pf ? MLX5SIM_DEVICE_ID_PF :
						       MLX5SIM_DEVICE_ID_VF);
	QTAILQ_INSERT_TAIL(&devices, dev, next);
}

static void pci_exit(PCIDevice *pci)
{
	struct mlx5sim_pci *dev = container_of(pci, struct mlx5sim_pci, pci);

	QTAILQ_REMOVE(&devices, dev, next);
	pcie_cap_exit(pci);
	msix_unuse_all_vectors(pci);
	msix_uninit(pci, &dev->msix, &dev->msix);
	destroy(dev);
}

static void pci_reset(DeviceState *device)
{
	PCIDevice *pci = container_of(device, PCIDevice, qdev);
	struct mlx5sim_pci *dev = container_of(pci, struct mlx5sim_pci, pci);

	mlx5sim_reset(dev->model);
}

static Property properties[] = {
	DEFINE_PROP_UINT16("lid", struct mlx5sim_pci, lid, 1),
	DEFINE_PROP_BOOL("pf", struct mlx5sim_pci, pf, false),
	DEFINE_PROP_BOOL("strict", struct mlx5sim_pci, strict, true),
	DEFINE_PROP_BOOL("peer-read", struct mlx5sim_pci, peer_read, true),
	DEFINE_PROP_STRING("faults", struct mlx5sim_pci, faults),
	DEFINE_PROP_STRING("caps", struct mlx5sim_pci, caps),
	DEFINE_PROP_STRING("trace", struct mlx5sim_pci, trace),
	DEFINE_PROP_BOOL("trace-dma", struct mlx5sim_pci, trace_dma, false),
	DEFINE_PROP_SIZE("trace-max", struct mlx5sim_pci, trace_max,
			 TRACE_BYTES_DEFAULT),
	DEFINE_PROP_END_OF_LIST(),
};

static const VMStateDescription no_migration = {
	.name = "mlx5sim",
	.unmigratable = 1,
};

static void class_init(ObjectClass *class, void *data)
{
	DeviceClass *device = DEVICE_CLASS(class);
	PCIDeviceClass *pci = PCI_DEVICE_CLASS(class);

	mlx5sim_compare_sizes();
	pci->realize = pci_realize;
	pci->exit = pci_exit;
	pci->vendor_id = MLX5SIM_VENDOR_ID;
	pci->device_id = MLX5SIM_DEVICE_ID_VF;
	pci->class_id = PCI_CLASS_NETWORK_OTHER;
	device->reset = pci_reset;
	device->desc = "software ConnectX (mlx5)";
	device->vmsd = &no_migration;
	set_bit(DEVICE_CATEGORY_NETWORK, device->categories);
	device_class_set_props(device, properties);
}

static InterfaceInfo interfaces[] = {
	{ INTERFACE_PCIE_DEVICE },
	{ },
};

static const TypeInfo type = {
	.name = "mlx5sim",
	.parent = TYPE_PCI_DEVICE,
	.instance_size = sizeof(struct mlx5sim_pci),
	.class_init = class_init,
	.interfaces = interfaces,
};

void mlx5sim_register_pci(void)
{
	type_register_static(&type);
}
