/* kith search --explain: why the best hit matches, as a picture; also for the page of hits. */
#include <string.h>

#include "cli/search.h"

/* The images that an explanation is of. */
typedef struct explained {
    kith_query_image query[1 + 2 * CLI_MOST_ITEMS], hit;
    int64_t n;
    char item[4096], found[4096]; /* paths of an item that is the query, and of the hit */
} explained;

static kith_status find_images(const kith_collection *collection, const search_queries *queries, int64_t q,
                               int64_t i, explained *ret, kith_error *err) {
    const kith_query_part *part = queries->parts + q * queries->n_parts;
    kith_status status = kith_collection_picture(collection, queries->found[q].hits[i].item.id, ret->found,
                                                 sizeof ret->found, err);
    ret->hit = (kith_query_image){.path = ret->found};
    ret->n = queries->n_parts;
    for (int64_t p = 0; status == KITH_OK && p < ret->n; p++) {
        ret->query[p] = part[p].image;
        ret->query[p].weight = part[p].weight;
        if (part[p].id < 0) continue;
        status = kith_collection_picture(collection, part[p].id, ret->item, sizeof ret->item, err);
        ret->query[p].path = ret->item;
    }
    return status;
}

static kith_status explain(const search_command *c, kith_collection *collection, const explained *x,
                           kith_explanation *ret, kith_error *err) {
    kith_model *model = NULL;
    KITH_OPTIONS(kith_query_options, options);
    options.flips = c->search.flips;
    const kith_status status = kith_collection_model(collection, &model, err);
    return status == KITH_OK ? kith_model_explain(model, x->query, x->n, &x->hit, &options, ret, err)
                             : status;
}

kith_status search_explain(const search_command *c, kith_collection *collection,
                           const search_queries *queries, int64_t q, int64_t i, kith_explanation *ret,
                           kith_error *err) {
    explained x;
    const kith_status status = find_images(collection, queries, q, i, &x, err);
    return status == KITH_OK ? explain(c, collection, &x, ret, err) : status;
}

kith_status search_write_explanation(const search_command *c, kith_collection *collection,
                                     const search_queries *queries, kith_error *err) {
    explained x;
    kith_explanation why = {0};
    char title[32];
    if (queries->n == 0 || queries->found[0].n_hits == 0)
        return cli_error(err, KITH_ENOTFOUND, NULL,
                         "nothing was found for %s, so there is nothing to explain",
                         queries->n == 0 ? "no query" : search_title(queries, 0, title, sizeof title));
    kith_status status = find_images(collection, queries, 0, 0, &x, err);
    if (status == KITH_OK) status = explain(c, collection, &x, &why, err);
    if (status == KITH_OK && *why.estimate)
        fprintf(stderr, "kith: %s is an estimate: %s\n", c->explain, why.estimate);
    if (status == KITH_OK) status = kith_explanation_draw(&why, x.query, &x.hit, c->explain, err);
    kith_explanation_release(&why);
    return status;
}
