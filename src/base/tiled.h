/* Matrix products in tiles, each for one thread.
 *
 * BLAS' own threads split a product at places that depend on how many there are, and with them change the last bits of its
 * numbers. Here the destination is cut by the sizes alone, so that results are the same for any number of threads. */
#ifndef KI_TILED_H
#define KI_TILED_H

#include <stdbool.h>
#include <stdint.h>

/* A part of a destination. */
typedef struct ki_tiled_part {
    int64_t row, column, n_rows, n_columns;
    bool is_whole; /* there is no other */
} ki_tiled_part;

/* Computes a tile by one call of BLAS, which stays on the calling thread. */
typedef void (*ki_tiled_fn)(const void *context, const ki_tiled_part *tile);

/* fn for all tiles of an m x n destination, each the sum of k products, by all threads. Memory of BLAS must be there for
 * ki_threads() callers (base/blas.h). */
void ki_tiled_run(int64_t m, int64_t n, int64_t k, ki_tiled_fn fn, const void *context);

#endif
