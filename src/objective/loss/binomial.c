/* Binomial deviance: a soft margin on each pair alone.
 *
 *   t_p = ln(1 + e^(alpha (gamma - s))) for positives,   t_n = ln(1 + e^(beta (s - gamma))) for negatives
 *
 *   anchor      mean over all m anchors of (mean of its t_p + mean of its t_n)
 *   anchor_all  the same with a miner's choice summed, and divided by all the anchor's pairs, chosen or not
 *   anchor_sum  the sum over anchors where `anchor` has their mean: m times as much (HORDE's code)
 *   mean        mean of all t_p + mean of all t_n (ECAML's code)
 *   sum         of every unordered pair once
 *
 * A mean over the few hard negatives of an anchor gives them far more weight than its positives (beta is 50,
 * alpha 2). With a miner, anchor_all keeps each pair's weight of Eq. 13, which is how we read Table 1 of the
 * unified view.
 *
 * Sources: unified view Eq. 12 (alpha 2, beta 50, gamma 0.5); ECAML Eq. 10; Yi et al., ICPR 2014. */
#include "objective/loss/binomial.h"

#include "objective/loss/loss.h"

static const char *const reductions[] = {"anchor", "sum", "mean", "anchor_all", "anchor_sum", NULL};

static const ki_option options[] = {
    KI_OPTION_REAL(ki_binomial_settings, alpha, 2, 1e-6, 1e6, "steepness for positives",
                   "unified view Sec. 6"),
    KI_OPTION_REAL(ki_binomial_settings, beta, 50, 1e-6, 1e6, "steepness for negatives",
                   "unified view Sec. 6"),
    KI_OPTION_REAL(ki_binomial_settings, gamma, 0.5, -1e6, 1e6, "similarity where both turn",
                   "unified view Sec. 6"),
    KI_OPTION_CHOICE(ki_binomial_settings, reduction, KI_BINOMIAL_ANCHOR, reductions,
                     "how terms become one number",
                     "anchor, anchor_all: unified view Eq. 12; mean: ECAML code; anchor_sum: HORDE code"),
    KI_OPTION_END};

typedef struct pass {
    const ki_binomial_settings *o;
    double pos_weight, neg_weight; /* of one pair; by anchor where is_by_anchor */
} pass;

static bool is_by_anchor(const ki_binomial_settings *o) {
    return o->reduction != KI_BINOMIAL_SUM && o->reduction != KI_BINOMIAL_MEAN;
}

static double row_terms(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const pass *p = context;
    const ki_binomial_settings *o = p->o;
    const ki_vec *vec = pairs->vec;
    const bool by_anchor = is_by_anchor(o);
    int64_t n_pos = row->n_pos, n_neg = row->n_neg;
    if (o->reduction == KI_BINOMIAL_ANCHOR_ALL) ki_pairs_count_all(pairs, row->i, &n_pos, &n_neg);
    const double pos_weight = by_anchor && n_pos ? p->pos_weight / (double)n_pos : p->pos_weight;
    const double neg_weight = by_anchor && n_neg ? p->neg_weight / (double)n_neg : p->neg_weight;
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
    if (is_by_anchor(p.o)) p.pos_weight = p.neg_weight = share(pairs->m);
    if (p.o->reduction == KI_BINOMIAL_ANCHOR_SUM) p.pos_weight = p.neg_weight = 1;
    if (p.o->reduction == KI_BINOMIAL_MEAN)
        p.pos_weight = share(pairs->total_pos), p.neg_weight = share(pairs->total_neg);
    return ki_pairs_rows(pairs, out->g, row_terms, &p, NULL, &out->value, err);
}

const ki_loss ki_loss_binomial = {
    .method = {.name = "binomial",
               .summary = "binomial deviance: a soft margin on each pair alone",
               .source = "Yi et al., ICPR 2014; unified view Eq. 12; ECAML Eq. 10",
               .options = options,
               .settings_bytes = sizeof(ki_binomial_settings)},
    .eval = eval,
};
