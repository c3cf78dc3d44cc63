/* A table of values by path (kith_sync_options.meta): which row belongs to which file, and whether it has changed since it was last read.
 *
 * A path of the table is whole, or relative to the table's folder or to a source. */
#ifndef KI_COLLECTION_SYNC_META_H
#define KI_COLLECTION_SYNC_META_H

#include "collection/sync_parts.h"
#include "kith/items.h"

/* Zero-initialise. */
struct ki_sync_meta {
    ki_arena arena;
    kith_items *items;    /* NULL: there is no table */
    int64_t *row;         /* [files]: the row of each, or -1 */
    bool is_changed;      /* its contents, or which table it is: all items are looked at */
    const char **dropped; /* [n_dropped]: columns that it had when it was last read, and has not now */
    int64_t n_dropped;
};

/* Read it, find the rows of the sync's files, and set the notes and the index's columns. KITH_EIO: it is not there any more.
 * KITH_EINVAL: two rows are of one file; it has no column `path`, or a column that the index cannot have. */
kith_status ki_sync_meta_open(ki_sync *sync, kith_error *err);
void ki_sync_meta_release(ki_sync_meta *meta);

/* Is this one of its columns? */
bool ki_sync_meta_has(const ki_sync_meta *meta, const char *column);
/* The value of a file in its column c as one of a column of that type; none without a row. */
kith_value ki_sync_meta_value(const ki_sync_meta *meta, int64_t file, int64_t c, kith_value_type type);

#endif
