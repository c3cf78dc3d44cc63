/* A drawing as one SVG file: pictures are data inside it. Dots first, pictures above them. */
#include <stdio.h>

#include "base/text.h"
#include "io/svg.h"
#include "map/drawing.h"

static void put_dot(ki_buffer *to, const ki_drawing *d, int64_t i, const ki_drawing_style *style) {
    const ki_drawing_mark *m = d->mark + i;
    const int places = style->n_places;
    ki_buffer_put(to, "<circle cx=\"%.*f\" cy=\"%.*f\" r=\"%.*f\" fill=\"#%02x%02x%02x\"", places, m->x,
                  places, m->y, places, d->radius, m->colour[0], m->colour[1], m->colour[2]);
    if (style->put_title) {
        ki_buffer_put(to, ">");
        style->put_title(style->user, i, to);
        ki_buffer_put(to, "</circle>\n");
    } else {
        ki_buffer_put(to, "/>\n");
    }
}

static void put_picture(ki_buffer *to, const ki_drawing *d, int64_t i, const ki_drawing_style *style) {
    const ki_drawing_mark *m = d->mark + i;
    const int places = style->n_places, s = d->thumbnail_size, outer = s + 2 * style->border;
    ki_buffer_put(to, "<g>");
    if (style->put_title) style->put_title(style->user, i, to);
    ki_svg_element(to, "rect", "x=\"%.*f\" y=\"%.*f\" width=\"%d\" height=\"%d\" fill=\"#%02x%02x%02x\"",
                   places, m->x - outer / 2.0, places, m->y - outer / 2.0, outer, outer, m->colour[0],
                   m->colour[1], m->colour[2]);
    ki_buffer_put(to, "<image x=\"%.*f\" y=\"%.*f\" width=\"%d\" height=\"%d\" href=\"", places,
                  m->x - s / 2.0, places, m->y - s / 2.0, s, s);
    style->put_uri(style->user, d->rgb + (size_t)m->thumbnail * (size_t)s * (size_t)s * 3, s, to);
    ki_buffer_put(to, "\"/></g>\n");
}

void ki_drawing_marks(const ki_drawing *d, const ki_drawing_style *style, ki_buffer *to) {
    for (int64_t i = 0; i < d->n_marks; i++) {
        if (d->mark[i].thumbnail < 0) put_dot(to, d, i, style);
    }
    for (int64_t i = 0; i < d->n_marks && to->status == KITH_OK; i++) {
        if (d->mark[i].thumbnail >= 0) put_picture(to, d, i, style);
    }
}

static void put_png(void *user, const uint8_t *rgb, int size, ki_buffer *to) {
    (void)user;
    ki_buffer png = {.err = to->err};
    ki_drawing_encode(rgb, size, size, &png);
    ki_buffer_put(to, "data:image/png;base64,");
    ki_buffer_base64(to, png.data, png.n);
    if (to->status == KITH_OK) to->status = png.status;
    ki_buffer_release(&png);
}

static void put_name(void *user, int64_t i, ki_buffer *to) {
    const ki_drawing *d = user;
    ki_buffer_put(to, "<title>");
    ki_buffer_escaped(to, d->names[i]);
    ki_buffer_put(to, "</title>");
}

void ki_drawing_svg(const ki_drawing *d, ki_buffer *to) {
    char size[64];
    ki_snprintf(size, sizeof size, "width=\"%d\" height=\"%d\"", d->size, d->size);
    ki_svg_open_file(to, d->size, d->size, size);
    ki_buffer_put(to, "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n");
    if (d->title)
        ki_svg_text(to, d->title, "x=\"%d\" y=\"%d\" font-family=\"sans-serif\" font-size=\"%d\"",
                    d->size / 50, d->size / 32, d->size / 60);
    const ki_drawing_style style = {.n_places = 2,
                                    .border = 1,
                                    .put_title = d->names ? put_name : NULL,
                                    .put_uri = put_png,
                                    .user = (void *)(uintptr_t)d};
    ki_drawing_marks(d, &style, to);
    ki_svg_close(to);
}
