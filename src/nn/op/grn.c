/* grn: global response normalisation: channels compete by their norms over the map. Source: Woo et al., ConvNeXt V2, CVPR 2023. */
#include "nn/op/rules.h"

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    const double eps = node->attr.grn.eps;
    KI_TRY(ki_op_wants_map(&src[0], err));
    if (!(eps > 0)) return ki_fail(err, KITH_EINVAL, "eps is %g, wanted above 0", eps);
    node->shape = src[0];

    const ki_shape per_channel = KI_SHAPE1(src[0].dim[1]);
    const ki_param_decl gamma = {.shape = per_channel, .slot = KI_W, .trained = true};
    const ki_param_decl beta = {.shape = per_channel, .slot = KI_B, .trained = true};
    KI_TRY(ki_op_declare(arena, node, "weight", gamma, err));
    return ki_op_declare(arena, node, "bias", beta, err);
}

const ki_op ki_op_grn = {.least_src = 1, .most_src = 1, .infer = infer};
