/* The idea of `estimate` is FastScan (Andre, Kermarrec and Le Scouarnec 2015, 2017): a table of 16 bytes fits into a register, and
 * one shuffle looks up 4 bits of 16 to 64 places. Bytes are summed in 16 bits: once as they are, which sums the even ones
 * plus 256 times the odd ones, and once shifted, which sums the odd ones alone.
 *
 * This file is compiled without contraction of a * b + c (src/CMakeLists.txt): a fused step rounds once where two steps
 * round twice, and not every processor has one. */
#include "search/scan/kernel.h"

#include <stdatomic.h>
#include <string.h>

#include "knn/rows.h"

/* 256 entries of at most 255 fit into 16 bits. */
enum { CHUNK = 256 };

static inline const float *offsets(const uint8_t *block) { return (const float *)(const void *)block; }
static inline const float *scales(const uint8_t *block) { return offsets(block) + KI_SCAN_BLOCK; }
static inline const uint8_t *pieces(const uint8_t *block) { return block + 2 * KI_SCAN_BLOCK * 4; }

static void estimate_base(const ki_scan_table *t, const uint8_t *blocks, int64_t n_blocks, float least,
                          float *ret, uint32_t *ret_mask) {
    const int64_t bytes = ki_scan_block_bytes(t->n_groups, t->bits);
    for (int64_t i = 0; i < n_blocks; i++, blocks += bytes, ret += KI_SCAN_BLOCK) {
        uint32_t sum[KI_SCAN_BLOCK] = {0};
        const uint8_t *piece = pieces(blocks);
        for (int b = 0; b < t->bits; b++) {
            for (int64_t g = 0; g < t->n_groups; g++, piece += 16) {
                const uint8_t *entry = t->entry + g * 16;
                for (int j = 0; j < 8; j++) {
                    sum[j] += (uint32_t)entry[piece[2 * j] & 15] << b;
                    sum[j + 8] += (uint32_t)entry[piece[2 * j + 1] & 15] << b;
                    sum[j + 16] += (uint32_t)entry[piece[2 * j] >> 4] << b;
                    sum[j + 24] += (uint32_t)entry[piece[2 * j + 1] >> 4] << b;
                }
            }
        }
        uint32_t mask = 0;
        for (int j = 0; j < KI_SCAN_BLOCK; j++) {
            const float product = t->step * (float)sum[j] + t->shift;
            ret[j] = offsets(blocks)[j] + scales(blocks)[j] * product;
            mask |= (uint32_t)(ret[j] >= least) << j;
        }
        ret_mask[i] = mask;
    }
}

static void lists_base(const int8_t *row, int64_t n_rows, const uint8_t *panels, int64_t n_panels,
                       int64_t dim, int32_t *ret) {
    for (int64_t q = 0; q < n_rows; q++, row += dim) {
        for (int64_t p = 0; p < n_panels * (KI_LIST_PANEL / 16); p++, ret += 16) {
            const uint8_t *panel = panels + p * dim * 16;
            int32_t sum[16] = {0};
            for (int64_t k = 0; k < dim; k += 4, panel += 64) {
                for (int l = 0; l < 16; l++) {
                    for (int j = 0; j < 4; j++) sum[l] += row[k + j] * panel[l * 4 + j];
                }
            }
            memcpy(ret, sum, sizeof sum);
        }
    }
}

