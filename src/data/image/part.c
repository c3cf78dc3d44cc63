/* Parts of an image, and its mirror image. */
#include <math.h>
#include <string.h>

#include "data/image/image.h"

kith_status ki_image_part(int32_t w, int32_t h, const double box[4], double ret_part[4], kith_error *err) {
    const double left = floor(box[0] > 0 ? box[0] : 0), top = floor(box[1] > 0 ? box[1] : 0);
    const double right = ceil(fmin(box[0] + box[2], w)), bottom = ceil(fmin(box[1] + box[3], h));
    if (!(right > left && bottom > top && box[2] > 0 && box[3] > 0))
        return ki_fail(err, KITH_EINVAL, "the part %g,%g,%g,%g lies outside the image of %d x %d pixels",
                       box[0], box[1], box[2], box[3], (int)w, (int)h);
    memcpy(ret_part, (double[]){left, top, right - left, bottom - top}, 4 * sizeof *ret_part);
    return KITH_OK;
}

kith_status ki_image_cut(const ki_image *src, const double box[4], ki_image *dst, double ret_part[4],
                         kith_error *err) {
    double part[4];
    KI_TRY(ki_image_part(src->w, src->h, box, part, err));
    const int64_t x = (int64_t)part[0], y = (int64_t)part[1], w = (int64_t)part[2], h = (int64_t)part[3];
    KI_TRY(ki_image_shape(dst, w, h, src->channels, err));
    for (int64_t i = 0; i < h; i++)
        memcpy(dst->data + i * w * src->channels, src->data + ((y + i) * src->w + x) * src->channels,
               (size_t)(w * src->channels));
    if (ret_part) memcpy(ret_part, part, sizeof part);
    return KITH_OK;
}

void ki_image_swap_sides(ki_image *image) {
    const size_t c = (size_t)image->channels, w = (size_t)image->w;
    for (int32_t y = 0; y < image->h; y++) {
        uint8_t *left = image->data + (size_t)y * w * c, *right = left + (w - 1) * c, pixel[3];
        for (; left < right; left += c, right -= c) {
            memcpy(pixel, left, c);
            memcpy(left, right, c);
            memcpy(right, pixel, c);
        }
    }
}
