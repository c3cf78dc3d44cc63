/* The classes of a batch, found on the device (labels change with every step), their means and spreads: for the
 * regularizers that work on the classes of a batch.
 *
 * Arrays over classes are [m] long; the first *n entries are valid. Sums are made in a fixed order. */
#ifndef KI_OBJECTIVE_CUDA_CLASSES_H
#define KI_OBJECTIVE_CUDA_CLASSES_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#include "objective/cuda/scratch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All device memory of the caller. */
typedef struct ki_cuda_classes {
    int32_t *n;      /* classes present */
    int32_t *label;  /* of each class, ascending */
    int32_t *count;  /* items of each class */
    int32_t *start;  /* where a class's items begin in member */
    int32_t *of;     /* [m] class of each item */
    int32_t *member; /* [m] items by class, in order */
    int32_t *first;  /* [m] scratch */
} ki_cuda_classes;

/* For a batch of m. */
static inline ki_cuda_classes ki_cuda_classes_place(ki_cuda_scratch *room, int64_t m) {
    ki_cuda_classes c;
    c.n = ki_cuda_scratch_ints(room, 1);
    c.label = ki_cuda_scratch_ints(room, m);
    c.count = ki_cuda_scratch_ints(room, m);
    c.start = ki_cuda_scratch_ints(room, m);
    c.of = ki_cuda_scratch_ints(room, m);
    c.member = ki_cuda_scratch_ints(room, m);
    c.first = ki_cuda_scratch_ints(room, m);
    return c;
}

cudaError_t ki_cuda_classes_find(const int32_t *label, int64_t m, const ki_cuda_classes *classes,
                                 cudaStream_t stream);

/* mean [m, dim] of each class, and spread [m]: the mean squared distance of its items to it. */
cudaError_t ki_cuda_classes_measure(const ki_cuda_classes *classes, const float *x, int64_t m, int64_t dim,
                                    float *mean, double *spread, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
