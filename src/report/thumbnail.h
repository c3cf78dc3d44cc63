/* Small pictures of images, inside the page. */
#ifndef KI_THUMBNAIL_H
#define KI_THUMBNAIL_H

#include "base/buffer.h"
#include "data/transform/transform.h"
#include "io/run_paths.h"

/* Reads images one after another; zero-initialise, memory is reused. */
typedef struct ki_thumbnails {
    ki_bytes file, png, jpeg;
    ki_image image, base, square;
    ki_transform_scratch scratch;
    kith_dataset *dataset;     /* for images inside idx files; opened from `recipe` when first needed */
    const char *recipe;        /* path, or NULL */
    const ki_run_paths *paths; /* of the run whose images these are, or NULL */
    bool has_tried;
} ki_thumbnails;

void ki_thumbnails_release(ki_thumbnails *thumbnails);

/* The middle square of the image at `path`, as RGB [size, size, 3]. */
kith_status ki_thumbnail_read(ki_thumbnails *thumbnails, const char *path, int size, uint8_t *ret_rgb,
                              kith_error *err);

/* The whole image, its longer side at most `side`; it belongs to the thumbnails until the next call. */
kith_status ki_thumbnail_fit(ki_thumbnails *thumbnails, const char *path, int side,
                             const ki_image **ret_image, kith_error *err);
/* The same for the contents of a file. */
kith_status ki_thumbnail_fit_bytes(ki_thumbnails *thumbnails, const void *bytes, size_t n, int side,
                                   const ki_image **ret_image, kith_error *err);

/* RGB as a data: URI, as JPEG or PNG, whichever is shorter; grey if there is no colour. */
void ki_thumbnail_uri(ki_thumbnails *thumbnails, const uint8_t *rgb, int size, ki_buffer *to);
/* The same for an image of any size. */
void ki_thumbnail_image_uri(ki_thumbnails *thumbnails, const ki_image *image, ki_buffer *to);

#endif
