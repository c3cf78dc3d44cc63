/* Batch norm of batch statistics in one launch: blocks that are all there at the same time read their pixels, keep
 * what fits in shared memory as it was loaded, leave their sums, meet, and go on with what they kept. So the map is
 * read once as far as it fits, and there is one launch and one wait where batch_norm.cu has two.
 *
 * A block has a tile of channels and every chunks-th group of `rows` pixels. The grid as a whole sweeps the map from its
 * end, which the cache still has from whoever wrote it. What comes first is kept; the rest, the map's beginning, is
 * read again after the blocks met, the latest first, while the cache still has it: so loads of what is kept, and
 * stores meanwhile, ask the cache not to keep them.
 *
 * After the meeting every block combines the sums of its tile itself, in the same order: less work than a second
 * meeting as long as a tile has few sums (MOST_SUMS). Formulas are batch_norm.cu's. */
#include "backend/cuda/batch_norm.cuh"

namespace {

/* Channels of a tile times blocks of a tile. */
const int64_t MOST_SUMS = 13312;
/* Packs of a tile, at least, where there are several tiles: 128 bytes of a pixel. */
const int LEAST_WIDTH = 8;
/* In automatic choice one launch must keep at least this part of a map on the chip. */
const int KEPT_PART = 8;

struct once {
    ki_channel_grid g; /* g.chunk: the pixels from one group to the next */
    int n_groups;      /* of the block that has most */
    int n_kept;        /* of them in shared memory */
    size_t shared_bytes;
};

/* The tiles with which the busiest block has least to do. False: the channels need more blocks than there are
 * processors. */
bool lay_out(int64_t n, int64_t packs, int v, int n_processors, once *ret) {
    *ret = {};
    for (int tiles = 1; tiles <= n_processors && tiles <= packs; tiles++) {
        ki_channel_grid g = {};
        g.n = n;
        g.packs = (int)packs;
        g.width = (int)((packs + tiles - 1) / tiles);
        g.tiles = (int)((packs + g.width - 1) / g.width);
        if (g.width * v > THREADS || g.tiles != tiles) continue;
        if (ret->n_groups && g.width < LEAST_WIDTH) break;
        g.rows = THREADS / g.width;
        g.chunk = g.rows;
        const int64_t groups = (n + g.rows - 1) / g.rows, blocks = n_processors / tiles;
        g.chunks = (int)(groups < blocks ? groups : blocks);
        const int n_groups = (int)((groups + g.chunks - 1) / g.chunks);
        const bool had_too_many = (int64_t)ret->g.chunks * ret->g.width * v > MOST_SUMS;
        if (ret->n_groups && !had_too_many && n_groups >= ret->n_groups) continue;
        ret->g = g;
        ret->n_groups = n_groups;
    }
    return ret->n_groups > 0;
}

/* Room behind what is kept: the sums over rows, later the doubles of combining and two results per channel. */
size_t room_bytes(const ki_channel_grid &g, int v) {
    const size_t rows = ki_channel_room(g, 2, v);
    const size_t combine = THREADS * sizeof(double) + (size_t)(2 * g.width * v) * sizeof(float);
    return rows > combine ? rows : combine;
}

/* Lays out, and fills shared memory with as many groups of n_maps maps as fit. */
bool plan(const ki_cuda_bn_args *bn, bool is_backward, once *ret) {
    const bool wide = bn->is_bf16 ? is_wide<ki_bf16>(bn) : is_wide<float>(bn);
    const int v = !wide ? 1 : bn->is_bf16 ? 8 : 4;
    int device = 0, most = 0, together = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) != cudaSuccess ||
        cudaDeviceGetAttribute(&together, cudaDevAttrCooperativeLaunch, device) != cudaSuccess || !together ||
        !lay_out(bn->n, bn->c / v, v, bn->n_processors, ret))
        return false;
    const size_t room = room_bytes(ret->g, v);
    if ((size_t)most < room) return false;
    const size_t group = (size_t)(THREADS * v * (is_backward ? 2 : 1)) * (bn->is_bf16 ? 2 : 4);
    const size_t n_fit = ((size_t)most - room) / group;
    ret->n_kept = n_fit < (size_t)ret->n_groups ? (int)n_fit : ret->n_groups;
    ret->shared_bytes = (size_t)ret->n_kept * group + room;
    return true;
}

