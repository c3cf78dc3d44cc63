/* Antialiased resizing: a separable filter, widened when the image shrinks.
 *
 * Each output pixel is a weighted mean of the source pixels under the filter, with the filter stretched by
 * the reduction factor, so that nothing is skipped (what Pillow does; plain bilinear sampling is not
 * enough for a reduction). Weights are 14-bit fixed point, the result of the first pass is rounded to
 * bytes: results are the same on every machine. */
#ifndef KI_RESAMPLE_H
#define KI_RESAMPLE_H

#include "data/image/image.h"
#include "kith/data.h"

typedef struct ki_rect {
    int32_t x, y, w, h;
} ki_rect;

/* Weights of one axis and a scratch image; zero-initialise, one per thread, memory is reused. */
typedef struct ki_resampler {
    struct ki_axis {
        int32_t *first;  /* per output: first source pixel */
        int32_t *count;  /* and how many */
        int16_t *weight; /* [outputs, taps] */
        double *share;   /* of one output, while planning */
        int32_t taps;
        size_t first_capacity, count_capacity, weight_capacity, share_capacity;
    } across, down;
    ki_image middle;
} ki_resampler;

void ki_resampler_release(ki_resampler *resampler);

/* Resize the part `from` of src to full_w x full_h and keep only `window` of the result (in output pixels):
 * the same bytes as cutting it out of the whole. `from` must be inside src, and `window` inside the output;
 * src and dst are different images. */
kith_status ki_resample(ki_resampler *resampler, const ki_image *src, ki_rect from, int32_t full_w,
                        int32_t full_h, ki_rect window, kith_filter filter, ki_image *dst, kith_error *err);

/* The whole image, made smaller so that its longer side is at most `side`; an image that is small enough keeps its size. */
kith_status ki_resample_fit(ki_resampler *resampler, const ki_image *src, int32_t side, ki_image *dst,
                            kith_error *err);

#endif
