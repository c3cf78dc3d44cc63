/* The proxies that take part in a step, as the columns of the pair view.
 *
 * Without a sample and on one rank these are all proxies. With `sample` they are those of the batch's classes, and of others
 * drawn at random: as many classes as the share says. Over ranks they are those that this rank holds.
 *
 * A view numbers the classes of its columns from 0, in ascending order, so that a loss needs to know of neither: the columns of
 * the view's class k are k * n_centers …
 *
 * The draw is a function of seed, step and the classes of the whole batch: it does not depend on the number of ranks. */
#ifndef KI_OBJECTIVE_PROXY_COLUMNS_H
#define KI_OBJECTIVE_PROXY_COLUMNS_H

#include "objective/method.h"
#include "objective/work.h"

typedef struct ki_proxy_columns {
    int64_t n;             /* columns here */
    int64_t n_all;         /* on all ranks */
    const ki_real *value;  /* [n, dim], as they are learned */
    const int32_t *label;  /* [n]: the view's classes */
    const int32_t *own;    /* [m]: the view's class of each row; -1: another rank has it */
    const int32_t *chosen; /* [n / n_centers]: which of the classes held here; NULL: all */
} ki_proxy_columns;

typedef struct ki_proxy_columns_of {
    const ki_state *proxies;
    int64_t n_centers;
    double sample; /* 1: all classes */
    uint64_t seed, step;
    const int32_t *label; /* [m] the rows' classes */
    int64_t m;
} ki_proxy_columns_of;

/* Memory is from `work`. */
kith_status ki_proxy_columns_choose(const ki_proxy_columns_of *of, ki_work *work, ki_proxy_columns *ret,
                                    kith_error *err);
/* The rows' gradients [n, dim] to their places in diff, which has the proxies' shape (+=). */
void ki_proxy_columns_add(const ki_proxy_columns *columns, const ki_proxy_columns_of *of, const ki_real *src,
                          ki_real *diff);

#endif
