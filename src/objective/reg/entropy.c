/* Entropy: keep it undecided, pair by pair, whether two items belong together.
 *
 *   p_ij = 1 / (1 + e^(D_ij - eta)), D squared distance: the chance that i and j are of one class
 *   h_ij = -p ln p - (1 - p) ln(1 - p)
 *   L = -mean over ordered pairs i != j of h_ij
 *   dL/dD_ij = -z p (1 - p) / N, z = eta - D_ij
 *
 * With r = min(p, 1 - p) = 1 / (1 + e^|z|) nothing cancels: h = softplus(-|z|) + |z| r, p (1 - p) = r (1 - r).
 *
 * The entropy is largest at D = eta for every pair: items of a class move apart, classes together. That is
 * what DML-DA (Fig. 4 and its text) says of the entropy regularizer it compares with, printing no formula;
 * the pair model is of the paper it cites, Niu et al., Information-theoretic Semi-supervised Metric
 * Learning via Entropy Regularization (SERAPH), ICML 2012, Eq. 4, whose own term has the other sign: it
 * sharpens the pairs that have no labels. eta 1 is the margin of DML-DA. */
#include "objective/pair/pairs.h"
#include "objective/reg/reg.h"

typedef struct settings {
    double eta;
} settings;

static const ki_option options[] = {
    KI_OPTION_REAL(settings, eta, 1, 0, 1e6, "squared distance at which a pair is undecided",
                   "SERAPH Eq. 4; the margins of DML-DA are 1"),
    KI_OPTION_END};

static double row_terms(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const settings *o = context;
    const ki_vec *vec = pairs->vec;
    const ki_real eta = (ki_real)o->eta;
    ki_real *size = row->scratch;
    for (int64_t j = 0; j < row->n; j++) size[j] = row->s[j] < eta ? eta - row->s[j] : row->s[j] - eta;
    double sum = 0;
    /* weight -1 on a slope of -1 leaves r itself in g. */
    for (int kind = KI_PAIR_POSITIVE; kind <= KI_PAIR_NEGATIVE; kind++)
        sum += (double)vec->softplus(size, row->pair, kind, -1, 0, -1, row->g, row->n);
    ki_real inner = 0;
    for (int64_t j = 0; j < row->n; j++) {
        const ki_real r = row->g[j]; /* 0 where there is no pair */
        inner += size[j] * r;
        row->g[j] = (row->s[j] - eta) * r * (1 - r);
    }
    return -(sum + (double)inner);
}

static kith_status eval(const ki_reg_in *in, ki_reg_out *out, kith_error *err) {
    const ki_tap_data *x = &in->tap[KI_TAP_EMBEDDING];
    ki_pairs pairs;
    ki_real *g = NULL;
    KI_TRY(ki_pairs_build(&pairs, x->data, in->m, x->cols, in->label, NULL, NULL, 0, false, in->vec, in->work,
                          err));
    const int64_t n = pairs.total_pos + pairs.total_neg;
    if (n == 0) return KITH_OK;
    ki_pairs_measure(&pairs, KI_SQEUCLIDEAN);
    KI_TRY(ki_work_reals(in->work, pairs.m * pairs.ld, "pair gradients", &g, err));
    KI_TRY(ki_pairs_rows(&pairs, g, row_terms, in->settings, NULL, &out->value, err));
    out->value /= (double)n;
    return ki_pairs_backward(&pairs, g, 1 / (double)n, out->diff[KI_TAP_EMBEDDING], NULL, err);
}

const ki_reg ki_reg_entropy = {
    .method = {.name = "entropy",
               .summary = "keep every pair undecided: classes wide and near each other",
               .source = "DML-DA Fig. 4; pair model of Niu et al., ICML 2012",
               .options = options,
               .settings_bytes = sizeof(settings)},
    .taps = KI_TAP_BIT(KI_TAP_EMBEDDING),
    .normalize = true,
    .eval = eval,
};
