/* The scores of all pairs of rows, as counts: how many pairs of one class ("same") and of two ("different") reach a score.
 *
 * Few pairs (most_held) are scored in float64 and sorted. More are counted in a fine histogram of their float32 scores, and
 * only where a rate is asked for are the pairs near the threshold scored again in float64. So memory stays linear in the
 * number of rows, and the crossings below are exact for any number of pairs. */
#ifndef KI_PAIR_COUNTS_H
#define KI_PAIR_COUNTS_H

#include "knn/tiles.h"

typedef struct ki_pair_input {
    const ki_panels *query, *gallery; /* the same pointer: every two rows once; else every query with every
                                         row of the gallery */
    const int32_t *query_class, *gallery_class; /* from 0 to n_classes - 1 */
    int32_t n_classes;
    const int32_t
        *self; /* [n_query]: the query's row in the gallery, or -1; NULL and for the same pointer: none */
    int64_t most_held;         /* scores in memory at a time; 0: the default */
    kith_progress_fn progress; /* per pass over the pairs */
    void *user;
} ki_pair_input;

/* Pairs of one score, or with scores from this one up to the step before. */
typedef struct ki_pair_step {
    double score; /* larger is nearer (knn/panels.h) */
    int64_t n_same, n_different;
} ki_pair_step;

/* In place of a false accept rate: where false accepts and false rejects are equally frequent. */
#define KI_EQUAL_ERROR (-1.0)

/* Going down from the best score: the first score with which more than the part `far` of the different pairs would be
 * accepted; or, for KI_EQUAL_ERROR, with which n_different / all + n_same / all is at least 1. In float64, exactly. */
typedef struct ki_crossing {
    double far;                        /* asked for */
    double score;                      /* the first one that is too low */
    double above;                      /* the lowest score above it; INFINITY: there is none */
    int64_t n_same[2], n_different[2]; /* pairs above `score`, and pairs at it or above */
} ki_crossing;

typedef struct ki_pair_counts {
    int64_t n_same, n_different;
    int64_t n_steps;
    ki_pair_step *step; /* falling scores; steps without pairs are left out */
    bool is_exact;      /* a step for every score; else for every bin of the histogram that has pairs */
} ki_pair_counts;

/* The crossings are given with `far` and filled. KITH_EINVAL when there is no pair of one kind. */
kith_status ki_pair_counts_run(const ki_pair_input *input, ki_crossing *crossings, int n_crossings,
                               ki_pair_counts *ret_pairs, kith_error *err);
void ki_pair_counts_release(ki_pair_counts *pairs); /* fine on a zeroed struct */

/* The first crossing on a list of steps, of pairs of which base[0] same and base[1] different ones lie above all of it. */
void ki_pair_counts_cross(const ki_pair_counts *all, const ki_pair_step *step, int64_t n_steps,
                          const int64_t base[2], ki_crossing *crossing);

enum { KI_PAIR_GROUPS = 64 };

/* Of every row its pairs by score: counts [rows, 2, KI_PAIR_GROUPS], same first, group g between edge g and edge g - 1;
 * edge[KI_PAIR_GROUPS - 1] falls. By float32 scores, and edges as fine as the histogram. ret_gallery is NULL when the queries
 * are the gallery, each pair then counts for both of its rows. Both are zeroed by the caller. */
kith_status ki_pair_counts_by_row(const ki_pair_input *input, const double *edge, uint32_t *ret_query,
                                  uint32_t *ret_gallery, kith_error *err);

#endif
