/* Sums over all rows, and from dL/ds to the matrix whose product with the embeddings is the gradient: the
 * chain rule of pair/chain.c. */
#include "objective/cuda/row.cuh"

namespace {

struct sums {
    double pos, neg, plain, count[2], n_pos, n_neg, n_anchors;
};

__device__ double weight_of(ki_cuda_weight w, const sums &t, double m) {
    double by = 1;
    switch (w.by) {
    case KI_BY_ONE: break;
    case KI_BY_ROWS: by = m; break;
    case KI_BY_ANCHORS: by = t.n_anchors; break;
    case KI_BY_POS: by = t.n_pos; break;
    case KI_BY_NEG: by = t.n_neg; break;
    case KI_BY_PAIRS: by = t.n_pos + t.n_neg; break;
    case KI_BY_COUNT_0: by = t.count[0]; break;
    case KI_BY_COUNT_1: by = t.count[1]; break;
    case KI_BY_COUNTS: by = t.count[0] + t.count[1]; break;
    }
    return by > 0 ? w.factor / by : 0;
}

struct weights {
    ki_cuda_weight kind[3];
};

__global__ void sum_up(ki_cuda_view v, weights w, ki_cuda_totals totals) {
    KI_SHARED_ARRAY(double, room, KI_ROOM);
    sums t = {0, 0, 0, {0, 0}, 0, 0, 0};
    for (int i = (int)threadIdx.x; i < v.n_tallies; i += (int)blockDim.x) {
        const ki_cuda_tally row = v.tally[i];
        t.pos += row.pos;
        t.neg += row.neg;
        t.plain += row.plain;
        t.count[0] += (double)row.count[0];
        t.count[1] += (double)row.count[1];
    }
    for (int i = (int)threadIdx.x; i < v.m; i += (int)blockDim.x) {
        t.n_pos += v.n_pos[i];
        t.n_neg += v.n_neg[i];
        t.n_anchors += v.n_pos[i] > 0;
    }
    double values[4] = {t.pos, t.neg, t.plain, t.n_anchors};
    double counts[4] = {t.count[0], t.count[1], t.n_pos, t.n_neg};
    ki_block_sums(values, room);
    ki_block_sums(counts, room);
    t = {values[0], values[1], values[2], {counts[0], counts[1]}, counts[2], counts[3], values[3]};
    if (!ki_is_first()) return;
    const double outer = totals.weight ? (double)*totals.weight : 1;
    double weight[3];
    for (int kind = 0; kind < 3; kind++) {
        weight[kind] = weight_of(w.kind[kind], t, (double)v.m);
        totals.scale[kind] = (float)(weight[kind] * outer);
    }
    const double value = weight[KI_PAIR_POSITIVE] * t.pos + weight[KI_PAIR_NEGATIVE] * t.neg + t.plain;
    *totals.value += totals.weighs_value ? outer * value : value;
    if (!totals.pairs) return;
    totals.pairs[0] = (int64_t)t.n_pos;
    totals.pairs[1] = (int64_t)t.n_neg;
    totals.pairs[2] += t.n_pos + t.n_neg == 0;
}

/* The ratio of dL/dD to dL/dE at E: points that coincide have no direction to attract or repel. */
__device__ float by_square(float e) { return e > 2e-8f ? 0.5f / e : 0; }

__device__ float weighed(const ki_cuda_view &v, const float *scale, int64_t at) {
    const float g = scale[v.pair[at]] * v.g[at];
    return v.measure == KI_EUCLIDEAN ? g * by_square(v.s[at]) : g;
}

enum { TILE = 32, TILE_ROWS = 8 };

/* One tile of h: the tile of G, and for columns of the batch the mirrored tile, transposed in shared memory. */
__global__ void symmetrize(ki_cuda_view v, const float *scale_, float *h) {
    KI_SHARED_ARRAY(float, turned, TILE *(TILE + 1));
    const float scale[3] = {scale_[0], scale_[1], scale_[2]};
    const int i_0 = (int)blockIdx.y * TILE, j_0 = (int)blockIdx.x * TILE;
    const int x = (int)threadIdx.x, y_0 = (int)threadIdx.y;
    for (int y = y_0; y < TILE; y += TILE_ROWS) {
        const int i = j_0 + y, j = i_0 + x;
        turned[x * (TILE + 1) + y] = i < v.m && j < v.m ? weighed(v, scale, (int64_t)i * v.ld + j) : 0;
    }
    __syncthreads();
    for (int y = y_0; y < TILE; y += TILE_ROWS) {
        const int i = i_0 + y, j = j_0 + x;
        if (i >= v.m || j >= v.n) continue;
        const int64_t at = (int64_t)i * v.ld + j;
        h[at] = weighed(v, scale, at) + turned[y * (TILE + 1) + x];
    }
}

/* The weighted difference sum_j h_ij (x_i - x_j) becomes one product if the diagonal is -sum_j h_ij. */
__global__ void diagonal(ki_cuda_view v, float *h, float *memory_sum) {
    KI_SHARED_ARRAY(double, room, KI_ROOM);
    const int i = (int)blockIdx.x;
    float *row = h + (int64_t)i * v.ld;
    double sum[2] = {0, 0}; /* of the batch, of the memory */
    KI_COLUMNS(j, v.n) {
        if (j != i) sum[j >= v.m] += (double)row[j];
    }
    ki_block_sums(sum, room);
    if (!ki_is_first()) return;
    row[i] = (float)-(sum[0] + sum[1]);
    memory_sum[i] = (float)sum[1];
}

__global__ void scale_pairs(ki_cuda_view v, const float *scale) {
    const int64_t row = (int64_t)blockIdx.x * v.ld;
    KI_COLUMNS(j, v.n) v.g[row + j] *= scale[v.pair[row + j]];
}

enum { CENTRE_X = 32, CENTRE_Y = 8 };

/* CENTRE_X columns of x, CENTRE_Y slices of its rows. */
__global__ void centre(const float *x, int m, int dim, float *mean, float *centred) {
    KI_SHARED_ARRAY(double, part, CENTRE_X *CENTRE_Y);
    const int k = (int)(blockIdx.x * CENTRE_X + threadIdx.x), slice = (int)threadIdx.y;
    double sum = 0;
    if (k < dim) {
        for (int i = slice; i < m; i += CENTRE_Y) sum += (double)x[(int64_t)i * dim + k];
    }
    part[slice * CENTRE_X + (int)threadIdx.x] = sum;
    __syncthreads();
    sum = 0;
    for (int y = 0; y < CENTRE_Y; y++) sum += part[y * CENTRE_X + (int)threadIdx.x];
    if (k >= dim) return;
    const float centre_k = (float)(sum / m);
    if (slice == 0) mean[k] = centre_k;
    for (int i = slice; i < m; i += CENTRE_Y)
        centred[(int64_t)i * dim + k] = x[(int64_t)i * dim + k] - centre_k;
}

__global__ void add_mean(const float *sum, const float *mean, float factor, int dim, float *dst) {
    const float weight = factor * sum[blockIdx.x];
    KI_COLUMNS(k, dim) dst[(int64_t)blockIdx.x * dim + k] += weight * mean[k];
}

} // namespace

