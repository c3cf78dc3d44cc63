/* Parameters: the master copies, on a backend, in one slab of values and one of gradients.
 *
 * A store outlives plans: the training plan, the inference plan and plans for other image sizes all bind to
 * it by name. Trained parameters come first, in the order they were declared, so that an optimizer goes
 * through one contiguous run; running statistics and what is frozen follow. Every change made through this interface increases
 * `version`, and so does ki_params_touch, which is called after changing values in place. It tells plans to
 * refresh the copies that their kernels keep. */
#ifndef KI_PARAMS_H
#define KI_PARAMS_H

#include "nn/graph.h"

typedef struct ki_param {
    const char *name;
    ki_shape shape;
    int64_t n;
    bool trained;
    bool frozen;    /* it never changes, as running statistics do, which are not trained either */
    ki_real *value; /* device memory */
    ki_real *diff;  /* device memory; NULL when not trained, or before the first plan that trains */
} ki_param;

typedef struct ki_params ki_params;

/* Make every parameter that the graph declares, with the values of ki_params_init with seed 0. On a backend
 * that CAN_MERGE_CONVS the weights of 1x1 convolutions of one source are adjacent in memory. So are their
 * biases, and the parameters of the batch norms before one concat. */
kith_status ki_params_new(const ki_graph *graph, ki_backend *backend, ki_params **ret_params,
                          kith_error *err);
void ki_params_free(ki_params *params); /* NULL is fine */

/* Draw weights again (as the graph declares, each parameter from its own stream), fill the rest. */
kith_status ki_params_init(ki_params *params, uint64_t seed, kith_error *err);

int ki_params_count(const ki_params *params);
const ki_param *ki_params_at(const ki_params *params, int i);
/* NULL when there is none. */
const ki_param *ki_params_find(const ki_params *params, const char *name);

/* Whole slabs of the trained parameters. */
int64_t ki_params_trained_n(const ki_params *params);
ki_real *ki_params_values(ki_params *params);
ki_real *ki_params_diffs(ki_params *params);

/* Allocate the gradients, as zeros. The first plan that trains does so, too; before that they are NULL. */
kith_status ki_params_make_diffs(ki_params *params, kith_error *err);
kith_status ki_params_zero_diffs(ki_params *params, kith_error *err);
/* Host copies of one parameter or its gradient, plain. */
kith_status ki_params_set(ki_params *params, const ki_param *param, const ki_real *host, kith_error *err);
kith_status ki_params_get(const ki_params *params, const ki_param *param, ki_real *host, kith_error *err);
kith_status ki_params_get_diff(const ki_params *params, const ki_param *param, ki_real *host,
                               kith_error *err);

uint64_t ki_params_version(const ki_params *params);
void ki_params_touch(ki_params *params);

#endif