/* The thread's pixels: `count` of them, `step` apart, from `first`; those from n_again on are kept. */
struct walk {
    int first, step, count, n_again;
};
__device__ __forceinline__ walk walk_of(const ki_channel_grid &g, const ki_channel_here &h, int n_kept) {
    walk w;
    w.first = (int)h.begin + h.row;
    w.step = g.chunks * g.rows;
    w.count = h.is_on && w.first < (int)g.n ? ((int)g.n - 1 - w.first) / w.step + 1 : 0;
    w.n_again = w.count > n_kept ? w.count - n_kept : 0;
    return w;
}

/* Pixels of block b. */
__device__ __forceinline__ int pixels_of(const ki_channel_grid &g, int b) {
    const int rows = g.rows, groups = ((int)g.n + rows - 1) / rows, last = (groups - 1) % g.chunks;
    return ((groups - 1 - b) / g.chunks + 1) * rows - (b == last ? groups * rows - (int)g.n : 0);
}

/* Accesses that the cache need not remember. */
template <typename T, int V>
__device__ __forceinline__ void load_once(const T *from, ki_raw<T, V> *raw) {
    if constexpr (V == 1) {
        raw->load(from);
    } else {
        const uint4 words = __ldcs(reinterpret_cast<const uint4 *>(from));
        raw->pack.bits.word[0] = words.x, raw->pack.bits.word[1] = words.y;
        raw->pack.bits.word[2] = words.z, raw->pack.bits.word[3] = words.w;
    }
}
template <typename T, int V>
__device__ __forceinline__ ki_raw<T, V> raw_of(const ki_vec<T, V> &x) {
    ki_raw<T, V> raw;
    if constexpr (V == 1)
        raw.one = from_float<T>(x.v[0]);
    else
        ki_repack(x.v, &raw.pack);
    return raw;
}
template <typename T, int V>
__device__ __forceinline__ void store(T *to, const ki_raw<T, V> &raw) {
    if constexpr (V == 1)
        *to = raw.one;
    else
        ki_pack_store(to, raw.pack);
}
template <typename T, int V>
__device__ __forceinline__ void store_once(T *to, const ki_raw<T, V> &raw) {
    if constexpr (V == 1) {
        *to = raw.one;
    } else {
        const uint32_t *word = raw.pack.bits.word;
        __stcs(reinterpret_cast<uint4 *>(to), make_uint4(word[0], word[1], word[2], word[3]));
    }
}

/* What a block found out about the channels of its tile, [2, width * V], in shared memory behind the doubles. */
__device__ __forceinline__ float *results_in(float *room) { return room + 2 * THREADS; }

