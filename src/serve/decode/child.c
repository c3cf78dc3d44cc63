/* The decoding process: it locks itself in, and answers questions until its standard input is closed. */
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "data/transform/transform.h"
#include "serve/decode/sandbox.h"
#include "serve/decode/wire.h"
#include "serve/serve.h"

/* What is kept from one image to the next. */
enum { KEPT_BYTES = 8 << 20 };

typedef struct child {
    ki_decode_question question;
    ki_decode smaller, whole; /* how the image itself is decoded, and how one is of which parts are cut */
    bool is_same;             /* the one is as good as the other */
    bool is_turned;           /* the image is mirrored now */
    ki_bytes file, jpeg;
    ki_image image, small, view[KI_MOST_VIEWS];
    ki_transform_scratch scratch;
    ki_decode_reply reply;
} child;

/* ---- what it would take ---- */

/* Sizes are known from the header: a file of a few bytes may stand for gigabytes of pixels. */
static kith_status check_size(child *c, kith_error *err) {
    kith_status status = ki_image_probe(c->file.data, c->file.n, &c->reply.full_w, &c->reply.full_h, err);
    if (status == KITH_OK)
        status = ki_image_check_size((uint64_t)c->reply.full_w, (uint64_t)c->reply.full_h,
                                     c->question.most_pixels, err);
    c->reply.is_too_large = status == KITH_EINVAL;
    return status;
}

/* The pixels of a view at most; a JPEG that is decoded smaller has fewer. */
static kith_status count_view(const child *c, const ki_decode_view *view, int64_t *ret_bytes,
                              kith_error *err) {
    int32_t w = c->reply.full_w, h = c->reply.full_h;
    if (view->has_box) {
        double part[4];
        KI_TRY(ki_image_part(w, h, view->box, part, err));
        w = (int32_t)part[2], h = (int32_t)part[3];
    }
    ki_transform_shrunk(&c->question.transform, &w, &h);
    *ret_bytes = 3 * (int64_t)w * h;
    return KITH_OK;
}

static kith_status estimate(child *c, kith_error *err) {
    const ki_decode_question *q = &c->question;
    int64_t n_smaller = 0, n_whole = 0;
    bool has_boxes = false;
    if (q->n_views < 0 || q->n_views > KI_MOST_VIEWS)
        return ki_fail(err, KITH_EINTERNAL, "%d views", (int)q->n_views);
    c->whole = (ki_decode){.most_pixels = q->most_pixels};
    memcpy(c->whole.background, q->background, sizeof c->whole.background);
    c->smaller = c->whole;
    c->smaller.least_side = q->least_side;
    KI_TRY(check_size(c, err));
    KI_TRY(ki_image_decode_bytes(c->file.data, c->file.n, &c->whole, &n_whole, err));
    KI_TRY(ki_image_decode_bytes(c->file.data, c->file.n, &c->smaller, &n_smaller, err));
    c->is_same = n_smaller == n_whole;
    for (int i = 0; i < q->n_views; i++) {
        int64_t n = 0;
        KI_TRY(count_view(c, &q->view[i], &n, err));
        c->reply.n_needed += 2 * n; /* here, and in the server */
        has_boxes |= q->view[i].has_box;
    }
    c->reply.n_needed += has_boxes ? n_whole : n_smaller;
    return KITH_OK;
}

/* ---- what is sent ---- */

static kith_status make_view(child *c, int which, kith_error *err) {
    const ki_decode_view *wanted = &c->question.view[which];
    ki_decoded_view *made = &c->reply.view[which];
    ki_image *view = &c->view[which];
    KI_TRY(ki_transform_shrink_part(&c->question.transform, &c->image, wanted->has_box ? wanted->box : NULL,
                                    wanted->is_mirrored, &c->scratch, view, made->shown, err));
    made->w = view->w, made->h = view->h, made->channels = view->channels;
    c->reply.n_bytes += (uint64_t)view->w * (uint64_t)view->h * (uint64_t)view->channels;
    return KITH_OK;
}

/* Mirror images are made of the mirrored image, not of its small views: resizing is not symmetric to the bit. */
static kith_status make_views(child *c, bool with_box, bool mirrored, kith_error *err) {
    for (int i = 0; i < c->question.n_views; i++) {
        const ki_decode_view *v = &c->question.view[i];
        if (v->has_box != with_box || v->is_mirrored != mirrored) continue;
        if (c->is_turned != mirrored) ki_image_swap_sides(&c->image);
        c->is_turned = mirrored;
        KI_TRY(make_view(c, i, err));
    }
    return KITH_OK;
}

static bool has_views(const child *c, bool with_box) {
    for (int i = 0; i < c->question.n_views; i++) {
        if (c->question.view[i].has_box == with_box) return true;
    }
    return false;
}

