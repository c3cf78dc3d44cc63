/* Exact lists over rows in memory. */
#include "search/exact_list.h"

#include "base/alloc.h"
#include "knn/rows.h"

/* Squared distances of the rows that were found, in float64: the kernel's depend on the other rows of the gallery, by their
 * mean. Lists are in this order already. */
kith_status ki_exact_measure(kith_metric metric, const kith_array *query, const float *rows, int64_t n_rows,
                             int64_t k, kith_neighbor *lists, kith_error *err) {
    if (metric != KITH_SQEUCLIDEAN) return KITH_OK;
    const ki_rows there = {.dtype = KITH_F32, .n = n_rows, .dim = query->dim[1], .data = rows};
    ki_rows asked;
    KI_TRY(ki_rows_init(query, "query", &asked, err));
    for (int64_t i = 0; i < asked.n * k; i++) {
        if (lists[i].index >= 0) lists[i].score = ki_rows_sqdist(&asked, i / k, &there, lists[i].index);
    }
    return KITH_OK;
}

void ki_exact_round(kith_neighbor *lists, int64_t n) {
    for (int64_t i = 0; i < n; i++) lists[i].score = (float)lists[i].score;
}

kith_status ki_exact_list(const kith_array *rows, kith_metric metric, const kith_array *query, int64_t k,
                          kith_neighbor *ret_neighbors, kith_error *err) {
    kith_status status = KITH_OK;
    kith_gallery *gallery = NULL;
    KITH_OPTIONS(kith_knn_options, options);
    options.metric = metric;
    KI_CHECK(kith_gallery_new(rows, &options, &gallery, err));
    KI_CHECK(kith_gallery_search(gallery, query, NULL, k, ret_neighbors, err));
    KI_CHECK(ki_exact_measure(metric, query, rows->data, rows->dim[0], k, ret_neighbors, err));
    ki_exact_round(ret_neighbors, query->dim[0] * k);
done:
    kith_gallery_free(gallery);
    return status;
}
