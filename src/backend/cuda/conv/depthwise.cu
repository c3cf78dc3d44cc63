/* Depthwise convolutions on NHWC maps: a thread has a pack of channels, so that neighbouring threads read neighbouring memory,
 * and OUT pixels of a row, whose windows overlap: what it reads once it uses for all of them. Weights [c, k, k] of a block's
 * channels are in shared memory, those of one row of the kernel in registers. Libraries do the same work as sums over a
 * single channel, at a fraction of the memory's speed.
 *
 * A source's gradient at stride 1 is the same sum with the kernel turned round; at stride 2 a thread has one pixel. The weights'
 * gradient is summed by threads over pixels, by blocks over threads, and by a last kernel over blocks, each in a fixed order. */
#include "backend/cuda/conv/kernels.h"
#include "backend/cuda/divide.cuh"
#include "backend/cuda/number.cuh"

namespace {

enum { THREADS = 256, OUT = 4, MOST_PACKS = 8, MOST_CHUNKS = 64 };

/* How a block's threads share channels and pixels: `width` packs, `rows` strips of pixels. */
struct tiling {
    int packs, width, tiles, rows;
};

tiling tiling_of(int64_t packs) {
    tiling t = {};
    t.packs = (int)packs;
    t.tiles = (t.packs + MOST_PACKS - 1) / MOST_PACKS;
    t.width = (t.packs + t.tiles - 1) / t.tiles;
    t.rows = THREADS / t.width;
    return t;
}

struct form {
    tiling by;
    ki_divider per_row, per_image; /* strips of a row, rows of an image */
    uint32_t n_items;              /* strips in all */
    int ih, iw, oh, ow, p;         /* of what is read and what is written; padding above and left */
    ki_conv_strides from, to;
    bool is_turned, has_relu;
    const void *added; /* to what is written, laid out as it; NULL: nothing */
    const void *src, *weights;
    const float *bias; /* NULL: none */
    void *dst;
};

/* Where a thread works. */
struct place {
    int in_tile, pack, y, x, image;
    bool is_on;
};

__device__ __forceinline__ place place_of(const form &f, int step) {
    place h;
    const int row = (int)threadIdx.x / f.by.width;
    h.in_tile = (int)threadIdx.x - row * f.by.width;
    h.pack = (int)blockIdx.y * f.by.width + h.in_tile;
    const uint32_t item = blockIdx.x * (uint32_t)f.by.rows + (uint32_t)row;
    h.is_on = row < f.by.rows && item < f.n_items && h.pack < f.by.packs;
    const uint32_t line = ki_divide(item, f.per_row), image = ki_divide(line, f.per_image);
    h.x = (int)(item - line * f.per_row.by) * step;
    h.y = (int)(line - image * f.per_image.by);
    h.image = (int)image;
    return h;
}

/* The weights of a block's channels, [k * k, width * V]. */
template <typename T, int K, int V>
__device__ __forceinline__ void load_weights(const form &f, float *room) {
    const int n_c = f.by.width * V, first = (int)blockIdx.y * n_c, c = f.by.packs * V;
    for (int i = (int)threadIdx.x; i < K * K * n_c; i += THREADS) {
        const int cell = i / n_c, channel = first + i - cell * n_c;
        const int at = f.is_turned ? K * K - 1 - cell : cell;
        room[i] = channel < c ? to_float(static_cast<const T *>(f.weights)[channel * K * K + at]) : 0;
    }
    __syncthreads();
}

template <typename T, int K, int S, int V>
__global__ void __launch_bounds__(THREADS, 2) strips(form f) {
    KI_SHARED_ARRAY(float, room, K *K *MOST_PACKS *V);
    load_weights<T, K, V>(f, room);
    const place h = place_of(f, OUT);
    if (!h.is_on) return;
    const T *src = static_cast<const T *>(f.src) + h.image * f.from.image + h.pack * V;
    ki_floats<T, V> sum[OUT];
#pragma unroll
    for (int o = 0; o < OUT; o++) {
#pragma unroll
        for (int i = 0; i < V; i++) sum[o].v[i] = f.bias ? f.bias[h.pack * V + i] : 0;
    }
    for (int ky = 0; ky < K; ky++) {
        const int sy = h.y * S - f.p + ky;
        if (sy < 0 || sy >= f.ih) continue;
        float w[K][V];
#pragma unroll
        for (int k = 0; k < K; k++) {
#pragma unroll
            for (int i = 0; i < V; i++) w[k][i] = room[((ky * K + k) * f.by.width + h.in_tile) * V + i];
        }
#pragma unroll
        for (int j = 0; j < (OUT - 1) * S + K; j++) {
            const int sx = h.x * S - f.p + j;
            if (sx < 0 || sx >= f.iw) continue;
            ki_floats<T, V> x;
            x.load(src + sy * f.from.row + sx * f.from.pixel);
#pragma unroll
            for (int o = 0; o < OUT; o++) {
                const int k = j - o * S;
                if (k < 0 || k >= K) continue;
#pragma unroll
                for (int i = 0; i < V; i++)
                    sum[o].v[i] = fmaf(x.v[i], w[k < 0 || k >= K ? 0 : k][i], sum[o].v[i]);
            }
        }
    }
    T *dst = static_cast<T *>(f.dst) + h.image * f.to.image + h.y * f.to.row + h.pack * V;
#pragma unroll
    for (int o = 0; o < OUT; o++) {
        if (h.x + o >= f.ow) continue;
        T *to = dst + (h.x + o) * f.to.pixel;
        if (f.added) {
            ki_floats<T, V> before;
            before.load(static_cast<const T *>(f.added) + (to - static_cast<T *>(f.dst)));
#pragma unroll
            for (int i = 0; i < V; i++) sum[o].v[i] += before.v[i];
        }
#pragma unroll
        for (int i = 0; i < V; i++) sum[o].v[i] = f.has_relu ? fmaxf(sum[o].v[i], 0) : sum[o].v[i];
        sum[o].store(to);
    }
}

/* The source's gradient at stride S: reads [ih, iw], the gradient of dst, and writes [oh, ow]. */
template <typename T, int K, int S, int V>
__global__ void __launch_bounds__(THREADS) spread(form f) {
    KI_SHARED_ARRAY(float, room, K *K *MOST_PACKS *V);
    load_weights<T, K, V>(f, room);
    const place h = place_of(f, 1);
    if (!h.is_on) return;
    const T *src = static_cast<const T *>(f.src) + h.image * f.from.image + h.pack * V;
    ki_floats<T, V> sum;
#pragma unroll
    for (int i = 0; i < V; i++) sum.v[i] = 0;
    for (int ky = (h.y + f.p) % S; ky < K; ky += S) {
        const int sy = (h.y + f.p - ky) / S;
        if (h.y + f.p < ky || sy >= f.ih) continue;
        for (int kx = (h.x + f.p) % S; kx < K; kx += S) {
            const int sx = (h.x + f.p - kx) / S;
            if (h.x + f.p < kx || sx >= f.iw) continue;
            ki_floats<T, V> x;
            x.load(src + sy * f.from.row + sx * f.from.pixel);
            const float *w = room + ((ky * K + kx) * f.by.width + h.in_tile) * V;
#pragma unroll
            for (int i = 0; i < V; i++) sum.v[i] = fmaf(x.v[i], w[i], sum.v[i]);
        }
    }
    T *to = static_cast<T *>(f.dst) + h.image * f.to.image + h.y * f.to.row + h.x * f.to.pixel + h.pack * V;
    if (f.added) {
        ki_floats<T, V> before;
        before.load(static_cast<const T *>(f.added) + (to - static_cast<T *>(f.dst)));
#pragma unroll
        for (int i = 0; i < V; i++) sum.v[i] += before.v[i];
    }
    sum.store(to);
}

/* Partial sums of the weights' gradient: grid (chunks of strips, tiles, rows of the kernel), partial
 * [chunks, K * K, c]. `src` is the source [ih, iw], `dst` the gradient [oh, ow], which is read too. */
template <typename T, int K, int S, int V>
__global__ void __launch_bounds__(THREADS, 2) weights(form f, float *partial, uint32_t per_chunk) {
    KI_SHARED_ARRAY(float, room, THREADS *V);
    const int row = (int)threadIdx.x / f.by.width, in_tile = (int)threadIdx.x - row * f.by.width,
              pack = (int)blockIdx.y * f.by.width + in_tile, ky = (int)blockIdx.z;
    const bool is_on = row < f.by.rows && pack < f.by.packs;
    const uint32_t begin = blockIdx.x * per_chunk;
    const uint32_t end = begin + per_chunk < f.n_items ? begin + per_chunk : f.n_items;
    float sum[K][V];
#pragma unroll
    for (int k = 0; k < K; k++) {
#pragma unroll
        for (int i = 0; i < V; i++) sum[k][i] = 0;
    }
    for (uint32_t item = begin + (uint32_t)row; is_on && item < end; item += (uint32_t)f.by.rows) {
        const uint32_t line = ki_divide(item, f.per_row), image = ki_divide(line, f.per_image);
        const int x0 = (int)(item - line * f.per_row.by) * OUT, y = (int)(line - image * f.per_image.by),
                  sy = y * S - f.p + ky;
        if (sy < 0 || sy >= f.ih) continue;
        const T *src = static_cast<const T *>(f.src) + image * f.from.image + sy * f.from.row + pack * V;
        const T *diff = static_cast<const T *>(f.dst) + image * f.to.image + y * f.to.row + pack * V;
        ki_floats<T, V> d[OUT];
#pragma unroll
        for (int o = 0; o < OUT; o++) {
            if (x0 + o < f.ow) {
                d[o].load(diff + (x0 + o) * f.to.pixel);
            } else {
#pragma unroll
                for (int i = 0; i < V; i++) d[o].v[i] = 0;
            }
        }
#pragma unroll
        for (int j = 0; j < (OUT - 1) * S + K; j++) {
            const int sx = x0 * S - f.p + j;
            if (sx < 0 || sx >= f.iw) continue;
            ki_floats<T, V> x;
            x.load(src + sx * f.from.pixel);
#pragma unroll
            for (int o = 0; o < OUT; o++) {
                const int k = j - o * S;
                if (k < 0 || k >= K) continue;
#pragma unroll
                for (int i = 0; i < V; i++) {
                    const int to = k < 0 || k >= K ? 0 : k;
                    sum[to][i] = fmaf(x.v[i], d[o].v[i], sum[to][i]);
                }
            }
        }
    }
    const int n_c = f.by.width * V, c = f.by.packs * V;
#pragma unroll
    for (int k = 0; k < K; k++) {
        __syncthreads();
        if (row < f.by.rows) {
#pragma unroll
            for (int i = 0; i < V; i++) room[row * n_c + in_tile * V + i] = sum[k][i];
        }
        __syncthreads();
        const int channel = (int)blockIdx.y * n_c + (int)threadIdx.x;
        if ((int)threadIdx.x >= n_c || channel >= c) continue;
        float total = 0;
        for (int r = 0; r < f.by.rows; r++) total += room[r * n_c + (int)threadIdx.x];
        partial[((int64_t)blockIdx.x * K * K + ky * K + k) * c + channel] = total;
    }
}

/* Item: one weight; neighbours are neighbouring channels. */
__global__ void __launch_bounds__(THREADS)
    add_chunks(const float *partial, int chunks, int area, int c, float *diff_weights) {
    const int item = (int)(blockIdx.x * THREADS + threadIdx.x);
    if (item >= area * c) return;
    float sum = 0;
    for (int i = 0; i < chunks; i++) sum += partial[(int64_t)i * area * c + item];
    const int cell = item / c, channel = item - cell * c;
    diff_weights[channel * area + cell] = sum;
}

template <int K, int S>
struct kernels {
    template <typename T>
    static cudaError_t run(const ki_conv_problem &p, form f, float *partial, int chunks, int64_t per_chunk,
                           float *diff_weights, cudaStream_t stream) {
        const int V = ki_pack<T>::N;
        const dim3 grid((f.n_items + (uint32_t)f.by.rows - 1) / (uint32_t)f.by.rows, (unsigned)f.by.tiles);
        if (p.pass == KI_CONV_FORWARD || (p.pass == KI_CONV_DIFF_SRC && S == 1))
            return KI_LAUNCH((strips<T, K, S, V>), grid, THREADS, 0, stream, f);
        if (p.pass == KI_CONV_DIFF_SRC) return KI_LAUNCH((spread<T, K, S, V>), grid, THREADS, 0, stream, f);
        const dim3 all((unsigned)chunks, (unsigned)f.by.tiles, K);
        KI_LAUNCH_TRY((weights<T, K, S, V>), all, THREADS, 0, stream, f, partial, (uint32_t)per_chunk);
        return KI_LAUNCH(add_chunks, ki_blocks(K * K * p.oc, THREADS, INT32_MAX), THREADS, 0, stream, partial,
                         chunks, K * K, (int)p.oc, diff_weights);
    }
};

/* Chunks of the weights' gradient: blocks for the whole device, with work for some rounds each. */
int chunks_of(const ki_conv_problem *p, int packs_per_pixel, int64_t *ret_each) {
    const tiling by = tiling_of(packs_per_pixel);
    const int64_t n = p->mb * p->oh * ((p->ow + OUT - 1) / OUT), round = 4 * by.rows;
    int64_t chunks = (n + round - 1) / round;
    const int64_t most = 1024 / (by.tiles * p->kh) + 1;
    if (chunks > most) chunks = most;
    if (chunks > MOST_CHUNKS) chunks = MOST_CHUNKS;
    *ret_each = (n + chunks - 1) / chunks;
    return (int)((n + *ret_each - 1) / *ret_each);
}

int packs_of(const ki_conv_problem *p) { return (int)(p->oc / (p->type == KI_NUMBER_BF16 ? 8 : 4)); }

template <typename T>
cudaError_t depthwise(const ki_conv_problem &p, const ki_conv_io &io, cudaStream_t stream) {
    form f = {};
    int64_t per_chunk = 0;
    const bool is_forward = p.pass == KI_CONV_FORWARD, is_diff_src = p.pass == KI_CONV_DIFF_SRC;
    const int chunks = chunks_of(&p, packs_of(&p), &per_chunk);
    f.by = tiling_of(packs_of(&p));
    f.ih = (int)p.ih, f.iw = (int)p.iw, f.oh = (int)p.oh, f.ow = (int)p.ow, f.p = (int)p.ph;
    f.from = p.src, f.to = p.dst;
    f.src = io.src, f.weights = io.weights;
    f.dst = is_forward ? io.dst : const_cast<void *>(io.diff_dst); /* the gradient is only read */
    f.bias = is_forward && p.has_bias ? io.bias : nullptr;
    f.has_relu = is_forward && p.has_relu;
    if (is_diff_src) {
        f.ih = (int)p.oh, f.iw = (int)p.ow, f.oh = (int)p.ih, f.ow = (int)p.iw;
        f.from = p.dst, f.to = p.src;
        f.src = io.diff_dst, f.dst = io.diff_src;
        f.added = p.adds ? io.diff_src : io.diff_added;
        f.is_turned = p.sh == 1;
        if (f.is_turned) f.p = (int)(p.kh - 1 - p.ph);
    }
    const int64_t strips = is_diff_src && p.sh > 1 ? f.ow : (f.ow + OUT - 1) / OUT;
    f.n_items = (uint32_t)(p.mb * f.oh * strips);
    f.per_row = ki_divider_of(strips), f.per_image = ki_divider_of(f.oh);
    float *partial = static_cast<float *>(io.workspace), *diff = static_cast<float *>(io.diff_weights);
#define KI_DEPTHWISE(K, S) \
    if (p.kh == K && p.sh == S) return kernels<K, S>::run<T>(p, f, partial, chunks, per_chunk, diff, stream);
    KI_DEPTHWISE(3, 1)
    KI_DEPTHWISE(3, 2)
    KI_DEPTHWISE(5, 1)
    KI_DEPTHWISE(5, 2)
    KI_DEPTHWISE(7, 1)
    KI_DEPTHWISE(7, 2)
#undef KI_DEPTHWISE
    return cudaErrorInvalidValue;
}

} // namespace

