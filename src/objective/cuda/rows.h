/* Kernels over the rows of a matrix [m, dim], plain float. */
#ifndef KI_OBJECTIVE_CUDA_ROWS_H
#define KI_OBJECTIVE_CUDA_ROWS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* y = x / max(|x|, 1e-12) for every row (y NULL: not wanted), norm [m] = |x|, sq [m] = |y|^2 or, without y,
 * |x|^2. norm, sq and fault may be NULL; *fault becomes 1 when some |x| is not finite. */
cudaError_t ki_cuda_rows_normalize(const float *x, int64_t m, int64_t dim, float *y, float *norm, float *sq,
                                   int32_t *fault, cudaStream_t stream);
/* The same into rows of a wider matrix, `pitch` apart; and rows as they are. */
cudaError_t ki_cuda_rows_normalize_into(const float *x, int64_t m, int64_t dim, float *y, int64_t pitch,
                                        cudaStream_t stream);
cudaError_t ki_cuda_rows_place(const float *x, int64_t m, int64_t dim, float *y, int64_t pitch,
                               cudaStream_t stream);
/* The first `width` numbers of every row x [m, dim], side by side; and y [m, pitch] += x [m, width] in the first columns. */
cudaError_t ki_cuda_rows_cut(const float *x, int64_t m, int64_t dim, int64_t width, float *y,
                             cudaStream_t stream);
cudaError_t ki_cuda_rows_add_cut(const float *x, int64_t m, int64_t width, float *y, int64_t pitch,
                                 cudaStream_t stream);
/* diff_x (= or, with add, +=) dL/dx from dL/dy + diff_more (NULL: nothing more). */
cudaError_t ki_cuda_rows_normalize_backward(const float *y, const float *norm, const float *diff_y,
                                            const float *diff_more, int64_t m, int64_t dim, bool add,
                                            float *diff_x, cudaStream_t stream);
/* value = sum of row_value [n]. */
cudaError_t ki_cuda_rows_total(const double *row_value, int64_t n, double *value, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
