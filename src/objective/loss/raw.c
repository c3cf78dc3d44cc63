/* RAW, relative and absolute weighting; with VTHM as the miner this is the multi-similarity loss.
 *
 *   L = mean_i { ln(1 + sum_P e^(-alpha (s - gamma))) / alpha + ln(1 + sum_N e^(beta (s - gamma))) / beta }
 *
 *   dL/ds_ip = -e^(-alpha (s_ip - gamma)) / (1 + sum_P …) / m,  and likewise for negatives with + and beta.
 *
 * The mean is over all m anchors. Source: unified view Eq. 17 (alpha 2, beta 50, gamma 0.5); Wang et al.,
 * multi-similarity, CVPR 2019 (beta 40 in its code). */
#include "objective/loss/raw.h"

#include "objective/loss/rows.h"

static const ki_option options[] = {
    KI_OPTION_REAL(ki_raw_settings, alpha, 2, 1e-6, 1e6, "steepness for positives", "unified view Sec. 6"),
    KI_OPTION_REAL(ki_raw_settings, beta, 50, 1e-6, 1e6,
                   "steepness for negatives; 40 in the multi-similarity code", "unified view Sec. 6"),
    KI_OPTION_REAL(ki_raw_settings, gamma, 0.5, -1e6, 1e6, "similarity that weighs 1", "unified view Sec. 6"),
    KI_OPTION_END};

/* ln(1 + sum e^(a (s - gamma))) / |a|, and g = sign(a) e^(…) / (1 + sum …) / m over one kind. */
static double one_side(const ki_pairs *pairs, const ki_row *row, int kind, ki_real a, ki_real gamma) {
    const ki_vec *vec = pairs->vec;
    const ki_real steepness = a < 0 ? -a : a;
    const ki_real hardest =
        a < 0 ? vec->min(row->s, row->pair, kind, row->n) : vec->max(row->s, row->pair, kind, row->n);
    const ki_real z = a * (hardest - gamma);
    /* Shift by the largest exponent; the 1 counts as the exponent 0. */
    const ki_real shift = z > 0 ? z : 0, from = z > 0 ? hardest : gamma;
    const ki_real sum = ki_exp(-shift) + vec->exp(row->s, row->pair, kind, a, from, row->g, row->n);
    vec->scale(row->pair, kind, (a < 0 ? -1 : 1) / (sum * (ki_real)pairs->m), row->g, row->n);
    return ((double)shift + (double)ki_ln(sum)) / (double)steepness;
}

static double row_terms(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const ki_raw_settings *o = context;
    double value = 0;
    if (row->n_pos) value += one_side(pairs, row, KI_PAIR_POSITIVE, (ki_real)-o->alpha, (ki_real)o->gamma);
    if (row->n_neg) value += one_side(pairs, row, KI_PAIR_NEGATIVE, (ki_real)o->beta, (ki_real)o->gamma);
    return value;
}

static kith_status eval(const ki_loss_in *in, ki_loss_out *out, kith_error *err) {
    return ki_loss_mean_rows(in, out, row_terms, err);
}

const ki_loss ki_loss_raw = {
    .method = {.name = "raw",
               .summary = "relative and absolute weighting; the multi-similarity loss when mined with vthm",
               .source = "unified view Eq. 17; Wang et al., multi-similarity, CVPR 2019",
               .options = options,
               .settings_bytes = sizeof(ki_raw_settings)},
    .eval = eval,
};
