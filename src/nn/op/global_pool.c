/* global_pool: the average, the maximum, their sum, or the generalised mean over each channel of a map. Source of the
 * last: Radenović, Tolias and Chum, Fine-tuning CNN image retrieval with no human annotation, PAMI 2019 (p begins at 3). */
#include "nn/op/rules.h"

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    KI_TRY(ki_op_wants_map(&src[0], err));
    node->shape = KI_SHAPE2(src[0].dim[0], src[0].dim[1]);
    if (node->attr.global_pool.how != KI_GLOBAL_GEM) return KITH_OK;
    const ki_param_decl p = {.shape = KI_SHAPE1(1), .slot = KI_W, .trained = true, .fill = 3};
    return ki_op_declare(arena, node, "p", p, err);
}

const ki_op ki_op_global_pool = {.least_src = 1, .most_src = 1, .infer = infer};
