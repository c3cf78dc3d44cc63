/* Margin loss on the device (margin.c has the formulas), and the gradient of its boundary. */
#include "objective/loss/margin.h"

#include "objective/cuda/loss.cuh"

namespace {

struct margin {
    float alpha;
    double nu;
    bool per_class;
    const float *beta;

    __device__ float boundary(const ki_cuda_view &v, int i) const { return beta[per_class ? v.label[i] : 0]; }
    __device__ void operator()(const ki_cuda_view &v, const ki_cuda_row &row, ki_cuda_tally *t) const {
        const float mine = boundary(v, row.i), inner = mine - alpha, outer = mine + alpha;
        double pos = 0, neg = 0, n_pos = 0, n_neg = 0;
        KI_COLUMNS(j, row.n) {
            const float s = row.s[j];
            float g = 0;
            if (ki_is_pos(row.pair[j]) && s - inner > 0) pos += (double)(s - inner), n_pos += 1, g = 1;
            if (ki_is_neg(row.pair[j]) && outer - s > 0) neg += (double)(outer - s), n_neg += 1, g = -1;
            row.g[j] = g;
        }
        row.sums(pos, neg, n_pos, n_neg);
        t->pos = pos;
        t->neg = neg;
        t->plain = nu * (double)mine / (double)v.m;
        t->count[0] = (int64_t)n_pos;
        t->count[1] = (int64_t)n_neg;
    }
};

/* dL/dbeta, rows in order: one block for each boundary. */
__global__ void margin_boundaries(ki_cuda_view v, bool per_class, double nu, const float *scale,
                                  const float *weight, float *diff) {
    KI_SHARED_ARRAY(double, room, 33);
    const double outer = weight ? (double)*weight : 1;
    double sum = 0;
    for (int i = (int)threadIdx.x; i < v.m; i += (int)blockDim.x) {
        if (per_class && v.label[i] != (int)blockIdx.x) continue;
        const ki_cuda_tally t = v.tally[i];
        sum += (double)scale[KI_PAIR_POSITIVE] * (double)(t.count[1] - t.count[0]) + outer * nu / (double)v.m;
    }
    sum = ki_block_sum(sum, room);
    if (ki_is_first()) diff[blockIdx.x] += (float)sum;
}

cudaError_t rows(const ki_cuda_loss_in *in, const ki_cuda_view *view, cudaStream_t stream) {
    const ki_margin_settings *o = static_cast<const ki_margin_settings *>(in->settings);
    const margin loss = {(float)o->alpha, o->nu, o->per_class, in->param};
    return ki_loss_launch(view, loss, stream);
}

cudaError_t after(const ki_cuda_loss_in *in, const ki_cuda_view *view, cudaStream_t stream) {
    const ki_margin_settings *o = static_cast<const ki_margin_settings *>(in->settings);
    if (!in->diff_param) return cudaSuccess;
    return KI_LAUNCH(margin_boundaries, (unsigned)in->n_param, view->m <= 64 ? 32 : 128, 0, stream, *view,
                     o->per_class, o->nu, in->scale, in->weight, in->diff_param);
}

void weights(const void *settings, const ki_cuda_view *view, ki_cuda_weight weight[3]) {
    const ki_margin_settings *o = static_cast<const ki_margin_settings *>(settings);
    (void)view;
    const ki_cuda_by by = o->reduction == KI_REDUCE_SUM    ? KI_BY_ONE
                          : o->reduction == KI_REDUCE_MEAN ? KI_BY_PAIRS
                                                           : KI_BY_COUNTS;
    weight[KI_PAIR_POSITIVE] = weight[KI_PAIR_NEGATIVE] = {by, 1};
}

} // namespace

const ki_cuda_loss ki_cuda_loss_margin = {.rows = rows, .weights = weights, .after = after};
