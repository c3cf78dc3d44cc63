/* Swaps an average pool and the 1x1 convolution after it. Both are linear; one mixes pixels, the other channels. The
 * convolution then reads what its neighbours in the block read, so that merge.c can merge them, and the pool works on
 * the few channels of the convolution's output.
 *
 * A convolution adds its bias to every pixel, so if the pool padded with zeros, an average at the border would lose
 * part of the bias. So the pool pads with the bias itself, and the result is the same up to rounding. The bias'
 * gradient would lose that part too. So the swap is done only where the bias has no gradient: before a batch norm
 * with batch statistics. */
#include "base/alloc.h"
#include "nn/plan/planned.h"

static bool is_same_size_average(const ki_step *step) {
    const ki_pool_attr *a = &step->node->attr.pool;
    return step->node->kind == KI_OP_POOL && a->average && a->count_pad && a->s == 1 &&
           a->k == 2 * a->p + 1 && step->n_consumers == 1 && !step->is_tap;
}

/* Can step s, a convolution, be swapped with the pool before it? */
static bool qualifies(const ki_plan *plan, int s) {
    const ki_step *conv = &plan->steps.step[s];
    if (!ki_node_is_1x1(conv->node) || conv->has_relu || conv->act || conv->bn || conv->is_tap ||
        conv->n_consumers != 1)
        return false;
    const ki_step *pool = &plan->steps.step[conv->src[0]], *behind = ki_plan_consumer(plan, s);
    if (!is_same_size_average(pool) || !behind || behind->node->kind != KI_OP_BATCH_NORM) return false;
    if (behind->node->is_frozen || conv->node->is_frozen || pool->node->is_frozen) return false;
    const int64_t oc = conv->node->attr.conv.oc;
    return oc < pool->node->shape.dim[1] && oc % KI_SLICE_ALIGN == 0;
}

/* The pool of the convolution's output. */
static void make_node(const ki_node *pool, const ki_node *conv, ki_node *ret_node) {
    *ret_node = *pool;
    ret_node->shape = conv->shape;
    for (int p = 0; p < conv->n_params; p++) {
        if (conv->param[p].slot == KI_B) ret_node->param[ret_node->n_params++] = conv->param[p];
    }
}

static void swap(ki_plan *plan, int at_pool, int at_conv, ki_node *node) {
    ki_step *steps = plan->steps.step;
    const ki_step pool = steps[at_pool], conv = steps[at_conv];
    make_node(pool.node, conv.node, node);
    ki_step *first = &steps[at_pool], *second = &steps[at_conv];
    *first = conv;
    first->src[0] = pool.src[0];
    *second = pool;
    second->node = second->out = node;
    second->src[0] = at_pool;
    second->n_consumers = conv.n_consumers;
    second->live = conv.live;
    second->useful = conv.useful;
    second->runs_backward = conv.runs_backward;
    second->is_swapped = true;
}

kith_status ki_plan_swap_pools(ki_plan *plan, kith_error *err) {
    const ki_backend *backend = plan->backend;
    int n = 0;
    if (!backend->type->kernels.can_pad_pools || backend->options.plain_plan) return KITH_OK;
    if (plan->options.mode != KI_TRAIN || plan->options.frozen_bn) return KITH_OK;
    for (int s = 0; s < plan->steps.n; s++) n += qualifies(plan, s);
    if (n == 0) return KITH_OK;
    KI_TRY(ki_zalloc_or(&plan->swapped, (size_t)n, sizeof *plan->swapped, "a plan", err));
    for (int s = 0; s < plan->steps.n; s++) {
        if (qualifies(plan, s)) swap(plan, plan->steps.step[s].src[0], s, &plan->swapped[plan->n_swapped++]);
    }
    return KITH_OK;
}
