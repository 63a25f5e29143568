// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "netdev.h"
#include "tap.h"

bool run(const char *fmt, ...)
{
	char command[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	fflush(stdout);
	return system(command) == 0;
}

bool soft_rdma_wait(const char *name, int net)
{
	for (int tries = 0; tries < 100; tries++) {
		if (run("grep -qs '0a63:%02x01' /sys/class/infiniband/%s/ports/1/gids/*", net, name))
			return true;
		usleep(50 * 1000);
	}
	return false;
}

bool soft_rdma_add(const char *name, const char *type, int net)
{
	if (!run("modprobe -q %s", strcmp(type, "rxe") ? type : "rdma_rxe"))
		return false;
	if (!run("ip link add net-%s type dummy && ip addr add 10.99.%d.1/24 dev net-%s && "
		 "ip link set net-%s up", name, net, name, name))
		bail("no network device for %s", name);
	if (!run("rdma link add %s type %s netdev net-%s", name, type, name))
		bail("no %s of type %s", name, type);
	if (!strcmp(type, "rxe") && !soft_rdma_wait(name, net))
		bail("%s has no GID for 10.99.%d.1", name, net);
	return true;
}

void soft_rdma_del(const char *name)
{
	/* It may be gone already, by another hand. */
	run("rdma link del %s 2> /dev/null", name);
	run("ip link del net-%s", name);
}

int module_unload(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) ? errno : 0;
}

bool module_loaded(const char *name)
{
	return run("grep -q '^%s ' /proc/modules", name);
}
