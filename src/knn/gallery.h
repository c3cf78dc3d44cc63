/* Searching a gallery among some of its rows: what kith_gallery_search does, and a little more. */
#ifndef KI_GALLERY_H
#define KI_GALLERY_H

#include "kith/knn.h"

typedef struct ki_gallery_ask {
    const int64_t *self; /* as kith_gallery_search */
    /* Rows that may be found: bit i % 64 of word i / 64, as many words as the gallery has rows, rounded up to whole blocks
     * (KI_BLOCK). NULL: all. Only on the host. */
    const uint64_t *allowed;
    int64_t n_allowed;         /* bits that are set; not read when allowed is NULL */
    kith_progress_fn progress; /* may be NULL */
    void *user;
} ki_gallery_ask;

/* The array that a gallery was made of is read again only for exact order and squared Euclidean distances. */
kith_status ki_gallery_search(const kith_gallery *gallery, const kith_array *query, int64_t k,
                              const ki_gallery_ask *ask, kith_neighbor *ret_neighbors, kith_error *err);

#endif
