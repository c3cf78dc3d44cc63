/* Running a plan: a fixed list of calls on fixed pointers. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "nn/plan/planned.h"

static kith_status find_input(const ki_plan *plan, const ki_step **ret_step, kith_error *err) {
    for (int s = 0; s < plan->steps.n; s++) {
        if (plan->steps.step[s].node->kind != KI_OP_INPUT) continue;
        *ret_step = &plan->steps.step[s];
        return KITH_OK;
    }
    return ki_fail(err, KITH_EINVAL, "the network has no input");
}

kith_status ki_plan_set_input(ki_plan *plan, const ki_real *host, kith_error *err) {
    const ki_step *step = NULL;
    KI_TRY(find_input(plan, &step, err));
    return plan->backend->type->memory.import(plan->backend, &step->edge, ki_plan_address(plan, step->dst),
                                              host, err);
}

kith_status ki_plan_input_memory(ki_plan *plan, ki_edge *ret_edge, void **ret_ptr, kith_error *err) {
    const ki_step *step = NULL;
    KI_TRY(find_input(plan, &step, err));
    *ret_edge = step->edge;
    *ret_ptr = ki_plan_address(plan, step->dst);
    return KITH_OK;
}

/* ---- for measuring: what each call was and the bytes it had to move ---- */

static double bytes_of(const ki_step *step) { return (double)step->edge.bytes; }

static double param_bytes(const ki_step *step) {
    double n = 0;
    for (int p = 0; p < step->node->n_params; p++)
        n += (double)ki_shape_count(&step->node->param[p].shape) * (double)sizeof(ki_real);
    return n;
}

static double src_bytes(const ki_plan *plan, const ki_step *step) {
    double n = 0;
    for (int k = 0; k < step->n_src; k++) n += bytes_of(&plan->steps.step[step->src[k]]);
    return n;
}

static int64_t notes_so_far(const ki_plan *plan) {
    return plan->backend->probe ? plan->backend->probe->n : 0;
}

/* `before` is notes_so_far before the kernel was called. */
static void note_forward(ki_plan *plan, const ki_step *step, int64_t before) {
    if (notes_so_far(plan) != before || !plan->backend->probe) return;
    char what[64];
    ki_snprintf(what, sizeof what, "%s forward", ki_op_name(step->node->kind));
    ki_backend_note(plan->backend, what, src_bytes(plan, step) + bytes_of(step) + param_bytes(step));
}

static void note_backward(ki_plan *plan, const ki_step *step, int64_t before) {
    if (notes_so_far(plan) != before || !plan->backend->probe) return;
    char what[64];
    double n = bytes_of(step) + param_bytes(step);
    ki_snprintf(what, sizeof what, "%s backward", ki_op_name(step->node->kind));
    for (int k = 0; k < step->n_src; k++) {
        if (step->diff_src[k].buffer >= 0) n += bytes_of(&plan->steps.step[step->src[k]]);
    }
    if (step->info.backward_reads_src) n += src_bytes(plan, step);
    if (step->info.backward_reads_src && step->info.shares_added)
        n -= bytes_of(&plan->steps.step[step->src[1]]);
    if (step->added.buffer >= 0) n += bytes_of(&plan->steps.step[step->src[0]]);
    if (step->info.backward_reads_dst) n += bytes_of(step);
    ki_backend_note(plan->backend, what, n);
}

static kith_status pack(ki_plan *plan, kith_error *err) {
    const uint64_t version = ki_params_version(plan->params);
    if (plan->is_packed && plan->packed_version == version) return KITH_OK;
    for (int s = 0; s < plan->steps.n; s++) {
        ki_kernel *kernel = plan->steps.step[s].kernel;
        if (kernel && kernel->type->pack) KI_TRY(kernel->type->pack(kernel, err));
    }
    ki_backend_note(plan->backend, "weights packed",
                    1.5 * (double)ki_params_trained_n(plan->params) * sizeof(ki_real));
    plan->is_packed = true;
    plan->packed_version = version;
    return KITH_OK;
}

