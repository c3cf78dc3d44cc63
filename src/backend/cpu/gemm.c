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

/* oneDNN's products on other processors may be plain loops. */
#if defined(__x86_64__)
enum { HAS_FAST_DNNL = 1 };
#else
enum { HAS_FAST_DNNL = 0 };
#endif

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

static void multiply(const cpu_gemm *g, const ki_tiled_part *t) {
    const int64_t lda = g->transposes_a ? g->m : g->k, ldb = g->transposes_b ? g->k : g->n;
    const float *a = g->a + (g->transposes_a ? t->row : t->row * lda);
    const float *b = g->b + (g->transposes_b ? t->column * ldb : t->column);
    float *c = g->c + t->row * g->n + t->column;
    if (HAS_FAST_DNNL && !t->is_whole &&
        dnnl_sgemm(g->transposes_a ? 'T' : 'N', g->transposes_b ? 'T' : 'N', t->n_rows, t->n_columns, g->k, 1,
                   a, lda, b, ldb, g->adds ? 1 : 0, c, g->n) == dnnl_success)
        return;
    cblas_sgemm(CblasRowMajor, g->transposes_a ? CblasTrans : CblasNoTrans,
                g->transposes_b ? CblasTrans : CblasNoTrans, (blasint)t->n_rows, (blasint)t->n_columns,
                (blasint)g->k, 1, a, (blasint)lda, b, (blasint)ldb, g->adds ? 1 : 0, c, (blasint)g->n);
}

static void run_tile(const void *context, const ki_tiled_part *t) {
    const cpu_gemm *g = context;
    if (g->begin) g->begin(g->context, t);
    multiply(g, t);
    if (g->finish) g->finish(g->context, t);
}

void cpu_gemm_run(const cpu_gemm *gemm) { ki_tiled_run(gemm->m, gemm->n, gemm->k, run_tile, gemm); }
