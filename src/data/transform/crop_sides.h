/* Sides: training images of more than one size. Every batch has one of them, the same for all of its images; which one follows from the
 * seed and the batch's place alone. An image's view is drawn as for the transform's own size and shown smaller or larger: at every
 * side the network sees the same part of it. */
#ifndef KI_CROP_SIDES_H
#define KI_CROP_SIDES_H

#include "data/transform/transform.h"

enum { KI_MOST_CROP_SIDES = 8 };

/* n 0: all batches have the transform's own side. */
typedef struct ki_crop_sides {
    int n;
    int32_t side[KI_MOST_CROP_SIDES]; /* rising */
} ki_crop_sides;

/* The side of batch `number` of an epoch; `own` where there are no others. */
int32_t ki_crop_sides_at(const ki_crop_sides *sides, int32_t own, uint64_t seed, uint32_t epoch,
                         int64_t number);
/* The largest side that a batch can have. */
int32_t ki_crop_sides_largest(const ki_crop_sides *sides, int32_t own);
/* "128, 160 or 192", into buf, which is returned. */
const char *ki_crop_sides_text(const ki_crop_sides *sides, char *buf, size_t buf_bytes);

/* The view that was drawn for images of `own` pixels, for images of `side` pixels. */
ki_draw ki_draw_at_side(const ki_draw *draw, int32_t own, int32_t side);

#endif
