/* Smooth-AP on the device (smooth_ap.c has the formulas). */
#include "objective/loss/smooth_ap.h"

#include "objective/loss/soft_rank.cuh"

namespace {

struct smooth_ap {
    float inverse_temperature;

    __device__ void operator()(const ki_cuda_view &v, const ki_cuda_row &row, ki_cuda_tally *t) const {
        KI_SHARED_ARRAY(int, column, KI_MOST_BLOCK_THREADS);
        KI_SHARED_ARRAY(int, ranks, 32);
        const ki_cuda_list list = {column, ranks};
        const double share = row.n_pos ? 1 / (double)row.n_pos : 0;
        double precision = 0;
        (void)v;
        row.clear();
        if (row.n_pos == 0) return;
        for (int from = 0; from < row.n; from += (int)blockDim.x) {
            const int n_listed = list.positives(row, from);
            for (int k = 0; k < n_listed; k++) {
                const int i = column[k];
                const ki_cuda_soft_rank rank = ki_soft_rank_of(row, i, inverse_temperature);
                const double all = rank.pos + rank.neg, slope = share / (all * all);
                const ki_cuda_soft_rank by = {-slope * rank.neg, slope * rank.pos};
                precision += share * rank.pos / all;
                ki_soft_rank_backward(row, i, inverse_temperature, by);
            }
            __syncthreads();
        }
        t->pos = 1 - precision;
    }
};

cudaError_t rows(const ki_cuda_loss_in *in, const ki_cuda_view *view, cudaStream_t stream) {
    const ki_smooth_ap_settings *o = static_cast<const ki_smooth_ap_settings *>(in->settings);
    const smooth_ap loss = {(float)(1 / o->temperature)};
    return ki_loss_launch(view, loss, stream);
}

} // namespace

const ki_cuda_loss ki_cuda_loss_smooth_ap = {.rows = rows, .by = KI_BY_ANCHORS};
