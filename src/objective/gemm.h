/* Matrix products through BLAS, for ki_real. Row-major; ld is the distance between rows. */
#ifndef KI_OBJECTIVE_GEMM_H
#define KI_OBJECTIVE_GEMM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/real.h"

/* c [m, n] = alpha * op(a) op(b) + beta * c, op(a) [m, k], op(b) [k, n]; beta 0 ignores what c held. */
void ki_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, ki_real alpha,
             const ki_real *a, int64_t lda, const ki_real *b, int64_t ldb, ki_real beta, ki_real *c,
             int64_t ldc);

/* The same on the calling thread only, for use inside parallel work: c = alpha * a op(b) + beta * c. */
void ki_gemm_one(bool transpose_b, int64_t m, int64_t n, int64_t k, ki_real alpha, const ki_real *a,
                 int64_t lda, const ki_real *b, int64_t ldb, ki_real beta, ki_real *c, int64_t ldc);

/* Call this before the first product: the libraries take memory that they keep, or KITH_ENOMEM. */
kith_status ki_gemm_prepare(kith_error *err);

#endif
