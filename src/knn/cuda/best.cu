/* The k best of every row, tile by tile. A block holds one row's list in shared memory. Columns that beat its
 * last entry are appended to it and wait there. When there is no room for another round of columns, the list
 * and the waiting columns are sorted together. Keys are those of knn/topk.h. They are all different, so the
 * list does not depend on the order in which they came. */
#include "backend/cuda/number.cuh"
#include "knn/cuda/kernels.h"

namespace {

enum { THREADS = 256, COLUMNS = 4 * THREADS /* looked at in one round */, MOST_BLOCKS = 65535 };

__device__ __forceinline__ uint64_t key_of(float score, int64_t index) {
    uint32_t bits = ki_float_bits(score + 0.0f); /* -0 becomes 0 */
    bits ^= bits >> 31 ? 0xffffffffu : 0x80000000u;
    return (uint64_t)bits << 32 | (uint32_t) ~(uint32_t)index;
}

__device__ __forceinline__ float score_of(const ki_knn_tile &t, int64_t r, int64_t c, float row_half) {
    const float s = t.s[r * t.ld + c];
    return t.col_half ? (s - t.col_half[t.col + c]) - row_half : s;
}

__global__ void unpack(const float *panels, float *rows, int64_t n, int64_t dim) {
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < n * dim; at += stride) {
        const int64_t i = at / dim, k = at % dim;
        rows[at] = panels[(i / 16) * dim * 16 + k * 16 + i % 16];
    }
}

__global__ void scale(const float *rows, const double *norm, double least_norm, const double *center,
                      float *out, int64_t n, int64_t dim) {
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < n * dim; at += stride) {
        const double x = center ? (double)rows[at] - center[at % dim] : (double)rows[at];
        const double by = norm ? fmax(norm[at / dim], least_norm) : 1;
        out[at] = (float)(x / by);
    }
}

__global__ void finish(ki_knn_tile t, float *s) {
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < t.n_rows * t.n_cols;
         at += stride) {
        const int64_t r = at / t.n_cols, c = at % t.n_cols;
        s[r * t.ld + c] = score_of(t, r, c, t.row_half[t.row + r]);
    }
}

/* Sort keys [size], largest first; size is a power of two. All threads of the block call this. */
__device__ void sort_keys(uint64_t *keys, int size) {
    for (int run = 2; run <= size; run <<= 1) {
        for (int apart = run / 2; apart > 0; apart >>= 1) {
            for (int t = (int)threadIdx.x; t < size / 2; t += THREADS) {
                const int at = 2 * t - (t & (apart - 1));
                const uint64_t a = keys[at], b = keys[at + apart];
                if ((a < b) == ((at & run) == 0)) keys[at] = b, keys[at + apart] = a;
            }
            __syncthreads();
        }
    }
}

/* Move the k best of the list and of the n_waiting keys after it to the front. */
__device__ void merge(uint64_t *keys, int k, int n_waiting, int *count) {
    int size = 2;
    while (size < k + n_waiting) size *= 2;
    for (int j = k + n_waiting + (int)threadIdx.x; j < size; j += THREADS) keys[j] = 0;
    if (threadIdx.x == 0) *count = 0;
    __syncthreads();
    sort_keys(keys, size);
}

