/* The names of before optim.h, for callers that have not moved to it yet; goes away with the last one. */
#ifndef KI_ADAM_H
#define KI_ADAM_H

#include "optim/optim.h"

typedef ki_optim ki_adam;

typedef struct ki_adam_options {
    double beta1, beta2, eps; /* 0: 0.9, 0.999, 1e-8 */
    double decay;             /* L2, added to the gradient */
    double decoupled;         /* AdamW's decay */
} ki_adam_options;

static inline kith_status ki_adam_new(ki_backend *backend, const ki_optim_param *params, int n_params,
                                      const ki_adam_options *o, ki_adam **ret_adam, kith_error *err) {
    ki_optim_settings s;
    KI_TRY(ki_optim_parse(NULL, &s, err));
    if (o->beta1 > 0) s.beta1 = o->beta1;
    if (o->beta2 > 0) s.beta2 = o->beta2;
    if (o->eps > 0) s.eps = o->eps;
    s.weight_decay = o->decay + o->decoupled;
    if (o->decoupled > 0) s.method = ki_optim_method_at(1);
    return ki_optim_new(backend, params, n_params, &s, ret_adam, err);
}

static inline void ki_adam_free(ki_adam *adam) { ki_optim_free(adam); }
static inline kith_status ki_adam_update(ki_adam *adam, double lr, kith_error *err) {
    return ki_optim_update(adam, lr, err);
}
static inline int64_t ki_adam_steps(const ki_adam *adam) { return ki_optim_steps(adam); }

static inline int64_t ki_adam_moments_n(const ki_adam *adam) {
    int64_t n = 0;
    for (int i = 0; i < ki_optim_n_states(adam); i += 2) n += ki_optim_state_count(adam, i);
    return n;
}

static inline kith_status ki_adam_get(const ki_adam *adam, ki_real *ret_m, ki_real *ret_v, kith_error *err) {
    for (int i = 0; i < ki_optim_n_states(adam); i += 2) {
        KI_TRY(ki_optim_state_get(adam, i, ret_m, err));
        KI_TRY(ki_optim_state_get(adam, i + 1, ret_v, err));
        ret_m += ki_optim_state_count(adam, i);
        ret_v += ki_optim_state_count(adam, i);
    }
    return KITH_OK;
}

static inline kith_status ki_adam_set(ki_adam *adam, int64_t steps, const ki_real *m, const ki_real *v,
                                      kith_error *err) {
    for (int i = 0; i < ki_optim_n_states(adam); i += 2) {
        KI_TRY(ki_optim_state_set(adam, i, m, err));
        KI_TRY(ki_optim_state_set(adam, i + 1, v, err));
        m += ki_optim_state_count(adam, i);
        v += ki_optim_state_count(adam, i);
    }
    ki_optim_steps_set(adam, steps);
    return KITH_OK;
}

#endif
