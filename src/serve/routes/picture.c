/* Asking a decoder, and what its failures mean for the request. */
#include "serve/routes/picture.h"

#include <string.h>

#include "base/alloc.h"
#include "data/transform/transform.h"
#include "model/handle.h"
#include "serve/decode/decoders.h"
#include "serve/server.h"

/* A question that was asked; once pixels are there, their owner. */
struct ki_picture_job {
    ki_decode_job job;
    char *path;
    ki_picture_job *before;
};

static void job_free(ki_picture_job *p) {
    if (!p) return;
    ki_free(p->job.bytes);
    ki_free(p->path);
    ki_free(p);
}

void ki_picture_drop(ki_request *r) {
    for (ki_picture_job *p = r->pictures, *before; p; p = before) {
        before = p->before;
        ki_decoders_release(r->server->decoders, p->job.n_counted);
        job_free(p);
    }
    r->pictures = NULL;
}

static int64_t held_bytes(const ki_request *r) {
    int64_t n = 0;
    for (const ki_picture_job *p = r->pictures; p; p = p->before) n += p->job.n_counted;
    return n;
}

static void go_on(ki_decode_job *job) {
    ki_request *r = job->context;
    ki_pool_add(r->server->pool, r);
}

/* ---- asking ---- */

static kith_status job_new(ki_request *r, const char *path, ki_picture_job **ret, kith_error *err) {
    ki_picture_job *p = NULL;
    KI_TRY(ki_zalloc_or(&p, 1, sizeof *p, "a picture", err)); /* padding goes through the socket, too */
    if (path && !(p->path = ki_strdup(path))) {
        job_free(p);
        return ki_fail_memory(err, strlen(path), "a path");
    }
    p->job.path = p->path;
    p->job.turn = (ki_turn){.client = ki_limits_counted(&r->client), .cost = 1};
    /* The decoder has the last third, so that the client can still be told. */
    p->job.until = r->began + r->server->options.deadline * 2 / 3;
    p->job.n_held = held_bytes(r);
    p->job.context = r;
    p->job.done = go_on;
    *ret = p;
    return KITH_OK;
}

/* From here on the request is the decoders'. */
static ki_handling hand_on(ki_request *r, ki_picture_job *p, ki_request_fn then) {
    p->before = r->pictures;
    r->pictures = p;
    r->then = then;
    ki_decoders_ask(r->server->decoders, &p->job);
    return KI_HANDED_ON;
}

static kith_status fill_question(ki_request *r, const ki_picture_want *want, ki_decode_question *q,
                                 kith_error *err) {
    ki_decode how;
    KI_TRY(ki_model_decoding(r->catalog->model, &how, err));
    KI_TRY(ki_model_transform(r->catalog->model, &q->transform, err));
    q->n_bytes = want->n_bytes;
    q->want = KI_WANT_PIXELS;
    q->most_pixels = want->most_pixels;
    q->least_side = how.least_side;
    memcpy(q->background, how.background, sizeof q->background);
    q->n_views = want->n_views;
    memcpy(q->view, want->view, (size_t)want->n_views * sizeof *q->view);
    return KITH_OK;
}

ki_handling ki_picture_ask(ki_request *r, const ki_picture_want *want, ki_request_fn then) {
    kith_error err;
    ki_picture_job *p = NULL;
    kith_status status = job_new(r, want->path, &p, &err);
    if (status == KITH_OK) status = fill_question(r, want, &p->job.question, &err);
    if (status != KITH_OK) {
        job_free(p);
        return ki_answer_error(r, status, &err);
    }
    p->job.file = want->file;
    return hand_on(r, p, then);
}

/* ---- the answer ---- */

/* Are there bytes? False: the request is answered. */
static bool has_bytes(ki_request *r, const ki_decode_job *job) {
    if (job->status == KITH_ECANCELED) {
        ki_answer_later(r, 503, 2, job->err.message);
    } else if (job->status == KITH_EIO) {
        ki_answer_problem(r, 404, NULL, "%s", job->err.message);
    } else if (job->status == KITH_EINVAL) {
        ki_answer_problem(r, 413, "send a smaller one, or start the server with more --most-decoded", "%s",
                          job->err.message);
    } else if (job->status != KITH_OK) {
        ki_answer_later(r, 503, 1, job->err.message);
    } else if (job->reply.is_too_large) {
        ki_answer_problem(r, 413, "send a smaller one", "%s", job->reply.err.message);
    } else if (job->reply.status != KITH_OK) {
        ki_answer_error(r, job->reply.status, &job->reply.err);
    } else {
        return true;
    }
    return false;
}

bool ki_picture_take(ki_request *r, ki_picture_shown *ret_shown, int *ret_n) {
    const ki_decode_job *job = &r->pictures->job;
    if (!has_bytes(r, job)) return false;
    const uint8_t *at = job->bytes;
    for (int i = 0; i < job->question.n_views; i++) {
        const ki_decoded_view *v = &job->reply.view[i];
        ret_shown[i] = (ki_picture_shown){.pixels = {v->w, v->h, v->channels, at},
                                          .full_w = job->reply.full_w,
                                          .full_h = job->reply.full_h};
        memcpy(ret_shown[i].shown, v->shown, sizeof v->shown);
        at += (size_t)v->w * (size_t)v->h * (size_t)v->channels;
    }
    *ret_n = job->question.n_views;
    return true;
}

static ki_handling answer_jpeg(ki_request *r) {
    ki_decode_job *job = &r->pictures->job;
    if (!has_bytes(r, job)) return KI_ANSWERED;
    ki_answer_bytes(r, "image/jpeg", job->bytes, job->reply.n_bytes);
    job->bytes = NULL;
    return KI_ANSWERED;
}

ki_handling ki_picture_answer(ki_request *r, const char *path, int32_t side, int quality) {
    kith_error err;
    ki_picture_job *p = NULL;
    const kith_status status = job_new(r, path, &p, &err);
    if (status != KITH_OK) return ki_answer_error(r, status, &err);
    ki_decode_question *q = &p->job.question;
    q->want = KI_WANT_JPEG;
    q->most_pixels = KI_IMAGE_MOST_PIXELS;
    q->least_side = q->side = side;
    q->quality = quality;
    memset(q->background, 255, sizeof q->background);
    return hand_on(r, p, answer_jpeg);
}
