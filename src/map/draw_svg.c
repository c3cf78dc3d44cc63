/* SVG with everything inside: thumbnails are PNG data in the file. Dots first, pictures above them. */
#include "map/drawing.h"

static void put_thumbnail(ki_buffer *to, const ki_drawing *d, const ki_mark *m) {
    ki_buffer png = {.err = to->err};
    const int s = d->thumbnail_size;
    const uint8_t *c = m->colour;
    ki_drawing_encode(d->rgb + (size_t)m->thumbnail * (size_t)s * (size_t)s * 3, s, s, &png);
    ki_buffer_put(to,
                  "<rect x=\"%.2f\" y=\"%.2f\" width=\"%d\" height=\"%d\" fill=\"#%02x%02x%02x\"/>"
                  "<image x=\"%.2f\" y=\"%.2f\" width=\"%d\" height=\"%d\" href=\"data:image/png;base64,",
                  m->x - s / 2.0 - 1, m->y - s / 2.0 - 1, s + 2, s + 2, c[0], c[1], c[2], m->x - s / 2.0,
                  m->y - s / 2.0, s, s);
    ki_buffer_base64(to, png.data, png.n);
    ki_buffer_put(to, "\"/>\n");
    if (to->status == KITH_OK) to->status = png.status;
    ki_buffer_release(&png);
}

void ki_drawing_svg(const ki_drawing *d, ki_buffer *to) {
    ki_buffer_put(
        to,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
        d->size, d->size, d->size, d->size);
    if (d->title) {
        ki_buffer_put(to, "<text x=\"%d\" y=\"%d\" font-family=\"sans-serif\" font-size=\"%d\">",
                      d->size / 50, d->size / 32, d->size / 60);
        ki_buffer_escaped(to, d->title);
        ki_buffer_put(to, "</text>\n");
    }
    for (int64_t i = 0; i < d->n_marks; i++) {
        const ki_mark *m = d->mark + i;
        if (m->thumbnail >= 0) continue;
        ki_buffer_put(to, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%.2f\" fill=\"#%02x%02x%02x\"/>\n", m->x, m->y,
                      d->radius, m->colour[0], m->colour[1], m->colour[2]);
    }
    for (int64_t i = 0; i < d->n_marks && to->status == KITH_OK; i++) {
        if (d->mark[i].thumbnail >= 0) put_thumbnail(to, d, d->mark + i);
    }
    ki_buffer_put(to, "</svg>\n");
}
