/* linear: dst[oc] = sum over ic of weights * src + bias, of vectors and tokens. */
#include "nn/op/rules.h"

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    const ki_linear_attr *a = &node->attr.linear;
    KI_TRY(ki_op_wants_rows(&src[0], err));
    KI_TRY(ki_op_wants_size("the number of outputs", a->oc, 1, err));
    node->shape = src[0];
    node->shape.dim[src[0].n_dims - 1] = a->oc;

    const int64_t ic = ki_shape_width(&src[0]);
    const ki_param_decl weights = {.shape = KI_SHAPE2(a->oc, ic),
                                   .slot = KI_W,
                                   .trained = true,
                                   .fan_in = ic,
                                   .fan_out = a->oc,
                                   .start = a->start};
    KI_TRY(ki_op_declare(arena, node, "weight", weights, err));
    if (!a->bias) return KITH_OK;
    ki_param_decl bias = {.shape = KI_SHAPE1(a->oc), .slot = KI_B, .trained = true};
    if (a->start == KI_START_TORCH) bias.fan_in = ic, bias.fan_out = a->oc, bias.start = a->start;
    return ki_op_declare(arena, node, "bias", bias, err);
}

static double flops(const ki_node *node, const ki_shape *src) {
    return 2.0 * (double)ki_shape_width(&src[0]) * (double)ki_shape_count(&node->shape);
}

const ki_op ki_op_linear = {.least_src = 1, .most_src = 1, .infer = infer, .flops = flops};
