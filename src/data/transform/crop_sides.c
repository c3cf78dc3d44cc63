/* Which side a batch has, and views at another side than the one they were drawn for. */
#include "data/transform/crop_sides.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

int32_t ki_crop_sides_at(const ki_crop_sides *sides, int32_t own, uint64_t seed, uint32_t epoch,
                         int64_t number) {
    if (sides->n == 0) return own;
    ki_rng rng = ki_rng_at(seed, KI_RNG_SIDE, epoch, (uint32_t)number);
    return sides->side[ki_rng_below(&rng, (uint32_t)sides->n)];
}

int32_t ki_crop_sides_largest(const ki_crop_sides *sides, int32_t own) {
    return sides->n ? sides->side[sides->n - 1] : own;
}

const char *ki_crop_sides_text(const ki_crop_sides *sides, char *buf, size_t buf_bytes) {
    size_t used = 0;
    if (buf_bytes) buf[0] = '\0';
    for (int i = 0; i < sides->n; i++) {
        const char *before = i == 0 ? "" : i + 1 == sides->n ? " or " : ", ";
        const int n = ki_snprintf(buf + used, buf_bytes - used, "%s%d", before, sides->side[i]);
        if (n < 0 || (size_t)n >= buf_bytes - used) break;
        used += (size_t)n;
    }
    return buf;
}

/* One axis: an image of length `full` of which `shown` is put at *at. What was cut to the output's length is so again, and what was
 * shorter is shown whole, in the middle. */
static void scale_axis(double by, int32_t side, int32_t *full, int32_t *from, int32_t *shown, int32_t *at) {
    const double length = rint(by * *full), begin = rint(by * *from);
    *full = length < 1 ? 1 : (int32_t)length;
    *shown = *full < side ? *full : side;
    *from = begin < *full - *shown ? (int32_t)begin : *full - *shown;
    *at = (side - *shown) / 2;
}

ki_draw ki_draw_at_side(const ki_draw *draw, int32_t own, int32_t side) {
    ki_draw d = *draw;
    if (side == own) return d;
    const double by = (double)side / own;
    scale_axis(by, side, &d.full_w, &d.window.x, &d.window.w, &d.x);
    scale_axis(by, side, &d.full_h, &d.window.y, &d.window.h, &d.y);
    return d;
}
