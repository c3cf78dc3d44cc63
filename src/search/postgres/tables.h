/* The tables of an index, and the functions of ki_remote_type on them.
 *
 * An index is a schema with two tables, and a third, `excluded`, once a file was removed by hand. `items` has a row for each item. Its vector is kept in float32 (type vector), so that
 * the second look is exact; the graph (HNSW) is over its rounding to float16 (halfvec), which is half as large. `about` has one row:
 * the manifest as text, with its generation, number of items and model beside it for people who look.
 *
 * All SQL is constant, but for numbers that are printed here. What a user or a file says goes to the server as a value of a
 * statement. */
#ifndef KI_SEARCH_POSTGRES_TABLES_H
#define KI_SEARCH_POSTGRES_TABLES_H

#include "search/postgres/link.h"

/* The columns of items, in the order of COPY. */
#define KI_PG_COLUMNS "id, path, label, hash, bytes, mtime_ns, attributes, embedding"

enum { KI_PG_MOST_GRAPH_DIM = 4000, KI_PG_MOST_DIM = 16000 };

/* The operator that the graph orders by, and the class of its index. */
const char *ki_pg_operator(kith_metric metric);
const char *ki_pg_operator_class(kith_metric metric);

/* The filter as a condition, with its values behind those that are there. NULL: "true". */
void ki_pg_where(const ki_where *where, const ki_manifest *manifest, ki_buffer *sql, ki_pg_values *values);

kith_status ki_pg_create(ki_link *link, const ki_manifest *manifest, kith_error *err);
kith_status ki_pg_state(ki_link *link, ki_remote_state *ret_state, kith_error *err);
kith_status ki_pg_generation(ki_link *link, int64_t *ret_generation, kith_error *err);
kith_status ki_pg_commit(ki_link *link, const ki_remote_commit *commit, kith_error *err);

kith_status ki_pg_add(ki_link *link, const ki_manifest *manifest, const float *rows, int64_t n,
                      const kith_index_item *items, int64_t first_id, kith_error *err);
kith_status ki_pg_remove(ki_link *link, const int64_t *ids, int64_t n, int64_t *ret_n_removed,
                         int64_t *ret_missing, kith_error *err);
/* KITH_ENOTFOUND, without a message: the first id that is not there is *ret_missing. */
kith_status ki_pg_missing(ki_link *link, const int64_t *ids, int64_t n, int64_t *ret_missing,
                          kith_error *err);
kith_status ki_pg_restamp(ki_link *link, int64_t id, int64_t bytes, int64_t mtime_ns, bool *ret_is_there,
                          kith_error *err);

kith_status ki_pg_move(ki_link *link, const ki_file_record *move, int64_t bytes, int64_t mtime_ns,
                       bool *ret_is_there, kith_error *err);

kith_status ki_pg_set(ki_link *link, const ki_manifest *manifest, const ki_new_values *values,
                      int64_t *ret_missing, kith_error *err);

/* The table `excluded` is made when the first file is removed by hand (excluded.c). */
kith_status ki_pg_exclude(ki_link *link, const int64_t *ids, int64_t n, kith_error *err);
kith_status ki_pg_exclude_file(ki_link *link, const ki_file_record *file, kith_error *err);
kith_status ki_pg_include(ki_link *link, int64_t first_id, kith_error *err);
kith_status ki_pg_excluded(ki_link *link, ki_records *ret_excluded, kith_error *err);
kith_status ki_pg_count_excluded(ki_link *link, int64_t *ret_n, kith_error *err);

kith_status ki_pg_count(ki_link *link, const ki_manifest *manifest, const ki_where *where, int64_t *ret_n,
                        kith_error *err);
kith_status ki_pg_ids(ki_link *link, const ki_manifest *manifest, const ki_where *where, int64_t **ret_ids,
                      int64_t *ret_n, kith_error *err);
kith_status ki_pg_count_values(ki_link *link, const ki_manifest *manifest, const ki_where *where,
                               int64_t column, ki_count_fn *fn, void *user, kith_error *err);
kith_status ki_pg_item(ki_link *link, const ki_manifest *manifest, int64_t id, kith_value *ret_cells,
                       bool *ret_is_there, kith_error *err);
kith_status ki_pg_vectors(ki_link *link, const ki_manifest *manifest, const int64_t *ids, int64_t n,
                          float *ret_rows, int64_t *ret_missing, kith_error *err);
kith_status ki_pg_labels(ki_link *link, const int64_t *ids, int64_t n, ki_arena *arena,
                         const char **ret_labels, kith_error *err);
kith_status ki_pg_stamps(ki_link *link, ki_remote_stamp_fn *fn, void *user, kith_error *err);
kith_status ki_pg_nearest(ki_link *link, const ki_manifest *manifest, const float *query,
                          const ki_remote_ask *ask, ki_candidates *ret_candidates, kith_error *err);

#endif
