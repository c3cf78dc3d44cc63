/* Images through the decoding processes, for routes. A request asks, and goes on in the pool when the answer is there:
 *
 *     return ki_picture_ask(request, &want, take);        … and in take():
 *     if (!ki_picture_take(request, shown, &n)) return KI_ANSWERED;
 *
 * The pixels are the request's, and count in the decoded bytes of all requests until ki_picture_drop. */
#ifndef KI_SERVE_PICTURE_H
#define KI_SERVE_PICTURE_H

#include "kith/model.h"
#include "serve/decode/wire.h"
#include "serve/http/request.h"

/* What is wanted of an image. */
typedef struct ki_picture_want {
    const void *file; /* stays until the answer is there … */
    size_t n_bytes;
    const char *path; /* … or the path of a file of the index */
    int64_t most_pixels;
    const ki_decode_view *view; /* with the background and as small as the model takes them */
    int n_views;
} ki_picture_want;

/* A view: its pixels, how large the whole image is, and which part of that they show (x, y, width, height). */
typedef struct ki_picture_shown {
    kith_pixels pixels;
    int32_t full_w, full_h;
    double shown[4];
} ki_picture_shown;

/* One image at a time. */
ki_handling ki_picture_ask(ki_request *request, const ki_picture_want *want, ki_request_fn then);
/* The views that were asked for, in that order: at most KI_MOST_VIEWS. On failure the request is answered: 413 for an image that is too large, 503 when the
 * decoder crashed, hung, or none was free in time. */
bool ki_picture_take(ki_request *request, ki_picture_shown *ret_shown, int *ret_n);
/* The request has no use for its pixels any more. */
void ki_picture_drop(ki_request *request);

/* Answer with a file as a JPEG of at most this side, upright and without what cameras add. */
ki_handling ki_picture_answer(ki_request *request, const char *path, int32_t side, int quality);

#endif
