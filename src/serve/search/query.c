/* Reading the JSON of a query. */
#include "serve/search/query.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/option.h"
#include "base/text.h"
#include "io/json.h"
#include "kith/reliability.h"

/* ---- tables ---- */

typedef struct settings {
    const ki_value *images;
    int64_t k, offset, hit;
    const char *where;
    double same, min_score, unknown, precision, complete, error;
    int rerank;
    bool flips, exact, hide_duplicates;
} settings;

/* As kith search says them. */
static const char *const reranks[] = {"none", "qe", "kr", NULL};
static const kith_rerank_method rerank_methods[] = {KITH_RERANK_NONE, KITH_RERANK_EXPANSION,
                                                    KITH_RERANK_RECIPROCAL};

const ki_option ki_query_options[] = {
    KI_OPTION_TREE(settings, images, "",
                   "what to look for: the sum by weight of images that are sent (part) and items (id)", ""),
    KI_OPTION_INT(settings, k, 24, 1, 1e6, "hits, at most; with offset no more than limits.k of /api/v1/info",
                  ""),
    KI_OPTION_INT(settings, offset, 0, 0, 1e6, "hits to leave out", ""),
    KI_OPTION_TEXT(settings, where, NULL, "only items that this holds for: label = 'tern' and year >= 2020",
                   ""),
    KI_OPTION_REAL(settings, same, -1, 1e-9, 1, "only hits with at most this false-match rate", ""),
    KI_OPTION_REAL(settings, min_score, -2e30, -1e30, 1e30, "only hits at least as near as this score", ""),
    KI_OPTION_REAL(settings, unknown, KITH_UNKNOWN_DEFAULT, 0, 1,
                   "the part of the queries that shows things the index does not have: for error_rate", ""),
    KI_OPTION_REAL(settings, precision, -1, 0, 1,
                   "only so many hits that at most the part 1 - precision of all hits is wrong", ""),
    KI_OPTION_REAL(settings, complete, -1, 0, 1,
                   "so many hits that this part of the queries whose thing is there gets a right one", ""),
    KI_OPTION_CHOICE(
        settings, rerank, 0, reranks,
        "a better order: qe asks again with the first hits, kr counts shared neighbours (cosine)", ""),
    KI_OPTION_BOOL(settings, flips, 0, "the mean of each image and its mirror image", ""),
    KI_OPTION_BOOL(settings, exact, 0, "compare every vector", ""),
    KI_OPTION_BOOL(settings, hide_duplicates, 0, "of each picture only the nearest hit", ""),
    KI_OPTION_REAL(settings, error, 0.01, 1e-6, 0.5,
                   "the rate of false names that is promised; /identify only", ""),
    KI_OPTION_INT(settings, hit, -1, 0, 9e15, "the item to explain; /explain only", ""),
    KI_OPTION_END};

typedef struct image_settings {
    const char *part;
    int64_t id;
    double weight;
    const ki_value *crop;
} image_settings;

const ki_option ki_query_image_options[] = {
    KI_OPTION_TEXT(image_settings, part, NULL, "the part of the request with the image's file", ""),
    KI_OPTION_INT(image_settings, id, -1, 0, 9e15, "an item of the index", ""),
    KI_OPTION_REAL(image_settings, weight, 1, -1000, 1000, "above 0: like it; below 0: unlike it", ""),
    KI_OPTION_TREE(image_settings, crop, "",
                   "x, y, width, height in pixels of the upright image; only with part", ""),
    KI_OPTION_END};

/* ---- images ---- */

static kith_status read_crop(const ki_value *crop, ki_query_image *image, kith_error *err) {
    bool is_good = crop->kind == KI_VALUE_LIST && crop->n_items == 4;
    for (size_t i = 0; is_good && i < 4; i++) {
        const ki_value *number = ki_value_at(crop, i);
        is_good = number->kind == KI_VALUE_SCALAR && !number->is_quoted &&
                  ki_parse_double(number->text, &image->crop[i]) && isfinite(image->crop[i]);
    }
    image->has_crop = is_good;
    return is_good ? KITH_OK
                   : ki_fail(err, KITH_EINVAL, "query: crop is not [x, y, width, height] in pixels");
}

