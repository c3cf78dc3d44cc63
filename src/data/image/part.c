/* Parts of an image, and its mirror image. */
#include <math.h>
#include <string.h>

#include "data/image/image.h"

kith_status ki_image_cut(const ki_image *src, const double box[4], ki_image *dst, double ret_part[4],
                         kith_error *err) {
    const double left = floor(box[0] > 0 ? box[0] : 0), top = floor(box[1] > 0 ? box[1] : 0);
    const double right = ceil(fmin(box[0] + box[2], src->w)), bottom = ceil(fmin(box[1] + box[3], src->h));
    if (!(right > left && bottom > top && box[2] > 0 && box[3] > 0))
        return ki_fail(err, KITH_EINVAL, "the part %g,%g,%g,%g lies outside the image of %d x %d pixels",
                       box[0], box[1], box[2], box[3], (int)src->w, (int)src->h);
    const int64_t x = (int64_t)left, y = (int64_t)top, w = (int64_t)(right - left),
                  h = (int64_t)(bottom - top);
    KI_TRY(ki_image_shape(dst, w, h, src->channels, err));
    for (int64_t i = 0; i < h; i++)
        memcpy(dst->data + i * w * src->channels, src->data + ((y + i) * src->w + x) * src->channels,
               (size_t)(w * src->channels));
    if (ret_part) memcpy(ret_part, (double[]){left, top, right - left, bottom - top}, 4 * sizeof *ret_part);
    return KITH_OK;
}

kith_status ki_image_mirror(const ki_image *src, ki_image *dst, kith_error *err) {
    const int64_t c = src->channels;
    KI_TRY(ki_image_shape(dst, src->w, src->h, src->channels, err));
    for (int64_t y = 0; y < src->h; y++) {
        for (int64_t x = 0; x < src->w; x++)
            memcpy(dst->data + (y * src->w + src->w - 1 - x) * c, src->data + (y * src->w + x) * c,
                   (size_t)c);
    }
    return KITH_OK;
}
