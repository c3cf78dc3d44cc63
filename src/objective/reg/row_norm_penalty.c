/* Keeps the rows of the embedding layer's weight matrix W [e, c] at length 1.
 *
 *   L = (lam / e) sum_r (|w_r|^2 - 1)^2,  dL/dw_r = (4 lam / e) (|w_r|^2 - 1) w_r
 *
 * It is used with energy confusion, whose gradient would shrink that layer. Source: the authors' code of
 * ECAML, which took it from BIER (Opitz et al., ICCV 2017). */
#include "objective/reg/row_norm_penalty.h"

#include "objective/reg/reg.h"

static const ki_option options[] = {
    KI_OPTION_REAL(ki_row_norm_penalty_settings, lam, 0.5, 0, 1e9, "factor of the penalty", "ECAML code"),
    KI_OPTION_END};

static kith_status eval(const ki_reg_in *in, ki_reg_out *out, kith_error *err) {
    const ki_row_norm_penalty_settings *o = in->settings;
    const ki_tap_data *w = &in->tap[KI_TAP_WEIGHT];
    const double share = o->lam / (double)w->rows;
    ki_real *diff = NULL;
    KI_TRY(ki_reg_take_diff(in, KI_TAP_WEIGHT, &diff, err));
    for (int64_t r = 0; r < w->rows; r++) {
        const ki_real *row = w->data + r * w->cols;
        const double excess = (double)in->vec->dot(row, row, w->cols) - 1;
        const ki_real factor = (ki_real)(4 * share * excess);
        out->value += share * excess * excess;
        for (int64_t k = 0; k < w->cols; k++) diff[r * w->cols + k] = factor * row[k];
    }
    ki_reg_add_diff(in, out, KI_TAP_WEIGHT, diff);
    return KITH_OK;
}

const ki_reg ki_reg_row_norm_penalty = {
    .method = {.name = "row_norm_penalty",
               .summary = "keep the rows of the embedding layer's weights at length 1",
               .source = "ECAML code, after BIER",
               .options = options,
               .settings_bytes = sizeof(ki_row_norm_penalty_settings)},
    .taps = KI_TAP_BIT(KI_TAP_WEIGHT),
    .eval = eval,
};
