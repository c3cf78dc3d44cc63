#include "objective/gemm.h"

#include <cblas.h>
#include <limits.h>

/* OpenBLAS cuts the inner dimension into pieces of its own, and not the same ones with one thread as with
 * several. Pieces no longer than its shortest are left whole, so the cuts are made here. */
enum { MOST_INNER = 256 };

static void piece(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, ki_real alpha,
                  const ki_real *a, int64_t lda, const ki_real *b, int64_t ldb, ki_real beta, ki_real *c,
                  int64_t ldc) {
    const enum CBLAS_TRANSPOSE ta = transpose_a ? CblasTrans : CblasNoTrans;
    const enum CBLAS_TRANSPOSE tb = transpose_b ? CblasTrans : CblasNoTrans;
#ifdef KITH_REAL_IS_FLOAT
    cblas_sgemm(CblasRowMajor, ta, tb, (blasint)m, (blasint)n, (blasint)k, alpha, a, (blasint)lda, b,
                (blasint)ldb, beta, c, (blasint)ldc);
#else
    cblas_dgemm(CblasRowMajor, ta, tb, (blasint)m, (blasint)n, (blasint)k, alpha, a, (blasint)lda, b,
                (blasint)ldb, beta, c, (blasint)ldc);
#endif
}

void ki_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, ki_real alpha,
             const ki_real *a, int64_t lda, const ki_real *b, int64_t ldb, ki_real beta, ki_real *c,
             int64_t ldc) {
    if (m <= 0 || n <= 0) return;
    int64_t at = 0;
    do {
        const int64_t some = k - at < MOST_INNER ? k - at : MOST_INNER;
        piece(transpose_a, transpose_b, m, n, some, alpha, a + (transpose_a ? at * lda : at), lda,
              b + (transpose_b ? at : at * ldb), ldb, at == 0 ? beta : 1, c, ldc);
        at += some;
    } while (at < k);
}
