/* The store of an index in a folder (store_type.h).
 *
 * files/ writes and reads the folder. A view (local_view.h) is what a commit needs to be asked: columns for filters, every row for an
 * exact search, codes for a faster one. A reader has the snapshot it opened; a writer has its own, and a new view after each commit. */
#ifndef KI_SEARCH_LOCAL_H
#define KI_SEARCH_LOCAL_H

#include "search/files/writer.h"
#include "search/local/local_view.h"
#include "search/store_type.h"

typedef struct ki_local {
    ki_store store;
    ki_snapshot *own;  /* of a reader; a writer has its writer's */
    ki_writer *writer; /* NULL: a reader */
    ki_view *view;
} ki_local;

extern const ki_store_type ki_local_store;

static inline ki_local *ki_local_of(ki_store *store) { return (ki_local *)store; }

/* ---- the functions of the table that have files of their own ---- */

/* local_change.c */
kith_status ki_local_add(ki_store *store, const float *rows, int64_t n, const kith_index_item *items,
                         int64_t *ret_first_id, kith_error *err);
kith_status ki_local_remove(ki_store *store, const int64_t *ids, int64_t n, bool excludes, kith_error *err);
kith_status ki_local_move(ki_store *store, const ki_file_record *move, int64_t bytes, int64_t mtime_ns,
                          kith_error *err);
kith_status ki_local_restamp(ki_store *store, int64_t id, int64_t bytes, int64_t mtime_ns, kith_error *err);
kith_status ki_local_set(ki_store *store, const ki_new_values *values, kith_error *err);
kith_status ki_local_exclude_file(ki_store *store, const ki_file_record *file, kith_error *err);
kith_status ki_local_column_add(ki_store *store, const char *name, kith_value_type type, kith_error *err);
kith_status ki_local_commit(ki_store *store, bool compact, ki_tally *tally, kith_error *err);

/* local_ask.c */
kith_status ki_local_excluded(ki_store *store, ki_records *ret_excluded, kith_error *err);
kith_status ki_local_ids(ki_store *store, const ki_where *where, int64_t **ret_ids, int64_t *ret_n,
                         kith_error *err);
kith_status ki_local_count(ki_store *store, const ki_where *where, int64_t column, ki_count_fn *fn,
                           void *user, int64_t *ret_n_allowed, kith_error *err);
kith_status ki_local_item(ki_store *store, int64_t id, kith_value *ret_cells, kith_error *err);
kith_status ki_local_vectors(ki_store *store, const int64_t *ids, int64_t n, float *ret_rows,
                             kith_error *err);
kith_status ki_local_labels(ki_store *store, const int64_t *ids, int64_t n, ki_arena *arena,
                            const char **ret_labels, kith_error *err);
kith_status ki_local_stamps(ki_store *store, ki_arena *arena, ki_item_stamp **ret_stamps, int64_t *ret_n,
                            kith_error *err);

/* local_search.c */
kith_status ki_local_search(ki_store *store, const kith_array *query, const ki_where *where,
                            const kith_search_options *options, kith_hits *ret_hits, kith_error *err);

/* local_check.c */
kith_status ki_local_check(ki_store *store, const kith_work_options *options, int64_t *ret_bytes,
                           kith_error *err);

#endif
