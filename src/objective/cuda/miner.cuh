/* How a miner that works row by row becomes a kernel: a struct of settings with one function,
 *
 *     __device__ bool operator()(const ki_cuda_view &v, const ki_cuda_row &row) const;
 *
 * that sets pairs that do not count to NONE, and returns whether it may have changed any. Every thread of the
 * block calls it, and all return the same. Before it, the pairs are made from the labels; after it, they are
 * counted again and s is converted to what the loss measures. While a miner works, s holds inner products and g
 * is free for its use. */
#ifndef KI_OBJECTIVE_CUDA_MINER_CUH
#define KI_OBJECTIVE_CUDA_MINER_CUH

#include "objective/cuda/miner.h"
#include "objective/cuda/row.cuh"

static __device__ __forceinline__ void ki_mine_count(ki_cuda_row &row) {
    int pos = 0, neg = 0;
    KI_COLUMNS(j, row.n) {
        pos += row.pair[j] == KI_PAIR_POSITIVE;
        neg += row.pair[j] == KI_PAIR_NEGATIVE;
    }
    /* Both in one sum: counts are below 2^26. */
    const double both = row.sum((double)pos * 67108864.0 + (double)neg);
    row.n_pos = (int)(both / 67108864.0);
    row.n_neg = (int)(both - (double)row.n_pos * 67108864.0);
}

static __device__ __forceinline__ void ki_mine_kinds(const ki_cuda_view &v, ki_cuda_row &row) {
    const int live = ki_view_columns(v), mine = v.label[row.i];
    KI_COLUMNS(j, row.n) {
        const bool is_none = j >= live || (!v.n_centers && j == row.i) || !ki_view_same_head(v, row.i, j);
        row.pair[j] = (uint8_t)(is_none                       ? KI_PAIR_NONE
                                : ki_view_label(v, j) == mine ? KI_PAIR_POSITIVE
                                                              : KI_PAIR_NEGATIVE);
    }
    ki_mine_count(row);
}

/* Below this share of |x|^2 + |y|^2 the difference of inner products has lost too many digits. */
static const float KI_NEAR = 1.0f / 256;

/* Computed by the whole warp; every lane gets the result. */
static __device__ __forceinline__ float ki_exact_sqdist(const float *a, const float *b, int dim) {
    double sum = 0;
    for (int k = (int)threadIdx.x & 31; k < dim; k += 32) {
        const double d = (double)a[k] - (double)b[k];
        sum += d * d;
    }
    return (float)ki_warp_sum(sum);
}

static __device__ __forceinline__ const float *ki_view_column(const ki_cuda_view &v, int j) {
    if (v.n_centers) return v.w + (int64_t)j * v.dim;
    return j < v.m ? v.x + (int64_t)j * v.dim : v.w + (int64_t)(j - v.m) * v.dim;
}

static __device__ __forceinline__ void ki_mine_measure(const ki_cuda_view &v, const ki_cuda_row &row) {
    const float *x = v.x + (int64_t)row.i * v.dim;
    const int lane = (int)threadIdx.x & 31;
    for (int from = 0; from < row.n; from += (int)blockDim.x) {
        const int j = from + (int)threadIdx.x;
        float d = 0, size = 0;
        if (j < row.n && (v.n_centers || j != row.i)) {
            size = v.x_sq[row.i] + (v.n_centers ? v.w_sq[j] : j < v.m ? v.x_sq[j] : v.w_sq[j - v.m]);
            d = size - 2 * row.s[j];
            d = d > 0 ? d : 0;
        }
        const bool is_near = d < KI_NEAR * size && row.pair[j] != KI_PAIR_NONE;
        for (unsigned near = __ballot_sync(0xffffffffu, is_near); near; near &= near - 1) {
            const int other = __ffs((int)near) - 1;
            const float exact = ki_exact_sqdist(x, ki_view_column(v, j - lane + other), v.dim);
            if (lane == other) d = exact;
        }
        if (j < row.n) row.s[j] = v.measure == KI_EUCLIDEAN ? sqrtf(d + 1e-16f) : d;
    }
}

template <typename Miner>
__global__ void ki_mine_rows(ki_cuda_view v, Miner miner) {
    KI_SHARED_ARRAY(double, room, KI_ROOM);
    const int64_t at = (int64_t)blockIdx.x * v.ld;
    ki_cuda_row row = {(int)blockIdx.x, v.n, v.s + at, v.pair + at, v.g + at, 0, 0, room};
    ki_mine_kinds(v, row);
    if (miner(v, row)) ki_mine_count(row);
    if (v.measure != KI_INNER) ki_mine_measure(v, row);
    if (ki_is_first()) {
        v.n_pos[row.i] = row.n_pos;
        v.n_neg[row.i] = row.n_neg;
    }
}

template <typename Miner>
static inline cudaError_t ki_mine_launch(const ki_cuda_view *view, const Miner &miner, cudaStream_t stream) {
    return KI_LAUNCH(ki_mine_rows<Miner>, (unsigned)view->m, view->threads, 0, stream, *view, miner);
}

#endif
