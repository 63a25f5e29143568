/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reads from the tracepoint ib_umem_dmabuf_refuse which layer said no.
 */
#ifndef SELFTESTS_REFUSAL_H
#define SELFTESTS_REFUSAL_H

/* Forgets earlier refusals, listens for the next ones.  0 or errno. */
int refusal_listen(void);
/*
 * The layer of the first refusal since then, in a static buffer: "" if there was
 * none.  A refusal goes up through the layers, the first is where it began.
 */
const char *refusal_layer(void);

#endif /* SELFTESTS_REFUSAL_H */
