/* SPDX-License-Identifier: GPL-2.0 */
/* The administrator's word on pinning. */
#ifndef SELFTESTS_POLICY_H
#define SELFTESTS_POLICY_H

/* A parameter of ib_umem_dmabuf, "pin" or "pin_limit_mib"; bails out if it cannot be set. */
void policy_set(const char *name, const char *value);

#endif /* SELFTESTS_POLICY_H */