/* Sums of a panel of axes, WIDTH at a time in LANES registers. */
#define PROJECT(name, target, WIDTH)                                                                        \
    typedef float name##_lane __attribute__((vector_size(4 * (WIDTH)), aligned(4)));                        \
    target static void name(const float *axes, const float *x, int64_t dim, int64_t n_panels, float *ret) { \
        enum { LANES = KI_AXIS_PANEL / (WIDTH) };                                                           \
        for (int64_t p = 0; p < n_panels; p++, ret += KI_AXIS_PANEL) {                                      \
            name##_lane sum[LANES];                                                                         \
            UNROLL for (int l = 0; l < LANES; l++) sum[l] = (name##_lane){0};                               \
            for (int64_t k = 0; k < dim; k++, axes += KI_AXIS_PANEL) {                                      \
                UNROLL for (int l = 0; l < LANES; l++) sum[l] =                                             \
                    sum[l] + *(const name##_lane *)(const void *)(axes + l * (WIDTH)) * x[k];               \
            }                                                                                               \
            UNROLL for (int l = 0; l < LANES; l++) * (name##_lane *)(void *)(ret + l * (WIDTH)) = sum[l];   \
        }                                                                                                   \
    }

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

PROJECT(project_base, , 4)

/* 64 sums side by side, WIDTH at a time in LANES registers; then halves of them are added until 16 are left, and so on. */
#define DOT(name, target, WIDTH)                                                              \
    typedef float name##_lane __attribute__((vector_size(4 * (WIDTH)), aligned(4)));          \
    target static float name(const float *x, const float *y, int64_t dim) {                   \
        enum { LANES = 64 / (WIDTH) };                                                        \
        const name##_lane *a = (const name##_lane *)(const void *)x, *b = (const void *)y;    \
        const int64_t n_left = dim % 64 / (WIDTH);                                            \
        name##_lane sum[LANES];                                                               \
        UNROLL for (int l = 0; l < LANES; l++) sum[l] = (name##_lane){0};                     \
        for (int64_t k = 0; k + 64 <= dim; k += 64, a += LANES, b += LANES) {                 \
            UNROLL for (int l = 0; l < LANES; l++) sum[l] = sum[l] + a[l] * b[l];             \
        }                                                                                     \
        UNROLL for (int l = 0; l < LANES; l++) if (l < n_left) sum[l] = sum[l] + a[l] * b[l]; \
        UNROLL for (int n = LANES / 2; n * (WIDTH) >= 16; n /= 2) {                           \
            UNROLL for (int l = 0; l < n; l++) sum[l] = sum[l] + sum[l + n];                  \
        }                                                                                     \
        float left[16];                                                                       \
        memcpy(left, sum, sizeof left);                                                       \
        for (int n = 8; n > 0; n /= 2)                                                        \
            for (int j = 0; j < n; j++) left[j] += left[j + n];                               \
        return left[0];                                                                       \
    }

DOT(dot_base, , 4)

static void dots_base(const float *x, const float *y, int64_t dim, double *ret_xy, double *ret_yy) {
    const ki_rows a = {KITH_F32, 1, dim, x, NULL}, b = {KITH_F32, 1, dim, y, NULL};
    *ret_xy = ki_rows_dot(&a, 0, &b, 0);
    *ret_yy = ki_rows_dot(&b, 0, &b, 0);
}
static double sqdist_base(const float *x, const float *y, int64_t dim) {
    const ki_rows a = {KITH_F32, 1, dim, x, NULL}, b = {KITH_F32, 1, dim, y, NULL};
    return ki_rows_sqdist(&a, 0, &b, 0);
}

static const ki_scan_kernel base = {"base",   estimate_base, lists_base, project_base,
                                    dot_base, dots_base,     sqdist_base};

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx512vnni,avx2")))

/* The order of ki_rows_dot: eight sums, folded pairwise. */
AVX2 static inline double fold_avx2(__m256d low, __m256d high) {
    const __m256d four = _mm256_add_pd(low, high);
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(two) + _mm_cvtsd_f64(_mm_unpackhi_pd(two, two));
}
AVX2 static inline __m256d wide_avx2(const float *x) { return _mm256_cvtps_pd(_mm_loadu_ps(x)); }

/* The last values of rows, less than 8: the rest is 0. */
#define TAIL(tail, x)    \
    float tail[8] = {0}; \
    memcpy(tail, (x) + dim / 8 * 8, (size_t)(dim % 8) * sizeof(float))

AVX2 static void dots_avx2(const float *x, const float *y, int64_t dim, double *ret_xy, double *ret_yy) {
    __m256d xy[2] = {_mm256_setzero_pd(), _mm256_setzero_pd()}, yy[2] = {xy[0], xy[0]};
    TAIL(x_tail, x);
    TAIL(y_tail, y);
    for (int64_t k = 0; k < dim; k += 8) {
        const float *a = k + 8 <= dim ? x + k : x_tail, *b = k + 8 <= dim ? y + k : y_tail;
        for (int h = 0; h < 2; h++) {
            const __m256d u = wide_avx2(a + 4 * h), v = wide_avx2(b + 4 * h);
            xy[h] = _mm256_add_pd(xy[h], _mm256_mul_pd(u, v));
            yy[h] = _mm256_add_pd(yy[h], _mm256_mul_pd(v, v));
        }
    }
    *ret_xy = fold_avx2(xy[0], xy[1]);
    *ret_yy = fold_avx2(yy[0], yy[1]);
}

AVX2 static double sqdist_avx2(const float *x, const float *y, int64_t dim) {
    __m256d sum[2] = {_mm256_setzero_pd(), _mm256_setzero_pd()};
    TAIL(x_tail, x);
    TAIL(y_tail, y);
    for (int64_t k = 0; k < dim; k += 8) {
        const float *a = k + 8 <= dim ? x + k : x_tail, *b = k + 8 <= dim ? y + k : y_tail;
        for (int h = 0; h < 2; h++) {
            const __m256d d = _mm256_sub_pd(wide_avx2(a + 4 * h), wide_avx2(b + 4 * h));
            sum[h] = _mm256_add_pd(sum[h], _mm256_mul_pd(d, d));
        }
    }
    return fold_avx2(sum[0], sum[1]);
}

/* Eight places from place j on: estimate, store, compare. */
AVX2 static inline uint32_t finish_avx2(const ki_scan_table *t, const uint8_t *block, __m256i sum, int j,
                                        __m256 least, float *ret) {
    const __m256 product = _mm256_add_ps(_mm256_mul_ps(_mm256_set1_ps(t->step), _mm256_cvtepi32_ps(sum)),
                                         _mm256_set1_ps(t->shift));
    const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(scales(block) + j), product);
    const __m256 score = _mm256_add_ps(_mm256_loadu_ps(offsets(block) + j), scaled);
    _mm256_storeu_ps(ret + j, score);
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(score, least, _CMP_GE_OQ)) << j;
}

AVX2 static void estimate_avx2(const ki_scan_table *t, const uint8_t *blocks, int64_t n_blocks, float least,
                               float *ret, uint32_t *ret_mask) {
    const int64_t bytes = ki_scan_block_bytes(t->n_groups, t->bits);
    const __m256i low4 = _mm256_set1_epi8(15), zero = _mm256_setzero_si256();
    for (int64_t i = 0; i < n_blocks; i++, blocks += bytes, ret += KI_SCAN_BLOCK) {
        const uint8_t *piece = pieces(blocks);
        __m256i sum[4] = {zero, zero, zero, zero}; /* of places 0 …, 8 …, 16 …, 24 … */
        for (int b = 0; b < t->bits; b++) {
            for (int64_t begin = 0; begin < t->n_groups; begin += CHUNK) {
                const int64_t end = begin + CHUNK < t->n_groups ? begin + CHUNK : t->n_groups;
                __m256i all0 = zero, odd0 = zero, all1 = zero, odd1 = zero;
                for (int64_t g = begin; g < end; g += 2, piece += 32) {
                    const __m256i entry = _mm256_loadu_si256((const void *)(t->entry + g * 16));
                    const __m256i code = _mm256_loadu_si256((const void *)piece);
                    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(code, 4), low4);
                    const __m256i a = _mm256_shuffle_epi8(entry, _mm256_and_si256(code, low4));
                    const __m256i c = _mm256_shuffle_epi8(entry, high);
                    all0 = _mm256_add_epi16(all0, a);
                    odd0 = _mm256_add_epi16(odd0, _mm256_srli_epi16(a, 8));
                    all1 = _mm256_add_epi16(all1, c);
                    odd1 = _mm256_add_epi16(odd1, _mm256_srli_epi16(c, 8));
                }
                const __m256i part[4] = {_mm256_sub_epi16(all0, _mm256_slli_epi16(odd0, 8)), odd0,
                                         _mm256_sub_epi16(all1, _mm256_slli_epi16(odd1, 8)), odd1};
                for (int p = 0; p < 4; p++) {
                    const __m128i both =
                        _mm_add_epi16(_mm256_castsi256_si128(part[p]), _mm256_extracti128_si256(part[p], 1));
                    sum[p] = _mm256_add_epi32(sum[p], _mm256_slli_epi32(_mm256_cvtepu16_epi32(both), b));
                }
            }
        }
        uint32_t mask = 0;
        for (int p = 0; p < 4; p++) mask |= finish_avx2(t, blocks, sum[p], p * 8, _mm256_set1_ps(least), ret);
        ret_mask[i] = mask;
    }
}

/* Bytes are widened first: the product of pairs of bytes saturates. */
AVX2 static void lists_avx2(const int8_t *row, int64_t n_rows, const uint8_t *panels, int64_t n_panels,
                            int64_t dim, int32_t *ret) {
    for (int64_t q = 0; q < n_rows; q++, row += dim) {
        for (int64_t p = 0; p < n_panels * (KI_LIST_PANEL / 16); p++, ret += 16) {
            const uint8_t *panel = panels + p * dim * 16;
            __m256i sum[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
                              _mm256_setzero_si256()};
            for (int64_t k = 0; k < dim; k += 4, panel += 64) {
                int32_t four;
                memcpy(&four, row + k, sizeof four);
                const __m256i x = _mm256_broadcastq_epi64(_mm_cvtepi8_epi16(_mm_cvtsi32_si128(four)));
                for (int h = 0; h < 4; h++) {
                    const __m128i bytes = _mm_loadu_si128((const void *)(panel + h * 16));
                    sum[h] = _mm256_add_epi32(sum[h], _mm256_madd_epi16(_mm256_cvtepu8_epi16(bytes), x));
                }
            }
            for (int h = 0; h < 4; h += 2) { /* pairs of neighbours, in the order of lists */
                const __m256i pairs = _mm256_hadd_epi32(sum[h], sum[h + 1]);
                _mm256_storeu_si256((void *)(ret + h * 4), _mm256_permute4x64_epi64(pairs, 0xD8));
            }
        }
    }
}

PROJECT(project_avx2, AVX2, 8)
DOT(dot_avx2, AVX2, 8)

static const ki_scan_kernel avx2 = {"avx2",   estimate_avx2, lists_avx2, project_avx2,
                                    dot_avx2, dots_avx2,     sqdist_avx2};

AVX512 static inline double fold_avx512(__m512d sum) {
    return fold_avx2(_mm512_castpd512_pd256(sum), _mm512_extractf64x4_pd(sum, 1));
}
AVX512 static inline __m512d wide_avx512(const float *x) { return _mm512_cvtps_pd(_mm256_loadu_ps(x)); }

AVX512 static void dots_avx512(const float *x, const float *y, int64_t dim, double *ret_xy, double *ret_yy) {
    __m512d xy = _mm512_setzero_pd(), yy = xy;
    int64_t k = 0;
    for (; k + 8 <= dim; k += 8) {
        const __m512d u = wide_avx512(x + k), v = wide_avx512(y + k);
        xy = _mm512_add_pd(xy, _mm512_mul_pd(u, v));
        yy = _mm512_add_pd(yy, _mm512_mul_pd(v, v));
    }
    if (k < dim) {
        TAIL(x_tail, x);
        TAIL(y_tail, y);
        const __m512d u = wide_avx512(x_tail), v = wide_avx512(y_tail);
        xy = _mm512_add_pd(xy, _mm512_mul_pd(u, v));
        yy = _mm512_add_pd(yy, _mm512_mul_pd(v, v));
    }
    *ret_xy = fold_avx512(xy);
    *ret_yy = fold_avx512(yy);
}

AVX512 static double sqdist_avx512(const float *x, const float *y, int64_t dim) {
    __m512d sum = _mm512_setzero_pd();
    int64_t k = 0;
    for (; k + 8 <= dim; k += 8) {
        const __m512d d = _mm512_sub_pd(wide_avx512(x + k), wide_avx512(y + k));
        sum = _mm512_add_pd(sum, _mm512_mul_pd(d, d));
    }
    if (k < dim) {
        TAIL(x_tail, x);
        TAIL(y_tail, y);
        const __m512d d = _mm512_sub_pd(wide_avx512(x_tail), wide_avx512(y_tail));
        sum = _mm512_add_pd(sum, _mm512_mul_pd(d, d));
    }
    return fold_avx512(sum);
}

/* Sums of the four lanes of each: 32 sums in the order of places. */
AVX512 static inline __m512i lanes_avx512(__m512i even0, __m512i odd0, __m512i even1, __m512i odd1) {
    const __m512i first =
        _mm512_add_epi16(_mm512_shuffle_i64x2(even0, odd0, 0x88), _mm512_shuffle_i64x2(even0, odd0, 0xDD));
    const __m512i second =
        _mm512_add_epi16(_mm512_shuffle_i64x2(even1, odd1, 0x88), _mm512_shuffle_i64x2(even1, odd1, 0xDD));
    return _mm512_add_epi16(_mm512_shuffle_i64x2(first, second, 0x88),
                            _mm512_shuffle_i64x2(first, second, 0xDD));
}

AVX512 static inline __m512i sum_avx512(const uint8_t *entry, const uint8_t *piece, int64_t n_groups) {
    const __m512i low4 = _mm512_set1_epi8(15);
    __m512i all0 = _mm512_setzero_si512(), odd0 = all0, all1 = all0, odd1 = all0;
    for (int64_t g = 0; g < n_groups; g += 4) {
        const __m512i table = _mm512_load_si512((const void *)(entry + g * 16));
        const __m512i code = _mm512_load_si512((const void *)(piece + g * 16));
        const __m512i a = _mm512_shuffle_epi8(table, _mm512_and_si512(code, low4));
        const __m512i c = _mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi16(code, 4), low4));
        all0 = _mm512_add_epi16(all0, a);
        odd0 = _mm512_add_epi16(odd0, _mm512_srli_epi16(a, 8));
        all1 = _mm512_add_epi16(all1, c);
        odd1 = _mm512_add_epi16(odd1, _mm512_srli_epi16(c, 8));
    }
    return lanes_avx512(_mm512_sub_epi16(all0, _mm512_slli_epi16(odd0, 8)), odd0,
                        _mm512_sub_epi16(all1, _mm512_slli_epi16(odd1, 8)), odd1);
}

