/* Images of any format: recognising the format, limits, decoding. */
#include "data/image/image.h"

#include <string.h>

#include "base/alloc.h"
#include "io/tar_file.h"

static const ki_image_format *const formats[] = {
    &ki_image_jpeg,
    &ki_image_png,
    &ki_image_webp,
    &ki_image_heif,
};
enum { N_FORMATS = sizeof formats / sizeof formats[0] };

static const ki_image_format *find_format(const uint8_t *bytes, size_t n_bytes) {
    for (int i = 0; i < N_FORMATS; i++) {
        if (formats[i]->matches(bytes, n_bytes)) return formats[i];
    }
    return NULL;
}

/* Formats that are not read, by how their files begin; ? is any byte. */
static const struct {
    const char *begin;
    int n;
    const char *what;
} foreign[] = {
    {"GIF8", 4, "a GIF"},
    {"BM????\0\0", 8, "a BMP"},
    {"II*\0\020\0\0\0CR", 10, "a camera's raw file (CR2)"},
    {"II*\0", 4, "a TIFF or a camera's raw file"},
    {"MM\0*", 4, "a TIFF or a camera's raw file"},
    {"II+\0", 4, "a TIFF"},
    {"MM\0+", 4, "a TIFF"},
    {"FUJIFILMCCD-RAW", 15, "a camera's raw file (RAF)"},
    {"IIRO", 4, "a camera's raw file (ORF)"},
    {"IIU\0", 4, "a camera's raw file (RW2)"},
    {"????ftypcrx ", 12, "a camera's raw file (CR3)"},
    {"????ftyp", 8, "a video"},
    {"????moov", 8, "a video"},
    {"RIFF????AVI ", 12, "a video"},
    {"\x1a\x45\xdf\xa3", 4, "a video"},
    {"\0\0\0\x0cjP  ", 8, "a JPEG 2000"},
    {"\0\0\0\x0cJXL ", 8, "a JPEG XL"},
    {"\xff\x0a", 2, "a JPEG XL"},
    {"8BPS", 4, "a PSD"},
    {"%PDF", 4, "a PDF"},
    {"\0\0\1\0", 4, "an ICO"},
    {"<svg", 4, "an SVG"},
};

static const char *name_foreign(const uint8_t *bytes, size_t n_bytes) {
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        int k = 0;
        while ((size_t)k < n_bytes && k < foreign[i].n &&
               (foreign[i].begin[k] == '?' || (uint8_t)foreign[i].begin[k] == bytes[k]))
            k++;
        if (k == foreign[i].n) return foreign[i].what;
    }
    return NULL;
}

static kith_status fail_format(const uint8_t *bytes, size_t n_bytes, kith_error *err) {
    if (n_bytes == 0) return ki_fail(err, KITH_EFORMAT, "the file is empty");
    const char *what = name_foreign(bytes, n_bytes);
    if (what) return ki_fail(err, KITH_EUNSUPPORTED, "the file is %s; read are " KI_IMAGE_FORMATS, what);
    return ki_fail(err, KITH_EUNSUPPORTED,
                   "the file begins with byte 0x%02x and is none of " KI_IMAGE_FORMATS, bytes[0]);
}

kith_status ki_image_decode(const uint8_t *bytes, size_t n_bytes, const ki_decode *how, ki_image *ret_image,
                            kith_error *err) {
    kith_status status = KITH_OK;
    ki_image turned = {0};
    const ki_image_format *format = find_format(bytes, n_bytes);
    if (!format) return fail_format(bytes, n_bytes, err);
    ki_decode settings = *how;
    if (settings.most_pixels <= 0) settings.most_pixels = KI_IMAGE_MOST_PIXELS;
    int orientation = 1;
    KI_CHECK(format->decode(bytes, n_bytes, &settings, ret_image, &orientation, err));
    KI_CHECK(ki_image_upright(ret_image, orientation, &turned, err));
done:
    ki_image_release(&turned);
    if (status != KITH_OK && status != KITH_ENOMEM) ki_prefix(err, status, "%s", format->name);
    return status;
}

static kith_status probe(const ki_image_format *format, const uint8_t *bytes, size_t n_bytes, int32_t *ret_w,
                         int32_t *ret_h, int *ret_orientation, kith_error *err) {
    KI_TRY(format->probe(bytes, n_bytes, ret_w, ret_h, ret_orientation, err));
    return ki_image_check_size((uint64_t)*ret_w, (uint64_t)*ret_h, KI_IMAGE_MOST_PIXELS, err);
}

kith_status ki_image_probe(const uint8_t *bytes, size_t n_bytes, int32_t *ret_w, int32_t *ret_h,
                           kith_error *err) {
    const ki_image_format *format = find_format(bytes, n_bytes);
    if (!format) return fail_format(bytes, n_bytes, err);
    int32_t w = 0, h = 0;
    int orientation = 1;
    const kith_status status = probe(format, bytes, n_bytes, &w, &h, &orientation, err);
    if (status != KITH_OK) return ki_prefix(err, status, "%s", format->name);
    *ret_w = orientation >= 5 ? h : w;
    *ret_h = orientation >= 5 ? w : h;
    return KITH_OK;
}

kith_status ki_image_decode_bytes(const uint8_t *bytes, size_t n_bytes, const ki_decode *how,
                                  int64_t *ret_bytes, kith_error *err) {
    enum { SIDES_SWAP = 5 };
    const ki_image_format *format = find_format(bytes, n_bytes);
    if (!format) return fail_format(bytes, n_bytes, err);
    int32_t w = 0, h = 0;
    int orientation = 1;
    kith_status status = probe(format, bytes, n_bytes, &w, &h, &orientation, err);
    int64_t pixels = 4 * (int64_t)w * h, all = format->pixel_bytes * (int64_t)w * h;
    if (status == KITH_OK && format->pixel_bytes == 0)
        status = format->decode_bytes(bytes, n_bytes, how, &pixels, &all, err);
    if (status != KITH_OK) return ki_prefix(err, status, "%s", format->name);
    /* Sides are swapped into another image. */
    *ret_bytes = orientation >= SIDES_SWAP ? all + pixels : all;
    return KITH_OK;
}

kith_status ki_bytes_read(ki_bytes *bytes, const char *path, kith_error *err) {
    kith_status status = KITH_OK;
    ki_member part;
    KI_TRY(ki_member_open(path, &part, err));
    if (part.bytes > KI_IMAGE_MOST_FILE_BYTES) {
        status = ki_fail(err, KITH_EINVAL, "%s has %jd bytes; the limit is %jd", path, (intmax_t)part.bytes,
                         (intmax_t)KI_IMAGE_MOST_FILE_BYTES);
        goto done;
    }
    bytes->n = 0;
    const size_t wanted = (size_t)part.bytes;
    KI_CHECK(ki_grow(&bytes->data, &bytes->capacity, wanted + 1, 1, "a file", err));
    KI_CHECK(ki_member_read(&part, path, bytes->data, wanted, 0, &bytes->n, err));
    bytes->data[bytes->n] = '\0'; /* text readers may stop at it */
done:
    ki_member_close(&part);
    return status;
}

void ki_bytes_release(ki_bytes *bytes) {
    ki_free(bytes->data);
    *bytes = (ki_bytes){0};
}