void ki_plan_set_step(ki_plan *plan, uint64_t step) { plan->step_number = step; }
void ki_plan_set_first(ki_plan *plan, int64_t first) { plan->first = (uint64_t)first; }

kith_status ki_plan_forward(ki_plan *plan, kith_error *err) {
    KI_TRY(pack(plan, err));
    if (plan->step && plan->options.mode == KI_TRAIN) {
        KI_TRY(plan->backend->type->memory.upload(plan->backend, plan->step, &plan->step_number,
                                                  sizeof plan->step_number, err));
        KI_TRY(plan->backend->type->memory.upload(plan->backend, plan->step + 1, &plan->first,
                                                  sizeof plan->first, err));
    }
    for (int s = 0; s < plan->steps.n; s++) {
        ki_kernel *kernel = plan->steps.step[s].kernel;
        if (!kernel) continue;
        const int64_t before = notes_so_far(plan);
        const kith_status status = kernel->type->forward(kernel, err);
        if (status != KITH_OK) return ki_prefix(err, status, "node %s", plan->steps.step[s].node->name);
        note_forward(plan, &plan->steps.step[s], before);
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
    KI_TRY(plan->backend->type->memory.export(plan->backend, &step->edge, ki_plan_address(plan, step->dst),
                                              host, err));
    return plan->backend->type->memory.sync(plan->backend, err);
}

static kith_status find_grad_tap(const ki_plan *plan, const char *tap, int *ret_step, kith_error *err) {
    KI_TRY(find_tap(plan, tap, ret_step, err));
    if (plan->steps.step[*ret_step].is_grad_tap) return KITH_OK;
    return ki_fail(err, KITH_EINVAL, "tap %s was not asked for as one that takes a gradient", tap);
}

kith_status ki_plan_set_grad(ki_plan *plan, const char *tap, const ki_real *host, kith_error *err) {
    int s = 0;
    KI_TRY(find_grad_tap(plan, tap, &s, err));
    ki_step *step = &plan->steps.step[s];
    if (step->grad.buffer < 0) return KITH_OK; /* nothing upstream is trained */
    step->grad_is_set = true;
    return plan->backend->type->memory.import(plan->backend, &step->edge, ki_plan_address(plan, step->grad),
                                              host, err);
}

kith_status ki_plan_tap_memory(const ki_plan *plan, const char *tap, ki_edge *ret_edge, void **ret_ptr,
                               kith_error *err) {
    int s = 0;
    KI_TRY(find_tap(plan, tap, &s, err));
    *ret_edge = plan->steps.step[s].edge;
    *ret_ptr = ki_plan_address(plan, plan->steps.step[s].dst);
    return KITH_OK;
}

kith_status ki_plan_grad_memory(ki_plan *plan, const char *tap, ki_edge *ret_edge, void **ret_ptr,
                                kith_error *err) {
    int s = 0;
    KI_TRY(find_grad_tap(plan, tap, &s, err));
    ki_step *step = &plan->steps.step[s];
    step->grad_is_lent = true;
    *ret_edge = step->edge;
    *ret_ptr = ki_plan_address(plan, step->grad);
    return KITH_OK;
}

/* Steps whose late work runs beside the queue: a ring, the oldest at n % KI_LATE_STEPS once it is full. */
typedef struct late_ring {
    int step[KI_LATE_STEPS], n;
} late_ring;

static kith_status settle(const ki_plan *plan, int s, kith_error *err) {
    ki_kernel *kernel = plan->steps.step[s].kernel;
    return kernel->type->settle(kernel, err);
}

static kith_status backward_step(ki_plan *plan, int s, late_ring *late, kith_error *err) {
    const ki_backend_type *type = plan->backend->type;
    ki_step *step = &plan->steps.step[s];
    if (ki_step_is_late(step)) {
        int *place = &late->step[late->n % KI_LATE_STEPS];
        if (late->n >= KI_LATE_STEPS) KI_TRY(settle(plan, *place, err));
        *place = s;
        late->n++;
    }
    if (step->grad.buffer >= 0) {
        if (!step->grad_is_set && !step->grad_is_lent)
            KI_TRY(
                type->memory.zero(plan->backend, ki_plan_address(plan, step->grad), step->edge.bytes, err));
        step->grad_is_set = false;
    }
    if (step->joins) {
        KI_TRY(type->kernels.join(plan->backend, &step->edge, step->n_parts, step->part_ptr, step->mask_ptr,
                                  step->diff_ptr, err));
        ki_backend_note(plan->backend, "join",
                        (step->n_parts + 1 + (step->mask_ptr != NULL)) * bytes_of(step));
    }
    if (!step->runs_backward || !step->kernel || step->info.shares_diff) return KITH_OK;
    const int64_t before = notes_so_far(plan);
    const kith_status status = step->kernel->type->backward(step->kernel, err);
    if (status != KITH_OK) return ki_prefix(err, status, "node %s", step->node->name);
    note_backward(plan, step, before);
    return KITH_OK;
}

/* Which gradients are complete, for options.ready. Kernels that leave gradients to later are flushed now and then; what a
 * late kernel was flushed of is complete when it is settled. */
typedef struct progress {
    int64_t asked;   /* gradients from here on are complete, or will be when `flushed` is settled */
    int64_t waiting; /* the same number, as long as nobody was told; -1: all is told */
    int flushed;     /* -1: nothing to wait for */
    int leaves;      /* the last step that may have left gradients; -1: none */
} progress;

static bool is_settled(int s, const late_ring *late) {
    const int n = late->n < KI_LATE_STEPS ? late->n : KI_LATE_STEPS;
    return n == 0 || s > late->step[(late->n - n) % KI_LATE_STEPS];
}

/* After the backward of step s. */
static kith_status advance(const ki_plan *plan, int s, const late_ring *late, progress *p, kith_error *err) {
    const ki_plan_options *o = &plan->options;
    const ki_step *step = &plan->steps.step[s];
    if (step->kernel && step->runs_backward && step->kernel->type->flush) p->leaves = s;
    if (p->waiting < 0 && p->asked - plan->unfinished[s] >= o->ready_every) {
        p->asked = p->waiting = plan->unfinished[s];
        p->flushed = p->leaves;
        if (p->leaves >= 0) {
            ki_kernel *kernel = plan->steps.step[p->leaves].kernel;
            KI_TRY(kernel->type->flush(kernel, err));
        }
    }
    const bool is_due =
        p->flushed < 0 || !ki_step_is_late(&plan->steps.step[p->flushed]) || is_settled(p->flushed, late);
    if (p->waiting < 0 || !is_due) return KITH_OK;
    const int64_t from = p->waiting;
    p->waiting = -1;
    return o->ready(o->ready_user, from, err);
}

kith_status ki_plan_backward(ki_plan *plan, kith_error *err) {
    if (plan->options.mode != KI_TRAIN) return ki_fail(err, KITH_EINVAL, "backward on a plan for inference");
    if (!plan->has_run) return ki_fail(err, KITH_EINVAL, "backward before forward");
    late_ring late = {.n = 0};
    progress made = {.asked = ki_params_trained_n(plan->params), .waiting = -1, .flushed = -1, .leaves = -1};
    for (int s = plan->steps.n - 1; s >= 0; s--) {
        KI_TRY(backward_step(plan, s, &late, err));
        if (plan->options.ready) KI_TRY(advance(plan, s, &late, &made, err));
    }
    return late.n == 0 ? KITH_OK : settle(plan, late.step[(late.n - 1) % KI_LATE_STEPS], err);
}

kith_status ki_plan_read_input_grad(ki_plan *plan, ki_real *host, kith_error *err) {
    for (int s = 0; s < plan->steps.n; s++) {
        const ki_step *step = &plan->steps.step[s];
        if (step->node->kind != KI_OP_INPUT || step->diff.buffer < 0) continue;
        KI_TRY(plan->backend->type->memory.export(plan->backend, &step->edge, step->diff_ptr, host, err));
        return plan->backend->type->memory.sync(plan->backend, err);
    }
    return ki_fail(err, KITH_EINVAL, "the plan does not compute the gradient at the input");
}
