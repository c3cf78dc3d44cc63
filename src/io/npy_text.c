/* Text in .npy files: numpy's U (four bytes a character) and S (one), padded with NULs to one width. */
#include "io/npy_text.h"

#include <string.h>

#include "base/alloc.h"

static size_t put_utf8(uint32_t c, char *to) {
    if (c < 0x80) return to[0] = (char)c, 1;
    const size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6) to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)((0xf00 >> n & 0xff) | c);
    return n;
}

static bool is_character(uint32_t c) { return c > 0 && c < 0x110000 && (c < 0xd800 || c > 0xdfff); }

/* UTF-32 in either byte order; the end is where only NULs follow. */
static bool to_utf8(const unsigned char *from, size_t n_chars, bool is_swapped, char *to, size_t *ret_n) {
    size_t n = 0;
    bool has_ended = false;
    for (size_t i = 0; i < n_chars; i++) {
        uint32_t c = 0;
        memcpy(&c, from + 4 * i, sizeof c);
        if (is_swapped) c = __builtin_bswap32(c);
        has_ended = has_ended || c == 0;
        if (has_ended ? c != 0 : !is_character(c)) return false;
        if (!has_ended) n += put_utf8(c, to + n);
    }
    *ret_n = n;
    return true;
}

static bool to_bytes(const unsigned char *from, size_t width, char *to, size_t *ret_n) {
    const size_t n = strnlen((const char *)from, width);
    for (size_t i = n; i < width; i++) {
        if (from[i]) return false;
    }
    memcpy(to, from, n);
    *ret_n = n;
    return true;
}

kith_status ki_npy_text_each(const void *bytes, const ki_npy_header *header, const char *name,
                             ki_npy_text_fn fn, void *user, kith_error *err) {
    kith_status status = KITH_OK;
    char *text = NULL;
    const unsigned char *at = (const unsigned char *)bytes + header->offset;
    const int64_t n = kith_array_count(&header->array);
    KI_CHECK(ki_alloc_or(&text, header->width + 1, 1, "a text", err));
    for (int64_t i = 0; i < n; i++, at += header->width) {
        size_t length = 0;
        const bool good = header->kind == 'U'
                              ? to_utf8(at, header->width / 4, header->is_swapped, text, &length)
                              : to_bytes(at, header->width, text, &length);
        if (!good) {
            status = ki_fail(err, KITH_EFORMAT,
                             "%s: element %jd is no text: a character that is none, or a NUL inside", name,
                             (intmax_t)i);
            goto done;
        }
        KI_CHECK(fn(user, text, length, err));
    }
done:
    ki_free(text);
    return status;
}
