/* POST /api/v1/explain: why an item matches an image, as two maps whose sum is the score. */
#include <string.h>

#include "core/alloc.h"
#include "kith/explain.h"
#include "serve/picture.h"
#include "serve/route.h"
#include "serve/searcher.h"
#include "serve/server.h"

typedef struct explain_state {
    ki_query query;
    ki_ask ask;
    ki_image image[2]; /* the query's and the hit's */
    kith_status status;
    kith_error err;
    kith_explanation why;
} explain_state;

static void state_free(void *state) {
    explain_state *s = state;
    if (!s) return;
    kith_explanation_release(&s->why);
    ki_image_release(&s->image[0]);
    ki_image_release(&s->image[1]);
    ki_query_release(&s->query);
    ki_free(s);
}

/* ---- the answer ---- */

/* The image may have been decoded smaller; places are told in pixels of the whole one, whose size goes with them, because
 * the picture that a client shows may be smaller, too. */
static void put_map(kith_json *json, const char *key, const kith_explanation *why, const kith_shares *shares,
                    const ki_image *image) {
    const double scale = (double)image->full_w / image->w;
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
    for (int i = 0; i < 4; i++) kith_json_real(json, scale * shares->view[i]);
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
    kith_status status = s->ask.status != KITH_OK ? s->ask.status : s->status;
    if (s->ask.status == KITH_ECANCELED) return ki_answer_later(r, 503, 1, s->ask.err.message);
    if (status == KITH_EUNSUPPORTED) return ki_answer_problem(r, 501, err.hint, "%s", err.message);
    if (status == KITH_OK) status = kith_json_new(&json, &err);
    if (status != KITH_OK) return ki_answer_error(r, status, &err);
    kith_json_object_begin(json);
    kith_json_key(json, "score");
    kith_json_real(json, s->why.score);
    put_map(json, "query", &s->why, &s->why.query[0], &s->image[0]);
    put_map(json, "hit", &s->why, &s->why.hit, &s->image[1]);
    kith_json_object_end(json);
    return ki_answer_json(r, json);
}

/* In the searcher's thread, which the model belongs to. */
static void explain(ki_request *r) {
    explain_state *s = r->state;
    const ki_query_image *asked = &s->query.image[0];
    kith_pixels pixels[2];
    for (int i = 0; i < 2; i++)
        pixels[i] = (kith_pixels){s->image[i].w, s->image[i].h, s->image[i].channels, s->image[i].data};
    kith_query_image query = {.pixels = &pixels[0], .weight = 1, .has_box = asked->has_crop};
    const kith_query_image hit = {.pixels = &pixels[1], .weight = 1};
    memcpy(query.box, asked->crop, sizeof query.box);
    s->status = kith_embedder_explain(r->catalog->embedder, &query, 1, &hit, NULL, &s->why, &s->err);
}

/* ---- the question ---- */

/* The picture of an item. False: the request is answered. */
static bool decode_item(ki_request *r, int64_t id, ki_image *ret_image) {
    kith_index_item item = {0};
    ki_bytes file = {0};
    char path[4096];
    bool is_good = kith_index_item_get(r->catalog->index, id, &item, NULL) == KITH_OK &&
                   ki_catalog_picture(r->catalog, item.path, path, sizeof path) &&
                   ki_bytes_read(&file, path, NULL) == KITH_OK;
    if (!is_good) ki_answer_problem(r, 404, NULL, "there is no picture of item %lld", (long long)id);
    const ki_picture_want want = {.most_pixels = KI_IMAGE_MOST_PIXELS};
    if (is_good) is_good = ki_picture_decode(r, file.data, file.n, &want, ret_image);
    ki_bytes_release(&file);
    kith_index_item_release(&item);
    return is_good;
}

static bool decode_query(ki_request *r, const ki_query_image *image, ki_image *ret_image) {
    if (image->id >= 0) return decode_item(r, image->id, ret_image);
    /* A part is cut out by the library, which tells where it lies in the whole image. */
    const ki_picture_want want = {.most_pixels = r->server->options.most_pixels, .is_whole = image->has_crop};
    return ki_picture_decode(r, image->part->bytes, image->part->n_bytes, &want, ret_image);
}

ki_handling ki_route_explain(ki_request *r) {
    kith_error err = {0};
    explain_state *s = NULL;
    if (!r->catalog->embedder)
        return ki_answer_problem(r, 501, r->catalog->no_embedder.hint, "matches cannot be explained: %s",
                                 r->catalog->no_embedder.message);
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
    if (!decode_query(r, &s->query.image[0], &s->image[0]) || !decode_item(r, s->query.hit, &s->image[1]))
        return KI_ANSWERED;
    ki_request_drop_body(r);
    s->ask.request = r;
    s->ask.task = explain;
    r->then = answer;
    ki_searcher_add(r->server->searcher, &s->ask);
    return KI_HANDED_ON;
}
