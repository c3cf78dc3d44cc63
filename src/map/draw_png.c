/* PNG: dots with smooth edges painted into a canvas, thumbnails copied over them. Titles are left to SVG. */
#include <math.h>
#include <png.h>
#include <string.h>

#include "base/alloc.h"
#include "base/real.h"
#include "map/drawing.h"

void ki_drawing_encode(const uint8_t *rgb, int width, int height, ki_buffer *to) {
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)width,
                       .height = (png_uint_32)height,
                       .format = PNG_FORMAT_RGB};
    png_alloc_size_t n = PNG_IMAGE_PNG_SIZE_MAX(image);
    void *bytes = NULL;
    if (to->status == KITH_OK) to->status = ki_alloc_or(&bytes, n, 1, "PNG bytes", to->err);
    if (to->status != KITH_OK) return;
    if (png_image_write_to_memory(&image, bytes, &n, 0, rgb, 0, NULL))
        ki_buffer_add(to, bytes, n);
    else
        to->status = ki_fail(to->err, KITH_EBACKEND, "libpng: %s", image.message);
    png_image_free(&image);
    ki_free(bytes);
}

static void paint_dot(uint8_t *canvas, int size, const ki_drawing_mark *m, double radius) {
    const int x0 = (int)floor(m->x - radius - 1), x1 = (int)ceil(m->x + radius + 1);
    const int y0 = (int)floor(m->y - radius - 1), y1 = (int)ceil(m->y + radius + 1);
    for (int y = y0 < 0 ? 0 : y0; y <= y1 && y < size; y++) {
        for (int x = x0 < 0 ? 0 : x0; x <= x1 && x < size; x++) {
            const double inside = radius + 0.5 - ki_length(x + 0.5 - m->x, y + 0.5 - m->y);
            const double cover = fmin(1, fmax(0, inside));
            uint8_t *to = canvas + 3 * ((size_t)y * (size_t)size + (size_t)x);
            for (int c = 0; c < 3; c++) to[c] = (uint8_t)lround(to[c] + cover * (m->colour[c] - to[c]));
        }
    }
}

static void paint_thumbnail(uint8_t *canvas, const ki_drawing *d, const ki_drawing_mark *m) {
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

void ki_drawing_png(const ki_drawing *d, ki_buffer *to) {
    uint8_t *canvas = NULL;
    const size_t bytes = (size_t)d->size * (size_t)d->size * 3;
    if (to->status == KITH_OK) to->status = ki_alloc_or(&canvas, bytes, 1, "the picture", to->err);
    if (to->status != KITH_OK) return;
    memset(canvas, 255, bytes);
    for (int64_t i = 0; i < d->n_marks; i++) {
        if (d->mark[i].thumbnail < 0) paint_dot(canvas, d->size, d->mark + i, d->radius);
    }
    for (int64_t i = 0; i < d->n_marks; i++) {
        if (d->mark[i].thumbnail >= 0) paint_thumbnail(canvas, d, d->mark + i);
    }
    ki_drawing_encode(canvas, d->size, d->size, to);
    ki_free(canvas);
}
