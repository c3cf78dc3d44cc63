/* batch_norm followed by ReLU (formulas: backend/ref/batch_norm.c), in two launches: the sums, then what needs them.
 * If much of a map fits on the chip, one launch is used (batch_norm_once.cu); ki_cuda_bn_is_once in that file
 * chooses.
 *
 * Forward reads src for the statistics and again to normalise, and writes dst: three passes over the map, the fewest
 * without keeping it on the chip. The first pass starts at the end of the map, which is still in the cache from the
 * kernel that wrote the map. The second starts at the beginning, which is in the cache from the first pass. Backward
 * does the same: it reads diff_dst and src for the two sums, and again to write diff_src: five passes. Whether ReLU
 * let a value through is computed again from src with the same operations as in forward, so dst is not read.
 *
 * Statistics: sums of x - k and (x - k)^2 in each block, where k is a value of the block, so that a large mean does
 * not hide the variance; blocks are then combined as (mean, sum of squared differences). */
#include "backend/cuda/norm/batch_norm.cuh"

namespace {

/* The last block of a tile: statistics of the batch from those of the chunks. */
template <int V>
__device__ __forceinline__ void finish_stats(const bn_args &a, const ki_channel_grid &g, double *room) {
    const ki_channel_finish f = ki_channel_finish_at(g, V);
    double mean, squares;
    combine_stats<V, 8>(
        a, g, f,
        [&](int b) {
            const int64_t left = g.n - (int64_t)b * g.chunk;
            return left < g.chunk ? left : g.chunk;
        },
        room, &mean, &squares);
    if (f.channel < 0 || f.slice != 0) return;
    if (a.share)
        save_share(a, g.packs * V, f.channel, (double)g.n, mean, squares);
    else
        save_stats(a, g.packs * V, f.channel, (double)g.n, mean, squares);
}

template <typename T, int V>
__global__ void __launch_bounds__(THREADS, 2) bn_stats(bn_args a, ki_channel_grid g) {
    KI_SHARED(float, room);
    const unsigned chunk = gridDim.x - 1 - blockIdx.x;
    const ki_channel_here h = ki_channel_at(g, chunk);
    const T *src = static_cast<const T *>(a.src) + h.pack * V;
    ki_floats<T, V> k;
    float sum[2][V] = {};
    if (h.is_on) {
        k.load(src + h.begin * a.src_pitch);
        const int64_t step = g.rows * a.src_pitch;
        const T *at = src + (h.begin + h.row) * a.src_pitch;
        for (int left = (int)(h.end - h.begin) - h.row; left > 0; left -= g.rows * EACH, at += EACH * step) {
            ki_raw<T, V> raw[EACH];
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                if (e * g.rows < left) raw[e].load(at + e * step);
            }
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                if (e * g.rows >= left) continue;
                const ki_floats<T, V> x = raw[e].get();
#pragma unroll
                for (int i = 0; i < V; i++) {
                    const float d = x.v[i] - k.v[i];
                    sum[0][i] += d;
                    sum[1][i] = fmaf(d, d, sum[1][i]);
                }
            }
        }
    }
    ki_channel_sum_rows<2, V>(g, h, sum, room);
    if (h.is_on && h.row == 0) {
        const float n = (float)(h.end - h.begin);
        float *to = a.partial + (int64_t)chunk * 2 * g.packs * V + h.pack * V;
#pragma unroll
        for (int i = 0; i < V; i++) {
            to[i] = k.v[i] + sum[0][i] / n;
            to[g.packs * V + i] = fmaxf(sum[1][i] - sum[0][i] * sum[0][i] / n, 0.0f);
        }
    }
    if (!ki_channel_is_last(a.counters + blockIdx.y, gridDim.x)) return;
    finish_stats<V>(a, g, reinterpret_cast<double *>(room));
}

