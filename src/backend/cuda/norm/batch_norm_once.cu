/* Batch norm with batch statistics in one launch. All blocks run at the same time. They read their pixels, keep what
 * fits in shared memory as it was loaded, store their sums, wait for each other, and continue with what they kept. So
 * the part of the map that fits is read once, and there is one launch and one wait where batch_norm.cu has two.
 *
 * A block has a tile of channels and every chunks-th group of `rows` pixels. The grid as a whole goes through the map
 * from its end, which is still in the cache from the kernel that wrote it. The pixels read first are kept in shared
 * memory. The rest, the beginning of the map, is read again after the blocks have waited, the latest first, while it is
 * still in the cache. So loads of pixels that are kept, and stores in the meantime, ask the cache not to keep them.
 *
 * After the wait every block combines the sums of its tile itself, in the same order: less work than a second wait as
 * long as a tile has few sums (MOST_SUMS). The formulas are those of batch_norm.cu. */
#include "backend/cuda/norm/batch_norm.cuh"

namespace {

/* Sums of a channel and block that a thread loads at a time; channels of a tile times its blocks, so that this is all. */
const int AT_ONCE = 17;
const int64_t MOST_SUMS = AT_ONCE * THREADS;
/* Packs of a tile, at least, where there are several tiles: 128 bytes of a pixel. */
const int LEAST_WIDTH = 8;
/* And a multiple of this, if few threads are idle then: memory is read in units of 64 bytes. */
const int WHOLE_WIDTH = 4;
/* One launch is chosen if at least one of so many pixels can be kept: forward, backward; 0: never. Backward shares
 * the device with weight gradients, and blocks that wait for each other would wait for these too. */
const int KEPT_ONE_OF[] = {8, 8};

struct once {
    ki_channel_grid g; /* g.chunk: the pixels from one group to the next */
    int n_groups;      /* of the block that has the most */
    int n_kept;        /* of them in shared memory */
    size_t shared_bytes;
};

/* The tiles that give the busiest block the least work. False: the channels need more blocks than there are
 * processors, or the number of pixels is too large for an int with some reserve. */
bool lay_out(int64_t n, int64_t packs, int v, int n_processors, once *ret) {
    *ret = {};
    if (n > 1 << 30) return false;
    int64_t least = 0;
    for (int tiles = 1; tiles <= n_processors && tiles <= packs; tiles++) {
        ki_channel_grid g = {};
        g.n = n;
        g.packs = (int)packs;
        g.width = (int)((packs + tiles - 1) / tiles);
        const int whole = (g.width + WHOLE_WIDTH - 1) / WHOLE_WIDTH * WHOLE_WIDTH;
        if (tiles > 1 && 16 * whole * tiles <= 17 * packs) g.width = whole;
        g.tiles = (int)((packs + g.width - 1) / g.width);
        if (g.width * v > THREADS || g.tiles != tiles) continue;
        if (ret->n_groups && g.width < LEAST_WIDTH) break;
        g.rows = THREADS / g.width;
        g.chunk = g.rows;
        const int64_t groups = (n + g.rows - 1) / g.rows, blocks = n_processors / tiles;
        g.chunks = (int)(groups < blocks ? groups : blocks);
        const int n_groups = (int)((groups + g.chunks - 1) / g.chunks);
        const bool had_too_many = (int64_t)ret->g.chunks * ret->g.width * v > MOST_SUMS;
        /* Tiles that are not complete are slower by about a tenth; narrow tiles are a little slower, too. */
        const int64_t time = (int64_t)n_groups * (g.width % WHOLE_WIDTH ? 11 : 10);
        if (ret->n_groups && !had_too_many && 32 * time >= 31 * least) continue;
        least = time;
        ret->g = g;
        ret->n_groups = n_groups;
    }
    return ret->n_groups > 0;
}

/* Memory after the kept pixels: the sums over rows, later the doubles for combining and two results per
 * channel. */
size_t room_bytes(const ki_channel_grid &g, int v) {
    const size_t rows = ki_channel_room(g, 2, v);
    const size_t combine = THREADS * sizeof(double) + (size_t)(2 * g.width * v) * sizeof(float);
    return rows > combine ? rows : combine;
}

/* Makes the layout, with as many groups of n_maps maps in shared memory as fit. */
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

/* Pixels of block b: all have `whole` groups, those up to `last` one more, and the last group may be short. */
struct shares {
    int rows, whole, last, missing;
    __device__ __forceinline__ int operator()(int b) const {
        return (whole + (b <= last)) * rows - (b == last ? missing : 0);
    }
};
__device__ __forceinline__ shares shares_of(const ki_channel_grid &g) {
    const int groups = ((int)g.n + g.rows - 1) / g.rows, whole = (groups - 1) / g.chunks;
    return {g.rows, whole, groups - 1 - whole * g.chunks, groups * g.rows - (int)g.n};
}

/* The values as they are in memory. ONCE: the cache need not keep them. */
template <bool ONCE, typename T, int V>
__device__ __forceinline__ void load(const T *from, ki_raw<T, V> *raw) {
    if constexpr (V == 1 || !ONCE) {
        raw->load(from);
    } else {
        const uint4 words = __ldcs(reinterpret_cast<const uint4 *>(from));
        raw->pack.bits.word[0] = words.x, raw->pack.bits.word[1] = words.y;
        raw->pack.bits.word[2] = words.z, raw->pack.bits.word[3] = words.w;
    }
}
template <bool ONCE, typename T, int V>
__device__ __forceinline__ void store(T *to, const ki_raw<T, V> &raw) {
    if constexpr (V == 1) {
        *to = raw.one;
    } else if constexpr (ONCE) {
        const uint32_t *word = raw.pack.bits.word;
        __stcs(reinterpret_cast<uint4 *>(to), make_uint4(word[0], word[1], word[2], word[3]));
    } else {
        ki_pack_store(to, raw.pack);
    }
}
template <typename T, int V>
__device__ __forceinline__ ki_raw<T, V> raw_of(const ki_floats<T, V> &x) {
    ki_raw<T, V> raw;
    if constexpr (V == 1)
        raw.one = from_float<T>(x.v[0]);
    else
        ki_repack(x.v, &raw.pack);
    return raw;
}

/* The results of a block for the channels of its tile, [2, width * V], in shared memory after the doubles. */
__device__ __forceinline__ float *results_in(float *room) { return room + 2 * THREADS; }

/* Does this thread store the results of its channel? The block that has the least work does it. */
__device__ __forceinline__ bool saves(const ki_channel_finish &f) {
    return blockIdx.x == gridDim.x - 1 && f.channel >= 0 && f.slice == 0;
}

/* Each of these functions is one pass of the thread over its pixels, channel by channel. KEPT says over which
 * part: the pixels from w.n_again on, which are in shared memory (a plane of THREADS values for each), or those
 * before. */

/* From the last of the part's pixels to the first: sums of x - k and its square. */
template <bool KEPT, typename T, int V>
__device__ __forceinline__ void add_stats(const bn_args &a, const walk &w, const T *src,
                                          const ki_floats<T, V> &k, ki_raw<T, V> *kept, float (&sum)[2][V]) {
    const int N_LOADS = 2 * EACH, begin = KEPT ? w.n_again : 0;
    const int64_t step = w.step * a.src_pitch;
    int left = (KEPT ? w.count : w.n_again) - begin;
    const T *end = src + (begin + left) * step;
    for (; left > 0; left -= N_LOADS, end -= N_LOADS * step) {
        ki_raw<T, V> raw[N_LOADS];
#pragma unroll
        for (int e = 0; e < N_LOADS; e++) {
            if (e < left) load<KEPT>(end - (e + 1) * step, &raw[e]);
        }
#pragma unroll
        for (int e = 0; e < N_LOADS; e++) {
            if (e >= left) continue;
            if (KEPT) kept[(left - 1 - e) * THREADS] = raw[e];
            const ki_floats<T, V> x = raw[e].get();
#pragma unroll
            for (int v = 0; v < V; v++) {
                const float d = x.v[v] - k.v[v];
                sum[0][v] += d;
                sum[1][v] = fmaf(d, d, sum[1][v]);
            }
        }
    }
}

/* From the first of the part's pixels to the last. */
template <bool KEPT, bool RELU, bool ADD, typename T, int V>
__device__ __forceinline__ void normalise(const bn_args &a, const walk &w, int pack, const T *src,
                                          const ki_raw<T, V> *kept, const float (&mean)[V],
                                          const float (&scale)[V], const float (&beta)[V]) {
    const int N_LOADS = ADD ? EACH : 2 * EACH, begin = KEPT ? w.n_again : 0;
    const int64_t src_step = w.step * a.src_pitch, dst_step = w.step * a.dst_pitch,
                  other_step = w.step * a.other_pitch;
    const int64_t first = w.first + (int64_t)begin * w.step;
    T *dst = static_cast<T *>(a.dst) + pack * V + first * a.dst_pitch;
    const T *other = ADD ? static_cast<const T *>(a.other) + pack * V + first * a.other_pitch : nullptr;
    for (int left = (KEPT ? w.count : w.n_again) - begin; left > 0; left -= N_LOADS) {
        ki_raw<T, V> raw[N_LOADS], more[N_LOADS];
#pragma unroll
        for (int e = 0; e < N_LOADS; e++) {
            if (e >= left) continue;
            if (ADD) load<true>(other + e * other_step, &more[e]);
            if (KEPT)
                raw[e] = kept[e * THREADS];
            else
                load<true>(src + e * src_step, &raw[e]);
        }
#pragma unroll
        for (int e = 0; e < N_LOADS; e++) {
            if (e >= left) continue;
            ki_floats<T, V> x = raw[e].get();
#pragma unroll
            for (int v = 0; v < V; v++) x.v[v] = norm(x.v[v], mean[v], scale[v], beta[v]);
            if (ADD) {
                const ki_floats<T, V> add = more[e].get();
#pragma unroll
                for (int v = 0; v < V; v++) x.v[v] += add.v[v];
            }
#pragma unroll
            for (int v = 0; v < V; v++) x.v[v] = RELU && !(x.v[v] > 0) ? 0 : x.v[v];
            store<!KEPT>(dst + e * dst_step, raw_of(x));
        }
        if (ADD) other += N_LOADS * other_step;
        kept += N_LOADS * THREADS;
        src += N_LOADS * src_step;
        dst += N_LOADS * dst_step;
    }
}

template <typename T, int V, bool RELU, bool ADD>
__global__ void __launch_bounds__(THREADS, 1) bn_forward_once(bn_args a, ki_channel_grid g, int n_kept) {
    KI_SHARED(unsigned char, memory);
    typedef ki_raw<T, V> raw;
    raw *kept = reinterpret_cast<raw *>(memory) + threadIdx.x;
    float *room = reinterpret_cast<float *>(memory + (size_t)n_kept * THREADS * sizeof(raw));
    const ki_channel_here h = ki_channel_at(g, blockIdx.x);
    const walk w = walk_of(g, h, n_kept);
    const int c = g.packs * V, channels = g.width * V;
    const T *src = static_cast<const T *>(a.src) + h.pack * V + w.first * a.src_pitch;

    ki_floats<T, V> k = {};
    float sum[2][V] = {};
    if (h.is_on) k.load(src - h.row * a.src_pitch);
    add_stats<true>(a, w, src, k, kept, sum);
    add_stats<false>(a, w, src, k, kept, sum);
    ki_channel_sum_rows<2, V>(g, h, sum, room);
    if (h.is_on && h.row == 0) {
        const float n = (float)shares_of(g)((int)blockIdx.x);
        float *to = a.partial + (int64_t)blockIdx.x * 2 * c + h.pack * V;
#pragma unroll
        for (int v = 0; v < V; v++) {
            to[v] = k.v[v] + sum[0][v] / n;
            to[c + v] = fmaxf(sum[1][v] - sum[0][v] * sum[0][v] / n, 0.0f);
        }
    }

    /* Loads that do not depend on other blocks are in flight while the block waits for the others. */
    float mean[V] = {}, scale[V] = {}, beta[V] = {};
    if (h.is_on) {
        load_channels<V>(a.gamma, h.pack, scale);
        load_channels<V>(a.beta, h.pack, beta);
    }
    ki_channel_meet(a.counters + blockIdx.y, gridDim.x);
    float *stats = results_in(room);
    const ki_channel_finish f = ki_channel_finish_at(g, V);
    double all_mean, squares;
    combine_stats<V, AT_ONCE>(a, g, f, shares_of(g), reinterpret_cast<double *>(room), &all_mean, &squares);
    if (f.channel >= 0 && f.slice == 0) {
        stats[f.in_tile] = (float)all_mean;
        stats[channels + f.in_tile] = istd_of(a, squares, (double)g.n);
    }
    __syncthreads();
    if (saves(f)) save_stats(a, c, f.channel, (double)g.n, all_mean, squares);
    if (!h.is_on) return;

#pragma unroll
    for (int v = 0; v < V; v++) {
        mean[v] = stats[h.in_tile * V + v];
        scale[v] *= stats[channels + h.in_tile * V + v];
    }
    normalise<false, RELU, ADD>(a, w, h.pack, src, kept, mean, scale, beta);
    normalise<true, RELU, ADD>(a, w, h.pack, src, kept, mean, scale, beta);
}

/* The channels of a thread in backward. */
template <int V>
struct channels_of {
    float mean[V], istd[V], scale[V], beta[V], shift[V], slope[V];
};

/* From the last of the part's pixels to the first: sums of the gradient and of gradient * (x - mean). N == 0: the
 * gradient is diff_dst, and what ReLU let through is computed from src. Otherwise N parts become one, kept where
 * dst > 0 (RELU), which goes to diff_other too. */
template <bool KEPT, int N, bool RELU, typename T, int V>
__device__ __forceinline__ void add_sums(const bn_args &a, const walk &w, int pack, const channels_of<V> &is,
                                         ki_raw<T, V> *kept_x, ki_raw<T, V> *kept_d, float (&sum)[2][V]) {
    const bool JOIN = N > 0;
    const int N_PARTS = N + (JOIN ? 0 : 1), N_LOADS = JOIN ? EACH / 2 : EACH, begin = KEPT ? w.n_again : 0;
    const int64_t src_step = w.step * a.src_pitch, part_step = w.step * a.dst_pitch,
                  other_step = w.step * a.other_pitch;
    int left = (KEPT ? w.count : w.n_again) - begin;
    const int64_t end = w.first + (int64_t)(begin + left) * w.step;
    const T *src = static_cast<const T *>(a.src) + pack * V + end * a.src_pitch;
    T *joined = JOIN ? static_cast<T *>(a.diff_other) + pack * V + end * a.other_pitch : nullptr;
    int64_t at = pack * V + end * a.dst_pitch;
    for (; left > 0; left -= N_LOADS) {
        ki_raw<T, V> raw[N_LOADS], part[N_LOADS][N_PARTS], mask[N_LOADS];
#pragma unroll
        for (int e = 0; e < N_LOADS; e++) {
            if (e >= left) continue;
            load<KEPT>(src - (e + 1) * src_step, &raw[e]);
#pragma unroll
            for (int p = 0; p < N_PARTS; p++)
                load<KEPT || JOIN>(static_cast<const T *>(a.part[p]) + at - (e + 1) * part_step, &part[e][p]);
            if (JOIN && RELU) load<true>(static_cast<const T *>(a.dst) + at - (e + 1) * part_step, &mask[e]);
        }
#pragma unroll
        for (int e = 0; e < N_LOADS; e++) {
            if (e >= left) continue;
            const ki_floats<T, V> x = raw[e].get();
            ki_floats<T, V> d = part[e][0].get();
#pragma unroll
            for (int p = 1; p < N_PARTS; p++) {
                const ki_floats<T, V> more = part[e][p].get();
#pragma unroll
                for (int v = 0; v < V; v++) d.v[v] += more.v[v];
            }
            if (JOIN && RELU) {
                const ki_floats<T, V> y = mask[e].get();
#pragma unroll
                for (int v = 0; v < V; v++) d.v[v] = y.v[v] > 0 ? d.v[v] : 0;
            }
            if (JOIN) {
                part[e][0] = raw_of(d);
                store<false>(joined - (e + 1) * other_step, part[e][0]);
            }
            if (KEPT) {
                kept_x[(left - 1 - e) * THREADS] = raw[e];
                kept_d[(left - 1 - e) * THREADS] = part[e][0];
            }
#pragma unroll
            for (int v = 0; v < V; v++) {
                const bool is_cut = RELU && !JOIN && !(norm(x.v[v], is.mean[v], is.scale[v], is.beta[v]) > 0);
                const float y = is_cut ? 0 : d.v[v];
                sum[0][v] += y;
                sum[1][v] = fmaf(y, x.v[v] - is.mean[v], sum[1][v]);
            }
        }
        src -= N_LOADS * src_step;
        at -= N_LOADS * part_step;
        if (JOIN) joined -= N_LOADS * other_step;
    }
}

/* From the first of the part's pixels to the last: diff_src. CUT: the ReLU has not been applied yet. */
template <bool KEPT, bool CUT, typename T, int V>
__device__ __forceinline__ void apply(const bn_args &a, const walk &w, int pack, const channels_of<V> &is,
                                      const ki_raw<T, V> *kept_x, const ki_raw<T, V> *kept_d) {
    const int begin = KEPT ? w.n_again : 0;
    const int64_t src_step = w.step * a.src_pitch, diff_step = w.step * a.diff_pitch;
    const int64_t first = w.first + (int64_t)begin * w.step;
    const T *src = static_cast<const T *>(a.src) + pack * V + first * a.src_pitch;
    const T *diff = static_cast<const T *>(a.diff_dst) + pack * V + first * a.diff_pitch;
    T *to = static_cast<T *>(a.diff_src) + pack * V + first * a.src_pitch;
    for (int left = (KEPT ? w.count : w.n_again) - begin; left > 0; left -= EACH) {
        ki_raw<T, V> raw_x[EACH], raw_d[EACH];
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            if (e >= left) continue;
            if (KEPT) {
                raw_x[e] = kept_x[e * THREADS];
                raw_d[e] = kept_d[e * THREADS];
            } else {
                load<true>(src + e * src_step, &raw_x[e]);
                load<true>(diff + e * diff_step, &raw_d[e]);
            }
        }
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            if (e >= left) continue;
            const ki_floats<T, V> x = raw_x[e].get();
            ki_floats<T, V> d = raw_d[e].get();
#pragma unroll
            for (int v = 0; v < V; v++) {
                const bool is_cut = CUT && !(norm(x.v[v], is.mean[v], is.scale[v], is.beta[v]) > 0);
                const float y = is_cut ? 0 : d.v[v];
                d.v[v] = is.scale[v] * (y - is.shift[v] - (x.v[v] - is.mean[v]) * is.slope[v]);
            }
            store<!KEPT>(to + e * src_step, raw_of(d));
        }
        kept_x += EACH * THREADS;
        kept_d += EACH * THREADS;
        src += EACH * src_step;
        to += EACH * src_step;
        diff += EACH * diff_step;
    }
}

