/* input: images [mb, c, h, w] or vectors [mb, c]. Its shape is given, not inferred: the builder has set it. */
#include "nn/op/rules.h"

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    (void)arena, (void)src;
    static const char *const names[] = {"images", "channels", "height", "width"};
    if (node->shape.n_dims != 2) KI_TRY(ki_op_wants_map(&node->shape, err));
    for (int i = 0; i < node->shape.n_dims; i++)
        KI_TRY(ki_op_wants_size(names[i], node->shape.dim[i], 1, err));
    return ki_op_wants_countable("the input", &node->shape, err);
}

const ki_op ki_op_input = {.least_src = 0, .most_src = 0, .infer = infer};
