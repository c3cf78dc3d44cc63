/* layer_norm: gamma * (src - mean) / sqrt(var + eps) + beta over the numbers of each vector, each token, or the channels of
 * each pixel of a map. RMS norm: without the mean and beta. */
#include "nn/op/rules.h"

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    const double eps = node->attr.layer_norm.eps;
    if (!(eps > 0)) return ki_fail(err, KITH_EINVAL, "eps is %g, wanted above 0", eps);
    node->shape = src[0];

    const ki_shape per_number = KI_SHAPE1(ki_op_channels(&src[0]));
    const ki_param_decl gamma = {.shape = per_number, .slot = KI_W, .trained = true, .fill = 1};
    const ki_param_decl beta = {.shape = per_number, .slot = KI_B, .trained = true, .fill = 0};
    KI_TRY(ki_op_declare(arena, node, "weight", gamma, err));
    return node->attr.layer_norm.rms ? KITH_OK : ki_op_declare(arena, node, "bias", beta, err);
}

const ki_op ki_op_layer_norm = {.least_src = 1, .most_src = 1, .infer = infer};
