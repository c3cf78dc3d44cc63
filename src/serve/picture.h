/* Images through the decoding processes, for routes. */
#ifndef KI_SERVE_PICTURE_H
#define KI_SERVE_PICTURE_H

#include "data/image/image.h"
#include "serve/query.h"

/* What is wanted of an image. */
typedef struct ki_picture_want {
    int64_t most_pixels;
    bool is_whole; /* at full size; else a JPEG may be decoded smaller, as the model wants it */
    const double
        *box; /* only this part: x, y, width, height in pixels of the upright image; NULL: all of it */
} ki_picture_want;

/* The pixels of a file, with the background that the model wants; full_w and full_h of the image say how large the whole one is. On
 * failure the request is answered: 413 for too many pixels, 503 when the decoder crashed, hung or was busy for too long. */
bool ki_picture_decode(ki_request *request, const void *file, size_t n_bytes, const ki_picture_want *want,
                       ki_image *ret_image);

/* Answer with a file as a JPEG of at most this side, upright and without what cameras add. */
ki_handling ki_picture_answer(ki_request *request, const char *path, int32_t side, int quality);

#endif
