/* N-pair loss: each positive pair against all the anchor's negatives at once.
 *
 *   L = mean (or sum) over ordered positive pairs (i, p) of ln(1 + sum_{j in N_i} e^(scale (s_ij - s_ip)))
 *       + l2 * mean_i |x_i|^2
 *
 * The norm term uses the diagonal of S. It has an effect only on embeddings that are not normalised. Sources:
 * Sohn, NIPS 2016; ECAML Eq. 9 and its code (normalised, scale 10); DML-DA Eq. 4. */
#include "objective/loss/npair.h"

#include "objective/loss/loss.h"
#include "objective/loss/softmax_row.h"

static const char *const reductions[] = {"mean", "sum", NULL};

static const ki_option options[] = {
    KI_OPTION_REAL(ki_npair_settings, scale, 1, 1e-6, 1e6,
                   "factor on the similarities; 10 suits normalised embeddings", "ECAML code: 10"),
    KI_OPTION_REAL(ki_npair_settings, l2, 0, 0, 1e6, "weight of the mean squared norm",
                   "Sohn 2016: a small L2 term"),
    KI_OPTION_CHOICE(ki_npair_settings, reduction, KI_NPAIR_MEAN, reductions, "over ordered positive pairs",
                     "ECAML Eq. 9"),
    KI_OPTION_END};

typedef struct pass {
    ki_real scale, weight, norm_weight;
} pass;

static double row_terms(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const pass *p = context;
    const double value = ki_softmax_row(pairs, row, p->scale, p->weight);
    if (!pairs->is_proxy) row->g[row->i] = p->norm_weight;
    return value;
}

static kith_status eval(const ki_loss_in *in, ki_loss_out *out, kith_error *err) {
    const ki_pairs *pairs = in->pairs;
    const ki_npair_settings *o = in->settings;
    const double weight = o->reduction == KI_NPAIR_SUM ? 1
                          : pairs->total_pos           ? 1 / (double)pairs->total_pos
                                                       : 0;
    const double norm_weight = o->l2 / (double)pairs->m;
    const pass p = {(ki_real)o->scale, (ki_real)weight, (ki_real)norm_weight};
    double sum = 0, norms = 0;
    KI_TRY(ki_pairs_rows(pairs, out->g, row_terms, &p, NULL, &sum, err));
    for (int64_t i = 0; i < pairs->m; i++) norms += (double)pairs->row_sq[i];
    out->value = weight * sum + norm_weight * norms;
    return KITH_OK;
}

const ki_loss ki_loss_npair = {
    .method = {.name = "npair",
               .summary = "each positive pair against all negatives of its anchor, by softmax",
               .source = "Sohn, NIPS 2016; ECAML Eq. 9; DML-DA Eq. 4",
               .options = options,
               .settings_bytes = sizeof(ki_npair_settings)},
    .eval = eval,
};
