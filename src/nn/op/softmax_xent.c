/* softmax_xent: [mb, 1], the cross-entropy of each row's softmax with its label. The gradient of row
 * i is (softmax - one-hot label) * diff_dst[i], so the mean over a batch is diff_dst = 1 / mb. */
#include "nn/op/rules.h"

#include <inttypes.h>

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    (void)arena;
    KI_TRY(ki_op_wants_vector(&src[0], err));
    if (src[0].dim[0] != 1)
        return ki_fail(err, KITH_ESHAPE,
                       "the source has %" PRId64 " rows for an image and its one label, wanted 1",
                       src[0].dim[0]);
    node->shape = KI_SHAPE2(1, 1);
    return KITH_OK;
}

const ki_op ki_op_softmax_xent = {.least_src = 1, .most_src = 1, .infer = infer};
