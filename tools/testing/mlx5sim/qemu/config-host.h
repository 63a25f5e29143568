/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What QEMU's headers want to know of the machine that QEMU was built for.  Its own
 * build finds these out; this is what holds for Debian's amd64 binary, as far as
 * the headers that the host includes depend on it.  guard.c compares the sizes
 * that come of it with the running QEMU's.
 */
#ifndef CONFIG_HOST_H
#define CONFIG_HOST_H

#define HOST_X86_64		1
#define CONFIG_POSIX		1
#define CONFIG_LINUX		1
#define CONFIG_INT128		1
#define CONFIG_ATOMIC64		1
#define CONFIG_MADVISE		1
#define CONFIG_IOVEC		1
#define CONFIG_TCG		1
#define HAVE_STRCHRNUL		1
#define HAVE_SYSTEM_FUNCTION	1

#endif /* CONFIG_HOST_H */
