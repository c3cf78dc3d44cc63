/* Rows in memory compared one by one, as every store compares them: the same bits whoever keeps the rows. */
#ifndef KI_SEARCH_EXACT_LIST_H
#define KI_SEARCH_EXACT_LIST_H

#include "base/error.h"
#include "kith/knn.h"

/* Numbers (rows times dim) up to which the rows stay in memory and every search is exact: 100 MB. */
#define KI_EXACT_NUMBERS 25000000

/* The k nearest of rows, float32 [n, dim] with n of at least 1, on the host: ret_neighbors [queries, k] as kith_gallery_search
 * fills it, with the scores of ki_exact_measure and ki_exact_round. */
kith_status ki_exact_list(const kith_array *rows, kith_metric metric, const kith_array *query, int64_t k,
                          kith_neighbor *ret_neighbors, kith_error *err);

/* Squared distances of lists [queries, k] to rows [n_rows, dim], again in float64. Other metrics stay as they are. */
kith_status ki_exact_measure(kith_metric metric, const kith_array *query, const float *rows, int64_t n_rows,
                             int64_t k, kith_neighbor *lists, kith_error *err);
/* Scores as they are handed out: in float32. */
void ki_exact_round(kith_neighbor *lists, int64_t n);

#endif
