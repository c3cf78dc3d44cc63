/* Histogram loss: the chance that a random negative pair is more similar than a random positive one.
 *
 *   h+_r, h-_r  soft histograms of the similarities: a pair at s between nodes t_r and t_{r+1} adds
 *               (t_{r+1} - s) / step to r and (s - t_r) / step to r + 1, nodes from -1 to 1
 *   L = sum_r h-_r sum_{q <= r} h+_q
 *
 *   dL/dh-_r = H+_r,  dL/dh+_q = sum_{r >= q} h-_r; then the slope of the two nodes beside s.
 *
 * Similarities beyond [-1, 1] count at the end, without a gradient.
 * Source: Ustinova and Lempitsky, NIPS 2016. */
#include "objective/loss/histogram.h"

#include <string.h>

#include "objective/loss/bins.h"
#include "objective/loss/loss.h"

static const ki_option options[] = {
    KI_OPTION_INT(ki_histogram_settings, bins, 151, 2, 4096, "nodes of the histograms",
                  "Ustinova and Lempitsky: 151 in their code"),
    KI_OPTION_END};

typedef struct pass {
    int64_t bins;
    double *rows;                  /* [m, 2, bins]: positives, negatives */
    const double *by_pos, *by_neg; /* dL/dh of a pair, second pass */
    double pos_weight, neg_weight;
} pass;

/* The place of s between the nodes from -1 to 1. */
static double axis(ki_real s, int64_t bins) { return ((double)s + 1) * 0.5 * (double)(bins - 1); }

static double row_counts(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const pass *p = context;
    double *h = p->rows + row->i * 2 * p->bins;
    (void)pairs;
    memset(h, 0, (size_t)(2 * p->bins) * sizeof *h);
    for (int64_t j = 0; j < row->n; j++) {
        if (row->pair[j] == KI_PAIR_NONE) continue;
        double *to = row->pair[j] == KI_PAIR_POSITIVE ? h : h + p->bins;
        int64_t node = 0;
        double past = 0;
        ki_bins_place(axis(row->s[j], p->bins), p->bins, &node, &past);
        to[node] += 1 - past;
        to[node + 1] += past;
    }
    return 0;
}

static double row_slopes(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const pass *p = context;
    const double per_step = 0.5 * (double)(p->bins - 1);
    (void)pairs;
    for (int64_t j = 0; j < row->n; j++) {
        int64_t node = 0;
        double past = 0;
        if (row->pair[j] == KI_PAIR_NONE || !ki_bins_place(axis(row->s[j], p->bins), p->bins, &node, &past))
            continue;
        const bool is_pos = row->pair[j] == KI_PAIR_POSITIVE;
        const double *by = is_pos ? p->by_pos : p->by_neg;
        row->g[j] =
            (ki_real)((is_pos ? p->pos_weight : p->neg_weight) * per_step * (by[node + 1] - by[node]));
    }
    return 0;
}

static kith_status eval(const ki_loss_in *in, ki_loss_out *out, kith_error *err) {
    const ki_pairs *pairs = in->pairs;
    const int64_t bins = ((const ki_histogram_settings *)in->settings)->bins;
    pass p = {.bins = bins};
    double *h = NULL, *below = NULL, *above = NULL;
    KI_TRY(
        ki_work_take(pairs->work, (size_t)(pairs->m * 2 * bins), sizeof *p.rows, "histograms", &p.rows, err));
    KI_TRY(ki_work_take(pairs->work, (size_t)(4 * bins), sizeof *h, "histograms", &h, err));
    KI_TRY(ki_pairs_rows(pairs, NULL, row_counts, &p, NULL, NULL, err));
    memset(h, 0, (size_t)(4 * bins) * sizeof *h);
    for (int64_t i = 0; i < pairs->m; i++) {
        for (int64_t r = 0; r < 2 * bins; r++) h[r] += p.rows[i * 2 * bins + r];
    }
    const bool is_empty = pairs->total_pos == 0 || pairs->total_neg == 0;
    p.pos_weight = is_empty ? 0 : 1 / (double)pairs->total_pos;
    p.neg_weight = is_empty ? 0 : 1 / (double)pairs->total_neg;
    below = h + 2 * bins, above = h + 3 * bins; /* H+_r, and the negatives at r or above */
    double sum = 0;
    out->value = 0;
    for (int64_t r = 0; r < bins; r++) {
        below[r] = sum += p.pos_weight * h[r];
        out->value += p.neg_weight * h[bins + r] * below[r];
    }
    sum = 0;
    for (int64_t r = bins - 1; r >= 0; r--) above[r] = sum += p.neg_weight * h[bins + r];
    p.by_neg = below, p.by_pos = above;
    return ki_pairs_rows(pairs, out->g, row_slopes, &p, NULL, NULL, err);
}

const ki_loss ki_loss_histogram = {
    .method = {.name = "histogram",
               .summary = "chance that a negative pair is more similar than a positive one",
               .source = "Ustinova and Lempitsky, NIPS 2016",
               .options = options,
               .settings_bytes = sizeof(ki_histogram_settings)},
    .eval = eval,
};
