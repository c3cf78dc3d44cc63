/* Weights between the masters' order [oc, ic, kh, kw] and the packed one [oc, kh, kw, ic], for all
 * convolutions of a network in one launch: they are many and small, and one launch each would cost more than
 * the copying. A block takes a few output channels, reads them in the order of its source, reorders them in
 * shared memory, and writes them in the order of its destination. So both reads and writes are contiguous.
 *
 * Weights of 1x1, which most are in a transformer, have the same order in both. A block takes more of them, and copies them as they are. */
#include "backend/cuda/conv/kernels.h"
#include "backend/cuda/number.cuh"

enum { TILE = 4096, PLAIN_TILE = 8192, THREADS = 256 };

/* Is the order of masters and packed weights the same, and a row of them no more than a block takes? */
static __host__ __device__ bool is_plain(const ki_pack_form &f) {
    return f.kh == 1 && f.kw == 1 && f.fold == 1 && f.packed_kw == 1 && f.packed_ic == f.ic &&
           f.ic <= PLAIN_TILE;
}

extern "C" bool ki_pack_tile(const ki_pack_form *form, ki_pack_tiling *ret_tiling) {
    const int area = form->kh * form->kw;
    if (area > TILE) return false;
    int chunk_c = form->packed_ic, n_o = 1;
    if (is_plain(*form)) {
        n_o = PLAIN_TILE / form->ic;
        if (n_o > form->oc) n_o = form->oc;
    } else if (form->ic * area > TILE) {
        if (form->fold != 1 || form->packed_ic != form->ic) return false;
        chunk_c = TILE / area >= 8 ? TILE / area / 8 * 8 : TILE / area;
    } else {
        n_o = 1024 / (form->ic * area); /* as many as give each thread a few numbers */
        if (n_o < 1) n_o = 1;
        if (n_o > form->oc) n_o = form->oc;
    }
    ret_tiling->n_o = n_o;
    ret_tiling->chunk_c = chunk_c;
    ret_tiling->n_chunks = (form->packed_ic + chunk_c - 1) / chunk_c;
    ret_tiling->n_blocks = (form->oc + n_o - 1) / n_o * ret_tiling->n_chunks;
    return true;
}

