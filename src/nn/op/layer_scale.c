/* layer_scale: a learned factor for each channel, by which a block of a ViT or a ConvNeXt begins small. */
#include "nn/op/rules.h"

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    node->shape = src[0];
    const ki_param_decl gamma = {.shape = KI_SHAPE1(ki_op_channels(&src[0])),
                                 .slot = KI_W,
                                 .trained = true,
                                 .fill = node->attr.layer_scale.fill};
    return ki_op_declare(arena, node, "gamma", gamma, err);
}

const ki_op ki_op_layer_scale = {.least_src = 1, .most_src = 1, .infer = infer};
