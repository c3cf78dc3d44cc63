/* pool: maxima or averages over square windows. */
#include "nn/op/rules.h"

#include <inttypes.h>

/* Floor mode leaves out a last window that would reach over the edge. Ceil mode includes it if it starts
 * inside the source or its left padding. Padding is smaller than the window, so no window is empty. */
static int64_t out_size(int64_t in, const ki_pool_attr *a) {
    const int64_t span = in + 2 * a->p - a->k;
    if (!a->ceil_mode) return span / a->s + 1;
    int64_t out = (span + a->s - 1) / a->s + 1;
    if ((out - 1) * a->s >= in + a->p) out--;
    return out;
}

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    (void)arena;
    const ki_pool_attr *a = &node->attr.pool;
    KI_TRY(ki_op_wants_map(&src[0], err));
    const int64_t ih = src[0].dim[2], iw = src[0].dim[3];
    KI_TRY(ki_op_wants_size("the window", a->k, 1, err));
    KI_TRY(ki_op_wants_size("the stride", a->s, 1, err));
    KI_TRY(ki_op_wants_size("the padding", a->p, 0, err));
    if (a->p >= a->k)
        return ki_fail(err, KITH_EINVAL, "padding %" PRId64 " is not smaller than the window %" PRId64, a->p,
                       a->k);
    if (a->k > ih + 2 * a->p || a->k > iw + 2 * a->p)
        return ki_fail(err, KITH_ESHAPE,
                       "window %" PRId64 "x%" PRId64 " does not fit a source of %" PRId64 "x%" PRId64
                       " with padding %" PRId64,
                       a->k, a->k, ih, iw, a->p);
    node->shape = KI_SHAPE4(src[0].dim[0], src[0].dim[1], out_size(ih, a), out_size(iw, a));
    return ki_op_wants_countable("the output", &node->shape, err);
}

const ki_op ki_op_pool = {.least_src = 1, .most_src = 1, .infer = infer};
