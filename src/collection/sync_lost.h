/* Items whose contents are no longer at their path: the file is gone, or has other contents now. A file with these contents elsewhere is
 * the same photo under another name. */
#ifndef KI_COLLECTION_SYNC_LOST_H
#define KI_COLLECTION_SYNC_LOST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct ki_lost {
    char hash[65];
    int64_t id;
    int64_t file; /* the file that is at its path now; -1: none */
    bool is_found;
} ki_lost;

/* Zero-initialise. */
typedef struct ki_sync_lost {
    ki_lost *item;
    int64_t n;
    size_t capacity;
} ki_sync_lost;

void ki_sync_lost_release(ki_sync_lost *lost);
/* hash NULL: not known, so that it is not found. */
kith_status ki_sync_lost_add(ki_sync_lost *lost, int64_t id, const char *hash, int64_t file, kith_error *err);
/* All are there. */
void ki_sync_lost_order(ki_sync_lost *lost);
/* The first with these contents, by id, that no other file has taken; NULL: there is none. Needs ki_sync_lost_order before. */
ki_lost *ki_sync_lost_find(const ki_sync_lost *lost, const char *hash);

#endif
