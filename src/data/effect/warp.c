/* Moving pixels: an affine map from the middles of the new pixels to places in the old view, in 16-bit fixed point (Pillow's
 * affine_fixed). */
#include "data/effect/warp.h"

#include <math.h>

#include "data/transform/simd.h"

enum { BITS = 16, MOST_ROW = 4096 };

/* x' = a x + b y + c and y' = d x + e y + f of the middles of pixels. */
typedef struct map {
    double a, b, c, d, e, f;
} map;

static int32_t fixed_of(double value) { return (int32_t)floor(value * (1 << BITS) + 0.5); }

/* Places in the old plane of one row; -1: outside. */
KI_SIMD static void find_row(int32_t x, int32_t y, int32_t dx, int32_t dy, int32_t n, int32_t *ret) {
    for (int32_t i = 0; i < n; i++) {
        const int32_t from_x = (x + i * dx) >> BITS, from_y = (y + i * dy) >> BITS;
        const int is_inside = (from_x >= 0) & (from_x < n) & (from_y >= 0) & (from_y < n);
        ret[i] = is_inside ? from_y * n + from_x : -1;
    }
}

static void warp(ki_effect_view *v, const map *m) {
    int32_t place[MOST_ROW];
    const int32_t n = v->side, dx = fixed_of(m->a), dy = fixed_of(m->d);
    const int32_t down_x = fixed_of(m->b), down_y = fixed_of(m->e);
    int32_t x = fixed_of(m->c + m->a * 0.5 + m->b * 0.5), y = fixed_of(m->f + m->d * 0.5 + m->e * 0.5);
    for (int32_t row = 0; row < n; row++, x += down_x, y += down_y) {
        find_row(x, y, dx, dy, n, place);
        for (int c = 0; c < 3; c++) {
            const uint8_t *from = v->plane[c];
            uint8_t *to = v->spare[c] + (size_t)row * (size_t)n;
            for (int32_t i = 0; i < n; i++) to[i] = place[i] < 0 ? v->background[c] : from[place[i]];
        }
    }
    ki_view_swap(v);
}

void ki_warp_shear_across(ki_effect_view *v, double slope) { warp(v, &(map){1, slope, 0, 0, 1, 0}); }
void ki_warp_shear_down(ki_effect_view *v, double slope) { warp(v, &(map){1, 0, 0, slope, 1, 0}); }
void ki_warp_shift(ki_effect_view *v, int32_t across, int32_t down) {
    warp(v, &(map){1, 0, -across, 0, 1, -down});
}

void ki_warp_rotate(ki_effect_view *v, double degrees) {
    const double turn = -degrees * 3.14159265358979323846 / 180, middle = v->side / 2.0;
    map m = {cos(turn), sin(turn), 0, -sin(turn), cos(turn), 0};
    m.c = middle - m.a * middle - m.b * middle;
    m.f = middle - m.d * middle - m.e * middle;
    warp(v, &m);
}
