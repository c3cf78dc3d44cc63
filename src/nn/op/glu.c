/* glu: the gated unit of SwiGLU: silu of the first half of each token's numbers, times the second half. */
#include "nn/op/rules.h"

#include <inttypes.h>

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    (void)arena;
    KI_TRY(ki_op_wants_tokens(&src[0], err));
    if (src[0].dim[2] % 2 != 0)
        return ki_fail(err, KITH_ESHAPE, "the tokens have %" PRId64 " numbers, wanted an even number",
                       src[0].dim[2]);
    node->shape = src[0];
    node->shape.dim[2] /= 2;
    return KITH_OK;
}

const ki_op ki_op_glu = {.least_src = 1, .most_src = 1, .infer = infer};