/* Which item a block works for: the last that begins at or before it. */
template <typename Item>
static __device__ int item_of(const Item *items, int n_items, int block) {
    int low = 0, high = n_items - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (items[middle].first_block <= block)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* The place in the tile, in the masters' order, of a packed place; -1 for one that is only padding. */
static __device__ int master_at(const ki_pack_form &f, int c0, int n_c, int place, int ch) {
    const int y = place / f.packed_kw, sub = ch / f.step;
    const int x = place % f.packed_kw * f.fold + sub - f.shift, c = ch - sub * f.step - c0;
    return x >= 0 && x < f.kw && c < n_c ? (c * f.kh + y) * f.kw + x : -1;
}

/* The part of a block: output channels from o0, channels from c0. */
struct tile_range {
    int o0, n_o, c0, n_c, n_packed_c;
};

static __device__ tile_range range_of(const ki_pack_form &f, const ki_pack_tiling &t, int block) {
    tile_range r;
    r.o0 = block / t.n_chunks * t.n_o;
    r.n_o = min(t.n_o, f.oc - r.o0);
    r.c0 = block % t.n_chunks * t.chunk_c;
    r.n_packed_c = min(t.chunk_c, f.packed_ic - r.c0);
    r.n_c = min(f.ic - r.c0, t.chunk_c);
    return r;
}

template <typename T>
static __device__ void pack_plain(const ki_pack_item &item, const tile_range &r) {
    const int N = ki_pack<T>::N, ic = item.form.ic, n = r.n_o * ic;
    const float *from = item.weights + (int64_t)r.o0 * ic;
    T *to = (T *)item.packed + (int64_t)r.o0 * ic;
    if (!item.gamma && n % N == 0 && (uintptr_t)from % 16 == 0 && (uintptr_t)to % 16 == 0) {
#pragma unroll 2
        for (int i = (int)threadIdx.x * N; i < n; i += THREADS * N) {
            ki_floats<T, ki_pack<T>::N> x;
#pragma unroll
            for (int k = 0; k < N; k += 4) ki_unpack(ki_pack_load(from + i + k), x.v + k);
            x.store(to + i);
        }
        return;
    }
    for (int i = (int)threadIdx.x; i < n; i += THREADS) {
        const int o = r.o0 + i / ic;
        to[i] =
            from_float<T>(item.gamma ? from[i] * (item.gamma[o] / sqrtf(item.var[o] + item.eps)) : from[i]);
    }
}

template <typename T>
static __device__ void pack_bias(const ki_pack_item &item, const tile_range &r) {
    if (r.c0 != 0 || !item.packed_bias) return;
    for (int i = (int)threadIdx.x; i < r.n_o; i += THREADS) {
        const int o = r.o0 + i;
        float bias = item.bias ? item.bias[o] : 0;
        if (item.gamma)
            bias = item.gamma[o] / sqrtf(item.var[o] + item.eps) * (bias - item.mean[o]) + item.beta[o];
        item.packed_bias[o] = bias;
        ((T *)item.stored_bias)[o] = from_float<T>(bias);
    }
}

template <typename T>
static __global__ void pack_kernel(const ki_pack_item *items, int n_items) {
    KI_SHARED_ARRAY(float, tile, TILE);
    KI_SHARED_ARRAY(ki_pack_item, shared_item, 1);
    if (threadIdx.x == 0) shared_item[0] = items[item_of(items, n_items, (int)blockIdx.x)];
    __syncthreads();
    const ki_pack_item &item = shared_item[0];
    const ki_pack_form f = item.form;
    const tile_range r = range_of(f, item.tiling, (int)blockIdx.x - item.first_block);
    pack_bias<T>(item, r);
    if (is_plain(f)) {
        pack_plain<T>(item, r);
        return;
    }
    const int area = f.kh * f.kw, n_each = r.n_c * area, n_places = f.kh * f.packed_kw;
    const float *from = item.weights + ((int64_t)r.o0 * f.ic + r.c0) * area;
    /* Several output channels are always complete and adjacent; a single one may be a part. */
    for (int i = (int)threadIdx.x; i < r.n_o * n_each; i += THREADS) {
        float scale = 1;
        if (item.gamma) {
            const int o = r.o0 + i / n_each;
            scale = item.gamma[o] / sqrtf(item.var[o] + item.eps);
        }
        tile[i] = from[i] * scale;
    }
    __syncthreads();
    const int n_row = n_places * r.n_packed_c;
    for (int i = (int)threadIdx.x; i < r.n_o * n_row; i += THREADS) {
        const int o = i / n_row, in_row = i - o * n_row;
        const int place = in_row / r.n_packed_c, ch = r.c0 + in_row - place * r.n_packed_c;
        const int at = master_at(f, r.c0, r.n_c, place, ch);
        T *to = (T *)item.packed + ((int64_t)(r.o0 + o) * n_places + place) * f.packed_ic + ch;
        *to = from_float<T>(at < 0 ? 0.0f : tile[o * n_each + at]);
    }
}

/* A warp's lanes are channels; eight warps share the rows of sums, which are added up in a fixed order. */
static __device__ void unpack_bias(const ki_unpack_item &item, int block, float *room) {
    const int n = item.form.oc, lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int o = (block - item.first_block) * KI_UNPACK_BIAS_BLOCK + lane;
    float sum = 0;
    if (o < n) {
        const float *sums = (const float *)item.packed + o;
#pragma unroll 8
        for (int i = warp; i < item.n_runs; i += THREADS / 32) sum += sums[(int64_t)i * n];
    }
    room[threadIdx.x] = sum;
    __syncthreads();
    if (warp != 0 || o >= n) return;
    float total = 0;
    for (int i = 0; i < THREADS / 32; i++) total += room[i * 32 + lane];
    item.diff[o] += total;
}

static __global__ void unpack_kernel(const ki_unpack_item *items, int n_items, int first_block) {
    KI_SHARED_ARRAY(float, tile, TILE);
    KI_SHARED_ARRAY(ki_unpack_item, shared_item, 1);
    const int block = first_block + (int)blockIdx.x;
    if (threadIdx.x == 0) shared_item[0] = items[item_of(items, n_items, block)];
    __syncthreads();
    const ki_unpack_item &item = shared_item[0];
    if (item.is_bias) {
        unpack_bias(item, block, tile);
        return;
    }
    const ki_pack_form f = item.form;
    const tile_range r = range_of(f, item.tiling, block - item.first_block);
    const int area = f.kh * f.kw, n_each = r.n_c * area, n_places = f.kh * f.packed_kw,
              n_row = n_places * r.n_packed_c;
    float *to = item.diff + ((int64_t)r.o0 * f.ic + r.c0) * area;
    if (is_plain(f)) {
        const int64_t first = (int64_t)r.o0 * f.ic;
        for (int i = (int)threadIdx.x; i < r.n_o * f.ic; i += THREADS)
            to[i] += item.is_bf16 ? to_float(((const ki_bf16 *)item.packed)[first + i])
                                  : ((const float *)item.packed)[first + i];
        return;
    }
    for (int i = (int)threadIdx.x; i < r.n_o * n_row; i += THREADS) {
        const int o = i / n_row, in_row = i - o * n_row;
        const int place = in_row / r.n_packed_c, ch = r.c0 + in_row - place * r.n_packed_c;
        const int at = master_at(f, r.c0, r.n_c, place, ch);
        if (at < 0) continue;
        const int64_t from = ((int64_t)(r.o0 + o) * n_places + place) * f.packed_ic + ch;
        tile[o * n_each + at] = item.is_bf16 ? to_float(((const ki_bf16 *)item.packed)[from])
                                             : ((const float *)item.packed)[from];
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < r.n_o * n_each; i += THREADS) to[i] += tile[i];
}

extern "C" cudaError_t ki_cuda_pack(const ki_pack_item *items, int n_items, int n_blocks, ki_number type,
                                    cudaStream_t stream) {
    if (type == KI_NUMBER_BF16)
        return KI_LAUNCH(pack_kernel<ki_bf16>, n_blocks, THREADS, 0, stream, items, n_items);
    return KI_LAUNCH(pack_kernel<float>, n_blocks, THREADS, 0, stream, items, n_items);
}

extern "C" cudaError_t ki_cuda_unpack(const ki_unpack_item *items, int n_items, int first_block, int n_blocks,
                                      cudaStream_t stream) {
    return KI_LAUNCH(unpack_kernel, n_blocks, THREADS, 0, stream, items, n_items, first_block);
}

/* Two numbers of 16 bits, each with a sign, the exponent of 0.5 … 1 and seven bits. Read as one float, the
 * upper one is its leading half. */
static __global__ void noise_kernel(uint32_t *dst, int64_t n, uint32_t seed) {
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        uint32_t x = ((uint32_t)i + seed) * 0x9E3779B9u;
        x ^= x >> 16, x *= 0x85EBCA6Bu, x ^= x >> 13, x *= 0xC2B2AE35u, x ^= x >> 16;
        dst[i] = (x & 0x807f807fu) | 0x3f003f00u;
    }
}

extern "C" cudaError_t ki_cuda_noise(void *dst, size_t bytes, uint32_t seed, cudaStream_t stream) {
    const int64_t n = (int64_t)(bytes / sizeof(uint32_t)), blocks = (n + THREADS - 1) / THREADS;
    if (n == 0) return cudaSuccess;
    return KI_LAUNCH(noise_kernel, (unsigned)(blocks < 4096 ? blocks : 4096), THREADS, 0, stream,
                     (uint32_t *)dst, n, seed);
}
