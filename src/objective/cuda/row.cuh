/* What a block does with one row of the pair view: sums and extremes over its columns in a fixed order, and
 * lists of columns. Thread t has the columns t, t + blockDim, …; it alone writes g and pair there. */
#ifndef KI_OBJECTIVE_CUDA_ROW_CUH
#define KI_OBJECTIVE_CUDA_ROW_CUH

#include <float.h>

#include "backend/cuda/number.cuh"
#include "objective/cuda/view.h"

enum { KI_MOST_BLOCK_THREADS = 512 };

/* The columns of this thread. */
#define KI_COLUMNS(j, n) for (int j = (int)threadIdx.x; j < (n); j += (int)blockDim.x)

static __device__ __forceinline__ bool ki_is_first() { return threadIdx.x == 0; }

/* Sums and maxima of up to four numbers at once over a block of at most 16 warps, in a fixed order; all
 * threads get them. `room`: shared memory of KI_ROOM doubles. */
enum { KI_ROOM = 64 };

template <int N>
static __device__ __forceinline__ void ki_block_sums(double (&x)[N], double *room) {
    const int lane = (int)threadIdx.x & 31, warp = (int)threadIdx.x >> 5, n_warps = (int)blockDim.x >> 5;
#pragma unroll
    for (int k = 0; k < N; k++) x[k] = ki_warp_sum(x[k]);
    if (n_warps == 1) return;
    if (lane == 0) {
#pragma unroll
        for (int k = 0; k < N; k++) room[warp * N + k] = x[k];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < N; k++) {
        x[k] = room[k];
        for (int w = 1; w < n_warps; w++) x[k] += room[w * N + k];
    }
    __syncthreads();
}

template <typename T, int N>
static __device__ __forceinline__ void ki_block_maxima(T (&x)[N], double *room_) {
    T *room = (T *)room_;
    const int lane = (int)threadIdx.x & 31, warp = (int)threadIdx.x >> 5, n_warps = (int)blockDim.x >> 5;
#pragma unroll
    for (int k = 0; k < N; k++) {
#pragma unroll
        for (int step = 16; step > 0; step >>= 1) {
            const T other = __shfl_xor_sync(0xffffffffu, x[k], step);
            x[k] = other > x[k] ? other : x[k];
        }
    }
    if (n_warps == 1) return;
    if (lane == 0) {
#pragma unroll
        for (int k = 0; k < N; k++) room[warp * N + k] = x[k];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < N; k++) {
        x[k] = room[k];
        for (int w = 1; w < n_warps; w++) x[k] = room[w * N + k] > x[k] ? room[w * N + k] : x[k];
    }
    __syncthreads();
}

/* How many threads before this one pass true, and how many in all. `room`: shared memory of 32 int. */
static __device__ __forceinline__ int ki_block_rank(bool yes, int *room, int *ret_count) {
    const int lane = (int)threadIdx.x & 31, warp = (int)threadIdx.x >> 5, n_warps = (int)blockDim.x >> 5;
    const unsigned ballot = __ballot_sync(0xffffffffu, yes);
    if (lane == 0) room[warp] = __popc(ballot);
    __syncthreads();
    int before = __popc(ballot & ((1u << lane) - 1)), count = 0;
    for (int w = 0; w < n_warps; w++) {
        if (w < warp) before += room[w];
        count += room[w];
    }
    __syncthreads();
    *ret_count = count;
    return before;
}

/* How many columns take part: columns of the memory count after its warm-up, as far as it is filled. */
static __device__ __forceinline__ int ki_view_columns(const ki_cuda_view &v) {
    if (v.n_centers || !v.memory_state) return v.n;
    if (*v.step < v.memory_warmup) return v.m;
    const float filled = v.memory_state[0];
    const int most = (v.n - v.m) / v.heads;
    return v.m + v.heads * (filled > 0 ? (filled < (float)most ? (int)filled : most) : 0);
}

static __device__ __forceinline__ int ki_view_label(const ki_cuda_view &v, int j) {
    if (v.n_centers) return j / v.n_centers;
    if (j < v.m) return v.label[j];
    const float label = v.memory_label[(j - v.m) / v.heads];
    return label > 0 ? (label < (float)(1 << 24) ? (int)label : 1 << 24) : 0;
}

/* Whether row i and column j are of one head. */
static __device__ __forceinline__ bool ki_view_same_head(const ki_cuda_view &v, int i, int j) {
    return v.n_centers || v.heads == 1 || i % v.heads == j % v.heads;
}

