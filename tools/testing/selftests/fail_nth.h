/* SPDX-License-Identifier: GPL-2.0 */
/* Make one allocation, or one copy from or to user space, of this thread fail. */
#ifndef SELFTESTS_FAIL_NTH_H
#define SELFTESTS_FAIL_NTH_H

#include <stdbool.h>

/* False: this kernel has no fault injection. */
bool fail_nth_there(void);
/* The @nth from now on fails, counted from 1. */
void fail_nth_arm(unsigned int nth);
/* Takes it back; true if the failure has happened. */
bool fail_nth_fired(void);

#endif /* SELFTESTS_FAIL_NTH_H */
