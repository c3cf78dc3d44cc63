/* Recall@k surrogate: the share of an anchor's positives among its first k, for several k, with sigmoids instead of steps.
 *
 *   r_i = 1 + sum_{j != i} sigma((s_j - s_i) / T)                      the rank of positive i
 *   R_k = min(k, sum_{i in P} sigma((k - r_i) / (U k))) / min(k, |P|)
 *   L = mean over anchors with a positive of 1 - 1/|K| sum_{k in K} R_k,   K = 1, 2, 4 … up to the option k
 *
 *   dR_k/dr_i = -sigma (1 - sigma) / (U k) / min(k, |P|), and 0 where the sum is above k
 *
 * Time and memory: loss/soft_rank.h. Source: Patel et al., Recall@k Surrogate Loss with Large Batches and Similarity Mixup,
 * CVPR 2022; the bound, its divisor and a width that grows with k are those of the authors' code. */
#include "objective/loss/recall_at_k.h"

#include "objective/loss/loss.h"
#include "objective/loss/soft_rank.h"

static const ki_option options[] = {
    KI_OPTION_INT(ki_recall_at_k_settings, k, 16, 1, KI_RECALL_MOST_K,
                  "the largest k; the others are 1, 2, 4 … below it", "Patel et al.: 1 to 16"),
    KI_OPTION_REAL(ki_recall_at_k_settings, temperature, 0.01, 1e-4, 1e3, "T: width of the sigmoid in a rank",
                   "Patel et al.: 0.01"),
    KI_OPTION_REAL(ki_recall_at_k_settings, k_temperature, 1, 1e-4, 1e3,
                   "U: width of the sigmoid at rank k, as a multiple of k", "Patel et al., code: 1"),
    KI_OPTION_END};

typedef struct pass {
    ki_real inverse_temperature;
    double k_temperature, weight;
    int n_levels;
} pass;

static double within(const pass *p, int level, double rank) {
    const double k = (double)((int64_t)1 << level);
    return 1 / (1 + exp((rank - k) / (p->k_temperature * k)));
}

/* The mean of R_k; slope[level]: by the sum of sigmas, 0 where it is above k. */
static double recall_of(const pass *p, int64_t n_pos, const double *sum, double *slope) {
    double recall = 0;
    for (int level = 0; level < p->n_levels; level++) {
        const int64_t k = (int64_t)1 << level;
        const double share = 1 / (double)p->n_levels / (double)(k < n_pos ? k : n_pos);
        const bool is_bound = sum[level] > (double)k;
        recall += share * (is_bound ? (double)k : sum[level]);
        slope[level] = is_bound ? 0 : share / (p->k_temperature * (double)k);
    }
    return recall;
}

static double row_terms(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const pass *p = context;
    double sum[KI_RECALL_MOST_LEVELS] = {0}, slope[KI_RECALL_MOST_LEVELS];
    ki_real *rank = row->scratch; /* by column */
    (void)pairs;
    if (row->n_pos == 0) return 0;
    for (int64_t i = 0; i < row->n; i++) {
        if (row->pair[i] != KI_PAIR_POSITIVE) continue;
        const ki_soft_rank of = ki_soft_rank_of(row, i, p->inverse_temperature);
        rank[i] = (ki_real)(of.pos + of.neg);
        for (int level = 0; level < p->n_levels; level++) sum[level] += within(p, level, (double)rank[i]);
    }
    const double recall = recall_of(p, row->n_pos, sum, slope);
    for (int64_t i = 0; i < row->n; i++) {
        double by = 0;
        if (row->pair[i] != KI_PAIR_POSITIVE) continue;
        for (int level = 0; level < p->n_levels; level++) {
            const double at = within(p, level, (double)rank[i]);
            by += p->weight * slope[level] * at * (1 - at);
        }
        ki_soft_rank_backward(row, i, p->inverse_temperature, (ki_soft_rank){by, by});
    }
    return p->weight * (1 - recall);
}

static kith_status eval(const ki_loss_in *in, ki_loss_out *out, kith_error *err) {
    const ki_recall_at_k_settings *o = in->settings;
    const int64_t n = ki_pairs_anchors(in->pairs);
    pass p = {.inverse_temperature = (ki_real)(1 / o->temperature),
              .k_temperature = o->k_temperature,
              .weight = n ? 1 / (double)n : 0};
    while (p.n_levels < KI_RECALL_MOST_LEVELS && (int64_t)1 << p.n_levels <= o->k) p.n_levels++;
    return ki_pairs_rows(in->pairs, out->g, row_terms, &p, NULL, &out->value, err);
}

const ki_loss ki_loss_recall_at_k = {
    .method = {.name = "recall_at_k",
               .summary = "recall among the first 1, 2, 4 … k of each anchor's ranking, through sigmoids",
               .source =
                   "Patel et al., Recall@k Surrogate Loss with Large Batches and Similarity Mixup, CVPR 2022",
               .options = options,
               .settings_bytes = sizeof(ki_recall_at_k_settings)},
    .eval = eval,
};
