/* POST /api/v1/search: the items most similar to images that are sent, to items, or to a sum of them. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/text.h"
#include "kith/calibration.h"
#include "serve/groups.h"
#include "serve/item_json.h"
#include "serve/picture.h"
#include "serve/query.h"
#include "serve/route.h"
#include "serve/searcher.h"
#include "serve/server.h"

_Static_assert((int)KI_MOST_VIEWS >= 2 * (int)KI_MOST_QUERY_IMAGES, "a part may be all images of a query");

typedef struct search_state {
    ki_query query;
    ki_ask ask;
    int64_t place[KI_MOST_QUERY_IMAGES]; /* of each image in ask; its mirror image follows */
    bool is_asked[KI_MOST_QUERY_IMAGES]; /* a decoder was asked for it */
    int64_t waiting[KI_MOST_VIEWS];      /* places of the views that a decoder is asked for now */
} search_state;

static void state_free(void *state) {
    search_state *s = state;
    if (!s) return;
    ki_ask_release(&s->ask);
    ki_query_release(&s->query);
    ki_free(s);
}

/* ---- the answer ---- */

static kith_status put_hit(kith_json *json, const ki_catalog *c, const kith_hit *hit, kith_error *err) {
    const kith_calibration *curve = kith_index_calibration(c->index);
    kith_index_item item = {0};
    KI_TRY(kith_index_item_get(c->index, hit->id, &item, err));
    kith_json_object_begin(json);
    kith_json_key(json, "id");
    kith_json_int(json, hit->id);
    kith_json_key(json, "score");
    kith_json_real32(json, (float)hit->score);
    kith_json_key(json, "false_match_rate");
    kith_json_real(json, curve ? kith_calibration_false_match_rate(curve, hit->score) : (double)NAN);
    ki_item_put(json, c, &item);
    kith_json_object_end(json);
    kith_index_item_release(&item);
    return KITH_OK;
}

static ki_handling answer_hits(ki_request *r) {
    const search_state *s = r->state;
    kith_json *json = NULL;
    kith_error err;
    kith_status status = kith_json_new(&json, &err);
    if (status != KITH_OK) return ki_answer_error(r, status, &err);
    kith_json_object_begin(json);
    kith_json_key(json, "n_allowed");
    kith_json_int(json, s->ask.n_allowed);
    kith_json_key(json, "is_exact");
    kith_json_bool(json, s->ask.is_exact);
    kith_json_key(json, "hits");
    kith_json_array_begin(json);
    for (int64_t i = 0; status == KITH_OK && i < s->ask.n_hits; i++)
        status = put_hit(json, r->catalog, &s->ask.hits[i], &err);
    kith_json_array_end(json);
    kith_json_key(json, "took_ms");
    kith_json_real(json, floor((ki_seconds_now() - r->began) * 1e5) / 100);
    kith_json_object_end(json);
    if (status == KITH_OK) return ki_answer_json(r, json);
    kith_json_free(json);
    return ki_answer_index_error(r, status, &err);
}

/* Of each picture the nearest hit stays; then the page that was asked for. */
static void hide_duplicates(const ki_query *q, const ki_duplicate_groups *groups, ki_ask *ask) {
    int64_t n = 0;
    for (int64_t i = 0; i < ask->n_hits; i++) {
        const int64_t group = ki_groups_of(groups, ask->hits[i].id);
        bool is_there = false;
        for (int64_t j = 0; group >= 0 && j < n && !is_there; j++)
            is_there = ki_groups_of(groups, ask->hits[j].id) == group;
        if (!is_there) ask->hits[n++] = ask->hits[i];
    }
    const int64_t first = q->offset < n ? q->offset : n;
    ask->n_hits = n - first < q->k ? n - first : q->k;
    memmove(ask->hits, ask->hits + first, (size_t)ask->n_hits * sizeof *ask->hits);
}

static ki_handling answer_without_duplicates(ki_request *r) {
    search_state *s = r->state;
    ki_finder *finder = r->server->finder;
    r->then = answer_without_duplicates;
    ki_duplicate_groups *groups = ki_finder_ask(finder, r);
    if (!groups) return KI_HANDED_ON;
    const kith_status status = groups->status;
    if (status == KITH_OK)
        hide_duplicates(&s->query, groups, &s->ask);
    else
        ki_answer_index_error(r, status, &groups->err);
    ki_finder_give_back(finder, groups);
    return status == KITH_OK ? answer_hits(r) : KI_ANSWERED;
}

