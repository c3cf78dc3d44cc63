/* The update rules of device/backend.h, all runs in one launch. A block has one piece of one run. The table of runs is
 * a parameter of the launch; the clock and the norm are read on the device. Adam must move at least 28 bytes per
 * parameter: value, gradient and two moments are read, three of them written. */
#include "backend/cuda/optim/optim.h"

#include "backend/cuda/channels.cuh"
#include "backend/cuda/number.cuh"

namespace {

const int THREADS = 256, EACH = 4;
const int PIECE = THREADS * EACH * 4; /* values of a block */

/* The run a block works for. */
__device__ __forceinline__ int run_at(const ki_cuda_update &u, int64_t block) {
    int low = 0, high = u.n_runs - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (u.run[middle].first_block <= block)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

struct factors {
    float scale, rate, decay, shrink, fast, slow;
};

template <int KIND>
__device__ __forceinline__ float update_one(const ki_cuda_update &u, const factors &f, float value,
                                            float diff, float *m, float *v, bool has_m) {
    value = fmaf(-f.shrink, value, value);
    const float g = fmaf(f.scale, diff, f.decay * value);
    float move;
    if (KIND == 0) {
        *m = fmaf(u.beta1, *m, u.rest1 * g);
        *v = fmaf(u.beta2, *v, u.rest2 * g * g);
        move = *m / f.fast / (sqrtf(*v) / f.slow + u.eps);
    } else if (KIND == 1) {
        move = g;
        if (has_m) {
            *m = fmaf(u.beta1, *m, g);
            move = u.nesterov ? fmaf(u.beta1, *m, g) : *m;
        }
    } else {
        *v = fmaf(u.beta2, *v, u.rest2 * g * g);
        move = g / (sqrtf(*v) + u.eps);
        if (has_m) move = *m = fmaf(u.beta1, *m, move);
    }
    return fmaf(-f.rate, move, value);
}

template <int KIND, int V>
__device__ __forceinline__ void update_piece(const ki_cuda_update &u, const ki_cuda_run &run,
                                             const factors &f, int64_t begin, int64_t end) {
    const bool has_m = run.m != nullptr, has_v = KIND != 1;
    for (int64_t i = begin + threadIdx.x * V; i < end; i += (int64_t)THREADS * V * EACH) {
        ki_floats<float, V> value[EACH], diff[EACH], m[EACH], v[EACH];
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            const int64_t at = i + (int64_t)e * THREADS * V;
            if (at >= end) continue;
            value[e].load(run.value + at);
            diff[e].load(run.diff + at);
            if (has_m) m[e].load(run.m + at);
            if (has_v) v[e].load(run.v + at);
        }
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            const int64_t at = i + (int64_t)e * THREADS * V;
            if (at >= end) continue;
#pragma unroll
            for (int k = 0; k < V; k++)
                value[e].v[k] =
                    update_one<KIND>(u, f, value[e].v[k], diff[e].v[k], &m[e].v[k], &v[e].v[k], has_m);
            value[e].store(run.value + at);
            if (has_m) m[e].store(run.m + at);
            if (has_v) v[e].store(run.v + at);
        }
    }
}

template <int KIND>
__global__ void __launch_bounds__(THREADS) optim_update(const __grid_constant__ ki_cuda_update u) {
    const ki_cuda_run &run = u.run[run_at(u, blockIdx.x)];
    const int64_t t = *u.t - run.start;
    if (t <= 0) return;
    const double rate = *u.lr * run.lr;
    double scale = u.diff_scale;
    if (u.norm_sq) {
        const double factor = u.max_norm / (u.diff_scale * sqrt(*u.sum) + 1e-6);
        scale *= factor < 1 ? factor : 1;
    }
    factors f;
    f.scale = (float)scale, f.rate = (float)rate, f.decay = (float)run.decay;
    f.shrink = (float)(rate * run.decoupled);
    f.fast = KIND == 0 ? -expm1f((float)((double)t * u.log_beta1)) : 1;
    f.slow = KIND == 0 ? sqrtf(-expm1f((float)((double)t * u.log_beta2))) : 1;
    const int64_t begin = ((int64_t)blockIdx.x - run.first_block) * PIECE;
    const int64_t end = begin + PIECE < run.n ? begin + PIECE : run.n;
    const uintptr_t all = (uintptr_t)run.value | (uintptr_t)run.diff | (uintptr_t)run.m | (uintptr_t)run.v;
    if (all % 16 == 0) {
        const int64_t whole = begin + (end - begin) / 4 * 4;
        update_piece<KIND, 4>(u, run, f, begin, whole);
        update_piece<KIND, 1>(u, run, f, whole, end);
    } else {
        update_piece<KIND, 1>(u, run, f, begin, end);
    }
}

