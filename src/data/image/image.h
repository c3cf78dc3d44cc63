/* Images in memory and the formats they come from: JPEG, PNG, WebP, and HEIC and AVIF (docs/adr/0015).
 *
 * Pixels are rows of interleaved bytes, one (grey) or three (RGB) channels, no padding between rows, upright
 * (EXIF orientation applied), alpha already blended with the background. After the last pixel come
 * KI_IMAGE_SLACK bytes that may be read and written: loops may handle a three-byte pixel as four bytes. */
#ifndef KI_IMAGE_H
#define KI_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define KI_IMAGE_FORMATS "JPEG, PNG, WebP, HEIC, AVIF"
#define KI_PLAIN_ENDINGS ".jpg .jpeg .png .webp"
#define KI_HEIF_ENDINGS ".heic .heif .avif" /* read where the plugin can be loaded (ki_heif_open) */
#define KI_IMAGE_ENDINGS KI_PLAIN_ENDINGS " " KI_HEIF_ENDINGS
#define KI_IMAGE_SLACK 64
#define KI_IMAGE_MOST_SIDE 65500
#define KI_IMAGE_MOST_PIXELS 100000000 /* the default limit against decompression bombs */
/* The file of an image within the pixel limit is never larger than this. */
#define KI_IMAGE_MOST_FILE_BYTES (INT64_C(1) << 30)

/* Zero-initialise; the memory is kept and reused by the next decode into the same struct. */
typedef struct ki_image {
    int32_t w, h;
    int32_t full_w, full_h; /* as in the file: more than w, h when it was decoded at a smaller scale */
    int channels;
    uint8_t *data;
    size_t capacity;
} ki_image;

/* Give the image this shape; contents undefined. Allocates only when it must grow. */
kith_status ki_image_shape(ki_image *image, int64_t w, int64_t h, int channels, kith_error *err);
void ki_image_release(ki_image *image);

typedef struct ki_decode {
    int64_t most_pixels;   /* refuse images with more, before decoding; 0 = KI_IMAGE_MOST_PIXELS */
    int32_t least_side;    /* a JPEG may come out smaller as long as both sides keep this; 0 = full size */
    uint8_t background[3]; /* RGB, under transparent pixels */
} ki_decode;

/* Decode by content, whatever the file is called. KITH_EFORMAT for a damaged image,
 * KITH_EUNSUPPORTED for a format or feature that is not read, KITH_EINVAL for one that is too big. */
kith_status ki_image_decode(const uint8_t *bytes, size_t n_bytes, const ki_decode *how, ki_image *ret_image,
                            kith_error *err);

/* Width and height (upright) from the header alone. An image that ki_image_decode would refuse for its size is refused
 * here in the same words. */
kith_status ki_image_probe(const uint8_t *bytes, size_t n_bytes, int32_t *ret_w, int32_t *ret_h,
                           kith_error *err);

/* About how many bytes decoding takes at its most, from the header alone: pixels, and what a format keeps beside them. Errors as those of
 * ki_image_probe. */
kith_status ki_image_decode_bytes(const uint8_t *bytes, size_t n_bytes, const ki_decode *how,
                                  int64_t *ret_bytes, kith_error *err);

/* The part of an image of w x h pixels in a box (x, y, width, height in pixels), in whole pixels. KITH_EINVAL when the box misses the
 * image. */
kith_status ki_image_part(int32_t w, int32_t h, const double box[4], double ret_part[4], kith_error *err);
/* That part of src: ret_part (may be NULL) says which. dst is another image. */
kith_status ki_image_cut(const ki_image *src, const double box[4], ki_image *dst, double ret_part[4],
                         kith_error *err);
/* Left and right swapped, in place. */
void ki_image_swap_sides(ki_image *image);

/* Can HEIC and AVIF be read? Loads the plugin (plugin/heif.c); the first answer holds for the life of the process. The error of
 * KITH_EUNSUPPORTED says what to install. Call it before a process gives up opening files. err may be NULL. */
kith_status ki_heif_open(kith_error *err);
/* Read with this record of the plugin, without loading it: for programs that link plugin/heif.c, such as fuzz targets. */
void ki_heif_adopt(const void *record);

/* Whole files into a buffer that is kept for the next one. */
typedef struct ki_bytes {
    uint8_t *data;
    size_t n, capacity;
} ki_bytes;

kith_status ki_bytes_read(ki_bytes *bytes, const char *path, kith_error *err);
void ki_bytes_release(ki_bytes *bytes);

/* An 8-bit grey or RGB PNG file in memory, into `bytes`. */
kith_status ki_png_encode(const ki_image *image, ki_bytes *bytes, kith_error *err);
/* The same as a JPEG file; quality 1 … 100. */
kith_status ki_jpeg_encode(const ki_image *image, int quality, ki_bytes *bytes, kith_error *err);

/* ---- between the files of this folder ---- */

typedef struct ki_image_format {
    const char *name;
    bool (*matches)(const uint8_t *bytes, size_t n_bytes);
    kith_status (*decode)(const uint8_t *bytes, size_t n_bytes, const ki_decode *how, ki_image *ret_image,
                          int *ret_orientation, kith_error *err);
    kith_status (*probe)(const uint8_t *bytes, size_t n_bytes, int32_t *ret_w, int32_t *ret_h,
                         int *ret_orientation, kith_error *err);
    int pixel_bytes; /* that decoding takes for each pixel, at its most; 0: decode_bytes says it */
    /* The bytes of ki_image_decode_bytes before the image is turned upright, and how many of them are its pixels. Called after a probe
     * that was good. */
    kith_status (*decode_bytes)(const uint8_t *bytes, size_t n_bytes, const ki_decode *how,
                                int64_t *ret_pixels, int64_t *ret_bytes, kith_error *err);
} ki_image_format;

extern const ki_image_format ki_image_jpeg, ki_image_png, ki_image_webp, ki_image_heif;

/* Refuse a size that is zero or over the limits. */
kith_status ki_image_check_size(uint64_t w, uint64_t h, int64_t most_pixels, kith_error *err);
/* The orientation tag (1 … 8) of an EXIF block (after "Exif\0\0"); 1 when it has none or is damaged. */
int ki_exif_orientation(const uint8_t *tiff, size_t n_bytes);
/* Turn the image upright in place; `scratch` is used when sides swap. */
kith_status ki_image_upright(ki_image *image, int orientation, ki_image *scratch, kith_error *err);
/* n pixels of RGBA to RGB over the background. dst may be src. */
void ki_blend_rgba(const uint8_t *src, int64_t n, const uint8_t background[3], uint8_t *dst);
/* n pixels of grey and alpha to grey, over the background's luma. */
void ki_blend_ga(const uint8_t *src, int64_t n, const uint8_t background[3], uint8_t *dst);

#endif
