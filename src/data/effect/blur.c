/* blur: a Gaussian filter of a random width, as torchvision's GaussianBlur.
 *
 * The kernel has a fixed number of taps and is normalised; borders are reflected without repeating the border pixel. The filter is
 * separable: rows first, kept with 8 more bits, then columns; rounded once, at the end. */
#include <math.h>
#include <string.h>

#include "data/effect/effect.h"
#include "data/transform/simd.h"

typedef struct settings {
    double p;
    int64_t kernel;
    const ki_value *sigma;
    double from, to;
} settings;
KI_EFFECT_FITS(settings);

enum { MOST_TAPS = 257, WEIGHT_BITS = 16, MIDDLE_BITS = 8 };

static const ki_option options[] = {
    KI_OPTION_REAL(settings, p, 0.5, 0, 1, "how often", "MoCo v2"),
    KI_OPTION_INT(settings, kernel, 0, 0, MOST_TAPS,
                  "taps of the filter, an odd number; 0: a tenth of the crop", "SimCLR"),
    KI_OPTION_TREE(settings, sigma, "[0.1, 2]", "least and most standard deviation, in pixels", "SimCLR"),
    KI_OPTION_END};

static kith_status check(void *settings_, int crop, kith_error *err) {
    settings *s = settings_;
    double sigma[2] = {0.1, 2};
    KI_TRY(ki_effect_range(s->sigma, "sigma", 0.01, sigma, err));
    s->sigma = NULL;
    s->from = sigma[0], s->to = sigma[1];
    if (s->kernel == 0) s->kernel = crop / 20 * 2 + 1;
    if (s->kernel > MOST_TAPS) s->kernel = MOST_TAPS;
    if (s->kernel % 2 == 0)
        return ki_fail(err, KITH_EINVAL, "kernel is %lld; wanted an odd number", (long long)s->kernel);
    if (s->kernel / 2 < crop) return KITH_OK;
    return ki_fail(err, KITH_EINVAL, "a kernel of %lld taps for views of %d pixels; wanted at most %d",
                   (long long)s->kernel, crop, 2 * crop - 1);
}

/* Half of the kernel, from the middle outwards, in fixed point; the sum of all taps is one. Returns the last tap that is not 0. */
static int make_kernel(int radius, double sigma, uint32_t *weight) {
    double share[MOST_TAPS / 2 + 1], sum = 0;
    uint32_t outside = 0;
    int last = 0;
    for (int i = 0; i <= radius; i++) {
        share[i] = exp(-0.5 * (i / sigma) * (i / sigma));
        sum += i ? 2 * share[i] : share[i];
    }
    for (int i = 1; i <= radius; i++) {
        weight[i] = (uint32_t)lrint(share[i] / sum * (1 << WEIGHT_BITS));
        outside += 2 * weight[i];
        if (weight[i]) last = i;
    }
    weight[0] = (1u << WEIGHT_BITS) - outside;
    return last;
}

/* A row with `radius` pixels reflected on both sides. */
static void reflect(const uint8_t *row, int32_t n, int32_t radius, uint8_t *ret) {
    memcpy(ret + radius, row, (size_t)n);
    for (int32_t i = 1; i <= radius; i++) {
        ret[radius - i] = row[i];
        ret[radius + n - 1 + i] = row[n - 1 - i];
    }
}

KI_SIMD static void filter_row(const uint8_t *row, int32_t n, int radius, const uint32_t *weight,
                               uint32_t *sum, uint16_t *dst) {
    const uint32_t half = 1u << (WEIGHT_BITS - MIDDLE_BITS - 1);
    for (int32_t x = 0; x < n; x++) sum[x] = half + weight[0] * row[x + radius];
    for (int k = 1; k <= radius; k++) {
        const uint8_t *left = row + radius - k, *right = row + radius + k;
        const uint32_t w = weight[k];
        for (int32_t x = 0; x < n; x++) sum[x] += w * ((uint32_t)left[x] + right[x]);
    }
    for (int32_t x = 0; x < n; x++) dst[x] = (uint16_t)(sum[x] >> (WEIGHT_BITS - MIDDLE_BITS));
}

/* The sum of the columns' taps, at most 255.5 * 2^24, fits 32 bits. */
KI_SIMD static void filter_columns(const uint16_t *plane, int32_t y, int32_t n, int radius,
                                   const uint32_t *weight, uint32_t *sum, uint8_t *dst) {
    const uint32_t shift = WEIGHT_BITS + MIDDLE_BITS, half = 1u << (shift - 1);
    const uint16_t *middle = plane + (size_t)y * (size_t)n;
    for (int32_t x = 0; x < n; x++) sum[x] = half + weight[0] * middle[x];
    for (int k = 1; k <= radius; k++) {
        const int32_t up = y >= k ? y - k : k - y, down = y + k < n ? y + k : 2 * n - 2 - y - k;
        const uint16_t *above = plane + (size_t)up * (size_t)n, *below = plane + (size_t)down * (size_t)n;
        const uint32_t w = weight[k];
        for (int32_t x = 0; x < n; x++) sum[x] += w * ((uint32_t)above[x] + below[x]);
    }
    for (int32_t x = 0; x < n; x++) dst[x] = (uint8_t)(sum[x] >> shift);
}

static void apply(const void *settings_, ki_rng *rng, ki_effect_view *v) {
    const settings *s = settings_;
    uint32_t weight[MOST_TAPS / 2 + 1];
    const int radius = make_kernel((int)s->kernel / 2, ki_effect_uniform(rng, s->from, s->to), weight);
    const size_t n = (size_t)v->side;
    for (int c = 0; c < 3; c++) {
        for (size_t y = 0; y < n; y++) {
            reflect(v->plane[c] + y * n, v->side, radius, v->edge);
            filter_row(v->edge, v->side, radius, weight, v->sum, v->wide + y * n);
        }
        for (int32_t y = 0; y < v->side; y++)
            filter_columns(v->wide, y, v->side, radius, weight, v->sum, v->plane[c] + (size_t)y * n);
    }
}

const ki_effect_kind ki_effect_blur = {
    .name = "blur",
    .summary = "a Gaussian filter of random width",
    .source = "torchvision GaussianBlur",
    .options = options,
    .check = check,
    .apply = apply,
};
