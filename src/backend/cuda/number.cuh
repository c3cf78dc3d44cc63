/* Numbers of activations: float or ki_bf16. Arithmetic is in float.
 *
 * ki_pack<T> is 16 bytes of them: 4 floats or 8 bf16. load and store take any pointer aligned to 16 bytes.
 *
 *   ki_pack<T> x = ki_pack_load(src + i);
 *   for (int k = 0; k < ki_pack<T>::N; k++) value[k] = ki_get(x, k);
 * */
#ifndef KI_CUDA_NUMBER_CUH
#define KI_CUDA_NUMBER_CUH

#include <stdint.h>

#include "backend/cuda/launch.h"
#include "base/philox.h"

#ifndef KI_EMULATE
#include <cuda_bf16.h>
#endif

/* The upper half of a float. */
struct ki_bf16 {
    uint16_t bits;
};

static __device__ __forceinline__ float ki_bits_float(uint32_t bits) {
#ifdef KI_EMULATE
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
#else
    return __uint_as_float(bits);
#endif
}

static __device__ __forceinline__ uint32_t ki_float_bits(float value) {
#ifdef KI_EMULATE
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
#else
    return __float_as_uint(value);
#endif
}

static __device__ __forceinline__ float to_float(float x) { return x; }
static __device__ __forceinline__ float to_float(ki_bf16 x) { return ki_bits_float((uint32_t)x.bits << 16); }

