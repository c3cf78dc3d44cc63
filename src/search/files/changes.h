/* What has changed in segments since they were written: rows that were removed, and files that were touched. One small file,
 * written anew by every commit that needs one. */
#ifndef KI_SEARCH_CHANGES_H
#define KI_SEARCH_CHANGES_H

#include "search/files/blocks.h"

/* A file with another date or size and the same contents. */
typedef struct ki_stamp {
    int64_t row, bytes, mtime_ns;
} ki_stamp;

/* Zero-initialise. Both lists ascend by row. */
typedef struct ki_changes {
    int64_t *removed;
    int64_t n_removed;
    ki_stamp *stamps;
    int64_t n_stamps;
} ki_changes;

void ki_changes_release(ki_changes *changes);
kith_status ki_changes_write(const ki_changes *changes, const char *path, ki_blocks_seal *ret_seal,
                             kith_error *err);
/* KITH_EFORMAT for rows that are not below n_rows. */
kith_status ki_changes_read(const char *path, ki_blocks_seal seal, int64_t n_rows, ki_changes *ret_changes,
                            kith_error *err);

#endif
