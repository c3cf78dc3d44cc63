/* POST /api/v1/identify: the name of what is on the images that are sent, or none. All images of a request show one thing. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "kith/experimental/found.h"
#include "kith/identify.h"
#include "serve/routes/picture.h"
#include "serve/routes/route.h"
#include "serve/search/query.h"
#include "serve/search/searcher.h"
#include "serve/server.h"

enum { MOST_NAMES = 100 };

typedef struct identify_state {
    ki_query query;
    ki_ask ask;
    kith_query_part part[KI_MOST_QUERY_IMAGES];
    kith_pixels pixels[KI_MOST_QUERY_IMAGES];
    int n_asked; /* images that a decoder was asked for, or that need none */
    int waiting; /* the one that it is asked for now */
    kith_status status;
    kith_error err;
    kith_identify_report report;
    kith_identified who;
} identify_state;

static void state_free(void *state) {
    identify_state *s = state;
    if (!s) return;
    kith_identified_release(&s->who);
    ki_query_release(&s->query);
    ki_free(s);
}

/* ---- the answer ---- */

static void put_int(kith_json *json, const char *key, int64_t value) {
    kith_json_key(json, key);
    kith_json_int(json, value);
}

static void put_real(kith_json *json, const char *key, double value) {
    kith_json_key(json, key);
    kith_json_real(json, value);
}

static ki_handling answer_name(ki_request *r) {
    const identify_state *s = r->state;
    kith_json *json = NULL;
    kith_error err;
    const kith_status status = kith_json_new(&json, &err);
    if (status != KITH_OK) return ki_answer_error(r, status, &err);
    kith_json_object_begin(json);
    kith_identified_write(r->catalog->collection, &s->who, json);
    put_real(json, "error", s->report.error);
    put_real(json, "named", s->report.named);
    put_int(json, "n_photos", s->report.n_photos);
    put_int(json, "n_names", s->report.n_names);
    put_real(json, "took_ms", floor((ki_seconds_now() - r->began) * 1e5) / 100);
    kith_json_object_end(json);
    return ki_answer_json(r, json);
}

static ki_handling answer(ki_request *r) {
    const identify_state *s = r->state;
    const kith_found *found = &s->ask.found;
    ki_picture_drop(r);
    if (found->status == KITH_ECANCELED) return ki_answer_later(r, 503, 1, found->error.message);
    if (found->status != KITH_OK) return ki_answer_index_error(r, found->status, &found->error);
    switch (s->status) {
    case KITH_OK: return answer_name(r);
    case KITH_ENOTFOUND: return ki_answer_problem(r, 404, s->err.hint, "%s", s->err.message);
    default: return ki_answer_index_error(r, s->status, &s->err);
    }
}

/* In the searcher's thread, which the model belongs to. */
static void identify(ki_request *r) {
    identify_state *s = r->state;
    KITH_OPTIONS(kith_identify_request, request);
    KITH_OPTIONS(kith_identify_options, options);
    request.parts = s->part;
    request.n_parts = s->query.n_images;
    options.error = s->query.error;
    options.k = s->query.k < MOST_NAMES ? s->query.k : MOST_NAMES;
    options.exact = s->query.exact;
    s->status =
        kith_collection_identify(r->catalog->collection, &request, 1, &options, &s->report, &s->who, &s->err);
}

/* ---- the question ---- */

static ki_handling take_view(ki_request *r);

/* Images are decoded one after the other; items need no decoder. */
static ki_handling decode_next(ki_request *r) {
    identify_state *s = r->state;
    while (s->n_asked < s->query.n_images) {
        const int i = s->n_asked++;
        const ki_query_image *image = &s->query.image[i];
        s->part[i] = (kith_query_part){.id = image->id, .weight = 1};
        if (image->id >= 0) continue;
        ki_decode_view view = {.has_box = image->has_crop};
        memcpy(view.box, image->crop, sizeof view.box);
        const ki_picture_want want = {.file = image->part->bytes,
                                      .n_bytes = image->part->n_bytes,
                                      .most_pixels = r->server->options.most_pixels,
                                      .view = &view,
                                      .n_views = 1};
        s->waiting = i;
        return ki_picture_ask(r, &want, take_view);
    }
    ki_request_drop_body(r);
    s->ask.request = r;
    s->ask.task = identify;
    r->then = answer;
    ki_searcher_add(r->server->searcher, &s->ask);
    return KI_HANDED_ON;
}

static ki_handling take_view(ki_request *r) {
    identify_state *s = r->state;
    ki_picture_shown shown[KI_MOST_VIEWS];
    int n = 0;
    if (!ki_picture_take(r, shown, &n)) return KI_ANSWERED;
    s->pixels[s->waiting] = shown[0].pixels;
    s->part[s->waiting].image.pixels = &s->pixels[s->waiting];
    return decode_next(r);
}

ki_handling ki_route_identify(ki_request *r) {
    kith_error err = {0};
    identify_state *s = NULL;
    const ki_catalog *c = r->catalog;
    kith_status status = ki_zalloc_or(&s, 1, sizeof *s, "a query", &err);
    if (status != KITH_OK) return ki_answer_error(r, status, &err);
    r->state = s;
    r->state_free = state_free;
    status = ki_query_read(ki_request_header(r, "Content-Type"), r->body.data ? r->body.data : "", r->body.n,
                           r->server->options.most_k, &s->query, &err);
    if (status != KITH_OK) return ki_answer_error(r, status, &err);
    for (int i = 0; i < s->query.n_images; i++) {
        if (s->query.image[i].id < 0 && !c->model)
            return ki_answer_problem(r, 400, c->no_model.hint, "images cannot be named: %s",
                                     c->no_model.message);
    }
    return decode_next(r);
}
