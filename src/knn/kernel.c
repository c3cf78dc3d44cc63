/* The loops are written once, with the compilers' vector types, and compiled for several instruction
 * sets; the number of accumulators follows the number of registers. All versions add in the same
 * order; those with fused multiply-add round differently from those without. */
#include "knn/kernel.h"

#include <string.h>

/* ROWS x LANES accumulators of WIDTH columns each; the loops over them are unrolled whole, so that the
 * accumulators live in registers. */
#define PRODUCT(name, target, WIDTH, ROWS, LANES)                                                      \
    typedef float name##_lane __attribute__((vector_size(4 * (WIDTH)), aligned(4 * (WIDTH))));         \
    target static void name(const float *left, const float *right, int64_t dim, int64_t n_groups,      \
                            float *out) {                                                              \
        enum { WIDE = (WIDTH) * (LANES), PANELS = WIDE / KI_PANEL };                                   \
        for (int64_t p = 0; p < n_groups * (KI_GROUP / KI_PANEL); p += PANELS) {                       \
            const float *cols = right + p * dim * KI_PANEL;                                            \
            for (int r0 = 0; r0 < KI_STRIPE; r0 += (ROWS)) {                                           \
                float *dst = out + r0 * KI_BLOCK + p * KI_PANEL;                                       \
                for (int64_t k0 = 0; k0 < dim; k0 += KI_CHUNK) {                                       \
                    const int64_t k1 = k0 + KI_CHUNK < dim ? k0 + KI_CHUNK : dim;                      \
                    name##_lane sum[ROWS][LANES];                                                      \
                    UNROLL for (int r = 0; r < (ROWS); r++) {                                          \
                        UNROLL for (int l = 0; l < (LANES); l++) sum[r][l] = (name##_lane){0};         \
                    }                                                                                  \
                    for (int64_t k = k0; k < k1; k++) {                                                \
                        name##_lane y[LANES];                                                          \
                        UNROLL for (int l = 0; l < (LANES); l++) {                                     \
                            const int c = l * (WIDTH);                                                 \
                            y[l] = *(const name##_lane *)(cols + (c / KI_PANEL * dim + k) * KI_PANEL + \
                                                          c % KI_PANEL);                               \
                        }                                                                              \
                        UNROLL for (int r = 0; r < (ROWS); r++) {                                      \
                            const float x = left[k * KI_PANEL + r0 + r];                               \
                            UNROLL for (int l = 0; l < (LANES); l++) sum[r][l] = sum[r][l] + y[l] * x; \
                        }                                                                              \
                    }                                                                                  \
                    UNROLL for (int r = 0; r < (ROWS); r++) {                                          \
                        UNROLL for (int l = 0; l < (LANES); l++) {                                     \
                            name##_lane *to = (name##_lane *)(dst + r * KI_BLOCK + l * (WIDTH));       \
                            *to = k0 == 0 ? sum[r][l] : *to + sum[r][l];                               \
                        }                                                                              \
                    }                                                                                  \
                }                                                                                      \
            }                                                                                          \
        }                                                                                              \
    }

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#define INLINE static inline __attribute__((always_inline))

/* Plain compares: bytes first (which compilers turn into vector code), then bits. */
INLINE void compare_plain(const float *s, float row_least, const float *col_least, uint64_t *ret_row,
                          uint64_t *ret_col) {
    for (int w = 0; w < KI_MASK_WORDS; w++) {
        const float *v = s + w * 64;
        int any = 0;
        if (col_least) {
            const float *least = col_least + w * 64;
            for (int c = 0; c < 64; c++) any |= (v[c] >= row_least) | (v[c] >= least[c]);
        } else {
            for (int c = 0; c < 64; c++) any |= v[c] >= row_least;
        }
        uint64_t row = 0, col = 0;
        if (any) {
            for (int c = 0; c < 64; c++) row |= (uint64_t)(v[c] >= row_least) << c;
            for (int c = 0; col_least && c < 64; c++) col |= (uint64_t)(v[c] >= col_least[w * 64 + c]) << c;
        }
        ret_row[w] = row;
        if (ret_col) ret_col[w] = col;
    }
}

PRODUCT(product_base, , 4, 2, 4)
static void compare_base(const float *s, float row_least, const float *col_least, uint64_t *ret_row,
                         uint64_t *ret_col) {
    compare_plain(s, row_least, col_least, ret_row, ret_col);
}
static void compare_row_base(const float *s, float row_least, uint64_t *ret_row) {
    compare_plain(s, row_least, NULL, ret_row, NULL);
}
/* No branch in the loop. */
static int64_t partition_base(uint64_t *keys, int64_t n, uint64_t pivot, uint64_t *scratch) {
    int64_t n_above = 0, n_rest = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = keys[i];
        const int64_t is_above = key > pivot;
        keys[n_above] = key;
        scratch[n_rest] = key;
        n_above += is_above;
        n_rest += 1 - is_above;
    }
    memcpy(keys + n_above, scratch, (size_t)n_rest * sizeof *keys);
    return n_above;
}
static const ki_knn_kernel base = {"base", product_base, compare_base, compare_row_base, partition_base};

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")))

