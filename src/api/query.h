/* Several images as one query. */
#ifndef KI_API_QUERY_H
#define KI_API_QUERY_H

#include "kith/embedder.h"

/* Images of one query: each a path or bytes, with weights that are numbers, one above 0. */
kith_status ki_query_check(const kith_query_image *images, int64_t n, kith_error *err);

/* The query that n images make, from rows [n * n_views, dim] of vectors, n_views for each image: the only row, or the sum of
 * the normalised rows times their weights. Row i counts ret_factor[i] times in ret_query [dim]. KITH_EINVAL when nothing is
 * left of the sum. */
kith_status ki_query_combine(const double *rows, int64_t dim, const kith_query_image *images, int64_t n,
                             int64_t n_views, double *ret_query, double *ret_factor, kith_error *err);

#endif
