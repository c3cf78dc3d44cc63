/* Resizing: filter weights, rows, then columns. */
#include "data/transform/resample.h"

#include <math.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/alloc.h"
#include "data/transform/simd.h"

typedef struct ki_axis axis;

enum { BITS = 14, HALF = 1 << (BITS - 1), BLOCK = 256 };

static double triangle(double x) {
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

/* Keys' cubic with a = -0.5. */
static double cubic(double x) {
    const double a = -0.5;
    x = fabs(x);
    if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    if (x < 2.0) return (((x - 5.0) * x + 8.0) * x - 4.0) * a;
    return 0.0;
}

/* A sinc, multiplied by the middle lobe of a sinc that is three times as wide. */
static double lanczos(double x) {
    const double pi = 3.14159265358979323846, a = 3.0;
    x = fabs(x);
    if (x >= a) return 0.0;
    if (x < 1e-9) return 1.0;
    return a * sin(pi * x) * sin(pi * x / a) / (pi * pi * x * x);
}

typedef struct kernel {
    double (*value)(double);
    double support;
} kernel;

static const kernel kernels[] = {[KITH_FILTER_BILINEAR] = {triangle, 1.0},
                                 [KITH_FILTER_BICUBIC] = {cubic, 2.0},
                                 [KITH_FILTER_LANCZOS] = {lanczos, 3.0}};

/* Weights for outputs [begin, begin + n) of an axis of n_out outputs over n_in source pixels. The
 * running sum of the weights is rounded, not each weight: a row sums to exactly 1 << BITS and a flat area
 * keeps its value. Rows are filled up with zeros to an even number of taps. */
static kith_status plan_axis(axis *ax, int32_t n_in, int32_t n_out, int32_t begin, int32_t n, const kernel *k,
                             kith_error *err) {
    const double scale = (double)n_in / n_out, stretch = scale > 1.0 ? scale : 1.0;
    const double support = k->support * stretch;
    const int32_t taps = (int32_t)ceil(support) * 2 + 2;
    const size_t count = (size_t)n;
    size_t n_weights = 0;
    if (!ki_mul_size(count, (size_t)taps, &n_weights)) return ki_fail_memory(err, SIZE_MAX, "resize weights");
    KI_TRY(ki_grow(&ax->first, &ax->first_capacity, count, sizeof *ax->first, "resize weights", err));
    KI_TRY(ki_grow(&ax->count, &ax->count_capacity, count, sizeof *ax->count, "resize weights", err));
    KI_TRY(ki_grow(&ax->weight, &ax->weight_capacity, n_weights, sizeof *ax->weight, "resize weights", err));
    KI_TRY(ki_grow(&ax->share, &ax->share_capacity, (size_t)taps, sizeof *ax->share, "resize weights", err));
    memset(ax->weight, 0, n_weights * sizeof *ax->weight);
    ax->taps = taps;
    for (int32_t i = 0; i < n; i++) {
        const double centre = (begin + i + 0.5) * scale;
        int32_t first = (int32_t)(centre - support + 0.5), end = (int32_t)(centre + support + 0.5);
        if (first < 0) first = 0;
        if (end > n_in) end = n_in;
        int16_t *weight = ax->weight + (size_t)i * (size_t)taps;
        double sum = 0;
        for (int32_t t = first; t < end; t++)
            sum += ax->share[t - first] = k->value((t - centre + 0.5) / stretch);
        double reached = 0;
        int32_t given = 0;
        for (int32_t t = 0; t < end - first; t++) {
            reached += ax->share[t] / sum * (1 << BITS);
            const int32_t upto = (int32_t)lrint(reached);
            weight[t] = (int16_t)(upto - given);
            given = upto;
        }
        ax->first[i] = first;
        ax->count[i] = end - first;
    }
    return KITH_OK;
}

static inline uint8_t to_byte(int32_t sum) {
    const int32_t v = sum >> BITS;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

#if defined(__SSE2__)
typedef char bytes16 __attribute__((vector_size(16)));

/* Two taps at a time: the channels of two neighbouring pixels become pairs of 16-bit numbers, which one
 * instruction multiplies and adds. Eight bytes are read for six; those after them have weight 0. */
KI_SIMD static void pass_across_rgb(const uint8_t *src, size_t src_stride, const axis *ax, int32_t w,
                                    int32_t h, uint8_t *dst) {
    const bytes16 zero = {0};
    for (int32_t y = 0; y < h; y++, src += src_stride) {
        const int16_t *weight = ax->weight;
        for (int32_t x = 0; x < w; x++, weight += ax->taps, dst += 3) {
            const uint8_t *p = src + 3 * (size_t)ax->first[x];
            __m128i sum = _mm_set1_epi32(HALF);
            for (int32_t t = 0; t < ax->count[x]; t += 2, p += 6) {
                const bytes16 v = (bytes16)_mm_loadl_epi64((const __m128i *)(const void *)p);
                const bytes16 pairs = __builtin_shufflevector(v, zero, 0, 16, 3, 16, 1, 16, 4, 16, 2, 16, 5,
                                                              16, 16, 16, 16, 16);
                int32_t two;
                memcpy(&two, weight + t, sizeof two);
                sum = _mm_add_epi32(sum, _mm_madd_epi16((__m128i)pairs, _mm_set1_epi32(two)));
            }
            sum = _mm_packs_epi32(_mm_srai_epi32(sum, BITS), sum);
            const int32_t pixel = _mm_cvtsi128_si32(_mm_packus_epi16(sum, sum));
            memcpy(dst, &pixel, sizeof pixel); /* the fourth byte is overwritten next, or is in the slack */
        }
    }
}
#else
static void pass_across_rgb(const uint8_t *src, size_t src_stride, const axis *ax, int32_t w, int32_t h,
                            uint8_t *dst) {
    for (int32_t y = 0; y < h; y++, src += src_stride) {
        const int16_t *weight = ax->weight;
        for (int32_t x = 0; x < w; x++, weight += ax->taps) {
            const uint8_t *p = src + 3 * (size_t)ax->first[x];
            for (int c = 0; c < 3; c++) {
                int32_t sum = HALF;
                for (int32_t t = 0; t < ax->count[x]; t++) sum += p[3 * t + c] * weight[t];
                *dst++ = to_byte(sum);
            }
        }
    }
}
#endif

static void pass_across_grey(const uint8_t *src, size_t src_stride, const axis *ax, int32_t w, int32_t h,
                             uint8_t *dst) {
    for (int32_t y = 0; y < h; y++, src += src_stride) {
        const int16_t *weight = ax->weight;
        for (int32_t x = 0; x < w; x++, weight += ax->taps) {
            const uint8_t *p = src + ax->first[x];
            int32_t sum = HALF;
            for (int32_t t = 0; t < ax->count[x]; t++) sum += p[t] * weight[t];
            *dst++ = to_byte(sum);
        }
    }
}

/* Columns are independent: blocks of bytes of a row, any number of channels. */
KI_SIMD static void pass_down(const uint8_t *src, size_t src_stride, const axis *ax, size_t n, int32_t h,
                              uint8_t *dst) {
    for (int32_t y = 0; y < h; y++, dst += n) {
        const int16_t *weight = ax->weight + (size_t)y * (size_t)ax->taps;
        const uint8_t *rows = src + (size_t)ax->first[y] * src_stride;
        for (size_t at = 0; at < n; at += BLOCK) {
            const size_t m = n - at < BLOCK ? n - at : BLOCK;
            int32_t sum[BLOCK];
            for (size_t i = 0; i < m; i++) sum[i] = HALF;
            for (int32_t t = 0; t < ax->count[y]; t++) {
                const uint8_t *row = rows + (size_t)t * src_stride + at;
                const int16_t share = weight[t];
                for (size_t i = 0; i < m; i++) sum[i] += (int16_t)row[i] * share;
            }
            for (size_t i = 0; i < m; i++) {
                int32_t v = sum[i] >> BITS;
                v = v < 0 ? 0 : v;
                dst[at + i] = (uint8_t)(v > 255 ? 255 : v);
            }
        }
    }
}

void ki_resampler_release(ki_resampler *r) {
    for (int i = 0; i < 2; i++) {
        axis *ax = i ? &r->down : &r->across;
        ki_free(ax->first);
        ki_free(ax->count);
        ki_free(ax->weight);
        ki_free(ax->share);
    }
    ki_image_release(&r->middle);
    *r = (ki_resampler){0};
}

kith_status ki_resample(ki_resampler *r, const ki_image *src, ki_rect from, int32_t full_w, int32_t full_h,
                        ki_rect window, kith_filter filter, ki_image *dst, kith_error *err) {
    const kernel *k = &kernels[filter];
    const int channels = src->channels;
    const size_t pixel = (size_t)channels, src_stride = (size_t)src->w * pixel;
    const bool across = from.w != full_w, down = from.h != full_h;
    KI_TRY(ki_image_shape(dst, window.w, window.h, channels, err));
    if (down) KI_TRY(plan_axis(&r->down, from.h, full_h, window.y, window.h, k, err));
    if (across) KI_TRY(plan_axis(&r->across, from.w, full_w, window.x, window.w, k, err));

    /* The source rows that the output needs, as rows of `from`. */
    int32_t top = window.y, bottom = window.y + window.h;
    if (down) {
        const int32_t last = window.h - 1;
        top = r->down.first[0];
        bottom = r->down.first[last] + r->down.count[last];
        for (int32_t i = 0; i < window.h; i++) r->down.first[i] -= top;
    }
    const uint8_t *at = src->data + (size_t)(from.y + top) * src_stride + (size_t)from.x * pixel;
    size_t stride = src_stride;
    if (!across) at += (size_t)window.x * pixel;
    if (across) {
        uint8_t *to = dst->data;
        if (down) {
            KI_TRY(ki_image_shape(&r->middle, window.w, bottom - top, channels, err));
            to = r->middle.data;
        }
        if (channels == 3)
            pass_across_rgb(at, src_stride, &r->across, window.w, bottom - top, to);
        else
            pass_across_grey(at, src_stride, &r->across, window.w, bottom - top, to);
        at = to;
        stride = (size_t)window.w * pixel;
    }
    const size_t row_bytes = (size_t)window.w * pixel;
    if (down) {
        pass_down(at, stride, &r->down, row_bytes, window.h, dst->data);
    } else if (!across) {
        for (int32_t y = 0; y < window.h; y++)
            memcpy(dst->data + (size_t)y * row_bytes, at + (size_t)y * stride, row_bytes);
    }
    return KITH_OK;
}

kith_status ki_resample_fit(ki_resampler *r, const ki_image *src, int32_t side, ki_image *dst,
                            kith_error *err) {
    const int32_t longer = src->w > src->h ? src->w : src->h;
    const double factor = longer > side ? (double)side / longer : 1;
    const int32_t w = (int32_t)(src->w * factor + 0.5), h = (int32_t)(src->h * factor + 0.5);
    const ki_rect whole = {0, 0, w > 0 ? w : 1, h > 0 ? h : 1};
    return ki_resample(r, src, (ki_rect){0, 0, src->w, src->h}, whole.w, whole.h, whole, KITH_FILTER_BILINEAR,
                       dst, err);
}
