/* Means over rows and over terms. */
#include "objective/loss/rows.h"

kith_status ki_loss_mean_rows(const ki_loss_in *in, ki_loss_out *out, ki_row_fn fn, kith_error *err) {
    KI_TRY(ki_pairs_rows(in->pairs, out->g, fn, in->settings, NULL, &out->value, err));
    out->value /= (double)in->pairs->m;
    return KITH_OK;
}

kith_status ki_loss_mean_terms(const ki_loss_in *in, ki_loss_out *out, ki_row_fn fn, double scale, int64_t n,
                               kith_error *err) {
    const double weight = n ? 1 / (double)n : 0;
    const ki_exponentials context = {(ki_real)scale, (ki_real)weight};
    KI_TRY(ki_pairs_rows(in->pairs, out->g, fn, &context, NULL, &out->value, err));
    out->value *= weight;
    return KITH_OK;
}