template <typename T, int V, bool RELU, bool FROZEN, bool ADD>
__global__ void __launch_bounds__(THREADS, 2) bn_normalise(bn_args a, ki_channel_grid g) {
    const ki_channel_here h = ki_channel_at(g, blockIdx.x);
    if (!h.is_on) return;
    const T *src = static_cast<const T *>(a.src) + h.pack * V;
    const T *other =
        ADD ? static_cast<const T *>(a.other) + h.pack * V + (h.begin + h.row) * a.other_pitch : nullptr;
    T *dst = static_cast<T *>(a.dst) + h.pack * V;
    float mean[V], istd[V], scale[V], beta[V];
    load_norm<V, FROZEN>(a, g, h.pack, mean, istd, scale, beta);
    const int N_LOADS = ADD ? EACH / 2 : EACH;
    const int64_t src_step = g.rows * a.src_pitch, dst_step = g.rows * a.dst_pitch,
                  other_step = g.rows * a.other_pitch;
    src += (h.begin + h.row) * a.src_pitch;
    dst += (h.begin + h.row) * a.dst_pitch;
    for (int left = (int)(h.end - h.begin) - h.row; left > 0; left -= g.rows * N_LOADS) {
        ki_raw<T, V> raw[N_LOADS], more[N_LOADS];
#pragma unroll
        for (int e = 0; e < N_LOADS; e++) {
            if (e * g.rows >= left) continue;
            raw[e].load(src + e * src_step);
            if (ADD) more[e].load(other + e * other_step);
        }
#pragma unroll
        for (int e = 0; e < N_LOADS; e++) {
            if (e * g.rows >= left) continue;
            ki_floats<T, V> x = raw[e].get();
#pragma unroll
            for (int i = 0; i < V; i++) x.v[i] = norm(x.v[i], mean[i], scale[i], beta[i]);
            if (ADD) {
                const ki_floats<T, V> add = more[e].get();
#pragma unroll
                for (int i = 0; i < V; i++) x.v[i] += add.v[i];
            }
#pragma unroll
            for (int i = 0; i < V; i++) x.v[i] = RELU && !(x.v[i] > 0) ? 0 : x.v[i];
            x.store(dst + e * dst_step);
        }
        if (ADD) other += N_LOADS * other_step;
        src += N_LOADS * src_step;
        dst += N_LOADS * dst_step;
    }
}

/* From the sums of a block to the gradients of gamma and beta, and what must be subtracted from every gradient. */
template <int V, bool FROZEN>
__device__ __forceinline__ void finish_backward(const bn_args &a, const ki_channel_grid &g,
                                                const ki_channel_here &h, unsigned chunk, float (&sum)[2][V],
                                                float *room) {
    ki_channel_sum_rows<2, V>(g, h, sum, room);
    const int c = g.packs * V;
    if (h.is_on && h.row == 0) {
        float *to = a.partial + (int64_t)chunk * 2 * c + h.pack * V;
#pragma unroll
        for (int i = 0; i < V; i++) {
            to[i] = sum[0][i];
            to[c + i] = sum[1][i];
        }
    }
    if (!ki_channel_is_last(a.counters + blockIdx.y, gridDim.x)) return;
    const ki_channel_finish f = ki_channel_finish_at(g, V);
    double diff, diff_off;
    combine_sums<V, 8>(a, g, f, reinterpret_cast<double *>(room), &diff, &diff_off);
    if (f.channel < 0 || f.slice != 0) return;
    const double istd =
        FROZEN ? 1 / sqrt((double)a.running_var[f.channel] + (double)a.eps) : (double)a.saved[c + f.channel];
    save_sums(a, f.channel, diff, diff_off * istd);
    if (a.share) {
        save_share(a, c, f.channel, (double)g.n, diff, diff_off * istd * istd);
        return;
    }
    float *subtract = a.partial + (int64_t)g.chunks * 2 * c;
    subtract[f.channel] = (float)(diff / (double)g.n);
    subtract[c + f.channel] = (float)(diff_off * istd * istd / (double)g.n);
}

/* What backward does at each pack of the block: use(x, d, to) with the packs of src and diff_dst, and the place of the
 * pack of diff_src. */
