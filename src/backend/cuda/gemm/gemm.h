/* Matrix products on the device. Row-major, queued on the backend's stream; may be captured.
 *
 * Results depend only on shapes, types and alignments: the algorithm is the library's first choice, asked for
 * once per shape and kept. The first product of a shape may allocate host memory; later ones allocate
 * nothing. The emulator (test/emulate) has the same functions on the host. */
#ifndef KI_CUDA_GEMM_H
#define KI_CUDA_GEMM_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/cuda/number.h"
#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ki_backend ki_backend;

/* c [m, n] = alpha op(a) op(b) + beta c, with row lengths lda, ldb, ldc in elements.
 * op(a) is [m, k]: a is [m, k], or [k, m] with ta; op(b) is [k, n]: b is [k, n], or [n, k] with tb.
 * a and b are of a_type, c of c_type; float a takes float c, double takes double. Sums are in float, those
 * of doubles in double; float by float is exact float32 unless the backend's options allow TF32. With beta 0 the old c is not read. */
kith_status ki_cuda_gemm(ki_backend *backend, bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha,
                         const void *a, ki_number a_type, int64_t lda, const void *b, int64_t ldb, float beta,
                         void *c, ki_number c_type, int64_t ldc, kith_error *err);

/* The same for `batch` products, stride_a, stride_b, stride_c elements apart (0: all use the one). */
kith_status ki_cuda_gemm_batched(ki_backend *backend, bool ta, bool tb, int64_t m, int64_t n, int64_t k,
                                 float alpha, const void *a, ki_number a_type, int64_t lda, int64_t stride_a,
                                 const void *b, int64_t ldb, int64_t stride_b, float beta, void *c,
                                 ki_number c_type, int64_t ldc, int64_t stride_c, int batch, kith_error *err);

/* c [m, n] = op(a) op(b) + bias in every row; bias is [n], of c's type. */
kith_status ki_cuda_gemm_bias(ki_backend *backend, bool ta, bool tb, int64_t m, int64_t n, int64_t k,
                              const void *a, ki_number a_type, int64_t lda, const void *b, int64_t ldb,
                              const void *bias, void *c, ki_number c_type, int64_t ldc, kith_error *err);

#ifdef __cplusplus
}
#endif

#endif
