/* relu: max(src, 0), of a map or of vectors. */
#include "nn/op/rules.h"

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    (void)arena, (void)err;
    node->shape = src[0];
    return KITH_OK;
}

const ki_op ki_op_relu = {.least_src = 1, .most_src = 1, .infer = infer};