template <typename T, int V, typename USE>
__device__ __forceinline__ void over_packs(const bn_args &a, const ki_channel_grid &g,
                                           const ki_channel_here &h, USE use) {
    const T *src = static_cast<const T *>(a.src) + h.pack * V;
    const T *diff = static_cast<const T *>(a.diff_dst) + h.pack * V;
    T *to = static_cast<T *>(a.diff_src) + h.pack * V;
    const int64_t src_step = g.rows * a.src_pitch, dst_step = g.rows * a.diff_pitch;
    src += (h.begin + h.row) * a.src_pitch;
    to += (h.begin + h.row) * a.src_pitch;
    diff += (h.begin + h.row) * a.diff_pitch;
    for (int left = (int)(h.end - h.begin) - h.row; left > 0; left -= g.rows * EACH) {
        ki_raw<T, V> raw_x[EACH], raw_d[EACH];
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            if (e * g.rows >= left) continue;
            raw_x[e].load(src + e * src_step);
            raw_d[e].load(diff + e * dst_step);
        }
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            if (e * g.rows >= left) continue;
            use(raw_x[e].get(), raw_d[e].get(), to + e * src_step);
        }
        src += EACH * src_step;
        to += EACH * src_step;
        diff += EACH * dst_step;
    }
}

/* The sums of backward; with fixed statistics diff_src needs none and is written in the same pass. */
template <typename T, int V, bool RELU, bool FROZEN>
__global__ void __launch_bounds__(THREADS, 1) bn_backward_sums(bn_args a, ki_channel_grid g) {
    KI_SHARED(float, room);
    const unsigned chunk = gridDim.x - 1 - blockIdx.x;
    const ki_channel_here h = ki_channel_at(g, chunk);
    float sum[2][V] = {};
    if (h.is_on) {
        float mean[V], istd[V], scale[V], beta[V];
        load_norm<V, FROZEN>(a, g, h.pack, mean, istd, scale, beta);
        over_packs<T, V>(a, g, h, [&](const ki_floats<T, V> &x, ki_floats<T, V> d, T *to) {
#pragma unroll
            for (int i = 0; i < V; i++) {
                const float off = x.v[i] - mean[i];
                const bool is_cut = RELU && !(norm(x.v[i], mean[i], scale[i], beta[i]) > 0);
                const float y = is_cut ? 0 : d.v[i];
                sum[0][i] += y;
                sum[1][i] = fmaf(y, off, sum[1][i]);
                d.v[i] = y * scale[i];
            }
            if (FROZEN && a.diff_src) d.store(to);
        });
    }
    finish_backward<V, FROZEN>(a, g, h, chunk, sum, room);
}

/* The same with a sum and its ReLU after the batch norm: N parts of the gradient become one, kept where dst > 0. The
 * other source of the sum gets this gradient, and bn_backward_apply reads it. */
template <typename T, int V, int N, bool MASK, bool FROZEN>
__global__ void __launch_bounds__(THREADS, 1) bn_backward_join(bn_args a, ki_channel_grid g) {
    KI_SHARED(float, room);
    const unsigned chunk = gridDim.x - 1 - blockIdx.x;
    const ki_channel_here h = ki_channel_at(g, chunk);
    float sum[2][V] = {};
    if (h.is_on) {
        const int N_LOADS = EACH / 2;
        const T *src = static_cast<const T *>(a.src) + h.pack * V + (h.begin + h.row) * a.src_pitch;
        T *to = static_cast<T *>(a.diff_src) + h.pack * V + (h.begin + h.row) * a.src_pitch;
        T *joined = static_cast<T *>(a.diff_other) + h.pack * V + (h.begin + h.row) * a.other_pitch;
        const int64_t src_step = g.rows * a.src_pitch, dst_step = g.rows * a.dst_pitch,
                      other_step = g.rows * a.other_pitch;
        int64_t at = h.pack * V + (h.begin + h.row) * a.dst_pitch;
        float mean[V], istd[V], scale[V], beta[V];
        load_norm<V, FROZEN>(a, g, h.pack, mean, istd, scale, beta);
        for (int left = (int)(h.end - h.begin) - h.row; left > 0; left -= g.rows * N_LOADS) {
            ki_raw<T, V> raw_x[N_LOADS], part[N_LOADS][N], mask[N_LOADS];
#pragma unroll
            for (int e = 0; e < N_LOADS; e++) {
                if (e * g.rows >= left) continue;
                raw_x[e].load(src + e * src_step);
#pragma unroll
                for (int k = 0; k < N; k++)
                    part[e][k].load(static_cast<const T *>(a.part[k]) + at + e * dst_step);
                if (MASK) mask[e].load(static_cast<const T *>(a.dst) + at + e * dst_step);
            }
#pragma unroll
            for (int e = 0; e < N_LOADS; e++) {
                if (e * g.rows >= left) continue;
                const ki_floats<T, V> x = raw_x[e].get();
                ki_floats<T, V> d = part[e][0].get();
#pragma unroll
                for (int k = 1; k < N; k++) {
                    const ki_floats<T, V> more = part[e][k].get();
#pragma unroll
                    for (int i = 0; i < V; i++) d.v[i] += more.v[i];
                }
                if (MASK) {
                    const ki_floats<T, V> y = mask[e].get();
#pragma unroll
                    for (int i = 0; i < V; i++) d.v[i] = y.v[i] > 0 ? d.v[i] : 0;
                }
                d.store(joined + e * other_step);
#pragma unroll
                for (int i = 0; i < V; i++) {
                    sum[0][i] += d.v[i];
                    sum[1][i] = fmaf(d.v[i], x.v[i] - mean[i], sum[1][i]);
                    d.v[i] *= scale[i];
                }
                if (FROZEN && a.diff_src) d.store(to + e * src_step);
            }
            src += N_LOADS * src_step;
            to += N_LOADS * src_step;
            joined += N_LOADS * other_step;
            at += N_LOADS * dst_step;
        }
    }
    finish_backward<V, FROZEN>(a, g, h, chunk, sum, room);
}

