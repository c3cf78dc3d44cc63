/* Choices that several losses offer: what is compared, and how terms become one number. */
#ifndef KI_OBJECTIVE_CHOICES_H
#define KI_OBJECTIVE_CHOICES_H

#include "objective/pair/kinds.h"

typedef enum ki_distance {
    KI_DISTANCE_SQEUCLIDEAN,
    KI_DISTANCE_EUCLIDEAN,
    KI_DISTANCE_COSINE,
} ki_distance;

typedef enum ki_reduction {
    KI_REDUCE_SUM,
    KI_REDUCE_MEAN,
    KI_REDUCE_NONZERO, /* the mean over terms above 0 */
} ki_reduction;

/* The words of a recipe, for KI_OPTION_CHOICE. */
extern const char *const ki_distance_names[];
extern const char *const ki_reduction_names[];

/* What the view must contain: a cosine is an inner product. */
static inline ki_measure ki_distance_measure(int distance) {
    return distance == KI_DISTANCE_COSINE        ? KI_INNER
           : distance == KI_DISTANCE_SQEUCLIDEAN ? KI_SQEUCLIDEAN
                                                 : KI_EUCLIDEAN;
}

#endif
