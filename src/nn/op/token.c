/* token: one token of each row as a vector: the class token, mostly. */
#include "nn/op/rules.h"

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    const int64_t at = node->attr.token.at;
    (void)arena;
    KI_TRY(ki_op_wants_tokens(&src[0], err));
    if (at < 0 || at >= src[0].dim[1])
        return ki_fail(err, KITH_EINVAL, "token %lld, wanted one of 0 to %lld", (long long)at,
                       (long long)src[0].dim[1] - 1);
    node->shape = KI_SHAPE2(src[0].dim[0], src[0].dim[2]);
    return KITH_OK;
}

const ki_op ki_op_token = {.least_src = 1, .most_src = 1, .infer = infer};
