/* dst = src W^T + b by OpenBLAS: [mb, ic] and [oc, ic] plain. */
#include <cblas.h>

#include "backend/cpu/cpu.h"

typedef struct linear {
    ki_kernel base;
    int mb, ic, oc;
    ki_binding b;
} linear;

static void linear_free(ki_kernel *kernel) { ki_free(kernel); }

static kith_status check_sides(int64_t mb, int64_t ic, int64_t oc, kith_error *err) {
    if (mb > INT32_MAX || ic > INT32_MAX || oc > INT32_MAX)
        return ki_fail(err, KITH_ESHAPE, "a side of %lld x %lld x %lld is over 2^31", (long long)mb,
                       (long long)ic, (long long)oc);
    return KITH_OK;
}

static kith_status linear_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                 ki_kernel **ret_kernel, kith_error *err) {
    linear *k = NULL;
    const int64_t mb = spec->dst.shape.dim[0], ic = spec->src[0].shape.dim[1], oc = spec->dst.shape.dim[1];
    KI_TRY(check_sides(mb, ic, oc, err));
    KI_TRY(ki_kernel_new(backend, &cpu_linear, sizeof *k, &k, err));
    k->mb = (int)mb;
    k->ic = (int)ic;
    k->oc = (int)oc;
    *ret_info = (ki_kernel_info){.backward_reads_src = !spec->keeps_params, .skips_diffs = true};
    *ret_kernel = &k->base;
    return KITH_OK;
}

static kith_status linear_bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    (void)err;
    ((linear *)kernel)->b = *binding;
    return KITH_OK;
}

static kith_status linear_forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const linear *k = (linear *)kernel;
    const float *bias = k->b.param[KI_B].value;
    float *dst = k->b.dst;
    for (int i = 0; i < k->mb; i++) {
        for (int o = 0; o < k->oc; o++) dst[(int64_t)i * k->oc + o] = bias ? bias[o] : 0;
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, k->mb, k->oc, k->ic, 1, k->b.src[0], k->ic,
                k->b.param[KI_W].value, k->ic, 1, dst, k->oc);
    return KITH_OK;
}

static void add_grads(int mb, int ic, int oc, const float *src, const float *diff_dst, float *diff_weights,
                      float *diff_bias) {
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, oc, ic, mb, 1, diff_dst, oc, src, ic, 1,
                diff_weights, ic);
    for (int i = 0; diff_bias && i < mb; i++) cpu_accumulate(diff_bias, diff_dst + (int64_t)i * oc, oc);
}

kith_status cpu_linear_grad(ki_backend *backend, const ki_edge *src_edge, const void *src,
                            const ki_real *diff_dst, int64_t oc, ki_real *diff_weights, ki_real *diff_bias,
                            kith_error *err) {
    (void)backend;
    const int64_t mb = src_edge->shape.dim[0], ic = src_edge->shape.dim[1];
    KI_TRY(check_sides(mb, ic, oc, err));
    add_grads((int)mb, (int)ic, (int)oc, src, diff_dst, diff_weights, diff_bias);
    return KITH_OK;
}

static kith_status linear_backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const linear *k = (linear *)kernel;
    const float *diff_dst = k->b.diff_dst[0];
    if (k->b.param[KI_W].diff)
        add_grads(k->mb, k->ic, k->oc, k->b.src[0], diff_dst, k->b.param[KI_W].diff, k->b.param[KI_B].diff);
    if (k->b.diff_src[0])
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, k->mb, k->ic, k->oc, 1, diff_dst, k->oc,
                    k->b.param[KI_W].value, k->ic, 0, k->b.diff_src[0], k->ic);
    return KITH_OK;
}

const ki_kernel_type cpu_linear = {.create = linear_create,
                                   .bind = linear_bind,
                                   .forward = linear_forward,
                                   .backward = linear_backward,
                                   .free = linear_free};
