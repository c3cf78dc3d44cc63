/* attend: a map seen by the heads of an ensemble, one row each: the map times the sigmoid of that head's logits. */
#include "nn/op/rules.h"

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    (void)arena;
    char a[96], b[96];
    KI_TRY(ki_op_wants_map(&src[0], err));
    KI_TRY(ki_op_wants_map(&src[1], err));
    const int64_t c = src[0].dim[1], heads = src[1].dim[1] / c;
    const ki_shape wanted = KI_SHAPE4(src[0].dim[0], heads * c, src[0].dim[2], src[0].dim[3]);
    if (heads < 1 || !ki_shape_equal(&src[1], &wanted))
        return ki_fail(
            err, KITH_ESHAPE,
            "the logits are %s, wanted as many pixels as the map %s and a multiple of its channels",
            ki_shape_text(&src[1], b, sizeof b), ki_shape_text(&src[0], a, sizeof a));
    node->shape = KI_SHAPE4(src[0].dim[0] * heads, c, src[0].dim[2], src[0].dim[3]);
    return ki_op_wants_countable("the output", &node->shape, err);
}

const ki_op ki_op_attend = {.least_src = 2, .most_src = 2, .infer = infer};
