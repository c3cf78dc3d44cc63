/* The photos that are served without an index of the user's: a thread that keeps their index in line with the folder.
 *
 * It syncs at the start and then again and again, as kith_photos_sync does, and commits early and often: the catalogs (catalog.h) find each
 * commit as they would one of another process. Its priority is lower than that of those who answer. */
#ifndef KI_SERVE_INDEXER_H
#define KI_SERVE_INDEXER_H

#include "kith/photos.h"

typedef enum ki_indexing_state {
    KI_INDEXING_LOOKS,     /* comparing files with the index */
    KI_INDEXING_EMBEDS,    /* something is new or changed */
    KI_INDEXING_RESTS,     /* all is in, until the next look */
    KI_INDEXING_ELSEWHERE, /* another process does it */
    KI_INDEXING_FAILS,     /* `problem` says why; it is tried again */
} ki_indexing_state;

/* "looking", "indexing", "ready", "elsewhere", "failing". */
const char *ki_indexing_state_name(ki_indexing_state state);

/* How far it is. */
typedef struct ki_indexing {
    ki_indexing_state state;
    int64_t n_photos,
        n_done;          /* files that were found, and those of them that are dealt with; -1: not known yet */
    int64_t n_bad;       /* of the last look that came to its end: could not be read */
    double rate;         /* photos a second, of those embedded since this look began; NaN: not known */
    double seconds_left; /* NaN: not known */
    const char *problem; /* NULL: none. Names no folder: the log says more */
} ki_indexing;

typedef struct ki_indexer ki_indexer;

/* Begin. `rescan` seconds lie between two looks, or more where a look takes long; 0: only one. The photos are the indexer's to use until it
 * is freed. */
kith_status ki_indexer_new(kith_photos *photos, double rescan, ki_indexer **ret, kith_error *err);
/* It stops at the next batch, and commits what it has. */
void ki_indexer_end(ki_indexer *indexer); /* NULL is fine */
void ki_indexer_free(ki_indexer *indexer);

ki_indexing ki_indexer_get(ki_indexer *indexer);

#endif
