/* L2 penalty on the norms of embeddings that a loss reads un-normalised.
 *
 *   L = mean_i |x_i|^2,  dL/dx_i = 2 x_i / m
 *
 * Source: Sohn, Improved Deep Metric Learning with Multi-class N-pair Loss Objective, NIPS 2016, Sec. 3.2.2,
 * whose weight is small (its reimplementations take 0.002 / 4 = 5e-4). */
#include "objective/reg/reg.h"

static kith_status eval(const ki_reg_in *in, ki_reg_out *out, kith_error *err) {
    const ki_tap_data *x = &in->tap[KI_TAP_EMBEDDING];
    const ki_real factor = 2 / (ki_real)in->m;
    double sum = 0;
    ki_real *diff = NULL;
    KI_TRY(ki_reg_take_diff(in, KI_TAP_EMBEDDING, &diff, err));
    for (int64_t i = 0; i < in->m; i++) {
        const ki_real *row = x->data + i * x->cols;
        sum += (double)in->vec->dot(row, row, x->cols);
        for (int64_t k = 0; k < x->cols; k++) diff[i * x->cols + k] = factor * row[k];
    }
    ki_reg_add_diff(in, out, KI_TAP_EMBEDDING, diff);
    out->value = sum / (double)in->m;
    return KITH_OK;
}

const ki_reg ki_reg_norm_l2 = {
    .method = {.name = "norm_l2",
               .summary = "keep the norms of un-normalised embeddings small",
               .source = "Sohn, N-pair, NIPS 2016",
               .options = ki_no_options},
    .taps = KI_TAP_BIT(KI_TAP_EMBEDDING),
    .eval = eval,
};
