/* POST /api/v1/search: the items most similar to images that are sent, to items, or to a sum of them. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "kith/experimental/found.h"
#include "serve/routes/picture.h"
#include "serve/routes/route.h"
#include "serve/search/groups.h"
#include "serve/search/query.h"
#include "serve/search/searcher.h"
#include "serve/server.h"

_Static_assert((int)KI_MOST_VIEWS >= 2 * (int)KI_MOST_QUERY_IMAGES, "a part may be all images of a query");

enum { MOST_PARTS = 2 * KI_MOST_QUERY_IMAGES }; /* with mirror images */

typedef struct search_state {
    ki_finder *finder;
    ki_query query;
    ki_ask ask;
    kith_query_part part[MOST_PARTS];
    kith_pixels pixels[MOST_PARTS];      /* of the parts that are images */
    int64_t place[KI_MOST_QUERY_IMAGES]; /* of each image in part; its mirror image follows */
    bool is_asked[KI_MOST_QUERY_IMAGES]; /* a decoder was asked for it */
    int64_t waiting[KI_MOST_VIEWS];      /* places of the views that a decoder is asked for now */
    ki_duplicate_groups *groups;         /* to hide duplicates by; NULL: they are not hidden */
} search_state;

static void state_free(void *state) {
    search_state *s = state;
    if (!s) return;
    ki_finder_give_back(s->finder, s->groups);
    ki_ask_release(&s->ask);
    ki_query_release(&s->query);
    ki_free(s);
}

/* ---- the answer ---- */

static ki_handling answer_hits(ki_request *r) {
    search_state *s = r->state;
    kith_json *json = NULL;
    kith_error err;
    kith_status status = kith_found_fill(r->catalog->collection, &s->ask.found, &err);
    if (status != KITH_OK) return ki_answer_index_error(r, status, &err);
    status = kith_json_new(&json, &err);
    if (status != KITH_OK) return ki_answer_error(r, status, &err);
    kith_json_object_begin(json);
    kith_found_write(r->catalog->collection, &s->ask.found, json);
    kith_json_key(json, "took_ms");
    kith_json_real(json, floor((ki_seconds_now() - r->began) * 1e5) / 100);
    kith_json_object_end(json);
    return ki_answer_json(r, json);
}

static ki_handling answer(ki_request *r) {
    const search_state *s = r->state;
    const kith_error *err = &s->ask.found.error;
    ki_picture_drop(r);
    switch (s->ask.found.status) {
    case KITH_OK: return answer_hits(r);
    case KITH_ECANCELED: return ki_answer_later(r, 503, 1, err->message);
    case KITH_ENOTFOUND: return ki_answer_problem(r, 404, NULL, "%s", err->message);
    case KITH_EUNSUPPORTED: return ki_answer_problem(r, 400, err->hint, "%s", err->message);
    default: return ki_answer_index_error(r, s->ask.found.status, err);
    }
}

/* ---- the question ---- */

/* All images of the query with their weights. The decoder makes mirror images, too: they are parts with half of the weight each. */
static void list_parts(search_state *s) {
    const ki_query *q = &s->query;
    ki_ask *ask = &s->ask;
    int64_t n = 0;
    for (int i = 0; i < q->n_images; i++) {
        const ki_query_image *image = &q->image[i];
        const int n_views = q->flips && image->id < 0 ? 2 : 1;
        s->place[i] = n;
        for (int j = 0; j < n_views; j++, n++) {
            s->part[n] = (kith_query_part){.id = image->id, .weight = image->weight / n_views};
            if (image->id < 0) s->part[n].image.pixels = &s->pixels[n];
            ask->n_pictures += image->id < 0;
        }
    }
    kith_search_request_init(&ask->search, sizeof ask->search);
    ask->search.parts = s->part;
    ask->search.n_parts = n;
    ask->search.k = q->k;
    ask->search.offset = q->offset;
    ask->search.where = q->where;
    ask->search.same = q->same;
    ask->search.min_score = q->min_score;
    ask->search.unknown = q->unknown;
    ask->search.precision = q->precision;
    ask->search.complete = q->complete;
    ask->search.rerank = q->rerank;
    ask->search.exact = q->exact;
    ask->search.hide_duplicates = q->hide_duplicates;
}

static ki_handling search(ki_request *r) {
    search_state *s = r->state;
    ki_request_drop_body(r);
    s->ask.request = r;
    r->then = answer;
    ki_searcher_add(r->server->searcher, &s->ask);
    return KI_HANDED_ON;
}

static ki_handling take_views(ki_request *r);

/* Of the next part that was sent, everything that is wanted of it: it is decoded once. */
static ki_handling decode_next(ki_request *r) {
    search_state *s = r->state;
    const ki_query *q = &s->query;
    const ki_form_part *part = NULL;
    ki_decode_view view[KI_MOST_VIEWS] = {{0}};
    int n = 0;
    for (int i = 0; i < q->n_images; i++) {
        const ki_query_image *image = &q->image[i];
        if (!image->part || s->is_asked[i] || (part && image->part != part)) continue;
        part = image->part;
        s->is_asked[i] = true;
        for (int mirrored = 0; mirrored <= q->flips; mirrored++) {
            s->waiting[n] = s->place[i] + mirrored;
            view[n].has_box = image->has_crop;
            view[n].is_mirrored = mirrored;
            memcpy(view[n].box, image->crop, sizeof image->crop);
            n++;
        }
    }
    if (!part) return search(r);
    const ki_picture_want want = {.file = part->bytes,
                                  .n_bytes = part->n_bytes,
                                  .most_pixels = r->server->options.most_pixels,
                                  .view = view,
                                  .n_views = n};
    return ki_picture_ask(r, &want, take_views);
}

static ki_handling take_views(ki_request *r) {
    search_state *s = r->state;
    ki_picture_shown shown[KI_MOST_VIEWS];
    int n = 0;
    if (!ki_picture_take(r, shown, &n)) return KI_ANSWERED;
    for (int i = 0; i < n; i++) s->pixels[s->waiting[i]] = shown[i].pixels;
    return decode_next(r);
}

/* Duplicates are known before anything is decoded: it may take a while to find them. */
static ki_handling wait_for_groups(ki_request *r) {
    search_state *s = r->state;
    r->then = wait_for_groups;
    ki_duplicate_groups *groups = ki_finder_ask(s->finder, r);
    if (!groups) return KI_HANDED_ON; /* another thread may have the request already */
    s->groups = groups;
    if (s->groups->status != KITH_OK) return ki_answer_index_error(r, s->groups->status, &s->groups->err);
    s->ask.duplicates = &s->groups->found;
    return decode_next(r);
}

ki_handling ki_route_search(ki_request *r) {
    kith_error err = {0};
    search_state *s = NULL;
    const ki_catalog *c = r->catalog;
    kith_status status = ki_zalloc_or(&s, 1, sizeof *s, "a query", &err);
    if (status != KITH_OK) return ki_answer_error(r, status, &err);
    s->finder = r->server->finder;
    r->state = s;
    r->state_free = state_free;
    status = ki_query_read(ki_request_header(r, "Content-Type"), r->body.data ? r->body.data : "", r->body.n,
                           r->server->options.most_k, &s->query, &err);
    if (status != KITH_OK) return ki_answer_error(r, status, &err);
    for (int i = 0; i < s->query.n_images; i++) {
        if (s->query.image[i].id < 0 && !c->model)
            return ki_answer_problem(r, 400, c->no_model.hint, "images cannot be searched with: %s",
                                     c->no_model.message);
    }
    list_parts(s);
    return s->query.hide_duplicates ? wait_for_groups(r) : decode_next(r);
}
