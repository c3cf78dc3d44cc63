/* Ranked list loss: positives inside a sphere, negatives outside it by a gap, with more weight on near
 * negatives.
 *
 *   d Euclidean; per anchor, over the pairs that break their bound
 *   L_P = mean over positives with d > alpha - margin of (d - alpha + margin)
 *   L_N = sum over negatives with d < alpha of w (alpha - d) / sum w,  w = e^(temperature (alpha - d))
 *   L   = mean over all m anchors of (1 - lambda) L_P + lambda L_N
 *
 * The gradient is the derivative of this, the weights w included.
 * Source: Wang et al., Ranked List Loss, CVPR 2019 (alpha 1.2, margin 0.4, temperature 10). */
#include "objective/loss/ranked_list.h"

#include "objective/loss/loss.h"

static const ki_option options[] = {
    KI_OPTION_REAL(ki_ranked_list_settings, alpha, 1.2, 0, 1e6, "negatives are pushed beyond this",
                   "Wang et al.: 1.2"),
    KI_OPTION_REAL(ki_ranked_list_settings, margin, 0.4, 0, 1e6, "positives are pulled within alpha - margin",
                   "Wang et al.: 0.4"),
    KI_OPTION_REAL(ki_ranked_list_settings, temperature, 10, 0, 1e4, "how much nearer negatives weigh more",
                   "Wang et al.: 10"),
    KI_OPTION_REAL(ki_ranked_list_settings, lambda, 0.5, 0, 1, "share of the negatives", "Wang et al.: 0.5"),
    KI_OPTION_END};

static ki_measure measure(const void *settings) {
    (void)settings;
    return KI_EUCLIDEAN;
}

static double row_terms(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const ki_ranked_list_settings *o = context;
    const ki_vec *vec = pairs->vec;
    const double inverse_m = 1 / (double)pairs->m;
    double value = 0;
    int64_t active = 0;
    const double positives = (double)vec->hinge(row->s, row->pair, KI_PAIR_POSITIVE, 1,
                                                (ki_real)(o->alpha - o->margin), 1, row->g, &active, row->n);
    if (active) {
        const double weight = (1 - o->lambda) * inverse_m / (double)active;
        value += weight * positives;
        vec->scale(row->pair, KI_PAIR_POSITIVE, (ki_real)weight, row->g, row->n);
    }
    const double nearest = (double)vec->min(row->s, row->pair, KI_PAIR_NEGATIVE, row->n);
    if (!(nearest < o->alpha)) return value;
    double sum_w = 0, sum_wl = 0;
    for (int64_t j = 0; j < row->n; j++) {
        if (row->pair[j] != KI_PAIR_NEGATIVE || !((double)row->s[j] < o->alpha)) continue;
        const double w = exp(o->temperature * (nearest - (double)row->s[j]));
        sum_w += w;
        sum_wl += w * (o->alpha - (double)row->s[j]);
        row->g[j] = (ki_real)w;
    }
    const double mean = sum_wl / sum_w, weight = o->lambda * inverse_m;
    for (int64_t j = 0; j < row->n; j++) {
        if (row->pair[j] != KI_PAIR_NEGATIVE || !((double)row->s[j] < o->alpha)) continue;
        const double l = o->alpha - (double)row->s[j];
        row->g[j] = (ki_real)(-weight * (double)row->g[j] / sum_w * (1 + o->temperature * (l - mean)));
    }
    return value + weight * mean;
}

static kith_status eval(const ki_loss_in *in, ki_loss_out *out, kith_error *err) {
    return ki_pairs_rows(in->pairs, out->g, row_terms, in->settings, NULL, &out->value, err);
}

const ki_loss ki_loss_ranked_list = {
    .method = {.name = "ranked_list",
               .summary = "positives within a sphere, negatives beyond it by a gap, near ones first",
               .source = "Wang et al., Ranked List Loss, CVPR 2019",
               .options = options,
               .settings_bytes = sizeof(ki_ranked_list_settings)},
    .measure = measure,
    .eval = eval,
};
