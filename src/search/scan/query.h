/* A query made ready for the scan: turned as rows are, with a table of rounded sums; and the candidates it collects. */
#ifndef KI_SEARCH_QUERY_H
#define KI_SEARCH_QUERY_H

#include <math.h>

#include "knn/topk.h"
#include "search/scan/coder_parts.h"

/* The best candidates of a query, by estimate. The set does not depend on the order in which they come. */
typedef struct ki_scan_pool {
    ki_key *keys; /* [room] */
    int64_t n, room, n_best;
    ki_key worst; /* the least of n_best that were together: less cannot be among the best */
    float least;  /* its score, -INFINITY at first */
} ki_scan_pool;

static inline int64_t ki_scan_pool_room(int64_t n_best) { return 2 * n_best + 64; }
void ki_scan_pool_init(ki_scan_pool *pool, ki_key *keys, int64_t n_best);
/* Leave the best, in any order; scratch [room]. */
void ki_scan_pool_cut(ki_scan_pool *pool, ki_key *scratch);
static inline void ki_scan_pool_add(ki_scan_pool *pool, float score, int64_t row, ki_key *scratch) {
    const ki_key key = ki_key_make(score, row);
    if (key <= pool->worst) return;
    pool->keys[pool->n++] = key;
    if (pool->n == pool->room) ki_scan_pool_cut(pool, scratch);
}

typedef struct ki_scan_query {
    const float *given; /* [dim], borrowed */
    double square;      /* |given|^2 */
    double turned_square;
    float *turned;   /* [padded] */
    uint8_t *entry;  /* [padded * 4]: of the table */
    double rounding; /* of step * T + shift: about its standard deviation */
    ki_scan_table table;
    int64_t self;
    ki_scan_pool pool;
} ki_scan_query;

/* given [dim], of which the coder may code the first values alone. turned and entry have their room already; KITH_ENUMERIC for values that
 * are not finite, of query number i. */
kith_status ki_scan_query_set(ki_scan_query *query, const ki_coder *coder, const float *given, int64_t dim,
                              int64_t i, kith_error *err);

/* The part of the scores that all rows of a list share, and the distance of the query from the list's centroid. */
double ki_scan_query_base(const ki_scan_query *query, const ki_coder *coder, const ki_scan_kernel *kernel,
                          int64_t list, double *ret_distance);
/* The first alone, as exact as an estimate needs it. */
float ki_scan_query_about(const ki_scan_query *query, const ki_coder *coder, const ki_scan_kernel *kernel,
                          int64_t list);

#endif
