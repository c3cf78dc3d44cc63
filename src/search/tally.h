/* Work in rows, and whoever waits for it. */
#ifndef KI_SEARCH_TALLY_H
#define KI_SEARCH_TALLY_H

#include "base/error.h"

/* progress NULL: nobody waits. */
typedef struct ki_tally {
    kith_progress_fn progress;
    void *user;
    int64_t n_done, n_all;
} ki_tally;

/* n more rows are done. KITH_ECANCELED when progress asks for it. tally may be NULL. */
static inline kith_status ki_tally_add(ki_tally *tally, int64_t n, kith_error *err) {
    if (!tally) return KITH_OK;
    tally->n_done += n;
    if (!tally->progress || tally->progress(tally->user, tally->n_done, tally->n_all) == 0) return KITH_OK;
    return ki_fail(err, KITH_ECANCELED, "stopped after %lld of %lld rows", (long long)tally->n_done,
                   (long long)tally->n_all);
}

#endif
