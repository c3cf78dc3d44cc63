/* Time in a plan: step s runs forward at time s and backward at 2n - 1 - s. Every buffer lives from
 * the time it is written to the last time it is read; ki_memory_plan turns that into addresses. */
#include "nn/plan.h"

#include <string.h>

#include "core/alloc.h"
#include "nn/memory.h"
#include "nn/steps.h"

struct ki_plan {
    ki_backend *backend;
    ki_params *params;
    ki_plan_options options;
    ki_steps steps;
    ki_buffer *buffer;
    size_t n_buffers, buffer_capacity;
    char *block; /* device memory of all buffers and the scratchpad behind them */
    size_t block_bytes, scratch_bytes;
    int32_t *labels; /* device memory, [mb] */
    uint64_t step_number;
    uint64_t packed_version;
    bool is_packed, updates_stats, wants_labels, has_run;
    double forward_flops;
};

static int backward_time(const ki_plan *plan, int s) { return 2 * plan->steps.n - 1 - s; }
static int end_time(const ki_plan *plan) { return 2 * plan->steps.n; }

static kith_status add_buffer(ki_plan *plan, size_t bytes, int first, int last, int *ret_buffer,
                              kith_error *err) {
    KI_TRY(ki_grow(&plan->buffer, &plan->buffer_capacity, plan->n_buffers + 1, sizeof *plan->buffer,
                   "a plan's buffers", err));
    plan->buffer[plan->n_buffers] = (ki_buffer){.bytes = bytes, .first = first, .last = last};
    *ret_buffer = (int)plan->n_buffers++;
    return KITH_OK;
}

static void read_at(ki_plan *plan, int buffer, int time) {
    if (buffer >= 0 && plan->buffer[buffer].last < time) plan->buffer[buffer].last = time;
}

/* Images go plain into convolutions, which read them as they are; any other op wants them native. */
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

static kith_status create_kernel(ki_plan *plan, int s, kith_error *err) {
    ki_step *step = &plan->steps.step[s];
    const ki_node *node = step->node;
    const ki_backend_type *type = plan->backend->type;
    step->edge.shape = step->out->shape;
    step->edge.shape.dim[0] = plan->options.mb;
    step->edge.layout = step->edge.shape.n_dims != 4 || input_is_plain(plan, s) ? KI_PLAIN : KI_NATIVE;
    step->edge.bytes = type->edge_bytes(plan->backend, &step->edge.shape, step->edge.layout);
    if (step->edge.bytes == 0) {
        char text[96];
        return ki_fail(err, KITH_ESHAPE, "output %s is too large",
                       ki_shape_text(&step->edge.shape, text, sizeof text));
    }
    if (node->kind == KI_OP_INPUT) return KITH_OK;
    const ki_kernel_type *kernel_type = type->kernels[node->kind];
    if (!kernel_type)
        return ki_fail(err, KITH_EUNSUPPORTED, "backend %s has no kernel for %s", type->name,
                       ki_op_name(node->kind));
    if (step->runs_backward && !kernel_type->backward)
        return ki_fail(err, KITH_EUNSUPPORTED, "backend %s has no backward for %s", type->name,
                       ki_op_name(node->kind));

    ki_kernel_spec spec = {.kind = node->kind,
                           .attr = &node->attr,
                           .mode = plan->options.mode,
                           .n_src = step->n_src,
                           .dst = step->edge,
                           .has_relu = step->has_relu,
                           .has_folded_bn = step->bn != NULL,
                           .bn_eps = step->bn ? step->bn->attr.bn.eps : 0,
                           .frozen_stats = plan->options.frozen_bn,
                           .wants_diff_params = step->runs_backward,
                           .seed = plan->options.seed,
                           .node = (uint32_t)step->node_number};
    for (int k = 0; k < step->n_src; k++) {
        ki_step *src = &plan->steps.step[step->src[k]];
        spec.src[k] = src->edge;
        spec.wants_diff_src[k] = step->runs_backward && src->useful;
        if (node->kind == KI_OP_CONCAT && type->can_mask_concat && step->runs_backward &&
            src->info.mask_in_join && src->n_consumers == 1 && !src->is_grad_tap) {
            spec.masked_src |= 1u << k;
            src->mask_done = true;
        }
    }
    plan->updates_stats |=
        node->kind == KI_OP_BATCH_NORM && plan->options.mode == KI_TRAIN && !plan->options.frozen_bn;
    plan->wants_labels |= node->kind == KI_OP_SOFTMAX_XENT;
    KI_TRY(kernel_type->create(plan->backend, &spec, &step->info, &step->kernel, err));
    if (step->info.scratch_bytes > plan->scratch_bytes) plan->scratch_bytes = step->info.scratch_bytes;
    return KITH_OK;
}

