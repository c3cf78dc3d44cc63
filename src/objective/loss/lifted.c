/* Generalised lifted structure.
 *
 *   L = mean_i [ ln sum_P e^(-s) + ln sum_N e^(margin + s) ]_+
 *
 * Anchors without a positive or without a negative contribute 0 and still count in the mean. The sign
 * of the negative term as printed in the unified view's Eq. 9 is a misprint; its Eq. 11 shows it.
 * Sources: Hermans et al., 2017; unified view Eq. 9. */
#include "objective/loss/lifted.h"

#include "objective/loss/rows.h"

static const ki_option options[] = {
    KI_OPTION_REAL(ki_lifted_settings, margin, 1, -1e6, 1e6, "added to negatives", "unified view Eq. 9"),
    KI_OPTION_END};

static double row_terms(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const ki_lifted_settings *o = context;
    const ki_vec *vec = pairs->vec;
    if (row->n_pos == 0 || row->n_neg == 0) return 0;
    const ki_real least = vec->min(row->s, row->pair, KI_PAIR_POSITIVE, row->n);
    const ki_real most = vec->max(row->s, row->pair, KI_PAIR_NEGATIVE, row->n);
    const ki_real pos = vec->exp(row->s, row->pair, KI_PAIR_POSITIVE, -1, least, row->g, row->n);
    const ki_real neg = vec->exp(row->s, row->pair, KI_PAIR_NEGATIVE, 1, most, row->g, row->n);
    const double z = (double)(most - least) + o->margin + (double)ki_ln(pos) + (double)ki_ln(neg);
    const ki_real weight = z > 0 ? 1 / (ki_real)pairs->m : 0;
    vec->scale(row->pair, KI_PAIR_POSITIVE, -weight / pos, row->g, row->n);
    vec->scale(row->pair, KI_PAIR_NEGATIVE, weight / neg, row->g, row->n);
    return z > 0 ? z : 0;
}

static kith_status eval(const ki_loss_in *in, ki_loss_out *out, kith_error *err) {
    return ki_loss_mean_rows(in, out, row_terms, err);
}

const ki_loss ki_loss_lifted = {
    .method = {.name = "lifted",
               .summary = "generalised lifted structure: soft hardest positive against soft hardest negative",
               .source = "Hermans et al., 2017; unified view Eq. 9",
               .options = options,
               .settings_bytes = sizeof(ki_lifted_settings)},
    .eval = eval,
};
