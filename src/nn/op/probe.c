/* probe: learned tokens, the same for each row: the queries of a pooling by attention. */
#include "nn/op/rules.h"

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    const int64_t n = node->attr.probe.n, c = ki_shape_width(&src[0]);
    KI_TRY(ki_op_wants_tokens(&src[0], err));
    KI_TRY(ki_op_wants_size("the number of learned tokens", n, 1, err));
    node->shape = KI_SHAPE3(src[0].dim[0], n, c);
    const ki_param_decl weights = {
        .shape = KI_SHAPE2(n, c), .slot = KI_W, .trained = true, .fan_in = c, .start = KI_START_SMALL};
    return ki_op_declare(arena, node, "weight", weights, err);
}

const ki_op ki_op_probe = {.least_src = 1, .most_src = 1, .infer = infer};
