/* layer_norm of rows that fit in registers: each number is read once. A group of lanes has a row, each lane P packs of it, and a block goes
 * over many rows. Backward keeps the sums for gamma and beta of a lane's channels in registers too; a block adds them up at its end in a
 * fixed order, and what the blocks found is added by ki_cuda_add_stretches. */
#include "backend/cuda/elementwise/kernels.h"
#include "backend/cuda/norm/kernels.h"
#include "backend/cuda/number.cuh"

namespace {

enum { THREADS = 256, WARPS = THREADS / 32, MOST_PACKS = 6 };
/* Blocks of a launch: a few for each processor, and for backward no more than run at once, because each writes sums of all channels. */
enum { BLOCKS_FORWARD = 528, BLOCKS_BACKWARD = 264 };

/* How a row is shared: `lanes` is a power of two, and the pack of lane l at place p is l + p * lanes. */
struct sharing {
    int lanes, each,
        rows; /* each: packs of a lane, 2 to MOST_PACKS; rows: of a block at once; lanes 0: a row does not fit */
};

/* The fewest places that are left empty, then the most packs up to 3. */
sharing sharing_of(int64_t packs) {
    sharing best = {0, 0, 0};
    for (int lanes = 1; lanes <= 32; lanes *= 2) {
        int each = (int)((packs + lanes - 1) / lanes);
        if (each > MOST_PACKS) continue;
        if (each < 2) each = 2;
        const int room = lanes * each, best_room = best.lanes * best.each;
        if (best.lanes && (room > best_room || (room == best_room && best.each <= 4))) continue;
        best.lanes = lanes, best.each = each, best.rows = THREADS / lanes;
    }
    return best;
}

unsigned blocks_of(int64_t n, const sharing &s, int most) { return ki_blocks(n, s.rows, most); }

/* The sum over a group of lanes, the same in each of them. All lanes of the warp must call this. */
__device__ __forceinline__ float group_sum(float x, int lanes) {
    for (int step = lanes / 2; step > 0; step >>= 1) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

/* Parameters in shared memory: 4 floats of each pack, then the next 4, so that neighbouring lanes read neighbouring 16 bytes. */
template <int V>
__device__ __forceinline__ void params_in(const float *from, int c, float *room) {
    for (int i = (int)threadIdx.x; i < c; i += THREADS)
        room[(i % V / 4 * (c / V) + i / V) * 4 + i % 4] = from ? from[i] : 0;
}
template <int V>
__device__ __forceinline__ void params_of(const float *room, int packs, int pack, float (&v)[V]) {
#pragma unroll
    for (int i = 0; i < V; i += 4) ki_unpack(ki_pack_load(room + (i / 4 * packs + pack) * 4), v + i);
}

template <typename T, int V, int P>
__global__ void __launch_bounds__(THREADS, P <= 3 ? 4 : 2)
    kept_forward(ki_cuda_layer_norm_args a, sharing s) {
    KI_SHARED(float, gamma);
    const int c = (int)a.c, packs = c / V, lane = (int)threadIdx.x % s.lanes;
    float *beta = gamma + c;
    params_in<V>(a.gamma, c, gamma);
    params_in<V>(a.beta, c, beta);
    __syncthreads();
    const float part = 1 / (float)c;
    /* All lanes of a warp stay together, for the sums. */
    for (int64_t first = (int64_t)blockIdx.x * s.rows; first < a.n; first += (int64_t)gridDim.x * s.rows) {
        const int64_t row = first + (int)threadIdx.x / s.lanes;
        const bool is_row = row < a.n;
        const T *src = static_cast<const T *>(a.src) + (is_row ? row : 0) * a.src_pitch;
        ki_raw<T, V> raw[P];
        float sum = 0, squares = 0;
#pragma unroll
        for (int p = 0; p < P; p++) {
            if (is_row && lane + p * s.lanes < packs) raw[p].load(src + (lane + p * s.lanes) * V);
        }
        if (!a.rms) {
#pragma unroll
            for (int p = 0; p < P; p++) {
                if (!is_row || lane + p * s.lanes >= packs) continue;
                const ki_floats<T, V> x = raw[p].get();
#pragma unroll
                for (int i = 0; i < V; i++) sum += x.v[i];
            }
        }
        const float mean = group_sum(sum, s.lanes) * part;
#pragma unroll
        for (int p = 0; p < P; p++) {
            if (!is_row || lane + p * s.lanes >= packs) continue;
            const ki_floats<T, V> x = raw[p].get();
#pragma unroll
            for (int i = 0; i < V; i++) squares = fmaf(x.v[i] - mean, x.v[i] - mean, squares);
        }
        const float istd = 1 / sqrtf(group_sum(squares, s.lanes) * part + a.eps);
        if (!is_row) continue;
        if (a.saved && lane == 0) a.saved[2 * row] = mean, a.saved[2 * row + 1] = istd;
        T *dst = static_cast<T *>(a.dst) + row * a.dst_pitch;
#pragma unroll
        for (int p = 0; p < P; p++) {
            const int pack = lane + p * s.lanes;
            if (pack >= packs) continue;
            ki_floats<T, V> x = raw[p].get();
            float g[V], b[V];
            params_of<V>(gamma, packs, pack, g);
            params_of<V>(beta, packs, pack, b);
#pragma unroll
            for (int i = 0; i < V; i++) x.v[i] = fmaf(g[i], (x.v[i] - mean) * istd, b[i]);
            x.store(dst + pack * V);
        }
    }
}

/* The sums over the rows of a block of one of the parameters, from the lanes' sums over their rows: first over the groups of a warp, then
 * over the warps. `room` has a row for each warp. */
template <int V, int P>
__device__ __forceinline__ void block_sums(float (&sum)[P][V], const sharing &s, int c, float *room,
                                           float *dst) {
    const int lane = (int)threadIdx.x % 32, packs = c / V;
    float *mine = room + (int)threadIdx.x / 32 * c;
#pragma unroll
    for (int p = 0; p < P; p++) {
        const int pack = lane + p * s.lanes;
#pragma unroll
        for (int i = 0; i < V; i++) {
            float x = sum[p][i];
            for (int step = 16; step >= s.lanes; step >>= 1) x += __shfl_xor_sync(0xffffffffu, x, step);
            if (lane < s.lanes && pack < packs) mine[pack * V + i] = x;
        }
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < c; i += THREADS) {
        float x = room[i];
        for (int warp = 1; warp < WARPS; warp++) x += room[warp * c + i];
        dst[i] = x;
    }
    __syncthreads();
}

template <typename T, int V, int P, bool ADDS>
__global__ void __launch_bounds__(THREADS, P <= 3 ? 2 : 1)
    kept_backward(ki_cuda_layer_norm_args a, sharing s) {
    KI_SHARED(float, room);
    const int c = (int)a.c, packs = c / V, lane = (int)threadIdx.x % s.lanes;
    float *gamma = room + WARPS * c;
    params_in<V>(a.gamma, c, gamma);
    __syncthreads();
    const float part = 1 / (float)c;
    float diff_gamma[P][V], diff_beta[P][V];
#pragma unroll
    for (int i = 0; i < P * V; i++) diff_gamma[i / V][i % V] = diff_beta[i / V][i % V] = 0;
    for (int64_t first = (int64_t)blockIdx.x * s.rows; first < a.n; first += (int64_t)gridDim.x * s.rows) {
        const int64_t row = first + (int)threadIdx.x / s.lanes;
        const bool is_row = row < a.n;
        const int64_t here = is_row ? row : 0;
        const T *src = static_cast<const T *>(a.src) + here * a.src_pitch;
        const T *diff_dst = static_cast<const T *>(a.diff_dst) + here * a.dst_pitch;
        const float mean = a.saved[2 * here], istd = a.saved[2 * here + 1];
        ki_raw<T, V> x_raw[P], d_raw[P];
        float shift = 0, slope = 0;
#pragma unroll
        for (int p = 0; p < P; p++) {
            const int pack = lane + p * s.lanes;
            if (!is_row || pack >= packs) continue;
            x_raw[p].load(src + pack * V);
            d_raw[p].load(diff_dst + pack * V);
        }
#pragma unroll
        for (int p = 0; p < P; p++) {
            const int pack = lane + p * s.lanes;
            if (!is_row || pack >= packs) continue;
            const ki_floats<T, V> x = x_raw[p].get(), d = d_raw[p].get();
            float g[V];
            params_of<V>(gamma, packs, pack, g);
#pragma unroll
            for (int i = 0; i < V; i++) {
                const float along = (x.v[i] - mean) * istd, gd = g[i] * d.v[i];
                shift += gd;
                slope = fmaf(gd, along, slope);
                diff_gamma[p][i] = fmaf(d.v[i], along, diff_gamma[p][i]);
                diff_beta[p][i] += d.v[i];
            }
        }
        /* On its way while the lanes add up. */
        ki_raw<T, V> more[P];
        const T *added = ADDS ? static_cast<const T *>(a.diff_added) + here * a.src_pitch : nullptr;
#pragma unroll
        for (int p = 0; ADDS && p < P; p++) {
            if (is_row && lane + p * s.lanes < packs) more[p].load(added + (lane + p * s.lanes) * V);
        }
        shift = a.rms ? 0 : group_sum(shift, s.lanes) * part;
        slope = group_sum(slope, s.lanes) * part;
        if (!is_row || !a.diff_src) continue;
        T *diff_src = static_cast<T *>(a.diff_src) + row * a.src_pitch;
#pragma unroll
        for (int p = 0; p < P; p++) {
            const int pack = lane + p * s.lanes;
            if (pack >= packs) continue;
            ki_floats<T, V> x = x_raw[p].get();
            const ki_floats<T, V> d = d_raw[p].get();
            float g[V];
            params_of<V>(gamma, packs, pack, g);
#pragma unroll
            for (int i = 0; i < V; i++)
                x.v[i] = istd * (fmaf(g[i], d.v[i], -shift) - (x.v[i] - mean) * istd * slope);
            if (ADDS) {
                const ki_floats<T, V> other = more[p].get();
#pragma unroll
                for (int i = 0; i < V; i++) x.v[i] += other.v[i];
            }
            x.store(diff_src + pack * V);
        }
    }
    if (!a.diff_gamma && !a.diff_beta) return;
    float *dst = a.scratch + (int64_t)blockIdx.x * c;
    block_sums<V, P>(diff_gamma, s, c, room, dst);
    block_sums<V, P>(diff_beta, s, c, room, dst + (int64_t)gridDim.x * c);
}

template <typename T, int V, int P>
cudaError_t run(cudaStream_t stream, const ki_cuda_layer_norm_args &a, const sharing &s, bool is_backward) {
    const size_t row = (size_t)a.c * sizeof(float);
    if (!is_backward)
        return KI_LAUNCH(kept_forward<T, V, P>, blocks_of(a.n, s, BLOCKS_FORWARD), THREADS, 2 * row, stream,
                         a, s);
    const unsigned blocks = blocks_of(a.n, s, BLOCKS_BACKWARD);
    if (a.diff_added)
        KI_LAUNCH_TRY((kept_backward<T, V, P, true>), blocks, THREADS, (WARPS + 1) * row, stream, a, s);
    else
        KI_LAUNCH_TRY((kept_backward<T, V, P, false>), blocks, THREADS, (WARPS + 1) * row, stream, a, s);
    if (!a.diff_gamma && !a.diff_beta) return cudaSuccess;
    return ki_cuda_add_stretches(stream, blocks, a.c, a.scratch, a.diff_gamma, a.diff_beta);
}

template <typename T, int V>
cudaError_t run_packs(cudaStream_t stream, const ki_cuda_layer_norm_args &a, bool is_backward) {
    const sharing s = sharing_of(a.c / V);
    switch (s.each) {
    case 2: return run<T, V, 2>(stream, a, s, is_backward);
    case 3: return run<T, V, 3>(stream, a, s, is_backward);
    case 4: return run<T, V, 4>(stream, a, s, is_backward);
    case 5: return run<T, V, 5>(stream, a, s, is_backward);
    case 6: return run<T, V, 6>(stream, a, s, is_backward);
    default: return cudaErrorInvalidValue;
    }
}

template <typename T>
bool fits(const ki_cuda_layer_norm_args *a, bool is_backward) {
    const bool is_src = ki_fits_packs<T>(a->src, a->src_pitch, a->c);
    const bool is_dst = is_backward ? ki_fits_packs<T>(a->diff_src, a->src_pitch, a->c) &&
                                          ki_fits_packs<T>(a->diff_added, a->src_pitch, a->c) &&
                                          ki_fits_packs<T>(a->diff_dst, a->dst_pitch, a->c)
                                    : ki_fits_packs<T>(a->dst, a->dst_pitch, a->c);
    return is_src && is_dst && sharing_of(a->c / ki_pack<T>::N).lanes > 0;
}

} // namespace

extern "C" size_t ki_cuda_layer_norm_kept_scratch(int64_t n, int64_t c) {
    return 2 * (size_t)ki_blocks(n, WARPS, BLOCKS_BACKWARD) * (size_t)c;
}

extern "C" bool ki_cuda_layer_norm_is_kept(const ki_cuda_layer_norm_args *norm, bool is_backward) {
    return norm->is_bf16 ? fits<ki_bf16>(norm, is_backward) : fits<float>(norm, is_backward);
}

extern "C" cudaError_t ki_cuda_layer_norm_kept(cudaStream_t stream, const ki_cuda_layer_norm_args *norm,
                                               bool is_backward) {
    return norm->is_bf16 ? run_packs<ki_bf16, ki_pack<ki_bf16>::N>(stream, *norm, is_backward)
                         : run_packs<float, ki_pack<float>::N>(stream, *norm, is_backward);
}
