/* Contrastive loss on the device (contrastive.c has the formulas). */
#include "objective/loss/contrastive.h"

#include "objective/cuda/loss.cuh"

namespace {

struct contrastive {
    float pos_margin, neg_margin;
    bool is_cosine, is_horde;

    __device__ void operator()(const ki_cuda_view &v, const ki_cuda_row &row, ki_cuda_tally *t) const {
        (void)v;
        const float sign = is_cosine ? -1 : 1;
        double pos = 0, neg = 0, n_pos = 0, n_neg = 0;
        KI_COLUMNS(j, row.n) {
            const float s = row.s[j];
            float g = 0;
            if (ki_is_pos(row.pair[j])) {
                if (is_horde) {
                    const float d = s - 1;
                    pos += 0.5 * (double)d * (double)d;
                    g = d;
                } else if (is_cosine && pos_margin == 0) {
                    pos -= (double)s;
                    n_pos += s < 0;
                    g = -1;
                } else {
                    const float term = sign * (s - pos_margin);
                    if (term > 0) pos += (double)term, n_pos += 1, g = sign;
                }
            } else if (ki_is_neg(row.pair[j])) {
                const float term = -sign * (s - neg_margin);
                if (term > 0) neg += (double)term, n_neg += 1, g = -sign;
            }
            row.g[j] = g;
        }
        row.sums(pos, neg, n_pos, n_neg);
        t->pos = pos;
        t->neg = neg;
        t->count[0] = (int64_t)n_pos;
        t->count[1] = (int64_t)n_neg;
    }
};

cudaError_t rows(const ki_cuda_loss_in *in, const ki_cuda_view *view, cudaStream_t stream) {
    const ki_contrastive_settings *o = static_cast<const ki_contrastive_settings *>(in->settings);
    const bool is_horde = o->form == KI_CONTRASTIVE_HORDE;
    const contrastive loss = {(float)o->pos_margin, is_horde ? 0.5f : (float)o->neg_margin,
                              is_horde || o->distance == KI_DISTANCE_COSINE, is_horde};
    return ki_loss_launch(view, loss, stream);
}

void weights(const void *settings, const ki_cuda_view *view, ki_cuda_weight weight[3]) {
    const ki_contrastive_settings *o = static_cast<const ki_contrastive_settings *>(settings);
    (void)view;
    ki_cuda_weight *pos = &weight[KI_PAIR_POSITIVE], *neg = &weight[KI_PAIR_NEGATIVE];
    if (o->form == KI_CONTRASTIVE_HORDE) {
        *pos = {KI_BY_POS, 1};
        *neg = {KI_BY_COUNT_1, 0.5};
    } else if (o->reduction == KI_REDUCE_SUM) { /* every unordered pair once */
        *pos = *neg = {KI_BY_ONE, 0.5};
    } else {
        *pos = {o->reduction == KI_REDUCE_MEAN ? KI_BY_POS : KI_BY_COUNT_0, 1};
        *neg = {o->reduction == KI_REDUCE_MEAN ? KI_BY_NEG : KI_BY_COUNT_1, 1};
    }
}

} // namespace

const ki_cuda_loss ki_cuda_loss_contrastive = {.rows = rows, .weights = weights};