struct ki_cuda_row {
    int i, n;
    float *s;
    uint8_t *pair;
    float *g;
    int n_pos, n_neg;
    double *room; /* shared memory of KI_ROOM doubles */

    __device__ double sum(double a) const {
        double x[1] = {a};
        ki_block_sums(x, room);
        return x[0];
    }
    __device__ void sums(double &a, double &b) const {
        double x[2] = {a, b};
        ki_block_sums(x, room);
        a = x[0], b = x[1];
    }
    __device__ void sums(double &a, double &b, double &c, double &d) const {
        double x[4] = {a, b, c, d};
        ki_block_sums(x, room);
        a = x[0], b = x[1], c = x[2], d = x[3];
    }
    template <typename T>
    __device__ T max(T a) const {
        T x[1] = {a};
        ki_block_maxima(x, room);
        return x[0];
    }
    template <typename T>
    __device__ void maxima(T &a, T &b) const {
        T x[2] = {a, b};
        ki_block_maxima(x, room);
        a = x[0], b = x[1];
    }
    /* The largest of one kind; -FLT_MAX when there is none. */
    __device__ float most(int kind) const {
        float v = -FLT_MAX;
        KI_COLUMNS(j, n) if (pair[j] == kind && s[j] > v) v = s[j];
        return max(v);
    }
    /* The smallest positive (FLT_MAX: none) and the largest negative (-FLT_MAX). */
    __device__ void hardest(float *least_pos, float *most_neg) const {
        float pos = -FLT_MAX, neg = -FLT_MAX;
        KI_COLUMNS(j, n) {
            const float v = s[j];
            if (pair[j] == KI_PAIR_POSITIVE && -v > pos) pos = -v;
            if (pair[j] == KI_PAIR_NEGATIVE && v > neg) neg = v;
        }
        maxima(pos, neg);
        *least_pos = -pos, *most_neg = neg;
    }
    __device__ void clear() const { KI_COLUMNS(j, n) g[j] = 0; }
};

static __device__ __forceinline__ ki_cuda_row ki_cuda_row_of(const ki_cuda_view &v, int i, double *room) {
    const int64_t at = (int64_t)i * v.ld;
    ki_cuda_row row = {i, v.n, v.s + at, v.pair + at, v.g + at, v.n_pos[i], v.n_neg[i], room};
    return row;
}

/* Pairs of the row that a miner chose from, kept or not; the whole block calls it. */
static __device__ __forceinline__ void ki_view_count_all(const ki_cuda_view &v, const ki_cuda_row &row,
                                                         double *n_pos, double *n_neg) {
    const int live = ki_view_columns(v), mine = v.label[row.i];
    *n_pos = *n_neg = 0;
    KI_COLUMNS(j, live) {
        if (j != row.i && ki_view_same_head(v, row.i, j))
            (ki_view_label(v, j) == mine ? *n_pos : *n_neg) += 1;
    }
    row.sums(*n_pos, *n_neg);
}

/* Squared Euclidean distance of row i to column j from inner products. */
static __device__ __forceinline__ float ki_view_sqdist(const ki_cuda_view &v, int i, int j, float s) {
    const float col = v.n_centers ? v.w_sq[j] : j < v.m ? v.x_sq[j] : v.w_sq[j - v.m];
    const float d = v.x_sq[i] + col - 2 * s;
    return d > 0 ? d : 0;
}

/* What windows compare: the squared distance, computed from s as it is now. */
static __device__ __forceinline__ float ki_view_key(const ki_cuda_view &v, int i, int j, float s) {
    if (v.measure == KI_SQEUCLIDEAN) return s;
    if (v.measure == KI_EUCLIDEAN) return s * s;
    return ki_view_sqdist(v, i, j, s);
}

/* Lists of a row's positives, blockDim columns at a time: column order, the same in every run.
 *
 *     for (int from = 0; from < row.n; from += blockDim.x) {
 *         const int count = list.fill(row, from);
 *         for (int k = 0; k < count; k++) … list.column[k] …
 *         __syncthreads();
 *     } */
struct ki_cuda_list {
    int *column; /* shared memory of KI_MOST_BLOCK_THREADS int */
    int *room;   /* and of 32 */
    __device__ int fill(bool yes, int value) const {
        int count = 0;
        const int rank = ki_block_rank(yes, room, &count);
        if (yes) column[rank] = value;
        __syncthreads();
        return count;
    }
    __device__ int positives(const ki_cuda_row &row, int from) const {
        const int j = from + (int)threadIdx.x;
        return fill(j < row.n && row.pair[j] == KI_PAIR_POSITIVE, j);
    }
};

#endif