extern "C" bool ki_cuda_conv_is_depthwise(const ki_conv_problem *p) {
    const int64_t pack = p->type == KI_NUMBER_BF16 ? 8 : 4;
    const bool fits = p->src.pixel % pack == 0 && p->dst.pixel % pack == 0 && p->oc % pack == 0;
    const bool is_square =
        p->kh == p->kw && p->sh == p->sw && p->ph == p->pw && p->ph < p->kh; /* so that turning it works */
    return fits && is_square && p->groups > 1 && p->groups == p->ic && p->ic == p->oc &&
           (p->kh == 3 || p->kh == 5 || p->kh == 7) && (p->sh == 1 || p->sh == 2) &&
           p->mb * (p->ih * p->iw + p->oh * p->ow) < INT32_MAX;
}

extern "C" size_t ki_cuda_conv_depthwise_workspace(const ki_conv_problem *p) {
    int64_t per_chunk = 0;
    if (p->pass != KI_CONV_DIFF_WEIGHTS) return 0;
    return (size_t)chunks_of(p, packs_of(p), &per_chunk) * (size_t)(p->kh * p->kw * p->oc) * sizeof(float);
}

extern "C" cudaError_t ki_cuda_conv_depthwise(const ki_conv_problem *problem, const ki_conv_io *io,
                                              cudaStream_t stream) {
    return problem->type == KI_NUMBER_BF16 ? depthwise<ki_bf16>(*problem, *io, stream)
                                           : depthwise<float>(*problem, *io, stream);
}
