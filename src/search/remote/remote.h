/* The store of an index that a database server keeps (store_type.h).
 *
 * It serves addresses such as postgresql://host/db. What the server does is behind ki_remote_type, whose functions are in a
 * plugin (plugin/postgres.c), so that libkith itself needs no library of a server. What is the same for every server is here: the
 * manifest, which is kept there as text, and the exact second look at the candidates that the server finds.
 *
 * What differs from a folder: a handle that writes sees what it has changed before the commit, and the vectors stay at the
 * server. One connection per handle; threads take turns. */
#ifndef KI_SEARCH_REMOTE_H
#define KI_SEARCH_REMOTE_H

#include <pthread.h>

#include "search/store_type.h"

/* ---- what a server does ---- */

typedef struct ki_link ki_link; /* the plugin's: a connection, and what is pending on it */

/* What was committed last. */
typedef struct ki_remote_state {
    char *manifest; /* as ki_manifest_print wrote it; given back with ki_free */
    int64_t n_items;
    bool has_graph;  /* an index for approximate neighbours */
    int64_t bytes;   /* that the server keeps, about */
    int64_t next_id; /* no item has this id or a larger one; 0: the manifest says which is next */
} ki_remote_state;

typedef struct ki_remote_commit {
    const ki_manifest *manifest;
    int64_t n_items;
    bool wants_graph; /* there should be an index for approximate neighbours from now on */
    bool compacts;    /* free the space of what was removed */
    ki_tally *tally;  /* asked now and then whether to stop; may be NULL */
} ki_remote_commit;

/* Who may be found, and how. */
typedef struct ki_remote_ask {
    const ki_where *where; /* NULL: all */
    int64_t self;          /* the id that must not be found, or -1 */
    int64_t k;
    bool exact;   /* compare every vector that may be found */
    double wants; /* the recall wanted, when not exact */
} ki_remote_ask;

/* Zero-initialise; the caller gives the arrays back with ki_candidates_release. */
typedef struct ki_candidates {
    int64_t n;
    int64_t *id;
    float *rows; /* [n, dim] */
    double last; /* exact: the distance of the last one as the server computes it, in float32 */
} ki_candidates;

typedef void ki_remote_stamp_fn(void *user, int64_t id, const char *path, int64_t bytes, int64_t mtime_ns);

/* A link is used by one thread at a time. A connection that is lost is made anew by the next function that only reads; one that
 * changes fails with KITH_EIO, and then the change since the last commit is lost at the server, too. */
