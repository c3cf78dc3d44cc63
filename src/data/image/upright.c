/* EXIF orientation, and transparency blended with a colour. */
#include <string.h>

#include "base/alloc.h"
#include "data/image/image.h"

typedef struct tiff {
    const uint8_t *bytes;
    size_t n;
    bool big_endian;
} tiff;

static uint32_t read16(const tiff *t, size_t at) {
    if (t->n < 2 || at > t->n - 2) return 0;
    const uint8_t *p = t->bytes + at;
    return t->big_endian ? (uint32_t)p[0] << 8 | p[1] : (uint32_t)p[1] << 8 | p[0];
}

static uint32_t read32(const tiff *t, size_t at) {
    const uint32_t a = read16(t, at), b = read16(t, at + 2);
    return t->big_endian ? a << 16 | b : b << 16 | a;
}

int ki_exif_orientation(const uint8_t *bytes, size_t n_bytes) {
    enum { TAG_ORIENTATION = 0x112, TYPE_SHORT = 3, ENTRY_BYTES = 12 };
    tiff t = {bytes, n_bytes, false};
    if (n_bytes < 8) return 1;
    if (memcmp(bytes, "MM\0*", 4) == 0)
        t.big_endian = true;
    else if (memcmp(bytes, "II*\0", 4) != 0)
        return 1;
    const size_t directory = read32(&t, 4);
    if (directory > n_bytes) return 1;
    const uint32_t n_entries = read16(&t, directory);
    for (uint32_t i = 0; i < n_entries; i++) {
        const size_t at = directory + 2 + (size_t)i * ENTRY_BYTES;
        if (at + ENTRY_BYTES > n_bytes) return 1;
        if (read16(&t, at) != TAG_ORIENTATION) continue;
        if (read16(&t, at + 2) != TYPE_SHORT) return 1;
        const uint32_t value = read16(&t, at + 8);
        return value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}

/* Where pixel (x, y) of the upright image is in the stored one. The tag says which corner of the stored image
 * is the upright image's top left, and whether the axes swap. */
typedef struct turn {
    bool swaps, from_right, from_bottom;
} turn;

static const turn turns[9] = {
    [2] = {false, true, false}, [3] = {false, true, true}, [4] = {false, false, true},
    [5] = {true, false, false}, [6] = {true, false, true}, [7] = {true, true, true},
    [8] = {true, true, false},
};

kith_status ki_image_upright(ki_image *image, int orientation, ki_image *scratch, kith_error *err) {
    if (orientation < 2 || orientation > 8) return KITH_OK;
    const turn how = turns[orientation];
    const int32_t sw = image->w, sh = image->h;
    const int channels = image->channels;
    KI_TRY(ki_image_shape(scratch, how.swaps ? sh : sw, how.swaps ? sw : sh, channels, err));
    uint8_t *dst = scratch->data;
    for (int32_t y = 0; y < scratch->h; y++) {
        for (int32_t x = 0; x < scratch->w; x++, dst += channels) {
            int32_t sx = how.swaps ? y : x, sy = how.swaps ? x : y;
            if (how.from_right) sx = sw - 1 - sx;
            if (how.from_bottom) sy = sh - 1 - sy;
            const uint8_t *src = image->data + ((size_t)sy * (size_t)sw + (size_t)sx) * (size_t)channels;
            for (int c = 0; c < channels; c++) dst[c] = src[c];
        }
    }
    scratch->full_w = how.swaps ? image->full_h : image->full_w;
    scratch->full_h = how.swaps ? image->full_w : image->full_h;
    const ki_image t = *image;
    *image = *scratch;
    *scratch = t;
    return KITH_OK;
}

static uint8_t blend(int over, int under, int alpha) {
    const int t = over * alpha + under * (255 - alpha) + 128;
    return (uint8_t)((t + (t >> 8)) >> 8);
}

void ki_blend_rgba(const uint8_t *src, int64_t n, const uint8_t background[3], uint8_t *dst) {
    for (int64_t i = 0; i < n; i++) {
        const int alpha = src[4 * i + 3];
        for (int c = 0; c < 3; c++) dst[3 * i + c] = blend(src[4 * i + c], background[c], alpha);
    }
}

void ki_blend_ga(const uint8_t *src, int64_t n, const uint8_t background[3], uint8_t *dst) {
    const int under = (background[0] * 299 + background[1] * 587 + background[2] * 114 + 500) / 1000;
    for (int64_t i = 0; i < n; i++) dst[i] = blend(src[2 * i], under, src[2 * i + 1]);
}
