/* The words of the choices that several losses offer. */
#include "objective/loss/choices.h"

#include <stddef.h>

const char *const ki_distance_names[] = {"sqeuclidean", "euclidean", "cosine", NULL};
const char *const ki_reduction_names[] = {"sum", "mean", "nonzero", NULL};
