/* Tiles of 32 x 32 pairs. A batch has only a few such tiles, so the dimensions of one tile are divided among
 * four groups of threads; their sums are added in the order of the groups. */
#include "objective/cuda/pairwise.h"

#include "backend/cuda/number.cuh"

enum { TILE = 32, SIDE = 16, GROUPS = 4, PITCH = TILE + 1 };

template <int MEASURE>
static __device__ __forceinline__ float pair_term(float a, float b) {
    if (MEASURE == KI_PAIRWISE_INNER) return a * b;
    const float d = a - b;
    return MEASURE == KI_PAIRWISE_SQUARE ? d * d : fabsf(d);
}

template <int MEASURE>
static __global__ void pairwise(const float *x, int m, int dim, const int32_t *n_there, float *s) {
    KI_SHARED_ARRAY(float, rows, GROUPS *TILE *PITCH);
    KI_SHARED_ARRAY(float, cols, GROUPS *TILE *PITCH);
    const int n = n_there ? *n_there : m;
    const int i_0 = (int)blockIdx.y * TILE, j_0 = (int)blockIdx.x * TILE, group = (int)threadIdx.z;
    if (i_0 >= n || j_0 >= n) return;
    const int tx = (int)threadIdx.x, ty = (int)threadIdx.y, at = ty * SIDE + tx;
    float *a = rows + group * TILE * PITCH, *b = cols + group * TILE * PITCH;
    float sum[2][2] = {{0, 0}, {0, 0}};
    for (int first = 0; first < dim; first += GROUPS * TILE) {
        const int k_0 = first + group * TILE;
        for (int t = at; t < TILE * TILE; t += SIDE * SIDE) {
            const int r = t / TILE, k = k_0 + t % TILE;
            a[r * PITCH + t % TILE] = i_0 + r < n && k < dim ? x[(int64_t)(i_0 + r) * dim + k] : 0;
            b[r * PITCH + t % TILE] = j_0 + r < n && k < dim ? x[(int64_t)(j_0 + r) * dim + k] : 0;
        }
        __syncthreads();
        float part[2][2] = {{0, 0}, {0, 0}};
#pragma unroll 8
        for (int k = 0; k < TILE; k++) {
            const float a_0 = a[ty * PITCH + k], a_1 = a[(ty + SIDE) * PITCH + k];
            const float b_0 = b[tx * PITCH + k], b_1 = b[(tx + SIDE) * PITCH + k];
            part[0][0] += pair_term<MEASURE>(a_0, b_0);
            part[0][1] += pair_term<MEASURE>(a_0, b_1);
            part[1][0] += pair_term<MEASURE>(a_1, b_0);
            part[1][1] += pair_term<MEASURE>(a_1, b_1);
        }
        for (int u = 0; u < 2; u++) {
            for (int v = 0; v < 2; v++) sum[u][v] += part[u][v];
        }
        __syncthreads();
    }
    for (int u = 0; u < 2; u++) {
        for (int v = 0; v < 2; v++) a[(ty + u * SIDE) * PITCH + tx + v * SIDE] = sum[u][v];
    }
    __syncthreads();
    const int i = i_0 + group * (TILE / GROUPS) + at / TILE, j = j_0 + at % TILE;
    if (i >= n || j >= n) return;
    float total = 0;
    for (int g = 0; g < GROUPS; g++) total += rows[(g * TILE + (i - i_0)) * PITCH + (j - j_0)];
    s[(int64_t)i * m + j] = total;
}

template <int MEASURE>
static __device__ __forceinline__ float back_term(float h, float mine, float other) {
    if (MEASURE == KI_PAIRWISE_INNER) return h * other;
    if (MEASURE == KI_PAIRWISE_SQUARE) return 2 * h * (mine - other);
    return mine > other ? h : mine < other ? -h : 0;
}

enum { BACK_ROWS = 16, BACK_COLS = 64, BACK_EACH = BACK_ROWS / 4 };

/* A block of 64 x 4 threads computes 16 rows x 64 columns of diff; the rows to compare with are taken 16 at a
 * time. */
