/* Where irrelevant columns fall among the relevant ones: counts, as far as the bound on rounding decides, and
 * the pairs that it does not decide. A block takes one row and some consecutive columns, counts in shared
 * memory and adds its counts to the row's list. These are sums of integers, the same in any order. */
#include "backend/cuda/number.cuh"
#include "knn/cuda/kernels.h"

namespace {

enum {
    THREADS = 256,
    COLUMNS = 16 * THREADS,
    MOST_SHARED = 2048 /* lists this long are counted in the block */
};

__device__ __forceinline__ double bound_of(const ki_knn_places &p, double row_norm, int64_t col,
                                           bool has_half) {
    if (p.is_plain) return p.factor + p.tiny;
    return p.factor * (has_half ? row_norm + p.col_norm[col] : row_norm * p.col_norm[col]) + p.tiny;
}

/* The first place whose score is at most x. */
__device__ int first_at_most(const double *score, int n, double x) {
    int low = 0, high = n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (score[middle] > x)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

__global__ void place(ki_knn_tile t, ki_knn_places p) {
    KI_SHARED_ARRAY(int, counts, MOST_SHARED);
    const int64_t r = blockIdx.y, i = t.row + r, begin = p.begin[i];
    const int n = (int)(p.begin[i + 1] - begin);
    if (n == 0) return;
    const bool is_shared = n <= MOST_SHARED;
    if (is_shared) {
        for (int j = (int)threadIdx.x; j < n; j += THREADS) counts[j] = 0;
    }
    __syncthreads();
    const float least = p.least[i], half = t.row_half ? t.row_half[i] : 0;
    const double row_norm = p.is_plain ? 0 : p.row_norm[i];
    const double *score = p.score + begin;
    const int own_class = p.row_class[i];
    const int64_t end = min(t.n_cols, ((int64_t)blockIdx.x + 1) * COLUMNS);
    for (int64_t c = (int64_t)blockIdx.x * COLUMNS + threadIdx.x; c < end; c += THREADS) {
        const float product = t.s[r * t.ld + c];
        const float s = t.col_half ? (product - t.col_half[t.col + c]) - half : product;
        if (!(s >= least) || p.col_class[t.col + c] == own_class) continue;
        const double bound = bound_of(p, row_norm, t.col + c, t.col_half != nullptr);
        const int at = first_at_most(score, n, (double)s + bound);
        if (at == n) continue;
        if (score[at] >= (double)s - bound)
            p.pairs[atomicAdd(p.n_pairs, 1ull)] = (uint64_t)i << 32 | (uint32_t)(t.col + c);
        else if (is_shared)
            atomicAdd(&counts[at], 1);
        else
            atomicAdd(&p.n_before[begin + at], 1);
    }
    __syncthreads();
    if (!is_shared) return;
    for (int j = (int)threadIdx.x; j < n; j += THREADS) {
        if (counts[j]) atomicAdd(&p.n_before[begin + j], counts[j]);
    }
}

} // namespace

extern "C" cudaError_t ki_knn_place(cudaStream_t stream, const ki_knn_tile *tile,
                                    const ki_knn_places *places) {
    const dim3 grid((unsigned)((tile->n_cols + COLUMNS - 1) / COLUMNS), (unsigned)tile->n_rows);
    return KI_LAUNCH(place, grid, THREADS, 0, stream, *tile, *places);
}
