/* Requests to rows, and the whole of a search.
 *
 * Images of all requests go through the network together: files by the loader, which decodes ahead in threads, and pixels in groups.
 * Images that are cut or mirrored are decoded at full size, request by request, so that few of them are in memory. What cannot be
 * embedded together is tried alone: then it is known which image is to blame, and why. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "collection/ask.h"
#include "model/pictures.h"

KI_OPTIONS_INIT(kith_search_request, .k = 10, .same = NAN, .min_score = NAN, .unknown = KITH_UNKNOWN_DEFAULT,
                .precision = NAN, .complete = NAN)
KI_OPTIONS_INIT(kith_ask_options, 0)

enum { MOST_PARTS = 1024 };

/* ---- is it a request? ---- */

static bool is_image(const kith_query_part *p) { return p->image.path || p->image.bytes || p->image.pixels; }
static bool is_whole(const kith_search_request *r, const kith_query_part *p) {
    return is_image(p) && !p->image.has_box && !r->flips;
}
static bool is_pixels(const kith_search_request *r, const kith_query_part *p) {
    return is_whole(r, p) && p->image.pixels;
}
static bool is_file(const kith_search_request *r, const kith_query_part *p) {
    return is_whole(r, p) && !p->image.pixels && p->image.path;
}

static kith_status check_parts(const kith_search_request *r, kith_error *err) {
    if (!r->parts || r->n_parts < 1 || r->n_parts > MOST_PARTS)
        return ki_fail(err, KITH_EINVAL, "a query of %lld parts; wanted 1 to %d", (long long)r->n_parts,
                       MOST_PARTS);
    for (int64_t i = 0; i < r->n_parts; i++) {
        const kith_query_part *p = &r->parts[i];
        const int n = (p->id >= 0) + (p->row != NULL) + is_image(p);
        if (n != 1)
            return ki_fail(err, KITH_EINVAL,
                           "part %lld of the query is %d of an item, a vector and an image; wanted one",
                           (long long)i, n);
    }
    return KITH_OK;
}

static kith_status check(const kith_search_request *r, kith_error *err) {
    if (r->k < 1 || r->offset < 0)
        return ki_fail(err, KITH_EINVAL, "k is %lld and offset %lld; wanted at least 1 and 0",
                       (long long)r->k, (long long)r->offset);
    if (!isnan(r->same) && !isnan(r->min_score))
        return ki_fail(err, KITH_EINVAL, "same and min_score are both given; wanted one");
    if ((int)r->rerank < KITH_RERANK_NONE || r->rerank > KITH_RERANK_RECIPROCAL)
        return ki_fail(err, KITH_EINVAL, "unknown way of re-ranking %d", (int)r->rerank);
    return check_parts(r, err);
}

/* The score that a false-match rate means. */
static kith_status find_limit(const kith_index *index, const kith_search_request *r, double *ret_limit,
                              kith_error *err) {
    /* As scores are: one that was printed finds its own hit. */
    *ret_limit = (double)(float)r->min_score;
    if (isnan(r->same)) return KITH_OK;
    const kith_calibration *curve = kith_index_calibration(index);
    if (!curve) {
        ki_fail(err, KITH_EINVAL, "the index has no curve of false-match rates");
        return ki_hint(err, KITH_EINVAL, "make it with: kith index INDEX --calibrate DATA");
    }
    *ret_limit = kith_calibration_threshold(curve, r->same);
    if (!isnan(*ret_limit)) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "same is %g; the pairs that were measured tell rates from %.3g on", r->same,
            kith_calibration_least(curve));
    return ki_hint(err, KITH_EINVAL, "calibrate the index with more images of more classes");
}

