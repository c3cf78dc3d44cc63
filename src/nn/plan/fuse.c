/* From nodes to steps. Drop what no tap needs. Make a ReLU part of its producer, a sum part of the batch norm, linear layer or layer scale
 * before it and, for inference, a batch norm part of the convolution before it and another function part of its producer. Then mark where gradients
 * flow. A node's output may disappear inside such a kernel only if the kernel is its only consumer and it is
 * not a tap. */
#include <string.h>

#include "base/alloc.h"
#include "nn/plan/steps.h"

typedef struct node_use {
    bool needed, is_tap, is_grad_tap, infers;
    int n_consumers, consumer; /* the last consumer found */
    int step;                  /* which step writes it; -1 */
} node_use;

static kith_status mark_taps(const ki_graph *graph, const ki_plan_options *options, node_use *use,
                             kith_error *err) {
    int n = 0, node = 0;
    for (int i = 0; i < KI_MAX_TAPS && options->taps[i]; i++, n++) {
        KI_TRY(ki_graph_find_tap(graph, options->taps[i], &node, err));
        use[node].is_tap = use[node].needed = true;
    }
    for (int i = 0; i < KI_MAX_TAPS && options->grad_taps[i]; i++, n++) {
        if (options->mode != KI_TRAIN)
            return ki_fail(err, KITH_EINVAL, "tap %s cannot take a gradient: the plan is for inference",
                           options->grad_taps[i]);
        KI_TRY(ki_graph_find_tap(graph, options->grad_taps[i], &node, err));
        use[node].is_tap = use[node].is_grad_tap = use[node].needed = true;
    }
    return n ? KITH_OK : ki_fail(err, KITH_EINVAL, "a plan needs at least one tap");
}

static void mark_needed(const ki_graph *graph, node_use *use) {
    for (int i = ki_graph_count(graph) - 1; i >= 0; i--) {
        const ki_node *node = ki_graph_node(graph, i);
        for (int k = 0; use[i].needed && k < node->n_src; k++) {
            use[node->src[k]].needed = true;
            use[node->src[k]].n_consumers++;
            use[node->src[k]].consumer = i;
        }
    }
}

/* Which nodes are computed as for inference. */
static void mark_inferring(const ki_graph *graph, const ki_plan_options *options, node_use *use) {
    for (int i = 0; i < ki_graph_count(graph); i++) {
        const ki_node *node = ki_graph_node(graph, i);
        use[i].infers = options->mode == KI_INFER ||
                        (!options->input_grad && (node->is_frozen || node->kind == KI_OP_INPUT));
        for (int k = 0; k < node->n_src; k++) use[i].infers = use[i].infers && use[node->src[k]].infers;
    }
}

/* The consumer that may be merged into node i's kernel, if it is of that kind; else -1. */
static int only_consumer(const ki_graph *graph, const node_use *use, int i, ki_op_kind kind) {
    if (use[i].is_tap || use[i].n_consumers != 1) return -1;
    return ki_graph_node(graph, use[i].consumer)->kind == kind ? use[i].consumer : -1;
}

/* If the only consumer of node i is a sum of two, *ret_add, then the other source of the sum, if it has a step
 * already; else -1. So the sum becomes part of the later of its two sources. */
static int added_to(const ki_graph *graph, const node_use *use, int i, int *ret_add) {
    *ret_add = only_consumer(graph, use, i, KI_OP_ADD);
    if (*ret_add < 0) return -1;
    const ki_node *add = ki_graph_node(graph, *ret_add);
    if (add->n_src != 2 || add->src[0] == add->src[1]) return -1;
    const int other = add->src[0] == i ? add->src[1] : add->src[0];
    return use[other].step >= 0 ? other : -1;
}

