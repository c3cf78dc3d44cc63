/* Finding EXIF in the containers: JPEG's segments, PNG's and WebP's chunks, the boxes of HEIC and AVIF.
 *
 * Every walk moves on by at least the bytes of a header, and every length is compared with what is left. */
#include <string.h>

#include "data/image/facts.h"

static uint32_t be(const uint8_t *p, size_t n) {
    uint32_t value = 0;
    for (size_t i = 0; i < n; i++) value = value << 8 | p[i];
    return value;
}

static uint32_t le32(const uint8_t *p) {
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

/* Without the words that some writers put before the block. */
static ki_span block_at(const uint8_t *bytes, size_t n) {
    if (n == 0) return (ki_span){0};
    const size_t skip = n >= 6 && memcmp(bytes, "Exif\0\0", 6) == 0 ? 6 : 0;
    return (ki_span){bytes + skip, n - skip};
}

static ki_span in_jpeg(const uint8_t *bytes, size_t n) {
    enum { APP1 = 0xe1, SCAN = 0xda, END = 0xd9 };
    for (size_t at = 2; at + 4 <= n;) {
        if (bytes[at] != 0xff) break;
        const uint8_t marker = bytes[at + 1];
        if (marker == 0xff) { /* padding */
            at++;
            continue;
        }
        const size_t length = be(bytes + at + 2, 2);
        if (marker == SCAN || marker == END || length < 2 || length > n - at - 2) break;
        if (marker == APP1 && length >= 8 && memcmp(bytes + at + 4, "Exif\0\0", 6) == 0)
            return block_at(bytes + at + 4, length - 2);
        at += 2 + length;
    }
    return (ki_span){0};
}

static ki_span in_png(const uint8_t *bytes, size_t n) {
    for (size_t at = 8; at + 12 <= n;) {
        const size_t length = be(bytes + at, 4);
        if (length > n - at - 12) break;
        if (memcmp(bytes + at + 4, "eXIf", 4) == 0) return block_at(bytes + at + 8, length);
        at += 12 + length;
    }
    return (ki_span){0};
}

static ki_span in_webp(const uint8_t *bytes, size_t n) {
    for (size_t at = 12; at + 8 <= n;) {
        const size_t length = le32(bytes + at + 4);
        if (length > n - at - 8) break;
        if (memcmp(bytes + at, "EXIF", 4) == 0) return block_at(bytes + at + 8, length);
        at += 8 + length + length % 2;
    }
    return (ki_span){0};
}

/* ---- boxes (ISO 14496-12) ---- */

/* The contents of the next box at *at, which moves behind it. False: no more, or one that reaches beyond the span. */
static bool next_box(ki_span in, size_t *at, ki_span *ret_box, const uint8_t **ret_name) {
    if (in.n < 8 || *at > in.n - 8) return false;
    const uint8_t *p = in.bytes + *at;
    const size_t left = in.n - *at;
    size_t head = 8, length = be(p, 4);
    if (length == 1) { /* 64 bits follow; what needs the upper ones is larger than the file */
        if (left < 16 || be(p + 8, 4) != 0) return false;
        head = 16;
        length = be(p + 12, 4);
    }
    if (length == 0) length = left;
    if (length < head || length > left) return false;
    *ret_name = p + 4;
    *ret_box = (ki_span){p + head, length - head};
    *at += length;
    return true;
}

static ki_span find_box(ki_span in, const char *name) {
    ki_span box = {0};
    const uint8_t *found = NULL;
    for (size_t at = 0; next_box(in, &at, &box, &found);) {
        if (memcmp(found, name, 4) == 0) return box;
    }
    return (ki_span){0};
}

static ki_span skip(ki_span in, size_t n) {
    return in.n < n ? (ki_span){0} : (ki_span){in.bytes + n, in.n - n};
}

/* A number of 0, 2, 4 or 8 bytes at the beginning, which is taken off. */
static bool take(ki_span *in, size_t n, uint64_t *ret) {
    if (in->n < n) return false;
    *ret = n == 8 ? (uint64_t)be(in->bytes, 4) << 32 | be(in->bytes + 4, 4) : be(in->bytes, n);
    *in = skip(*in, n);
    return true;
}

/* The number of the item of type Exif; false: there is none. */
static bool find_item(ki_span meta, uint64_t *ret_id) {
    const ki_span infos = find_box(meta, "iinf");
    if (infos.n < 6) return false;
    const ki_span list = skip(infos, infos.bytes[0] == 0 ? 6 : 8);
    ki_span box = {0};
    const uint8_t *name = NULL;
    for (size_t at = 0; next_box(list, &at, &box, &name);) {
        if (memcmp(name, "infe", 4) != 0 || box.n < 4 || box.bytes[0] < 2) continue;
        const size_t id_bytes = box.bytes[0] == 2 ? 2 : 4;
        ki_span rest = skip(box, 4);
        if (!take(&rest, id_bytes, ret_id) || rest.n < 6) continue;
        if (memcmp(rest.bytes + 2, "Exif", 4) == 0) return true;
    }
    return false;
}

/* How wide the numbers of the box iloc are. */
typedef struct widths {
    int version;
    size_t offset, length, base, index;
} widths;

/* One item of iloc: its number, and where its first extent lies in the file. */
static bool take_item(ki_span *in, const widths *w, uint64_t *ret_id, uint64_t *ret_offset,
                      uint64_t *ret_length) {
    uint64_t method = 0, unused = 0, base = 0, n_extents = 0, offset = 0, length = 0;
    if (!take(in, w->version < 2 ? 2 : 4, ret_id)) return false;
    if (w->version > 0 && !take(in, 2, &method)) return false;
    if (!take(in, 2, &unused) || !take(in, w->base, &base) || !take(in, 2, &n_extents)) return false;
    *ret_length = 0;
    /* Extents without any bytes would make a short file a long walk. */
    const bool has_bytes = w->offset + w->length > 0;
    for (uint64_t i = 0; has_bytes && i < n_extents; i++) {
        if (w->version > 0 && !take(in, w->index, &unused)) return false;
        if (!take(in, w->offset, &offset) || !take(in, w->length, &length)) return false;
        if (i > 0 || (method & 15) != 0) continue; /* elsewhere than in the file itself */
        *ret_offset = base + offset;
        *ret_length = length;
    }
    return true;
}

static bool find_place(ki_span meta, uint64_t id, uint64_t *ret_offset, uint64_t *ret_length) {
    ki_span in = find_box(meta, "iloc");
    if (in.n < 8) return false;
    const widths w = {.version = in.bytes[0],
                      .offset = in.bytes[4] >> 4,
                      .length = in.bytes[4] & 15,
                      .base = in.bytes[5] >> 4,
                      .index = in.bytes[5] & 15};
    uint64_t n = 0, found = 0;
    in = skip(in, 6);
    if (w.version > 2 || w.offset > 8 || w.length > 8 || w.base > 8 || w.index > 8) return false;
    if (!take(&in, w.version < 2 ? 2 : 4, &n)) return false;
    for (uint64_t i = 0; i < n && take_item(&in, &w, &found, ret_offset, ret_length); i++) {
        if (found == id) return *ret_length > 0;
    }
    return false;
}

/* The item begins with how far behind itself the block begins. */
static ki_span in_boxes(const uint8_t *bytes, size_t n) {
    const ki_span meta = skip(find_box((ki_span){bytes, n}, "meta"), 4);
    uint64_t id = 0, offset = 0, length = 0;
    if (!find_item(meta, &id) || !find_place(meta, id, &offset, &length)) return (ki_span){0};
    if (offset > n || length > n - offset || length < 4) return (ki_span){0};
    const ki_span item = {bytes + offset, (size_t)length};
    const ki_span block = skip(item, 4 + (size_t)be(item.bytes, 4));
    return block_at(block.bytes, block.n);
}

ki_span ki_exif_block(const uint8_t *bytes, size_t n) {
    if (n >= 4 && memcmp(bytes, "\xff\xd8\xff", 3) == 0) return in_jpeg(bytes, n);
    if (n >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0) return in_png(bytes, n);
    if (n >= 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBP", 4) == 0)
        return in_webp(bytes, n);
    if (n >= 12 && memcmp(bytes + 4, "ftyp", 4) == 0) return in_boxes(bytes, n);
    return (ki_span){0};
}
