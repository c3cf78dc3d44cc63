/* Exact scores of rows, and heaps of the k best. */
#include "search/scan/look.h"

#include <stdlib.h>

#include "base/alloc.h"

static inline bool is_nearer(kith_neighbor a, kith_neighbor b) {
    return a.score != b.score ? a.score > b.score : a.index < b.index;
}

int ki_best_compare(const void *a, const void *b) {
    const kith_neighbor x = *(const kith_neighbor *)a, y = *(const kith_neighbor *)b;
    return is_nearer(y, x) - is_nearer(x, y);
}

void ki_best_add(ki_best *best, double score, int64_t row) {
    const kith_neighbor added = {score, row};
    kith_neighbor *heap = best->heap;
    int64_t at = best->n;
    if (best->n < best->k) {
        best->n++;
        for (; at > 0 && is_nearer(heap[(at - 1) / 2], added); at = (at - 1) / 2)
            heap[at] = heap[(at - 1) / 2];
        heap[at] = added;
        return;
    }
    if (!is_nearer(added, heap[0])) return;
    for (at = 0; 2 * at + 1 < best->n;) {
        int64_t down = 2 * at + 1;
        if (down + 1 < best->n && is_nearer(heap[down], heap[down + 1])) down++;
        if (!is_nearer(added, heap[down])) break;
        heap[at] = heap[down];
        at = down;
    }
    heap[at] = added;
}

void ki_best_take(ki_best *best, kith_metric metric, kith_neighbor *ret) {
    qsort(best->heap, (size_t)best->n, sizeof *best->heap, ki_best_compare);
    for (int64_t j = 0; j < best->n; j++)
        ret[j] = (kith_neighbor){(float)ki_score_shown(metric, best->heap[j].score), best->heap[j].index};
    for (int64_t j = best->n; j < best->k; j++) ret[j] = (kith_neighbor){NAN, -1};
}

kith_status ki_looker_init(ki_looker *looker, const ki_coder *coder, const ki_row_source *rows,
                           kith_error *err) {
    *looker = (ki_looker){.coder = coder, .rows = rows, .kernel = ki_scan_kernel_best()};
    if (rows->data) return KITH_OK;
    return ki_alloc_or(&looker->read, KI_LOOK_ROWS, (size_t)rows->dim * sizeof(float), "rows to look at",
                       err);
}

void ki_looker_release(ki_looker *looker) {
    ki_free(looker->read);
    *looker = (ki_looker){0};
}

/* As ki_panels_score. */
double ki_look_score(const ki_looker *looker, const ki_scan_query *query, const float *x) {
    const ki_coder *c = looker->coder;
    if (c->metric == KITH_SQEUCLIDEAN)
        return -0.5 * looker->kernel->sqdist(query->given, x, looker->rows->dim);
    double dot, square;
    looker->kernel->dots(query->given, x, looker->rows->dim, &dot, &square);
    if (c->metric == KITH_INNER) return dot;
    return dot / (fmax(sqrt(query->square), KI_LEAST_NORM) * fmax(sqrt(square), KI_LEAST_NORM));
}

/* Rows in memory lie anywhere: ask for them some time before they are needed. */
static inline void expect(const float *x, int64_t dim) {
    for (int64_t k = 0; k < dim; k += 64 / (int64_t)sizeof *x) __builtin_prefetch(x + k);
}

/* Where n rows are, at most KI_LOOK_ROWS; those that are not in memory are read first. */
static kith_status find_rows(const ki_looker *looker, const int64_t *row, int64_t n, const float **ret,
                             kith_error *err) {
    const ki_row_source *rows = looker->rows;
    int64_t missing[KI_LOOK_ROWS], n_missing = 0;
    for (int64_t i = 0; i < n; i++) {
        ret[i] = ki_source_at(rows, row[i]);
        if (ret[i]) continue;
        ret[i] = looker->read + n_missing * rows->dim;
        missing[n_missing++] = row[i];
    }
    return n_missing ? rows->read(rows->user, missing, n_missing, looker->read, err) : KITH_OK;
}

/* The scores of n rows: ret [n]. */
static kith_status score_rows(const ki_looker *looker, const int64_t *row, int64_t n,
                              const ki_scan_query *query, double *ret, kith_error *err) {
    const float *x[KI_LOOK_ROWS];
    const int64_t dim = looker->rows->dim;
    enum { AHEAD = 8 };
    KI_TRY(find_rows(looker, row, n, x, err));
    for (int64_t i = 0; i < n && i < AHEAD; i++) expect(x[i], dim);
    for (int64_t i = 0; i < n; i++) {
        if (i + AHEAD < n) expect(x[i + AHEAD], dim);
        ret[i] = ki_look_score(looker, query, x[i]);
    }
    return KITH_OK;
}

kith_status ki_look_rows(const ki_looker *looker, const int64_t *row, int64_t n, const ki_scan_query *queries,
                         ki_best *best, int64_t n_queries, kith_error *err) {
    const float *x[KI_LOOK_ROWS];
    KI_TRY(find_rows(looker, row, n, x, err));
    for (int64_t i = 0; i < n; i++) {
        if (i + 1 < n) expect(x[i + 1], looker->rows->dim);
        for (int64_t q = 0; q < n_queries; q++) {
            if (queries[q].self != row[i])
                ki_best_add(best + q, ki_look_score(looker, queries + q, x[i]), row[i]);
        }
    }
    return KITH_OK;
}

/* Estimates err alike for all rows of a query. As soon as the next estimate is below the k-th exact score by three times what
 * the estimates before it have been off, no later row is likely to be among the k best. */
static bool is_enough(const ki_best *best, const ki_scan_pool *pool, int64_t n_done, double sum_squares) {
    if (best->n < best->k || n_done == pool->n) return false;
    const double off = 3 * sqrt(sum_squares / (double)n_done);
    return (double)ki_key_score(pool->keys[n_done]) + off < best->heap[0].score;
}

kith_status ki_look_pool(const ki_looker *looker, ki_scan_query *query, ki_best *best, ki_key *scratch,
                         kith_error *err) {
    ki_scan_pool *pool = &query->pool;
    int64_t row[KI_LOOK_ROWS];
    double sum_squares = 0;
    ki_keys_sort(ki_knn_kernel_best(), pool->keys, pool->n, scratch);
    for (int64_t i = 0; i < pool->n && !is_enough(best, pool, i, sum_squares);) {
        double score[KI_LOOK_ROWS];
        /* Where rows are in memory, a look at one too many costs more than asking again. */
        const bool is_near = ki_source_at(looker->rows, ki_key_index(pool->keys[i])) != NULL;
        const int64_t step = is_near ? KI_LOOK_ROWS / 4 : KI_LOOK_ROWS;
        const int64_t n = pool->n - i < step ? pool->n - i : step;
        for (int64_t j = 0; j < n; j++) row[j] = ki_key_index(pool->keys[i + j]);
        KI_TRY(score_rows(looker, row, n, query, score, err));
        for (int64_t j = 0; j < n; j++) {
            const double off = score[j] - (double)ki_key_score(pool->keys[i + j]);
            sum_squares += off * off;
            ki_best_add(best, score[j], row[j]);
        }
        i += n;
    }
    return KITH_OK;
}