template <typename T, int V, int N, bool RELU>
__global__ void __launch_bounds__(THREADS, 1) bn_backward_once(bn_args a, ki_channel_grid g, int n_kept) {
    KI_SHARED(unsigned char, memory);
    typedef ki_raw<T, V> raw;
    raw *kept_x = reinterpret_cast<raw *>(memory) + threadIdx.x;
    raw *kept_d = kept_x + (size_t)n_kept * THREADS;
    float *room = reinterpret_cast<float *>(memory + (size_t)(2 * n_kept) * THREADS * sizeof(raw));
    const ki_channel_here h = ki_channel_at(g, blockIdx.x);
    const walk w = walk_of(g, h, n_kept);
    const int c = g.packs * V, channels = g.width * V;

    float sum[2][V] = {};
    channels_of<V> is = {};
    if (h.is_on) load_norm<V, false>(a, g, h.pack, is.mean, is.istd, is.scale, is.beta);
    add_sums<true, N, RELU>(a, w, h.pack, is, kept_x, kept_d, sum);
    add_sums<false, N, RELU>(a, w, h.pack, is, kept_x, kept_d, sum);
    ki_channel_sum_rows<2, V>(g, h, sum, room);
    if (h.is_on && h.row == 0) {
        float *to = a.partial + (int64_t)blockIdx.x * 2 * c + h.pack * V;
#pragma unroll
        for (int v = 0; v < V; v++) {
            to[v] = sum[0][v];
            to[c + v] = sum[1][v];
        }
    }

    const ki_channel_finish f = ki_channel_finish_at(g, V);
    const double istd = f.channel >= 0 ? (double)a.saved[c + f.channel] : 0;
    ki_channel_meet(a.counters + blockIdx.y, gridDim.x);
    float *subtract = results_in(room);
    double diff, diff_off;
    combine_sums<V, AT_ONCE>(a, g, f, reinterpret_cast<double *>(room), &diff, &diff_off);
    if (f.channel >= 0 && f.slice == 0) {
        subtract[f.in_tile] = (float)(diff / (double)g.n);
        subtract[channels + f.in_tile] = (float)(diff_off * istd * istd / (double)g.n);
    }
    __syncthreads();
    if (saves(f)) save_sums(a, f.channel, diff, diff_off * istd);
    if (!h.is_on) return;

#pragma unroll
    for (int v = 0; v < V; v++) {
        is.shift[v] = subtract[h.in_tile * V + v];
        is.slope[v] = subtract[channels + h.in_tile * V + v];
    }
    apply<false, RELU && N == 0>(a, w, h.pack, is, kept_x, kept_d);
    apply<true, RELU && N == 0>(a, w, h.pack, is, kept_x, kept_d);
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

template <typename T, int V>
cudaError_t launch(cudaStream_t stream, const ki_cuda_bn_args *bn, bool is_backward, const once &o) {
    return is_backward ? backward<T, V>(stream, bn, o) : forward<T, V>(stream, bn, o);
}

template <typename T>
cudaError_t launch_of(cudaStream_t stream, const ki_cuda_bn_args *bn, bool is_backward, const once &o) {
    return is_wide<T>(bn) ? launch<T, ki_pack<T>::N>(stream, bn, is_backward, o)
                          : launch<T, 1>(stream, bn, is_backward, o);
}

} // namespace

