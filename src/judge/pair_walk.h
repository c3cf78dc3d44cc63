/* Passes over all pairs, for pair_counts.c: every pass goes over the tiles of knn/, and does one thing with every score. */
#ifndef KI_PAIR_WALK_H
#define KI_PAIR_WALK_H

#include <stdatomic.h>

#include "judge/pair_counts.h"

enum { KI_PAIR_BINS = 1 << 20 };

typedef struct ki_pair_walk ki_pair_walk;
/* n scores of `row` with the columns from `col` on. */
typedef void (*ki_pair_visit_fn)(ki_pair_walk *w, const ki_stripe *stripe, int64_t row, int64_t col,
                                 const float *s, int n);

struct ki_pair_walk {
    const ki_pair_input *in;
    bool is_square;
    float low, scale; /* a score's bin is (score - low) * scale */
    double width;     /* of a bin */
    double bound;     /* between a float64 score and the bin of its float32 score, at most */
    int reach;        /* two bounds, in bins */
    ki_pair_visit_fn visit;

    uint64_t
        *count; /* [slots, 2, KI_PAIR_BINS], same pairs first; after a pass the sum is in the first slot */
    uint8_t *wanted;                /* [KI_PAIR_BINS]: bins to look at; NULL: all */
    uint64_t first_key, n_keys;     /* keys to look at begin here; n_keys 0: all */
    int shift;                      /* from keys to bins */
    uint64_t *held[2];              /* same and different pairs, by key */
    atomic_int_least64_t n_held[2]; /* how many */
    double *least, above;           /* least [slots] */

    uint8_t *group; /* [KI_PAIR_BINS] */
    uint32_t *query_counts, *gallery_counts;
};

/* The scale of the bins, from the largest scores that rows can have. */
void ki_pair_walk_init(const ki_pair_input *input, ki_pair_walk *ret_walk);
void ki_pair_walk_release(ki_pair_walk *walk);

/* The least score of a bin. */
static inline double ki_pair_edge(const ki_pair_walk *w, int64_t bin) {
    return (double)w->low + (double)bin * w->width;
}

/* All pairs by the bin of their float32 score, into count. */
kith_status ki_pair_walk_count(ki_pair_walk *walk, kith_error *err);
/* Pairs in the bins and keys to look at, by (key - first_key) >> shift, into count. */
kith_status ki_pair_walk_count_keys(ki_pair_walk *walk, kith_error *err);
/* The same pairs, n_same and n_different of them, into held, in any order. */
kith_status ki_pair_walk_hold(ki_pair_walk *walk, int64_t n_same, int64_t n_different, kith_error *err);
/* The least of their scores that lies above `score`; INFINITY: none. */
kith_status ki_pair_walk_least(ki_pair_walk *walk, double score, double *ret_least, kith_error *err);
/* Pairs by row and group (ki_pair_counts_by_row). */
kith_status ki_pair_walk_groups(ki_pair_walk *walk, kith_error *err);

#endif
