/* merge: four neighbours of a grid of tokens side by side, by which a Swin halves its map. */
#include "nn/op/rules.h"

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    const ki_merge_attr *a = &node->attr.merge;
    char text[96];
    (void)arena;
    KI_TRY(ki_op_wants_tokens(&src[0], err));
    KI_TRY(ki_op_wants_size("the height of the grid", a->h, 1, err));
    KI_TRY(ki_op_wants_size("the width of the grid", a->w, 1, err));
    if (src[0].dim[1] != a->h * a->w)
        return ki_fail(err, KITH_ESHAPE, "the source is %s, wanted %lldx%lld tokens",
                       ki_shape_text(&src[0], text, sizeof text), (long long)a->h, (long long)a->w);
    node->shape = KI_SHAPE3(src[0].dim[0], (a->h + 1) / 2 * ((a->w + 1) / 2), 4 * src[0].dim[2]);
    return ki_op_wants_countable("the output", &node->shape, err);
}

const ki_op ki_op_merge = {.least_src = 1, .most_src = 1, .infer = infer};