/* An array of options: how far its structs are apart says their size, as the program has it. */
static kith_status take_requests(ki_asking *a, const kith_search_request *requests, kith_found *ret_found,
                                 kith_error *err) {
    const size_t stride = a->n > 0 ? requests[0].size : 0;
    for (int64_t i = 0; i < a->n; i++) {
        ki_asked *x = &a->asked[i];
        const void *given = (const char *)requests + (size_t)i * stride;
        x->found = &ret_found[i];
        kith_search_request_init(&x->r, sizeof x->r);
        KI_TRY(ki_options_take(given, &x->r, sizeof x->r, "kith_search_request", err));
        kith_found *f = x->found;
        f->status = check(&x->r, &f->error);
        f->top_score = x->evidence = (double)NAN;
        if (f->status == KITH_OK) f->status = find_limit(a->index, &x->r, &f->limit, &f->error);
        if (f->status == KITH_OK) f->status = ki_ask_filter(a, &x->r, &x->asks_names, &f->error);
        if (f->status == KITH_OK) f->status = ki_ask_promise(a, x, &x->evidence, &f->error);
    }
    return KITH_OK;
}

/* ---- images that are embedded together ---- */

/* Whole images of one kind, of all requests, in their order. */
typedef struct together {
    bool (*is_one)(const kith_search_request *r, const kith_query_part *p);
    int64_t n, next; /* `next` is the first that the request at hand has not taken yet */
    float *rows;
    kith_status *status;
} together;

static void together_release(together *t) {
    ki_free(t->rows);
    ki_free(t->status);
}

/* How many of them are one request's. */
static int64_t together_count(const together *t, const ki_asked *x) {
    int64_t n = 0;
    for (int64_t p = 0; x->found->status == KITH_OK && p < x->r.n_parts; p++)
        n += t->is_one(&x->r, &x->r.parts[p]);
    return n;
}

/* Count them, and make room. Rows of which nothing is known yet have failed. */
static kith_status together_init(together *t, const ki_asking *a, kith_error *err) {
    for (int64_t i = 0; i < a->n; i++) t->n += together_count(t, &a->asked[i]);
    KI_TRY(ki_alloc_or(&t->rows, (size_t)t->n * (size_t)a->info.dim, sizeof *t->rows, "vectors", err));
    KI_TRY(ki_alloc_or(&t->status, (size_t)t->n, sizeof *t->status, "images", err));
    for (int64_t i = 0; i < t->n; i++) t->status[i] = KITH_EINTERNAL;
    return KITH_OK;
}

/* The next image; *i and *p walk over requests and parts, from 0 and -1 on. */
static const kith_query_image *next_image(const together *t, const ki_asking *a, int64_t *i, int64_t *p) {
    for (; *i < a->n; ++*i, *p = -1) {
        const ki_asked *x = &a->asked[*i];
        if (x->found->status != KITH_OK) continue;
        while (++*p < x->r.n_parts) {
            if (t->is_one(&x->r, &x->r.parts[*p])) return &x->r.parts[*p].image;
        }
    }
    return NULL;
}

static kith_status embed_files(const ki_asking *a, kith_model *model, together *t, kith_error *err) {
    const char **paths = NULL;
    if (t->n == 0) return KITH_OK;
    KITH_OPTIONS(kith_embed_options, how);
    how.most_pixels = a->o.most_pixels;
    how.progress = a->o.progress;
    how.user = a->o.user;
    KI_TRY(ki_alloc_or(&paths, (size_t)t->n, sizeof *paths, "images", err));
    int64_t i = 0, p = -1;
    for (int64_t at = 0; at < t->n; at++) paths[at] = next_image(t, a, &i, &p)->path;
    const kith_status status = kith_model_embed_files(model, paths, t->n, &how, t->rows, t->status, err);
    if (status != KITH_OK) {
        for (int64_t at = 0; at < t->n; at++) t->status[at] = status;
    }
    ki_free(paths);
    return status == KITH_ECANCELED ? status : KITH_OK;
}

