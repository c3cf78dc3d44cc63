/* Margin loss with a learned boundary beta.
 *
 *   L = sum over kept ordered pairs of [alpha + (d_ij - beta)]_+ for positives and [alpha - (d_ij - beta)]_+
 *       for negatives, d Euclidean, over the number of terms above 0 (`nonzero`), or mean, or sum,
 *       + nu * mean_i beta
 *
 * beta is one number, or one for each class (the anchor's). dL/dbeta = -1 for an active positive, +1 for an
 * active negative. Source: Wu et al., Sampling Matters in Deep Embedding Learning, ICCV 2017, Eq. 6 and 7
 * (alpha 0.2, beta starts at 1.2), meant for use with the distance_weighted miner. */
#include "objective/loss/margin.h"

#include "objective/loss/loss.h"

static const ki_option options[] = {
    KI_OPTION_REAL(ki_margin_settings, alpha, 0.2, 0, 1e6, "half width of the gap", "Wu et al.: 0.2"),
    KI_OPTION_REAL(ki_margin_settings, beta, 1.2, 0, 1e6, "boundary at the start; it is learned",
                   "Wu et al.: 1.2"),
    KI_OPTION_REAL(ki_margin_settings, nu, 0, 0, 1e6, "weight that keeps beta small", "Wu et al. Eq. 7"),
    KI_OPTION_BOOL(ki_margin_settings, per_class, 0, "one boundary for each class", "Wu et al. Eq. 7"),
    KI_OPTION_REAL(ki_margin_settings, lr_multiplier, 1, 0, 1e6, "learning rate of beta over the network's",
                   "-"),
    KI_OPTION_CHOICE(ki_margin_settings, reduction, KI_REDUCE_NONZERO, ki_reduction_names,
                     "how terms become one number", "Wu et al.'s code: pairs with a loss"),
    KI_OPTION_END};

static ki_measure measure(const void *settings) {
    (void)settings;
    return KI_EUCLIDEAN;
}

static int64_t saved_classes(const void *settings, const ki_saved *saved) {
    ki_shape shape;
    const ki_margin_settings *o = settings;
    return o->per_class && ki_saved_shape(saved, "margin.beta", 1, &shape) ? shape.dim[0] : 0;
}

static kith_status params(const void *settings, const ki_sizes *sizes, ki_state_list *list, kith_error *err) {
    const ki_margin_settings *o = settings;
    if (o->per_class && !sizes->n_classes) return ki_fail_size(err, "margin", "the number of classes");
    return ki_state_add(list, "margin.beta", KI_SHAPE1(o->per_class ? sizes->n_classes : 1), KI_INIT_CONSTANT,
                        o->beta, o->lr_multiplier, err);
}

typedef struct pass {
    const ki_margin_settings *o;
    const ki_real *beta;
    int64_t *n_pos, *n_neg; /* active terms of each row */
} pass;

static ki_real beta_of(const pass *p, const ki_pairs *pairs, int64_t i) {
    return p->beta[p->o->per_class ? pairs->row_label[i] : 0];
}

static double row_terms(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const pass *p = context;
    const ki_real beta = beta_of(p, pairs, row->i), alpha = (ki_real)p->o->alpha;
    const ki_real pos = pairs->vec->hinge(row->s, row->pair, KI_PAIR_POSITIVE, 1, beta - alpha, 1, row->g,
                                          &p->n_pos[row->i], row->n);
    const ki_real neg = pairs->vec->hinge(row->s, row->pair, KI_PAIR_NEGATIVE, -1, beta + alpha, 1, row->g,
                                          &p->n_neg[row->i], row->n);
    return (double)pos + (double)neg;
}

static kith_status eval(const ki_loss_in *in, ki_loss_out *out, kith_error *err) {
    const ki_pairs *pairs = in->pairs;
    const ki_margin_settings *o = in->settings;
    pass p = {.o = o, .beta = in->param[0]->value};
    double sum = 0, boundaries = 0;
    int64_t n = 0;
    KI_TRY(ki_work_take(pairs->work, (size_t)pairs->m, sizeof *p.n_pos, "counts", &p.n_pos, err));
    KI_TRY(ki_work_take(pairs->work, (size_t)pairs->m, sizeof *p.n_neg, "counts", &p.n_neg, err));
    KI_TRY(ki_pairs_rows(pairs, out->g, row_terms, &p, NULL, &sum, err));
    for (int64_t i = 0; i < pairs->m; i++) {
        n += o->reduction == KI_REDUCE_NONZERO ? p.n_pos[i] + p.n_neg[i] : pairs->n_pos[i] + pairs->n_neg[i];
        boundaries += (double)beta_of(&p, pairs, i);
    }
    out->g_scale = o->reduction == KI_REDUCE_SUM ? 1 : n > 0 ? 1 / (double)n : 0;
    out->value = out->g_scale * sum + o->nu * boundaries / (double)pairs->m;
    for (int64_t i = 0; i < pairs->m; i++) {
        const double by_beta = out->g_scale * (double)(p.n_neg[i] - p.n_pos[i]) + o->nu / (double)pairs->m;
        out->diff[0][o->per_class ? pairs->row_label[i] : 0] += (ki_real)by_beta;
    }
    return KITH_OK;
}

const ki_loss ki_loss_margin = {
    .method = {.name = "margin",
               .summary = "positives inside, negatives outside a learned boundary",
               .source = "Wu et al., Sampling Matters, ICCV 2017",
               .options = options,
               .settings_bytes = sizeof(ki_margin_settings)},
    .measure = measure,
    .params = params,
    .saved_classes = saved_classes,
    .eval = eval,
};
