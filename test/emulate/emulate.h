/* CUDA C++ on the host, for .cu files compiled as C++ with -DKI_EMULATE: keywords, built-in variables and
 * functions, and the launch. One fiber per thread of a block (block.cpp); blocks run one after the other, or, when
 * they are launched together, one until it waits for another (KI_SPIN).
 *
 * __syncthreads and the warp functions wait until everybody they name has come to the same line; whoever
 * ended or waits elsewhere is an error that stops the program with the places. Between two such points
 * threads run one at a time, in one order in one block and in the opposite order in the next. */
#ifndef KI_EMULATE_H
#define KI_EMULATE_H

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <functional>

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __shared__ static
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) alignas(n)
#ifndef __restrict__
#define __restrict__
#endif

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct int2 {
    int x, y;
};
struct int4 {
    int x, y, z, w;
};
struct uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) double2 {
    double x, y;
};
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static inline int2 make_int2(int x, int y) { return {x, y}; }
static inline double2 make_double2(double x, double y) { return {x, y}; }

/* The thread that runs now. */
struct ki_emulate_here {
    uint3 thread, block;
    dim3 n_threads, n_blocks;
    unsigned char *shared;
    uint64_t block_number; /* over all launches */
};
extern ki_emulate_here ki_emulate_now;
#define threadIdx (ki_emulate_now.thread)
#define blockIdx (ki_emulate_now.block)
#define blockDim (ki_emulate_now.n_threads)
#define gridDim (ki_emulate_now.n_blocks)
static const int warpSize = 32;

