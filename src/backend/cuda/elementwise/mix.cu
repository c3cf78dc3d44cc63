/* Maps times factors for each channel, and sums over the pixels of each channel: what gate, grn and layer_scale are made of. A sum is made
 * over stretches of pixels, one block for each and a tile of channels (channels.cuh); the stretches of a sum over all pixels are added in
 * order. */
#include "backend/cuda/channels.cuh"
#include "backend/cuda/divide.cuh"
#include "backend/cuda/elementwise/kernels.h"
#include "backend/cuda/number.cuh"

namespace {

const int THREADS = 256, ADD_THREADS = 1024, PIXELS = 4;
const int64_t LEAST_PIXELS = 32, MOST_STRETCHES = 512;

/* Item: V channels of a pixel. */
template <typename T, int V>
__global__ void __launch_bounds__(THREADS)
    mix(ki_cuda_mix_args m, uint32_t n_items, ki_divider packs, ki_divider hw) {
    const uint32_t item = blockIdx.x * THREADS + threadIdx.x;
    if (item >= n_items) return;
    const uint32_t pixel = ki_divide(item, packs), c = (item - pixel * packs.by) * V,
                   row = ki_divide(pixel, hw);
    const float *a = m.a + (int64_t)row * m.a_step + c;
    const float *b = m.b ? m.b + (int64_t)row * m.b_step + c : nullptr;
    ki_floats<T, V> x, y;
    x.load(static_cast<const T *>(m.x) + (int64_t)pixel * m.x_pitch + c);
    if (m.y) y.load(static_cast<const T *>(m.y) + (int64_t)pixel * m.y_pitch + c);
#pragma unroll
    for (int i = 0; i < V; i++) {
        x.v[i] *= a[i];
        if (m.y) x.v[i] = b ? fmaf(y.v[i], b[i], x.v[i]) : x.v[i] + y.v[i];
        if (m.bias) x.v[i] += m.bias[c + i];
    }
    x.store(static_cast<T *>(m.dst) + (int64_t)pixel * m.dst_pitch + c);
}

template <typename T, int V>
cudaError_t launch_mix(cudaStream_t stream, const ki_cuda_mix_args *m) {
    const int64_t packs = m->c / V, n_items = m->n * packs;
    if (n_items > INT32_MAX) return cudaErrorInvalidValue;
    return KI_LAUNCH(mix<T, V>, (unsigned)((n_items + THREADS - 1) / THREADS), THREADS, 0, stream, *m,
                     (uint32_t)n_items, ki_divider_of(packs), ki_divider_of(m->hw));
}

template <typename T>
cudaError_t mix_of(cudaStream_t stream, const ki_cuda_mix_args *m) {
    const bool is_wide = ki_fits_packs<T>(m->x, m->x_pitch, m->c) &&
                         ki_fits_packs<T>(m->dst, m->dst_pitch, m->c) &&
                         (!m->y || ki_fits_packs<T>(m->y, m->y_pitch, m->c));
    return is_wide ? launch_mix<T, ki_pack<T>::N>(stream, m) : launch_mix<T, 1>(stream, m);
}

/* Block: a stretch of pixels and a tile of packs. */
template <typename T, int V, int K, bool SCALES>
__global__ void __launch_bounds__(KI_CHANNEL_THREADS, 2)
    stretch_sums(ki_cuda_stretch_args s, ki_channel_grid g) {
    KI_SHARED(float, room);
    const ki_channel_here h = ki_channel_at(g, blockIdx.x);
    const int first = h.pack * V;
    float sum[K][V], factor[V];
#pragma unroll
    for (int i = 0; i < K * V; i++) sum[i / V][i % V] = 0;
    if (h.is_on) {
#pragma unroll
        for (int i = 0; i < V; i++) factor[i] = SCALES ? s.a[first + i] : 0;
        /* Several pixels are on their way at a time; behind a store the compiler could not begin the next. */
        for (int64_t p = h.begin + h.row; p < h.end; p += PIXELS * g.rows) {
            ki_raw<T, V> x_raw[PIXELS], y_raw[PIXELS];
#pragma unroll
            for (int k = 0; k < PIXELS; k++) {
                const int64_t here = p + k * g.rows;
                if (here >= h.end) continue;
                x_raw[k].load(static_cast<const T *>(s.x) + here * s.x_pitch + first);
                y_raw[k].load(static_cast<const T *>(s.y) + here * s.y_pitch + first);
            }
#pragma unroll
            for (int k = 0; k < PIXELS; k++) {
                const int64_t here = p + k * g.rows;
                if (here >= h.end) continue;
                ki_floats<T, V> x = x_raw[k].get();
                const ki_floats<T, V> y = y_raw[k].get();
#pragma unroll
                for (int i = 0; i < V; i++) {
                    sum[0][i] = fmaf(x.v[i], y.v[i], sum[0][i]);
                    if (K == 2) sum[K - 1][i] += x.v[i];
                    x.v[i] *= factor[i];
                }
                if (SCALES) x.store(static_cast<T *>(s.scaled) + here * s.scaled_pitch + first);
            }
        }
    }
    ki_channel_sum_rows<K, V>(g, h, sum, room);
    if (!h.is_on || h.row != 0) return;
#pragma unroll
    for (int k = 0; k < K; k++) {
#pragma unroll
        for (int i = 0; i < V; i++) s.dst[((int64_t)k * g.chunks + blockIdx.x) * s.c + first + i] = sum[k][i];
    }
}

template <typename T, int V>
cudaError_t launch_sums(cudaStream_t stream, const ki_cuda_stretch_args *s) {
    ki_channel_grid g = ki_channel_grid_of(s->n, s->c / V, 1);
    g.chunk = s->length;
    g.chunks = (int)ki_cuda_stretches(s->n, s->length);
    const dim3 grid((unsigned)g.chunks, (unsigned)g.tiles);
    const size_t room = ki_channel_room(g, s->wants_sums ? 2 : 1, V);
    if (s->scaled && s->wants_sums) return cudaErrorInvalidValue;
    if (s->scaled)
        return KI_LAUNCH((stretch_sums<T, V, 1, true>), grid, KI_CHANNEL_THREADS, room, stream, *s, g);
    return s->wants_sums
               ? KI_LAUNCH((stretch_sums<T, V, 2, false>), grid, KI_CHANNEL_THREADS, room, stream, *s, g)
               : KI_LAUNCH((stretch_sums<T, V, 1, false>), grid, KI_CHANNEL_THREADS, room, stream, *s, g);
}

template <typename T>
cudaError_t sums_of(cudaStream_t stream, const ki_cuda_stretch_args *s) {
    const bool is_wide = ki_fits_packs<T>(s->x, s->x_pitch, s->c) &&
                         ki_fits_packs<T>(s->y, s->y_pitch, s->c) &&
                         (!s->scaled || ki_fits_packs<T>(s->scaled, s->scaled_pitch, s->c));
    return is_wide ? launch_sums<T, ki_pack<T>::N>(stream, s) : launch_sums<T, 1>(stream, s);
}

/* Block: 32 channels of one of two lots of sums. A warp's lanes are channels while it reads, and stretches when it adds up what all warps
 * have found. */
__global__ void __launch_bounds__(ADD_THREADS)
    add_stretches(int64_t stretches, int64_t c, const float *src, float *diff, float *next) {
    KI_SHARED_ARRAY(double, room, 32 * 33);
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int64_t first = (int64_t)blockIdx.x * 32;
    src += blockIdx.y * stretches * c;
    double sum = 0;
    if (first + lane < c) {
#pragma unroll 8
        for (int64_t s = warp; s < stretches; s += 32) sum += (double)src[s * c + first + lane];
    }
    room[lane * 33 + warp] = sum;
    __syncthreads();
    sum = ki_warp_sum(room[warp * 33 + lane]);
    float *dst = blockIdx.y ? next : diff;
    if (dst && lane == 0 && first + warp < c) dst[first + warp] += (float)sum;
}

} // namespace

extern "C" cudaError_t ki_cuda_mix(cudaStream_t stream, const ki_cuda_mix_args *args) {
    return args->is_bf16 ? mix_of<ki_bf16>(stream, args) : mix_of<float>(stream, args);
}

extern "C" int64_t ki_cuda_stretch_length(int64_t n) {
    const int64_t length = (n + MOST_STRETCHES - 1) / MOST_STRETCHES;
    return length > LEAST_PIXELS ? length : LEAST_PIXELS;
}

extern "C" cudaError_t ki_cuda_stretch_sums(cudaStream_t stream, const ki_cuda_stretch_args *args) {
    return args->is_bf16 ? sums_of<ki_bf16>(stream, args) : sums_of<float>(stream, args);
}

extern "C" cudaError_t ki_cuda_add_stretches(cudaStream_t stream, int64_t stretches, int64_t c,
                                             const float *src, float *diff, float *next) {
    const dim3 grid((unsigned)((c + 31) / 32), next ? 2 : 1);
    return KI_LAUNCH(add_stretches, grid, ADD_THREADS, 0, stream, stretches, c, src, diff, next);
}