typedef struct ki_remote_type {
    /* KITH_EINVAL when it shall write and another writes. */
    kith_status (*open)(const char *address, bool writes, ki_link **ret_link, kith_error *err);
    void (*close)(ki_link *link); /* drops what was not committed; NULL is fine */
    /* For errors: host, database and name of the index; never a password. */
    const char *(*name)(const ki_link *link);
    /* Make an empty index; it is there from the first commit on. KITH_EINVAL when there is one. */
    kith_status (*create)(ki_link *link, const ki_manifest *manifest, kith_error *err);
    /* The last commit. KITH_ENOTFOUND: there is no index. What a reader asks from now on is answered from this commit, until it
     * asks for `generation`. */
    kith_status (*state)(ki_link *link, ki_remote_state *ret_state, kith_error *err);
    kith_status (*generation)(ki_link *link, int64_t *ret_generation, kith_error *err);

    kith_status (*add)(ki_link *link, const ki_manifest *manifest, const float *rows, int64_t n,
                       const kith_index_item *items, int64_t first_id, kith_error *err);
    /* KITH_ENOTFOUND, with the first id that is not there in *ret_missing; then none is removed. */
    kith_status (*remove)(ki_link *link, const int64_t *ids, int64_t n, int64_t *ret_n_removed,
                          int64_t *ret_missing, kith_error *err);
    kith_status (*move)(ki_link *link, const ki_file_record *move, int64_t bytes, int64_t mtime_ns,
                        bool *ret_is_there, kith_error *err);
    /* Remember the paths and hashes of these items as excluded, those that have a path: before they are removed. */
    kith_status (*exclude)(ki_link *link, const int64_t *ids, int64_t n, kith_error *err);
    /* One file; or the one of this id under another path. */
    kith_status (*exclude_file)(ki_link *link, const ki_file_record *file, kith_error *err);
    /* The paths of items from first_id on are not excluded any more. */
    kith_status (*include)(ki_link *link, int64_t first_id, kith_error *err);
    kith_status (*excluded)(ki_link *link, ki_records *ret_excluded, kith_error *err);
    kith_status (*count_excluded)(ki_link *link, int64_t *ret_n, kith_error *err);
    kith_status (*restamp)(ki_link *link, int64_t id, int64_t bytes, int64_t mtime_ns, bool *ret_is_there,
                           kith_error *err);
    /* KITH_ENOTFOUND as for remove. */
    kith_status (*set)(ki_link *link, const ki_manifest *manifest, const ki_new_values *values,
                       int64_t *ret_missing, kith_error *err);
    kith_status (*commit)(ki_link *link, const ki_remote_commit *commit, kith_error *err);

    kith_status (*count)(ki_link *link, const ki_manifest *manifest, const ki_where *where, int64_t *ret_n,
                         kith_error *err);
    /* Each value of a column once, with how many items have it; n_allowed as of count. */
    kith_status (*values)(ki_link *link, const ki_manifest *manifest, const ki_where *where, int64_t column,
                          ki_count_fn *fn, void *user, kith_error *err);
    /* Ascending; given back with ki_free. */
    kith_status (*ids)(ki_link *link, const ki_manifest *manifest, const ki_where *where, int64_t **ret_ids,
                       int64_t *ret_n, kith_error *err);
    /* ret_cells [KI_COLUMN_FIRST + columns of the manifest], texts given back with ki_free. */
    kith_status (*item)(ki_link *link, const ki_manifest *manifest, int64_t id, kith_value *ret_cells,
                        bool *ret_is_there, kith_error *err);
    /* ret_rows [n, dim], in the order of ids. KITH_ENOTFOUND as for remove. */
    kith_status (*vectors)(ki_link *link, const ki_manifest *manifest, const int64_t *ids, int64_t n,
                           float *ret_rows, int64_t *ret_missing, kith_error *err);
    /* ret_labels [n], in the order of ids, in the arena; NULL: none, or there is no such item. */
    kith_status (*labels)(ki_link *link, const int64_t *ids, int64_t n, ki_arena *arena,
                          const char **ret_labels, kith_error *err);
    /* All items, by id; path may be NULL. */
    kith_status (*stamps)(ki_link *link, ki_remote_stamp_fn *fn, void *user, kith_error *err);
    /* The ask->k nearest to a query [dim], or fewer; all that may be found when there are fewer and ask->exact. */
    kith_status (*nearest)(ki_link *link, const ki_manifest *manifest, const float *query,
                           const ki_remote_ask *ask, ki_candidates *ret_candidates, kith_error *err);
} ki_remote_type;

void ki_candidates_release(ki_candidates *candidates);

/* Lengths of rows that a server compares by the cosine in float32 without its squares becoming 0 or infinite; 0 is fine, too. */
#define KI_REMOTE_LEAST_NORM 1e-15
#define KI_REMOTE_MOST_NORM 1e15

/* ---- the store ---- */

typedef struct ki_remote {
    ki_store store;
    const ki_remote_type *type;
    ki_link *link;
    pthread_mutex_t lock; /* of the link */
    bool has_lock;
    bool excludes;         /* the list of excluded files has changed */
    ki_manifest now, next; /* the last commit; and with what is pending (a writer's) */
    ki_remote_state state; /* of the last commit; without its text */
    int64_t n_items;       /* with what is pending */
} ki_remote;

/* Serves addresses of servers. */
extern const ki_store_type ki_remote_store;

static inline ki_remote *ki_remote_of(ki_store *store) { return (ki_remote *)store; }
static inline const char *ki_remote_name(const ki_remote *r) { return r->type->name(r->link); }

double ki_remote_norm(const float *row, int64_t dim);

/* Its search (remote_search.c). */
kith_status ki_remote_search(ki_store *store, const kith_array *query, const ki_where *where,
                             const kith_search_options *options, kith_hits *ret_hits, kith_error *err);

#endif
