/* add: the sum of two tensors of one shape. */
#include "nn/op/rules.h"

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    (void)arena;
    char a[96], b[96];
    if (!ki_shape_equal(&src[0], &src[1]))
        return ki_fail(err, KITH_ESHAPE, "source 1 is %s, wanted %s as source 0",
                       ki_shape_text(&src[1], b, sizeof b), ki_shape_text(&src[0], a, sizeof a));
    node->shape = src[0];
    return KITH_OK;
}

const ki_op ki_op_add = {.least_src = 2, .most_src = 2, .infer = infer};
