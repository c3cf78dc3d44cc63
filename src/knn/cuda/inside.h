/* What the files of this folder share: a matrix in device memory, and memory for it. */
#ifndef KI_KNN_CUDA_INSIDE_H
#define KI_KNN_CUDA_INSIDE_H

#include "backend/cuda/cuda.h"
#include "knn/device.h"

struct ki_device_rows {
    const ki_panels *panels; /* NULL: means of other rows, made here */
    int64_t n, dim;
    float *x;     /* [n, dim] in the form that scores need: normalised or centred */
    float *half;  /* [n], or NULL */
    double *norm; /* [n], or NULL for the cosine */
    ki_device_tile tile;

    /* Means of other rows. */
    const ki_device_rows *of;
    float *mean;     /* [n, dim], not centred */
    double *center;  /* [dim]: the centre that was subtracted from `of` */
    int32_t *member; /* [of->n] rows of `of` */
    int32_t *which;  /* [n] means that move */
    int64_t *begin;  /* [n + 1] places in member */
};

/* Device memory for n x width elements, at least one byte. */
kith_status ki_knn_cuda_take(ki_backend *backend, int64_t n, int64_t width, size_t size, void *ret_ptr,
                             kith_error *err);
/* The same with a copy of n elements; the host's may not change before the next sync. */
kith_status ki_knn_cuda_copy_in(ki_backend *backend, const void *host, int64_t n, size_t size, void *ret_ptr,
                                kith_error *err);

/* device.c, as ki_knn_device_type has it. */
void ki_knn_cuda_unload(ki_backend *backend, ki_device_rows *rows);

/* means.c, as ki_knn_device_type has it. */
kith_status ki_knn_cuda_means(ki_backend *backend, const ki_device_rows *of, int64_t n,
                              ki_device_rows **ret_means, kith_error *err);
kith_status ki_knn_cuda_move(ki_backend *backend, ki_device_rows *means, const ki_device_move *move,
                             kith_error *err);
kith_status ki_knn_cuda_means_read(ki_backend *backend, const ki_device_rows *means, float *ret_means,
                                   kith_error *err);

/* pca.c, as ki_knn_device_type has it. */
kith_status ki_knn_cuda_mean(ki_backend *backend, const ki_rows *rows, double *ret_mean, double *ret_squares,
                             kith_error *err);
kith_status ki_knn_cuda_scatter(ki_backend *backend, const ki_rows *rows, const double *mean, double *ret,
                                kith_error *err);
kith_status ki_knn_cuda_spread(ki_backend *backend, const ki_rows *rows, const double *mean, const double *q,
                               int64_t n_q, double *ret_back, double *ret_inner, kith_error *err);
kith_status ki_knn_cuda_project(ki_backend *backend, const ki_rows *rows, const double *mean,
                                const double *by, int64_t n_by, float *ret, kith_error *err);

#endif