template <typename T, int V, bool RELU, bool ADD>
__global__ void __launch_bounds__(THREADS, 1) bn_forward_once(bn_args a, ki_channel_grid g, int n_kept) {
    KI_SHARED(unsigned char, memory);
    typedef ki_raw<T, V> raw;
    raw *kept = reinterpret_cast<raw *>(memory) + threadIdx.x;
    float *room = reinterpret_cast<float *>(memory + (size_t)n_kept * THREADS * sizeof(raw));
    const ki_channel_here h = ki_channel_at(g, blockIdx.x);
    const walk w = walk_of(g, h, n_kept);
    const int c = g.packs * V, channels = g.width * V;
    const int64_t src_step = w.step * a.src_pitch;
    const T *src = static_cast<const T *>(a.src) + h.pack * V + w.first * a.src_pitch;

    ki_vec<T, V> k = {};
    float sum[2][V] = {};
    if (h.is_on) k.load(src - h.row * a.src_pitch);
    const T *end = src + w.count * src_step;
    const int MANY = 2 * EACH;
    for (int left = w.count; left > 0; left -= MANY, end -= MANY * src_step) {
        raw x[MANY];
#pragma unroll
        for (int e = 0; e < MANY; e++) {
            const int i = left - 1 - e;
            if (i >= w.n_again)
                load_once(end - (e + 1) * src_step, &x[e]);
            else if (i >= 0)
                x[e].load(end - (e + 1) * src_step);
        }
#pragma unroll
        for (int e = 0; e < MANY; e++) {
            const int i = left - 1 - e;
            if (i < 0) continue;
            if (i >= w.n_again) kept[(i - w.n_again) * THREADS] = x[e];
            const ki_vec<T, V> value = x[e].get();
#pragma unroll
            for (int v = 0; v < V; v++) {
                const float d = value.v[v] - k.v[v];
                sum[0][v] += d;
                sum[1][v] = fmaf(d, d, sum[1][v]);
            }
        }
    }
    ki_channel_sum_rows<2, V>(g, h, sum, room);
    if (h.is_on && h.row == 0) {
        const float n = (float)pixels_of(g, (int)blockIdx.x);
        float *to = a.partial + (int64_t)blockIdx.x * 2 * c + h.pack * V;
#pragma unroll
        for (int v = 0; v < V; v++) {
            to[v] = k.v[v] + sum[0][v] / n;
            to[c + v] = fmaxf(sum[1][v] - sum[0][v] * sum[0][v] / n, 0.0f);
        }
    }

    ki_channel_meet(a.counters + blockIdx.y, gridDim.x);
    float *stats = results_in(room);
    const ki_channel_finish f = ki_channel_finish_at(g, V);
    double all_mean, squares;
    combine_stats<V>(
        a, g, f, [&](int b) { return pixels_of(g, b); }, reinterpret_cast<double *>(room), &all_mean,
        &squares);
    if (f.channel >= 0 && f.slice == 0) {
        stats[f.in_tile] = (float)all_mean;
        stats[channels + f.in_tile] = istd_of(a, squares, (double)g.n);
        if (blockIdx.x == 0) save_stats(a, c, f.channel, (double)g.n, all_mean, squares);
    }
    __syncthreads();
    if (!h.is_on) return;

    float mean[V], scale[V], beta[V];
    load_channels<V>(a.gamma, h.pack, scale);
    load_channels<V>(a.beta, h.pack, beta);
#pragma unroll
    for (int v = 0; v < V; v++) {
        mean[v] = stats[h.in_tile * V + v];
        scale[v] *= stats[channels + h.in_tile * V + v];
    }
    const int N_LOADS = ADD ? EACH : MANY;
    const int64_t dst_step = w.step * a.dst_pitch, other_step = w.step * a.other_pitch;
    T *dst = static_cast<T *>(a.dst) + h.pack * V + w.first * a.dst_pitch;
    const T *other = ADD ? static_cast<const T *>(a.other) + h.pack * V + w.first * a.other_pitch : nullptr;
    for (int i = 0; i < w.count; i += N_LOADS) {
        raw x[N_LOADS], more[N_LOADS];
#pragma unroll
        for (int e = 0; e < N_LOADS; e++) {
            if (i + e >= w.count) continue;
            if (ADD) load_once(other + e * other_step, &more[e]);
            if (i + e < w.n_again)
                load_once(src + e * src_step, &x[e]);
            else
                x[e] = kept[(i + e - w.n_again) * THREADS];
        }
#pragma unroll
        for (int e = 0; e < N_LOADS; e++) {
            if (i + e >= w.count) continue;
            ki_vec<T, V> y = x[e].get();
#pragma unroll
            for (int v = 0; v < V; v++) y.v[v] = norm(y.v[v], mean[v], scale[v], beta[v]);
            if (ADD) {
                const ki_vec<T, V> add = more[e].get();
#pragma unroll
                for (int v = 0; v < V; v++) y.v[v] += add.v[v];
            }
#pragma unroll
            for (int v = 0; v < V; v++) y.v[v] = RELU && !(y.v[v] > 0) ? 0 : y.v[v];
            if (i + e < w.n_again)
                store_once(dst + e * dst_step, raw_of(y));
            else
                store(dst + e * dst_step, raw_of(y));
        }
        if (ADD) other += N_LOADS * other_step;
        src += N_LOADS * src_step;
        dst += N_LOADS * dst_step;
    }
}