/* The only place that chooses. One launch saves a launch, a wait, and reading the kept pixels a second time. But if a
 * map is far too large for the chip, this is not worth blocks that cannot share their processors with other work. */
bool ki_cuda_bn_is_once(const ki_cuda_bn_args *bn, bool is_backward) {
    once o;
    if (bn->way == KI_CUDA_BN_TWICE || bn->half != KI_CUDA_BN_WHOLE || bn->is_frozen ||
        (is_backward && !bn->diff_src) || !plan(bn, is_backward, &o))
        return false;
    return bn->way == KI_CUDA_BN_ONCE || (int64_t)KEPT_ONE_OF[is_backward] * o.n_kept >= o.n_groups;
}

extern "C" double ki_cuda_bn_kept(const ki_cuda_bn_args *bn, bool is_backward) {
    once o;
    return !bn->is_frozen && plan(bn, is_backward, &o) ? (double)o.n_kept / (double)o.n_groups : 0;
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

cudaError_t ki_cuda_bn_once(cudaStream_t stream, const ki_cuda_bn_args *bn, bool is_backward) {
    once o;
    if (!plan(bn, is_backward, &o)) return cudaErrorNotSupported;
    return bn->is_bf16 ? launch_of<ki_bf16>(stream, bn, is_backward, o)
                       : launch_of<float>(stream, bn, is_backward, o);
}
