/* Where the float rows of a search are: in memory, or wherever a function reads them from. */
#ifndef KI_SEARCH_SOURCE_H
#define KI_SEARCH_SOURCE_H

#include <stdint.h>

#include "base/error.h"

/* Rows 0 … n - 1 of dim float32 values each, borrowed. Values are finite and at most 1e18 in magnitude; whoever lets rows
 * in has checked that (knn/rows.h). */
typedef struct ki_row_source {
    int64_t n, dim;
    const float *data; /* [n, dim] when all rows are in memory, else NULL */
    /* Without data: copy n rows of the given numbers, in that order, to dst [n, dim]. Numbers are in range, may repeat
     * and come in any order, though rows that follow each other are asked for in one call where that is known.
     * Called from several threads at a time. */
    kith_status (*read)(void *user, const int64_t *row, int64_t n, float *dst, kith_error *err);
    /* A row that is in memory nevertheless, where it stays as long as the source; NULL: it must be read. May be NULL. */
    const float *(*kept)(void *user, int64_t row);
    void *user;
} ki_row_source;

/* The first values of rows, as rows of their own. */
typedef struct ki_row_cut {
    const ki_row_source *rows; /* borrowed */
    int64_t dim;               /* at most theirs */
} ki_row_cut;
/* Borrows the cut. */
ki_row_source ki_row_cut_source(const ki_row_cut *cut);

/* Where a row is in memory; NULL: it must be read. */
static inline const float *ki_source_at(const ki_row_source *rows, int64_t row) {
    if (rows->data) return rows->data + row * rows->dim;
    return rows->kept ? rows->kept(rows->user, row) : NULL;
}

/* Rows by number: copied or read to dst [n, dim]. */
kith_status ki_source_read(const ki_row_source *rows, const int64_t *row, int64_t n, float *dst,
                           kith_error *err);
/* Rows first … first + n - 1: a pointer into the data, or dst [n, dim] after reading. */
kith_status ki_source_span(const ki_row_source *rows, int64_t first, int64_t n, float *dst,
                           const float **ret_rows, kith_error *err);

#endif
