// SPDX-License-Identifier: GPL-2.0
/* Medians and quartiles of repeated measurements. */
#include <stdlib.h>
#include <string.h>

#include "stats.h"

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The value a @part of the way through, between its two neighbours */
static double quantile(const double *sorted, int num, double part)
{
	double at = part * (num - 1);
	int below = at;

	if (below + 1 >= num)
		return sorted[num - 1];
	return sorted[below] + (at - below) * (sorted[below + 1] - sorted[below]);
}

struct summary summarize(const double *values, int num)
{
	struct summary summary;
	double sorted[num];

	memcpy(sorted, values, sizeof(sorted));
	qsort(sorted, num, sizeof(*sorted), compare);
	summary.q1 = quantile(sorted, num, 0.25);
	summary.median = quantile(sorted, num, 0.5);
	summary.q3 = quantile(sorted, num, 0.75);
	return summary;
}

struct summary summarize_ratio(const double *above, const double *below, int num)
{
	double ratios[num];
	int i;

	for (i = 0; i < num; i++)
		ratios[i] = above[i] / below[i];
	return summarize(ratios, num);
}
