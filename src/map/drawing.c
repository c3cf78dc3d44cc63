/* Placing the marks of a map, their colours, and which of them become pictures. */
#include "map/drawing.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

/* Neighbouring labels get colours far apart: hues a golden angle from each other, in three lightnesses. */
static void label_colour(int64_t label, uint8_t rgb[3]) {
    const uint64_t turn = (uint64_t)label;
    const double hue = fmod((double)(turn % 1000003) * 0.61803398874989485, 1) * 6;
    const double light = 0.42 + 0.11 * (double)(turn / 7 % 3), chroma = 0.75 * (1 - fabs(2 * light - 1));
    const double middle = chroma * (1 - fabs(fmod(hue, 2) - 1)), low = light - chroma / 2;
    const int sector = (int)hue % 6;
    const double value[6][3] = {{chroma, middle, 0}, {middle, chroma, 0}, {0, chroma, middle},
                                {0, middle, chroma}, {middle, 0, chroma}, {chroma, 0, middle}};
    for (int c = 0; c < 3; c++) rgb[c] = (uint8_t)lround(255 * (value[sector][c] + low));
}

static double coordinate(const kith_array *map, int64_t i) {
    return map->dtype == KITH_F64 ? ((const double *)map->data)[i] : (double)((const float *)map->data)[i];
}

static kith_status check(const kith_map_drawing *from, kith_error *err) {
    const kith_array *map = from->map;
    if (!map) return ki_fail(err, KITH_EINVAL, "there is no map to draw");
    if (map->n_dims != 2 || map->dim[1] != 2 || (map->dtype != KITH_F64 && map->dtype != KITH_F32))
        return ki_fail(err, KITH_ESHAPE, "the map is %s with %d dimensions; wanted float64 or float32 [n, 2]",
                       kith_dtype_name(map->dtype), map->n_dims);
    if (map->dim[0] < 1) return ki_fail(err, KITH_EINVAL, "the map is empty");
    for (int64_t i = 0; i < 2 * map->dim[0]; i++) {
        if (!isfinite(coordinate(map, i)))
            return ki_fail(err, KITH_ENUMERIC, "the map's row %lld is not finite", (long long)i / 2);
    }
    if (from->side < 64 || from->side > 20000)
        return ki_fail(err, KITH_EINVAL, "size %d pixels; wanted 64 to 20000", from->side);
    if (from->paths &&
        (!from->thumbnail || from->thumbnail_size < 4 || from->thumbnail_size > from->side / 2))
        return ki_fail(err, KITH_EINVAL, "thumbnails of %d pixels; wanted 4 to %d", from->thumbnail_size,
                       from->side / 2);
    return KITH_OK;
}

/* Map to canvas, one scale for both axes, a margin all round. */
static void place_marks(const kith_map_drawing *from, ki_drawing *d) {
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (int64_t i = 0; i < 2 * d->n_marks; i++) {
        const double v = coordinate(from->map, i);
        low[i % 2] = fmin(low[i % 2], v);
        high[i % 2] = fmax(high[i % 2], v);
    }
    const double side = fmax(fmax(high[0] - low[0], high[1] - low[1]), 1e-300);
    const double margin = 0.04 * d->size, scale = (d->size - 2 * margin) / side;
    for (int64_t i = 0; i < d->n_marks; i++) {
        ki_drawing_mark *m = d->mark + i;
        m->x = d->size / 2.0 + scale * (coordinate(from->map, 2 * i) - (low[0] + high[0]) / 2);
        m->y = d->size / 2.0 - scale * (coordinate(from->map, 2 * i + 1) - (low[1] + high[1]) / 2);
        m->thumbnail = -1;
        label_colour(from->labels ? from->labels[i] : 4, m->colour);
    }
}

/* Visit the items in a scattered order. Each gets a thumbnail unless it would touch one that is already
 * there. */
static kith_status choose_thumbnails(const kith_map_drawing *from, ki_drawing *d, kith_map_report *report,
                                     kith_error *err) {
    kith_status status = KITH_OK;
    const int cell = d->thumbnail_size, side = d->size / cell + 2;
    int32_t *grid = NULL; /* the mark whose thumbnail's middle is in the cell, + 1 */
    const size_t bytes = (size_t)cell * (size_t)cell * 3;
    size_t room = 0;
    KI_CHECK(ki_zalloc_or(&grid, (size_t)side * (size_t)side, sizeof *grid, "thumbnail grid", err));
    const int64_t n = d->n_marks;
    int64_t stride = (int64_t)(0.61803398874989485 * (double)n) | 1;
    for (int64_t a = stride, b = n; b;) { /* until stride and n share no divisor */
        const int64_t r = a % b;
        a = b, b = r;
        if (b == 0 && a != 1) a = ++stride, b = n;
    }
    for (int64_t t = 0, i = 0; t < n; t++, i = (i + stride) % n) {
        ki_drawing_mark *m = d->mark + i;
        const int cx = (int)(m->x / cell) + 1, cy = (int)(m->y / cell) + 1;
        bool is_free = cx > 0 && cy > 0 && cx < side - 1 && cy < side - 1;
        for (int g = 0; is_free && g < 9; g++) {
            const int32_t o = grid[(cy - 1 + g / 3) * side + cx - 1 + g % 3];
            is_free = !o || fmax(fabs(d->mark[o - 1].x - m->x), fabs(d->mark[o - 1].y - m->y)) >= cell + 2;
        }
        if (!is_free) continue;
        KI_CHECK(ki_grow(&d->rgb, &room, (size_t)d->n_thumbnails + 1, bytes, "thumbnails", err));
        kith_error why = {0};
        const kith_status read =
            from->thumbnail(from->user, from->paths[i], cell, d->rgb + (size_t)d->n_thumbnails * bytes, &why);
        if (read == KITH_ENOMEM)
            KI_CHECK(ki_fail(err, read, "%s", why.message)); /* not the fault of the image */
        if (read != KITH_OK) {
            report->n_failed++;
            continue;
        }
        m->thumbnail = (int32_t)d->n_thumbnails++;
        grid[cy * side + cx] = (int32_t)i + 1;
        report->n_drawn++;
    }
done:
    ki_free(grid);
    return status;
}

kith_status ki_drawing_init(const kith_map_drawing *from, ki_drawing *ret_drawing,
                            kith_map_report *ret_report, kith_error *err) {
    KI_TRY(check(from, err));
    kith_status status = KITH_OK;
    ki_drawing d = {.size = from->side,
                    .thumbnail_size = from->thumbnail_size,
                    .title = from->title,
                    .names = from->names,
                    .n_marks = from->map->dim[0]};
    d.radius = from->radius > 0 ? from->radius : fmin(6, fmax(1.2, 0.2 * d.size / sqrt((double)d.n_marks)));
    KI_CHECK(ki_alloc_or(&d.mark, (size_t)d.n_marks, sizeof *d.mark, "map marks", err));
    place_marks(from, &d);
    if (from->paths) KI_CHECK(choose_thumbnails(from, &d, ret_report, err));
    *ret_drawing = d;
    return KITH_OK;
done:
    ki_drawing_release(&d);
    return status;
}

void ki_drawing_release(ki_drawing *d) {
    ki_free(d->mark);
    ki_free(d->rgb);
    *d = (ki_drawing){0};
}