static kith_status embed_pixels(const ki_asking *a, kith_model *model, together *t, kith_error *err) {
    kith_pixels *pixels = NULL;
    if (t->n == 0) return KITH_OK;
    KI_TRY(ki_alloc_or(&pixels, (size_t)t->n, sizeof *pixels, "images", err));
    int64_t i = 0, p = -1;
    for (int64_t at = 0; at < t->n; at++) pixels[at] = *next_image(t, a, &i, &p)->pixels;
    kith_error ignored;
    const kith_status status = kith_model_embed_pixels(model, pixels, t->n, NULL, t->rows, &ignored);
    for (int64_t at = 0; at < t->n; at++) t->status[at] = status;
    ki_free(pixels);
    return KITH_OK;
}

/* ---- rows ---- */

/* The parts of one request as rows: an image with its mirror image is two. */
typedef struct parts {
    float *rows; /* [n, dim] */
    double *weight;
    int64_t n;
} parts;

/* An image by itself. */
static kith_status embed_alone(const ki_asking *a, kith_model *model, const kith_query_image *image,
                               bool flips, float *ret_rows, kith_error *err) {
    ki_pictures pictures = {0};
    kith_status status = ki_pictures_init(&pictures, model, 1 + flips, err);
    if (status == KITH_OK) status = ki_pictures_add(&pictures, image, flips, a->o.most_pixels, err);
    if (status == KITH_OK) status = ki_pictures_embed(&pictures, NULL, ret_rows, err);
    ki_pictures_release(&pictures);
    return status;
}

static kith_status add_part(const ki_asking *a, kith_model *model, const kith_search_request *r,
                            const kith_query_part *part, together *const sides[2], parts *ret,
                            kith_error *err) {
    const size_t row_bytes = (size_t)a->info.dim * sizeof *ret->rows;
    float *row = ret->rows + ret->n * a->info.dim;
    const int64_t n_views = is_image(part) && r->flips ? 2 : 1;
    for (int64_t i = 0; i < n_views; i++) ret->weight[ret->n++] = part->weight / (double)n_views;
    if (part->row) {
        memcpy(row, part->row, row_bytes);
        return KITH_OK;
    }
    if (part->id >= 0) {
        const kith_status status = kith_index_vectors(a->index, &part->id, 1, row, err);
        return status == KITH_ENOTFOUND ? ki_fail(err, status, "there is no item %lld", (long long)part->id)
                                        : status;
    }
    for (int i = 0; i < 2; i++) {
        together *t = sides[i];
        if (!t->is_one(r, part)) continue;
        const int64_t at = t->next++;
        if (t->status[at] != KITH_OK) break;
        memcpy(row, t->rows + at * a->info.dim, row_bytes);
        return KITH_OK;
    }
    return embed_alone(a, model, &part->image, r->flips, row, err);
}

static kith_status make_row(const ki_asking *a, kith_model *model, ki_asked *x, together *const sides[2],
                            kith_error *err) {
    kith_status status = KITH_OK;
    const int64_t dim = a->info.dim, most = x->r.n_parts * (x->r.flips ? 2 : 1);
    double weight = 0;
    parts p = {0};
    KI_CHECK(ki_alloc_or(&x->found->row, (size_t)dim, sizeof *x->found->row, "a query", err));
    if (most == 1 && x->r.parts[0].weight > 0 && isfinite(x->r.parts[0].weight)) { /* nothing to combine */
        parts one = {x->found->row, &weight, 0};
        status = add_part(a, model, &x->r, &x->r.parts[0], sides, &one, err);
        goto done;
    }
    KI_CHECK(ki_alloc_or(&p.rows, (size_t)most * (size_t)dim, sizeof *p.rows, "a query", err));
    KI_CHECK(ki_alloc_or(&p.weight, (size_t)most, sizeof *p.weight, "a query", err));
    for (int64_t i = 0; i < x->r.n_parts; i++)
        KI_CHECK(add_part(a, model, &x->r, &x->r.parts[i], sides, &p, err));
    status = kith_query_combine(p.rows, p.weight, p.n, dim, x->found->row, err);
done:
    ki_free(p.rows);
    ki_free(p.weight);
    if (status != KITH_OK) {
        ki_free(x->found->row);
        x->found->row = NULL;
    }
    return status;
}