AVX512 static inline __mmask16 finish_avx512(const ki_scan_table *t, const uint8_t *block, __m512i sum, int j,
                                             __m512 least, float *ret) {
    const __m512 product = _mm512_add_ps(_mm512_mul_ps(_mm512_set1_ps(t->step), _mm512_cvtepi32_ps(sum)),
                                         _mm512_set1_ps(t->shift));
    const __m512 scaled = _mm512_mul_ps(_mm512_loadu_ps(scales(block) + j), product);
    const __m512 score = _mm512_add_ps(_mm512_loadu_ps(offsets(block) + j), scaled);
    _mm512_storeu_ps(ret + j, score);
    return _mm512_cmp_ps_mask(score, least, _CMP_GE_OQ);
}

AVX512 static void estimate_avx512(const ki_scan_table *t, const uint8_t *blocks, int64_t n_blocks,
                                   float least, float *ret, uint32_t *ret_mask) {
    const int64_t bytes = ki_scan_block_bytes(t->n_groups, t->bits);
    const __m512 at_least = _mm512_set1_ps(least);
    for (int64_t i = 0; i < n_blocks; i++, blocks += bytes, ret += KI_SCAN_BLOCK) {
        const uint8_t *piece = pieces(blocks);
        __m512i sum0 = _mm512_setzero_si512(), sum1 = sum0;
        for (int b = 0; b < t->bits; b++) {
            for (int64_t g = 0; g < t->n_groups; g += CHUNK) {
                const int64_t n = t->n_groups - g < CHUNK ? t->n_groups - g : CHUNK;
                const __m512i part = sum_avx512(t->entry + g * 16, piece, n);
                const __m512i low = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(part));
                const __m512i high = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(part, 1));
                sum0 = _mm512_add_epi32(sum0, _mm512_sll_epi32(low, _mm_cvtsi32_si128(b)));
                sum1 = _mm512_add_epi32(sum1, _mm512_sll_epi32(high, _mm_cvtsi32_si128(b)));
                piece += n * 16;
            }
        }
        const uint32_t low = finish_avx512(t, blocks, sum0, 0, at_least, ret);
        ret_mask[i] = low | (uint32_t)finish_avx512(t, blocks, sum1, 16, at_least, ret) << 16;
    }
}

