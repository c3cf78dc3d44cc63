/* WebP through libwebp: still images, lossy and lossless. */
#include <string.h>

#include <webp/decode.h>

#include "base/alloc.h"
#include "data/image/image.h"

static bool matches(const uint8_t *bytes, size_t n_bytes) {
    return n_bytes >= 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBP", 4) == 0;
}

static uint32_t le32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* libwebp does not read the container's EXIF chunk, so go through the RIFF chunks here. */
static int orientation_of(const uint8_t *bytes, size_t n_bytes) {
    size_t at = 12;
    while (n_bytes - at >= 8) {
        const uint8_t *chunk = bytes + at;
        const size_t length = le32(chunk + 4), left = n_bytes - at - 8;
        if (length > left) break;
        if (memcmp(chunk, "EXIF", 4) == 0) {
            const uint8_t *block = chunk + 8;
            const size_t skip = length > 6 && memcmp(block, "Exif\0\0", 6) == 0 ? 6 : 0;
            return ki_exif_orientation(block + skip, length - skip);
        }
        if (length + (length & 1) > left) break;
        at += 8 + length + (length & 1);
    }
    return 1;
}

static kith_status features_of(const uint8_t *bytes, size_t n_bytes, WebPBitstreamFeatures *ret,
                               kith_error *err) {
    const VP8StatusCode code = WebPGetFeatures(bytes, n_bytes, ret);
    if (code != VP8_STATUS_OK)
        return ki_fail(err, KITH_EFORMAT, "the header is damaged (status %d)", (int)code);
    if (ret->has_animation) return ki_fail(err, KITH_EUNSUPPORTED, "animated images are not read");
    return KITH_OK;
}

static kith_status decode(const uint8_t *bytes, size_t n_bytes, const ki_decode *how, ki_image *ret_image,
                          int *ret_orientation, kith_error *err) {
    kith_status status = KITH_OK;
    WebPBitstreamFeatures features;
    ki_image wide = {0};
    KI_TRY(features_of(bytes, n_bytes, &features, err));
    KI_TRY(ki_image_check_size((uint64_t)features.width, (uint64_t)features.height, how->most_pixels, err));
    const int channels = features.has_alpha ? 4 : 3;
    ki_image *const target = features.has_alpha ? &wide : ret_image;
    KI_CHECK(ki_image_shape(target, features.width, features.height, channels, err));
    const size_t n_out = (size_t)target->w * (size_t)target->h * (size_t)channels;
    const int stride = target->w * channels;
    const uint8_t *done_at = channels == 4 ? WebPDecodeRGBAInto(bytes, n_bytes, target->data, n_out, stride)
                                           : WebPDecodeRGBInto(bytes, n_bytes, target->data, n_out, stride);
    if (!done_at) {
        status = ki_fail(err, KITH_EFORMAT, "the image data is damaged or cut off");
        goto done;
    }
    if (channels == 4) {
        KI_CHECK(ki_image_shape(ret_image, wide.w, wide.h, 3, err));
        ki_blend_rgba(wide.data, (int64_t)wide.w * wide.h, how->background, ret_image->data);
    }
    *ret_orientation = orientation_of(bytes, n_bytes);
done:
    ki_image_release(&wide);
    return status;
}

static kith_status probe(const uint8_t *bytes, size_t n_bytes, int32_t *ret_w, int32_t *ret_h,
                         int *ret_orientation, kith_error *err) {
    WebPBitstreamFeatures features;
    KI_TRY(features_of(bytes, n_bytes, &features, err));
    *ret_w = features.width;
    *ret_h = features.height;
    *ret_orientation = orientation_of(bytes, n_bytes);
    return KITH_OK;
}

/* A lossless image is kept as ARGB beside what comes out. */
const ki_image_format ki_image_webp = {
    .name = "WebP", .matches = matches, .decode = decode, .probe = probe, .pixel_bytes = 8};
