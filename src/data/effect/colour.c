/* Changes of colour. Pillow cuts what it computes in float32 to whole numbers; here it is 16-bit fixed point, which differs
 * from that by one level where rounding decides. */
#include "data/effect/colour.h"

#include <math.h>
#include <string.h>

#include "data/transform/simd.h"

enum { ONE = 1 << 16, NEARLY = 1 << 7, MOST_FACTOR = 64 };

static size_t view_pixels(const ki_effect_view *v) { return (size_t)v->side * (size_t)v->side; }

static int32_t fixed_of(double factor) {
    return (int32_t)lrint(fmin(fmax(factor, -MOST_FACTOR), MOST_FACTOR) * ONE);
}

static inline int32_t mix(int32_t a, int32_t b, int32_t factor) {
    const int32_t value = (a * ONE + factor * (b - a) + NEARLY) >> 16;
    return value < 0 ? 0 : value > 255 ? 255 : value;
}

KI_SIMD static void blend_planes(const uint8_t *a, const uint8_t *b, int32_t factor, size_t n, uint8_t *dst) {
    for (size_t i = 0; i < n; i++) dst[i] = (uint8_t)mix(a[i], b[i], factor);
}

void ki_colour_blend(const uint8_t *a, const uint8_t *b, double factor, size_t n, uint8_t *dst) {
    blend_planes(a, b, fixed_of(factor), n, dst);
}

KI_SIMD static void blend_constant(int32_t a, int32_t factor, size_t n, uint8_t *plane) {
    for (size_t i = 0; i < n; i++) plane[i] = (uint8_t)mix(a, plane[i], factor);
}

void ki_colour_map(uint8_t *plane, size_t n, const uint8_t table[256]) {
    for (size_t i = 0; i < n; i++) plane[i] = table[plane[i]];
}

/* ITU-R 601 luma in 16-bit fixed point. */
KI_SIMD static void luma(const uint8_t *r, const uint8_t *g, const uint8_t *b, size_t n, uint8_t *dst) {
    for (size_t i = 0; i < n; i++)
        dst[i] = (uint8_t)((r[i] * 19595u + g[i] * 38470u + b[i] * 7471u + 0x8000u) >> 16);
}

static const uint8_t *luma_of(ki_effect_view *v) {
    luma(v->plane[0], v->plane[1], v->plane[2], view_pixels(v), v->spare[0]);
    return v->spare[0];
}

void ki_colour_brightness(ki_effect_view *v, double factor) {
    for (int c = 0; c < 3; c++) blend_constant(0, fixed_of(factor), view_pixels(v), v->plane[c]);
}

void ki_colour_contrast(ki_effect_view *v, double factor) {
    const uint8_t *grey = luma_of(v);
    const size_t n = view_pixels(v);
    uint64_t sum = 0;
    if (n == 0) return;
    for (size_t i = 0; i < n; i++) sum += grey[i];
    const int32_t mean = (int32_t)((2 * sum + n) / (2 * n));
    for (int c = 0; c < 3; c++) blend_constant(mean, fixed_of(factor), n, v->plane[c]);
}

void ki_colour_saturation(ki_effect_view *v, double factor) {
    const uint8_t *grey = luma_of(v);
    for (int c = 0; c < 3; c++) ki_colour_blend(grey, v->plane[c], factor, view_pixels(v), v->plane[c]);
}

void ki_colour_grey(ki_effect_view *v) {
    const uint8_t *grey = luma_of(v);
    for (int c = 0; c < 3; c++) memcpy(v->plane[c], grey, view_pixels(v));
}

/* Hue and saturation as bytes, cut to whole numbers; the value is the largest channel. The quotients are exact: numerators are
 * below 2^19 and denominators below 2^11. */
typedef struct quotients {
    uint32_t of_six[256], of_one[256]; /* 2^32 / (6 i) and 2^32 / i, rounded up */
} quotients;

static void fill_quotients(quotients *q) {
    for (uint32_t i = 1; i < 256; i++) {
        q->of_six[i] = (uint32_t)((UINT64_C(1) << 32) / (6 * i) + 1);
        q->of_one[i] = i == 1 ? UINT32_MAX : (uint32_t)((UINT64_C(1) << 32) / i + 1);
    }
}

static uint32_t divide(uint32_t number, uint32_t quotient) {
    return (uint32_t)((uint64_t)number * quotient >> 32);
}

static uint8_t rounded(uint32_t value, uint32_t share) { /* value * share / 255^2 */
    return (uint8_t)((2 * value * share + 65025u) / 130050u);
}

static void turn_pixel(const quotients *q, uint32_t turn, uint8_t *red, uint8_t *green, uint8_t *blue) {
    const int32_t r = *red, g = *green, b = *blue;
    const int32_t most = r > g ? (r > b ? r : b) : (g > b ? g : b);
    const int32_t range = most - (r < g ? (r < b ? r : b) : (g < b ? g : b));
    if (range == 0) return;
    int32_t sixths = r == most ? g - b : g == most ? b - r + 2 * range : r - g + 4 * range;
    if (sixths < 0) sixths += 6 * range;
    const uint32_t hue = (divide(255u * (uint32_t)sixths, q->of_six[range]) + turn) & 255u;
    const uint32_t saturation = range == most ? 255u : divide(255u * (uint32_t)range, q->of_one[most]);
    const uint32_t sector = 6 * hue / 255, rest = 6 * hue - 255 * sector, value = (uint32_t)most;
    const uint8_t v = (uint8_t)most, p = rounded(value, 255 * (255 - saturation)),
                  f = rounded(value, 65025u - saturation * rest),
                  t = rounded(value, 65025u - saturation * (255 - rest));
    const uint8_t to[6][3] = {{v, t, p}, {f, v, p}, {p, v, t}, {p, f, v}, {t, p, v}, {v, p, f}};
    const uint8_t *rgb = to[sector % 6];
    *red = rgb[0], *green = rgb[1], *blue = rgb[2];
}

void ki_colour_hue(ki_effect_view *v, double turn) {
    const uint32_t steps = (uint32_t)(int32_t)(turn * 255) & 255u;
    quotients q;
    fill_quotients(&q);
    const size_t n = view_pixels(v);
    for (size_t i = 0; i < n; i++) turn_pixel(&q, steps, &v->plane[0][i], &v->plane[1][i], &v->plane[2][i]);
}