/* N == 0: the gradient is diff_dst, and what ReLU let through is computed from src. Otherwise N parts become one, kept
 * where dst > 0 (RELU), which goes to diff_other too. */
template <typename T, int V, int N, bool RELU>
__global__ void __launch_bounds__(THREADS, 1) bn_backward_once(bn_args a, ki_channel_grid g, int n_kept) {
    KI_SHARED(unsigned char, memory);
    typedef ki_raw<T, V> raw;
    const bool JOIN = N > 0, CUT = RELU && !JOIN, MASK = RELU && JOIN;
    const int N_PARTS = JOIN ? N : 1, N_LOADS = JOIN ? EACH / 2 : EACH;
    raw *kept_x = reinterpret_cast<raw *>(memory) + threadIdx.x;
    raw *kept_d = kept_x + (size_t)n_kept * THREADS;
    float *room = reinterpret_cast<float *>(memory + (size_t)(2 * n_kept) * THREADS * sizeof(raw));
    const ki_channel_here h = ki_channel_at(g, blockIdx.x);
    const walk w = walk_of(g, h, n_kept);
    const int c = g.packs * V, channels = g.width * V;
    const int64_t src_step = w.step * a.src_pitch, part_step = w.step * a.dst_pitch,
                  diff_step = w.step * a.diff_pitch;
    const T *src = static_cast<const T *>(a.src) + h.pack * V + w.first * a.src_pitch;
    const T *diff = static_cast<const T *>(a.diff_dst) + h.pack * V + w.first * a.diff_pitch;

    float sum[2][V] = {};
    float mean[V] = {}, istd[V] = {}, scale[V] = {}, beta[V] = {};
    if (h.is_on) load_norm<V, false>(a, g, h.pack, mean, istd, scale, beta);
    const T *end = src + w.count * src_step;
    int64_t part_end = h.pack * V + w.first * a.dst_pitch + w.count * part_step;
    T *joined_end = JOIN ? static_cast<T *>(a.diff_other) + (diff - static_cast<const T *>(a.diff_dst)) +
                               w.count * diff_step
                         : nullptr;
    for (int left = w.count; left > 0; left -= N_LOADS) {
        raw x[N_LOADS], part[N_LOADS][N_PARTS], mask[N_LOADS];
#pragma unroll
        for (int e = 0; e < N_LOADS; e++) {
            const int i = left - 1 - e;
            if (i < 0) continue;
            const int64_t at = part_end - (e + 1) * part_step;
            if (i >= w.n_again) {
                load_once(end - (e + 1) * src_step, &x[e]);
                if (!JOIN) load_once(static_cast<const T *>(a.diff_dst) + at, &part[e][0]);
            } else {
                x[e].load(end - (e + 1) * src_step);
                if (!JOIN) part[e][0].load(static_cast<const T *>(a.diff_dst) + at);
            }
            if (JOIN) {
#pragma unroll
                for (int p = 0; p < N_PARTS; p++)
                    load_once(static_cast<const T *>(a.part[p]) + at, &part[e][p]);
            }
            if (MASK) load_once(static_cast<const T *>(a.dst) + at, &mask[e]);
        }
#pragma unroll
        for (int e = 0; e < N_LOADS; e++) {
            const int i = left - 1 - e;
            if (i < 0) continue;
            const ki_vec<T, V> value = x[e].get();
            ki_vec<T, V> d = part[e][0].get();
#pragma unroll
            for (int p = 1; p < N_PARTS; p++) {
                const ki_vec<T, V> more = part[e][p].get();
#pragma unroll
                for (int v = 0; v < V; v++) d.v[v] += more.v[v];
            }
            if (MASK) {
                const ki_vec<T, V> y = mask[e].get();
#pragma unroll
                for (int v = 0; v < V; v++) d.v[v] = y.v[v] > 0 ? d.v[v] : 0;
            }
            if (JOIN) {
                part[e][0] = raw_of(d);
                store(joined_end - (e + 1) * diff_step, part[e][0]);
            }
            if (i >= w.n_again) {
                kept_x[(i - w.n_again) * THREADS] = x[e];
                kept_d[(i - w.n_again) * THREADS] = part[e][0];
            }
#pragma unroll
            for (int v = 0; v < V; v++) {
                const bool is_cut = CUT && !(norm(value.v[v], mean[v], scale[v], beta[v]) > 0);
                const float y = is_cut ? 0 : d.v[v];
                sum[0][v] += y;
                sum[1][v] = fmaf(y, value.v[v] - mean[v], sum[1][v]);
            }
        }
        end -= N_LOADS * src_step;
        part_end -= N_LOADS * part_step;
        if (JOIN) joined_end -= N_LOADS * diff_step;
    }
    ki_channel_sum_rows<2, V>(g, h, sum, room);
    if (h.is_on && h.row == 0) {
        float *to = a.partial + (int64_t)blockIdx.x * 2 * c + h.pack * V;
#pragma unroll
        for (int v = 0; v < V; v++) {
            to[v] = sum[0][v];
            to[c + v] = sum[1][v];
        }
    }

    ki_channel_meet(a.counters + blockIdx.y, gridDim.x);
    float *subtract = results_in(room);
    const ki_channel_finish f = ki_channel_finish_at(g, V);
    double all_diff, diff_off;
    combine_sums<V>(a, g, f, reinterpret_cast<double *>(room), &all_diff, &diff_off);
    if (f.channel >= 0 && f.slice == 0) {
        const double s = (double)a.saved[c + f.channel];
        subtract[f.in_tile] = (float)(all_diff / (double)g.n);
        subtract[channels + f.in_tile] = (float)(diff_off * s * s / (double)g.n);
        if (blockIdx.x == 0) save_sums(a, f.channel, all_diff, diff_off * s);
    }
    __syncthreads();
    if (!h.is_on) return;

    float shift[V], slope[V];
#pragma unroll
    for (int v = 0; v < V; v++) {
        shift[v] = subtract[h.in_tile * V + v];
        slope[v] = subtract[channels + h.in_tile * V + v];
    }
    T *to = static_cast<T *>(a.diff_src) + h.pack * V + w.first * a.src_pitch;
    for (int i = 0; i < w.count; i += EACH) {
        raw x[EACH], d[EACH];
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            if (i + e >= w.count) continue;
            if (i + e < w.n_again) {
                load_once(src + e * src_step, &x[e]);
                load_once(diff + e * diff_step, &d[e]);
            } else {
                x[e] = kept_x[(i + e - w.n_again) * THREADS];
                d[e] = kept_d[(i + e - w.n_again) * THREADS];
            }
        }
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            if (i + e >= w.count) continue;
            const ki_vec<T, V> value = x[e].get();
            ki_vec<T, V> y = d[e].get();
#pragma unroll
            for (int v = 0; v < V; v++) {
                const bool is_cut = CUT && !(norm(value.v[v], mean[v], scale[v], beta[v]) > 0);
                const float kept = is_cut ? 0 : y.v[v];
                y.v[v] = scale[v] * (kept - shift[v] - (value.v[v] - mean[v]) * slope[v]);
            }
            if (i + e < w.n_again)
                store_once(to + e * src_step, raw_of(y));
            else
                store(to + e * src_step, raw_of(y));
        }
        src += EACH * src_step;
        to += EACH * src_step;
        diff += EACH * diff_step;
    }
}

