/* Regularizers over the pairs of a batch: from s [m, m] (reg_pairwise.h) to values and g = dL/ds, a block of
 * threads for each row. Row values are doubles and are added up in a fixed order afterwards.
 * Everything but plain numbers is device memory. g may be s itself. */
#ifndef KI_OBJECTIVE_CUDA_REG_ROWS_H
#define KI_OBJECTIVE_CUDA_REG_ROWS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "objective/cuda/reg_classes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* value = sum of row_value [n]. */
cudaError_t ki_cuda_rows_total(const double *row_value, int64_t n, double *value, cudaStream_t stream);

/* reg/entropy.c, of squared distances. */
cudaError_t ki_cuda_entropy_rows(const float *s, int64_t m, double eta, float *g, double *row_value,
                                 cudaStream_t stream);

/* reg/intra_class.c, of squared distances. */
cudaError_t ki_cuda_intra_class_rows(const float *s, const int32_t *label, int64_t m, float *g,
                                     double *row_value, cudaStream_t stream);

/* reg/global_orthogonal.c, of inner products: row_sum [3, m] holds the sum, the sum of squares and the number
 * of different-class pairs of each row; dim is the embedding's; coefficient is room for two numbers. */
cudaError_t ki_cuda_orthogonal(const float *s, const int32_t *label, int64_t m, int64_t dim, float *g,
                               double *row_sum, float *coefficient, double *value, cudaStream_t stream);

/* reg/row_norm_penalty.c: diff [rows, cols] += weight * gradient. */
cudaError_t ki_cuda_row_norm(const float *w, int64_t rows, int64_t cols, double lam, const float *weight,
                             float *diff, double *row_value, cudaStream_t stream);

/* Energy confusion over random pairs. count [m, m] (cleared before) receives how often each ordered pair was
 * drawn: the draws of the host's stream (seed, KI_RNG_REGULARIZER, *step, 0). A batch of one class has none. */
cudaError_t ki_cuda_energy_draw(const int32_t *label, int64_t m, int64_t pairs, uint64_t seed,
                                const uint64_t *step, int32_t *count, cudaStream_t stream);
/* Shares for ki_cuda_energy_finish, then g from the squared distances and the log's slope. share: the weight
 * of a pair (not read for the log). */
cudaError_t ki_cuda_energy_pairs(const float *s, const int32_t *count, int64_t m, ki_energy_form form,
                                 double share, double *row_value, double *row_items, cudaStream_t stream);
cudaError_t ki_cuda_energy_pairs_back(const float *s, const int32_t *count, int64_t m, ki_energy_form form,
                                      double share, const double *slope, float *g, cudaStream_t stream);

/* reg/kernels.c: the product of the kernels of up to three layers. */
enum { KI_CUDA_MOST_LAYERS = 3 };
typedef enum ki_cuda_kernel_kind {
    KI_CUDA_GAUSSIAN,
    KI_CUDA_LAPLACE,
    KI_CUDA_POLY,
    KI_CUDA_MGF,
} ki_cuda_kernel_kind;
typedef struct ki_cuda_layers {
    int n;
    bool is_mmd;                   /* joint_mmd's coefficients, else joint_similarity's */
    int kind[KI_CUDA_MOST_LAYERS]; /* ki_cuda_kernel_kind */
    int mixed[KI_CUDA_MOST_LAYERS];
    int degree[KI_CUDA_MOST_LAYERS];
    float given[KI_CUDA_MOST_LAYERS]; /* bandwidth; 0: from the batch, never of poly and mgf */
    float *s[KI_CUDA_MOST_LAYERS];    /* [m, m] each; they become g */
    double *row_sum;                  /* [n + 1, m] */
    double *sum;                      /* [n + 1]: of all distances of a layer; pairs of different classes */
    double *row_value;                /* [m] */
} ki_cuda_layers;
cudaError_t ki_cuda_layers_rows(const ki_cuda_layers *layers, const int32_t *label, int64_t m, double *value,
                                cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
