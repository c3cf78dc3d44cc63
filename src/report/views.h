/* What a recipe shows the network: some photos, each as it is, as tests see it, and as training draws it. */
#ifndef KI_VIEWS_H
#define KI_VIEWS_H

#include "base/buffer.h"
#include "data/image/image.h"
#include "kith/data.h"

typedef struct ki_views {
    const char *title;          /* of the page */
    const kith_dataset *set;    /* whose training images are shown, evenly spaced */
    kith_transform train, test; /* order, mean and std are ignored */
    int64_t n_images, n_draws;
    uint64_t seed;
} ki_views;

/* One HTML page that loads nothing from elsewhere. An image that cannot be read is named in its place. KITH_EINVAL when
 * there is no training image. */
kith_status ki_views_make(const ki_views *views, ki_buffer *to, kith_error *err);

/* The same as one small picture: a row for each photo, left to right the photo, its view in tests and the draws. The row of
 * an image that cannot be read is empty. */
kith_status ki_views_picture(const ki_views *views, ki_image *ret_picture, kith_error *err);

#endif
