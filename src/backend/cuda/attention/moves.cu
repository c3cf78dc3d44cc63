/* windows and merge: whole tokens change places. Reads and writes each number once. */
#include "backend/cuda/attention/kernels.h"
#include "backend/cuda/number.cuh"

namespace {

enum { THREADS = 256, MOST_BLOCKS = 1 << 16 };

/* Items: V numbers of a place of cut. */
template <typename T, int V>
__global__ void __launch_bounds__(THREADS) move(ki_cuda_moves_args a) {
    const int64_t each = a.c / V, n = a.rows * a.moves.n * each, stride = (int64_t)gridDim.x * THREADS;
    for (int64_t item = (int64_t)blockIdx.x * THREADS + threadIdx.x; item < n; item += stride) {
        const int64_t place = item / each, c = (item - place * each) * V, row = place / a.moves.n;
        const int64_t token = ki_moves_token(&a.moves, place - row * a.moves.n);
        const int64_t cut = place * a.c + c, grid = (row * a.moves.h * a.moves.w + token) * a.c + c;
        ki_floats<T, V> x;
        if (a.scatters) {
            if (token < 0) continue;
            x.load(static_cast<const T *>(a.src) + cut);
            x.store(static_cast<T *>(a.dst) + grid);
            continue;
        }
#pragma unroll
        for (int i = 0; i < V; i++) x.v[i] = 0;
        if (token >= 0) x.load(static_cast<const T *>(a.src) + grid);
        x.store(static_cast<T *>(a.dst) + cut);
    }
}

template <typename T>
cudaError_t launch(cudaStream_t stream, const ki_cuda_moves_args &a) {
    const int V = ki_pack<T>::N;
    const int64_t n = a.rows * a.moves.n * a.c;
    if (ki_fits_packs<T>(a.src, a.c, a.c) && ki_fits_packs<T>(a.dst, a.c, a.c))
        return KI_LAUNCH((move<T, V>), ki_blocks(n / V, THREADS, MOST_BLOCKS), THREADS, 0, stream, a);
    return KI_LAUNCH((move<T, 1>), ki_blocks(n, THREADS, MOST_BLOCKS), THREADS, 0, stream, a);
}

} // namespace

extern "C" cudaError_t ki_cuda_moves(cudaStream_t stream, const ki_cuda_moves_args *args) {
    return args->is_bf16 ? launch<ki_bf16>(stream, *args) : launch<float>(stream, *args);
}
