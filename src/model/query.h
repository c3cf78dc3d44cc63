/* Several images as one query. */
#ifndef KI_MODEL_QUERY_H
#define KI_MODEL_QUERY_H

#include "kith/model.h"

/* Images of one query: each a path, bytes or pixels, with weights that are numbers, one above 0. */
kith_status ki_query_check(const kith_query_image *images, int64_t n, kith_error *err);

/* The weight of each of n_views rows of each of n images: ret_weights [n * n_views]. */
void ki_query_weights(const kith_query_image *images, int64_t n, int64_t n_views, double *ret_weights);

/* The query that n rows [n, dim] make with their weights: the only row, or the sum of the normalised rows times their weights.
 * Row i then counts ret_factor[i] times in ret_query [dim]. KITH_EINVAL when nothing is left of the sum. */
kith_status ki_query_sum(const double *rows, int64_t dim, const double *weights, int64_t n, double *ret_query,
                         double *ret_factor, kith_error *err);

#endif