PRODUCT(product_avx2, AVX2, 8, 4, 2)
AVX2 static void compare_avx2(const float *s, float row_least, const float *col_least, uint64_t *ret_row,
                              uint64_t *ret_col) {
    compare_plain(s, row_least, col_least, ret_row, ret_col);
}
AVX2 static void compare_row_avx2(const float *s, float row_least, uint64_t *ret_row) {
    compare_plain(s, row_least, NULL, ret_row, NULL);
}
static const ki_knn_kernel avx2 = {"avx2", product_avx2, compare_avx2, compare_row_avx2, partition_base};

PRODUCT(product_avx512, AVX512, 16, 8, 3)
AVX512 static void compare_avx512(const float *s, float row_least, const float *col_least, uint64_t *ret_row,
                                  uint64_t *ret_col) {
    const __m512 least = _mm512_set1_ps(row_least);
    uint16_t row[KI_BLOCK / 16], col[KI_BLOCK / 16];
    for (int i = 0; i < KI_BLOCK / 16; i++) {
        const __m512 v = _mm512_load_ps(s + i * 16);
        row[i] = _mm512_cmp_ps_mask(v, least, _CMP_GE_OQ);
        col[i] = _mm512_cmp_ps_mask(v, _mm512_loadu_ps(col_least + i * 16), _CMP_GE_OQ);
    }
    memcpy(ret_row, row, sizeof row);
    memcpy(ret_col, col, sizeof col);
}
AVX512 static void compare_row_avx512(const float *s, float row_least, uint64_t *ret_row) {
    const __m512 least = _mm512_set1_ps(row_least);
    uint16_t row[KI_BLOCK / 16];
    for (int i = 0; i < KI_BLOCK / 16; i++)
        row[i] = _mm512_cmp_ps_mask(_mm512_load_ps(s + i * 16), least, _CMP_GE_OQ);
    memcpy(ret_row, row, sizeof row);
}
AVX512 static int64_t partition_avx512(uint64_t *keys, int64_t n, uint64_t pivot, uint64_t *scratch) {
    const __m512i at = _mm512_set1_epi64((long long)pivot);
    int64_t n_above = 0, n_rest = 0;
    for (int64_t i = 0; i < n; i += 8) {
        const __mmask8 valid = (__mmask8)(n - i < 8 ? (1 << (n - i)) - 1 : 255);
        const __m512i v = _mm512_maskz_loadu_epi64(valid, keys + i);
        const __mmask8 above = _mm512_mask_cmpgt_epu64_mask(valid, v, at);
        const __mmask8 rest = (__mmask8)(valid & ~above);
        /* Compressed in a register and stored with a mask: never beyond what was read, and AMD's processors take a hundred
         * cycles for the instruction that does both. */
        const __mmask8 to_above = (__mmask8)((1 << __builtin_popcount(above)) - 1);
        const __mmask8 to_rest = (__mmask8)((1 << __builtin_popcount(rest)) - 1);
        _mm512_mask_storeu_epi64(keys + n_above, to_above, _mm512_maskz_compress_epi64(above, v));
        _mm512_mask_storeu_epi64(scratch + n_rest, to_rest, _mm512_maskz_compress_epi64(rest, v));
        n_above += __builtin_popcount(above);
        n_rest += __builtin_popcount(rest);
    }
    memcpy(keys + n_above, scratch, (size_t)n_rest * sizeof *keys);
    return n_above;
}
static const ki_knn_kernel avx512 = {"avx512", product_avx512, compare_avx512, compare_row_avx512,
                                     partition_avx512};

const ki_knn_kernel *const *ki_knn_kernels(void) {
    static const ki_knn_kernel *const all[] = {&avx512, &avx2, &base, NULL};
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return all;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return all + 1;
    return all + 2;
}
#else
const ki_knn_kernel *const *ki_knn_kernels(void) {
    static const ki_knn_kernel *const all[] = {&base, NULL};
    return all;
}
#endif

const ki_knn_kernel *ki_knn_kernel_best(void) { return ki_knn_kernels()[0]; }
