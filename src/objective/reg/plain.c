/* Plain gradients of a regularizer on the host: taken cleared, added with the term's weight. */
#include <string.h>

#include "objective/host/host.h"

static int64_t count(const ki_reg_in *in, ki_tap tap) { return in->tap[tap].rows * in->tap[tap].cols; }

kith_status ki_reg_take_diff(const ki_reg_in *in, ki_tap tap, ki_real **ret_diff, kith_error *err) {
    return ki_take_zeros(in->work, count(in, tap), "tap gradients", ret_diff, err);
}

void ki_reg_add_diff(const ki_reg_in *in, const ki_reg_out *out, ki_tap tap, const ki_real *diff) {
    const int64_t n = count(in, tap);
    if (tap == KI_TAP_MAP && in->assigns_map) memset(out->diff[tap], 0, (size_t)n * sizeof *diff);
    ki_add_scaled(out->diff[tap], diff, (ki_real)in->weight, n);
}

kith_status ki_reg_take_params(const ki_reg_in *in, const ki_reg_out *out, ki_real *const **ret_diff,
                               kith_error *err) {
    ki_real **diff = NULL;
    if (in->weight == 1) return *ret_diff = out->diff_param, KITH_OK;
    KI_TRY(ki_work_take(in->work, in->n_params + 1, sizeof *diff, "parameter gradients", &diff, err));
    for (size_t i = 0; i < in->n_params; i++) {
        diff[i] = NULL;
        if (out->diff_param[i])
            KI_TRY(ki_take_zeros(in->work, in->param[i]->count, "parameter gradients", &diff[i], err));
    }
    *ret_diff = diff;
    return KITH_OK;
}

void ki_reg_add_params(const ki_reg_in *in, const ki_reg_out *out, ki_real *const *diff) {
    for (size_t i = 0; i < in->n_params && diff != out->diff_param; i++)
        ki_add_scaled(out->diff_param[i], diff[i], (ki_real)in->weight, in->param[i]->count);
}
