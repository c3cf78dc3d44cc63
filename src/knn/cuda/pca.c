/* Rows are handled in blocks: a block is centred in float64, then multiplied. Rows that are on the device already are
 * read where they are. */
#include "backend/cuda/gemm/gemm.h"
#include "knn/cuda/inside.h"
#include "knn/cuda/kernels.h"

enum { BLOCK = 2048 };

typedef struct blocks {
    ki_backend *backend;
    const ki_rows *rows;
    double *mean;
    float *copy;    /* [BLOCK, dim] where the host has the rows */
    double *center; /* [BLOCK, dim] */
} blocks;

/* mean NULL: not known yet. */
static kith_status blocks_init(blocks *b, ki_backend *backend, const ki_rows *rows, const double *mean,
                               kith_error *err) {
    *b = (blocks){.backend = backend, .rows = rows};
    if (mean)
        KI_TRY(ki_knn_cuda_copy_in(backend, mean, rows->dim, sizeof *b->mean, &b->mean, err));
    else
        KI_TRY(ki_knn_cuda_take(backend, 1, rows->dim, sizeof *b->mean, &b->mean, err));
    if (!rows->there) KI_TRY(ki_knn_cuda_take(backend, BLOCK, rows->dim, sizeof *b->copy, &b->copy, err));
    return ki_knn_cuda_take(backend, BLOCK, rows->dim, sizeof *b->center, &b->center, err);
}

static void blocks_release(blocks *b) {
    if (!b->backend) return;
    (void)b->backend->type->memory.sync(b->backend, NULL); /* what is queued may still read */
    ki_cuda_free(b->backend, b->mean);
    ki_cuda_free(b->backend, b->copy);
    ki_cuda_free(b->backend, b->center);
}

/* Rows first … first + n - 1 as they are, in device memory. */
static kith_status blocks_bring(blocks *b, int64_t first, int64_t n, const float **ret_rows,
                                kith_error *err) {
    const int64_t dim = b->rows->dim;
    *ret_rows = b->rows->there ? b->rows->there + first * dim : b->copy;
    if (!b->copy) return KITH_OK;
    return b->backend->type->memory.upload(b->backend, b->copy, (const float *)b->rows->data + first * dim,
                                           (size_t)(n * dim) * sizeof *b->copy, err);
}

/* The same rows centred, in b->center. */
static kith_status blocks_load(blocks *b, int64_t first, int64_t n, kith_error *err) {
    const int64_t dim = b->rows->dim;
    const float *from = NULL;
    KI_TRY(blocks_bring(b, first, n, &from, err));
    const cudaError_t error = ki_knn_center(ki_cuda_of(b->backend)->stream, from, b->mean, b->center, n, dim);
    return error == cudaSuccess ? KITH_OK : ki_cuda_fail(err, error, "ki_knn_center");
}

static int64_t block_rows(const ki_rows *rows, int64_t first) {
    return rows->n - first < BLOCK ? rows->n - first : BLOCK;
}

/* sum [dim] = the columns' sums, or, with a mean, those of the squares about it. */
static kith_status add_up(blocks *b, const double *mean, double *sum, double *ret, kith_error *err) {
    ki_backend *backend = b->backend;
    const int64_t dim = b->rows->dim;
    const float *from = NULL;
    KI_TRY(backend->type->memory.zero(backend, sum, (size_t)dim * sizeof *sum, err));
    for (int64_t i = 0; i < b->rows->n; i += BLOCK) {
        const int64_t n = block_rows(b->rows, i);
        KI_TRY(blocks_bring(b, i, n, &from, err));
        KI_CUDA(ki_knn_add_columns(ki_cuda_of(backend)->stream, from, mean, sum, n, dim));
    }
    KI_TRY(backend->type->memory.download(backend, sum, ret, (size_t)dim * sizeof *ret, err));
    return backend->type->memory.sync(backend, err);
}

kith_status ki_knn_cuda_mean(ki_backend *backend, const ki_rows *rows, double *ret_mean, double *ret_squares,
                             kith_error *err) {
    kith_status status;
    const int64_t dim = rows->dim;
    blocks b = {0};
    double *sum = NULL;
    KI_CHECK(blocks_init(&b, backend, rows, NULL, err));
    KI_CHECK(ki_knn_cuda_take(backend, 1, dim, sizeof *sum, &sum, err));
    KI_CHECK(add_up(&b, NULL, sum, ret_mean, err));
    for (int64_t k = 0; k < dim; k++) ret_mean[k] /= (double)rows->n;
    KI_CHECK(backend->type->memory.upload(backend, b.mean, ret_mean, (size_t)dim * sizeof *ret_mean, err));
    KI_CHECK(add_up(&b, b.mean, sum, ret_squares, err));
done:
    blocks_release(&b);
    ki_cuda_free(backend, sum);
    return status;
}

