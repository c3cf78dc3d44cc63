/* What the parts of `kith search` share. */
#ifndef CLI_SEARCH_H
#define CLI_SEARCH_H

#include "cli/cli.h"
#include "kith/array.h"
#include "kith/embedder.h"
#include "kith/explain.h"
#include "kith/index.h"

/* What the command was told. */
typedef struct search_request {
    const char *index;
    const char *const *operands; /* images, folders, or one .npy file of vectors */
    int64_t n_operands;
    kith_embedder_options embedder;
    bool has_crop, flips;
    double crop[4];
    cli_list also, unlike;      /* --and, --not */
    kith_search_options search; /* where, k, offset, limit, exact */
    enum { SEARCH_PLAIN, SEARCH_EXPANDED, SEARCH_RECIPROCAL } rerank;
    bool json, csv;
    const char *html, *out, *explain;
} search_request;

/* The queries as vectors. Owned; search_queries_release. */
typedef struct search_queries {
    kith_array rows; /* [n, dim] */
    int64_t n;
    char **name;             /* [n] paths; NULL: rows of a file of vectors */
    kith_embedder *embedder; /* that embedded them; NULL for vectors */
} search_queries;

kith_status search_queries_make(const search_request *request, const kith_index *index, search_queries *ret,
                                kith_error *err);
void search_queries_release(search_queries *queries);

/* What was found, with what the index knows of it. Owned; search_found_release. */
typedef struct search_found {
    kith_hits hits;
    kith_index_item *item;    /* of each hit */
    double *false_match_rate; /* of each hit; NaN: not known */
    bool has_rates;
} search_found;

kith_status search_found_take(const kith_index *index, kith_hits *hits, search_found *ret, kith_error *err);
void search_found_release(search_found *found);

/* To standard output, or to the files that were asked for. */
kith_status search_print(const search_request *request, const kith_index *index,
                         const search_queries *queries, const search_found *found, kith_error *err);

/* What query q is made of, at most SEARCH_MOST_IMAGES: its image, and those of --and and --not. */
enum { SEARCH_MOST_IMAGES = 1 + 2 * CLI_MOST_ITEMS };
int64_t search_query_images(const search_request *request, const char *path,
                            kith_query_image image[SEARCH_MOST_IMAGES]);

/* Why hit i, of query q, matches. KITH_ENOTFOUND when the item has no path. */
kith_status search_explain(const search_request *request, const kith_index *index,
                           const search_queries *queries, const search_found *found, int64_t q, int64_t i,
                           kith_explanation *ret_explanation, kith_error *err);
/* --explain: the best hit of the first query as a picture. */
kith_status search_write_explanation(const search_request *request, const kith_index *index,
                                     const search_queries *queries, const search_found *found,
                                     kith_error *err);

/* --html: the hits as a page of pictures. */
kith_status search_write_page(const search_request *request, const kith_index *index,
                              const search_queries *queries, const search_found *found, kith_error *err);
/* --duplicates: groups of the same picture; where, json and html of the request count. */
kith_status search_duplicates(const search_request *request, kith_error *err);

/* As people are shown a path: below the folder that they are in, from there on. */
const char *search_shown_path(const char *path);
/* Print a name as people read it. It may be anybody's: control characters, which a terminal would obey, are shown as ?. */
void search_put(const char *text);
/* Where the image of an item lies: its path, from the folder that the index notes. In buf, or the path itself. */
const char *search_image(const kith_index *index, const char *path, char *buf, size_t buf_bytes);

#endif
