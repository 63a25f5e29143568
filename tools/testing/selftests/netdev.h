/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Software RDMA devices beside rxe0, made and removed by a test, and modules.
 */
#ifndef SELFTESTS_NETDEV_H
#define SELFTESTS_NETDEV_H

#include <stdbool.h>

/* Runs a command; true if it succeeds. */
__attribute__((format(printf, 1, 2)))
bool run(const char *fmt, ...);

/*
 * An RDMA device @name of @type ("rxe", "siw") on a network device of its own
 * with the address 10.99.@net.1; false if this kernel has no such type.
 */
bool soft_rdma_add(const char *name, const char *type, int net);
/* Until the GID of the address is there: it follows the device from a work queue. */
bool soft_rdma_wait(const char *name, int net);
void soft_rdma_del(const char *name);

/* delete_module() without waiting: 0 or errno. */
int module_unload(const char *name);
bool module_loaded(const char *name);

#endif /* SELFTESTS_NETDEV_H */
