/* global_pool: the average, the maximum, or their sum over each channel of a map. */
#include "nn/op/rules.h"

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    (void)arena;
    KI_TRY(ki_op_wants_map(&src[0], err));
    node->shape = KI_SHAPE2(src[0].dim[0], src[0].dim[1]);
    return KITH_OK;
}

const ki_op ki_op_global_pool = {.least_src = 1, .most_src = 1, .infer = infer};