kith_status ki_knn_cuda_scatter(ki_backend *backend, const ki_rows *rows, const double *mean, double *ret,
                                kith_error *err) {
    kith_status status;
    const int64_t dim = rows->dim;
    blocks b = {0};
    double *sum = NULL;
    KI_CHECK(blocks_init(&b, backend, rows, mean, err));
    KI_CHECK(ki_knn_cuda_take(backend, dim, dim, sizeof *sum, &sum, err));
    for (int64_t i = 0; i < rows->n; i += BLOCK) {
        const int64_t n = block_rows(rows, i);
        KI_CHECK(blocks_load(&b, i, n, err));
        KI_CHECK(ki_cuda_gemm(backend, true, false, dim, dim, n, 1, b.center, KI_NUMBER_DOUBLE, dim, b.center,
                              dim, i > 0 ? 1 : 0, sum, KI_NUMBER_DOUBLE, dim, err));
    }
    KI_CHECK(backend->type->memory.download(backend, sum, ret, (size_t)(dim * dim) * sizeof *ret, err));
    KI_CHECK(backend->type->memory.sync(backend, err));
done:
    blocks_release(&b);
    ki_cuda_free(backend, sum);
    return status;
}

kith_status ki_knn_cuda_spread(ki_backend *backend, const ki_rows *rows, const double *mean, const double *q,
                               int64_t n_q, double *ret_back, double *ret_inner, kith_error *err) {
    kith_status status;
    const int64_t dim = rows->dim, n_out = ret_back ? dim : n_q;
    blocks b = {0};
    double *by = NULL, *z = NULL, *sum = NULL;
    KI_CHECK(blocks_init(&b, backend, rows, mean, err));
    KI_CHECK(ki_knn_cuda_copy_in(backend, q, dim * n_q, sizeof *by, &by, err));
    KI_CHECK(ki_knn_cuda_take(backend, BLOCK, n_q, sizeof *z, &z, err));
    KI_CHECK(ki_knn_cuda_take(backend, n_out, n_q, sizeof *sum, &sum, err));
    for (int64_t i = 0; i < rows->n; i += BLOCK) {
        const int64_t n = block_rows(rows, i);
        KI_CHECK(blocks_load(&b, i, n, err));
        KI_CHECK(ki_cuda_gemm(backend, false, false, n, n_q, dim, 1, b.center, KI_NUMBER_DOUBLE, dim, by, n_q,
                              0, z, KI_NUMBER_DOUBLE, n_q, err));
        KI_CHECK(ki_cuda_gemm(backend, true, false, n_out, n_q, n, 1, ret_back ? b.center : z,
                              KI_NUMBER_DOUBLE, n_out, z, n_q, i > 0 ? 1 : 0, sum, KI_NUMBER_DOUBLE, n_q,
                              err));
    }
    KI_CHECK(backend->type->memory.download(backend, sum, ret_back ? ret_back : ret_inner,
                                            (size_t)(n_out * n_q) * sizeof *sum, err));
    KI_CHECK(backend->type->memory.sync(backend, err));
done:
    blocks_release(&b);
    ki_cuda_free(backend, by);
    ki_cuda_free(backend, z);
    ki_cuda_free(backend, sum);
    return status;
}

kith_status ki_knn_cuda_project(ki_backend *backend, const ki_rows *rows, const double *mean,
                                const double *by, int64_t n_by, float *ret, kith_error *err) {
    kith_status status;
    const int64_t dim = rows->dim;
    cudaStream_t stream = ki_cuda_of(backend)->stream;
    blocks b = {0};
    double *onto = NULL, *product = NULL;
    float *rounded = NULL;
    KI_CHECK(blocks_init(&b, backend, rows, mean, err));
    KI_CHECK(ki_knn_cuda_take(backend, n_by, dim, sizeof *onto, &onto, err));
    KI_CHECK(ki_knn_cuda_take(backend, BLOCK, n_by, sizeof *product, &product, err));
    KI_CHECK(ki_knn_cuda_take(backend, BLOCK, n_by, sizeof *rounded, &rounded, err));
    KI_CHECK(backend->type->memory.upload(backend, onto, by, (size_t)(n_by * dim) * sizeof *by, err));
    for (int64_t i = 0; i < rows->n; i += BLOCK) {
        const int64_t n = block_rows(rows, i);
        KI_CHECK(blocks_load(&b, i, n, err));
        KI_CHECK(ki_cuda_gemm(backend, false, true, n, n_by, dim, 1, b.center, KI_NUMBER_DOUBLE, dim, onto,
                              dim, 0, product, KI_NUMBER_DOUBLE, n_by, err));
        const cudaError_t error = ki_knn_round(stream, product, rounded, n * n_by);
        if (error != cudaSuccess) KI_CHECK(ki_cuda_fail(err, error, "ki_knn_round"));
        KI_CHECK(backend->type->memory.download(backend, rounded, ret + i * n_by,
                                                (size_t)(n * n_by) * sizeof *ret, err));
    }
    KI_CHECK(backend->type->memory.sync(backend, err));
done:
    blocks_release(&b);
    ki_cuda_free(backend, onto);
    ki_cuda_free(backend, product);
    ki_cuda_free(backend, rounded);
    return status;
}
