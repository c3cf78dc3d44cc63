/* grid: tokens as the pixels of a map, without the first ones that stand for no pixel. */
#include "nn/op/rules.h"

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    const ki_grid_attr *a = &node->attr.grid;
    char text[96];
    (void)arena;
    KI_TRY(ki_op_wants_tokens(&src[0], err));
    KI_TRY(ki_op_wants_size("the number of tokens left out", a->skip, 0, err));
    KI_TRY(ki_op_wants_size("the height", a->h, 1, err));
    KI_TRY(ki_op_wants_size("the width", a->w, 1, err));
    if (src[0].dim[1] != a->skip + a->h * a->w)
        return ki_fail(err, KITH_ESHAPE, "the source is %s, wanted %lld + %lldx%lld tokens",
                       ki_shape_text(&src[0], text, sizeof text), (long long)a->skip, (long long)a->h,
                       (long long)a->w);
    node->shape = KI_SHAPE4(src[0].dim[0], src[0].dim[2], a->h, a->w);
    return KITH_OK;
}

const ki_op ki_op_grid = {.least_src = 1, .most_src = 1, .infer = infer};
