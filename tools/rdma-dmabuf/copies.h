/* SPDX-License-Identifier: GPL-2.0 */
/* Count the bytes that a software RDMA device copies. */
#ifndef RDMA_DMABUF_COPIES_H
#define RDMA_DMABUF_COPIES_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the CPU moves the data for @device: rxe */
bool copies_by_cpu(const char *device);

/*
 * Sets a probe on the function that rxe moves all payload with, of whatever MR.
 * 0, or -1 and errno: ENODEV where the device is not rxe or the kernel has no
 * kprobe events.
 */
int copies_init(const char *device);
void copies_fini(void);

/* Bytes copied between the two, by all of the system's traffic; -1 and errno */
int copies_start(void);
int copies_stop(uint64_t *bytes);

const char *copies_failed_call(void);

#endif /* RDMA_DMABUF_COPIES_H */
