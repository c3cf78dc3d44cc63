/* What a kith_index is: a store, and what is the same whoever keeps it. */
#ifndef KI_SEARCH_INDEX_HANDLE_H
#define KI_SEARCH_INDEX_HANDLE_H

#include "kith/index.h"
#include "search/place.h"
#include "search/roots.h"
#include "search/store_type.h"

/* How paths are shown: as they are now, and as the index keeps them. */
typedef struct ki_shown {
    ki_arena arena;
    ki_roots now, kept;
} ki_shown;

struct kith_index {
    ki_store *store;
    ki_index_place *place; /* NULL: its files lie where it says */
    ki_shown *shown;       /* NULL: paths in filters are those of the index */
    unsigned hidden;       /* bits: columns of KITH_FACT_COLUMNS that are kept back */
};

/* A handle over a store that is open, which it takes over, also after a failure. */
kith_status ki_index_wrap(ki_store *store, kith_index **ret_index, kith_error *err);

/* The manifest as the handle sees it, with what is pending; to change it, for a handle that writes. */
static inline const ki_manifest *ki_index_manifest(const kith_index *index) {
    return index->store->pending ? index->store->pending : index->store->committed;
}
static inline ki_manifest *ki_index_pending(kith_index *index) { return index->store->pending; }
/* The manifest of the last commit. */
static inline const ki_manifest *ki_index_committed(const kith_index *index) {
    return index->store->committed;
}
/* Where it is kept: for errors. */
static inline const char *ki_index_name(const kith_index *index) {
    return index->store->type->name(index->store);
}
/* KITH_EINVAL for a reader, and for a writer whose change has failed. */
kith_status ki_index_writable(const kith_index *index, kith_error *err);

/* From now on filters compare paths as ki_index_shown gives them, and not with the index's folders before them. */
kith_status ki_index_show_paths(kith_index *index, kith_error *err);
/* A pointer into the path of an item; the path itself unless ki_index_show_paths was called. NULL is fine. */
const char *ki_index_shown(const kith_index *index, const char *path);

/* From now on these columns (bits, by KITH_FACT_COLUMNS) are in no filter, and whoever tells others of items leaves them out. */
void ki_index_hide(kith_index *index, unsigned facts);
/* Is the column kept back? */
bool ki_index_hides(const kith_index *index, const char *column);

/* Read a filter over the last commit; *ret_filter NULL: `where` is. */
kith_status ki_index_parse(const kith_index *index, const char *where, ki_where **ret_filter,
                           kith_error *err);

/* The labels of items of the last commit: ret_labels [n], NULL for none; they live as long as the arena and the commit. */
kith_status ki_index_labels(const kith_index *index, const int64_t *ids, int64_t n, ki_arena *arena,
                            const char **ret_labels, kith_error *err);

/* May a path or label be this text? A store may keep UTF-8 alone. NULL is fine. */
bool ki_index_keeps_text(const kith_index *index, const char *text);

/* ---- files that were removed by hand (index_files.c) ---- */

/* Those of the last commit, by the ids their items had. The caller releases them. */
kith_status ki_index_excluded(const kith_index *index, ki_records *ret_excluded, kith_error *err);
/* One more; or, with the id of one there is, that one under another path. */
kith_status ki_index_exclude_file(kith_index *index, const ki_file_record *file, kith_error *err);

/* Threads for one call: n (0: as many as before) until ki_threads_back. */
typedef struct ki_threads_before {
    int n; /* 0: nothing was changed */
} ki_threads_before;
kith_status ki_threads_for(int64_t n, ki_threads_before *ret_before, kith_error *err);
void ki_threads_back(ki_threads_before before);

#endif
