/* Keeping an index up to date with the images it was made from: what is new or changed is embedded, what is gone is removed,
 * and nothing else is touched.
 *
 *     kith_index_sync(index, embedder, dataset, NULL, &report, &err);
 *
 * A file is known by its path, its size and its date. When one of these differs, its contents decide (SHA-256): a file that
 * was moved or only touched is not embedded again. */
#ifndef KITH_SYNC_H
#define KITH_SYNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/data.h"
#include "kith/embedder.h"
#include "kith/index.h"
#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kith_sync_options {
    size_t size;          /* of the struct: set by kith_sync_options_init */
    kith_split split;     /* which items of the data set … */
    const int64_t *items; /* … or these alone, [n_items]; NULL: those of the split */
    int64_t n_items;
    bool only_adds;      /* keep items whose file is not in the data set */
    double most_removed; /* KITH_EINVAL when a larger part of the items would go; nothing is changed then */
    kith_progress_fn progress; /* may be NULL; in images embedded. Stopped, what was done is committed */
    void *user;
    bool
        with_excluded; /* also files that were removed by hand (kith_index_exclude): they count as added again */
} kith_sync_options;

/* Every item, and any part of the index may go (most_removed 1). */
KITH_API void kith_sync_options_init(kith_sync_options *options, size_t size);

#define KITH_SYNC_NAMED 100

/* What was found and done, in items. */
typedef struct kith_sync_report {
    int64_t n_files;   /* looked at */
    int64_t n_same;    /* as before */
    int64_t n_touched; /* another date or size, the same contents */
    int64_t
        n_moved; /* the contents of an item that are not at its path any more: it has this path now, and keeps its id */
    int64_t n_changed;    /* embedded again */
    int64_t n_added;      /* embedded */
    int64_t n_removed;    /* gone, and not found elsewhere */
    int64_t n_bad;        /* could not be read, and are not in the index */
    int64_t n_named;      /* entries of bad */
    char **bad;           /* the first KITH_SYNC_NAMED, as "PATH: why" */
    int64_t n_excluded;   /* were removed by hand, and stay out */
    int64_t n_relabelled; /* as before, with another label of the data set */
} kith_sync_report;

/* Make the index (opened for writing) hold what the data set holds, and commit. An item inside a file of many (idx) is known by
 * its name alone. The report is also filled when the work was stopped (KITH_ECANCELED): then the rest is left for the next
 * time. options may be NULL. */
KITH_API kith_status kith_index_sync(kith_index *index, kith_embedder *embedder, const kith_dataset *dataset,
                                     const kith_sync_options *options, kith_sync_report *ret_report,
                                     kith_error *err);
KITH_API void kith_sync_report_release(kith_sync_report *report); /* fine on a zeroed struct */

#ifdef __cplusplus
}
#endif
#endif
