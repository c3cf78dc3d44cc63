/* Products by cuBLASLt. Asking its heuristics takes longer than many products, so the answer is kept by
 * shape. There are as many shapes as call sites, and they are found by hash in a list. */
#include "backend/cuda/gemm/gemm.h"

#include <string.h>

#include "backend/cuda/gemm/lt.h"
#include "backend/cuda/libraries.h"

struct ki_lt_kept {
    uint64_t hash;
    ki_lt_product product;
    cublasLtMatmulAlgo_t algo;
};

static uint64_t hash_of(const ki_lt_product *product) {
    const unsigned char *bytes = (const unsigned char *)product;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < sizeof *product; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

static kith_status algorithm_of(ki_cuda_libraries *libraries, const ki_lt_product *p, ki_lt_call *call,
                                cublasLtMatmulAlgo_t *ret_algo, kith_error *err) {
    const uint64_t hash = hash_of(p);
    for (size_t i = 0; i < libraries->n_kept; i++) {
        const ki_lt_kept *kept = &libraries->kept[i];
        if (kept->hash != hash || memcmp(&kept->product, p, sizeof *p) != 0) continue;
        *ret_algo = kept->algo;
        return KITH_OK;
    }
    cublasLtMatmulHeuristicResult_t offer;
    int n = 0;
    KI_TRY(ki_lt_offers(libraries->lt, call, p, libraries->workspace_bytes, 1, &offer, &n, err));
    if (n == 0)
        return ki_fail(
            err, KITH_EUNSUPPORTED,
            "cuBLASLt has no algorithm for a product of %lld x %lld x %lld, rows of %lld, %lld, %lld",
            (long long)p->m, (long long)p->n, (long long)p->k, (long long)p->lda, (long long)p->ldb,
            (long long)p->ldc);
    KI_TRY(ki_grow(&libraries->kept, &libraries->kept_capacity, libraries->n_kept + 1,
                   sizeof *libraries->kept, "algorithms of products", err));
    libraries->kept[libraries->n_kept++] = (ki_lt_kept){.hash = hash, .product = *p, .algo = offer.algo};
    *ret_algo = offer.algo;
    return KITH_OK;
}

typedef struct operands {
    const void *a, *b, *bias; /* bias NULL: none */
    void *c;
    float alpha, beta;
} operands;

/* p lacks what the backend and the pointers say. */
static kith_status run(ki_backend *backend, ki_lt_product *p, const operands *o, kith_error *err) {
    ki_cuda_libraries *libraries = NULL;
    ki_lt_call call;
    cublasLtMatmulAlgo_t algo;
    if (p->m < 1 || p->n < 1 || p->k < 1 || p->batch < 1)
        return ki_fail(err, KITH_ESHAPE,
                       "a product of %lld x %lld x %lld, %d times; wanted 1 or more of each", (long long)p->m,
                       (long long)p->n, (long long)p->k, p->batch);
    KI_TRY(ki_cuda_libraries_of(backend, &libraries, err));
    p->tf32 = backend->options.tf32, p->has_bias = o->bias != NULL;
    p->align_a = ki_lt_alignment(o->a), p->align_b = ki_lt_alignment(o->b),
    p->align_c = ki_lt_alignment(o->c);
    KI_TRY(ki_lt_describe(p, &call, err));
    KI_TRY(algorithm_of(libraries, p, &call, &algo, err));
    if (o->bias) KI_TRY(ki_lt_set_bias(&call, o->bias, err));
    return ki_lt_run(libraries->lt, &call, &algo, o->alpha, o->a, o->b, o->beta, o->c, o->c,
                     libraries->workspace, libraries->workspace_bytes, ki_cuda_of(backend)->stream, err);
}

kith_status ki_cuda_gemm_batched(ki_backend *backend, bool ta, bool tb, int64_t m, int64_t n, int64_t k,
                                 float alpha, const void *a, ki_number a_type, int64_t lda, int64_t stride_a,
                                 const void *b, int64_t ldb, int64_t stride_b, float beta, void *c,
                                 ki_number c_type, int64_t ldc, int64_t stride_c, int batch,
                                 kith_error *err) {
    const operands o = {.a = a, .b = b, .c = c, .alpha = alpha, .beta = beta};
    ki_lt_product p;
    memset(&p, 0, sizeof p); /* compared as bytes */
    p.ta = ta, p.tb = tb, p.a_type = a_type, p.c_type = c_type;
    p.m = m, p.n = n, p.k = k, p.lda = lda, p.ldb = ldb, p.ldc = ldc;
    p.batch = batch, p.stride_a = stride_a, p.stride_b = stride_b, p.stride_c = stride_c;
    return run(backend, &p, &o, err);
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
    const operands o = {.a = a, .b = b, .bias = bias, .c = c, .alpha = 1};
    ki_lt_product p;
    memset(&p, 0, sizeof p); /* compared as bytes */
    p.ta = ta, p.tb = tb, p.a_type = a_type, p.c_type = c_type;
    p.m = m, p.n = n, p.k = k, p.lda = lda, p.ldb = ldb, p.ldc = ldc, p.batch = 1;
    return run(backend, &p, &o, err);
}
