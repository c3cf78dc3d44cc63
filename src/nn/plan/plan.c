/* Making a plan: kernels, memory, pointers. */
#include "nn/plan.h"

#include <string.h>

#include "base/alloc.h"
#include "nn/plan/planned.h"

/* Convolutions read plain images as they are; any other op needs them native. */
static bool input_is_plain(const ki_plan *plan, int s) {
    if (plan->steps.step[s].node->kind != KI_OP_INPUT) return false;
    for (int i = s + 1; i < plan->steps.n; i++) {
        const ki_step *step = &plan->steps.step[i];
        for (int k = 0; k < step->n_src; k++) {
            if (step->src[k] == s && step->node->kind != KI_OP_CONV2D) return false;
        }
    }
    return true;
}

static kith_status make_edge(ki_plan *plan, int s, kith_error *err) {
    ki_step *step = &plan->steps.step[s];
    step->edge.shape = step->out->shape;
    step->edge.shape.dim[0] *= plan->options.mb;
    step->edge.layout = step->edge.shape.n_dims != 4 || input_is_plain(plan, s) ? KI_PLAIN : KI_NATIVE;
    step->edge.bytes =
        plan->backend->type->memory.edge_bytes(plan->backend, &step->edge.shape, step->edge.layout);
    if (step->edge.bytes == 0) {
        char text[96];
        return ki_fail(err, KITH_ESHAPE, "output %s is too large",
                       ki_shape_text(&step->edge.shape, text, sizeof text));
    }
    return KITH_OK;
}

/* A sliced concat needs no kernel. When all its sources have a ReLU in them, one pass over its gradient
 * masks them all, as if the ReLU were the concat's own. */
static void adopt_masks(ki_plan *plan, ki_step *concat) {
    bool all = concat->runs_backward;
    for (int k = 0; k < concat->n_src; k++) all &= plan->steps.step[concat->src[k]].info.mask_in_join;
    concat->info = (ki_kernel_info){.mask_in_join = all};
    for (int k = 0; all && k < concat->n_src; k++) plan->steps.step[concat->src[k]].mask_done = true;
}

/* Does some batch norm use the statistics of its batch? */
static bool uses_batch_statistics(const ki_plan *plan) {
    if (plan->options.mode != KI_TRAIN || plan->options.frozen_bn) return false;
    for (int s = 0; s < plan->steps.n; s++) {
        const ki_node *node = plan->steps.step[s].node;
        if (node->kind == KI_OP_BATCH_NORM && !node->is_frozen) return true;
    }
    return false;
}

/* Whether step s, a 1x1 convolution, adds to its source's gradient in backward: there is already a part of that
 * gradient that nothing else reads, and the source does not sum parts itself. */
static bool adds_diff(const ki_plan *plan, int s) {
    const ki_step *step = &plan->steps.step[s];
    if (!plan->backend->type->kernels.can_add_diffs || plan->backend->options.plain_plan) return false;
    if (!ki_node_is_1x1(step->node) || !step->runs_backward || step->is_view) return false;
    const ki_step *src = &plan->steps.step[step->src[0]];
    if (!src->useful || src->is_view || src->is_sliced || src->info.joins || src->info.mask_in_join)
        return false;
    if (src->edge.shape.dim[1] % KI_SLICE_ALIGN != 0 || step->edge.shape.dim[1] % KI_SLICE_ALIGN != 0)
        return false;
    for (int u = s + 1; u < plan->steps.n; u++) {
        const ki_step *other = &plan->steps.step[u];
        const bool gives_part = other->node->kind == KI_OP_CONV2D || other->node->kind == KI_OP_POOL;
        if (gives_part && !other->is_view && other->runs_backward && other->src[0] == step->src[0])
            return true;
    }
    return false;
}

