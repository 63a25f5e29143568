// SPDX-License-Identifier: GPL-2.0
/*
 * A window through which a test in the guest asks the models: "-device
 * mlx5sim-window". No driver binds to it; tools/testing/selftests/mlx5sim.c uses it.
 *
 * BAR 0 is memory. The question is a string at its start, the answer a string at
 * ANSWER. BAR 2 has two registers, 32 bits each, little-endian:
 *
 *   0	written with a LID: that device answers the question, at once
 *   4	read: length of the whole answer, which may be longer than the room for
 *	it; NO_DEVICE, NO_QUESTION
 */
#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "hw/pci/pci.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "mlx5sim.h"
#include "host.h"

#define WINDOW_VENDOR_ID	PCI_VENDOR_ID_QEMU
#define WINDOW_DEVICE_ID	0x6d35
#define MEMORY_SIZE		(32u << 20)
#define ANSWER			0x1000
#define REGISTERS_SIZE		0x1000
#define NO_DEVICE		0xffffffffu
#define NO_QUESTION		0xfffffffeu

struct window {
	PCIDevice pci;
	MemoryRegion memory;
	MemoryRegion registers;
	uint32_t result;
};

static void ask(struct window *window, uint16_t lid)
{
	char *memory = memory_region_get_ram_ptr(&window->memory);
	struct mlx5sim *model = mlx5sim_host_find(lid);
	char question[ANSWER];
	long len;

	if (!model) {
		window->result = NO_DEVICE;
		return;
	}
	pstrcpy(question, sizeof(question), memory);
	len = mlx5sim_ask(model, question, memory + ANSWER,
			  MEMORY_SIZE - ANSWER);
	memory_region_set_dirty(&window->memory, 0, MEMORY_SIZE);
	window->result = len < 0 ? NO_QUESTION : len;
}

static uint64_t registers_read(void *opaque, hwaddr addr, unsigned int size)
{
	struct window *window = opaque;

	return addr == 4 ? window->result : 0;
}

static void registers_write(void *opaque, hwaddr addr, uint64_t val,
			    unsigned int size)
{
	if (addr == 0)
		ask(opaque, val);
}

static const MemoryRegionOps registers_ops = {
	.read = registers_read,
	.write = registers_write,
	.endianness = DEVICE_LITTLE_ENDIAN,
	.valid = { .min_access_size = 4, .max_access_size = 4 },
};

static void window_realize(PCIDevice *pci, Error **errp)
{
	struct window *window = container_of(pci, struct window, pci);
	Error *error = NULL;

	memory_region_init_ram(&window->memory, OBJECT(window),
			       "mlx5sim-window", MEMORY_SIZE, &error);
	if (error) {
		error_propagate(errp, error);
		return;
	}
	pci_register_bar(pci, 0, PCI_BASE_ADDRESS_SPACE_MEMORY |
			 PCI_BASE_ADDRESS_MEM_TYPE_64 |
			 PCI_BASE_ADDRESS_MEM_PREFETCH, &window->memory);
	memory_region_init_io(&window->registers, OBJECT(window),
			      &registers_ops, window, "mlx5sim-registers",
			      REGISTERS_SIZE);
	pci_register_bar(pci, 2, PCI_BASE_ADDRESS_SPACE_MEMORY,
			 &window->registers);
}

static const VMStateDescription no_migration = {
	.name = "mlx5sim-window",
	.unmigratable = 1,
};

static void class_init(ObjectClass *class, void *data)
{
	DeviceClass *device = DEVICE_CLASS(class);
	PCIDeviceClass *pci = PCI_DEVICE_CLASS(class);

	mlx5sim_compare_sizes();
	pci->realize = window_realize;
	pci->vendor_id = WINDOW_VENDOR_ID;
	pci->device_id = WINDOW_DEVICE_ID;
	pci->class_id = PCI_CLASS_OTHERS;
	device->desc = "questions to mlx5sim devices";
	device->vmsd = &no_migration;
	set_bit(DEVICE_CATEGORY_MISC, device->categories);
}

static InterfaceInfo interfaces[] = {
	{ INTERFACE_CONVENTIONAL_PCI_DEVICE },
	{ },
};

static const TypeInfo type = {
	.name = "mlx5sim-window",
	.parent = TYPE_PCI_DEVICE,
	.instance_size = sizeof(struct window),
	.class_init = class_init,
	.interfaces = interfaces,
};

void mlx5sim_register_window(void)
{
	type_register_static(&type);
}
