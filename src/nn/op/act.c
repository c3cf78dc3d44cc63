/* act: a function of each number of a map, of tokens or of vectors: GELU, SiLU, hard swish … (device/op.h). */
#include "nn/op/rules.h"

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    (void)arena;
    (void)err;
    node->shape = src[0];
    return KITH_OK;
}

const ki_op ki_op_act = {.least_src = 1, .most_src = 1, .infer = infer};