static kith_status create_kernel(ki_plan *plan, int s, kith_error *err) {
    ki_step *step = &plan->steps.step[s];
    const ki_node *node = step->node;
    const ki_backend_type *type = plan->backend->type;
    if (node->kind == KI_OP_INPUT || step->is_view) return KITH_OK;
    if (step->is_sliced) {
        adopt_masks(plan, step);
        return KITH_OK;
    }
    const ki_kernel_type *kernel_type = type->kernels.of[node->kind];
    if (!kernel_type)
        return ki_fail(err, KITH_EUNSUPPORTED, "backend %s has no kernel for %s", type->name,
                       ki_op_name(node->kind));
    if (step->runs_backward && !kernel_type->backward)
        return ki_fail(err, KITH_EUNSUPPORTED, "backend %s has no backward for %s", type->name,
                       ki_op_name(node->kind));

    ki_kernel_spec spec = {
        .kind = node->kind,
        .attr = &node->attr,
        .mode = step->infers ? KI_INFER : plan->options.mode,
        .n_src = step->n_src,
        .dst = step->edge,
        .has_relu = step->has_relu,
        .has_act = step->act != NULL,
        .act = step->act ? step->act->attr.act.how : 0,
        .has_add = step->has_add,
        .has_folded_bn = step->bn != NULL,
        .bn_eps = step->bn ? step->bn->attr.bn.eps : 0,
        .frozen_stats = plan->options.frozen_bn || node->is_frozen,
        .wants_diff_params = step->runs_backward,
        .keeps_params = ki_step_wastes_diffs(step),
        .adds_diff_src = step->adds_diff = adds_diff(plan, s),
        /* Batch norms with batch statistics read their maps twice, the second time from the cache. Late work
         * beside them pushes the maps out of the cache, which costs more than it gains. */
        .may_be_late = !plan->updates_stats && !ki_step_wastes_diffs(step),
        .seed = plan->options.seed,
        .node = (uint32_t)step->node_number,
        .device_comm = plan->options.device_comm};
    for (int k = 0; k < step->n_src; k++) {
        ki_step *src = &plan->steps.step[step->src[k]];
        spec.src[k] = src->edge;
        spec.wants_diff_src[k] = step->runs_backward && src->useful;
        if (node->kind == KI_OP_CONCAT && type->kernels.can_mask_concat && step->runs_backward &&
            src->info.mask_in_join && src->n_consumers == 1 && !src->is_grad_tap) {
            spec.masked_src |= 1u << k;
            src->mask_done = true;
        }
    }
    plan->wants_step |= node->kind == KI_OP_DROPOUT || node->kind == KI_OP_DROP_PATH;
    KI_TRY(kernel_type->create(plan->backend, &spec, &step->info, &step->kernel, err));
    if (step->info.scratch_bytes > plan->scratch_bytes) plan->scratch_bytes = step->info.scratch_bytes;
    return KITH_OK;
}

/* Memory for the gradients of a step whose parameters do not learn, one behind the other. */
static void bind_wasted(const ki_plan *plan, const ki_step *step, ki_binding *binding) {
    ki_real *at = plan->wasted;
    for (int p = 0; p < step->node->n_params; p++) {
        const ki_param_decl *decl = &step->node->param[p];
        binding->param[decl->slot].diff = at;
        at += ki_round_up((size_t)ki_shape_count(&decl->shape), KI_ALIGN / sizeof(ki_real));
    }
}

static kith_status bind_params(ki_plan *plan, const ki_node *node, bool is_folded, bool trains,
                               ki_binding *binding, kith_error *err) {
    for (int p = 0; p < node->n_params; p++) {
        const ki_param_decl *decl = &node->param[p];
        const ki_param *param = ki_params_find(plan->params, decl->name);
        if (!param) return ki_fail(err, KITH_ENOTFOUND, "parameter %s is not in the store", decl->name);
        if (!ki_shape_equal(&param->shape, &decl->shape)) {
            char found[96], wanted[96];
            return ki_fail(err, KITH_ESHAPE, "parameter %s is %s; this graph wants %s", decl->name,
                           ki_shape_text(&param->shape, found, sizeof found),
                           ki_shape_text(&decl->shape, wanted, sizeof wanted));
        }
        int slot = decl->slot;
        if (is_folded && slot == KI_W)
            slot = KI_GAMMA;
        else if (is_folded && slot == KI_B)
            slot = KI_BETA;
        binding->param[slot] = (ki_param_slot){param->value, trains ? param->diff : NULL};
    }
    return KITH_OK;
}

/* Whether the only reader of a step's output is a batch norm, which subtracts the mean. */
static bool is_mean_lost(const ki_plan *plan, int number) {
    if (plan->steps.step[number].is_tap) return false;
    int n = 0;
    for (int s = number + 1; s < plan->steps.n; s++) {
        const ki_step *consumer = &plan->steps.step[s];
        for (int k = 0; k < consumer->n_src; k++) {
            if (consumer->src[k] != number) continue;
            const bool is_normalised =
                consumer->node->kind == KI_OP_BATCH_NORM && !consumer->node->is_frozen && k == 0;
            const bool is_passed_on =
                consumer->is_view || consumer->is_swapped || consumer->node->kind == KI_OP_CONCAT;
            if (!is_normalised && !(is_passed_on && is_mean_lost(plan, s))) return false;
            n++;
        }
    }
    return n > 0;
}

static bool is_bias_lost(const ki_plan *plan, const ki_step *step) {
    return plan->backend->type->kernels.skips_lost_biases && !plan->options.frozen_bn && !step->has_relu &&
           !step->act && step->node->kind == KI_OP_CONV2D &&
           is_mean_lost(plan, (int)(step - plan->steps.step));
}

