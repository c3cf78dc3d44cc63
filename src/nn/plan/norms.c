/* One batch norm instead of several: a batch norm works channel by channel, so those at the ends of a block's
 * branches become one after the concat. The convolutions then write slices of the concat's buffer, and one
 * kernel normalises a map that is large enough to keep a device busy. Parameters and statistics must be
 * adjacent in memory. */
#include "base/alloc.h"
#include "nn/plan/planned.h"

static bool qualifies(const ki_plan *plan, const ki_step *norm) {
    if (norm->node->kind != KI_OP_BATCH_NORM || norm->n_src != 1 || norm->n_consumers != 1 || norm->is_tap ||
        ki_step_wastes_diffs(norm))
        return false;
    const ki_step *src = &plan->steps.step[norm->src[0]];
    return (src->node->kind == KI_OP_CONV2D || src->is_swapped) && src->n_consumers == 1 && !src->is_tap &&
           !src->has_relu && !src->act && !src->bn && src->out->shape.dim[1] % KI_SLICE_ALIGN == 0;
}

static bool is_mergeable(const ki_plan *plan, const ki_step *concat) {
    if (concat->node->kind != KI_OP_CONCAT || concat->n_src < 2) return false;
    const ki_step *first = &plan->steps.step[concat->src[0]];
    for (int k = 0; k < concat->n_src; k++) {
        const ki_step *norm = &plan->steps.step[concat->src[k]];
        if (!qualifies(plan, norm)) return false;
        const ki_bn_attr *a = &first->node->attr.bn, *b = &norm->node->attr.bn;
        if (a->eps != b->eps || a->momentum != b->momentum || norm->has_relu != first->has_relu ||
            norm->live != first->live || norm->useful != first->useful ||
            norm->runs_backward != first->runs_backward || norm->infers != first->infers ||
            norm->node->is_frozen != first->node->is_frozen)
            return false;
        if (k > 0 && !ki_plan_follows(plan, &plan->steps.step[concat->src[k - 1]], norm)) return false;
    }
    return true;
}

/* The concat, now of convolutions, and the batch norm that all its consumers read instead. */
static void rewrite(const ki_plan *plan, const ki_step *concat, ki_node *node, ki_step *ret_concat,
                    ki_step *ret_norm) {
    const ki_step *first = &plan->steps.step[concat->src[0]];
    *node = *first->node;
    node->shape = concat->node->shape;
    *ret_concat = *concat;
    ret_concat->is_tap = ret_concat->is_grad_tap = false;
    ret_concat->n_consumers = 1;
    for (int k = 0; k < concat->n_src; k++) ret_concat->src[k] = plan->steps.step[concat->src[k]].src[0];
    *ret_norm = *concat;
    ret_norm->node = node;
    ret_norm->node_number = first->node_number;
    ret_norm->has_relu = first->has_relu;
    ret_norm->runs_backward = first->runs_backward;
    ret_norm->infers = first->infers;
    ret_norm->n_src = 1;
}

kith_status ki_plan_merge_norms(ki_plan *plan, kith_error *err) {
    const ki_backend *backend = plan->backend;
    if (!backend->type->kernels.can_merge_convs || !backend->type->kernels.can_slice_concat ||
        backend->options.plain_plan)
        return KITH_OK;
    kith_status status;
    const int n = plan->steps.n;
    int n_groups = 0, n_steps = 0;
    int *to = NULL;
    bool *is_gone = NULL;
    ki_step *steps = NULL;
    KI_CHECK(ki_zalloc_or(&to, (size_t)n, sizeof *to, "a plan", err));
    KI_CHECK(ki_zalloc_or(&is_gone, (size_t)n, sizeof *is_gone, "a plan", err));
    for (int s = 0; s < n; s++) {
        const ki_step *concat = &plan->steps.step[s];
        if (!is_mergeable(plan, concat)) continue;
        n_groups++;
        for (int k = 0; k < concat->n_src; k++) is_gone[concat->src[k]] = true;
    }
    if (n_groups == 0) goto done;
    KI_CHECK(ki_zalloc_or(&plan->merged_norms, (size_t)n_groups, sizeof *plan->merged_norms, "a plan", err));
    KI_CHECK(ki_zalloc_or(&steps, (size_t)(n + n_groups), sizeof *steps, "a plan", err));
    n_groups = 0;
    for (int s = 0; s < n; s++) {
        const ki_step *step = &plan->steps.step[s];
        if (is_gone[s]) continue;
        if (is_mergeable(plan, step)) {
            rewrite(plan, step, &plan->merged_norms[n_groups++], &steps[n_steps], &steps[n_steps + 1]);
            /* The merged batch norm is the one that reads the first of the removed steps; that number now
             * means the concat. */
            to[step->src[0]] = n_steps++;
        } else {
            steps[n_steps] = *step;
        }
        to[s] = n_steps++;
    }
    ki_steps_replace(&plan->steps, steps, n_steps, to);
done:
    ki_free(to);
    ki_free(is_gone);
    return status;
}