template <typename T, int V, bool RELU>
__global__ void __launch_bounds__(THREADS, 1)
    bn_backward_apply(bn_args a, ki_channel_grid g, int n_partials) {
    const ki_channel_here h = ki_channel_at(g, blockIdx.x);
    if (!h.is_on) return;
    float mean[V], istd[V], scale[V], beta[V], shift[V], slope[V];
    const float *subtract = a.subtract ? a.subtract : a.partial + (int64_t)n_partials * 2 * g.packs * V;
    load_norm<V, false>(a, g, h.pack, mean, istd, scale, beta);
    load_channels<V>(subtract, h.pack, shift);
    load_channels<V>(subtract + g.packs * V, h.pack, slope);
    over_packs<T, V>(a, g, h, [&](const ki_floats<T, V> &x, ki_floats<T, V> d, T *to) {
#pragma unroll
        for (int i = 0; i < V; i++) {
            const bool is_cut = RELU && !(norm(x.v[i], mean[i], scale[i], beta[i]) > 0);
            const float y = is_cut ? 0 : d.v[i];
            d.v[i] = scale[i] * (y - shift[i] - (x.v[i] - mean[i]) * slope[i]);
        }
        d.store(to);
    });
}

/* shares: `each` doubles of every rank. Means as comm/moments.c merges them (Chan, Golub and LeVeque). */
__global__ void bn_merge(bn_args a, int c, bool is_backward, const double *shares, int64_t each,
                         int n_ranks) {
    const int channel = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (channel >= c) return;
    double n = 0, x = 0, y = 0;
    for (int r = 0; r < n_ranks; r++) {
        const double *share = shares + r * each, count = share[2 * c];
        n += count;
        x += is_backward ? share[channel] : count * share[channel];
        if (is_backward) y += share[c + channel];
    }
    if (is_backward) {
        a.subtract[channel] = (float)(x / n);
        a.subtract[c + channel] = (float)(y / n);
        return;
    }
    const double mean = x / n;
    for (int r = 0; r < n_ranks; r++) {
        const double *share = shares + r * each, off = share[channel] - mean;
        y += share[c + channel] + share[2 * c] * off * off;
    }
    save_stats(a, c, channel, n, mean, y);
}

dim3 grid_of(const ki_channel_grid &g) { return dim3((unsigned)g.chunks, (unsigned)g.tiles); }

/* Room for the sums over rows, and for the doubles of the last block. */
template <int V>
size_t room_of(const ki_channel_grid &g) {
    const size_t rows = ki_channel_room(g, 2, V), finish = THREADS * sizeof(double);
    return rows > finish ? rows : finish;
}

