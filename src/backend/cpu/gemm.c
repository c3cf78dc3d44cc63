/* Tiles of matrix products, each on one thread. oneDNN multiplies them: its kernels are faster than OpenBLAS's, and most of all for small
 * tiles. A product of one tile is OpenBLAS's, which keeps to the calling thread for anything as small; inside a parallel loop both do.
 * Which of the two it is depends on the sizes alone. */
#include "backend/cpu/gemm.h"

#include <cblas.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/blas.h"
#include "base/parallel.h"

/* A tile packs its sides of a and b once more than the whole product would, which 384 rows and columns make up for. Smaller ones are made
 * only for enough tiles to keep threads busy. OpenBLAS starts threads for products over 2^18. */
enum { LARGE = 384, SMALL = 32, ALIGN = 16, FEW = 32 };
static const int64_t one_thread = (int64_t)1 << 18, worth_a_tile = (int64_t)1 << 21;

/* oneDNN's products on other processors may be plain loops. */
#if defined(__x86_64__)
enum { HAS_FAST_DNNL = 1 };
#else
enum { HAS_FAST_DNNL = 0 };
#endif

typedef struct grid {
    const cpu_gemm *gemm;
    int64_t rows, columns; /* of a tile; at the edges fewer */
    int64_t n_across;      /* tiles side by side */
    bool by_dnnl;
} grid;

static int64_t pieces(int64_t n, int64_t size) { return (n + size - 1) / size; }

/* Half of a side, as a multiple of ALIGN. */
static int64_t half(int64_t n) { return ((n + 1) / 2 + ALIGN - 1) / ALIGN * ALIGN; }

static int64_t n_tiles(const cpu_gemm *g, const grid *tiles) {
    return pieces(g->m, tiles->rows) * pieces(g->n, tiles->columns);
}

/* Halve the longer side of all tiles while they are large; then, while they are worth it, until there are enough. */
static grid cut(const cpu_gemm *g) {
    grid tiles = {.gemm = g, .rows = g->m, .columns = g->n};
    for (;;) {
        const int64_t work = tiles.rows * tiles.columns * g->k;
        const int64_t longer = tiles.rows > tiles.columns ? tiles.rows : tiles.columns;
        const bool is_large = tiles.rows * tiles.columns > (int64_t)2 * LARGE * LARGE;
        const bool is_wanted = n_tiles(g, &tiles) < FEW && work > worth_a_tile;
        const bool is_needed = n_tiles(g, &tiles) == 1 && work > one_thread;
        if (longer <= SMALL || !(is_large || is_wanted || is_needed)) break;
        if (tiles.rows > tiles.columns)
            tiles.rows = half(tiles.rows);
        else
            tiles.columns = half(tiles.columns);
    }
    tiles.n_across = pieces(g->n, tiles.columns);
    tiles.by_dnnl = HAS_FAST_DNNL && n_tiles(g, &tiles) > 1;
    return tiles;
}

/* oneDNN makes its kernels at the first product, and crashes if it has no memory for them: make them while that can be an error. */
kith_status cpu_gemm_prepare(kith_error *err) {
    enum { KERNEL_ROOM = 48 << 20, N = 64 };
    static atomic_bool is_done;
    float *x = NULL;
    KI_TRY(ki_blas_prepare(ki_threads(), err));
    if (!HAS_FAST_DNNL || atomic_load(&is_done)) return KITH_OK;
    KI_TRY(ki_room_or(KERNEL_ROOM, "a kernel of oneDNN", err));
    KI_TRY(ki_zalloc_or(&x, (size_t)3 * N * N, sizeof *x, "a first product", err));
    for (int i = 0; i < 3; i++)
        dnnl_sgemm(i == 2 ? 'T' : 'N', i == 1 ? 'T' : 'N', N, N, N, 1, x, N, x + N * N, N, 0, x + 2 * N * N,
                   N);
    ki_free(x);
    atomic_store(&is_done, true);
    return KITH_OK;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void multiply(const cpu_gemm *g, const cpu_tile *t, bool by_dnnl) {
    const int64_t lda = g->transposes_a ? g->m : g->k, ldb = g->transposes_b ? g->k : g->n;
    const float *a = g->a + (g->transposes_a ? t->row : t->row * lda);
    const float *b = g->b + (g->transposes_b ? t->column * ldb : t->column);
    float *c = g->c + t->row * g->n + t->column;
    if (by_dnnl &&
        dnnl_sgemm(g->transposes_a ? 'T' : 'N', g->transposes_b ? 'T' : 'N', t->n_rows, t->n_columns, g->k, 1,
                   a, lda, b, ldb, g->adds ? 1 : 0, c, g->n) == dnnl_success)
        return;
    cblas_sgemm(CblasRowMajor, g->transposes_a ? CblasTrans : CblasNoTrans,
                g->transposes_b ? CblasTrans : CblasNoTrans, (blasint)t->n_rows, (blasint)t->n_columns,
                (blasint)g->k, 1, a, (blasint)lda, b, (blasint)ldb, g->adds ? 1 : 0, c, (blasint)g->n);
}

static void run_tiles(void *context, int64_t begin, int64_t end) {
    const grid *tiles = context;
    const cpu_gemm *g = tiles->gemm;
    for (int64_t i = begin; i < end; i++) {
        cpu_tile t = {.row = i / tiles->n_across * tiles->rows,
                      .column = i % tiles->n_across * tiles->columns};
        t.n_rows = least(tiles->rows, g->m - t.row);
        t.n_columns = least(tiles->columns, g->n - t.column);
        if (g->begin) g->begin(g->context, &t);
        multiply(g, &t, tiles->by_dnnl);
        if (g->finish) g->finish(g->context, &t);
    }
}

void cpu_gemm_run(const cpu_gemm *gemm) {
    grid tiles = cut(gemm);
    ki_parallel_for(n_tiles(gemm, &tiles), 1, run_tiles, &tiles);
}
