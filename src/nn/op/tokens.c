/* tokens: the pixels of a map as tokens, behind a class token and registers, with positions added. */
#include "nn/op/rules.h"

static kith_status check(const ki_tokens_attr *a, kith_error *err) {
    KI_TRY(ki_op_wants_size("the number of registers", a->registers, 0, err));
    KI_TRY(ki_op_wants_size("the height of the grid of positions", a->grid_h, 0, err));
    KI_TRY(ki_op_wants_size("the width of the grid of positions", a->grid_w, 0, err));
    if ((a->grid_h > 0) != (a->grid_w > 0))
        return ki_fail(err, KITH_EINVAL,
                       "the grid of positions is %lldx%lld; wanted two sides, or 0x0 for none",
                       (long long)a->grid_h, (long long)a->grid_w);
    if (a->has_class_position && (!a->has_class || a->grid_h == 0))
        return ki_fail(err, KITH_EINVAL,
                       "a position for the class token; wanted a class token and positions");
    if (!(a->offset >= 0 && a->offset < 1))
        return ki_fail(err, KITH_EINVAL, "offset is %g, wanted at least 0 and below 1", a->offset);
    return KITH_OK;
}

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    const ki_tokens_attr *a = &node->attr.tokens;
    KI_TRY(ki_op_wants_map(&src[0], err));
    KI_TRY(check(a, err));
    const int64_t c = src[0].dim[1], special = a->has_class + a->registers;
    node->shape = KI_SHAPE3(src[0].dim[0], special + src[0].dim[2] * src[0].dim[3], c);
    KI_TRY(ki_op_wants_countable("the output", &node->shape, err));

    const ki_param_decl class = {
        .shape = KI_SHAPE1(c), .slot = KI_CLASS, .trained = true, .fan_in = c, .start = KI_START_SMALL};
    const ki_param_decl positions = {.shape = KI_SHAPE2(a->has_class_position + a->grid_h * a->grid_w, c),
                                     .slot = KI_POSITIONS,
                                     .trained = true,
                                     .fan_in = c,
                                     .start = KI_START_SMALL};
    const ki_param_decl registers = {.shape = KI_SHAPE2(a->registers, c),
                                     .slot = KI_REGISTERS,
                                     .trained = true,
                                     .fan_in = c,
                                     .start = KI_START_SMALL};
    if (a->has_class) KI_TRY(ki_op_declare(arena, node, "class", class, err));
    if (a->grid_h > 0) KI_TRY(ki_op_declare(arena, node, "positions", positions, err));
    if (a->registers > 0) KI_TRY(ki_op_declare(arena, node, "registers", registers, err));
    return KITH_OK;
}

const ki_op ki_op_tokens = {.least_src = 1, .most_src = 1, .infer = infer};
