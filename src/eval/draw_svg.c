/* SVG with everything inside: thumbnails are PNG data in the file. Dots first, pictures above them. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "eval/drawing.h"

static kith_status put(ki_bytes *to, kith_error *err, const char *fmt, ...) KITH_PRINTF(3, 4);

static kith_status append(ki_bytes *to, const char *text, size_t n, kith_error *err) {
    KI_TRY(ki_grow(&to->data, &to->capacity, to->n + n, 1, "the picture", err));
    memcpy(to->data + to->n, text, n);
    to->n += n;
    return KITH_OK;
}

static kith_status put(ki_bytes *to, kith_error *err, const char *fmt, ...) {
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    return append(to, line, (size_t)(n < (int)sizeof line ? n : (int)sizeof line - 1), err);
}

static kith_status put_escaped(ki_bytes *to, const char *text, kith_error *err) {
    for (; *text; text++) {
        const char *entity = *text == '&' ? "&amp;" : *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : NULL;
        KI_TRY(entity ? append(to, entity, strlen(entity), err) : append(to, text, 1, err));
    }
    return KITH_OK;
}

static kith_status put_base64(ki_bytes *to, const ki_bytes *from, kith_error *err) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < from->n; i += 3) {
        const size_t left = from->n - i;
        const unsigned char *b = (const unsigned char *)from->data + i;
        const unsigned v =
            (unsigned)b[0] << 16 | (left > 1 ? (unsigned)b[1] << 8 : 0) | (left > 2 ? b[2] : 0);
        const char four[4] = {digits[v >> 18], digits[v >> 12 & 63], left > 1 ? digits[v >> 6 & 63] : '=',
                              left > 2 ? digits[v & 63] : '='};
        KI_TRY(append(to, four, 4, err));
    }
    return KITH_OK;
}

static kith_status put_thumbnail(ki_bytes *to, const ki_drawing *d, const ki_mark *m, kith_error *err) {
    ki_bytes png = {0};
    const int s = d->thumbnail_size;
    const uint8_t *c = m->colour;
    kith_status status =
        ki_drawing_encode(d->rgb + (size_t)m->thumbnail * (size_t)s * (size_t)s * 3, s, s, &png, err);
    if (status == KITH_OK)
        status = put(to, err,
                     "<rect x=\"%.2f\" y=\"%.2f\" width=\"%d\" height=\"%d\" fill=\"#%02x%02x%02x\"/>"
                     "<image x=\"%.2f\" y=\"%.2f\" width=\"%d\" height=\"%d\" href=\"data:image/png;base64,",
                     m->x - s / 2.0 - 1, m->y - s / 2.0 - 1, s + 2, s + 2, c[0], c[1], c[2], m->x - s / 2.0,
                     m->y - s / 2.0, s, s);
    if (status == KITH_OK) status = put_base64(to, &png, err);
    if (status == KITH_OK) status = append(to, "\"/>\n", 4, err);
    ki_free(png.data);
    return status;
}

kith_status ki_drawing_svg(const ki_drawing *d, ki_bytes *ret_bytes, kith_error *err) {
    kith_status status = KITH_OK;
    ki_bytes b = {0};
    KI_CHECK(
        put(&b, err,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            d->size, d->size, d->size, d->size));
    if (d->title) {
        KI_CHECK(put(&b, err, "<text x=\"%d\" y=\"%d\" font-family=\"sans-serif\" font-size=\"%d\">",
                     d->size / 50, d->size / 32, d->size / 60));
        KI_CHECK(put_escaped(&b, d->title, err));
        KI_CHECK(put(&b, err, "</text>\n"));
    }
    for (int64_t i = 0; i < d->n_marks; i++) {
        const ki_mark *m = d->mark + i;
        if (m->thumbnail >= 0) continue;
        KI_CHECK(put(&b, err, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%.2f\" fill=\"#%02x%02x%02x\"/>\n", m->x,
                     m->y, d->radius, m->colour[0], m->colour[1], m->colour[2]));
    }
    for (int64_t i = 0; i < d->n_marks; i++) {
        if (d->mark[i].thumbnail >= 0) KI_CHECK(put_thumbnail(&b, d, d->mark + i, err));
    }
    KI_CHECK(put(&b, err, "</svg>\n"));
    *ret_bytes = b;
    return KITH_OK;
done:
    ki_free(b.data);
    return status;
}
