/* The exact second look: rows are read and scored in float64 from the given values, and the k best are kept. */
#ifndef KI_SEARCH_LOOK_H
#define KI_SEARCH_LOOK_H

#include "search/scan/query.h"

/* The k best rows so far. `score` here is larger for nearer rows, and not rounded. */
typedef struct ki_best {
    kith_neighbor *heap; /* [k], the worst first */
    int64_t n, k;
} ki_best;

/* Larger score first, then lower row; for qsort too. */
int ki_best_compare(const void *a, const void *b);
void ki_best_add(ki_best *best, double score, int64_t row);
/* Best first, in the user's numbers; the rest of ret [k] is NaN and -1. The heap is used up. */
void ki_best_take(ki_best *best, kith_metric metric, kith_neighbor *ret);

typedef struct ki_looker {
    const ki_coder *coder;
    const ki_row_source *rows;
    const ki_scan_kernel *kernel;
    float *read; /* [KI_LOOK_ROWS, dim], where the source has no data */
} ki_looker;

enum { KI_LOOK_ROWS = 64 };

kith_status ki_looker_init(ki_looker *looker, const ki_coder *coder, const ki_row_source *rows,
                           kith_error *err);
void ki_looker_release(ki_looker *looker); /* fine on a zeroed struct */

/* The score of a query and a row that was read. */
double ki_look_score(const ki_looker *looker, const ki_scan_query *query, const float *x);
/* Each of the rows, at most KI_LOOK_ROWS, for each of the queries: score and keep. */
kith_status ki_look_rows(const ki_looker *looker, const int64_t *row, int64_t n, const ki_scan_query *queries,
                         ki_best *best, int64_t n_queries, kith_error *err);
/* The rows of the query's pool, which was cut, the best estimates first, as long as there is hope. The pool is sorted; scratch is
 * as large. */
kith_status ki_look_pool(const ki_looker *looker, ki_scan_query *query, ki_best *best, ki_key *scratch,
                         kith_error *err);

#endif
