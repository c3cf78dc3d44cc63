/* Work per channel of a map: a thread keeps V channels (a pack) and loops over pixels, so the values of a
 * channel stay in registers. A block is `rows` pixels by `width` packs; the grid is (chunks of pixels, tiles of
 * packs). Sums are made in three fixed steps: a thread sums over its pixels, a block over its rows (shared
 * memory), and the last block of a tile to finish, or all of them after waiting for each other, over the
 * chunks. */
#ifndef KI_CUDA_CHANNELS_CUH
#define KI_CUDA_CHANNELS_CUH

#include "backend/cuda/number.cuh"

enum { KI_CHANNEL_THREADS = 512, KI_CHANNEL_EACH = 4 };

struct ki_channel_grid {
    int64_t n;     /* pixels */
    int64_t chunk; /* pixels of a block */
    int packs, width, rows, tiles, chunks;
};

/* About n_blocks blocks, with at least 8 pixels per thread if there are enough pixels. */
static inline ki_channel_grid ki_channel_grid_of(int64_t n, int64_t packs, int n_blocks) {
    ki_channel_grid g = {};
    g.n = n;
    g.packs = (int)packs;
    g.tiles = (int)((packs + 31) / 32);
    g.width = (int)((packs + g.tiles - 1) / g.tiles);
    g.rows = KI_CHANNEL_THREADS / g.width;
    const int64_t step = (int64_t)g.rows * KI_CHANNEL_EACH, n_steps = (n + step - 1) / step;
    const int64_t wanted = n_blocks > g.tiles ? n_blocks / g.tiles : 1;
    int64_t each = (n_steps + wanted - 1) / wanted;
    if (each < 2) each = 2;
    g.chunk = each * step;
    g.chunks = (int)((n + g.chunk - 1) / g.chunk);
    return g;
}

/* The position of the running thread. */
struct ki_channel_here {
    int row, pack, in_tile; /* in_tile: pack within the tile */
    bool is_on;
    int64_t begin, end; /* pixels of the block */
};

static __device__ __forceinline__ ki_channel_here ki_channel_at(const ki_channel_grid &g, unsigned chunk) {
    ki_channel_here h;
    h.row = (int)threadIdx.x / g.width;
    h.in_tile = (int)threadIdx.x - h.row * g.width;
    h.pack = (int)blockIdx.y * g.width + h.in_tile;
    h.is_on = h.row < g.rows && h.pack < g.packs;
    h.begin = (int64_t)chunk * g.chunk;
    h.end = h.begin + g.chunk < g.n ? h.begin + g.chunk : g.n;
    return h;
}

/* Adds up sum[K][V] over the rows of a block, in the order of a fixed tree; row 0 has the result. `room` is shared
 * memory of ki_channel_room bytes, enough for half of the rows: the other half only reads what these wrote. All
 * threads must call this. */
static inline size_t ki_channel_room(const ki_channel_grid &g, int k, int v) {
    return (size_t)((g.rows + 1) / 2 * g.width * k * v) * sizeof(float);
}
template <int K, int V>
static __device__ __forceinline__ void ki_channel_sum_rows(const ki_channel_grid &g, const ki_channel_here &h,
                                                           float (&sum)[K][V], float *room) {
    /* Value by value in planes, so that the threads of a warp touch neighbouring words. */
    const int first = (g.rows + 1) / 2, plane = first * g.width;
    const bool is_upper = h.row >= first;
    float *mine = room + (is_upper ? h.row - first : h.row) * g.width + h.in_tile;
    if (h.is_on && is_upper) {
#pragma unroll
        for (int k = 0; k < K; k++) {
#pragma unroll
            for (int i = 0; i < V; i++) mine[(k * V + i) * plane] = sum[k][i];
        }
    }
    for (int live = g.rows, half = first; live > 1; live = half, half = (live + 1) / 2) {
        __syncthreads();
        const bool is_first = live == g.rows;
        if (!h.is_on || h.row >= half) continue;
        /* In the first round the values of a row's partner are in the row's own place. */
        const float *other = is_first ? mine : mine + half * g.width;
        const bool has_other = h.row + half < live;
#pragma unroll
        for (int k = 0; k < K; k++) {
#pragma unroll
            for (int i = 0; i < V; i++) {
                if (has_other) sum[k][i] += other[(k * V + i) * plane];
                if (has_other || is_first) mine[(k * V + i) * plane] = sum[k][i];
            }
        }
    }
}

