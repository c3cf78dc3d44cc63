/* Suspects: rows whose label is unlike those of their nearest neighbours. Most are only hard; those whose neighbours agree on
 * another label are where wrong labels are found first. */
#ifndef KITH_SUSPECTS_H
#define KITH_SUSPECTS_H

#include <stddef.h>
#include <stdint.h>

#include "kith/array.h"
#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kith_suspects_options {
    size_t size;               /* of the struct: set by kith_suspects_options_init */
    int64_t k;                 /* neighbours that are asked: 10, at most 100 */
    int64_t most;              /* suspects returned: 100; 0: all */
    const char *device;        /* "cpu" (default), "cuda" or "cuda:1" */
    kith_progress_fn progress; /* may be NULL; in units of matrix tiles */
    void *user;
} kith_suspects_options;

/* The numbers above. */
KITH_API void kith_suspects_options_init(kith_suspects_options *options, size_t size);

/* A row, what its neighbours say, and how many of them: parts from 0 to 1. */
typedef struct kith_suspect {
    int64_t row, label;
    int64_t other;    /* the label that most neighbours have; of several the one with the nearest neighbour */
    double agreement; /* neighbours with the row's own label … */
    double other_agreement; /* … and with the other */
} kith_suspect;

/* Owned: kith_suspects_release. */
typedef struct kith_suspects {
    kith_suspect *suspects; /* [n] */
    int64_t n;
    int64_t n_found;  /* suspects in all, of which n are returned */
    int64_t n_judged; /* rows with a label that another row has */
} kith_suspects;

/* Find rows [n, dim] for which another label has more of the nearest neighbours (by cosine) than their own label
 * labels[i] (below 0: none; such rows are left out). The worst come first: those for which the other label's part is larger by most,
 * ties by the nearer neighbour of the other label, then by the lower row. Each row asks its k nearest neighbours, or fewer: as
 * many as there are other rows of its label. A label of one row is not judged. */
KITH_API kith_status kith_suspects_find(const kith_array *rows, const int64_t *labels,
                                        const kith_suspects_options *options, kith_suspects *ret_suspects,
                                        kith_error *err);
KITH_API void kith_suspects_release(kith_suspects *suspects); /* NULL, and a zeroed one, are fine */

#ifdef __cplusplus
}
#endif
#endif
