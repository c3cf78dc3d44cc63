/* lrn: src / (k + alpha / size * sum of squares over `size` neighbouring channels)^beta. */
#include "nn/op/rules.h"

#include <inttypes.h>

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    (void)arena;
    const ki_lrn_attr *a = &node->attr.lrn;
    KI_TRY(ki_op_wants_map(&src[0], err));
    KI_TRY(ki_op_wants_size("size", a->size, 1, err));
    if (a->size % 2 == 0)
        return ki_fail(err, KITH_EINVAL, "size is %" PRId64 ", wanted an odd number of channels", a->size);
    if (!(a->k > 0)) return ki_fail(err, KITH_EINVAL, "k is %g, wanted above 0", a->k);
    if (!(a->alpha >= 0)) return ki_fail(err, KITH_EINVAL, "alpha is %g, wanted 0 or more", a->alpha);
    if (!(a->beta >= 0)) return ki_fail(err, KITH_EINVAL, "beta is %g, wanted 0 or more", a->beta);
    node->shape = src[0];
    return KITH_OK;
}

const ki_op ki_op_lrn = {.least_src = 1, .most_src = 1, .infer = infer};
