/* kith search --explain: why the best hit matches, as a picture; also for the page of hits. */
#include <string.h>

#include "cli/search.h"

/* The images that an explanation is of. `buf` may hold the hit's path. */
typedef struct explained {
    kith_query_image query[SEARCH_MOST_IMAGES], hit;
    int64_t n;
    char buf[8192];
} explained;

static kith_status find_images(const search_request *r, const kith_index *index,
                               const search_queries *queries, const search_found *f, int64_t q, int64_t i,
                               explained *ret, kith_error *err) {
    ret->n = search_query_images(r, queries->name[q], ret->query);
    ret->hit = (kith_query_image){.path = search_image(index, f->item[i].path, ret->buf, sizeof ret->buf)};
    if (ret->hit.path) return KITH_OK;
    return cli_error(err, KITH_ENOTFOUND, NULL, "item %lld has no path; wanted its image",
                     (long long)f->hits.hits[i].id);
}

static kith_status explain(const search_request *r, const search_queries *queries, const explained *x,
                           kith_explanation *ret, kith_error *err) {
    KITH_OPTIONS(kith_query_options, options);
    options.flips = r->flips;
    return kith_embedder_explain(queries->embedder, x->query, x->n, &x->hit, &options, ret, err);
}

kith_status search_explain(const search_request *r, const kith_index *index, const search_queries *queries,
                           const search_found *f, int64_t q, int64_t i, kith_explanation *ret,
                           kith_error *err) {
    explained x;
    const kith_status status = find_images(r, index, queries, f, q, i, &x, err);
    return status == KITH_OK ? explain(r, queries, &x, ret, err) : status;
}

kith_status search_write_explanation(const search_request *r, const kith_index *index,
                                     const search_queries *queries, const search_found *f, kith_error *err) {
    explained x;
    kith_explanation why = {0};
    if (f->hits.begin[1] == 0)
        return cli_error(err, KITH_ENOTFOUND, NULL,
                         "nothing was found for %s, so there is nothing to explain", queries->name[0]);
    kith_status status = find_images(r, index, queries, f, 0, 0, &x, err);
    if (status == KITH_OK) status = explain(r, queries, &x, &why, err);
    if (status == KITH_OK) status = kith_explanation_draw(&why, x.query, &x.hit, r->explain, err);
    kith_explanation_release(&why);
    return status;
}