__global__ void keep_best(ki_knn_tile t, const int32_t *self, bool is_square, int k, int room,
                          uint64_t *lists) {
    KI_SHARED(uint64_t, keys);
    KI_SHARED_ARRAY(int, count, 1);
    const int64_t r = blockIdx.x, i = t.row + r;
    uint64_t *list = lists + i * k;
    const int64_t own = is_square ? i : self ? self[i] : -1;
    const float half = t.row_half ? t.row_half[i] : 0;
    for (int j = (int)threadIdx.x; j < k; j += THREADS) keys[j] = list[j];
    if (threadIdx.x == 0) *count = 0;
    __syncthreads();
    uint64_t least = keys[k - 1];
    for (int64_t first = 0; first < t.n_cols; first += COLUMNS) {
        const int n_waiting = *count;
        __syncthreads();
        if (n_waiting + COLUMNS > room - k) {
            merge(keys, k, n_waiting, count);
            least = keys[k - 1];
            __syncthreads();
        }
        for (int j = 0; j < COLUMNS / THREADS; j++) {
            const int64_t c = first + j * THREADS + threadIdx.x;
            if (c >= t.n_cols || t.col + c == own) continue;
            const uint64_t key = key_of(score_of(t, r, c, half), t.col + c);
            if (key > least) keys[k + atomicAdd(count, 1)] = key;
        }
        __syncthreads();
    }
    const int n_waiting = *count;
    __syncthreads();
    if (n_waiting == 0) return;
    merge(keys, k, n_waiting, count);
    for (int j = (int)threadIdx.x; j < k; j += THREADS) list[j] = keys[j];
}

__global__ void keep_nearest(ki_knn_tile t, const int32_t *self, bool is_square, uint64_t *lists) {
    KI_SHARED_ARRAY(uint64_t, keys, THREADS);
    const int64_t r = blockIdx.x, i = t.row + r;
    const int64_t own = is_square ? i : self ? self[i] : -1;
    const float half = t.row_half ? t.row_half[i] : 0;
    uint64_t best = threadIdx.x == 0 ? lists[i] : 0;
    for (int64_t c = threadIdx.x; c < t.n_cols; c += THREADS) {
        if (t.col + c == own) continue;
        const uint64_t key = key_of(score_of(t, r, c, half), t.col + c);
        best = key > best ? key : best;
    }
    keys[threadIdx.x] = best;
    __syncthreads();
    for (int apart = THREADS / 2; apart > 0; apart >>= 1) {
        if ((int)threadIdx.x < apart && keys[threadIdx.x + apart] > keys[threadIdx.x])
            keys[threadIdx.x] = keys[threadIdx.x + apart];
        __syncthreads();
    }
    if (threadIdx.x == 0) lists[i] = keys[0];
}

} // namespace

extern "C" cudaError_t ki_knn_unpack(cudaStream_t stream, const float *panels, float *rows, int64_t n,
                                     int64_t dim) {
    return KI_LAUNCH(unpack, ki_blocks(n * dim, THREADS, MOST_BLOCKS), THREADS, 0, stream, panels, rows, n,
                     dim);
}

extern "C" cudaError_t ki_knn_scale(cudaStream_t stream, const float *rows, const double *norm,
                                    double least_norm, const double *center, float *out, int64_t n,
                                    int64_t dim) {
    return KI_LAUNCH(scale, ki_blocks(n * dim, THREADS, MOST_BLOCKS), THREADS, 0, stream, rows, norm,
                     least_norm, center, out, n, dim);
}

extern "C" cudaError_t ki_knn_finish(cudaStream_t stream, const ki_knn_tile *tile) {
    if (!tile->row_half) return cudaSuccess;
    return KI_LAUNCH(finish, ki_blocks(tile->n_rows * tile->n_cols, THREADS, MOST_BLOCKS), THREADS, 0, stream,
                     *tile, const_cast<float *>(tile->s));
}

extern "C" cudaError_t ki_knn_keep_best(cudaStream_t stream, const ki_knn_tile *tile, const int32_t *self,
                                        bool is_square, int64_t k, uint64_t *lists) {
    const unsigned rows = (unsigned)tile->n_rows;
    if (k == 1) return KI_LAUNCH(keep_nearest, rows, THREADS, 0, stream, *tile, self, is_square, lists);
    int room = 2 * COLUMNS;
    while (room < k + COLUMNS) room *= 2;
    return KI_LAUNCH(keep_best, rows, THREADS, (size_t)room * sizeof(uint64_t), stream, *tile, self,
                     is_square, (int)k, room, lists);
}