/* Round to nearest, ties to even. */
template <typename T>
static __device__ __forceinline__ T from_float(float x);
template <>
__device__ __forceinline__ float from_float<float>(float x) {
    return x;
}
template <>
__device__ __forceinline__ ki_bf16 from_float<ki_bf16>(float x) {
    ki_bf16 half;
#ifdef KI_EMULATE
    const uint32_t bits = ki_float_bits(x);
    half.bits = (bits & 0x7fffffffu) > 0x7f800000u ? (uint16_t)0x7fff
                                                   : (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
#else
    half.bits = __bfloat16_as_ushort(__float2bfloat16_rn(x));
#endif
    return half;
}

struct alignas(16) ki_words {
    uint32_t word[4];
};

template <typename T>
struct ki_pack;
template <>
struct ki_pack<float> {
    static const int N = 4;
    ki_words bits;
};
template <>
struct ki_pack<ki_bf16> {
    static const int N = 8;
    ki_words bits;
};

static __device__ __forceinline__ float ki_get(const ki_pack<float> &pack, int k) {
    return ki_bits_float(pack.bits.word[k]);
}
static __device__ __forceinline__ float ki_get(const ki_pack<ki_bf16> &pack, int k) {
    const uint32_t word = pack.bits.word[k >> 1];
    return ki_bits_float(k & 1 ? word & 0xffff0000u : word << 16);
}

/* All values of a pack, and back: v is float[N]. */
template <typename T>
static __device__ __forceinline__ void ki_unpack(const ki_pack<T> &pack, float *v) {
#pragma unroll
    for (int k = 0; k < ki_pack<T>::N; k++) v[k] = ki_get(pack, k);
}
static __device__ __forceinline__ void ki_repack(const float *v, ki_pack<float> *pack) {
#pragma unroll
    for (int k = 0; k < 4; k++) pack->bits.word[k] = ki_float_bits(v[k]);
}
static __device__ __forceinline__ void ki_repack(const float *v, ki_pack<ki_bf16> *pack) {
#pragma unroll
    for (int k = 0; k < 4; k++) {
#ifdef KI_EMULATE
        pack->bits.word[k] = (uint32_t)from_float<ki_bf16>(v[2 * k]).bits |
                             (uint32_t)from_float<ki_bf16>(v[2 * k + 1]).bits << 16;
#else
        const __nv_bfloat162 two = __floats2bfloat162_rn(v[2 * k], v[2 * k + 1]);
        pack->bits.word[k] = *reinterpret_cast<const uint32_t *>(&two);
#endif
    }
}

template <typename T>
static __device__ __forceinline__ ki_pack<T> ki_pack_load(const T *from) {
    ki_pack<T> pack;
#ifdef KI_EMULATE
    ki_emulate_aligned(from, 16);
    memcpy(&pack, from, sizeof pack);
#else
    const uint4 words = *reinterpret_cast<const uint4 *>(from);
    pack.bits.word[0] = words.x, pack.bits.word[1] = words.y;
    pack.bits.word[2] = words.z, pack.bits.word[3] = words.w;
#endif
    return pack;
}

template <typename T>
static __device__ __forceinline__ void ki_pack_store(T *to, const ki_pack<T> &pack) {
#ifdef KI_EMULATE
    ki_emulate_aligned(to, 16);
    memcpy(to, &pack, sizeof pack);
#else
    *reinterpret_cast<uint4 *>(to) =
        make_uint4(pack.bits.word[0], pack.bits.word[1], pack.bits.word[2], pack.bits.word[3]);
#endif
}

/* Load or store V values: one access if the pointer is aligned to the size of V values (V = 1: any pointer).
 * V is 1, or ki_pack<T>::N. */
template <typename T, int V>
struct ki_floats {
    float v[V];
    __device__ __forceinline__ void load(const T *from) {
        if constexpr (V == 1) {
            v[0] = to_float(*from);
        } else {
            ki_unpack(ki_pack_load(from), v);
        }
    }
    __device__ __forceinline__ void store(T *to) const {
        if constexpr (V == 1) {
            *to = from_float<T>(v[0]);
        } else {
            ki_pack<T> pack;
            ki_repack(v, &pack);
            ki_pack_store(to, pack);
        }
    }
};

/* The same in the form it has in memory. This needs half the registers while loads are in flight. */
template <typename T, int V>
struct ki_raw {
    ki_pack<T> pack;
    __device__ __forceinline__ void load(const T *from) { pack = ki_pack_load(from); }
    __device__ __forceinline__ ki_floats<T, V> get() const {
        ki_floats<T, V> x;
        ki_unpack(pack, x.v);
        return x;
    }
};
template <typename T>
struct ki_raw<T, 1> {
    T one;
    __device__ __forceinline__ void load(const T *from) { one = *from; }
    __device__ __forceinline__ ki_floats<T, 1> get() const {
        ki_floats<T, 1> x;
        x.v[0] = to_float(one);
        return x;
    }
};

/* May c channels of pixels `pitch` apart be read 16 bytes at a time? */
template <typename T>
static inline bool ki_fits_packs(const void *ptr, int64_t pitch, int64_t c) {
    const int64_t n = ki_pack<T>::N;
    return (uintptr_t)ptr % 16 == 0 && pitch % n == 0 && c % n == 0;
}

/* Sums over a warp, the same bits in every lane; all 32 lanes must call this. */
static __device__ __forceinline__ float ki_warp_sum(float x) {
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}
static __device__ __forceinline__ double ki_warp_sum(double x) {
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

/* Sum over a block of a multiple of 32 threads, at most 1024, in a fixed order; every thread of the block
 * must call this and gets the result. `room` is shared memory of 33 T. */
template <typename T>
static __device__ __forceinline__ T ki_block_sum(T x, T *room) {
    const int lane = (int)threadIdx.x & 31, warp = (int)threadIdx.x >> 5, n_warps = (int)blockDim.x >> 5;
    x = ki_warp_sum(x);
    if (lane == 0) room[warp] = x;
    __syncthreads();
    if (warp == 0) {
        T sum = lane < n_warps ? room[lane] : (T)0;
        sum = ki_warp_sum(sum);
        if (lane == 0) room[32] = sum;
    }
    __syncthreads();
    const T total = room[32];
    __syncthreads();
    return total;
}

#endif
