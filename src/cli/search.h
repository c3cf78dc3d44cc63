/* What the parts of `kith search` share. */
#ifndef CLI_SEARCH_H
#define CLI_SEARCH_H

#include "cli/cli.h"
#include "kith/array.h"
#include "kith/collection.h"
#include "kith/explain.h"
#include "kith/photos.h"

/* What the command was told. */
typedef struct search_command {
    const char *index;
    const char *shown;           /* as it was named */
    const char *const *operands; /* images, folders, or one .npy file of vectors */
    int64_t n_operands;
    cli_list ids; /* --id */
    kith_model_options model;
    const char *cache;   /* of photos */
    kith_photos *photos; /* whose index it is; NULL: the index was named */
    bool has_crop;
    double crop[4];
    cli_list also, unlike;      /* --and, --not */
    kith_search_request search; /* what all queries share: all but their parts */
    bool json, csv;
    const char *html, *out, *explain;
} search_command;

/* The queries and their answers. Owned; search_queries_release. */
typedef struct search_queries {
    int64_t n;
    char **name;            /* [n] paths; NULL: items, or rows of a file of vectors */
    int64_t *id;            /* [n] items; NULL: paths or rows */
    kith_array rows;        /* [n, dim] of a file of vectors */
    kith_query_part *parts; /* [n, n_parts] */
    int64_t n_parts;
    kith_found *found;          /* [n] */
    bool has_rates;             /* the index has a curve of false-match rates */
    bool has_errors;            /* it is known how often its hits are wrong, and … */
    double unknown;             /* … where this part of the queries shows something else, … */
    int64_t n_trials, n_labels; /* … from how many trials of how many labels */
} search_queries;

/* Ask all queries of the command. Images that cannot be read are reported, and left out. */
kith_status search_queries_ask(const search_command *command, kith_collection *collection,
                               search_queries *ret, kith_error *err);
void search_queries_release(search_queries *queries);

/* As search_queries_ask; if the queries are unlike those that the index was measured on, a line says so, and they are asked again with more
 * doubt. */
kith_status search_ask_carefully(const search_command *command, kith_collection *collection,
                                 search_queries *ret, kith_error *err);

/* Answers as text: "photo.jpg", "item 6", "row 0". In buf, or the name itself. */
const char *search_title(const search_queries *queries, int64_t q, char *buf, size_t buf_bytes);

/* To standard output, or to the files that were asked for. */
kith_status search_print(const search_command *command, kith_collection *collection,
                         const search_queries *queries, kith_error *err);

/* Why hit i of query q matches. KITH_ENOTFOUND when an item has no picture. */
kith_status search_explain(const search_command *command, kith_collection *collection,
                           const search_queries *queries, int64_t q, int64_t i,
                           kith_explanation *ret_explanation, kith_error *err);
/* --explain: the best hit of the first query as a picture. */
kith_status search_write_explanation(const search_command *command, kith_collection *collection,
                                     const search_queries *queries, kith_error *err);

/* --html: the hits as a page of pictures. */
kith_status search_write_page(const search_command *command, kith_collection *collection,
                              const search_queries *queries, kith_error *err);
/* --duplicates: groups of the same picture; where, json and html of the command count. */
kith_status search_duplicates(const search_command *command, kith_error *err);

/* The index with its model, for reading. */
kith_status search_open(const search_command *command, kith_collection **ret, kith_error *err);

/* As people are shown a path: below the folder that they are in, from there on. */
const char *search_shown_path(const char *path);
/* Print a name as people read it. It may be anybody's: control characters, which a terminal would obey, are shown as ?. */
void search_put(const char *text);
/* A text as a field of CSV: in quotes, which are doubled inside. */
void search_put_field(const char *text);

#endif
