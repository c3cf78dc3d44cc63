/* Tiles of a product with packed weights. A tile's rows and its part of dst stay in the second cache; the weights pass by once for each
 * block of rows. Long sums are made in parts of about the same size, so that what a stripe of rows reads stays in the first cache. */
#include "backend/cpu/packed.h"

#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/products.h"

enum { ROWS = 96, COLUMNS = 128, LEAST_ROWS = 24, LEAST_COLUMNS = 64, FEW = 32, MOST_K = 768 };
enum {
    WORTH_A_THREAD = 1 << 20
}; /* multiplications; another thread's start costs about as much as 10^6 of them */

bool cpu_packs(void) {
#if defined(__x86_64__)
    return cpu_block() > 1 && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

kith_status cpu_packed_init(cpu_packed *packed, int64_t n, int64_t k, bool has_bias, kith_error *err) {
    *packed = (cpu_packed){.n = n, .k = k};
    const size_t wide = (size_t)cpu_panels_up(n);
    size_t count = 0;
    if (!ki_mul_size(wide, (size_t)k, &count)) count = SIZE_MAX; /* which no system has */
    KI_TRY(ki_alloc_or(&packed->panels, count, sizeof *packed->panels, "packed weights", err));
    return has_bias ? ki_zalloc_or(&packed->bias, wide, sizeof *packed->bias, "a bias", err) : KITH_OK;
}

void cpu_packed_release(cpu_packed *packed) {
    ki_free(packed->panels);
    ki_free(packed->bias);
    *packed = (cpu_packed){0};
}

typedef struct filling {
    const cpu_packed *packed;
    const float *weights;
    bool across;
} filling;

/* Items: panels. */
static void fill_panels(void *context, int64_t begin, int64_t end) {
    const filling *f = context;
    const int64_t n = f->packed->n, k = f->packed->k, first = begin * CPU_PANEL;
    const int64_t past = end * CPU_PANEL < n ? end * CPU_PANEL : n;
    float *to = f->packed->panels + first * k;
    if (f->across)
        cpu_panels(f->weights + first, n, k, past - first, to);
    else
        cpu_panels_of_transpose(f->weights + first * k, k, past - first, k, to);
}

void cpu_packed_fill(cpu_packed *packed, const float *weights, bool across, const float *bias) {
    filling f = {packed, weights, across};
    ki_parallel_for(cpu_panels_up(packed->n) / CPU_PANEL, 4, fill_panels, &f);
    if (packed->bias) memcpy(packed->bias, bias, (size_t)packed->n * sizeof *bias);
}

typedef struct tiles {
    const cpu_packed_product *p;
    int64_t rows, columns, n_across;
} tiles;

static int64_t pieces(int64_t n, int64_t size) { return (n + size - 1) / size; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void multiply(const cpu_packed_product *p, const ki_tiled_part *t) {
    const cpu_packed *w = p->with;
    const int64_t n_parts = pieces(w->k, MOST_K), part = pieces(w->k, n_parts);
    for (int64_t k = 0; k < w->k; k += part) {
        cpu_multiply(&(cpu_product){.m = t->n_rows,
                                    .n = t->n_columns,
                                    .k = least(part, w->k - k),
                                    .a = p->a + t->row * w->k + k,
                                    .a_row = w->k,
                                    .a_k = 1,
                                    .b = w->panels + t->column * w->k + k * CPU_PANEL,
                                    .b_panel = w->k * CPU_PANEL,
                                    .bias = k == 0 && w->bias ? w->bias + t->column : NULL,
                                    .dst = p->dst + t->row * w->n + t->column,
                                    .dst_pitch = w->n,
                                    .adds = k > 0});
    }
}

static void run_tiles(void *context, int64_t begin, int64_t end) {
    const tiles *g = context;
    const cpu_packed_product *p = g->p;
    for (int64_t i = begin; i < end; i++) {
        ki_tiled_part t = {.row = i / g->n_across * g->rows, .column = i % g->n_across * g->columns};
        t.n_rows = least(g->rows, p->m - t.row);
        t.n_columns = least(g->columns, p->with->n - t.column);
        multiply(p, &t);
        if (p->finish) p->finish(p->context, &t);
    }
}

void cpu_packed_run(const cpu_packed_product *product) {
    const int64_t m = product->m, n = product->with->n, k = product->with->k;
    tiles g = {product, ROWS, COLUMNS, 0};
    if (pieces(m, g.rows) * pieces(n, g.columns) < FEW) g.columns = LEAST_COLUMNS;
    if (pieces(m, g.rows) * pieces(n, g.columns) < FEW) g.rows = LEAST_ROWS;
    g.n_across = pieces(n, g.columns);
    const int64_t work = g.rows * g.columns * k;
    ki_parallel_for(pieces(m, g.rows) * g.n_across, pieces(WORTH_A_THREAD, work), run_tiles, &g);
}
