// SPDX-License-Identifier: GPL-2.0
/* A second member of the name would be an error. */
#include <drm/drm_drv.h>

struct probe {
	struct drm_driver;
	const char *date;
};