/* Outputs and workspaces, with all their readers. */
static kith_status plan_forward_buffers(ki_plan *plan, kith_error *err) {
    for (int s = 0; s < plan->steps.n; s++) {
        ki_step *step = &plan->steps.step[s];
        /* The input is written before time 0 and stays, so that a step can be run again. */
        const bool stays = step->is_tap || step->node->kind == KI_OP_INPUT;
        KI_TRY(add_buffer(plan, step->edge.bytes, stays ? 0 : s, stays ? end_time(plan) : s,
                          &step->dst_buffer, err));
        if (step->info.workspace_bytes && plan->options.mode == KI_TRAIN)
            KI_TRY(add_buffer(plan, step->info.workspace_bytes, s, backward_time(plan, s),
                              &step->workspace_buffer, err));
        for (int k = 0; k < step->n_src; k++) read_at(plan, plan->steps.step[step->src[k]].dst_buffer, s);
        if (!step->runs_backward) continue;
        const int back = backward_time(plan, s);
        for (int k = 0; step->info.backward_reads_src && k < step->n_src; k++)
            read_at(plan, plan->steps.step[step->src[k]].dst_buffer, back);
        if (step->info.backward_reads_dst || (step->info.mask_in_join && !step->mask_done))
            read_at(plan, step->dst_buffer, back);
    }
    return KITH_OK;
}

static kith_status add_part(ki_step *step, ki_part part, kith_error *err) {
    if (step->n_parts == KI_MAX_PARTS)
        return ki_fail(err, KITH_EUNSUPPORTED, "node %s has more than %d consumers", step->out->name,
                       KI_MAX_PARTS);
    step->part[step->n_parts++] = part;
    return KITH_OK;
}

/* The gradient at a step's output: one of its parts as it is, a part overwritten by the sum, or a
 * buffer of its own when all parts are read by others too. */
static kith_status plan_join(ki_plan *plan, int s, kith_error *err) {
    ki_step *step = &plan->steps.step[s];
    const int back = backward_time(plan, s);
    for (int p = 0; p < step->n_parts; p++) read_at(plan, step->part[p].buffer, back);
    const bool masks = step->info.mask_in_join && !step->mask_done;
    step->joins = masks || (step->n_parts > 1 && !step->info.joins);
    if (!step->joins) {
        step->diff_buffer = step->part[0].buffer;
        step->diff_shared = step->part[0].shared;
        return KITH_OK;
    }
    for (int p = 0; p < step->n_parts; p++) {
        if (!step->part[p].shared) {
            step->diff_buffer = step->part[p].buffer;
            return KITH_OK;
        }
    }
    return add_buffer(plan, step->edge.bytes, back, back, &step->diff_buffer, err);
}

static kith_status plan_backward_buffers(ki_plan *plan, kith_error *err) {
    for (int s = plan->steps.n - 1; s >= 0; s--) {
        ki_step *step = &plan->steps.step[s];
        const int back = backward_time(plan, s);
        if (!step->live || !step->useful) continue;
        if (step->is_grad_tap) {
            KI_TRY(add_buffer(plan, step->edge.bytes, 0, back, &step->grad_buffer, err));
            KI_TRY(add_part(step, (ki_part){step->grad_buffer, false}, err));
        }
        if (step->n_parts == 0) continue;
        KI_TRY(plan_join(plan, s, err));
        if (step->node->kind == KI_OP_INPUT) {
            read_at(plan, step->diff_buffer, end_time(plan));
            continue;
        }
        for (int k = 0; k < step->n_src; k++) {
            ki_step *src = &plan->steps.step[step->src[k]];
            if (!src->useful) continue;
            const int src_back = backward_time(plan, step->src[k]);
            if (step->info.shares_diff) {
                read_at(plan, step->diff_buffer, src_back);
                step->diff_shared = true;
                KI_TRY(add_part(src, (ki_part){step->diff_buffer, true}, err));
            } else {
                KI_TRY(add_buffer(plan, src->edge.bytes, back, src_back, &step->diff_src_buffer[k], err));
                KI_TRY(add_part(src, (ki_part){step->diff_src_buffer[k], false}, err));
            }
        }
    }
    return KITH_OK;
}

