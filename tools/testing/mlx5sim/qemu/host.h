/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of the QEMU host share. */
#ifndef MLX5SIM_HOST_H
#define MLX5SIM_HOST_H

#include <stdbool.h>
#include <stdint.h>

struct mlx5sim;

/**
 * mlx5sim_host_find() - the model of the device with this LID
 * @lid: its address on the fabric
 *
 * Context: under the big QEMU lock, as all of the host.
 * Return: the model, or NULL: there is no such device.
 */
struct mlx5sim *mlx5sim_host_find(uint16_t lid);

/**
 * mlx5sim_compare_sizes() - end a QEMU whose structures are not those of the headers
 *
 * Context: once QEMU has registered its own types, as when a class is initialised.
 */
void mlx5sim_compare_sizes(void);

/* Register the types of device, once this QEMU is known to be the right one. */
void mlx5sim_register_pci(void);
void mlx5sim_register_window(void);

#endif /* MLX5SIM_HOST_H */
