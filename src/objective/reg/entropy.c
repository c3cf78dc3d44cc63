/* Entropy: keeps it uncertain, for each pair, whether two items belong together.
 *
 *   p_ij = 1 / (1 + e^(D_ij - eta)), D squared distance: the chance that i and j are of one class
 *   h_ij = -p ln p - (1 - p) ln(1 - p)
 *   L = -mean over ordered pairs i != j of h_ij
 *   dL/dD_ij = -z p (1 - p) / N, z = eta - D_ij
 *
 * With r = min(p, 1 - p) = 1 / (1 + e^|z|) nothing cancels: h = softplus(-|z|) + |z| r, p (1 - p) = r (1 - r).
 *
 * The entropy is largest at D = eta for every pair: items of a class move apart, classes together. That is
 * what DML-DA (Fig. 4 and its text) says about the entropy regularizer it compares with, without a formula.
 * The pair model is that of the paper it cites, Niu et al., Information-theoretic Semi-supervised Metric
 * Learning via Entropy Regularization (SERAPH), ICML 2012, Eq. 4, whose own term has the other sign: it
 * sharpens the pairs that have no labels. eta 1 is the margin of DML-DA. */
#include "objective/reg/entropy.h"

#include "objective/reg/over_pairs.h"

static const ki_option options[] = {
    KI_OPTION_REAL(ki_entropy_settings, eta, 1, 0, 1e6, "squared distance at which a pair is undecided",
                   "SERAPH Eq. 4; the margins of DML-DA are 1"),
    KI_OPTION_END};

static double row_terms(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const ki_entropy_settings *o = context;
    const ki_vec *vec = pairs->vec;
    const ki_real eta = (ki_real)o->eta;
    ki_real *size = row->scratch;
    for (int64_t j = 0; j < row->n; j++) size[j] = row->s[j] < eta ? eta - row->s[j] : row->s[j] - eta;
    double sum = 0;
    /* With weight -1 and a slope of -1, g becomes r itself. */
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
    ki_pairs pairs;
    KI_TRY(ki_reg_pairs_build(in, KI_TAP_EMBEDDING, &pairs, err));
    const int64_t n = pairs.total_pos + pairs.total_neg;
    if (n == 0) return KITH_OK;
    KI_TRY(ki_reg_pairs_sum(in, &pairs, row_terms, 1 / (double)n, out, err));
    out->value /= (double)n;
    return KITH_OK;
}

const ki_reg ki_reg_entropy = {
    .method = {.name = "entropy",
               .summary = "keep every pair undecided: classes wide and near each other",
               .source = "DML-DA Fig. 4; pair model of Niu et al., ICML 2012",
               .options = options,
               .settings_bytes = sizeof(ki_entropy_settings)},
    .taps = KI_TAP_BIT(KI_TAP_EMBEDDING),
    .normalize = true,
    .eval = eval,
};
