/* Principal components of rows on the host or on a device. */
#ifndef KI_PCA_H
#define KI_PCA_H

#include "knn/device.h"

/* kith_pca_fit and kith_pca_apply of rows that were checked. The device (NULL or without a type: the host) makes the
 * products of float32 rows, in float64. The eigenvectors are computed on the host. If the device lacks the memory, the
 * host does all of it. Components differ from the host's by the rounding of float64 sums. */
kith_status ki_pca_fit(const ki_rows *rows, const ki_knn_device *device, const kith_pca_options *options,
                       kith_pca *ret_pca, kith_error *err);
kith_status ki_pca_apply(const kith_pca *pca, const ki_rows *rows, const ki_knn_device *device,
                         kith_array *ret_projected, kith_error *err);

#endif