template <typename T, int V, bool RELU, bool FROZEN>
cudaError_t normalise(cudaStream_t stream, const ki_cuda_bn_args *bn, const bn_args &a) {
    const ki_channel_grid g = ki_channel_grid_of(bn->n, bn->c / V, 4 * bn->n_processors);
    return bn->has_add
               ? KI_LAUNCH(bn_normalise<T, V, RELU, FROZEN, true>, grid_of(g), THREADS, 0, stream, a, g)
               : KI_LAUNCH(bn_normalise<T, V, RELU, FROZEN, false>, grid_of(g), THREADS, 0, stream, a, g);
}

template <typename T, int V>
cudaError_t forward(cudaStream_t stream, const ki_cuda_bn_args *bn, const bn_args &a) {
    if (bn->is_frozen)
        return bn->has_relu ? normalise<T, V, true, true>(stream, bn, a)
                            : normalise<T, V, false, true>(stream, bn, a);
    const ki_channel_grid g = ki_channel_grid_of(bn->n, bn->c / V, 2 * bn->n_processors);
    if (bn->half != KI_CUDA_BN_REST)
        KI_LAUNCH_TRY(bn_stats<T, V>, grid_of(g), THREADS, room_of<V>(g), stream, a, g);
    if (bn->half == KI_CUDA_BN_SUMS) return cudaSuccess;
    return bn->has_relu ? normalise<T, V, true, false>(stream, bn, a)
                        : normalise<T, V, false, false>(stream, bn, a);
}

template <typename T, int V, bool RELU>
cudaError_t apply(cudaStream_t stream, const ki_cuda_bn_args *bn, const bn_args &a, int n_partials) {
    if (bn->is_frozen || !bn->diff_src || bn->half == KI_CUDA_BN_SUMS) return cudaSuccess;
    const ki_channel_grid g = ki_channel_grid_of(bn->n, bn->c / V, 4 * bn->n_processors);
    return KI_LAUNCH(bn_backward_apply<T, V, RELU>, grid_of(g), THREADS, 0, stream, a, g, n_partials);
}

template <typename T, int V, bool RELU>
cudaError_t backward(cudaStream_t stream, const ki_cuda_bn_args *bn, const bn_args &a) {
    const ki_channel_grid g = ki_channel_grid_of(bn->n, bn->c / V, bn->n_processors);
    if (bn->is_frozen)
        return KI_LAUNCH(bn_backward_sums<T, V, RELU, true>, grid_of(g), THREADS, room_of<V>(g), stream, a,
                         g);
    if (bn->half != KI_CUDA_BN_REST)
        KI_LAUNCH_TRY(bn_backward_sums<T, V, RELU, false>, grid_of(g), THREADS, room_of<V>(g), stream, a, g);
    return apply<T, V, RELU>(stream, bn, a, g.chunks);
}

template <typename T, int V, int N, bool MASK>
cudaError_t join(cudaStream_t stream, const ki_cuda_bn_args *bn, const bn_args &a) {
    const ki_channel_grid g = ki_channel_grid_of(bn->n, bn->c / V, bn->n_processors);
    const size_t room = room_of<V>(g);
    if (bn->is_frozen)
        return KI_LAUNCH(bn_backward_join<T, V, N, MASK, true>, grid_of(g), THREADS, room, stream, a, g);
    if (bn->half != KI_CUDA_BN_REST)
        KI_LAUNCH_TRY(bn_backward_join<T, V, N, MASK, false>, grid_of(g), THREADS, room, stream, a, g);
    return apply<T, V, false>(stream, bn, a, g.chunks);
}

template <typename T, int V>
cudaError_t backward_add(cudaStream_t stream, const ki_cuda_bn_args *bn, const bn_args &a) {
    if (bn->n_parts == 1)
        return bn->has_relu ? join<T, V, 1, true>(stream, bn, a) : join<T, V, 1, false>(stream, bn, a);
    return bn->has_relu ? join<T, V, 2, true>(stream, bn, a) : join<T, V, 2, false>(stream, bn, a);
}

