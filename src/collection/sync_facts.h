/* Values of photos: facts from their files (EXIF), and from a table (sync_meta.h).
 *
 * New items are added with theirs. Items that stay get other values where something has changed: the table, their path, what the options
 * say. All of it is part of the commits that the sync makes anyway, so that a stop leaves nothing half-joined. */
#ifndef KI_COLLECTION_SYNC_FACTS_H
#define KI_COLLECTION_SYNC_FACTS_H

#include "collection/sync_parts.h"

/* Find out what is to be read; the files are there (ki_sync_files), and nothing is changed but notes and columns. */
kith_status ki_sync_facts_open(ki_sync *sync, kith_error *err);
/* Items that stay or have moved. */
kith_status ki_sync_facts_update(ki_sync *sync, kith_error *err);
/* The values of n new items, files by number: ret_values [n, *ret_n_columns], given back with ki_free; NULL: none has any. Texts are the arena's
 * and the table's. */
kith_status ki_sync_facts_new(ki_sync *sync, const int64_t *files, int64_t n, ki_arena *arena,
                              kith_value **ret_values, int64_t *ret_n_columns, kith_error *err);

#endif
