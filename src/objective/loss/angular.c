/* Angular loss: bounds the angle at the negative in the triangle of anchor, positive and negative.
 *
 *   f_apn = 4 tan^2(angle) (x_a + x_p) . x_n - 2 (1 + tan^2(angle)) x_a . x_p
 *   L = mean over ordered positive pairs (a, p) of ln(1 + sum_{n in N_a} e^(f_apn))
 *
 * With q_n = e^(f_n) / (1 + sum e^f): dL/ds_an and dL/ds_pn get 4 tan^2 q_n, dL/ds_ap gets -2 (1 + tan^2) sum
 * q. The entry (p, n) is in another row than the anchor's. So a row collects its gradient as a positive by
 * visiting the anchors that have it as a positive: each row is written only by its own thread. Positives from
 * the cross-batch memory are skipped: their row of S is not known.
 * Source: Wang et al., Deep Metric Learning with Angular Loss, ICCV 2017, Eq. 7 and 8. */
#include "objective/loss/angular.h"

#include <math.h>

#include "objective/loss/loss.h"
#include "objective/pair/triplets.h"

static const ki_option options[] = {
    KI_OPTION_REAL(ki_angular_settings, angle, 45, 1, 89, "upper bound at the negative, in degrees",
                   "Wang et al.: 36 to 55 work, 45 used"),
    KI_OPTION_END};

typedef struct pass {
    ki_real square; /* tan^2 */
    ki_real weight;
} pass;

/* q_n of the term (a, its k-th positive), packed like the negatives of a, in q; returns the term. */
static double term(const pass *p, const ki_anchor *a, int64_t k, ki_real *q, double *ret_sum_q) {
    const ki_pairs *pairs = a->pairs;
    const ki_negatives in = ki_anchor_negatives(a, k);
    const ki_real *s_p = pairs->s + a->pos[k] * pairs->ld;
    const ki_real constant = -2 * (1 + p->square) * a->pos_s[k];
    ki_real most = 0; /* the exponent of the 1 */
    for (int64_t n = in.begin; n < in.end; n++) {
        const bool is_in = a->neg_key[n] > in.low && a->neg_key[n] < in.high;
        q[n] = is_in ? 4 * p->square * (a->neg_s[n] + s_p[a->neg[n]]) + constant : -KI_REAL_MAX;
        most = q[n] > most ? q[n] : most;
    }
    const ki_real sum =
        ki_exp(-most) + pairs->vec->exp_all(q + in.begin, 1, most, q + in.begin, in.end - in.begin);
    for (int64_t n = 0; n < a->n_neg; n++) q[n] = n >= in.begin && n < in.end ? q[n] / sum : 0;
    *ret_sum_q = 1 - (double)(ki_exp(-most) / sum);
    return (double)most + (double)ki_ln(sum);
}

static double row_terms(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const pass *p = context;
    const ki_real factor = 4 * p->square * p->weight;
    ki_real *q = row->scratch + 4 * pairs->ld;
    double value = 0, sum_q = 0;
    ki_anchor a;
    ki_anchor_gather(pairs, row, &a);
    for (int64_t k = 0; k < a.n_pos; k++) {
        if (a.pos[k] >= pairs->m) continue;
        value += term(p, &a, k, q, &sum_q);
        for (int64_t n = 0; n < a.n_neg; n++) row->g[a.neg[n]] += factor * q[n];
        row->g[a.pos[k]] -= 2 * (1 + p->square) * p->weight * (ki_real)sum_q;
    }
    for (int64_t i = 0; i < pairs->m; i++) {
        if (pairs->pair[i * pairs->ld + row->i] != KI_PAIR_POSITIVE) continue;
        const ki_row other = {.i = i,
                              .n = row->n,
                              .s = pairs->s + i * pairs->ld,
                              .pair = pairs->pair + i * pairs->ld,
                              .n_pos = pairs->n_pos[i],
                              .n_neg = pairs->n_neg[i],
                              .scratch = row->scratch};
        ki_anchor_gather(pairs, &other, &a);
        int64_t k = 0;
        while (a.pos[k] != row->i) k++;
        term(p, &a, k, q, &sum_q);
        for (int64_t n = 0; n < a.n_neg; n++) {
            /* If this row were a negative of i, s[row, row] would be needed; the labels make that impossible. */
            row->g[a.neg[n]] += factor * q[n];
        }
    }
    return value;
}

static kith_status eval(const ki_loss_in *in, ki_loss_out *out, kith_error *err) {
    const ki_angular_settings *o = in->settings;
    const ki_pairs *pairs = in->pairs;
    const double tangent = tan(o->angle * 3.14159265358979323846 / 180);
    int64_t n = 0;
    for (int64_t i = 0; i < pairs->m; i++) {
        for (int64_t j = 0; j < pairs->m; j++) n += pairs->pair[i * pairs->ld + j] == KI_PAIR_POSITIVE;
    }
    const double weight = n ? 1 / (double)n : 0;
    const pass p = {.square = (ki_real)(tangent * tangent), .weight = (ki_real)weight};
    KI_TRY(ki_pairs_rows(pairs, out->g, row_terms, &p, NULL, &out->value, err));
    out->value *= weight;
    return KITH_OK;
}

const ki_loss ki_loss_angular = {
    .method = {.name = "angular",
               .summary = "bounds the angle at the negative of each triplet",
               .source = "Wang et al., ICCV 2017",
               .options = options,
               .settings_bytes = sizeof(ki_angular_settings)},
    .eval = eval,
};
