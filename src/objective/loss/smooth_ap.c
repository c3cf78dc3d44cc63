/* Smooth-AP: average precision, with a sigmoid of temperature T instead of the step in every rank.
 *
 *   A_i = 1 + sum_{p in P, p != i} sigma((s_p - s_i) / T),   B_i = A_i + sum_{n in N} sigma((s_n - s_i) / T)
 *   AP = 1/|P| sum_{i in P} A_i / B_i,   L = mean over anchors with a positive of 1 - AP
 *
 *   dAP/dsigma = (B_i - A_i) / B_i^2 / |P| for a positive, -A_i / B_i^2 / |P| for a negative
 *
 * P and N are the kept pairs of the anchor; the anchor itself is not in its list, as in the paper's Eq. 2. Time and memory:
 * loss/soft_rank.h. Source: Brown et al., ECCV 2020, Eq. 7 (T 0.01). */
#include "objective/loss/smooth_ap.h"

#include "objective/loss/loss.h"
#include "objective/loss/soft_rank.h"

static const ki_option options[] = {
    KI_OPTION_REAL(ki_smooth_ap_settings, temperature, 0.01, 1e-4, 1e3,
                   "T: width of the sigmoid that stands for a step", "Brown et al.: 0.01"),
    KI_OPTION_END};

typedef struct pass {
    ki_real inverse_temperature;
    double weight;
} pass;

static double row_terms(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const pass *p = context;
    double precision = 0;
    (void)pairs;
    if (row->n_pos == 0) return 0;
    const double share = 1 / (double)row->n_pos;
    for (int64_t i = 0; i < row->n; i++) {
        if (row->pair[i] != KI_PAIR_POSITIVE) continue;
        const ki_soft_rank rank = ki_soft_rank_of(row, i, p->inverse_temperature);
        const double all = rank.pos + rank.neg, slope = p->weight * share / (all * all);
        const ki_soft_rank by = {.pos = -slope * rank.neg, .neg = slope * rank.pos};
        precision += share * rank.pos / all;
        ki_soft_rank_backward(row, i, p->inverse_temperature, by);
    }
    return p->weight * (1 - precision);
}

static kith_status eval(const ki_loss_in *in, ki_loss_out *out, kith_error *err) {
    const ki_smooth_ap_settings *o = in->settings;
    const int64_t n = ki_pairs_anchors(in->pairs);
    const pass p = {.inverse_temperature = (ki_real)(1 / o->temperature), .weight = n ? 1 / (double)n : 0};
    return ki_pairs_rows(in->pairs, out->g, row_terms, &p, NULL, &out->value, err);
}

const ki_loss ki_loss_smooth_ap = {
    .method =
        {.name = "smooth_ap",
         .summary = "average precision of each anchor's ranking, through sigmoids",
         .source =
             "Brown et al., Smooth-AP: Smoothing the Path Towards Large-Scale Image Retrieval, ECCV 2020",
         .options = options,
         .settings_bytes = sizeof(ki_smooth_ap_settings)},
    .eval = eval,
};
