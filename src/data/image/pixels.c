/* The memory of an image and its limits: what every reader of a format needs, and a plugin links without the other readers. */
#include <string.h>

#include "base/alloc.h"
#include "data/image/image.h"

kith_status ki_image_shape(ki_image *image, int64_t w, int64_t h, int channels, kith_error *err) {
    KI_TRY(ki_image_check_size((uint64_t)w, (uint64_t)h, INT64_MAX, err));
    const size_t bytes = (size_t)w * (size_t)h * (size_t)channels + KI_IMAGE_SLACK;
    if (bytes > image->capacity) {
        uint8_t *data = NULL;
        KI_TRY(ki_alloc_or(&data, bytes, 1, "an image", err));
        ki_free(image->data);
        image->data = data;
        image->capacity = bytes;
    }
    /* The slack is read, so its contents must not depend on what the memory held before. */
    memset(image->data + bytes - KI_IMAGE_SLACK, 0, KI_IMAGE_SLACK);
    image->w = image->full_w = (int32_t)w;
    image->h = image->full_h = (int32_t)h;
    image->channels = channels;
    return KITH_OK;
}

void ki_image_release(ki_image *image) {
    ki_free(image->data);
    *image = (ki_image){0};
}

kith_status ki_image_check_size(uint64_t w, uint64_t h, int64_t most_pixels, kith_error *err) {
    if (w == 0 || h == 0)
        return ki_fail(err, KITH_EFORMAT, "the image is %ju x %ju pixels", (uintmax_t)w, (uintmax_t)h);
    if (w > KI_IMAGE_MOST_SIDE || h > KI_IMAGE_MOST_SIDE)
        return ki_fail(err, KITH_EINVAL, "the image is %ju x %ju pixels; the longest side read is %d",
                       (uintmax_t)w, (uintmax_t)h, KI_IMAGE_MOST_SIDE);
    if ((int64_t)(w * h) > most_pixels) {
        ki_fail(err, KITH_EINVAL, "the image is %ju x %ju pixels; the limit is %jd pixels", (uintmax_t)w,
                (uintmax_t)h, (intmax_t)most_pixels);
        return ki_hint(err, KITH_EINVAL, "shrink the file or raise the pixel limit");
    }
    return KITH_OK;
}