static void *address(const ki_plan *plan, int buffer) {
    return buffer < 0 ? NULL : plan->block + plan->buffer[buffer].offset;
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

static kith_status bind_step(ki_plan *plan, ki_step *step, kith_error *err) {
    for (int p = 0; p < step->n_parts; p++) step->part_ptr[p] = address(plan, step->part[p].buffer);
    step->diff_ptr = address(plan, step->diff_buffer);
    step->mask_ptr = step->info.mask_in_join && !step->mask_done ? address(plan, step->dst_buffer) : NULL;
    if (!step->kernel) return KITH_OK;
    ki_binding binding = {.dst = address(plan, step->dst_buffer),
                          .workspace = address(plan, step->workspace_buffer),
                          .scratch = plan->block + plan->block_bytes,
                          .labels = plan->labels,
                          .step = &plan->step_number};
    for (int k = 0; k < step->n_src; k++) {
        binding.src[k] = address(plan, plan->steps.step[step->src[k]].dst_buffer);
        binding.diff_src[k] = address(plan, step->diff_src_buffer[k]);
    }
    if (step->info.joins && !step->joins) {
        binding.n_diff_dst = step->n_parts;
        for (int p = 0; p < step->n_parts; p++) binding.diff_dst[p] = step->part_ptr[p];
    } else {
        binding.n_diff_dst = 1;
        binding.diff_dst[0] = step->diff_ptr;
    }
    KI_TRY(bind_params(plan, step->node, false, step->runs_backward, &binding, err));
    if (step->bn) KI_TRY(bind_params(plan, step->bn, true, false, &binding, err));
    return step->kernel->type->bind(step->kernel, &binding, err);
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
    KI_CHECK(ki_steps_make(graph, backend->type, options, &plan->steps, err));
    for (int s = 0; s < plan->steps.n; s++) {
        status = create_kernel(plan, s, err);
        if (status != KITH_OK) {
            ki_prefix(err, status, "node %s", plan->steps.step[s].node->name);
            goto done;
        }
    }
    KI_CHECK(plan_forward_buffers(plan, err));
    KI_CHECK(plan_backward_buffers(plan, err));
    KI_CHECK(ki_memory_plan(plan->buffer, (int)plan->n_buffers, &plan->block_bytes, err));
    void *memory = NULL;
    KI_CHECK(backend->type->alloc(backend, plan->block_bytes + plan->scratch_bytes + KI_ALIGN, &memory, err));
    plan->block = memory;
    if (plan->wants_labels) {
        KI_CHECK(backend->type->alloc(backend, (size_t)options->mb * sizeof *plan->labels, &memory, err));
        plan->labels = memory;
        KI_CHECK(backend->type->zero(backend, memory, (size_t)options->mb * sizeof *plan->labels, err));
    }
    for (int s = 0; s < plan->steps.n; s++) {
        status = bind_step(plan, &plan->steps.step[s], err);
        if (status != KITH_OK) {
            ki_prefix(err, status, "node %s", plan->steps.step[s].node->name);
            goto done;
        }
        const ki_step *step = &plan->steps.step[s];
        ki_shape src_shape[KI_MAX_SRC];
        for (int k = 0; k < step->n_src; k++) src_shape[k] = plan->steps.step[step->src[k]].out->shape;
        const ki_op *op = ki_op_at(step->node->kind);
        if (op->flops) plan->forward_flops += op->flops(step->node, src_shape) * (double)options->mb;
    }
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
    ki_free(plan->buffer);
    plan->backend->type->free(plan->backend, plan->block);
    plan->backend->type->free(plan->backend, plan->labels);
    ki_free(plan);
}

kith_status ki_plan_set_input(ki_plan *plan, const ki_real *host, kith_error *err) {
    for (int s = 0; s < plan->steps.n; s++) {
        const ki_step *step = &plan->steps.step[s];
        if (step->node->kind == KI_OP_INPUT)
            return plan->backend->type->import(plan->backend, &step->edge, address(plan, step->dst_buffer),
                                               host, err);
    }
    return ki_fail(err, KITH_EINVAL, "the network has no input");
}

kith_status ki_plan_set_labels(ki_plan *plan, const int32_t *host, kith_error *err) {
    if (!plan->wants_labels) return ki_fail(err, KITH_EINVAL, "no node of the plan takes labels");
    return plan->backend->type->upload(plan->backend, plan->labels, host,
                                       (size_t)plan->options.mb * sizeof *host, err);
}

static kith_status pack(ki_plan *plan, kith_error *err) {
    const uint64_t version = ki_params_version(plan->params);
    if (plan->is_packed && plan->packed_version == version) return KITH_OK;
    for (int s = 0; s < plan->steps.n; s++) {
        ki_kernel *kernel = plan->steps.step[s].kernel;
        if (kernel && kernel->type->pack) KI_TRY(kernel->type->pack(kernel, err));
    }
    plan->is_packed = true;
    plan->packed_version = version;
    return KITH_OK;
}

kith_status ki_plan_forward(ki_plan *plan, kith_error *err) {
    KI_TRY(pack(plan, err));
    for (int s = 0; s < plan->steps.n; s++) {
        ki_kernel *kernel = plan->steps.step[s].kernel;
        if (!kernel) continue;
        const kith_status status = kernel->type->forward(kernel, err);
        if (status != KITH_OK) return ki_prefix(err, status, "node %s", plan->steps.step[s].node->name);
    }
    plan->step_number++;
    plan->has_run = true;
    if (plan->updates_stats) {
        /* Other plans must see the new running statistics; the kernels of this one do not keep them. */
        ki_params_touch(plan->params);
        plan->packed_version = ki_params_version(plan->params);
    }
    return KITH_OK;
}

static kith_status find_tap(const ki_plan *plan, const char *tap, int *ret_step, kith_error *err) {
    for (int s = 0; s < plan->steps.n; s++) {
        const ki_step *step = &plan->steps.step[s];
        if (step->is_tap && step->out->tap && strcmp(step->out->tap, tap) == 0) {
            *ret_step = s;
            return KITH_OK;
        }
    }
    return ki_fail(err, KITH_ENOTFOUND, "tap %s was not asked for when the plan was made", tap);
}

kith_status ki_plan_tap_shape(const ki_plan *plan, const char *tap, ki_shape *ret_shape, kith_error *err) {
    int s = 0;
    KI_TRY(find_tap(plan, tap, &s, err));
    *ret_shape = plan->steps.step[s].edge.shape;
    return KITH_OK;
}

kith_status ki_plan_read(ki_plan *plan, const char *tap, ki_real *host, kith_error *err) {
    int s = 0;
    KI_TRY(find_tap(plan, tap, &s, err));
    if (!plan->has_run) return ki_fail(err, KITH_EINVAL, "tap %s read before the first forward", tap);
    const ki_step *step = &plan->steps.step[s];
    KI_TRY(
        plan->backend->type->export(plan->backend, &step->edge, address(plan, step->dst_buffer), host, err));
    return plan->backend->type->sync(plan->backend, err);
}

kith_status ki_plan_set_grad(ki_plan *plan, const char *tap, const ki_real *host, kith_error *err) {
    int s = 0;
    KI_TRY(find_tap(plan, tap, &s, err));
    ki_step *step = &plan->steps.step[s];
    if (!step->is_grad_tap)
        return ki_fail(err, KITH_EINVAL, "tap %s was not asked for as one that takes a gradient", tap);
    if (step->grad_buffer < 0) return KITH_OK; /* nothing upstream is trained */
    step->grad_is_set = true;
    return plan->backend->type->import(plan->backend, &step->edge, address(plan, step->grad_buffer), host,
                                       err);
}

kith_status ki_plan_backward(ki_plan *plan, kith_error *err) {
    const ki_backend_type *type = plan->backend->type;
    if (plan->options.mode != KI_TRAIN) return ki_fail(err, KITH_EINVAL, "backward on a plan for inference");
    if (!plan->has_run) return ki_fail(err, KITH_EINVAL, "backward before forward");
    for (int s = plan->steps.n - 1; s >= 0; s--) {
        ki_step *step = &plan->steps.step[s];
        if (step->grad_buffer >= 0) {
            if (!step->grad_is_set)
                KI_TRY(type->zero(plan->backend, address(plan, step->grad_buffer), step->edge.bytes, err));
            step->grad_is_set = false;
        }
        if (step->joins)
            KI_TRY(type->join(plan->backend, &step->edge, step->n_parts, step->part_ptr, step->mask_ptr,
                              step->diff_ptr, err));
        if (!step->runs_backward || step->info.shares_diff) continue;
        const kith_status status = step->kernel->type->backward(step->kernel, err);
        if (status != KITH_OK) return ki_prefix(err, status, "node %s", step->node->name);
    }
    return KITH_OK;
}

void ki_plan_set_step(ki_plan *plan, uint64_t step) { plan->step_number = step; }

kith_status ki_plan_read_input_grad(ki_plan *plan, ki_real *host, kith_error *err) {
    for (int s = 0; s < plan->steps.n; s++) {
        const ki_step *step = &plan->steps.step[s];
        if (step->node->kind != KI_OP_INPUT || step->diff_buffer < 0) continue;
        KI_TRY(plan->backend->type->export(plan->backend, &step->edge, step->diff_ptr, host, err));
        return plan->backend->type->sync(plan->backend, err);
    }
    return ki_fail(err, KITH_EINVAL, "the plan does not compute the gradient at the input");
}

void ki_plan_stats_get(const ki_plan *plan, ki_plan_stats *ret_stats) {
    *ret_stats = (ki_plan_stats){.activation_bytes = plan->block_bytes,
                                 .scratch_bytes = plan->scratch_bytes,
                                 .n_fused_relu = plan->steps.n_fused_relu,
                                 .n_folded_bn = plan->steps.n_folded_bn,
                                 .forward_flops = plan->forward_flops};
    for (int s = 0; s < plan->steps.n; s++) ret_stats->n_kernels += plan->steps.step[s].kernel != NULL;
    for (size_t b = 0; b < plan->n_buffers; b++)
        ret_stats->unshared_bytes += ki_round_up(plan->buffer[b].bytes, KI_ALIGN);
}
