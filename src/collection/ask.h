/* A search on its way, for the files that make it: ask.c (requests to rows), find.c (rows to hits), answer.c (what is known of
 * a hit), picture.c (where its image lies). */
#ifndef KI_COLLECTION_ASK_H
#define KI_COLLECTION_ASK_H

#include "collection/collection.h"
#include "judge/reliability.h"
#include "kith/experimental/json.h"

/* One request. */
typedef struct ki_asked {
    kith_search_request r;
    kith_found *found; /* its row, then its hits */
    int64_t n_wanted;  /* nearest items, in the search that is next */
    double evidence;   /* that hits need to keep a promise; NaN: any will do */
    bool asks_names;   /* its filter chooses items by what they are */
    bool is_found;     /* nothing is left to do */
} ki_asked;

/* All requests of a call. */
typedef struct ki_asking {
    kith_collection *collection;
    const kith_index *index;
    kith_index_info info;
    kith_ask_options o;
    ki_asked *asked;
    int64_t n;
    kith_reliability *reliability; /* NULL: nothing is known of how often hits are wrong */
} ki_asking;

/* Can the chance that its hits are wrong be told? The trials were single rows, in the order of their scores. A filter by the label leaves
 * out the very hits with another label that a hit is measured by. */
static inline bool ki_is_like_trials(const ki_asking *asking, const ki_asked *asked) {
    const kith_search_request *r = &asked->r;
    return asking->reliability && r->n_parts == 1 && r->parts[0].weight > 0 &&
           r->rerank == KITH_RERANK_NONE && !asked->asks_names;
}

/* ---- errors.c ---- */

/* What is known of how often hits are wrong; asking->reliability is freed by the caller. */
kith_status ki_ask_reliability(ki_asking *asking, kith_error *err);
/* The evidence that a promise takes. KITH_EINVAL: it cannot be promised. */
kith_status ki_ask_promise(const ki_asking *asking, const ki_asked *asked, double *ret_evidence,
                           kith_error *err);
/* Does the request's filter ask for the label, the group, the path or the id? KITH_EINVAL: it is none. */
kith_status ki_ask_filter(const ki_asking *asking, const kith_search_request *request, bool *ret_asks_names,
                          kith_error *err);
/* How much speaks for each hit of a whole list, nearest first: ret_evidence [n]. The item `self` (-1: none) and
 * what has the query's very vector are no hits: they have NaN. */
kith_status ki_ask_evidence(const ki_asking *asking, int64_t self, const kith_hit *hits, int64_t n,
                            double *ret_evidence, kith_error *err);

/* Hits of all requests that have a row and no failure: ids and scores. Fails when the search was stopped. */
kith_status ki_find(ki_asking *asking, kith_error *err);

/* The groups to hide duplicates by: those of the options, or the collection's own. */
kith_status ki_ask_duplicates(ki_asking *asking, const kith_duplicates **ret, kith_error *err);

/* The file of an item's picture: its path itself, or in buf. NULL when there is none that is a file. */
const char *ki_collection_picture_file(const kith_collection *collection, const char *path, char *buf,
                                       size_t buf_bytes);

/* What is known of an item, as members of the object that was begun: label, path, values, image. */
void ki_item_write(const kith_collection *collection, const kith_index_item *item, bool has_picture,
                   kith_json *json);
/* Hits as an array of objects. */
void ki_hits_write(const kith_collection *collection, const kith_found_hit *hits, int64_t n, kith_json *json);

/* What is known of a hit is given back. */
void ki_hit_clear(kith_found_hit *hit);

#endif
