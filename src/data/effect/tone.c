/* Changes of tone. All but sharpening are tables of 256 values. */
#include "data/effect/tone.h"

#include <string.h>

#include "data/effect/colour.h"
#include "data/transform/simd.h"

enum { LEVELS = 256 };

static size_t count_pixels(const ki_effect_view *v) { return (size_t)v->side * (size_t)v->side; }

/* A row of Pillow's SMOOTH: 3 x 3, 5 in the middle, of 13; the first and the last pixel stay. */
KI_SIMD static void smooth_row(const uint8_t *above, const uint8_t *row, const uint8_t *below, int32_t n,
                               uint8_t *dst) {
    for (int32_t x = 1; x < n - 1; x++) {
        const uint32_t sum = (uint32_t)above[x - 1] + above[x] + above[x + 1] + row[x - 1] + 5u * row[x] +
                             row[x + 1] + below[x - 1] + below[x] + below[x + 1];
        dst[x] = (uint8_t)((2 * sum + 13) / 26);
    }
    dst[0] = row[0];
    dst[n - 1] = row[n - 1];
}

void ki_tone_sharpen(ki_effect_view *v, double factor) {
    const size_t n = (size_t)v->side;
    if (n < 3) return;
    for (int c = 0; c < 3; c++) {
        const uint8_t *from = v->plane[c];
        uint8_t *to = v->spare[c];
        memcpy(to, from, n);
        memcpy(to + (n - 1) * n, from + (n - 1) * n, n);
        for (size_t y = 1; y + 1 < n; y++)
            smooth_row(from + (y - 1) * n, from + y * n, from + (y + 1) * n, v->side, to + y * n);
        ki_colour_blend(to, from, factor, n * n, v->plane[c]);
    }
}

void ki_tone_posterize(ki_effect_view *v, int bits) {
    uint8_t table[LEVELS];
    for (int i = 0; i < LEVELS; i++) table[i] = (uint8_t)(i & ~((1 << (8 - bits)) - 1));
    for (int c = 0; c < 3; c++) ki_colour_map(v->plane[c], count_pixels(v), table);
}

void ki_tone_solarize(ki_effect_view *v, double threshold) {
    uint8_t table[LEVELS];
    for (int i = 0; i < LEVELS; i++) table[i] = (uint8_t)(i < threshold ? i : 255 - i);
    for (int c = 0; c < 3; c++) ki_colour_map(v->plane[c], count_pixels(v), table);
}

static void count_levels(const uint8_t *plane, size_t n, uint32_t count[LEVELS]) {
    memset(count, 0, LEVELS * sizeof *count);
    for (size_t i = 0; i < n; i++) count[plane[i]]++;
}

/* Where the histogram begins and ends. */
static void find_ends(const uint32_t count[LEVELS], int *ret_low, int *ret_high) {
    int low = 0, high = LEVELS - 1;
    while (low < LEVELS - 1 && count[low] == 0) low++;
    while (high > 0 && count[high] == 0) high--;
    *ret_low = low;
    *ret_high = high;
}

void ki_tone_autocontrast(ki_effect_view *v) {
    uint32_t count[LEVELS];
    uint8_t table[LEVELS];
    for (int c = 0; c < 3; c++) {
        int low = 0, high = 0;
        count_levels(v->plane[c], count_pixels(v), count);
        find_ends(count, &low, &high);
        if (high <= low) continue;
        for (int i = 0; i < LEVELS; i++)
            table[i] = (uint8_t)(i < low ? 0 : i > high ? 255 : (i - low) * 255 / (high - low));
        ki_colour_map(v->plane[c], count_pixels(v), table);
    }
}

void ki_tone_equalize(ki_effect_view *v) {
    uint32_t count[LEVELS];
    uint8_t table[LEVELS];
    const size_t n = count_pixels(v);
    for (int c = 0; c < 3; c++) {
        int low = 0, high = 0;
        count_levels(v->plane[c], n, count);
        find_ends(count, &low, &high);
        const uint32_t step = ((uint32_t)n - count[high]) / 255;
        if (step == 0) continue;
        uint32_t sum = step / 2;
        for (int i = 0; i < LEVELS; sum += count[i++])
            table[i] = (uint8_t)(sum / step > 255 ? 255 : sum / step);
        ki_colour_map(v->plane[c], n, table);
    }
}
