/* What a kith_index is. */
#ifndef KI_SEARCH_INDEX_HANDLE_H
#define KI_SEARCH_INDEX_HANDLE_H

#include "kith/index.h"
#include "search/coded.h"
#include "search/exact.h"
#include "search/place.h"
#include "search/remote/remote.h"
#include "search/roots.h"
#include "search/store/columns.h"
#include "search/store/store.h"

/* How paths are shown: as they are now, and as the index keeps them. */
typedef struct ki_shown {
    ki_arena arena;
    ki_roots now, kept;
} ki_shown;

/* What belongs to one commit: made anew by the next. The lazy parts lock themselves. */
typedef struct ki_view {
    const ki_snapshot *snapshot;
    uint64_t *alive; /* [ki_exact_words]: the snapshot's */
    ki_columns columns;
    ki_exact exact;
    ki_coded coded;
} ki_view;

struct kith_index {
    ki_remote *remote; /* a server keeps it; then the others are NULL */
    ki_snapshot *own;  /* of a reader; a writer has its store's */
    ki_store *store;   /* NULL: a reader */
    ki_view *view;
    ki_index_place *place; /* NULL: its files lie where it says */
    ki_shown *shown;       /* NULL: paths in filters are those of the index */
};

kith_status ki_view_new(const ki_snapshot *snapshot, ki_view **ret_view, kith_error *err);
void ki_view_free(ki_view *view); /* NULL is fine */

/* The manifest as the handle sees it, with what is pending; to change it, for a handle that writes. */
const ki_manifest *ki_index_manifest(const kith_index *index);
ki_manifest *ki_index_pending(kith_index *index);
/* The manifest of the last commit. */
const ki_manifest *ki_index_committed(const kith_index *index);
/* The folder, or the server and the name of the index there: for errors. */
const char *ki_index_name(const kith_index *index);
/* KITH_EINVAL for a reader, and for a writer whose change has failed. */
kith_status ki_index_writable(const kith_index *index, kith_error *err);

/* From now on filters compare paths as ki_index_shown gives them, and not with the index's folders before them. */
kith_status ki_index_show_paths(kith_index *index, kith_error *err);
/* For the filters of a view; NULL unless ki_index_show_paths was called. */
static inline const ki_roots *ki_index_kept_roots(const kith_index *index) {
    return index->shown ? &index->shown->kept : NULL;
}
/* A pointer into the path of an item; the path itself unless ki_index_show_paths was called. NULL is fine. */
const char *ki_index_shown(const kith_index *index, const char *path);

/* KITH_ENOTFOUND: there is no such item. */
kith_status ki_index_fail_id(const kith_index *index, int64_t id, kith_error *err);

/* The labels of items of the last commit: ret_labels [n], NULL for none; they live as long as the arena and the commit. */
kith_status ki_index_labels(const kith_index *index, const int64_t *ids, int64_t n, ki_arena *arena,
                            const char **ret_labels, kith_error *err);

/* May a path or label be this text? A server may keep UTF-8 alone. NULL is fine. */
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

/* Rows that may be found. */
typedef struct ki_allowed {
    const uint64_t *bits; /* [ki_exact_words] */
    uint64_t *own;        /* the caller's, given back with ki_free; NULL: the bits are the view's */
    int64_t n;            /* how many */
} ki_allowed;

/* Rows that are there and that `where` (NULL: all) holds for. `shown` as in ki_where; may be NULL. */
kith_status ki_view_allowed(ki_view *view, const char *where, const ki_roots *shown, ki_allowed *ret_allowed,
                            kith_error *err);

#endif
