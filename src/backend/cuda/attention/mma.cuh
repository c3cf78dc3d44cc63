/* What tensor cores need of a warp, from Ampere on: fragments of bf16, products with sums in float, and copies into shared memory that
 * nobody waits for. The emulator's versions exchange the same fragments lane by lane (test/emulate).
 *
 * A product is 16 x 8 from 16 x 16 and 16 x 8. Lane l = 4 g + t has of the left side rows g and g + 8, columns 2t, 2t + 1, 2t + 8, 2t + 9; of
 * the right side column g, rows likewise; of the sum rows g, g + 8, columns 2t, 2t + 1. So a sum of two products side by side is,
 * rounded, a left side. */
#ifndef KI_CUDA_ATTENTION_MMA_CUH
#define KI_CUDA_ATTENTION_MMA_CUH

#include "backend/cuda/number.cuh"

/* Four blocks of 8 x 8: a left side, or two right sides beside each other. */
struct ki_blocks_of_8 {
    uint32_t x[4];
};

/* Lane l brings the address of row l % 8 of block l / 8, and gets row l / 4, columns 2 (l % 4) and one more of each; `ACROSS`: of each
 * block transposed. */
template <bool ACROSS>
static __device__ __forceinline__ ki_blocks_of_8 ki_load_blocks(const ki_bf16 *row) {
    ki_blocks_of_8 got;
#ifdef KI_EMULATE
    ki_emulate_aligned(row, 16);
    const uint64_t *rows = ki_emulate_exchange(0xffffffffu, (uintptr_t)row, __FILE__, __LINE__);
    const int lane = ki_emulate_lane(), g = lane / 4, t = 2 * (lane % 4);
    for (int i = 0; i < 4; i++) {
        const ki_bf16 *first = (const ki_bf16 *)rows[8 * i + (ACROSS ? t : g)] + (ACROSS ? g : t),
                      *second = ACROSS ? (const ki_bf16 *)rows[8 * i + t + 1] + g : first + 1;
        got.x[i] = (uint32_t)first->bits | (uint32_t)second->bits << 16;
    }
#else
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    if (ACROSS)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(got.x[0]), "=r"(got.x[1]), "=r"(got.x[2]), "=r"(got.x[3])
                     : "r"(at)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(got.x[0]), "=r"(got.x[1]), "=r"(got.x[2]), "=r"(got.x[3])
                     : "r"(at)
                     : "memory");
#endif
    return got;
}

/* sum += left * right, whose rows 0 to 7 are in `upper` and 8 to 15 in `lower`. */
static __device__ __forceinline__ void ki_multiply(const ki_blocks_of_8 &left, uint32_t upper, uint32_t lower,
                                                   float (&sum)[4]) {
#ifdef KI_EMULATE
    const uint32_t mine[6] = {left.x[0], left.x[1], left.x[2], left.x[3], upper, lower};
    const uint64_t *lanes = ki_emulate_exchange(0xffffffffu, (uintptr_t)mine, __FILE__, __LINE__);
    const int lane = ki_emulate_lane(), g = lane / 4, t = lane % 4;
    for (int k = 0; k < 16; k++) {
        const int owner = k % 8 / 2, half = k / 8, shift = 16 * (k % 2);
        for (int i = 0; i < 4; i++) {
            const uint32_t x = ((const uint32_t *)lanes[4 * g + owner])[2 * half + i / 2] >> shift,
                           y = ((const uint32_t *)lanes[4 * (2 * t + i % 2) + owner])[4 + half] >> shift;
            sum[i] = fmaf(ki_bits_float(x << 16), ki_bits_float(y << 16), sum[i]);
        }
    }
    /* Nobody's fragments go while others read them. */
    ki_emulate_exchange(0xffffffffu, 0, __FILE__, __LINE__);
#else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(left.x[0]), "r"(left.x[1]), "r"(left.x[2]), "r"(left.x[3]), "r"(upper), "r"(lower));
#endif
}

/* Two numbers rounded, the first in the lower half. */
static __device__ __forceinline__ uint32_t ki_two_bf16(float first, float second) {
#ifdef KI_EMULATE
    return (uint32_t)from_float<ki_bf16>(first).bits | (uint32_t)from_float<ki_bf16>(second).bits << 16;
#else
    const __nv_bfloat162 two = __floats2bfloat162_rn(first, second);
    return *reinterpret_cast<const uint32_t *>(&two);
#endif
}

/* Two sums side by side as a left side. */
static __device__ __forceinline__ ki_blocks_of_8 ki_rounded(const float (&a)[4], const float (&b)[4]) {
    return {
        {ki_two_bf16(a[0], a[1]), ki_two_bf16(a[2], a[3]), ki_two_bf16(b[0], b[1]), ki_two_bf16(b[2], b[3])}};
}

/* 2^x; 0 where the result is no normal number. */
static __device__ __forceinline__ float ki_exp2(float x) {
#ifdef KI_EMULATE
    return exp2f(x);
#else
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#endif
}

/* Queue a copy of BYTES (4 or 16) into shared memory, of zeros if !is_there (then nothing is read). Copies since the last
 * ki_copies_close() are a group; ki_copies_wait<N>() waits for this thread's groups but the last N. */
template <int BYTES>
static __device__ __forceinline__ void ki_copy_later(void *to, const void *from, bool is_there) {
    static_assert(BYTES == 4 || BYTES == 16, "cp.async copies these");
#ifdef KI_EMULATE
    ki_emulate_aligned(to, BYTES);
    ki_emulate_aligned(from, BYTES);
    ki_emulate_copy_later(to, is_there ? from : nullptr, BYTES);
#else
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    const int bytes = is_there ? BYTES : 0;
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(bytes)
                     : "memory");
#endif
}
static __device__ __forceinline__ void ki_copies_close() {
#ifdef KI_EMULATE
    ki_emulate_copies_close();
#else
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int N>
static __device__ __forceinline__ void ki_copies_wait() {
#ifdef KI_EMULATE
    ki_emulate_copies_wait(N);
#else
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

#endif
