/* The decoding process: it locks itself in, and answers questions until its standard input is closed. */
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/alloc.h"
#include "data/transform/resample.h"
#include "serve/decode/sandbox.h"
#include "serve/decode/wire.h"
#include "serve/serve.h"

typedef struct child {
    ki_decode_question question;
    ki_bytes file, jpeg;
    ki_image image, part;
    ki_resampler resampler;
    ki_decode_reply reply;
    const void *bytes; /* that follow the reply */
} child;

/* Sizes are known from the header: a file of a few bytes may stand for gigabytes of pixels. */
static kith_status check_size(child *c, kith_error *err) {
    int32_t w = 0, h = 0;
    kith_status status = ki_image_probe(c->file.data, c->file.n, &w, &h, err);
    if (status == KITH_OK)
        status = ki_image_check_size((uint64_t)w, (uint64_t)h, c->question.most_pixels, err);
    c->reply.is_too_large = status == KITH_EINVAL;
    return status;
}

static kith_status answer_pixels(child *c, kith_error *err) {
    const ki_image *image = &c->image;
    if (c->question.has_box) {
        KI_TRY(ki_image_cut(&c->image, c->question.box, &c->part, NULL, err));
        image = &c->part;
    }
    c->reply.w = image->w;
    c->reply.h = image->h;
    c->reply.channels = image->channels;
    c->reply.full_w = c->image.full_w;
    c->reply.full_h = c->image.full_h;
    c->reply.n_bytes = (uint64_t)image->w * (uint64_t)image->h * (uint64_t)image->channels;
    c->bytes = image->data;
    return KITH_OK;
}

static kith_status answer_jpeg(child *c, kith_error *err) {
    KI_TRY(ki_resample_fit(&c->resampler, &c->image, c->question.side, &c->part, err));
    KI_TRY(ki_jpeg_encode(&c->part, c->question.quality, &c->jpeg, err));
    c->reply.n_bytes = c->jpeg.n;
    c->bytes = c->jpeg.data;
    return KITH_OK;
}

static kith_status answer(child *c, kith_error *err) {
    const ki_decode_question *q = &c->question;
    ki_decode how = {.most_pixels = q->most_pixels, .least_side = q->least_side};
    memcpy(how.background, q->background, sizeof how.background);
    KI_TRY(check_size(c, err));
    KI_TRY(ki_image_decode(c->file.data, c->file.n, &how, &c->image, err));
    return q->want == KI_WANT_PIXELS ? answer_pixels(c, err) : answer_jpeg(c, err);
}

/* One question. False: nobody asks any more. */
static bool serve_one(child *c) {
    if (!ki_wire_read(STDIN_FILENO, &c->question, sizeof c->question, 0)) return false;
    memset(&c->reply, 0, sizeof c->reply);
    kith_status status = ki_grow(&c->file.data, &c->file.capacity, (size_t)c->question.n_bytes + 1, 1,
                                 "a file", &c->reply.err);
    if (status != KITH_OK) return false; /* its bytes cannot be passed over: another process begins anew */
    c->file.n = (size_t)c->question.n_bytes;
    if (!ki_wire_read(STDIN_FILENO, c->file.data, c->file.n, 0)) return false;
    status = answer(c, &c->reply.err);
    c->reply.status = status;
    if (status != KITH_OK) c->reply.n_bytes = 0;
    return ki_wire_write(STDIN_FILENO, &c->reply, sizeof c->reply, 0) &&
           ki_wire_write(STDIN_FILENO, c->bytes, (size_t)c->reply.n_bytes, 0);
}

int ki_decoder_main(void) {
    static child c;
    uint64_t memory_bytes = 0;
    if (!ki_wire_read(STDIN_FILENO, &memory_bytes, sizeof memory_bytes, 0)) return 1;
    c.reply.status = ki_sandbox_enter(memory_bytes, &c.reply.err);
    if (!ki_wire_write(STDIN_FILENO, &c.reply, sizeof c.reply, 0) || c.reply.status != KITH_OK) return 1;
    while (serve_one(&c)) {
        /* A large image is not kept until the next one. */
        if (c.image.capacity + c.part.capacity > (size_t)64 << 20) {
            ki_image_release(&c.image);
            ki_image_release(&c.part);
            ki_image_release(&c.resampler.middle);
        }
    }
    /* Without what the libraries of the program do at its end, which needs more than this process may do. */
    syscall(SYS_exit_group, 0);
    return 0;
}
