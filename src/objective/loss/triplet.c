/* Triplet loss: an anchor's positives nearer than its negatives, by a margin.
 *
 *   squared or plain distance d:  t = [d_ap - d_an + margin]_+       cosine: t = [s_an - s_ap + margin]_+
 *
 * over the triplets the miner keeps: `nonzero` mean over t > 0, `mean` over all, `sum`.
 * With c_p(n) = 1 where t > 0: dL/dd_ap = sum_n c, dL/dd_an = -sum_p c. Loops over the matrix, one
 * positive against all negatives at a time: memory stays O(m^2).
 *
 * Sources: ECAML Eq. 8, DML-DA Eq. 3 (squared); unified view Eq. 7 (cosine). */
#include "objective/loss/triplet.h"

#include "objective/loss/loss.h"
#include "objective/pair/triplets.h"

static const ki_option options[] = {
    KI_OPTION_REAL(ki_triplet_settings, margin, 0.1, 0, 1e6, "how much farther the negative must be",
                   "ECAML"),
    KI_OPTION_CHOICE(ki_triplet_settings, distance, KI_DISTANCE_SQEUCLIDEAN, ki_distance_names,
                     "what is compared", "ECAML Eq. 8; unified view Eq. 7"),
    KI_OPTION_CHOICE(ki_triplet_settings, reduction, KI_REDUCE_NONZERO, ki_reduction_names,
                     "how terms become one number", "mean over active triplets"),
    KI_OPTION_END};

static ki_measure measure(const void *settings) {
    return ki_distance_measure(((const ki_triplet_settings *)settings)->distance);
}

typedef struct pass {
    const ki_triplet_settings *o;
    int64_t *n_active, *n_all; /* triplets of each row */
} pass;

static int64_t count_inside(const ki_anchor *a, ki_negatives q) {
    if (a->pairs->rule != KI_TRIPLETS_WINDOW) return q.end - q.begin;
    int64_t n = 0;
    for (int64_t k = q.begin; k < q.end; k++) n += a->neg_key[k] > q.low && a->neg_key[k] < q.high;
    return n;
}

static double row_terms(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const pass *p = context;
    const ki_real sign = p->o->distance == KI_DISTANCE_COSINE ? -1 : 1, margin = (ki_real)p->o->margin;
    double sum = 0;
    int64_t n_active = 0, n_all = 0;
    ki_anchor a;
    p->n_active[row->i] = p->n_all[row->i] = 0;
    if (row->n_pos == 0 || row->n_neg == 0) return 0;
    ki_anchor_gather(pairs, row, &a);
    /* Similarities are distances with the opposite sign. */
    if (sign < 0) {
        for (int64_t k = 0; k < a.n_neg; k++) a.neg_s[k] = -a.neg_s[k];
    }
    for (int64_t k = 0; k < a.n_pos; k++) {
        const ki_negatives q = ki_anchor_negatives(&a, k);
        int64_t active = 0;
        sum += (double)pairs->vec->triplet(a.neg_s + q.begin, a.neg_key + q.begin, q.low, q.high,
                                           sign * a.pos_s[k] + margin, a.neg_spare + q.begin, &active,
                                           q.end - q.begin);
        row->g[a.pos[k]] = sign * (ki_real)active;
        n_active += active;
        n_all += count_inside(&a, q);
    }
    for (int64_t k = 0; k < a.n_neg; k++) row->g[a.neg[k]] = -sign * a.neg_spare[k];
    p->n_active[row->i] = n_active;
    p->n_all[row->i] = n_all;
    return sum;
}

static kith_status eval(const ki_loss_in *in, ki_loss_out *out, kith_error *err) {
    const ki_pairs *pairs = in->pairs;
    const ki_triplet_settings *o = in->settings;
    pass p = {.o = o};
    double sum = 0;
    int64_t n = 0;
    KI_TRY(ki_work_take(pairs->work, (size_t)pairs->m, sizeof *p.n_active, "counts", &p.n_active, err));
    KI_TRY(ki_work_take(pairs->work, (size_t)pairs->m, sizeof *p.n_all, "counts", &p.n_all, err));
    KI_TRY(ki_pairs_rows(pairs, out->g, row_terms, &p, NULL, &sum, err));
    for (int64_t i = 0; i < pairs->m; i++)
        n += o->reduction == KI_REDUCE_NONZERO ? p.n_active[i] : p.n_all[i];
    out->g_scale = o->reduction == KI_REDUCE_SUM ? 1 : n > 0 ? 1 / (double)n : 0;
    out->value = sum * out->g_scale;
    return KITH_OK;
}

const ki_loss ki_loss_triplet = {
    .method = {.name = "triplet",
               .summary = "positives nearer than negatives by a margin, over the kept triplets",
               .source = "Schroff et al., CVPR 2015; ECAML Eq. 8; unified view Eq. 7",
               .options = options,
               .settings_bytes = sizeof(ki_triplet_settings)},
    .measure = measure,
    .eval = eval,
};
