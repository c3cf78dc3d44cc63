/* FastAP: average precision through soft histograms of distances.
 *
 *   D squared Euclidean in [0, 4] (normalised embeddings), nodes z_0 = 0 … z_L = 4; an item at D between
 *   two nodes is shared between them linearly. h+ and h count positives and all items, H+ and H cumulate.
 *   AP_i = 1/N+ sum_l h+_l H+_l / H_l,   L = mean over anchors with a positive of 1 - AP_i
 *
 *   dAP/dh+_j = (H+_j / H_j + sum_{l >= j} h+_l (H_l - H+_l) / H_l^2) / N+
 *   dAP/dh-_j = -sum_{l >= j} h+_l H+_l / H_l^2 / N+
 *
 * Distances beyond the ends count at the end, without a gradient. Source: Cakir et al., CVPR 2019 (L = 10). */
#include "objective/loss/fastap.h"

#include <string.h>

#include "objective/loss/bins.h"
#include "objective/loss/loss.h"

static const ki_option options[] = {KI_OPTION_INT(ki_fastap_settings, bins, 10, 2, KI_FASTAP_MOST_BINS,
                                                  "intervals L of the histogram", "Cakir et al.: 10"),
                                    KI_OPTION_END};

static ki_measure measure(const void *settings) {
    (void)settings;
    return KI_SQEUCLIDEAN;
}

typedef struct pass {
    int64_t bins;
    double weight;
} pass;

/* The place of d between the nodes from 0 to 4. */
static double axis(ki_real d, int64_t bins) { return (double)d / 4 * (double)bins; }

static double row_terms(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const pass *p = context;
    const int64_t n_nodes = p->bins + 1;
    double pos[KI_FASTAP_MOST_BINS + 1] = {0}, neg[KI_FASTAP_MOST_BINS + 1] = {0},
                                     by_pos[KI_FASTAP_MOST_BINS + 1], by_neg[KI_FASTAP_MOST_BINS + 1];
    (void)pairs;
    if (row->n_pos == 0) return 0;
    for (int64_t j = 0; j < row->n; j++) {
        if (row->pair[j] == KI_PAIR_NONE) continue;
        double *h = row->pair[j] == KI_PAIR_POSITIVE ? pos : neg, past = 0;
        int64_t node = 0;
        ki_bins_place(axis(row->s[j], p->bins), n_nodes, &node, &past);
        h[node] += 1 - past;
        h[node + 1] += past;
    }
    const double inverse = 1 / (double)row->n_pos;
    double precision = 0, cum_pos = 0, cum = 0;
    double ratio[KI_FASTAP_MOST_BINS + 1], by_cum_pos[KI_FASTAP_MOST_BINS + 1],
        by_cum_neg[KI_FASTAP_MOST_BINS + 1];
    for (int64_t l = 0; l < n_nodes; l++) {
        cum_pos += pos[l];
        cum += pos[l] + neg[l];
        ratio[l] = cum > 0 ? cum_pos / cum : 0;
        by_cum_pos[l] = cum > 0 ? pos[l] * (cum - cum_pos) / (cum * cum) : 0;
        by_cum_neg[l] = cum > 0 ? pos[l] * cum_pos / (cum * cum) : 0;
        precision += inverse * pos[l] * ratio[l];
    }
    double later_pos = 0, later_neg = 0;
    for (int64_t l = n_nodes - 1; l >= 0; l--) {
        later_pos += by_cum_pos[l];
        later_neg += by_cum_neg[l];
        by_pos[l] = inverse * (ratio[l] + later_pos);
        by_neg[l] = -inverse * later_neg;
    }
    const double per_node = -p->weight * (double)p->bins / 4;
    for (int64_t j = 0; j < row->n; j++) {
        int64_t node = 0;
        double past = 0;
        if (row->pair[j] == KI_PAIR_NONE || !ki_bins_place(axis(row->s[j], p->bins), n_nodes, &node, &past))
            continue;
        const double *by = row->pair[j] == KI_PAIR_POSITIVE ? by_pos : by_neg;
        row->g[j] = (ki_real)(per_node * (by[node + 1] - by[node]));
    }
    return p->weight * (1 - precision);
}

static kith_status eval(const ki_loss_in *in, ki_loss_out *out, kith_error *err) {
    const ki_pairs *pairs = in->pairs;
    const int64_t n = ki_pairs_anchors(pairs);
    const pass p = {.bins = ((const ki_fastap_settings *)in->settings)->bins,
                    .weight = n ? 1 / (double)n : 0};
    return ki_pairs_rows(pairs, out->g, row_terms, &p, NULL, &out->value, err);
}

const ki_loss ki_loss_fastap = {
    .method = {.name = "fastap",
               .summary = "average precision of each anchor's ranking, through soft histograms",
               .source = "Cakir et al., Deep Metric Learning to Rank, CVPR 2019",
               .options = options,
               .settings_bytes = sizeof(ki_fastap_settings)},
    .measure = measure,
    .eval = eval,
};
