/* What the parts of k-means share. */
#ifndef KI_KMEANS_H
#define KI_KMEANS_H

#include "knn/device.h"

/* The rows of a k-means run: normalised if asked, float32, and their panels. */
typedef struct ki_kmeans_data {
    int64_t n, dim;
    float *x; /* [n, dim] */
    ki_panels panels;
    ki_knn_device device;   /* without a type: the host does everything */
    float *there;           /* x on the device; the host keeps x for what it draws and decides */
    ki_device_rows *loaded; /* the panels, on the device */
} ki_kmeans_data;

/* kith_kmeans of rows that were checked. The device computes distances and centroids (NULL: the device that
 * the options name). */
kith_status ki_kmeans_run(const ki_rows *rows, const ki_knn_device *device,
                          const kith_kmeans_options *options, kith_kmeans_result *ret_result,
                          kith_error *err);

/* Start from {0} with only the device set; the data owns the device from then on. Release it after a failure,
 * too. */
kith_status ki_kmeans_data_init(ki_kmeans_data *data, const ki_rows *rows, bool normalize, kith_error *err);
void ki_kmeans_data_release(ki_kmeans_data *data); /* closes the device */

/* Rows to start from, by k-means++ (Arthur and Vassilvitskii 2007): each next one is drawn with
 * probability proportional to its squared distance from the nearest one drawn before. All different
 * unless there are fewer different rows. ret_rows [n_clusters]. */
kith_status ki_kmeans_plus_plus(const ki_kmeans_data *data, int64_t n_clusters, uint64_t seed,
                                uint32_t restart, int64_t *ret_rows, kith_error *err);
/* n_clusters different rows at random. */
kith_status ki_kmeans_random(int64_t n, int64_t n_clusters, uint64_t seed, uint32_t restart,
                             int64_t *ret_rows, kith_error *err);

#endif
