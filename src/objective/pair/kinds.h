/* The words of the pair view, for the host and for kernels: kinds of pairs, measures, triplet rules. */
#ifndef KI_OBJECTIVE_KINDS_H
#define KI_OBJECTIVE_KINDS_H

/* What an ordered pair is to the loss: not counted, a kept positive, a kept negative. */
enum { KI_PAIR_NONE = 0, KI_PAIR_POSITIVE = 1, KI_PAIR_NEGATIVE = 2 };

/* What s holds. */
typedef enum ki_measure { KI_INNER, KI_SQEUCLIDEAN, KI_EUCLIDEAN } ki_measure;

/* Which triplets the kept pairs of a row make. */
typedef enum ki_triplet_rule {
    KI_TRIPLETS_ALL,    /* every kept positive with every kept negative of the row */
    KI_TRIPLETS_WINDOW, /* those with low < D(a,n) - D(a,p) < high, D squared Euclidean */
    KI_TRIPLETS_PICKED, /* one negative for each kept positive, or none: `pick` of the view names it */
} ki_triplet_rule;

#endif