#define LAUNCH_ONCE(kernel)                                                                              \
    KI_LAUNCH_TOGETHER(kernel, dim3((unsigned)o.g.chunks, (unsigned)o.g.tiles), THREADS, o.shared_bytes, \
                       stream, a, o.g, o.n_kept)

template <typename T, int V>
cudaError_t forward(cudaStream_t stream, const ki_cuda_bn_args *bn, const once &o) {
    const bn_args a = args_of(bn);
    if (bn->has_add)
        return bn->has_relu ? LAUNCH_ONCE((bn_forward_once<T, V, true, true>))
                            : LAUNCH_ONCE((bn_forward_once<T, V, false, true>));
    return bn->has_relu ? LAUNCH_ONCE((bn_forward_once<T, V, true, false>))
                        : LAUNCH_ONCE((bn_forward_once<T, V, false, false>));
}

template <typename T, int V, int N>
cudaError_t backward_of(cudaStream_t stream, const ki_cuda_bn_args *bn, const once &o) {
    const bn_args a = args_of(bn);
    return bn->has_relu ? LAUNCH_ONCE((bn_backward_once<T, V, N, true>))
                        : LAUNCH_ONCE((bn_backward_once<T, V, N, false>));
}

template <typename T, int V>
cudaError_t backward(cudaStream_t stream, const ki_cuda_bn_args *bn, const once &o) {
    if (!bn->has_add) return backward_of<T, V, 0>(stream, bn, o);
    return bn->n_parts == 1 ? backward_of<T, V, 1>(stream, bn, o) : backward_of<T, V, 2>(stream, bn, o);
}

} // namespace

