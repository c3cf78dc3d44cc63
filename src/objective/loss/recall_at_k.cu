/* The recall@k surrogate on the device (recall_at_k.c has the formulas). */
#include "objective/loss/recall_at_k.h"

#include "objective/loss/soft_rank.cuh"

namespace {

struct recall_at_k {
    float inverse_temperature;
    double k_temperature;
    int n_levels;

    __device__ double within(int level, double rank) const {
        const double k = (double)(1 << level);
        return 1 / (1 + exp((rank - k) / (k_temperature * k)));
    }
    /* The mean of R_k; slope[level]: by the sum of sigmas, 0 where it is above k. */
    __device__ double recall_of(int n_pos, const double *sum, double *slope) const {
        double recall = 0;
        for (int level = 0; level < n_levels; level++) {
            const int k = 1 << level;
            const double share = 1 / (double)n_levels / (double)(k < n_pos ? k : n_pos);
            const bool is_bound = sum[level] > (double)k;
            recall += share * (is_bound ? (double)k : sum[level]);
            slope[level] = is_bound ? 0 : share / (k_temperature * (double)k);
        }
        return recall;
    }
    __device__ float rank_of(const ki_cuda_row &row, int i) const {
        const ki_cuda_soft_rank rank = ki_soft_rank_of(row, i, inverse_temperature);
        return (float)(rank.pos + rank.neg);
    }
    /* Every thread has the same sums. The second pass computes the ranks again instead of keeping them. */
    __device__ void operator()(const ki_cuda_view &v, const ki_cuda_row &row, ki_cuda_tally *t) const {
        KI_SHARED_ARRAY(int, column, KI_MOST_BLOCK_THREADS);
        KI_SHARED_ARRAY(int, ranks, 32);
        const ki_cuda_list list = {column, ranks};
        double sum[KI_RECALL_MOST_LEVELS] = {0}, slope[KI_RECALL_MOST_LEVELS];
        (void)v;
        row.clear();
        if (row.n_pos == 0) return;
        for (int from = 0; from < row.n; from += (int)blockDim.x) {
            const int n_listed = list.positives(row, from);
            for (int at = 0; at < n_listed; at++) {
                const double rank = (double)rank_of(row, column[at]);
                for (int level = 0; level < n_levels; level++) sum[level] += within(level, rank);
            }
            __syncthreads();
        }
        t->pos = 1 - recall_of(row.n_pos, sum, slope);
        for (int from = 0; from < row.n; from += (int)blockDim.x) {
            const int n_listed = list.positives(row, from);
            for (int at = 0; at < n_listed; at++) backward(row, column[at], slope);
            __syncthreads();
        }
    }
    __device__ void backward(const ki_cuda_row &row, int i, const double *slope) const {
        const double rank = (double)rank_of(row, i);
        double by = 0;
        for (int level = 0; level < n_levels; level++) {
            const double inside = within(level, rank);
            by += slope[level] * inside * (1 - inside);
        }
        const ki_cuda_soft_rank both = {by, by};
        ki_soft_rank_backward(row, i, inverse_temperature, both);
    }
};

cudaError_t rows(const ki_cuda_loss_in *in, const ki_cuda_view *view, cudaStream_t stream) {
    const ki_recall_at_k_settings *o = static_cast<const ki_recall_at_k_settings *>(in->settings);
    int n_levels = 0;
    while (n_levels < KI_RECALL_MOST_LEVELS && (int64_t)1 << n_levels <= o->k) n_levels++;
    const recall_at_k loss = {(float)(1 / o->temperature), o->k_temperature, n_levels};
    return ki_loss_launch(view, loss, stream);
}

} // namespace

const ki_cuda_loss ki_cuda_loss_recall_at_k = {.rows = rows, .by = KI_BY_ANCHORS};
