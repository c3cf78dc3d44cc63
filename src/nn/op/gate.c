/* gate: a map times a factor for each channel of each row, as squeeze-and-excitation has it. */
#include "nn/op/rules.h"

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    (void)arena;
    char a[96], b[96];
    KI_TRY(ki_op_wants_map(&src[0], err));
    const ki_shape wanted = KI_SHAPE2(src[0].dim[0], src[0].dim[1]);
    if (!ki_shape_equal(&src[1], &wanted))
        return ki_fail(err, KITH_ESHAPE, "the factors are %s, wanted one for each channel of the map %s",
                       ki_shape_text(&src[1], b, sizeof b), ki_shape_text(&src[0], a, sizeof a));
    node->shape = src[0];
    return KITH_OK;
}

const ki_op ki_op_gate = {.least_src = 2, .most_src = 2, .infer = infer};
