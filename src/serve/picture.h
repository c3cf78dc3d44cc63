/* Images through the decoding processes, for routes. */
#ifndef KI_SERVE_PICTURE_H
#define KI_SERVE_PICTURE_H

#include "data/image/image.h"
#include "serve/query.h"

/* The pixels of an image that was sent, or of the part of it that is asked for, decoded as the model wants them. On failure the
 * request is answered: 413 for too many pixels, 503 when the decoder crashed, hung or was busy for too long. */
bool ki_picture_decode(ki_request *request, const ki_query_image *image, ki_image *ret_image);

/* Answer with a file as a JPEG of at most this side, upright and without what cameras add. */
ki_handling ki_picture_answer(ki_request *request, const char *path, int32_t side, int quality);

#endif
