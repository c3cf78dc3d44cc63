/* dst = src W^T + b in float: [mb, ic] and [oc, ic] plain. Linear layers are small compared with the maps
 * before them, so they are computed in float in every precision. */
#include "backend/cuda/rows/linear.h"

#include "backend/cuda/cuda.h"
#include "backend/cuda/gemm/gemm.h"
#include "backend/cuda/rows/kernels.h"

typedef struct linear {
    ki_kernel base;
    int64_t mb, ic, oc;
    ki_binding b;
} linear;

static void linear_free(ki_kernel *kernel) { ki_free(kernel); }

static kith_status linear_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                 ki_kernel **ret_kernel, kith_error *err) {
    linear *k = NULL;
    KI_TRY(ki_kernel_new(backend, &ki_cuda_linear, sizeof *k, &k, err));
    k->mb = spec->dst.shape.dim[0];
    k->ic = spec->src[0].shape.dim[1];
    k->oc = spec->dst.shape.dim[1];
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
    const linear *k = (linear *)kernel;
    const float *bias = k->b.param[KI_B].value;
    if (bias) KI_CUDA(ki_cuda_spread_rows(k->mb, k->oc, bias, k->b.dst, ki_cuda_of(kernel->backend)->stream));
    return ki_cuda_gemm(kernel->backend, false, true, k->mb, k->oc, k->ic, 1, k->b.src[0], KI_NUMBER_FLOAT,
                        k->ic, k->b.param[KI_W].value, k->ic, bias ? 1 : 0, k->b.dst, KI_NUMBER_FLOAT, k->oc,
                        err);
}

static kith_status add_gradients(ki_backend *backend, int64_t mb, int64_t ic, int64_t oc, const float *src,
                                 const float *diff_dst, float *diff_weights, float *diff_bias,
                                 kith_error *err) {
    if (diff_bias) KI_CUDA(ki_cuda_add_columns(mb, oc, diff_dst, diff_bias, ki_cuda_of(backend)->stream));
    return ki_cuda_gemm(backend, true, false, oc, ic, mb, 1, diff_dst, KI_NUMBER_FLOAT, oc, src, ic, 1,
                        diff_weights, KI_NUMBER_FLOAT, ic, err);
}

static kith_status linear_backward(ki_kernel *kernel, kith_error *err) {
    const linear *k = (linear *)kernel;
    const ki_param_slot *param = k->b.param;
    if (param[KI_W].diff)
        KI_TRY(add_gradients(kernel->backend, k->mb, k->ic, k->oc, k->b.src[0], k->b.diff_dst[0],
                             param[KI_W].diff, param[KI_B].diff, err));
    if (!k->b.diff_src[0]) return KITH_OK;
    return ki_cuda_gemm(kernel->backend, false, false, k->mb, k->ic, k->oc, 1, k->b.diff_dst[0],
                        KI_NUMBER_FLOAT, k->oc, param[KI_W].value, k->ic, 0, k->b.diff_src[0],
                        KI_NUMBER_FLOAT, k->ic, err);
}

kith_status ki_cuda_linear_grad(ki_backend *backend, const ki_edge *src_edge, const void *src,
                                const ki_real *diff_dst, int64_t oc, ki_real *diff_weights,
                                ki_real *diff_bias, kith_error *err) {
    return add_gradients(backend, src_edge->shape.dim[0], src_edge->shape.dim[1], oc, src, diff_dst,
                         diff_weights, diff_bias, err);
}

const ki_kernel_type ki_cuda_linear = {.create = linear_create,
                                       .bind = linear_bind,
                                       .forward = linear_forward,
                                       .backward = linear_backward,
                                       .free = linear_free};
