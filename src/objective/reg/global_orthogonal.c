/* Global orthogonal regularization (spread-out): items of different classes should be as orthogonal as random
 * unit vectors.
 *
 *   M1, M2 = mean of s_ij and of s_ij^2 over different-class pairs, d the dimension
 *   L = M1^2 + [M2 - 1/d]_+
 *   dL/ds_ij = 2 (M1 + [M2 > 1/d] s_ij) / N
 *
 * 0 when all labels agree. Source: Zhang et al., Learning Spread-out Local Feature Descriptors, ICCV 2017,
 * Eq. 6, where the weight is 1; DML-DA Fig. 4 compares with it. */
#include "objective/reg/over_pairs.h"

typedef struct pass {
    double *square; /* of each row */
    ki_real mean, factor;
} pass;

static double row_sums(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const pass *p = context;
    double sum = 0, square = 0;
    (void)pairs;
    for (int64_t j = 0; j < row->n; j++) {
        const double s = row->pair[j] == KI_PAIR_NEGATIVE ? (double)row->s[j] : 0;
        sum += s;
        square += s * s;
    }
    p->square[row->i] = square;
    return sum;
}

static double row_gradient(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const pass *p = context;
    (void)pairs;
    for (int64_t j = 0; j < row->n; j++)
        row->g[j] = row->pair[j] == KI_PAIR_NEGATIVE ? p->mean + p->factor * row->s[j] : 0;
    return 0;
}

static kith_status eval(const ki_reg_in *in, ki_reg_out *out, kith_error *err) {
    ki_pairs pairs;
    ki_real *g = NULL;
    pass p = {0};
    double sum = 0, square = 0;
    KI_TRY(ki_reg_pairs_build(in, KI_TAP_EMBEDDING, &pairs, err));
    if (pairs.total_neg == 0) return KITH_OK;
    KI_TRY(ki_work_reals(in->work, pairs.m * pairs.ld, "pair gradients", &g, err));
    KI_TRY(ki_work_take(in->work, (size_t)in->m, sizeof *p.square, "row sums", &p.square, err));
    KI_TRY(ki_pairs_rows(&pairs, NULL, row_sums, &p, NULL, &sum, err));
    for (int64_t i = 0; i < in->m; i++) square += p.square[i];
    const double n = (double)pairs.total_neg, mean = sum / n, excess = square / n - 1 / (double)pairs.dim;
    out->value = mean * mean + (excess > 0 ? excess : 0);
    p.mean = (ki_real)mean;
    p.factor = excess > 0 ? 1 : 0;
    KI_TRY(ki_pairs_rows(&pairs, g, row_gradient, &p, NULL, NULL, err));
    return ki_reg_pairs_backward(in, out, &pairs, g, 2 / n, KI_TAP_EMBEDDING, err);
}

const ki_reg ki_reg_global_orthogonal = {
    .method = {.name = "global_orthogonal",
               .summary = "items of different classes as orthogonal as random unit vectors",
               .source = "Zhang et al., ICCV 2017",
               .options = ki_no_options},
    .taps = KI_TAP_BIT(KI_TAP_EMBEDDING),
    .normalize = true,
    .eval = eval,
};
