/* Binomial deviance: a soft margin on each pair alone.
 *
 *   t_p = ln(1 + e^(alpha (gamma - s))) for positives,   t_n = ln(1 + e^(beta (s - gamma))) for negatives
 *
 *   anchor  mean over all m anchors of (mean of its t_p + mean of its t_n)
 *   mean    mean of all t_p + mean of all t_n (ECAML's code)
 *   sum     of every unordered pair once
 *
 * Sources: unified view Eq. 12 (alpha 2, beta 50, gamma 0.5); ECAML Eq. 10; Yi et al., ICPR 2014. */
#include "objective/loss/loss.h"

typedef struct settings {
    double alpha, beta, gamma;
    int reduction;
} settings;

enum { ANCHOR, SUM, MEAN };
static const char *const reductions[] = {"anchor", "sum", "mean", NULL};

static const ki_option options[] = {
    KI_OPTION_REAL(settings, alpha, 2, 1e-6, 1e6, "steepness for positives", "unified view Sec. 6"),
    KI_OPTION_REAL(settings, beta, 50, 1e-6, 1e6, "steepness for negatives", "unified view Sec. 6"),
    KI_OPTION_REAL(settings, gamma, 0.5, -1e6, 1e6, "similarity where both turn", "unified view Sec. 6"),
    KI_OPTION_CHOICE(settings, reduction, ANCHOR, reductions, "how terms become one number",
                     "anchor: unified view Eq. 12; mean: ECAML code"),
    KI_OPTION_END};

typedef struct pass {
    const settings *o;
    double pos_weight, neg_weight; /* of one pair; by anchor when the reduction is ANCHOR */
} pass;

static double row_terms(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const pass *p = context;
    const settings *o = p->o;
    const ki_vec *vec = pairs->vec;
    const bool by_anchor = o->reduction == ANCHOR;
    const double pos_weight = by_anchor && row->n_pos ? p->pos_weight / (double)row->n_pos : p->pos_weight;
    const double neg_weight = by_anchor && row->n_neg ? p->neg_weight / (double)row->n_neg : p->neg_weight;
    double value = 0;
    if (row->n_pos)
        value += pos_weight * (double)vec->softplus(row->s, row->pair, KI_PAIR_POSITIVE, (ki_real)-o->alpha,
                                                    (ki_real)o->gamma, (ki_real)pos_weight, row->g, row->n);
    if (row->n_neg)
        value += neg_weight * (double)vec->softplus(row->s, row->pair, KI_PAIR_NEGATIVE, (ki_real)o->beta,
                                                    (ki_real)o->gamma, (ki_real)neg_weight, row->g, row->n);
    return value;
}

static double share(int64_t n) { return n > 0 ? 1 / (double)n : 0; }

static kith_status eval(const ki_loss_in *in, ki_loss_out *out, kith_error *err) {
    const ki_pairs *pairs = in->pairs;
    pass p = {.o = in->settings, .pos_weight = 0.5, .neg_weight = 0.5};
    if (p.o->reduction == ANCHOR) p.pos_weight = p.neg_weight = share(pairs->m);
    if (p.o->reduction == MEAN)
        p.pos_weight = share(pairs->total_pos), p.neg_weight = share(pairs->total_neg);
    return ki_pairs_rows(pairs, out->g, row_terms, &p, NULL, &out->value, err);
}

const ki_loss ki_loss_binomial = {
    .method = {.name = "binomial",
               .summary = "binomial deviance: a soft margin on each pair alone",
               .source = "Yi et al., ICPR 2014; unified view Eq. 12; ECAML Eq. 10",
               .options = options,
               .settings_bytes = sizeof(settings)},
    .eval = eval,
};