static kith_status decode_image(child *c, const ki_decode *how, kith_error *err) {
    c->is_turned = false;
    return ki_image_decode(c->file.data, c->file.n, how, &c->image, err);
}

/* A box is in pixels of the full size. Only a JPEG of which both parts and the whole are wanted is decoded twice: its whole comes out
 * the same as when it is asked for alone. */
static kith_status decode_views(child *c, kith_error *err) {
    bool is_there = false;
    for (int with_box = 0; with_box < 2; with_box++) {
        if (!has_views(c, with_box)) continue;
        if (!is_there || !c->is_same) KI_TRY(decode_image(c, with_box ? &c->whole : &c->smaller, err));
        is_there = true;
        KI_TRY(make_views(c, with_box, false, err));
        KI_TRY(make_views(c, with_box, true, err));
    }
    return KITH_OK;
}

static kith_status decode_jpeg(child *c, kith_error *err) {
    KI_TRY(decode_image(c, &c->smaller, err));
    KI_TRY(ki_resample_fit(&c->scratch.resampler, &c->image, c->question.side, &c->small, err));
    KI_TRY(ki_jpeg_encode(&c->small, c->question.quality, &c->jpeg, err));
    c->reply.n_bytes = c->jpeg.n;
    return KITH_OK;
}

static kith_status decode(child *c, kith_error *err) {
    return c->question.want == KI_WANT_PIXELS ? decode_views(c, err) : decode_jpeg(c, err);
}

/* ---- questions ---- */

static bool reply(child *c, kith_status status) {
    c->reply.status = status;
    if (status != KITH_OK) c->reply.n_bytes = 0;
    return ki_wire_write(STDIN_FILENO, &c->reply, sizeof c->reply, 0);
}

static bool send_bytes(const child *c) {
    if (c->question.want == KI_WANT_JPEG) return ki_wire_write(STDIN_FILENO, c->jpeg.data, c->jpeg.n, 0);
    for (int i = 0; i < c->question.n_views; i++) {
        const ki_image *v = &c->view[i];
        if (!ki_wire_write(STDIN_FILENO, v->data, (size_t)v->w * (size_t)v->h * (size_t)v->channels, 0))
            return false;
    }
    return true;
}

/* One question. False: nobody asks any more. */
static bool serve_one(child *c) {
    char goes_on = 0;
    if (!ki_wire_read(STDIN_FILENO, &c->question, sizeof c->question, 0)) return false;
    memset(&c->reply, 0, sizeof c->reply);
    kith_status status = ki_grow(&c->file.data, &c->file.capacity, (size_t)c->question.n_bytes + 1, 1,
                                 "a file", &c->reply.err);
    if (status != KITH_OK) return false; /* its bytes cannot be passed over: another process begins anew */
    c->file.n = (size_t)c->question.n_bytes;
    if (!ki_wire_read(STDIN_FILENO, c->file.data, c->file.n, 0)) return false;
    status = estimate(c, &c->reply.err);
    if (!reply(c, status)) return false;
    if (status != KITH_OK) return true;
    if (!ki_wire_read(STDIN_FILENO, &goes_on, 1, 0)) return false;
    if (!goes_on) return true;
    status = decode(c, &c->reply.err);
    return reply(c, status) && (status != KITH_OK || send_bytes(c));
}

/* Large images are not kept until the next one: the server does not count them any more. */
static void forget(child *c) {
    size_t n = c->file.capacity + c->jpeg.capacity + c->image.capacity + c->small.capacity +
               c->scratch.resampler.middle.capacity;
    for (int i = 0; i < KI_MOST_VIEWS; i++) n += c->view[i].capacity;
    if (n <= KEPT_BYTES) return;
    ki_bytes_release(&c->file);
    ki_bytes_release(&c->jpeg);
    ki_image_release(&c->image);
    ki_image_release(&c->small);
    ki_transform_scratch_release(&c->scratch);
    for (int i = 0; i < KI_MOST_VIEWS; i++) ki_image_release(&c->view[i]);
}

int ki_decoder_main(void) {
    static child c;
    uint64_t memory_bytes = 0;
    if (!ki_wire_read(STDIN_FILENO, &memory_bytes, sizeof memory_bytes, 0)) return 1;
    ki_heif_open(NULL); /* nothing can be loaded afterwards; without it such files are refused in one line */
    c.reply.status = ki_sandbox_enter(memory_bytes, &c.reply.err);
    if (!ki_wire_write(STDIN_FILENO, &c.reply, sizeof c.reply, 0) || c.reply.status != KITH_OK) return 1;
    while (serve_one(&c)) forget(&c);
    /* Without what the libraries of the program do at its end, which needs more than this process may do. */
    syscall(SYS_exit_group, 0);
    return 0;
}
