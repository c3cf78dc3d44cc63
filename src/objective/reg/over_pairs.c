/* Regularizers over pairs: from embeddings to rows of pairs and back. */
#include "objective/reg/over_pairs.h"

kith_status ki_reg_pairs_build(const ki_reg_in *in, ki_tap tap, ki_pairs *ret_pairs, kith_error *err) {
    const ki_tap_data *x = &in->tap[tap];
    return ki_pairs_build(ret_pairs, x->data, in->m, x->cols, in->label, NULL, NULL, 0, false, in->vec,
                          in->work, err);
}

kith_status ki_reg_pairs_backward(const ki_reg_in *in, const ki_reg_out *out, const ki_pairs *pairs,
                                  ki_real *g, double scale, ki_tap tap, kith_error *err) {
    ki_real *diff = NULL;
    KI_TRY(ki_reg_take_diff(in, tap, &diff, err));
    KI_TRY(ki_pairs_backward(pairs, g, scale, diff, NULL, err));
    ki_reg_add_diff(in, out, tap, diff);
    return KITH_OK;
}

kith_status ki_reg_pairs_sum(const ki_reg_in *in, ki_pairs *pairs, ki_row_fn fn, double scale,
                             ki_reg_out *out, kith_error *err) {
    ki_real *g = NULL;
    ki_pairs_measure(pairs, KI_SQEUCLIDEAN);
    KI_TRY(ki_work_reals(in->work, pairs->m * pairs->ld, "pair gradients", &g, err));
    KI_TRY(ki_pairs_rows(pairs, g, fn, in->settings, NULL, &out->value, err));
    return ki_reg_pairs_backward(in, out, pairs, g, scale, KI_TAP_EMBEDDING, err);
}