__global__ void optim_norm(const __grid_constant__ ki_cuda_update u, bool is_first) {
    KI_SHARED_ARRAY(double, room, 33);
    double sum = 0;
    for (int i = (int)threadIdx.x; i < u.n_runs; i += (int)blockDim.x) {
        if (*u.t > u.run[i].start) sum += u.norm_sq[i];
    }
    sum = ki_block_sum(sum, room);
    if (threadIdx.x == 0) *u.sum = is_first ? sum : *u.sum + sum;
}

/* One piece's sum; the last block of a run adds up its pieces, in the order of a fixed tree. */
__global__ void __launch_bounds__(THREADS) sum_squares(const __grid_constant__ ki_cuda_update u, double *dst,
                                                       double *sums, int64_t piece, unsigned *counters) {
    KI_SHARED_ARRAY(double, room, 33);
    const int r = run_at(u, blockIdx.x);
    const ki_cuda_run &run = u.run[r];
    const int64_t begin = ((int64_t)blockIdx.x - run.first_block) * piece;
    const int64_t end = begin + piece < run.n ? begin + piece : run.n;
    double sum = 0;
    const bool is_wide = (uintptr_t)run.diff % 16 == 0;
    const int64_t whole = is_wide ? begin + (end - begin) / 4 * 4 : begin;
#pragma unroll 4
    for (int64_t i = begin + threadIdx.x * 4; i < whole; i += THREADS * 4) {
        ki_floats<float, 4> x;
        x.load(run.diff + i);
#pragma unroll
        for (int k = 0; k < 4; k++) sum = fma((double)x.v[k], (double)x.v[k], sum);
    }
    for (int64_t i = whole + threadIdx.x; i < end; i += THREADS)
        sum += (double)run.diff[i] * (double)run.diff[i];
    sum = ki_block_sum(sum, room);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
    const int64_t n_pieces = (run.n + piece - 1) / piece;
    if (!ki_channel_is_last(counters + r, (unsigned)n_pieces)) return;
    sum = 0;
    for (int64_t i = threadIdx.x; i < n_pieces; i += THREADS) sum += __ldcg(sums + run.first_block + i);
    sum = ki_block_sum(sum, room);
    if (threadIdx.x == 0) dst[r] = sum;
}

/* Divides the runs into blocks of `piece` values; returns how many blocks there are. */
int64_t lay_out(ki_cuda_update *u, int64_t piece) {
    int64_t n = 0;
    for (int i = 0; i < u->n_runs; i++) {
        u->run[i].first_block = n;
        n += (u->run[i].n + piece - 1) / piece;
    }
    return n;
}

} // namespace

extern "C" cudaError_t ki_cuda_optim_norm(cudaStream_t stream, const ki_cuda_update *update, bool is_first) {
    return KI_LAUNCH(optim_norm, 1, 128, 0, stream, *update, is_first);
}

extern "C" cudaError_t ki_cuda_optim_update(cudaStream_t stream, ki_cuda_update *update) {
    const int64_t n_blocks = lay_out(update, PIECE);
    if (n_blocks == 0) return cudaSuccess;
    const unsigned grid = (unsigned)n_blocks;
    switch (update->kind) {
    case 0: return KI_LAUNCH(optim_update<0>, grid, THREADS, 0, stream, *update);
    case 1: return KI_LAUNCH(optim_update<1>, grid, THREADS, 0, stream, *update);
    default: return KI_LAUNCH(optim_update<2>, grid, THREADS, 0, stream, *update);
    }
}

extern "C" cudaError_t ki_cuda_sum_squares_of(cudaStream_t stream, ki_cuda_update *runs, double *dst,
                                              double *sums, int64_t max_blocks, unsigned *counters) {
    int64_t total = 0;
    for (int i = 0; i < runs->n_runs; i++) total += runs->run[i].n;
    int64_t piece = PIECE;
    while (total / piece + runs->n_runs > max_blocks) piece *= 2;
    const int64_t n_blocks = lay_out(runs, piece);
    if (n_blocks == 0) return cudaSuccess;
    return KI_LAUNCH(sum_squares, (unsigned)n_blocks, THREADS, 0, stream, *runs, dst, sums, piece, counters);
}
