/* How a matrix product is cut into tiles. OpenBLAS uses one thread inside a parallel loop, and also for a product that is as small as
 * one tile alone may be. */
#include "base/tiled.h"

#include <stdbool.h>

#include "base/parallel.h"

/* A tile packs its sides of the sources once more than the whole product would: 384 rows and columns make that 5 % of its time. Smaller
 * ones are made only for enough tiles to keep threads busy. OpenBLAS starts threads for products over 2^18. */
enum { LARGE = 384, SMALL = 32, ALIGN = 16, FEW = 32 };
static const int64_t one_thread = (int64_t)1 << 18, worth_a_tile = (int64_t)1 << 21;

typedef struct grid {
    int64_t m, n, k;
    int64_t rows, columns; /* of a tile; at the edges fewer */
    int64_t n_across;      /* tiles side by side */
    ki_tiled_fn fn;
    const void *context;
} grid;

static int64_t pieces(int64_t n, int64_t size) { return (n + size - 1) / size; }

/* Half of a side, as a multiple of ALIGN. */
static int64_t half(int64_t n) { return ((n + 1) / 2 + ALIGN - 1) / ALIGN * ALIGN; }

static int64_t n_tiles(const grid *g) { return pieces(g->m, g->rows) * pieces(g->n, g->columns); }

/* Halve the longer side of all tiles while they are large; then, while they are worth it, until there are enough. */
static void cut(grid *g) {
    g->rows = g->m, g->columns = g->n;
    for (;;) {
        const int64_t work = g->rows * g->columns * g->k;
        const int64_t longer = g->rows > g->columns ? g->rows : g->columns;
        const bool is_large = g->rows * g->columns > (int64_t)2 * LARGE * LARGE;
        const bool is_wanted = n_tiles(g) < FEW && work > worth_a_tile;
        const bool is_needed = n_tiles(g) == 1 && work > one_thread;
        if (longer <= SMALL || !(is_large || is_wanted || is_needed)) break;
        if (g->rows > g->columns)
            g->rows = half(g->rows);
        else
            g->columns = half(g->columns);
    }
    g->n_across = pieces(g->n, g->columns);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void run_tiles(void *context, int64_t begin, int64_t end) {
    const grid *g = context;
    for (int64_t i = begin; i < end; i++) {
        ki_tiled_part t = {.row = i / g->n_across * g->rows,
                           .column = i % g->n_across * g->columns,
                           .is_whole = n_tiles(g) == 1};
        t.n_rows = least(g->rows, g->m - t.row);
        t.n_columns = least(g->columns, g->n - t.column);
        g->fn(g->context, &t);
    }
}

void ki_tiled_run(int64_t m, int64_t n, int64_t k, ki_tiled_fn fn, const void *context) {
    if (m <= 0 || n <= 0) return;
    grid g = {.m = m, .n = n, .k = k, .fn = fn, .context = context};
    cut(&g);
    ki_parallel_for(n_tiles(&g), 1, run_tiles, &g);
}
