/* unfold: the rows of an image, one for each head, side by side in one row. */
#include "nn/op/rules.h"

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    (void)arena;
    node->shape = src[0];
    node->shape.dim[0] = 1;
    node->shape.dim[1] *= src[0].dim[0];
    return ki_op_wants_countable("the output", &node->shape, err);
}

const ki_op ki_op_unfold = {.least_src = 1, .most_src = 1, .infer = infer};
