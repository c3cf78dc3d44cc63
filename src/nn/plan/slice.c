/* Concats without copies: where pixels hold their channels side by side, the sources of a concat write
 * straight into its buffer, each into its own channels, and read their gradients there too. A source
 * qualifies if the concat is its only consumer (so that its gradient is exactly the slice) and its kernel
 * writes gradients itself (an `add` would pass the slice on to tensors that are not slices). */
#include "nn/plan/planned.h"

static bool may_be_slice(const ki_step *src) {
    switch (src->node->kind) {
    case KI_OP_CONV2D:
    case KI_OP_BATCH_NORM:
    case KI_OP_RELU:
    case KI_OP_POOL: break;
    default: return false;
    }
    return !src->is_view && src->n_consumers == 1 && !src->is_tap && src->edge.layout == KI_NATIVE &&
           src->edge.shape.dim[1] % KI_SLICE_ALIGN == 0;
}

void ki_plan_slice(ki_plan *plan) {
    for (int s = 0; s < plan->steps.n; s++) {
        ki_step *view = &plan->steps.step[s];
        if (view->is_view) view->edge.pitch = plan->steps.step[view->slice_of].edge.shape.dim[1];
    }
    if (!plan->backend->type->kernels.can_slice_concat || plan->backend->options.plain_plan) return;
    for (int s = 0; s < plan->steps.n; s++) {
        ki_step *concat = &plan->steps.step[s];
        if (concat->node->kind != KI_OP_CONCAT) continue;
        concat->is_sliced = true;
        for (int k = 0; k < concat->n_src; k++)
            concat->is_sliced &= may_be_slice(&plan->steps.step[concat->src[k]]);
        int64_t at = 0;
        for (int k = 0; concat->is_sliced && k < concat->n_src; k++) {
            ki_step *src = &plan->steps.step[concat->src[k]];
            src->slice_of = s;
            src->slice_at = at;
            src->edge.pitch = concat->edge.shape.dim[1];
            at += src->edge.shape.dim[1];
        }
    }
}
