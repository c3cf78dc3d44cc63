/* The classes present in a batch, in order of their labels. */
#ifndef KI_OBJECTIVE_GROUPS_H
#define KI_OBJECTIVE_GROUPS_H

#include <stdint.h>

#include "objective/work.h"

typedef struct ki_groups {
    int64_t n;      /* classes present */
    int32_t *label; /* [n], ascending */
    int64_t *count; /* [n] items of each */
    int32_t *of;    /* [m] group of each item */
} ki_groups;

kith_status ki_groups_find(const int32_t *label, int64_t m, ki_work *work, ki_groups *ret_groups,
                           kith_error *err);

/* Ordered pairs of items of different groups among m. */
double ki_groups_different(const ki_groups *groups, int64_t m);

/* mean [n, dim] of the rows of each group. */
void ki_groups_mean(const ki_groups *groups, const ki_real *x, int64_t m, int64_t dim, ki_real *mean);

#endif
