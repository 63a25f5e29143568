// SPDX-License-Identifier: GPL-2.0
/*
 * The way into QEMU, and its guard.
 *
 * The host is preloaded into Debian's own QEMU, whose binary exports what a device
 * needs. The headers that this was compiled with must be those of that very
 * binary, or structures would differ without anything to see. So the host works
 * with one build only: the one whose build ID the build script passed in.
 */
#include "qemu/osdep.h"
#include <link.h>
#include "qemu/module.h"
#include "hw/boards.h"
#include "hw/pci/pci.h"
#include "host.h"

#define HEX_DIGITS	"0123456789abcdef"

/* The kind of note; QEMU has an elf.h of its own, without it. */
#define NOTE_BUILD_ID	3

/* The build ID in one segment of notes of a program, in hexadecimal. */
static bool find_build_id(const char *note, size_t size, char *id, size_t room)
{
	while (size >= sizeof(Elf64_Nhdr)) {
		const Elf64_Nhdr *head = (const void *)note;
		size_t name = ROUND_UP(head->n_namesz, 4);
		size_t all = sizeof(*head) + name + ROUND_UP(head->n_descsz, 4);
		const unsigned char *bytes =
			(const void *)(note + sizeof(*head) + name);
		size_t i;

		if (all > size)
			return false;
		if (head->n_type == NOTE_BUILD_ID &&
		    2 * head->n_descsz < room) {
			for (i = 0; i < head->n_descsz; i++) {
				*id++ = HEX_DIGITS[bytes[i] >> 4];
				*id++ = HEX_DIGITS[bytes[i] & 15];
			}
			*id = '\0';
			return true;
		}
		note += all;
		size -= all;
	}
	return false;
}

struct build_id {
	char text[2 * 64 + 1];
};

/* Called for the program first, and then for each library: one call is enough. */
static int look_at_program(struct dl_phdr_info *info, size_t size, void *data)
{
	struct build_id *id = data;
	int i;

	for (i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *segment = &info->dlpi_phdr[i];

		if (segment->p_type == PT_NOTE &&
		    find_build_id((const char *)info->dlpi_addr +
				  segment->p_vaddr, segment->p_memsz, id->text,
				  sizeof(id->text)))
			break;
	}
	return 1;
}

static void same_size(const char *type, size_t compiled)
{
	size_t running = object_type_get_instance_size(type);

	if (running != compiled) {
		fprintf(stderr, "mlx5sim: %s has %zu bytes in this QEMU and %zu in the headers of the build\n",
			type, running, compiled);
		exit(EXIT_FAILURE);
	}
}

static void register_types(void)
{
	mlx5sim_register_pci();
	mlx5sim_register_window();
}

void mlx5sim_compare_sizes(void)
{
	same_size(TYPE_DEVICE, sizeof(DeviceState));
	same_size(TYPE_PCI_DEVICE, sizeof(PCIDevice));
	same_size(TYPE_MEMORY_REGION, sizeof(MemoryRegion));
	same_size(TYPE_MACHINE, sizeof(MachineState));
}

static void __attribute__((constructor)) enter(void)
{
	struct build_id id = { "none" };

	dl_iterate_phdr(look_at_program, &id);
	if (strcmp(id.text, MLX5SIM_QEMU_BUILD_ID)) {
		fprintf(stderr, "mlx5sim: built for QEMU %s, build ID %s; this program has build ID %s\n",
			MLX5SIM_QEMU_VERSION, MLX5SIM_QEMU_BUILD_ID, id.text);
		exit(EXIT_FAILURE);
	}
	register_module_init(register_types, MODULE_INIT_QOM);
}
