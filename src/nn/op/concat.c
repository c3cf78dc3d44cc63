/* concat: maps of one size, joined along the channels. */
#include "nn/op/rules.h"

#include <inttypes.h>

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    (void)arena;
    int64_t oc = 0;
    for (int i = 0; i < node->n_src; i++) {
        KI_TRY(ki_op_wants_map(&src[i], err));
        if (src[i].dim[2] != src[0].dim[2] || src[i].dim[3] != src[0].dim[3])
            return ki_fail(err, KITH_ESHAPE,
                           "source %d is %" PRId64 "x%" PRId64 ", wanted %" PRId64 "x%" PRId64 " as source 0",
                           i, src[i].dim[2], src[i].dim[3], src[0].dim[2], src[0].dim[3]);
        if (src[i].dim[0] != src[0].dim[0])
            return ki_fail(err, KITH_ESHAPE,
                           "source %d has %" PRId64 " rows for an image, wanted %" PRId64 " as source 0", i,
                           src[i].dim[0], src[0].dim[0]);
        oc += src[i].dim[1];
    }
    node->shape = KI_SHAPE4(src[0].dim[0], oc, src[0].dim[2], src[0].dim[3]);
    return ki_op_wants_countable("the output", &node->shape, err);
}

const ki_op ki_op_concat = {.least_src = 1, .most_src = KI_MAX_SRC, .infer = infer};