static kith_status read_image(const ki_value *value, ki_query *q, kith_error *err) {
    image_settings s;
    ki_query_image *image = &q->image[q->n_images];
    if (value->kind != KI_VALUE_MAP)
        return ki_fail(err, KITH_EINVAL, "query: image %d is not an object", q->n_images);
    KI_TRY(ki_options_parse(ki_query_image_options, value, NULL, "query.images", &s, err));
    if (!s.part == (s.id < 0))
        return ki_fail(err, KITH_EINVAL, "query: image %d has %s; wanted one of part and id", q->n_images,
                       s.part ? "both" : "neither");
    *image = (ki_query_image){.id = s.id, .weight = s.weight};
    if (s.part && !(image->part = ki_form_find(&q->form, s.part)))
        return ki_fail(err, KITH_EINVAL, "query: the request has no part '%.60s'", s.part);
    if (s.crop && s.id >= 0) return ki_fail(err, KITH_EINVAL, "query: crop is for images that are sent");
    if (s.crop) KI_TRY(read_crop(s.crop, image, err));
    q->n_images++;
    return KITH_OK;
}

static kith_status read_images(const ki_value *images, ki_query *q, kith_error *err) {
    if (!images || images->kind != KI_VALUE_LIST || images->n_items == 0)
        return ki_fail(err, KITH_EINVAL, "query: images is not a list of at least one image");
    if (images->n_items > KI_MOST_QUERY_IMAGES)
        return ki_fail(err, KITH_EINVAL, "query: %zu images; at most %d are read", images->n_items,
                       KI_MOST_QUERY_IMAGES);
    for (const ki_value *i = images->first; i; i = i->next) KI_TRY(read_image(i, q, err));
    return KITH_OK;
}

/* ---- the whole ---- */

static bool is_json(const char *content_type) {
    static const char json[] = "application/json";
    return content_type && strncasecmp(content_type, json, strlen(json)) == 0;
}

static bool is_form(const char *content_type) {
    static const char form[] = "multipart/form-data";
    return content_type && strncasecmp(content_type, form, strlen(form)) == 0;
}

static bool looks_like_json(const char *body, size_t n) {
    size_t i = 0;
    while (i < n && strchr(" \t\r\n", body[i]) && body[i]) i++;
    return i < n && body[i] == '{';
}

static kith_status read_json(const char *text, size_t n, int64_t most_k, ki_query *q, kith_error *err) {
    ki_value *root = NULL;
    settings s;
    KI_TRY(ki_json_parse(text, n, "query", &q->arena, &root, err));
    if (root->kind != KI_VALUE_MAP) return ki_fail(err, KITH_EINVAL, "query: this is not an object");
    KI_TRY(ki_options_parse(ki_query_options, root, NULL, "query", &s, err));
    if (s.k + s.offset > most_k)
        return ki_fail(err, KITH_EINVAL, "query: k + offset is %lld; at most %lld can be asked for",
                       (long long)(s.k + s.offset), (long long)most_k);
    q->k = s.k;
    q->offset = s.offset;
    q->where = s.where && *s.where ? s.where : NULL;
    q->same = s.same > 0 ? s.same : (double)NAN;
    q->min_score = s.min_score >= -1e30 ? s.min_score : (double)NAN;
    q->unknown = s.unknown;
    q->precision = s.precision >= 0 ? s.precision : (double)NAN;
    q->complete = s.complete >= 0 ? s.complete : (double)NAN;
    q->rerank = rerank_methods[s.rerank];
    q->flips = s.flips;
    q->exact = s.exact;
    q->hide_duplicates = s.hide_duplicates;
    q->error = s.error;
    q->hit = s.hit;
    return read_images(s.images, q, err);
}

kith_status ki_query_read(const char *content_type, const char *body, size_t n, int64_t most_k, ki_query *ret,
                          kith_error *err) {
    *ret = (ki_query){0};
    kith_status status = KITH_OK;
    if (is_json(content_type)) {
        status = read_json(body, n, most_k, ret, err);
    } else {
        status = ki_form_read(content_type ? content_type : "", body, n, &ret->form, err);
        /* curl -d, for instance, calls everything a form. */
        if (status != KITH_OK && !is_form(content_type) && looks_like_json(body, n))
            ki_hint(err, status, "for JSON send the header Content-Type: application/json");
        const ki_form_part *json = status == KITH_OK ? ki_form_find(&ret->form, "query") : NULL;
        if (status == KITH_OK && !json) status = ki_fail(err, KITH_EINVAL, "the request has no part 'query'");
        if (status == KITH_OK) status = read_json(json->bytes, json->n_bytes, most_k, ret, err);
    }
    if (status == KITH_OK) return KITH_OK;
    ki_query_release(ret);
    /* A key that there is not is the fault of the request, and no thing that could be found elsewhere. */
    return status == KITH_ENOTFOUND ? KITH_EINVAL : status;
}

void ki_query_release(ki_query *query) { ki_arena_release(&query->arena); }
