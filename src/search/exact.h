/* The exact tier: every row of a snapshot is compared, with the kernels of knn/. */
#ifndef KI_SEARCH_EXACT_H
#define KI_SEARCH_EXACT_H

#include <pthread.h>

#include "kith/knn.h"
#include "knn/gallery.h"
#include "search/store/snapshot.h"

/* Numbers (rows times dim) up to which the rows stay in memory and every search is exact: 100 MB. */
#define KI_EXACT_NUMBERS 25000000

/* Any number of threads may search. */
typedef struct ki_exact {
    const ki_snapshot *snapshot;
    pthread_mutex_t lock;
    bool has_lock;
    kith_gallery *whole; /* made by the first search, when all rows fit */
    float *rows;         /* of `whole`, where distances are looked at again in float64 */
} ki_exact;

kith_status ki_exact_init(ki_exact *exact, const ki_snapshot *snapshot, kith_error *err);
void ki_exact_release(ki_exact *exact); /* fine on a zeroed struct */

static inline bool ki_exact_fits(const ki_snapshot *s) {
    return s->n_rows <= KI_EXACT_NUMBERS / s->manifest.dim;
}
/* What it keeps in memory after the first search, about. */
int64_t ki_exact_memory(const ki_snapshot *snapshot);

/* Words of a bitmap for ki_exact_search: whole blocks of the kernel, the rest 0. */
int64_t ki_exact_words(const ki_snapshot *snapshot);

/* The k nearest rows of the snapshot for each query: ret_neighbors [n, k] as kith_gallery_search fills it, whose lists these
 * are. Squared distances are rounded from float64. ask->allowed counts rows of the snapshot and has ki_exact_words. If the
 * rows do not fit in memory, every call reads them in parts. */
kith_status ki_exact_search(ki_exact *exact, const kith_array *query, int64_t k, const ki_gallery_ask *ask,
                            kith_neighbor *ret_neighbors, kith_error *err);

#endif