/* Requests with images need the model: without it they fail. */
static void need_model(ki_asking *a, kith_model **ret_model) {
    kith_error why;
    kith_status status = KITH_OK;
    *ret_model = NULL;
    for (int64_t i = 0; i < a->n; i++) {
        ki_asked *x = &a->asked[i];
        bool has_image = false;
        for (int64_t p = 0; x->found->status == KITH_OK && p < x->r.n_parts; p++)
            has_image |= is_image(&x->r.parts[p]);
        if (!has_image) continue;
        if (status == KITH_OK && !*ret_model) status = kith_collection_model(a->collection, ret_model, &why);
        if (status == KITH_OK) continue;
        x->found->status = status;
        x->found->error = why;
    }
}

static kith_status make_rows(ki_asking *a, kith_error *err) {
    kith_status status;
    kith_model *model = NULL;
    together files = {.is_one = is_file}, pixels = {.is_one = is_pixels};
    need_model(a, &model);
    KI_CHECK(together_init(&files, a, err));
    KI_CHECK(together_init(&pixels, a, err));
    KI_CHECK(embed_files(a, model, &files, err));
    KI_CHECK(embed_pixels(a, model, &pixels, err));
    for (int64_t i = 0; i < a->n; i++) {
        ki_asked *x = &a->asked[i];
        if (x->found->status != KITH_OK) continue;
        /* A request that fails halfway leaves images behind: the next one must not take them for its own. */
        const int64_t files_end = files.next + together_count(&files, x);
        const int64_t pixels_end = pixels.next + together_count(&pixels, x);
        x->found->status = make_row(a, model, x, (together *const[]){&files, &pixels}, &x->found->error);
        files.next = files_end;
        pixels.next = pixels_end;
    }
done:
    together_release(&files);
    together_release(&pixels);
    return status;
}

/* ---- the whole ---- */

static void fill(const ki_asking *a) {
    for (int64_t i = 0; !a->o.ids_only && i < a->n; i++) {
        kith_found *f = a->asked[i].found;
        if (f->status == KITH_OK) f->status = kith_found_fill(a->collection, f, &f->error);
    }
}

/* The first failure, if there is nothing else. */
static kith_status verdict(const ki_asking *a, kith_error *err) {
    for (int64_t i = 0; i < a->n; i++) {
        if (a->asked[i].found->status == KITH_OK) return KITH_OK;
    }
    if (a->n == 0) return KITH_OK;
    if (err) *err = a->asked[0].found->error;
    return a->asked[0].found->status;
}

kith_status kith_collection_search(kith_collection *collection, const kith_search_request *requests,
                                   int64_t n, const kith_ask_options *options, kith_found *ret_found,
                                   kith_error *err) {
    KI_NEED(err, collection, requests, ret_found);
    KI_NEED_COUNT(err, n);
    kith_status status;
    for (int64_t i = 0; i < n; i++) ret_found[i] = (kith_found){.limit = NAN, .top_score = NAN};
    KI_OPTIONS_TAKE(kith_ask_options, o, options, err);
    KI_TRY(ki_collection_ready(collection, err));
    ki_asking a = {.collection = collection, .index = collection->index, .o = o, .n = n};
    kith_index_info_get(a.index, &a.info);
    KI_CHECK(ki_zalloc_or(&a.asked, (size_t)n, sizeof *a.asked, "queries", err));
    KI_CHECK(ki_ask_reliability(&a, err));
    KI_CHECK(take_requests(&a, requests, ret_found, err));
    KI_CHECK(make_rows(&a, err));
    KI_CHECK(ki_find(&a, err));
    fill(&a);
    status = verdict(&a, err);
done:
    ki_free(a.asked);
    ki_free(a.reliability);
    return status;
}
