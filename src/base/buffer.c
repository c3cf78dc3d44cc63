/* Bytes that grow, text printed into them, escaping and base64. */
#include "base/buffer.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

void ki_buffer_release(ki_buffer *b) {
    ki_free(b->data);
    *b = (ki_buffer){0};
}

static char *make_room(ki_buffer *b, size_t n) {
    if (b->status != KITH_OK) return NULL;
    size_t wanted;
    if (!ki_add_size(b->n, n, &wanted))
        b->status = ki_fail_memory(b->err, n, "the file");
    else
        b->status = ki_grow(&b->data, &b->capacity, wanted, 1, "the file", b->err);
    return b->status == KITH_OK ? b->data + b->n : NULL;
}

void ki_buffer_add(ki_buffer *b, const void *bytes, size_t n) {
    char *to = n ? make_room(b, n) : NULL;
    if (!to) return;
    memcpy(to, bytes, n);
    b->n += n;
}

void ki_buffer_vput(ki_buffer *b, const char *fmt, va_list ap) {
    char line[512];
    va_list again;
    va_copy(again, ap);
    const int n = ki_vsnprintf(line, sizeof line, fmt, ap);
    if (n >= 0 && (size_t)n < sizeof line) {
        ki_buffer_add(b, line, (size_t)n);
    } else if (n >= 0) {
        char *to = make_room(b, (size_t)n + 1);
        if (to) {
            ki_vsnprintf(to, (size_t)n + 1, fmt, again);
            b->n += (size_t)n;
        }
    }
    va_end(again);
}

void ki_buffer_put(ki_buffer *b, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    ki_buffer_vput(b, fmt, ap);
    va_end(ap);
}

void ki_buffer_escaped(ki_buffer *b, const char *text) {
    size_t left = strlen(text);
    while (left > 0 && b->status == KITH_OK) {
        const unsigned char byte = (unsigned char)*text;
        const char *entity = byte == '&'    ? "&amp;"
                             : byte == '<'  ? "&lt;"
                             : byte == '>'  ? "&gt;"
                             : byte == '"'  ? "&quot;"
                             : byte == '\'' ? "&#39;"
                                            : NULL;
        size_t n = ki_utf8_next(text, left);
        const bool is_control = (byte < 0x20 && byte != '\t' && byte != '\n') || byte == 0x7f;
        /* U+FFFE and U+FFFF, which XML has no way to write. */
        const bool is_none = n == 3 && memcmp(text, "\xef\xbf", 2) == 0 && (unsigned char)text[2] >= 0xbe;
        if (!entity && (n == 0 || is_control || is_none)) entity = "\xef\xbf\xbd";
        if (n == 0) n = 1;
        if (entity)
            ki_buffer_add(b, entity, strlen(entity));
        else
            ki_buffer_add(b, text, n);
        text += n;
        left -= n;
    }
}

void ki_buffer_base64(ki_buffer *b, const void *bytes, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *from = bytes;
    for (size_t i = 0; i < n && b->status == KITH_OK; i += 3) {
        const size_t left = n - i;
        const unsigned v = (unsigned)from[i] << 16 | (left > 1 ? (unsigned)from[i + 1] << 8 : 0) |
                           (left > 2 ? from[i + 2] : 0);
        const char four[4] = {digits[v >> 18], digits[v >> 12 & 63], left > 1 ? digits[v >> 6 & 63] : '=',
                              left > 2 ? digits[v & 63] : '='};
        ki_buffer_add(b, four, 4);
    }
}
