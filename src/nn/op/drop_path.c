/* drop_path: in training each row is kept whole with probability 1 - p and scaled by 1 / (1 - p). Source: Huang et al., Deep
 * networks with stochastic depth, ECCV 2016. */
#include "nn/op/rules.h"

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    (void)arena;
    const double p = node->attr.drop_path.p;
    if (!(p >= 0 && p < 1)) return ki_fail(err, KITH_EINVAL, "p is %g, wanted at least 0 and below 1", p);
    node->shape = src[0];
    return KITH_OK;
}

const ki_op ki_op_drop_path = {.least_src = 1, .most_src = 1, .infer = infer};
