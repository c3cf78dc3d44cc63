/* Matrix products in blocks whose sums do not depend on the number of threads. */
#include "objective/gemm.h"

#include <cblas.h>
#ifdef KITH_REAL_IS_FLOAT
#include <oneapi/dnnl/dnnl.h>
#endif

#include "base/alloc.h"
#include "base/blas.h"

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

/* OpenBLAS splits a long inner dimension into pieces, at different places with threads than without, which
 * changes the last bits. Pieces of at most 512, and a multiple of 32 if they are over 256, are split in the
 * same way by both. So anything longer is split here. */
static int64_t next_piece(int64_t k) {
    if (k >= 512) return 512;
    return k > 256 && k % 32 != 0 ? 256 : k;
}

/* oneDNN makes its kernel at the first product, and crashes if it has no memory for it. So the kernel is made here,
 * before it is needed, after checking that there is memory. */
kith_status ki_gemm_prepare(kith_error *err) {
    KI_TRY(ki_blas_prepare(1, err));
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

void ki_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, ki_real alpha,
             const ki_real *a, int64_t lda, const ki_real *b, int64_t ldb, ki_real beta, ki_real *c,
             int64_t ldc) {
    if (m <= 0 || n <= 0) return;
    const enum CBLAS_TRANSPOSE ta = transpose_a ? CblasTrans : CblasNoTrans;
    const enum CBLAS_TRANSPOSE tb = transpose_b ? CblasTrans : CblasNoTrans;
    int64_t at = 0;
    do {
        const int64_t piece = next_piece(k - at);
        gemm(ta, tb, m, n, piece, alpha, a + (transpose_a ? at * lda : at), lda,
             b + (transpose_b ? at : at * ldb), ldb, at == 0 ? beta : 1, c, ldc);
        at += piece;
    } while (at < k);
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
