/* The classes of a batch, found on the device (labels change with every step), their means and spreads, and
 * the regularizers that see a batch as classes: density and energy confusion.
 *
 * Arrays over classes are [m] long; the first *n entries are there. Sums are made in a fixed order. */
#ifndef KI_OBJECTIVE_CUDA_REG_CLASSES_H
#define KI_OBJECTIVE_CUDA_REG_CLASSES_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

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

cudaError_t ki_cuda_classes_find(const int32_t *label, int64_t m, const ki_cuda_classes *classes,
                                 cudaStream_t stream);

/* mean [m, dim] of each class, and spread [m]: the mean squared distance of its items to it. */
cudaError_t ki_cuda_classes_measure(const ki_cuda_classes *classes, const float *x, int64_t m, int64_t dim,
                                    float *mean, double *spread, cudaStream_t stream);

/* Density (reg/density.c): row_value [m] is each class's share of the value (0 past the last class), factor
 * [m] what x_i - mean is multiplied with. diff_alpha (NULL: not learned) is added to. */
typedef struct ki_cuda_density {
    double eta;
    bool correlation, relative;
    const float *alpha, *d0; /* by label */
    float *diff_alpha;
    const float *weight;
} ki_cuda_density;
cudaError_t ki_cuda_density_rows(const ki_cuda_classes *classes, int64_t m, const double *spread,
                                 const ki_cuda_density *density, double *row_value, double *factor,
                                 cudaStream_t stream);
/* diff += weight * factor of the class * (x - mean). */
cudaError_t ki_cuda_density_back(const ki_cuda_classes *classes, const float *x, int64_t m, int64_t dim,
                                 const float *mean, const double *factor, const float *weight, float *diff,
                                 cudaStream_t stream);

/* Energy confusion over classes (reg/energy_confusion.c), E_ab = spread_a + spread_b + |mean_a - mean_b|^2.
 * square [m, m] holds the squared distances of the means, and e after it: how the value changes with E_ab,
 * but for the slope of the log. own [m]: sums of e; row_value, row_items [m]: shares of the value and, for
 * the log, of the pairs it is a mean of. */
typedef enum ki_energy_form { KI_ENERGY_LINEAR, KI_ENERGY_LOG1P, KI_ENERGY_LOG } ki_energy_form;
cudaError_t ki_cuda_energy_rows(const ki_cuda_classes *classes, int64_t m, const double *spread,
                                ki_energy_form form, bool is_mean, float *square, double *own,
                                double *row_value, double *row_items, cudaStream_t stream);
/* The value and the log's slope from the rows. */
cudaError_t ki_cuda_energy_finish(int64_t m, ki_energy_form form, const double *row_value,
                                  const double *row_items, double *value, double *slope, cudaStream_t stream);
/* diff += weight * dL/dx; pull [m, dim] = 4 sum_b e_ab (mean_a - mean_b), of ki_cuda_pairwise_back. */
cudaError_t ki_cuda_energy_back(const ki_cuda_classes *classes, const float *x, int64_t m, int64_t dim,
                                const float *mean, const double *own, const float *pull, const double *slope,
                                const float *weight, float *diff, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
