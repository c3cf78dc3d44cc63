/* Adam and AdamW: Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015;
 * Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019.
 *
 * Parameters are grouped by rules on their names. Neighbours with the same settings that lie one
 * behind the other in memory (padding to KI_ALIGN between them is fine; it must hold zeros) become
 * one call to the backend, so a network without rules is updated in a single pass. */
#ifndef KI_ADAM_H
#define KI_ADAM_H

#include "core/backend.h"

/* What is optimized: borrowed device memory. */
typedef struct ki_optim_param {
    const char *name; /* borrowed for the call */
    int64_t n;
    ki_real *value;
    const ki_real *diff;
} ki_optim_param;

/* A rule holds for every parameter under `layer` ("embedding" covers embedding.weight and
 * embedding.bias; NULL: all) of the role (".bias", ".weight"; NULL: all). All rules that hold are
 * multiplied together. lr 0 leaves the parameter as it is. */
typedef struct ki_optim_rule {
    const char *layer, *role;
    double lr, decay;
} ki_optim_rule;

typedef struct ki_adam_options {
    double beta1, beta2, eps; /* 0: 0.9, 0.999, 1e-8 */
    double decay;             /* L2, added to the gradient */
    double decoupled;         /* AdamW's decay */
    int n_rules;
    const ki_optim_rule *rules; /* borrowed for the call */
} ki_adam_options;

typedef struct ki_adam ki_adam;

/* Borrows the backend and the parameters' memory for its life. A rule that holds for no parameter is
 * an error: it is a misspelt name. */
kith_status ki_adam_new(ki_backend *backend, const ki_optim_param *params, int n_params,
                        const ki_adam_options *options, ki_adam **ret_adam, kith_error *err);
void ki_adam_free(ki_adam *adam); /* NULL is fine */

/* One update with learning rate lr from the gradients as they are. Allocates nothing. */
kith_status ki_adam_update(ki_adam *adam, double lr, kith_error *err);

/* For checkpoints: steps taken, and the moments [n], in the order of the parameters, with the
 * padding of those that are updated together. */
int64_t ki_adam_steps(const ki_adam *adam);
int64_t ki_adam_moments_n(const ki_adam *adam);
kith_status ki_adam_get(const ki_adam *adam, ki_real *ret_m, ki_real *ret_v, kith_error *err);
kith_status ki_adam_set(ki_adam *adam, int64_t steps, const ki_real *m, const ki_real *v, kith_error *err);

/* How many backend calls a step takes. */
int ki_adam_n_runs(const ki_adam *adam);

#endif
