/* cuBLASLt behind gemm.c and the convolutions of 1x1: one product as its descriptors, the algorithms offered
 * for it, and a call. cuBLASLt is column-major, so a and b are swapped: the row-major c = a b is the
 * column-major c^T = b^T a^T. */
#ifndef KI_CUDA_LT_H
#define KI_CUDA_LT_H

#include <cublasLt.h>

#include "backend/cuda/gemm/gemm.h"

/* Turns a failure of cuBLAS into an error of ours, with the text of the call. */
#define KI_CUBLAS(call)                                                                         \
    do {                                                                                        \
        const cublasStatus_t ki_cublas_ = (call);                                               \
        if (ki_cublas_ != CUBLAS_STATUS_SUCCESS) return ki_cublas_fail(err, ki_cublas_, #call); \
    } while (0)

kith_status ki_cublas_fail(kith_error *err, cublasStatus_t status, const char *call);

/* Everything but pointers and factors. Compared as bytes: clear it before filling. */
typedef struct ki_lt_product {
    bool ta, tb, has_bias, has_relu; /* epilogue: bias [n] of c's type on every row, then ReLU */
    bool tf32;
    ki_number a_type, c_type;
    int64_t m, n, k, lda, ldb, ldc;
    int64_t stride_a, stride_b, stride_c;
    int batch;
    uint32_t align_a, align_b, align_c; /* all pointers are multiples of so many bytes */
} ki_lt_product;

typedef struct ki_lt_call {
    cublasLtMatmulDescOpaque_t desc;
    cublasLtMatrixLayoutOpaque_t a, b, c;
    bool is_double; /* factors too */
} ki_lt_call;

/* The largest power of two up to 256 that divides an address. */
uint32_t ki_lt_alignment(const void *ptr);

kith_status ki_lt_describe(const ki_lt_product *product, ki_lt_call *ret_call, kith_error *err);
/* Up to n algorithms, the most promising first; *ret_n may be 0. */
kith_status ki_lt_offers(cublasLtHandle_t handle, ki_lt_call *call, const ki_lt_product *product,
                         size_t workspace_limit, int n, cublasLtMatmulHeuristicResult_t *ret_offers,
                         int *ret_n, kith_error *err);
kith_status ki_lt_set_bias(ki_lt_call *call, const void *bias, kith_error *err);
/* c = alpha a b + beta plus; `plus` is c, or laid out as c. */
kith_status ki_lt_run(cublasLtHandle_t handle, ki_lt_call *call, const cublasLtMatmulAlgo_t *algo,
                      float alpha, const void *a, const void *b, float beta, const void *plus, void *c,
                      void *workspace, size_t workspace_bytes, cudaStream_t stream, kith_error *err);

#endif
