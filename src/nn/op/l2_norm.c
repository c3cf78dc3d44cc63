/* l2_norm: vectors divided by max(norm, eps). */
#include "nn/op/rules.h"

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    (void)arena;
    const double eps = node->attr.l2_norm.eps;
    KI_TRY(ki_op_wants_vector(&src[0], err));
    if (!(eps > 0)) return ki_fail(err, KITH_EINVAL, "eps is %g, wanted above 0", eps);
    node->shape = src[0];
    return KITH_OK;
}

const ki_op ki_op_l2_norm = {.least_src = 1, .most_src = 1, .infer = infer};
