/* The products of principal components on a CUDA device (ki_knn_device_type says what they are). */
#ifndef KI_KNN_CUDA_PCA_H
#define KI_KNN_CUDA_PCA_H

#include "knn/device.h"

kith_status ki_knn_cuda_scatter(ki_backend *backend, const ki_rows *rows, const double *mean, double *ret,
                                kith_error *err);
kith_status ki_knn_cuda_project(ki_backend *backend, const ki_rows *rows, const double *mean,
                                const double *by, int64_t n_by, float *ret, kith_error *err);

#endif