static kith_status bind_step(ki_plan *plan, ki_step *step, kith_error *err) {
    for (int p = 0; p < step->n_parts; p++) step->part_ptr[p] = ki_plan_address(plan, step->part[p].place);
    step->diff_ptr = ki_plan_address(plan, step->diff);
    step->mask_ptr = step->info.mask_in_join && !step->mask_done ? ki_plan_address(plan, step->dst) : NULL;
    if (!step->kernel) return KITH_OK;
    ki_binding binding = {.dst = ki_plan_address(plan, step->dst),
                          .workspace = ki_plan_address(plan, step->workspace),
                          .late = ki_plan_address(plan, step->late),
                          .diff_added = ki_plan_address(plan, step->added),
                          .scratch = plan->block + plan->block_bytes,
                          .step = plan->step ? plan->step : plan->options.step,
                          .first = plan->step ? plan->step + 1 : plan->options.first};
    for (int k = 0; k < step->n_src; k++) {
        binding.src[k] = ki_plan_address(plan, plan->steps.step[step->src[k]].dst);
        binding.diff_src[k] = ki_plan_address(plan, step->diff_src[k]);
    }
    if (step->info.joins && !step->joins) {
        binding.n_diff_dst = step->n_parts;
        for (int p = 0; p < step->n_parts; p++) binding.diff_dst[p] = step->part_ptr[p];
    } else {
        binding.n_diff_dst = 1;
        binding.diff_dst[0] = step->diff_ptr;
    }
    KI_TRY(bind_params(plan, step->node, false, step->runs_backward, &binding, err));
    if (ki_step_wastes_diffs(step) && !step->info.skips_diffs) bind_wasted(plan, step, &binding);
    if (step->runs_backward && is_bias_lost(plan, step)) binding.param[KI_B].diff = NULL;
    if (step->bn) KI_TRY(bind_params(plan, step->bn, true, false, &binding, err));
    return step->kernel->type->bind(step->kernel, &binding, err);
}

static kith_status name_step(const ki_plan *plan, int s, kith_status status, kith_error *err) {
    return status == KITH_OK ? status : ki_prefix(err, status, "node %s", plan->steps.step[s].node->name);
}

/* What kernels read from backend memory besides tensors. */
static kith_status make_numbers(ki_plan *plan, kith_error *err) {
    ki_backend *backend = plan->backend;
    void *memory = NULL;
    if (plan->wants_step && !plan->options.step) {
        KI_TRY(backend->type->memory.alloc(backend, 2 * sizeof *plan->step, &memory, err));
        plan->step = memory;
        KI_TRY(backend->type->memory.zero(backend, memory, 2 * sizeof *plan->step, err));
    }
    return KITH_OK;
}

static kith_status make_wasted(ki_plan *plan, kith_error *err) {
    ki_backend *backend = plan->backend;
    size_t most = 0;
    void *memory = NULL;
    for (int s = 0; s < plan->steps.n; s++) {
        const ki_step *step = &plan->steps.step[s];
        size_t bytes = 0;
        if (!ki_step_wastes_diffs(step) || step->info.skips_diffs) continue;
        for (int p = 0; p < step->node->n_params; p++)
            bytes +=
                ki_round_up((size_t)ki_shape_count(&step->node->param[p].shape) * sizeof(ki_real), KI_ALIGN);
        if (bytes > most) most = bytes;
    }
    if (most == 0) return KITH_OK;
    KI_TRY(backend->type->memory.alloc(backend, most, &memory, err));
    plan->wasted = memory;
    return backend->type->memory.zero(backend, memory, most, err);
}

/* Choosing kernels can take a while. So memory is asked for first, for what a batch needs at the very least:
 * the sources of all convolutions that will read them in backward. */
static kith_status ask_for_memory(const ki_plan *plan, kith_error *err) {
    ki_backend *backend = plan->backend;
    size_t bytes = 0;
    void *memory = NULL;
    for (int s = 0; s < plan->steps.n; s++) {
        bool is_kept = false;
        for (int u = s + 1; u < plan->steps.n && plan->steps.step[s].slice_of < 0 && !is_kept; u++) {
            const ki_step *user = &plan->steps.step[u];
            is_kept = user->node->kind == KI_OP_CONV2D && user->runs_backward && user->src[0] == s;
        }
        if (is_kept) bytes += plan->steps.step[s].edge.bytes;
    }
    if (bytes == 0) return KITH_OK;
    const kith_status status = backend->type->memory.alloc(backend, bytes, &memory, err);
    if (status != KITH_OK)
        return ki_prefix(err, status, "a batch of %lld, the maps alone", (long long)plan->options.mb);
    backend->type->memory.free(backend, memory);
    return KITH_OK;
}

