/* The exact tier: every row of a snapshot is compared, with the kernels of knn/. */
#ifndef KI_SEARCH_EXACT_H
#define KI_SEARCH_EXACT_H

#include <pthread.h>

#include "kith/knn.h"
#include "knn/gallery.h"
#include "search/exact_list.h"
#include "search/files/snapshot.h"

/* Rows of a snapshot as a gallery: those from `first` on, or, on a device, which cannot leave any out, the chosen ones. */
typedef struct ki_exact_part {
    kith_gallery *gallery; /* NULL: no rows */
    float *rows;           /* of the gallery, where distances are looked at again in float64; else NULL */
    int64_t first, n;
    int64_t *row; /* [n]: the number of each in the snapshot, rising; NULL: first, first + 1, … */
} ki_exact_part;

enum { KI_EXACT_MOST_DEVICE = 32 }; /* bytes of a device's name */

/* Any number of threads may search. */
typedef struct ki_exact {
    const ki_snapshot *snapshot;
    pthread_mutex_t lock;
    bool has_lock;
    ki_exact_part whole; /* on the host; made by the first search, when all rows fit */
    ki_exact_part there; /* the rows that are alive, on `device` */
    char device[KI_EXACT_MOST_DEVICE];
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
 * rows do not fit in memory, every call reads them in parts.
 *
 * `device` (NULL: the host) computes the scores. The rows stay there when all that are alive may be found; for a filter, every
 * call copies those that it lets through. */
kith_status ki_exact_search(ki_exact *exact, const kith_array *query, int64_t k, const ki_gallery_ask *ask,
                            const char *device, kith_neighbor *ret_neighbors, kith_error *err);

#endif
