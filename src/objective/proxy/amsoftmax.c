/* Additive-margin softmax (CosFace): cross entropy over the classes' proxies, with the own class's
 * cosine lowered by a margin.
 *
 *   L = mean_i -log( e^(scale (s_iy - margin)) / (e^(scale (s_iy - margin)) + sum_{j != y} e^(scale s_ij)) )
 *   dL/ds_ij = scale (softmax_ij - [j = y]) / m
 *
 * Only kept proxies count; an item whose own proxy a miner has dropped contributes 0.
 * Sources: Wang et al., CosFace, CVPR 2018; JRD: scale 20, margin 0.1, proxies U(+-0.1) learned at x100. */
#include "objective/loss/loss.h"

typedef struct settings {
    double scale, margin, lr_multiplier;
} settings;

static const ki_option options[] = {
    KI_OPTION_REAL(settings, scale, 20, 1e-3, 1e4, "factor on the cosines", "JRD"),
    KI_OPTION_REAL(settings, margin, 0.1, -2, 2, "taken off the own class's cosine", "JRD"),
    KI_OPTION_REAL(settings, lr_multiplier, 100, 0, 1e6, "learning rate of the proxies over the network's",
                   "JRD"),
    KI_OPTION_END};

static kith_status params(const void *settings_, const ki_sizes *sizes, ki_state_list *list,
                          kith_error *err) {
    const settings *o = settings_;
    if (!sizes->n_classes) return ki_fail_size(err, "amsoftmax", "the number of classes");
    if (!sizes->embedding) return ki_fail_size(err, "amsoftmax", "the embedding's dimension");
    return ki_state_add(list, "proxies", KI_SHAPE2(sizes->n_classes, sizes->embedding), KI_INIT_UNIFORM, 0.1,
                        o->lr_multiplier, err);
}

static double row_terms(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const settings *o = context;
    const ki_real scale = (ki_real)o->scale, margin = (ki_real)o->margin;
    const int64_t y = pairs->row_label[row->i];
    if (row->pair[y] != KI_PAIR_POSITIVE) return 0;
    const ki_real own = row->s[y] - margin;
    const ki_real other = pairs->vec->max(row->s, row->pair, KI_PAIR_NEGATIVE, row->n);
    const ki_real most = own > other ? own : other;
    const ki_real e_own = ki_exp(scale * (own - most));
    const ki_real sum =
        e_own + pairs->vec->exp(row->s, row->pair, KI_PAIR_NEGATIVE, scale, most, row->g, row->n);
    const ki_real factor = scale / (sum * (ki_real)pairs->m);
    pairs->vec->scale(row->pair, KI_PAIR_NEGATIVE, factor, row->g, row->n);
    row->g[y] = factor * (e_own - sum);
    return (double)(scale * (most - own) + ki_ln(sum));
}

static kith_status eval(const ki_loss_in *in, ki_loss_out *out, kith_error *err) {
    KI_TRY(ki_pairs_rows(in->pairs, out->g, row_terms, in->settings, NULL, &out->value, err));
    out->value /= (double)in->pairs->m;
    return KITH_OK;
}

const ki_loss ki_loss_amsoftmax = {
    .method = {.name = "amsoftmax",
               .summary = "cross entropy over learned class proxies with a margin on the cosine",
               .source = "Wang et al., CosFace, CVPR 2018; JRD",
               .options = options,
               .settings_bytes = sizeof(settings)},
    .is_proxy = true,
    .params = params,
    .eval = eval,
};