static ki_step make_step(const ki_graph *graph, const ki_backend_type *backend, node_use *use, int i,
                         int number) {
    const ki_node *node = ki_graph_node(graph, i);
    ki_step step = {.node = node,
                    .node_number = i,
                    .infers = use[i].infers,
                    .n_src = node->n_src,
                    .slice_of = -1,
                    .dst = KI_NOWHERE,
                    .workspace = KI_NOWHERE,
                    .late = KI_NOWHERE,
                    .grad = KI_NOWHERE,
                    .added = KI_NOWHERE,
                    .diff = KI_NOWHERE};
    int last = i, next = -1;
    for (int k = 0; k < node->n_src; k++) {
        step.src[k] = use[node->src[k]].step;
        step.diff_src[k] = KI_NOWHERE;
    }
    if (node->kind == KI_OP_CONV2D && step.infers && backend->kernels.can_fold_bn) {
        next = only_consumer(graph, use, last, KI_OP_BATCH_NORM);
        if (next >= 0 && use[next].infers) {
            step.bn = ki_graph_node(graph, next);
            use[next].step = number;
            last = next;
        }
    }
    const ki_kernel_type *kernel = backend->kernels.of[node->kind];
    const bool fuses_add = kernel && kernel->fuses_add;
    if (fuses_add || (node->kind == KI_OP_BATCH_NORM && backend->kernels.can_fuse_add)) {
        const int other = added_to(graph, use, last, &next);
        if (other >= 0 && (!fuses_add || use[next].infers == step.infers)) {
            step.has_add = true;
            step.src[1] = use[other].step;
            step.diff_src[1] = KI_NOWHERE;
            step.n_src = 2;
            use[next].step = number;
            last = next;
        }
    }
    if (kernel && kernel->fuses_relu) {
        next = only_consumer(graph, use, last, KI_OP_RELU);
        if (next >= 0) {
            step.has_relu = true;
            use[next].step = number;
            last = next;
        }
    }
    /* In training its backward reads what the function was given. */
    if (kernel && kernel->fuses_act && step.infers && !step.has_relu) {
        next = only_consumer(graph, use, last, KI_OP_ACT);
        if (next >= 0 && use[next].infers && kernel->fuses_act(ki_graph_node(graph, next)->attr.act.how)) {
            step.act = ki_graph_node(graph, next);
            use[next].step = number;
            last = next;
        }
    }
    use[i].step = number;
    step.out = ki_graph_node(graph, last);
    step.is_tap = use[last].is_tap;
    step.is_grad_tap = use[last].is_grad_tap;
    step.n_consumers = use[last].n_consumers;
    return step;
}

bool ki_step_is_trained(const ki_step *step) {
    for (int p = 0; p < step->node->n_params; p++) {
        if (step->node->param[p].trained) return true;
    }
    return false;
}

static void mark_backward(ki_steps *steps, const ki_plan_options *options) {
    if (options->mode != KI_TRAIN) return;
    for (int s = 0; s < steps->n; s++) {
        ki_step *step = &steps->step[s];
        step->useful = step->node->kind == KI_OP_INPUT ? options->input_grad : ki_step_is_trained(step);
        for (int k = 0; k < step->n_src; k++) step->useful |= steps->step[step->src[k]].useful;
    }
    for (int s = steps->n - 1; s >= 0; s--) {
        ki_step *step = &steps->step[s];
        step->live |= step->is_grad_tap;
        step->runs_backward = step->live && step->useful && step->node->kind != KI_OP_INPUT;
        for (int k = 0; step->runs_backward && k < step->n_src; k++) steps->step[step->src[k]].live = true;
    }
}

kith_status ki_steps_make(const ki_graph *graph, const ki_backend_type *backend,
                          const ki_plan_options *options, ki_steps *ret_steps, kith_error *err) {
    const int n_nodes = ki_graph_count(graph);
    ki_steps steps = {0};
    node_use *use = NULL;
    kith_status status = KITH_OK;
    KI_CHECK(ki_zalloc_or(&use, (size_t)n_nodes, sizeof *use, "a plan", err));
    KI_CHECK(ki_zalloc_or(&steps.step, (size_t)n_nodes, sizeof *steps.step, "a plan", err));
    KI_CHECK(mark_taps(graph, options, use, err));
    mark_needed(graph, use);
    mark_inferring(graph, options, use);
    for (int i = 0; i < n_nodes; i++) use[i].step = -1;
    for (int i = 0; i < n_nodes; i++) {
        if (!use[i].needed || use[i].step >= 0) continue;
        steps.step[steps.n] = make_step(graph, backend, use, i, steps.n);
        steps.n_fused_relu += steps.step[steps.n].has_relu;
        steps.n_folded_bn += steps.step[steps.n].bn != NULL;
        steps.n++;
    }
    mark_backward(&steps, options);
    *ret_steps = steps;
    steps.step = NULL;
done:
    ki_free(use);
    ki_free(steps.step);
    return status;
}
