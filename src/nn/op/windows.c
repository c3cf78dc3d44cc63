/* windows: the windows of a grid of tokens as rows of their own, and back (Swin). */
#include "nn/op/rules.h"

static int64_t windows_along(int64_t extent, int64_t side) { return (extent + side - 1) / side; }

static kith_status check(const ki_windows_attr *a, kith_error *err) {
    KI_TRY(ki_op_wants_size("the side of the windows", a->side, 1, err));
    KI_TRY(ki_op_wants_size("the height of the grid", a->h, 1, err));
    KI_TRY(ki_op_wants_size("the width of the grid", a->w, 1, err));
    if (a->shift >= 0 && a->shift < a->side) return KITH_OK;
    return ki_fail(err, KITH_EINVAL, "shift is %lld, wanted 0 to %lld", (long long)a->shift,
                   (long long)a->side - 1);
}

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    const ki_windows_attr *a = &node->attr.windows;
    char found[96], wanted[96];
    (void)arena;
    KI_TRY(ki_op_wants_tokens(&src[0], err));
    KI_TRY(check(a, err));
    const int64_t n = windows_along(a->h, a->side) * windows_along(a->w, a->side), c = src[0].dim[2];
    const int64_t rows = a->back ? src[0].dim[0] / n : src[0].dim[0];
    const ki_shape whole = KI_SHAPE3(rows, a->h * a->w, c), cut = KI_SHAPE3(rows * n, a->side * a->side, c);
    const ki_shape *from = a->back ? &cut : &whole;
    if (!ki_shape_equal(&src[0], from))
        return ki_fail(err, KITH_ESHAPE, "the source is %s, wanted %s",
                       ki_shape_text(&src[0], found, sizeof found),
                       ki_shape_text(from, wanted, sizeof wanted));
    node->shape = a->back ? whole : cut;
    return ki_op_wants_countable("the output", &node->shape, err);
}

const ki_op ki_op_windows = {.least_src = 1, .most_src = 1, .infer = infer};
