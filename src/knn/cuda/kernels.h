/* The hand-written kernels of the pair scores, as C calls that queue a kernel and return the error, if any. */
#ifndef KI_KNN_CUDA_KERNELS_H
#define KI_KNN_CUDA_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Inner products of some rows with some columns, and what turns them into scores. All in device memory. */
typedef struct ki_knn_tile {
    const float *s; /* [n_rows, n_cols], ld apart */
    int64_t ld, n_rows, n_cols;
    int64_t row, col;                 /* the first of each, in their matrices */
    const float *row_half, *col_half; /* of the whole matrices: subtracted; NULL: nothing is */
} ki_knn_tile;

/* Panels (knn/panels.h) to rows [n, dim]. */
cudaError_t ki_knn_unpack(cudaStream_t stream, const float *panels, float *rows, int64_t n, int64_t dim);

/* out [n, dim] = (rows - center) / max(norm of the row, least_norm), in float64 and rounded; norm [n] and center [dim]
 * may be NULL. */
cudaError_t ki_knn_scale(cudaStream_t stream, const float *rows, const double *norm, double least_norm,
                         const double *center, float *out, int64_t n, int64_t dim);

/* out [n, dim] = rows - mean, in float64; and doubles rounded to float. */
cudaError_t ki_knn_center(cudaStream_t stream, const float *rows, const double *mean, double *out, int64_t n,
                          int64_t dim);
cudaError_t ki_knn_round(cudaStream_t stream, const double *from, float *out, int64_t n);

/* Recompute the means which[0 … n - 1] of rows [., dim]. Mean c becomes the mean of its members, member[begin[c]] …
 * member[begin[c + 1] - 1], at least one. Also computes what scores need: the mean minus the centre, and half its
 * squared length. */
typedef struct ki_knn_moving {
    const float *rows;
    int64_t dim, n;
    const int32_t *which;
    const int64_t *begin;
    const int32_t *member;
    const double *center; /* [dim] */
    float *mean, *centred, *half;
} ki_knn_moving;
cudaError_t ki_knn_move(cudaStream_t stream, const ki_knn_moving *moving);

/* sum [dim] += the rows [n, dim], one after the other, or, with a mean, += the squares of rows - mean; in float64. */
cudaError_t ki_knn_add_columns(cudaStream_t stream, const float *rows, const double *mean, double *sum,
                               int64_t n, int64_t dim);

/* Scores in place of products. */
cudaError_t ki_knn_finish(cudaStream_t stream, const ki_knn_tile *tile);

/* Keys of the tile's columns into the k best of its rows: lists [rows, k] of the whole matrix, best first, 0
 * where there are no more. 1 <= k <= KI_KNN_MOST_K. */
enum { KI_KNN_MOST_K = 7168 };
cudaError_t ki_knn_keep_best(cudaStream_t stream, const ki_knn_tile *tile, const int32_t *self,
                             bool is_square, int64_t k, uint64_t *lists);

/* ki_device_places in device memory. The bound on a score's rounding is factor + tiny (cosine: is_plain),
 * factor * row_norm * col_norm + tiny (inner product), or factor * (row_norm + col_norm) + tiny (with halves).
 * pairs has room for all of the tile; n_pairs is added to. */
typedef struct ki_knn_places {
    const float *least;
    const int32_t *row_class, *col_class;
    const int64_t *begin;
    const double *score;
    int32_t *n_before;
    const double *row_norm, *col_norm;
    double factor, tiny;
    bool is_plain;
    uint64_t *pairs;
    unsigned long long *n_pairs;
} ki_knn_places;
cudaError_t ki_knn_place(cudaStream_t stream, const ki_knn_tile *tile, const ki_knn_places *places);

#ifdef __cplusplus
}
#endif

#endif
