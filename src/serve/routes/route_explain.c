/* POST /api/v1/explain: why an item matches an image, as two maps whose sum is the score. */
#include <string.h>

#include "base/alloc.h"
#include "kith/explain.h"
#include "serve/routes/picture.h"
#include "serve/routes/route.h"
#include "serve/search/query.h"
#include "serve/search/searcher.h"
#include "serve/server.h"

typedef struct explain_state {
    ki_query query;
    ki_ask ask;
    ki_picture_shown image[2]; /* the query's and the hit's */
    kith_status status;
    kith_error err;
    kith_explanation why;
} explain_state;

static void state_free(void *state) {
    explain_state *s = state;
    if (!s) return;
    kith_explanation_release(&s->why);
    ki_query_release(&s->query);
    ki_free(s);
}

/* ---- the answer ---- */

/* The network got a small picture, perhaps of a part; places are told in pixels of the whole image, whose size goes with them, because
 * the picture that a client shows may be smaller, too. */
static void put_map(kith_json *json, const char *key, const kith_explanation *why, const kith_shares *shares,
                    const ki_picture_shown *image) {
    const double across = image->shown[2] / image->pixels.width,
                 down = image->shown[3] / image->pixels.height;
    const double view[4] = {image->shown[0] + across * shares->view[0],
                            image->shown[1] + down * shares->view[1], across * shares->view[2],
                            down * shares->view[3]};
    kith_json_key(json, key);
    kith_json_object_begin(json);
    kith_json_key(json, "rows");
    kith_json_int(json, why->rows);
    kith_json_key(json, "columns");
    kith_json_int(json, why->columns);
    kith_json_key(json, "values");
    kith_json_array_begin(json);
    for (int64_t i = 0; i < why->rows * why->columns; i++) kith_json_real(json, shares->share[i]);
    kith_json_array_end(json);
    kith_json_key(json, "rest");
    kith_json_real(json, shares->rest);
    kith_json_key(json, "view");
    kith_json_array_begin(json);
    for (int i = 0; i < 4; i++) kith_json_real(json, view[i]);
    kith_json_array_end(json);
    kith_json_key(json, "width");
    kith_json_int(json, image->full_w);
    kith_json_key(json, "height");
    kith_json_int(json, image->full_h);
    kith_json_object_end(json);
}

static ki_handling answer(ki_request *r) {
    const explain_state *s = r->state;
    kith_json *json = NULL;
    kith_error err = s->err;
    ki_picture_drop(r);
    const kith_found *found = &s->ask.found;
    kith_status status = found->status != KITH_OK ? found->status : s->status;
    if (found->status == KITH_ECANCELED) return ki_answer_later(r, 503, 1, found->error.message);
    if (status == KITH_EUNSUPPORTED) return ki_answer_problem(r, 501, err.hint, "%s", err.message);
    if (status == KITH_OK) status = kith_json_new(&json, &err);
    if (status != KITH_OK) return ki_answer_error(r, status, &err);
    kith_json_object_begin(json);
    kith_json_key(json, "score");
    kith_json_real(json, s->why.score);
    kith_json_key(json, "estimate");
    if (*s->why.estimate)
        kith_json_string(json, s->why.estimate);
    else
        kith_json_null(json);
    put_map(json, "query", &s->why, &s->why.query[0], &s->image[0]);
    put_map(json, "hit", &s->why, &s->why.hit, &s->image[1]);
    kith_json_object_end(json);
    return ki_answer_json(r, json);
}

/* In the searcher's thread, which the model belongs to. */
static void explain(ki_request *r) {
    explain_state *s = r->state;
    const kith_query_image query = {.pixels = &s->image[0].pixels, .weight = 1},
                           hit = {.pixels = &s->image[1].pixels, .weight = 1};
    s->status = kith_model_explain(r->catalog->model, &query, 1, &hit, NULL, &s->why, &s->err);
}

/* ---- the question ---- */

/* The picture of an item. */
static ki_handling decode_item(ki_request *r, int64_t id, ki_request_fn then) {
    char path[4096];
    static const ki_decode_view whole = {0};
    if (kith_collection_picture(r->catalog->collection, id, path, sizeof path, NULL) != KITH_OK)
        return ki_answer_problem(r, 404, NULL, "there is no picture of item %lld", (long long)id);
    const ki_picture_want want = {
        .path = path, .most_pixels = KI_IMAGE_MOST_PIXELS, .view = &whole, .n_views = 1};
    return ki_picture_ask(r, &want, then);
}

static ki_handling decode_query(ki_request *r, const ki_query_image *image, ki_request_fn then) {
    if (image->id >= 0) return decode_item(r, image->id, then);
    ki_decode_view view = {.has_box = image->has_crop};
    memcpy(view.box, image->crop, sizeof view.box);
    const ki_picture_want want = {.file = image->part->bytes,
                                  .n_bytes = image->part->n_bytes,
                                  .most_pixels = r->server->options.most_pixels,
                                  .view = &view,
                                  .n_views = 1};
    return ki_picture_ask(r, &want, then);
}

static bool take_view(ki_request *r, ki_picture_shown *ret) {
    ki_picture_shown shown[KI_MOST_VIEWS];
    int n = 0;
    if (!ki_picture_take(r, shown, &n)) return false;
    *ret = shown[0];
    return true;
}

static ki_handling take_hit(ki_request *r) {
    explain_state *s = r->state;
    if (!take_view(r, &s->image[1])) return KI_ANSWERED;
    s->ask.request = r;
    s->ask.task = explain;
    r->then = answer;
    ki_searcher_add(r->server->searcher, &s->ask);
    return KI_HANDED_ON;
}

static ki_handling take_query(ki_request *r) {
    explain_state *s = r->state;
    if (!take_view(r, &s->image[0])) return KI_ANSWERED;
    ki_request_drop_body(r);
    return decode_item(r, s->query.hit, take_hit);
}

ki_handling ki_route_explain(ki_request *r) {
    kith_error err = {0};
    explain_state *s = NULL;
    if (!r->catalog->model)
        return ki_answer_problem(r, 501, r->catalog->no_model.hint, "matches cannot be explained: %s",
                                 r->catalog->no_model.message);
    kith_status status = ki_zalloc_or(&s, 1, sizeof *s, "a query", &err);
    if (status != KITH_OK) return ki_answer_error(r, status, &err);
    r->state = s;
    r->state_free = state_free;
    status = ki_query_read(ki_request_header(r, "Content-Type"), r->body.data ? r->body.data : "", r->body.n,
                           r->server->options.most_k, &s->query, &err);
    if (status != KITH_OK) return ki_answer_error(r, status, &err);
    if (s->query.n_images != 1 || s->query.hit < 0)
        return ki_answer_problem(r, 400, NULL, "query: %d images and %s hit; wanted one of each",
                                 s->query.n_images, s->query.hit < 0 ? "no" : "a");
    return decode_query(r, &s->query.image[0], take_query);
}
