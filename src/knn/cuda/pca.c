/* Rows go through in blocks: centred in float64, then into a product. Rows that the device has already are read where
 * they are. */
#include "knn/cuda/pca.h"

#include "backend/cuda/cuda.h"
#include "backend/cuda/gemm/gemm.h"
#include "knn/cuda/kernels.h"

enum { BLOCK = 2048 };

typedef struct blocks {
    ki_backend *backend;
    const ki_rows *rows;
    double *mean;
    float *copy;    /* [BLOCK, dim] where the host has the rows */
    double *center; /* [BLOCK, dim] */
} blocks;

static kith_status take(ki_backend *backend, int64_t n, int64_t width, size_t size, void *ret_ptr,
                        kith_error *err) {
    void *ptr = NULL;
    size_t count, bytes;
    if (!ki_mul_size((size_t)n, (size_t)width, &count) || !ki_mul_size(count, size, &bytes))
        return ki_fail_memory(err, SIZE_MAX, "a matrix on the device");
    KI_TRY(ki_cuda_alloc(backend, bytes ? bytes : 1, &ptr, err));
    *(void **)ret_ptr = ptr;
    return KITH_OK;
}

static kith_status blocks_init(blocks *b, ki_backend *backend, const ki_rows *rows, const double *mean,
                               kith_error *err) {
    *b = (blocks){.backend = backend, .rows = rows};
    KI_TRY(take(backend, 1, rows->dim, sizeof *b->mean, &b->mean, err));
    KI_TRY(backend->type->upload(backend, b->mean, mean, (size_t)rows->dim * sizeof *mean, err));
    if (!rows->there) KI_TRY(take(backend, BLOCK, rows->dim, sizeof *b->copy, &b->copy, err));
    return take(backend, BLOCK, rows->dim, sizeof *b->center, &b->center, err);
}

static void blocks_release(blocks *b) {
    if (!b->backend) return;
    (void)b->backend->type->sync(b->backend, NULL); /* what is queued may still read */
    ki_cuda_free(b->backend, b->mean);
    ki_cuda_free(b->backend, b->copy);
    ki_cuda_free(b->backend, b->center);
}

/* Rows first … first + n - 1, centred. */
static kith_status blocks_load(blocks *b, int64_t first, int64_t n, kith_error *err) {
    const int64_t dim = b->rows->dim;
    const float *from = b->rows->there ? b->rows->there + first * dim : b->copy;
    if (b->copy)
        KI_TRY(b->backend->type->upload(b->backend, b->copy, (const float *)b->rows->data + first * dim,
                                        (size_t)(n * dim) * sizeof *b->copy, err));
    const cudaError_t error = ki_knn_center(ki_cuda_of(b->backend)->stream, from, b->mean, b->center, n, dim);
    return error == cudaSuccess ? KITH_OK : ki_cuda_fail(err, error, "ki_knn_center");
}

static int64_t block_rows(const ki_rows *rows, int64_t first) {
    return rows->n - first < BLOCK ? rows->n - first : BLOCK;
}

kith_status ki_knn_cuda_scatter(ki_backend *backend, const ki_rows *rows, const double *mean, double *ret,
                                kith_error *err) {
    kith_status status;
    const int64_t dim = rows->dim;
    blocks b = {0};
    double *sum = NULL;
    KI_CHECK(blocks_init(&b, backend, rows, mean, err));
    KI_CHECK(take(backend, dim, dim, sizeof *sum, &sum, err));
    for (int64_t i = 0; i < rows->n; i += BLOCK) {
        const int64_t n = block_rows(rows, i);
        KI_CHECK(blocks_load(&b, i, n, err));
        KI_CHECK(ki_cuda_gemm(backend, true, false, dim, dim, n, 1, b.center, KI_NUMBER_DOUBLE, dim, b.center,
                              dim, i > 0 ? 1 : 0, sum, KI_NUMBER_DOUBLE, dim, err));
    }
    KI_CHECK(backend->type->download(backend, sum, ret, (size_t)(dim * dim) * sizeof *ret, err));
    KI_CHECK(backend->type->sync(backend, err));
done:
    blocks_release(&b);
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
    KI_CHECK(take(backend, n_by, dim, sizeof *onto, &onto, err));
    KI_CHECK(take(backend, BLOCK, n_by, sizeof *product, &product, err));
    KI_CHECK(take(backend, BLOCK, n_by, sizeof *rounded, &rounded, err));
    KI_CHECK(backend->type->upload(backend, onto, by, (size_t)(n_by * dim) * sizeof *by, err));
    for (int64_t i = 0; i < rows->n; i += BLOCK) {
        const int64_t n = block_rows(rows, i);
        KI_CHECK(blocks_load(&b, i, n, err));
        KI_CHECK(ki_cuda_gemm(backend, false, true, n, n_by, dim, 1, b.center, KI_NUMBER_DOUBLE, dim, onto,
                              dim, 0, product, KI_NUMBER_DOUBLE, n_by, err));
        const cudaError_t error = ki_knn_round(stream, product, rounded, n * n_by);
        if (error != cudaSuccess) KI_CHECK(ki_cuda_fail(err, error, "ki_knn_round"));
        KI_CHECK(
            backend->type->download(backend, rounded, ret + i * n_by, (size_t)(n * n_by) * sizeof *ret, err));
    }
    KI_CHECK(backend->type->sync(backend, err));
done:
    blocks_release(&b);
    ki_cuda_free(backend, onto);
    ki_cuda_free(backend, product);
    ki_cuda_free(backend, rounded);
    return status;
}
