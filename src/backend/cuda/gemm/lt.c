/* Products as cuBLASLt's descriptors and calls. */
#include "backend/cuda/gemm/lt.h"

kith_status ki_cublas_fail(kith_error *err, cublasStatus_t status, const char *call) {
    const kith_status ours = status == CUBLAS_STATUS_ALLOC_FAILED ? KITH_ENOMEM : KITH_EBACKEND;
    return ki_fail(err, ours, "cuBLASLt: %s (%.80s)", cublasLtGetStatusString(status), call);
}

uint32_t ki_lt_alignment(const void *ptr) {
    const uintptr_t address = (uintptr_t)ptr | 256;
    return (uint32_t)(address & (~address + 1));
}

static cudaDataType type_of(ki_number type) {
    return type == KI_NUMBER_BF16 ? CUDA_R_16BF : type == KI_NUMBER_DOUBLE ? CUDA_R_64F : CUDA_R_32F;
}

static cublasComputeType_t compute_of(const ki_lt_product *p) {
    if (p->a_type == KI_NUMBER_DOUBLE) return CUBLAS_COMPUTE_64F;
    return p->tf32 && p->a_type == KI_NUMBER_FLOAT ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

static kith_status set_batch(cublasLtMatrixLayoutOpaque_t *layout, int batch, int64_t stride,
                             kith_error *err) {
    const int32_t count = batch;
    KI_CUBLAS(
        cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
    KI_CUBLAS(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                               sizeof stride));
    return KITH_OK;
}

kith_status ki_lt_describe(const ki_lt_product *p, ki_lt_call *ret_call, kith_error *err) {
    const cublasOperation_t first = p->tb ? CUBLAS_OP_T : CUBLAS_OP_N,
                            second = p->ta ? CUBLAS_OP_T : CUBLAS_OP_N;
    const uint32_t epilogue = p->has_bias && p->has_relu ? CUBLASLT_EPILOGUE_RELU_BIAS
                              : p->has_bias              ? CUBLASLT_EPILOGUE_BIAS
                              : p->has_relu              ? CUBLASLT_EPILOGUE_RELU
                                                         : CUBLASLT_EPILOGUE_DEFAULT;
    const uint64_t m = (uint64_t)p->m, n = (uint64_t)p->n, k = (uint64_t)p->k;
    ki_lt_call *c = ret_call;
    c->is_double = p->a_type == KI_NUMBER_DOUBLE;
    KI_CUBLAS(cublasLtMatmulDescInit(&c->desc, compute_of(p), c->is_double ? CUDA_R_64F : CUDA_R_32F));
    KI_CUBLAS(cublasLtMatmulDescSetAttribute(&c->desc, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first));
    KI_CUBLAS(cublasLtMatmulDescSetAttribute(&c->desc, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second));
    KI_CUBLAS(
        cublasLtMatmulDescSetAttribute(&c->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    KI_CUBLAS(cublasLtMatrixLayoutInit(&c->a, type_of(p->a_type), p->tb ? k : n, p->tb ? n : k, p->ldb));
    KI_CUBLAS(cublasLtMatrixLayoutInit(&c->b, type_of(p->a_type), p->ta ? m : k, p->ta ? k : m, p->lda));
    KI_CUBLAS(cublasLtMatrixLayoutInit(&c->c, type_of(p->c_type), n, m, p->ldc));
    if (p->batch == 1) return KITH_OK;
    KI_TRY(set_batch(&c->a, p->batch, p->stride_b, err));
    KI_TRY(set_batch(&c->b, p->batch, p->stride_a, err));
    return set_batch(&c->c, p->batch, p->stride_c, err);
}

kith_status ki_lt_offers(cublasLtHandle_t handle, ki_lt_call *call, const ki_lt_product *p,
                         size_t workspace_limit, int n, cublasLtMatmulHeuristicResult_t *ret_offers,
                         int *ret_n, kith_error *err) {
    cublasLtMatmulPreferenceOpaque_t preference;
    const uint64_t limit = workspace_limit;
    const uint32_t align_a = p->align_b, align_b = p->align_a, align_c = p->align_c;
    KI_CUBLAS(cublasLtMatmulPreferenceInit(&preference));
    KI_CUBLAS(cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                   &limit, sizeof limit));
    KI_CUBLAS(cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                                                   &align_a, sizeof align_a));
    KI_CUBLAS(cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                                                   &align_b, sizeof align_b));
    KI_CUBLAS(cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                                                   &align_c, sizeof align_c));
    KI_CUBLAS(cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
                                                   &align_c, sizeof align_c));
    *ret_n = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle, &call->desc, &call->a, &call->b, &call->c, &call->c, &preference, n, ret_offers, ret_n);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) {
        *ret_n = 0;
        return KITH_OK;
    }
    KI_CUBLAS(status);
    int kept = 0;
    for (int i = 0; i < *ret_n; i++) {
        if (ret_offers[i].state == CUBLAS_STATUS_SUCCESS) ret_offers[kept++] = ret_offers[i];
    }
    *ret_n = kept;
    return KITH_OK;
}

kith_status ki_lt_set_bias(ki_lt_call *call, const void *bias, kith_error *err) {
    KI_CUBLAS(
        cublasLtMatmulDescSetAttribute(&call->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
    return KITH_OK;
}

kith_status ki_lt_run(cublasLtHandle_t handle, ki_lt_call *call, const cublasLtMatmulAlgo_t *algo,
                      float alpha, const void *a, const void *b, float beta, const void *plus, void *c,
                      void *workspace, size_t workspace_bytes, cudaStream_t stream, kith_error *err) {
    const double factor[2] = {(double)alpha, (double)beta};
    const void *by = call->is_double ? (const void *)&factor[0] : &alpha,
               *plus_by = call->is_double ? (const void *)&factor[1] : &beta;
    KI_CUBLAS(cublasLtMatmul(handle, &call->desc, by, b, &call->a, a, &call->b, plus_by, plus, &call->c, c,
                             &call->c, algo, workspace, workspace_bytes, stream));
    return KITH_OK;
}
