/* PNG: dots with smooth edges painted into a canvas, thumbnails copied over them. Titles are left to SVG. */
#include <math.h>
#include <png.h>
#include <string.h>

#include "core/alloc.h"
#include "eval/drawing.h"

kith_status ki_drawing_encode(const uint8_t *rgb, int width, int height, ki_bytes *ret_bytes,
                              kith_error *err) {
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)width,
                       .height = (png_uint_32)height,
                       .format = PNG_FORMAT_RGB};
    ki_bytes b = {.capacity = PNG_IMAGE_PNG_SIZE_MAX(image)};
    KI_TRY(ki_alloc_or(&b.data, b.capacity, 1, "PNG bytes", err));
    png_alloc_size_t n = b.capacity;
    if (!png_image_write_to_memory(&image, b.data, &n, 0, rgb, 0, NULL)) {
        ki_fail(err, KITH_EBACKEND, "libpng: %s", image.message);
        png_image_free(&image);
        ki_free(b.data);
        return KITH_EBACKEND;
    }
    b.n = n;
    *ret_bytes = b;
    return KITH_OK;
}

static void paint_dot(uint8_t *canvas, int size, const ki_mark *m, double radius) {
    const int x0 = (int)floor(m->x - radius - 1), x1 = (int)ceil(m->x + radius + 1);
    const int y0 = (int)floor(m->y - radius - 1), y1 = (int)ceil(m->y + radius + 1);
    for (int y = y0 < 0 ? 0 : y0; y <= y1 && y < size; y++) {
        for (int x = x0 < 0 ? 0 : x0; x <= x1 && x < size; x++) {
            const double inside = radius + 0.5 - hypot(x + 0.5 - m->x, y + 0.5 - m->y);
            const double cover = fmin(1, fmax(0, inside));
            uint8_t *to = canvas + 3 * ((size_t)y * (size_t)size + (size_t)x);
            for (int c = 0; c < 3; c++) to[c] = (uint8_t)lround(to[c] + cover * (m->colour[c] - to[c]));
        }
    }
}

static void paint_thumbnail(uint8_t *canvas, const ki_drawing *d, const ki_mark *m) {
    const int s = d->thumbnail_size, left = (int)lround(m->x - s / 2.0), top = (int)lround(m->y - s / 2.0);
    const uint8_t *from = d->rgb + (size_t)m->thumbnail * (size_t)s * (size_t)s * 3;
    for (int y = -1; y <= s; y++) {
        for (int x = -1; x <= s; x++) {
            const int at_x = left + x, at_y = top + y;
            if (at_x < 0 || at_y < 0 || at_x >= d->size || at_y >= d->size) continue;
            const bool is_border = x < 0 || y < 0 || x == s || y == s;
            memcpy(canvas + 3 * ((size_t)at_y * (size_t)d->size + (size_t)at_x),
                   is_border ? m->colour : from + 3 * (y * s + x), 3);
        }
    }
}

kith_status ki_drawing_png(const ki_drawing *d, ki_bytes *ret_bytes, kith_error *err) {
    uint8_t *canvas = NULL;
    const size_t bytes = (size_t)d->size * (size_t)d->size * 3;
    KI_TRY(ki_alloc_or(&canvas, bytes, 1, "the picture", err));
    memset(canvas, 255, bytes);
    for (int64_t i = 0; i < d->n_marks; i++) {
        if (d->mark[i].thumbnail < 0) paint_dot(canvas, d->size, d->mark + i, d->radius);
    }
    for (int64_t i = 0; i < d->n_marks; i++) {
        if (d->mark[i].thumbnail >= 0) paint_thumbnail(canvas, d, d->mark + i);
    }
    const kith_status status = ki_drawing_encode(canvas, d->size, d->size, ret_bytes, err);
    ki_free(canvas);
    return status;
}
