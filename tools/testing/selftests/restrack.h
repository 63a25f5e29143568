/* SPDX-License-Identifier: GPL-2.0 */
/* What `rdma resource show mr -dd` says of a dma-buf MR. */
#ifndef SELFTESTS_RESTRACK_H
#define SELFTESTS_RESTRACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All of the first dma-buf MR that there is, in one line; empty if of none. */
void restrack_show(char *line, size_t size);
/* Whether the line has @name with that value. */
bool restrack_says(const char *line, const char *name, const char *value);
bool restrack_says_number(const char *line, const char *name, uint64_t value);

#endif /* SELFTESTS_RESTRACK_H */
