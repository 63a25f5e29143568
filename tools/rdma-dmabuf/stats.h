/* SPDX-License-Identifier: GPL-2.0 */
/* Medians and quartiles of repeated measurements. */
#ifndef RDMA_DMABUF_STATS_H
#define RDMA_DMABUF_STATS_H

struct summary {
	double median;
	double q1, q3;		/* half of the values lie between them */
};

/* Of @num values, at least one; @values is left as it is. */
struct summary summarize(const double *values, int num);
/* Of the paired ratios @above[i] / @below[i] */
struct summary summarize_ratio(const double *above, const double *below, int num);

#endif /* RDMA_DMABUF_STATS_H */
