/* Generalised lifted structure.
 *
 *   L = mean_i [ ln sum_P e^(-s) + ln sum_N e^(margin + s) ]_+
 *
 * Anchors without a positive or without a negative contribute 0 and still count in the mean. The sign
 * of the negative term as printed in the unified view's Eq. 9 is a misprint; its Eq. 11 shows it.
 * Sources: Hermans et al., 2017; unified view Eq. 9. */
#include "objective/loss/loss.h"

typedef struct settings {
    double margin;
} settings;

static const ki_option options[] = {
    KI_OPTION_REAL(settings, margin, 1, -1e6, 1e6, "added to negatives", "unified view Eq. 9"),
    KI_OPTION_END};

static double row_terms(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const settings *o = context;
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
    KI_TRY(ki_pairs_rows(in->pairs, out->g, row_terms, in->settings, NULL, &out->value, err));
    out->value /= (double)in->pairs->m;
    return KITH_OK;
}

const ki_loss ki_loss_lifted = {
    .method = {.name = "lifted",
               .summary = "generalised lifted structure: soft hardest positive against soft hardest negative",
               .source = "Hermans et al., 2017; unified view Eq. 9",
               .options = options,
               .settings_bytes = sizeof(settings)},
    .eval = eval,
};