/* n rows (1 or 4) with a panel of 64 lists; the loops over accumulators are unrolled whole. */
AVX512 static inline __attribute__((always_inline)) void panel_avx512(const int8_t *row, int n,
                                                                      const uint8_t *panel, int64_t dim,
                                                                      int32_t *ret, int64_t stride) {
    __m512i sum[4][4];
    for (int q = 0; q < n; q++)
        for (int h = 0; h < 4; h++) sum[q][h] = _mm512_setzero_si512();
    for (int64_t k = 0; k < dim; k += 4) {
        __m512i list[4];
        for (int h = 0; h < 4; h++)
            list[h] = _mm512_loadu_si512((const void *)(panel + h * dim * 16 + k * 16));
        for (int q = 0; q < n; q++) {
            int32_t four;
            memcpy(&four, row + q * dim + k, sizeof four);
            const __m512i x = _mm512_set1_epi32(four);
            for (int h = 0; h < 4; h++) sum[q][h] = _mm512_dpbusd_epi32(sum[q][h], list[h], x);
        }
    }
    for (int q = 0; q < n; q++)
        for (int h = 0; h < 4; h++) _mm512_storeu_si512((void *)(ret + q * stride + h * 16), sum[q][h]);
}

AVX512 static void lists_avx512(const int8_t *row, int64_t n_rows, const uint8_t *panels, int64_t n_panels,
                                int64_t dim, int32_t *ret) {
    const int64_t stride = n_panels * KI_LIST_PANEL;
    for (int64_t q = 0; q < n_rows; q += 4, row += 4 * dim, ret += 4 * stride) {
        const int64_t n = n_rows - q < 4 ? n_rows - q : 4;
        for (int64_t p = 0; p < n_panels; p++) {
            const uint8_t *panel = panels + p * dim * KI_LIST_PANEL;
            if (n == 4)
                panel_avx512(row, 4, panel, dim, ret + p * KI_LIST_PANEL, stride);
            else
                for (int64_t r = 0; r < n; r++)
                    panel_avx512(row + r * dim, 1, panel, dim, ret + r * stride + p * KI_LIST_PANEL, stride);
        }
    }
}

PROJECT(project_avx512, AVX512, 16)
DOT(dot_avx512, AVX512, 16)

static const ki_scan_kernel avx512 = {"avx512",   estimate_avx512, lists_avx512, project_avx512,
                                      dot_avx512, dots_avx512,     sqdist_avx512};

const ki_scan_kernel *const *ki_scan_kernels(void) {
    static const ki_scan_kernel *const all[] = {&avx512, &avx2, &base, NULL};
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vnni"))
        return all;
    return __builtin_cpu_supports("avx2") ? all + 1 : all + 2;
}
#else
const ki_scan_kernel *const *ki_scan_kernels(void) {
    static const ki_scan_kernel *const all[] = {&base, NULL};
    return all;
}
#endif

static _Atomic(const ki_scan_kernel *) forced;

void ki_scan_kernel_force(const ki_scan_kernel *kernel) { atomic_store(&forced, kernel); }

const ki_scan_kernel *ki_scan_kernel_best(void) {
    const ki_scan_kernel *kernel = atomic_load(&forced);
    return kernel ? kernel : ki_scan_kernels()[0];
}
