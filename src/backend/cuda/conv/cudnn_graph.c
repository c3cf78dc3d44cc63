/* A pass as a cuDNN graph: tensors, operations, pointers. */
#include "backend/cuda/conv/cudnn_graph.h"

#include <string.h>

#include "base/alloc.h"

/* Names of tensors inside a graph. */
enum { UID_SRC = 'x', UID_WEIGHTS = 'w', UID_DST = 'y', UID_BIAS = 'b', UID_INNER = 1000 };

kith_status ki_cudnn_fail(kith_error *err, cudnnStatus_t status, const char *call) {
    char why[160] = "";
    const int category = (int)status / 1000 * 1000;
    const kith_status ours = category == CUDNN_STATUS_NOT_SUPPORTED ? KITH_EUNSUPPORTED
                             : status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ? KITH_ENOMEM
                                                                                              : KITH_EBACKEND;
    cudnnGetLastErrorString(why, sizeof why);
    why[sizeof why - 1] = '\0';
    why[strcspn(why, "\n")] = '\0';
    return ki_fail(err, ours, "cuDNN: %s (%.80s)%s%s", cudnnGetErrorString(status), call, why[0] ? ": " : "",
                   why);
}

static cudnnDataType_t type_of(ki_number type) {
    return type == KI_NUMBER_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

kith_status ki_cudnn_part_new(ki_cudnn_graph *g, cudnnBackendDescriptorType_t type,
                              cudnnBackendDescriptor_t *ret_part, kith_error *err) {
    if (g->n_parts == KI_CUDNN_MAX_PARTS)
        return ki_fail(err, KITH_EINTERNAL, "a cuDNN graph of too many parts");
    KI_CUDNN(cudnnBackendCreateDescriptor(type, &g->part[g->n_parts]));
    *ret_part = g->part[g->n_parts++];
    return KITH_OK;
}

kith_status ki_cudnn_set_int(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, int64_t n,
                             const int64_t *values, kith_error *err) {
    KI_CUDNN(cudnnBackendSetAttribute(d, name, CUDNN_TYPE_INT64, n, values));
    return KITH_OK;
}

kith_status ki_cudnn_set_part(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                              cudnnBackendDescriptor_t value, kith_error *err) {
    KI_CUDNN(cudnnBackendSetAttribute(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value));
    return KITH_OK;
}

static kith_status set_type(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                            cudnnDataType_t type, kith_error *err) {
    KI_CUDNN(cudnnBackendSetAttribute(d, name, CUDNN_TYPE_DATA_TYPE, 1, &type));
    return KITH_OK;
}

/* [n, c, h, w] with strides in the same order. */
typedef struct tensor_spec {
    int64_t uid;
    cudnnDataType_t type;
    int64_t dim[4], stride[4];
    bool is_virtual;
} tensor_spec;

static kith_status add_tensor(ki_cudnn_graph *g, const tensor_spec *t, cudnnBackendDescriptor_t *ret_tensor,
                              kith_error *err) {
    const int64_t alignment = 16;
    KI_TRY(ki_cudnn_part_new(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR, ret_tensor, err));
    KI_TRY(set_type(*ret_tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, t->type, err));
    KI_TRY(ki_cudnn_set_int(*ret_tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, 4, t->dim, err));
    KI_TRY(ki_cudnn_set_int(*ret_tensor, CUDNN_ATTR_TENSOR_STRIDES, 4, t->stride, err));
    KI_TRY(ki_cudnn_set_int(*ret_tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, 1, &t->uid, err));
    KI_TRY(ki_cudnn_set_int(*ret_tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1, &alignment, err));
    if (t->is_virtual) {
        const bool yes = true;
        KI_CUDNN(
            cudnnBackendSetAttribute(*ret_tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes));
    }
    KI_CUDNN(cudnnBackendFinalize(*ret_tensor));
    return KITH_OK;
}

static tensor_spec map_spec(int64_t uid, ki_number type, int64_t mb, int64_t c, int64_t h, int64_t w,
                            const ki_conv_strides *s) {
    return (tensor_spec){
        .uid = uid, .type = type_of(type), .dim = {mb, c, h, w}, .stride = {s->image, 1, s->row, s->pixel}};
}

static tensor_spec src_spec(const ki_conv_problem *p, int64_t uid) {
    return map_spec(uid, p->type, p->mb, p->ic, p->ih, p->iw, &p->src);
}

static tensor_spec dst_spec(const ki_conv_problem *p, int64_t uid) {
    return map_spec(uid, p->type, p->mb, p->oc, p->oh, p->ow, &p->dst);
}

static tensor_spec weights_spec(const ki_conv_problem *p) {
    const int64_t ic = ki_conv_group_ic(p); /* fewer than the map's: cuDNN counts the groups by this */
    return (tensor_spec){.uid = UID_WEIGHTS,
                         .type = type_of(p->type),
                         .dim = {p->oc, ic, p->kh, p->kw},
                         .stride = {p->kh * p->kw * ic, 1, p->kw * ic, ic}};
}

/* A result inside the graph: float, never in memory. */
static tensor_spec inner_of(tensor_spec like, int number) {
    like.uid = UID_INNER + number;
    like.type = CUDNN_DATA_FLOAT;
    like.is_virtual = true;
    return like;
}

static kith_status add_convolution(ki_cudnn_graph *g, const ki_conv_problem *p, cudnnBackendDescriptor_t *ret,
                                   kith_error *err) {
    const int64_t n_dims = 2;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    KI_TRY(ki_cudnn_part_new(g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, ret, err));
    KI_TRY(ki_cudnn_set_int(*ret, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 1, &n_dims, err));
    KI_TRY(set_type(*ret, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT, err));
    KI_CUDNN(cudnnBackendSetAttribute(*ret, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1,
                                      &mode));
    KI_TRY(ki_cudnn_set_int(*ret, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 2, (int64_t[]){p->ph, p->pw}, err));
    KI_TRY(ki_cudnn_set_int(*ret, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 2, (int64_t[]){p->ph_end, p->pw_end},
                            err));
    KI_TRY(ki_cudnn_set_int(*ret, CUDNN_ATTR_CONVOLUTION_DILATIONS, 2, (int64_t[]){1, 1}, err));
    KI_TRY(ki_cudnn_set_int(*ret, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 2, (int64_t[]){p->sh, p->sw}, err));
    KI_CUDNN(cudnnBackendFinalize(*ret));
    return KITH_OK;
}

/* The attribute names of the three passes. */
typedef struct pass_names {
    cudnnBackendDescriptorType_t operation;
    cudnnBackendAttributeName_t alpha, beta, convolution, src, weights, dst;
} pass_names;

static const pass_names names_of[KI_N_CONV_PASSES] = {
    [KI_CONV_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    [KI_CONV_DIFF_SRC] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    [KI_CONV_DIFF_WEIGHTS] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
};

static kith_status add_pass(ki_cudnn_graph *g, const ki_conv_problem *p, cudnnBackendDescriptor_t src,
                            cudnnBackendDescriptor_t weights, cudnnBackendDescriptor_t dst,
                            cudnnBackendDescriptor_t *ret_operation, kith_error *err) {
    const pass_names *names = &names_of[p->pass];
    const float one = 1, zero = 0;
    cudnnBackendDescriptor_t convolution = NULL;
    KI_TRY(add_convolution(g, p, &convolution, err));
    KI_TRY(ki_cudnn_part_new(g, names->operation, ret_operation, err));
    KI_CUDNN(cudnnBackendSetAttribute(*ret_operation, names->alpha, CUDNN_TYPE_FLOAT, 1, &one));
    KI_CUDNN(cudnnBackendSetAttribute(*ret_operation, names->beta, CUDNN_TYPE_FLOAT, 1, &zero));
    KI_TRY(ki_cudnn_set_part(*ret_operation, names->convolution, convolution, err));
    KI_TRY(ki_cudnn_set_part(*ret_operation, names->src, src, err));
    KI_TRY(ki_cudnn_set_part(*ret_operation, names->weights, weights, err));
    KI_TRY(ki_cudnn_set_part(*ret_operation, names->dst, dst, err));
    KI_CUDNN(cudnnBackendFinalize(*ret_operation));
    return KITH_OK;
}

/* y = x + b, or y = max(x, 0) with b NULL. */
static kith_status add_pointwise(ki_cudnn_graph *g, cudnnPointwiseMode_t mode, cudnnBackendDescriptor_t x,
                                 cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t y,
                                 cudnnBackendDescriptor_t *ret_operation, kith_error *err) {
    cudnnBackendDescriptor_t pointwise = NULL;
    KI_TRY(ki_cudnn_part_new(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, &pointwise, err));
    KI_CUDNN(
        cudnnBackendSetAttribute(pointwise, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode));
    KI_TRY(set_type(pointwise, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT, err));
    KI_CUDNN(cudnnBackendFinalize(pointwise));
    KI_TRY(ki_cudnn_part_new(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, ret_operation, err));
    KI_TRY(ki_cudnn_set_part(*ret_operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise, err));
    KI_TRY(ki_cudnn_set_part(*ret_operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x, err));
    if (b) KI_TRY(ki_cudnn_set_part(*ret_operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b, err));
    KI_TRY(ki_cudnn_set_part(*ret_operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y, err));
    KI_CUDNN(cudnnBackendFinalize(*ret_operation));
    return KITH_OK;
}

enum { MAX_OPERATIONS = 3 };

static kith_status build_forward(ki_cudnn_graph *g, const ki_conv_problem *p, ki_cudnn_form form,
                                 cudnnBackendDescriptor_t *operation, int *n, kith_error *err) {
    const bool has_bias = form != KI_CUDNN_BARE && p->has_bias,
               has_relu = form != KI_CUDNN_BARE && p->has_relu;
    const tensor_spec x = src_spec(p, UID_SRC), w = weights_spec(p), y = dst_spec(p, UID_DST);
    cudnnBackendDescriptor_t src = NULL, weights = NULL, dst = NULL, bias = NULL, inner[2] = {NULL};
    KI_TRY(add_tensor(g, &x, &src, err));
    KI_TRY(add_tensor(g, &w, &weights, err));
    KI_TRY(add_tensor(g, &y, &dst, err));
    for (int i = 0; i < (int)has_bias + (int)has_relu; i++) {
        const tensor_spec t = inner_of(y, i);
        KI_TRY(add_tensor(g, &t, &inner[i], err));
    }
    cudnnBackendDescriptor_t from = has_bias || has_relu ? inner[0] : dst;
    KI_TRY(add_pass(g, p, src, weights, from, &operation[(*n)++], err));
    if (has_bias) {
        const tensor_spec b = {.uid = UID_BIAS,
                               .type = type_of(p->type),
                               .dim = {1, p->oc, 1, 1},
                               .stride = {p->oc, 1, p->oc, p->oc}};
        cudnnBackendDescriptor_t to = has_relu ? inner[1] : dst;
        KI_TRY(add_tensor(g, &b, &bias, err));
        KI_TRY(add_pointwise(g, CUDNN_POINTWISE_ADD, from, bias, to, &operation[(*n)++], err));
        from = to;
    }
    if (has_relu)
        KI_TRY(add_pointwise(g, CUDNN_POINTWISE_RELU_FWD, from, NULL, dst, &operation[(*n)++], err));
    return KITH_OK;
}

static kith_status build_diff_src(ki_cudnn_graph *g, const ki_conv_problem *p,
                                  cudnnBackendDescriptor_t *operation, int *n, kith_error *err) {
    const tensor_spec dx = src_spec(p, UID_SRC), w = weights_spec(p), dy = dst_spec(p, UID_DST);
    cudnnBackendDescriptor_t diff_src = NULL, weights = NULL, diff_dst = NULL;
    KI_TRY(add_tensor(g, &dx, &diff_src, err));
    KI_TRY(add_tensor(g, &w, &weights, err));
    KI_TRY(add_tensor(g, &dy, &diff_dst, err));
    return add_pass(g, p, diff_src, weights, diff_dst, &operation[(*n)++], err);
}

static kith_status build_diff_weights(ki_cudnn_graph *g, const ki_conv_problem *p,
                                      cudnnBackendDescriptor_t *operation, int *n, kith_error *err) {
    const tensor_spec x = src_spec(p, UID_SRC), dy = dst_spec(p, UID_DST), dw = weights_spec(p);
    cudnnBackendDescriptor_t src = NULL, diff_weights = NULL, diff_dst = NULL;
    KI_TRY(add_tensor(g, &x, &src, err));
    KI_TRY(add_tensor(g, &dw, &diff_weights, err));
    KI_TRY(add_tensor(g, &dy, &diff_dst, err));
    return add_pass(g, p, src, diff_weights, diff_dst, &operation[(*n)++], err);
}

static kith_status build(cudnnHandle_t handle, ki_cudnn_graph *g, const ki_conv_problem *p,
                         ki_cudnn_form form, kith_error *err) {
    cudnnBackendDescriptor_t operation[MAX_OPERATIONS] = {NULL};
    int n = 0;
    switch (p->pass) {
    case KI_CONV_FORWARD: KI_TRY(build_forward(g, p, form, operation, &n, err)); break;
    case KI_CONV_DIFF_SRC: KI_TRY(build_diff_src(g, p, operation, &n, err)); break;
    default: KI_TRY(build_diff_weights(g, p, operation, &n, err)); break;
    }
    KI_TRY(ki_cudnn_part_new(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, &g->graph, err));
    KI_CUDNN(cudnnBackendSetAttribute(g->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                      n, operation));
    KI_CUDNN(
        cudnnBackendSetAttribute(g->graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle));
    KI_CUDNN(cudnnBackendFinalize(g->graph));
    return KITH_OK;
}

kith_status ki_cudnn_graph_init(cudnnHandle_t handle, const ki_conv_problem *problem, ki_cudnn_form form,
                                ki_cudnn_graph *ret_graph, kith_error *err) {
    *ret_graph = (ki_cudnn_graph){0};
    const kith_status status = build(handle, ret_graph, problem, form, err);
    if (status != KITH_OK) ki_cudnn_graph_release(ret_graph);
    return status;
}

void ki_cudnn_graph_release(ki_cudnn_graph *graph) {
    while (graph->n_parts > 0) cudnnBackendDestroyDescriptor(graph->part[--graph->n_parts]);
    graph->graph = NULL;
}

static kith_status make_pointers(cudnnBackendDescriptor_t d, int n, const int64_t *uid,
                                 const void *const *ptr, void *workspace, kith_error *err) {
    KI_TRY(ki_cudnn_set_int(d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, n, uid, err));
    KI_CUDNN(cudnnBackendSetAttribute(d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, ptr));
    KI_CUDNN(
        cudnnBackendSetAttribute(d, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace));
    KI_CUDNN(cudnnBackendFinalize(d));
    return KITH_OK;
}

kith_status ki_cudnn_pointers_new(const ki_conv_problem *p, ki_cudnn_form form, const ki_conv_io *io,
                                  cudnnBackendDescriptor_t *ret_pointers, kith_error *err) {
    int64_t uid[KI_CUDNN_MAX_TENSORS] = {UID_SRC, UID_WEIGHTS, UID_DST};
    const void *ptr[KI_CUDNN_MAX_TENSORS] = {NULL};
    int n = 3;
    switch (p->pass) {
    case KI_CONV_FORWARD:
        ptr[0] = io->src, ptr[1] = io->weights, ptr[2] = io->dst;
        if (form != KI_CUDNN_BARE && p->has_bias) {
            uid[n] = UID_BIAS;
            ptr[n++] = io->bias_stored;
        }
        break;
    case KI_CONV_DIFF_SRC: ptr[0] = io->diff_src, ptr[1] = io->weights, ptr[2] = io->diff_dst; break;
    default: ptr[0] = io->src, ptr[1] = io->diff_weights, ptr[2] = io->diff_dst; break;
    }
    cudnnBackendDescriptor_t pointers = NULL;
    KI_CUDNN(cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pointers));
    const kith_status status = make_pointers(pointers, n, uid, ptr, io->workspace, err);
    if (status == KITH_OK)
        *ret_pointers = pointers;
    else
        cudnnBackendDestroyDescriptor(pointers);
    return status;
}
