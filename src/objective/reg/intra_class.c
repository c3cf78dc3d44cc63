/* Explicit intra-class attraction.
 *
 *   L = -sum_I 1/(n_I (n_I - 1)) sum_{i != j in I} e^(-|x_i - x_j|^2 / 2)
 *   dL/dD_ij = e^(-D_ij / 2) / (2 n_I (n_I - 1)), D squared distances
 *
 * over classes I with at least two items. Source: JRD Eq. 5, where it is shown to harm: for comparison. */
#include "objective/reg/over_pairs.h"

static double row_terms(const void *context, const ki_pairs *pairs, const ki_row *row) {
    (void)context;
    if (row->n_pos == 0) return 0;
    const double weight = 1 / ((double)row->n_pos * (double)(row->n_pos + 1));
    const ki_real sum =
        pairs->vec->exp(row->s, row->pair, KI_PAIR_POSITIVE, (ki_real)-0.5, 0, row->g, row->n);
    pairs->vec->scale(row->pair, KI_PAIR_POSITIVE, (ki_real)(0.5 * weight), row->g, row->n);
    return -weight * (double)sum;
}

static kith_status eval(const ki_reg_in *in, ki_reg_out *out, kith_error *err) {
    ki_pairs pairs;
    KI_TRY(ki_reg_pairs_build(in, KI_TAP_EMBEDDING, &pairs, err));
    return ki_reg_pairs_sum(in, &pairs, row_terms, 1, out, err);
}

const ki_reg ki_reg_intra_class = {
    .method = {.name = "intra_class",
               .summary = "draw the items of a class together",
               .source = "JRD Eq. 5, Chu et al., ICML 2020",
               .options = ki_no_options},
    .taps = KI_TAP_BIT(KI_TAP_EMBEDDING),
    .normalize = true,
    .eval = eval,
};