/* Is this the last block of its tile to come here? Then everything the others wrote before is visible. The
 * counter is zero before and after. All threads must call this. */
static __device__ __forceinline__ bool ki_channel_is_last(unsigned *counter, unsigned n) {
    KI_SHARED_ARRAY(unsigned, is_last, 1);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        is_last[0] = atomicAdd(counter, 1u) == n - 1;
        if (is_last[0]) *counter = 0;
    }
    __syncthreads();
    const bool yes = is_last[0] != 0;
    if (yes) __threadfence();
    return yes;
}

/* The n blocks of a tile wait for each other. Afterwards __ldcg reads everything they wrote before. The counter is
 * zero before and after the kernel, which must be launched together. A kernel may come here once per counter, or
 * again after its blocks have waited at another counter. All threads must call this. */
static __device__ __forceinline__ void ki_channel_meet(unsigned *counter, unsigned n) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        /* n blocks arrive, then n leave: the last one's increment wraps around to zero. */
        atomicInc(counter, 2 * n - 1);
        while (*static_cast<volatile unsigned *>(counter) < n) KI_SPIN();
        atomicInc(counter, 2 * n - 1);
        __threadfence();
    }
    __syncthreads();
}

/* In a block that finishes a tile, threads share the tile's channels. `channel` is the thread's channel (-1:
 * none); of the `n_slices` threads with the same channel this is number `slice`. */
struct ki_channel_finish {
    int in_tile, channel, slice, n_slices;
};
static __device__ __forceinline__ ki_channel_finish ki_channel_finish_at(const ki_channel_grid &g, int v) {
    ki_channel_finish f;
    const int width = g.width * v;
    f.n_slices = (int)blockDim.x / width;
    f.slice = (int)threadIdx.x / width;
    f.in_tile = (int)threadIdx.x - f.slice * width;
    f.channel = (int)blockIdx.y * width + f.in_tile;
    if (f.slice >= f.n_slices || f.channel >= g.packs * v) f.channel = -1;
    return f;
}
/* Sum over the slices, in every thread that has a channel. `room` is KI_CHANNEL_THREADS doubles. All threads must
 * call this. */
static __device__ __forceinline__ double ki_channel_sum_slices(const ki_channel_grid &g,
                                                               const ki_channel_finish &f, int v, double x,
                                                               double *room) {
    const int width = g.width * v;
    __syncthreads();
    if (f.channel >= 0) room[f.slice * width + f.in_tile] = x;
    __syncthreads();
    double sum = 0;
    if (f.channel >= 0) {
        for (int s = 0; s < f.n_slices; s++) sum += room[s * width + f.in_tile];
    }
    return sum;
}

/* K sums over the chunks' partial results [chunks, K, c] of the thread's channel: the loads of AT_ONCE chunks
 * are in flight at a time. `add(values, chunk)` gets the result of one chunk. */
template <int K, int AT_ONCE, typename Add>
static __device__ __forceinline__ void ki_channel_over_chunks(const ki_channel_grid &g,
                                                              const ki_channel_finish &f,
                                                              const float *partial, int c, Add add) {
    if (f.channel < 0) return;
    for (int from = f.slice; from < g.chunks; from += AT_ONCE * f.n_slices) {
        float value[AT_ONCE][K];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const int b = from + u * f.n_slices, there = b < g.chunks ? b : from;
#pragma unroll
            for (int k = 0; k < K; k++)
                value[u][k] = __ldcg(partial + ((int64_t)there * K + k) * c + f.channel);
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const int b = from + u * f.n_slices;
            if (b < g.chunks) add(value[u], b);
        }
    }
}

#endif
