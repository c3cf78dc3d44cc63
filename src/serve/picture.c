/* Asking a decoder, and what its failures mean for the request. */
#include "serve/picture.h"

#include <string.h>

#include "api/embedder_handle.h"
#include "core/alloc.h"
#include "serve/decode/decoders.h"
#include "serve/server.h"

/* Ask about a file. True: there are bytes. False: the request is answered. */
static bool ask(ki_request *r, const ki_decode_question *question, const void *file,
                ki_decode_reply *ret_reply, void **ret_bytes) {
    ki_server *s = r->server;
    kith_error err;
    const kith_status status = ki_decoders_ask(s->decoders, question, file, r->began + s->options.deadline,
                                               ret_reply, ret_bytes, &err);
    if (status == KITH_ECANCELED) {
        ki_answer_later(r, 503, 2, "all decoders of images are busy");
    } else if (status != KITH_OK) {
        ki_answer_later(r, 503, 1, err.message);
    } else if (ret_reply->is_too_large) {
        ki_answer_problem(r, 413, "send a smaller one", "%s", ret_reply->err.message);
    } else if (ret_reply->status != KITH_OK) {
        ki_answer_error(r, ret_reply->status, &ret_reply->err);
    } else {
        return true;
    }
    return false;
}

bool ki_picture_decode(ki_request *r, const void *file, size_t n_bytes, const ki_picture_want *want,
                       ki_image *ret_image) {
    ki_decode how;
    kith_error err;
    void *bytes = NULL;
    ki_decode_reply reply;
    const kith_status status = ki_embedder_decoding(r->catalog->embedder, &how, &err);
    if (status != KITH_OK) {
        ki_answer_error(r, status, &err);
        return false;
    }
    ki_decode_question question;
    memset(&question, 0, sizeof question); /* padding goes through the socket, too */
    question.n_bytes = n_bytes;
    question.want = KI_WANT_PIXELS;
    question.most_pixels = want->most_pixels;
    question.least_side = want->is_whole || want->box ? 0 : how.least_side;
    question.has_box = want->box != NULL;
    memcpy(question.background, how.background, sizeof question.background);
    if (want->box) memcpy(question.box, want->box, sizeof question.box);
    if (!ask(r, &question, file, &reply, &bytes)) return false;
    *ret_image = (ki_image){.w = reply.w,
                            .h = reply.h,
                            .full_w = reply.full_w,
                            .full_h = reply.full_h,
                            .channels = reply.channels,
                            .data = bytes,
                            .capacity = reply.n_bytes + KI_IMAGE_SLACK};
    return true;
}

ki_handling ki_picture_answer(ki_request *r, const char *path, int32_t side, int quality) {
    ki_bytes file = {0};
    kith_error err;
    void *bytes = NULL;
    ki_decode_reply reply;
    kith_status status = ki_bytes_read(&file, path, &err);
    if (status != KITH_OK)
        return ki_answer_problem(r, 404, NULL, "the picture of item %lld cannot be read", (long long)r->id);
    ki_decode_question question;
    memset(&question, 0, sizeof question);
    question.n_bytes = file.n;
    question.want = KI_WANT_JPEG;
    question.most_pixels = KI_IMAGE_MOST_PIXELS;
    question.least_side = question.side = side;
    question.quality = quality;
    memset(question.background, 255, sizeof question.background);
    if (ask(r, &question, file.data, &reply, &bytes)) ki_answer_bytes(r, "image/jpeg", bytes, reply.n_bytes);
    ki_bytes_release(&file);
    return KI_ANSWERED;
}