cudaError_t ki_cuda_sum_up(const ki_cuda_view *view, const ki_cuda_weight weight[3], ki_cuda_totals totals,
                           cudaStream_t stream) {
    const weights w = {{weight[0], weight[1], weight[2]}};
    return KI_LAUNCH(sum_up, 1, view->m <= 64 ? 32 : 256, 0, stream, *view, w, totals);
}

cudaError_t ki_cuda_symmetrize(const ki_cuda_view *view, const float *scale, float *h, float *memory_sum,
                               cudaStream_t stream) {
    const dim3 tiles((unsigned)(view->n + TILE - 1) / TILE, (unsigned)(view->m + TILE - 1) / TILE);
    KI_LAUNCH_TRY(symmetrize, tiles, dim3(TILE, TILE_ROWS), 0, stream, *view, scale, h);
    if (view->measure == KI_INNER) return cudaSuccess;
    return KI_LAUNCH(diagonal, (unsigned)view->m, view->threads, 0, stream, *view, h, memory_sum);
}

cudaError_t ki_cuda_scale(const ki_cuda_view *view, const float *scale, cudaStream_t stream) {
    return KI_LAUNCH(scale_pairs, (unsigned)view->m, view->threads, 0, stream, *view, scale);
}

cudaError_t ki_cuda_centre(const float *x, int64_t m, int64_t dim, float *mean, float *centred,
                           cudaStream_t stream) {
    return KI_LAUNCH(centre, (unsigned)((dim + CENTRE_X - 1) / CENTRE_X), dim3(CENTRE_X, CENTRE_Y), 0, stream,
                     x, (int)m, (int)dim, mean, centred);
}

cudaError_t ki_cuda_add_mean(const float *sum, const float *mean, float factor, int64_t m, int64_t dim,
                             float *dst, cudaStream_t stream) {
    return KI_LAUNCH(add_mean, (unsigned)m, 128, 0, stream, sum, mean, factor, (int)dim, dst);
}