/* The one place that chooses. One launch saves a launch, a wait and the second reading of what it keeps, but a part of a
 * map that is far too large for the chip is not worth blocks that cannot share their processors with other work. */
bool ki_cuda_bn_is_once(const ki_cuda_bn_args *bn, bool is_backward) {
    once o;
    if (bn->way == KI_CUDA_BN_TWICE || bn->is_frozen || (is_backward && !bn->diff_src) ||
        !plan(bn, is_backward, &o))
        return false;
    return bn->way == KI_CUDA_BN_ONCE || (int64_t)KEPT_PART * o.n_kept >= o.n_groups;
}

int ki_cuda_bn_once_chunks(int64_t n, int64_t c, int n_processors) {
    int most = 0;
    const int packs[] = {1, 4, 8};
    for (int v : packs) {
        once o;
        if (c % v == 0 && lay_out(n, c / v, v, n_processors, &o) && o.g.chunks > most) most = o.g.chunks;
    }
    return most;
}

cudaError_t ki_cuda_bn_forward_once(cudaStream_t stream, const ki_cuda_bn_args *bn) {
    once o;
    if (!plan(bn, false, &o)) return cudaErrorNotSupported;
    if (bn->is_bf16)
        return is_wide<ki_bf16>(bn) ? forward<ki_bf16, 8>(stream, bn, o) : forward<ki_bf16, 1>(stream, bn, o);
    return is_wide<float>(bn) ? forward<float, 4>(stream, bn, o) : forward<float, 1>(stream, bn, o);
}

cudaError_t ki_cuda_bn_backward_once(cudaStream_t stream, const ki_cuda_bn_args *bn) {
    once o;
    if (!plan(bn, true, &o)) return cudaErrorNotSupported;
    if (bn->is_bf16)
        return is_wide<ki_bf16>(bn) ? backward<ki_bf16, 8>(stream, bn, o)
                                    : backward<ki_bf16, 1>(stream, bn, o);
    return is_wide<float>(bn) ? backward<float, 4>(stream, bn, o) : backward<float, 1>(stream, bn, o);
}
