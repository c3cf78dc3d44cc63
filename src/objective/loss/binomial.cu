/* Binomial deviance on the device (binomial.c has the formulas). */
#include "objective/loss/binomial.h"

#include "objective/cuda/loss.cuh"

namespace {

struct binomial {
    float alpha, beta, gamma;
    bool by_anchor, by_all;

    __device__ void operator()(const ki_cuda_view &v, const ki_cuda_row &row, ki_cuda_tally *t) const {
        double n_pos = row.n_pos, n_neg = row.n_neg;
        if (by_all) ki_view_count_all(v, row, &n_pos, &n_neg);
        const float pos_weight = by_anchor && n_pos > 0 ? 1 / (float)n_pos : 1;
        const float neg_weight = by_anchor && n_neg > 0 ? 1 / (float)n_neg : 1;
        double pos = 0, neg = 0;
        KI_COLUMNS(j, row.n) {
            const bool is_pos = ki_is_pos(row.pair[j]);
            float g = 0;
            if (row.pair[j] != KI_PAIR_NONE) {
                const float a = is_pos ? -alpha : beta, z = a * (row.s[j] - gamma);
                const float e = expf(z < 0 ? z : -z), value = (z > 0 ? z : 0) + log1pf(e);
                g = (is_pos ? pos_weight : neg_weight) * a * (z < 0 ? e : 1) / (1 + e);
                (is_pos ? pos : neg) += (double)value;
            }
            row.g[j] = g;
        }
        row.sums(pos, neg);
        t->pos = (double)pos_weight * pos;
        t->neg = (double)neg_weight * neg;
    }
};

cudaError_t rows(const ki_cuda_loss_in *in, const ki_cuda_view *view, cudaStream_t stream) {
    const ki_binomial_settings *o = static_cast<const ki_binomial_settings *>(in->settings);
    const bool by_all = o->reduction == KI_BINOMIAL_ANCHOR_ALL;
    const binomial loss = {(float)o->alpha, (float)o->beta, (float)o->gamma,
                           o->reduction != KI_BINOMIAL_SUM && o->reduction != KI_BINOMIAL_MEAN, by_all};
    return ki_loss_launch(view, loss, stream);
}

void weights(const void *settings, const ki_cuda_view *view, ki_cuda_weight weight[3]) {
    const ki_binomial_settings *o = static_cast<const ki_binomial_settings *>(settings);
    (void)view;
    ki_cuda_weight *pos = &weight[KI_PAIR_POSITIVE], *neg = &weight[KI_PAIR_NEGATIVE];
    switch (o->reduction) {
    case KI_BINOMIAL_SUM: *pos = *neg = {KI_BY_ONE, 0.5}; break;
    case KI_BINOMIAL_MEAN:
        *pos = {KI_BY_POS, 1};
        *neg = {KI_BY_NEG, 1};
        break;
    case KI_BINOMIAL_ANCHOR_SUM: *pos = *neg = {KI_BY_ONE, 1}; break;
    default: *pos = *neg = {KI_BY_ROWS, 1}; break;
    }
}

} // namespace

const ki_cuda_loss ki_cuda_loss_binomial = {.rows = rows, .weights = weights};
