/* batch_norm: gamma * (src - mean) / sqrt(var + eps) + beta per channel of a map, or per number of vectors. */
#include "nn/op/rules.h"

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    const ki_bn_attr *a = &node->attr.bn;
    if (!(a->eps > 0)) return ki_fail(err, KITH_EINVAL, "eps is %g, wanted above 0", a->eps);
    if (!(a->momentum >= 0 && a->momentum <= 1))
        return ki_fail(err, KITH_EINVAL, "momentum is %g, wanted 0 to 1", a->momentum);
    node->shape = src[0];

    const ki_shape per_channel = KI_SHAPE1(src[0].dim[1]);
    const ki_param_decl gamma = {.shape = per_channel, .slot = KI_W, .trained = true, .fill = 1};
    const ki_param_decl beta = {.shape = per_channel, .slot = KI_B, .trained = true, .fill = 0};
    const ki_param_decl mean = {.shape = per_channel, .slot = KI_MEAN, .trained = false, .fill = 0};
    const ki_param_decl var = {.shape = per_channel, .slot = KI_VAR, .trained = false, .fill = 1};
    KI_TRY(ki_op_declare(arena, node, "weight", gamma, err));
    KI_TRY(ki_op_declare(arena, node, "bias", beta, err));
    KI_TRY(ki_op_declare(arena, node, "running_mean", mean, err));
    return ki_op_declare(arena, node, "running_var", var, err);
}

const ki_op ki_op_batch_norm = {.least_src = 1, .most_src = 1, .infer = infer};
