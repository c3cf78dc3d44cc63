/* Matrix products in tiles, so that sums do not depend on the number of threads (base/tiled.h). */
#include "objective/gemm.h"

#include <cblas.h>
#ifdef KITH_REAL_IS_FLOAT
#include <oneapi/dnnl/dnnl.h>
#endif

#include "base/alloc.h"
#include "base/blas.h"
#include "base/parallel.h"
#include "base/tiled.h"

static void gemm(enum CBLAS_TRANSPOSE ta, enum CBLAS_TRANSPOSE tb, int64_t m, int64_t n, int64_t k,
                 ki_real alpha, const ki_real *a, int64_t lda, const ki_real *b, int64_t ldb, ki_real beta,
                 ki_real *c, int64_t ldc) {
#ifdef KITH_REAL_IS_FLOAT
    cblas_sgemm(CblasRowMajor, ta, tb, (blasint)m, (blasint)n, (blasint)k, alpha, a, (blasint)lda, b,
                (blasint)ldb, beta, c, (blasint)ldc);
#else
    cblas_dgemm(CblasRowMajor, ta, tb, (blasint)m, (blasint)n, (blasint)k, alpha, a, (blasint)lda, b,
                (blasint)ldb, beta, c, (blasint)ldc);
#endif
}

/* oneDNN makes its kernel at the first product, and crashes if it has no memory for it. So the kernel is made here,
 * before it is needed, after checking that there is memory. */
kith_status ki_gemm_prepare(kith_error *err) {
    KI_TRY(ki_blas_prepare(ki_threads(), err));
#ifdef KITH_REAL_IS_FLOAT
    enum { KERNEL_ROOM = 48 << 20, N = 64 };
    float *x = NULL;
    KI_TRY(ki_room_or(KERNEL_ROOM, "a kernel of oneDNN", err));
    KI_TRY(ki_zalloc_or(&x, (size_t)3 * N * N, sizeof *x, "a first product", err));
    for (int i = 0; i < 2; i++) ki_gemm_one(i == 1, N, N, N, 1, x, N, x + N * N, N, 0, x + 2 * N * N, N);
    ki_free(x);
#endif
    return KITH_OK;
}

typedef struct product {
    enum CBLAS_TRANSPOSE ta, tb;
    int64_t k, lda, ldb, ldc;
    ki_real alpha, beta;
    const ki_real *a, *b;
    ki_real *c;
} product;

static void multiply(const void *context, const ki_tiled_part *t) {
    const product *p = context;
    gemm(p->ta, p->tb, t->n_rows, t->n_columns, p->k, p->alpha,
         p->a + (p->ta == CblasTrans ? t->row : t->row * p->lda), p->lda,
         p->b + (p->tb == CblasTrans ? t->column * p->ldb : t->column), p->ldb, p->beta,
         p->c + t->row * p->ldc + t->column, p->ldc);
}

void ki_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, ki_real alpha,
             const ki_real *a, int64_t lda, const ki_real *b, int64_t ldb, ki_real beta, ki_real *c,
             int64_t ldc) {
    const product p = {.ta = transpose_a ? CblasTrans : CblasNoTrans,
                       .tb = transpose_b ? CblasTrans : CblasNoTrans,
                       .k = k,
                       .lda = lda,
                       .ldb = ldb,
                       .ldc = ldc,
                       .alpha = alpha,
                       .beta = beta,
                       .a = a,
                       .b = b,
                       .c = c};
    ki_tiled_run(m, n, k, multiply, &p);
}

/* oneDNN's kernel is about a fifth faster than OpenBLAS's on one core, but supports only float. Both stay on
 * the calling thread inside a parallel region. */
void ki_gemm_one(bool transpose_b, int64_t m, int64_t n, int64_t k, ki_real alpha, const ki_real *a,
                 int64_t lda, const ki_real *b, int64_t ldb, ki_real beta, ki_real *c, int64_t ldc) {
    if (m <= 0 || n <= 0) return;
#ifdef KITH_REAL_IS_FLOAT
    /* For an empty sum it returns success but writes nothing. */
    if (k > 0 && dnnl_sgemm('N', transpose_b ? 'T' : 'N', m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) ==
                     dnnl_success)
        return;
#endif
    ki_gemm(false, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