static kith_status take_block(ki_plan *plan, kith_error *err) {
    ki_backend *backend = plan->backend;
    const ki_plan *beside = plan->options.beside;
    void *memory = NULL;
    plan->room = plan->block_bytes + plan->scratch_bytes + KI_ALIGN;
    if (beside && beside->room >= plan->room) {
        plan->is_guest = true;
        plan->block = beside->block;
        return KITH_OK;
    }
    KI_TRY(backend->type->memory.alloc(backend, plan->room, &memory, err));
    plan->block = memory;
    return KITH_OK;
}

kith_status ki_plan_new(const ki_graph *graph, ki_params *params, ki_backend *backend,
                        const ki_plan_options *options, ki_plan **ret_plan, kith_error *err) {
    ki_plan *plan = NULL;
    kith_status status = KITH_OK;
    KI_TRY(ki_graph_check(graph, err));
    if (options->mb < 1)
        return ki_fail(err, KITH_EINVAL, "batch size %lld; wanted 1 or more", (long long)options->mb);
    KI_TRY(ki_zalloc_or(&plan, 1, sizeof *plan, "a plan", err));
    plan->backend = backend;
    plan->params = params;
    plan->options = *options;
    if (options->mode == KI_TRAIN) KI_CHECK(ki_params_make_diffs(params, err));
    KI_CHECK(ki_steps_make(graph, backend->type, options, &plan->steps, err));
    KI_CHECK(ki_plan_swap_pools(plan, err));
    KI_CHECK(ki_plan_merge_norms(plan, err));
    KI_CHECK(ki_plan_merge(plan, err));
    for (int s = 0; s < plan->steps.n; s++) KI_CHECK(name_step(plan, s, make_edge(plan, s, err), err));
    ki_plan_slice(plan);
    plan->updates_stats = uses_batch_statistics(plan);
    if (!options->beside) KI_CHECK(ask_for_memory(plan, err));
    for (int s = 0; s < plan->steps.n; s++) KI_CHECK(name_step(plan, s, create_kernel(plan, s, err), err));
    KI_CHECK(ki_plan_buffers(plan, err));
    KI_CHECK(ki_memory_plan(plan->buffer, (int)plan->n_buffers, &plan->block_bytes, err));
    KI_CHECK(take_block(plan, err));
    KI_CHECK(make_numbers(plan, err));
    KI_CHECK(make_wasted(plan, err));
    for (int s = 0; s < plan->steps.n; s++) {
        KI_CHECK(name_step(plan, s, bind_step(plan, &plan->steps.step[s], err), err));
        const ki_step *step = &plan->steps.step[s];
        ki_shape src_shape[KI_MAX_SRC];
        for (int k = 0; k < step->n_src; k++) src_shape[k] = plan->steps.step[step->src[k]].out->shape;
        const ki_op *op = ki_op_at(step->node->kind);
        if (op->flops && !step->is_view)
            plan->forward_flops += op->flops(step->node, src_shape) * (double)options->mb;
    }
    if (options->ready) KI_CHECK(ki_plan_find_unfinished(plan, err));
    *ret_plan = plan;
    plan = NULL;
done:
    ki_plan_free(plan);
    return status;
}

void ki_plan_free(ki_plan *plan) {
    if (!plan) return;
    for (int s = 0; s < plan->steps.n; s++) {
        ki_kernel *kernel = plan->steps.step[s].kernel;
        if (kernel) kernel->type->free(kernel);
    }
    ki_free(plan->steps.step);
    ki_free(plan->merged);
    ki_free(plan->merged_norms);
    ki_free(plan->swapped);
    ki_free(plan->buffer);
    ki_free(plan->unfinished);
    if (!plan->is_guest) plan->backend->type->memory.free(plan->backend, plan->block);
    plan->backend->type->memory.free(plan->backend, plan->step);
    plan->backend->type->memory.free(plan->backend, plan->wasted);
    ki_free(plan);
}

void ki_plan_stats_get(const ki_plan *plan, ki_plan_stats *ret_stats) {
    *ret_stats = (ki_plan_stats){.activation_bytes = plan->block_bytes,
                                 .scratch_bytes = plan->scratch_bytes,
                                 .is_guest = plan->is_guest,
                                 .n_fused_relu = plan->steps.n_fused_relu,
                                 .n_folded_bn = plan->steps.n_folded_bn,
                                 .n_swapped_pools = plan->n_swapped,
                                 .forward_flops = plan->forward_flops};
    for (int s = 0; s < plan->steps.n; s++) {
        const ki_step *step = &plan->steps.step[s];
        ret_stats->n_kernels += step->kernel != NULL;
        ret_stats->n_backward += step->kernel && step->runs_backward && !step->info.shares_diff;
    }
    for (size_t b = 0; b < plan->n_buffers; b++)
        ret_stats->unshared_bytes += ki_round_up(plan->buffer[b].bytes, KI_ALIGN);
}
