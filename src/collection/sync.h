/* A sync: an index brought in line with the files of a data set.
 *
 * Files are compared with items, what costs nothing is done first, then new and changed files are embedded part by part. */
#ifndef KI_COLLECTION_SYNC_H
#define KI_COLLECTION_SYNC_H

#include "kith/collection.h"

/* What the index is to hold. */
typedef struct ki_sync_task {
    const kith_dataset *set;
    kith_split split;     /* which items of it … */
    const int64_t *items; /* … or these alone, [n_items]; NULL: those of the split */
    int64_t n_items;
    bool only_adds; /* keep items whose file is not in the data set */
    const kith_sync_options *options;
} ki_sync_task;

/* Do it, and commit. After KITH_OK and KITH_ECANCELED, when what was done is committed, the report is filled; after any other failure
 * it has nothing but `reason`. */
kith_status ki_sync_run(kith_index *index, kith_model *model, const ki_sync_task *task,
                        kith_sync_report *ret_report, kith_error *err);

#endif