/* An array of the block at one place of the source. */
struct ki_emulate_site {
    unsigned char *memory;
    uint64_t block_number;
};
void *ki_emulate_array(ki_emulate_site *site, size_t bytes);
#define KI_SHARED(type, name) type *name = reinterpret_cast<type *>(ki_emulate_now.shared)
#define KI_SHARED_ARRAY(type, name, n)     \
    static ki_emulate_site ki_site_##name; \
    type *name = static_cast<type *>(ki_emulate_array(&ki_site_##name, sizeof(type) * (size_t)(n)))

/* Stops the program when a vector access is not aligned. */
void ki_emulate_misaligned(const void *ptr, unsigned bytes);
static inline void ki_emulate_aligned(const void *ptr, unsigned bytes) {
    if ((uintptr_t)ptr % bytes != 0) ki_emulate_misaligned(ptr, bytes);
}

void ki_emulate_sync_block(const char *file, int line);
/* What each lane of the warp brought to this line (NULL: no such lane); valid until the thread waits again. */
const uint64_t *ki_emulate_exchange(unsigned mask, uint64_t value, const char *file, int line);

/* Copies (of zeros from NULL) that their thread must wait for, group by group. */
void ki_emulate_copy_later(void *to, const void *from, unsigned bytes);
void ki_emulate_copies_close();
void ki_emulate_copies_wait(int but_the_last);

/* In a loop that waits for what another block does. */
void ki_emulate_spin(const char *file, int line);
#define KI_SPIN() ki_emulate_spin(__FILE__, __LINE__)

#define __syncthreads() ki_emulate_sync_block(__FILE__, __LINE__)
#define __syncwarp(...) ki_emulate_sync_warp(__FILE__, __LINE__, ##__VA_ARGS__)
static inline void ki_emulate_sync_warp(const char *file, int line, unsigned mask = 0xffffffffu) {
    ki_emulate_exchange(mask, 0, file, line);
}

static inline int ki_emulate_lane() {
    const uint3 t = threadIdx;
    return (int)((t.x + blockDim.x * (t.y + blockDim.y * t.z)) % 32);
}
template <typename T>
static inline T ki_emulate_shuffle(unsigned mask, T value, int lane, const char *file, int line) {
    static_assert(sizeof(T) <= 8, "shuffles move at most 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = ki_emulate_exchange(mask, bits, file, line)[lane & 31];
    memcpy(&value, &bits, sizeof value);
    return value;
}
#define __shfl_sync(mask, value, lane) ki_emulate_shuffle(mask, value, lane, __FILE__, __LINE__)
#define __shfl_xor_sync(mask, value, step) \
    ki_emulate_shuffle(mask, value, ki_emulate_lane() ^ (int)(step), __FILE__, __LINE__)
#define __shfl_down_sync(mask, value, step)                                                         \
    ki_emulate_shuffle(                                                                             \
        mask, value,                                                                                \
        ki_emulate_lane() + (int)(step) > 31 ? ki_emulate_lane() : ki_emulate_lane() + (int)(step), \
        __FILE__, __LINE__)
#define __shfl_up_sync(mask, value, step)                                                                    \
    ki_emulate_shuffle(                                                                                      \
        mask, value,                                                                                         \
        ki_emulate_lane() - (int)(step) < 0 ? ki_emulate_lane() : ki_emulate_lane() - (int)(step), __FILE__, \
        __LINE__)
static inline unsigned ki_emulate_ballot(unsigned mask, bool yes, const char *file, int line) {
    const uint64_t *values = ki_emulate_exchange(mask, yes, file, line);
    unsigned bits = 0;
    for (int i = 0; i < 32; i++) {
        if (mask >> i & 1 && values[i] == 1) bits |= 1u << i;
    }
    return bits;
}
#define __ballot_sync(mask, yes) ki_emulate_ballot(mask, (yes) != 0, __FILE__, __LINE__)
#define __any_sync(mask, yes) (ki_emulate_ballot(mask, (yes) != 0, __FILE__, __LINE__) != 0)
#define __all_sync(mask, yes) (ki_emulate_ballot(mask, (yes) == 0, __FILE__, __LINE__) == 0)

template <typename T, typename U>
static inline T atomicAdd(T *at, U value) {
    const T old = *at;
    *at = old + (T)value;
    return old;
}
static inline unsigned atomicInc(unsigned *at, unsigned most) {
    const unsigned old = *at;
    *at = old >= most ? 0 : old + 1;
    return old;
}
template <typename T, typename U>
static inline T atomicMax(T *at, U value) {
    const T old = *at;
    if ((T)value > old) *at = (T)value;
    return old;
}
template <typename T, typename U>
static inline T atomicMin(T *at, U value) {
    const T old = *at;
    if ((T)value < old) *at = (T)value;
    return old;
}
template <typename T, typename U>
static inline T atomicOr(T *at, U value) {
    const T old = *at;
    *at = old | (T)value;
    return old;
}
template <typename T>
static inline T atomicCAS(T *at, T compare, T value) {
    const T old = *at;
    if (old == compare) *at = value;
    return old;
}
static inline void __threadfence() {}
template <typename T>
static inline T __ldcg(const T *at) {
    return *at;
}
template <typename T>
static inline T __ldcs(const T *at) {
    return *at;
}
template <typename T>
static inline void __stcs(T *at, T value) {
    *at = value;
}
template <typename T>
static inline T __ldg(const T *at) {
    return *at;
}

static inline unsigned __float_as_uint(float x) {
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline float __uint_as_float(unsigned bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline int __float_as_int(float x) { return (int)__float_as_uint(x); }
static inline float __int_as_float(int bits) { return __uint_as_float((unsigned)bits); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
static inline float rsqrtf(float x) { return 1 / sqrtf(x); }
static inline double rsqrt(double x) { return 1 / sqrt(x); }
static inline float __fdividef(float a, float b) { return a / b; }
#define __expf(x) expf(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __powf(x, y) powf(x, y)
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline float __saturatef(float x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
using std::max;
using std::min;

cudaError_t ki_emulate_launch(bool together, dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
                              std::function<void()> thread);

template <typename... P, typename... A>
static inline cudaError_t ki_launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
                                    cudaStream_t stream, A... args) {
    return ki_emulate_launch(false, grid, block, shared_bytes, stream,
                             [=] { kernel(static_cast<P>(args)...); });
}

template <typename... P, typename... A>
static inline cudaError_t ki_launch_together(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
                                             cudaStream_t stream, A... args) {
    return ki_emulate_launch(true, grid, block, shared_bytes, stream,
                             [=] { kernel(static_cast<P>(args)...); });
}

#endif