template <int MEASURE>
static __global__ void pairwise_back(const float *x, const float *g, int m, int dim, const int32_t *n_there,
                                     const float *weight, bool add, float *diff) {
    KI_SHARED_ARRAY(float, h, BACK_ROWS *BACK_ROWS);
    KI_SHARED_ARRAY(float, other, BACK_ROWS *BACK_COLS);
    const int n = n_there ? *n_there : m, i_0 = (int)blockIdx.y * BACK_ROWS;
    if (i_0 >= n) return;
    const int tx = (int)threadIdx.x, ty = (int)threadIdx.y, at = ty * BACK_COLS + tx;
    const int k = (int)blockIdx.x * BACK_COLS + tx;
    float mine[BACK_EACH], sum[BACK_EACH];
    for (int r = 0; r < BACK_EACH; r++) {
        const int i = i_0 + ty * BACK_EACH + r;
        mine[r] = i < n && k < dim ? x[(int64_t)i * dim + k] : 0;
        sum[r] = 0;
    }
    for (int j_0 = 0; j_0 < n; j_0 += BACK_ROWS) {
        const int64_t i = i_0 + at / BACK_ROWS, j = j_0 + at % BACK_ROWS;
        h[at] = i < n && j < n ? g[i * m + j] + g[j * m + i] : 0;
        for (int r = ty; r < BACK_ROWS; r += 4)
            other[r * BACK_COLS + tx] = j_0 + r < n && k < dim ? x[(int64_t)(j_0 + r) * dim + k] : 0;
        __syncthreads();
        float part[BACK_EACH] = {0};
        for (int q = 0; q < BACK_ROWS; q++) {
            const float o = other[q * BACK_COLS + tx];
#pragma unroll
            for (int r = 0; r < BACK_EACH; r++)
                part[r] += back_term<MEASURE>(h[(ty * BACK_EACH + r) * BACK_ROWS + q], mine[r], o);
        }
#pragma unroll
        for (int r = 0; r < BACK_EACH; r++) sum[r] += part[r];
        __syncthreads();
    }
    const float factor = weight ? *weight : 1;
    for (int r = 0; r < BACK_EACH; r++) {
        const int64_t i = i_0 + ty * BACK_EACH + r;
        if (i >= n || k >= dim) continue;
        float *to = diff + i * dim + k;
        *to = factor * sum[r] + (add ? *to : 0);
    }
}

static unsigned tiles(int64_t n, int64_t tile) { return (unsigned)((n + tile - 1) / tile); }

extern "C" cudaError_t ki_cuda_pairwise(ki_pairwise_measure measure, const float *x, int64_t m, int64_t dim,
                                        const int32_t *n, float *s, cudaStream_t stream) {
    const dim3 grid(tiles(m, TILE), tiles(m, TILE)), block(SIDE, SIDE, GROUPS);
    switch (measure) {
    case KI_PAIRWISE_INNER:
        return KI_LAUNCH(pairwise<KI_PAIRWISE_INNER>, grid, block, 0, stream, x, m, dim, n, s);
    case KI_PAIRWISE_SQUARE:
        return KI_LAUNCH(pairwise<KI_PAIRWISE_SQUARE>, grid, block, 0, stream, x, m, dim, n, s);
    default: return KI_LAUNCH(pairwise<KI_PAIRWISE_L1>, grid, block, 0, stream, x, m, dim, n, s);
    }
}

extern "C" cudaError_t ki_cuda_pairwise_back(ki_pairwise_measure measure, const float *x, const float *g,
                                             int64_t m, int64_t dim, const int32_t *n, const float *weight,
                                             bool add, float *diff, cudaStream_t stream) {
    const dim3 grid(tiles(dim, BACK_COLS), tiles(m, BACK_ROWS)), block(BACK_COLS, 4);
    switch (measure) {
    case KI_PAIRWISE_INNER:
        return KI_LAUNCH(pairwise_back<KI_PAIRWISE_INNER>, grid, block, 0, stream, x, g, m, dim, n, weight,
                         add, diff);
    case KI_PAIRWISE_SQUARE:
        return KI_LAUNCH(pairwise_back<KI_PAIRWISE_SQUARE>, grid, block, 0, stream, x, g, m, dim, n, weight,
                         add, diff);
    default:
        return KI_LAUNCH(pairwise_back<KI_PAIRWISE_L1>, grid, block, 0, stream, x, g, m, dim, n, weight, add,
                         diff);
    }
}
