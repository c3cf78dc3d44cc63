/* backend/cuda/gemm/gemm.h on OpenBLAS. bf16 operands become float, products are float sums, bf16 results are
 * rounded at the end, as on the device. */
#include "backend/cuda/gemm/gemm.h"

#include <cblas.h>
#include <stdlib.h>

#include "backend/cuda/cuda.h"
#include "emulate/emulated.h"

typedef struct product {
    bool ta, tb;
    int64_t m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c;
    int batch;
    float alpha, beta;
    const void *a, *b, *bias; /* bias NULL: none */
    void *c;
    ki_number a_type, c_type;
} product;

/* rows x cols of an operand in float, packed; the caller frees. */
static float *operand(const void *from, ki_number type, int64_t rows, int64_t cols, int64_t ld) {
    float *to = malloc((size_t)(rows * cols + 1) * sizeof *to);
    if (!to) abort();
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++)
            to[i * cols + j] = type == KI_NUMBER_BF16 ? ki_bf16_to_float(((const uint16_t *)from)[i * ld + j])
                                                      : ((const float *)from)[i * ld + j];
    }
    return to;
}

static void product_run(const product *p, const void *pa, const void *pb, void *pc) {
    const int64_t a_rows = p->ta ? p->k : p->m, a_cols = p->ta ? p->m : p->k;
    const int64_t b_rows = p->tb ? p->n : p->k, b_cols = p->tb ? p->k : p->n;
    float *a = operand(pa, p->a_type, a_rows, a_cols, p->lda);
    float *b = operand(pb, p->a_type, b_rows, b_cols, p->ldb);
    float *c = p->beta != 0 ? operand(pc, p->c_type, p->m, p->n, p->ldc)
                            : calloc((size_t)(p->m * p->n + 1), sizeof *c);
    if (!c) abort();
    cblas_sgemm(CblasRowMajor, p->ta ? CblasTrans : CblasNoTrans, p->tb ? CblasTrans : CblasNoTrans,
                (int)p->m, (int)p->n, (int)p->k, p->alpha, a, (int)a_cols, b, (int)b_cols, p->beta, c,
                (int)p->n);
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            float value = c[i * p->n + j];
            if (p->bias)
                value += p->c_type == KI_NUMBER_BF16 ? ki_bf16_to_float(((const uint16_t *)p->bias)[j])
                                                     : ((const float *)p->bias)[j];
            if (p->c_type == KI_NUMBER_BF16)
                ((uint16_t *)pc)[i * p->ldc + j] = ki_float_to_bf16(value);
            else
                ((float *)pc)[i * p->ldc + j] = value;
        }
    }
    free(a);
    free(b);
    free(c);
}

static void double_run(const product *p, const void *a, const void *b, void *c) {
    cblas_dgemm(CblasRowMajor, p->ta ? CblasTrans : CblasNoTrans, p->tb ? CblasTrans : CblasNoTrans,
                (int)p->m, (int)p->n, (int)p->k, (double)p->alpha, a, (int)p->lda, b, (int)p->ldb,
                (double)p->beta, c, (int)p->ldc);
}

static void batch_run(void *args) {
    const product *p = args;
    const size_t a_bytes = ki_number_bytes(p->a_type), c_bytes = ki_number_bytes(p->c_type);
    for (int i = 0; i < p->batch; i++)
        (p->a_type == KI_NUMBER_DOUBLE ? double_run : product_run)(
            p, (const char *)p->a + (size_t)(i * p->stride_a) * a_bytes,
            (const char *)p->b + (size_t)(i * p->stride_b) * a_bytes,
            (char *)p->c + (size_t)(i * p->stride_c) * c_bytes);
}

kith_status ki_cuda_gemm_batched(ki_backend *backend, bool ta, bool tb, int64_t m, int64_t n, int64_t k,
                                 float alpha, const void *a, ki_number a_type, int64_t lda, int64_t stride_a,
                                 const void *b, int64_t ldb, int64_t stride_b, float beta, void *c,
                                 ki_number c_type, int64_t ldc, int64_t stride_c, int batch,
                                 kith_error *err) {
    const product p = {ta,       tb,    m,     n,    k, lda, ldb,  ldc, stride_a, stride_b,
                       stride_c, batch, alpha, beta, a, b,   NULL, c,   a_type,   c_type};
    if (m <= 0 || n <= 0 || batch <= 0) return KITH_OK;
    KI_CUDA(ki_emulate_run(ki_cuda_of(backend)->stream, batch_run, &p, sizeof p));
    return KITH_OK;
}

kith_status ki_cuda_gemm(ki_backend *backend, bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha,
                         const void *a, ki_number a_type, int64_t lda, const void *b, int64_t ldb, float beta,
                         void *c, ki_number c_type, int64_t ldc, kith_error *err) {
    return ki_cuda_gemm_batched(backend, ta, tb, m, n, k, alpha, a, a_type, lda, 0, b, ldb, 0, beta, c,
                                c_type, ldc, 0, 1, err);
}

kith_status ki_cuda_gemm_bias(ki_backend *backend, bool ta, bool tb, int64_t m, int64_t n, int64_t k,
                              const void *a, ki_number a_type, int64_t lda, const void *b, int64_t ldb,
                              const void *bias, void *c, ki_number c_type, int64_t ldc, kith_error *err) {
    const product p = {.ta = ta,
                       .tb = tb,
                       .m = m,
                       .n = n,
                       .k = k,
                       .lda = lda,
                       .ldb = ldb,
                       .ldc = ldc,
                       .batch = 1,
                       .alpha = 1,
                       .a = a,
                       .b = b,
                       .bias = bias,
                       .c = c,
                       .a_type = a_type,
                       .c_type = c_type};
    KI_CUDA(ki_emulate_run(ki_cuda_of(backend)->stream, batch_run, &p, sizeof p));
    return KITH_OK;
}
