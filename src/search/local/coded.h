/* The tiers with codes: what scan/ needs, from the files of a snapshot. */
#ifndef KI_SEARCH_CODED_H
#define KI_SEARCH_CODED_H

#include <pthread.h>

#include "search/files/snapshot.h"
#include "search/scan/scan.h"

/* The rows of a snapshot for scan/, read from disk; borrows the snapshot. */
ki_row_source ki_snapshot_source(const ki_snapshot *snapshot);

/* Codes in memory, read by the first search. Any number of threads may search. */
typedef struct ki_coded {
    const ki_snapshot *snapshot;
    pthread_mutex_t lock;
    bool has_lock, is_loaded;
    ki_coder *coder;
    uint8_t **bytes;           /* [n]: codes as they are in the file */
    ki_codes *codes;           /* [n] */
    ki_scan_segment *segments; /* [n] */
    int64_t n;
} ki_coded;

kith_status ki_coded_init(ki_coded *coded, const ki_snapshot *snapshot, kith_error *err);
void ki_coded_release(ki_coded *coded); /* fine on a zeroed struct */

/* Does the snapshot have codes? */
static inline bool ki_coded_is_there(const ki_snapshot *s) { return s->manifest.coder.number != 0; }
/* How many values of a row have a code. */
static inline int64_t ki_coded_dim(const ki_manifest *m) { return m->first > 0 ? m->first : m->dim; }
/* Bytes of codes, all rows together. */
int64_t ki_coded_bytes(const ki_snapshot *snapshot);

/* What to search, and with how much effort; reads it if necessary. Lives as long as `coded`. */
kith_status ki_coded_set(ki_coded *coded, ki_scan_set *ret_set, ki_scan_effort *ret_effort, kith_error *err);

#endif