static ki_handling answer(ki_request *r) {
    search_state *s = r->state;
    ki_picture_drop(r);
    if (s->ask.status == KITH_ECANCELED) return ki_answer_later(r, 503, 1, s->ask.err.message);
    if (s->ask.status == KITH_ENOTFOUND) return ki_answer_problem(r, 404, NULL, "%s", s->ask.err.message);
    if (s->ask.status != KITH_OK) return ki_answer_index_error(r, s->ask.status, &s->ask.err);
    return s->query.hide_duplicates ? answer_without_duplicates(r) : answer_hits(r);
}

/* ---- the question ---- */

static kith_status find_limit(const ki_catalog *c, double same, ki_ask *ask, kith_error *err) {
    if (isnan(same)) return KITH_OK;
    const kith_calibration *curve = kith_index_calibration(c->index);
    if (!curve) {
        ki_fail(err, KITH_EINVAL, "the index has no curve of false-match rates");
        return ki_hint(err, KITH_EINVAL, "make it with: kith index INDEX --calibrate DATA");
    }
    ask->has_limit = true;
    ask->limit = kith_calibration_threshold(curve, same);
    if (!isnan(ask->limit)) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "same is %g; the pairs that were measured tell rates from %.3g on", same,
            kith_calibration_least(curve));
    return ki_hint(err, KITH_EINVAL, "calibrate the index with more images of more classes");
}

static kith_status make_room(const ki_query *q, int64_t most_k, ki_ask *ask, kith_error *err) {
    const size_t n = 2 * (size_t)q->n_images; /* with mirror images */
    KI_TRY(ki_zalloc_or(&ask->picture, n, sizeof *ask->picture, "pictures", err));
    KI_TRY(ki_alloc_or(&ask->id, n, sizeof *ask->id, "pictures", err));
    KI_TRY(ki_alloc_or(&ask->weight, n, sizeof *ask->weight, "pictures", err));
    if (q->where && !(ask->where = ki_strdup(q->where)))
        return ki_fail_memory(err, strlen(q->where), "a filter");
    /* Which hits are duplicates of others is known only when they are there. */
    ask->k = q->hide_duplicates ? most_k : q->k;
    ask->offset = q->hide_duplicates ? 0 : q->offset;
    ask->exact = q->exact;
    return KITH_OK;
}

/* All images of the query with their weights, and mirror images if those count, too. */
static void list_images(search_state *s) {
    const ki_query *q = &s->query;
    ki_ask *ask = &s->ask;
    for (int i = 0; i < q->n_images; i++) {
        const ki_query_image *image = &q->image[i];
        const int n_views = q->flips && image->id < 0 ? 2 : 1;
        s->place[i] = ask->n;
        for (int j = 0; j < n_views; j++) {
            ask->id[ask->n] = image->id;
            ask->weight[ask->n++] = image->weight / n_views;
        }
    }
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
    for (int i = 0; i < n; i++) s->ask.picture[s->waiting[i]] = shown[i].pixels;
    return decode_next(r);
}

ki_handling ki_route_search(ki_request *r) {
    kith_error err = {0};
    search_state *s = NULL;
    const ki_catalog *c = r->catalog;
    kith_status status = ki_zalloc_or(&s, 1, sizeof *s, "a query", &err);
    if (status != KITH_OK) return ki_answer_error(r, status, &err);
    r->state = s;
    r->state_free = state_free;
    status = ki_query_read(ki_request_header(r, "Content-Type"), r->body.data ? r->body.data : "", r->body.n,
                           r->server->options.most_k, &s->query, &err);
    if (status == KITH_OK) status = make_room(&s->query, r->server->options.most_k, &s->ask, &err);
    if (status == KITH_OK) status = find_limit(c, s->query.same, &s->ask, &err);
    if (status != KITH_OK) return ki_answer_error(r, status, &err);
    for (int i = 0; i < s->query.n_images; i++) {
        if (s->query.image[i].id < 0 && !c->embedder)
            return ki_answer_problem(r, 400, c->no_embedder.hint, "images cannot be searched with: %s",
                                     c->no_embedder.message);
    }
    list_images(s);
    return decode_next(r);
}