template <typename T>
cudaError_t forward_of(cudaStream_t stream, const ki_cuda_bn_args *bn) {
    const int N = ki_pack<T>::N;
    return is_wide<T>(bn) ? forward<T, N>(stream, bn, args_of(bn)) : forward<T, 1>(stream, bn, args_of(bn));
}

template <typename T, int V>
cudaError_t backward_v(cudaStream_t stream, const ki_cuda_bn_args *bn) {
    const bn_args a = args_of(bn);
    if (bn->has_add) return backward_add<T, V>(stream, bn, a);
    return bn->has_relu ? backward<T, V, true>(stream, bn, a) : backward<T, V, false>(stream, bn, a);
}

template <typename T>
cudaError_t backward_of(cudaStream_t stream, const ki_cuda_bn_args *bn) {
    return is_wide<T>(bn) ? backward_v<T, ki_pack<T>::N>(stream, bn) : backward_v<T, 1>(stream, bn);
}

/* If there are more than two parts, they are summed first; what is left is a batch norm without a sum or ReLU
 * after it. */
cudaError_t backward_of_sum(cudaStream_t stream, const ki_cuda_bn_args *bn) {
    int64_t pitch[KI_CUDA_MAX_PARTS];
    for (int i = 0; i < bn->n_parts; i++) pitch[i] = bn->dst_pitch;
    if (bn->half != KI_CUDA_BN_REST) {
        const cudaError_t error = ki_cuda_sum(stream, bn->is_bf16, bn->n, bn->c, bn->n_parts, bn->diff_dst,
                                              pitch, bn->has_relu ? bn->dst : nullptr, bn->dst_pitch, false,
                                              bn->diff_other, bn->other_pitch);
        if (error != cudaSuccess) return error;
    }
    ki_cuda_bn_args rest = *bn;
    rest.has_add = rest.has_relu = false;
    rest.n_parts = 1;
    rest.diff_dst[0] = bn->diff_other;
    rest.dst = bn->diff_other;
    rest.dst_pitch = bn->other_pitch;
    return ki_cuda_bn_backward(stream, &rest);
}

} // namespace

extern "C" size_t ki_cuda_bn_scratch(int64_t n, int64_t c, int n_processors) {
    int64_t most = ki_cuda_bn_once_chunks(n, c, n_processors);
    const int packs[] = {1, 4, 8}; /* whichever path the pointers allow */
    for (int v : packs) {
        if (c % v != 0) continue;
        const ki_channel_grid g = ki_channel_grid_of(n, c / v, 2 * n_processors);
        const ki_channel_grid back = ki_channel_grid_of(n, c / v, n_processors);
        const int64_t chunks = g.chunks > back.chunks ? g.chunks : back.chunks;
        if (chunks > most) most = chunks;
    }
    return (size_t)((most + 1) * 2 * c) * sizeof(float);
}

extern "C" cudaError_t ki_cuda_bn_merge(cudaStream_t stream, const ki_cuda_bn_args *bn, bool is_backward,
                                        const double *shares, int n_ranks) {
    const unsigned grid = (unsigned)((bn->c + THREADS - 1) / THREADS);
    return KI_LAUNCH(bn_merge, grid, THREADS, 0, stream, args_of(bn), (int)bn->c, is_backward, shares,
                     ki_cuda_bn_share(bn->c), n_ranks);
}

extern "C" cudaError_t ki_cuda_bn_forward(cudaStream_t stream, const ki_cuda_bn_args *bn) {
    if (ki_cuda_bn_is_once(bn, false)) return ki_cuda_bn_once(stream, bn, false);
    return bn->is_bf16 ? forward_of<ki_bf16>(stream, bn) : forward_of<float>(stream, bn);
}

extern "C" cudaError_t ki_cuda_bn_backward(cudaStream_t stream, const ki_cuda_bn_args *bn) {
    if (bn->has_add && bn->n_parts > 2) return backward_of_sum(stream, bn);
    if (ki_cuda_bn_is_once(bn, true)) return ki_cuda_bn_once(stream, bn, true);
    return bn->is_bf16 ? backward_of<ki_bf16>(stream, bn) : backward_of<float>(stream, bn);
}
