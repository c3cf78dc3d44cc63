/* Which buffers a plan needs and when their contents matter. */
#include "base/alloc.h"
#include "nn/plan/planned.h"

static int backward_time(const ki_plan *plan, int s) { return 2 * plan->steps.n - 1 - s; }
static int end_time(const ki_plan *plan) { return 2 * plan->steps.n; }

/* The last time at which the late work of step s may still run: ki_plan_backward settles it before the
 * KI_LATE_STEPS-th late step after it. */
static int late_time(const ki_plan *plan, int s) {
    int n = 0;
    for (int i = s - 1; i >= 0; i--) {
        const ki_step *step = &plan->steps.step[i];
        if (ki_step_is_late(step) && ++n == KI_LATE_STEPS) return backward_time(plan, i);
    }
    return end_time(plan);
}

static kith_status add_buffer(ki_plan *plan, size_t bytes, int first, int last, ki_place *ret_place,
                              kith_error *err) {
    KI_TRY(ki_grow(&plan->buffer, &plan->buffer_capacity, plan->n_buffers + 1, sizeof *plan->buffer,
                   "a plan's buffers", err));
    plan->buffer[plan->n_buffers] = (ki_plan_buffer){.bytes = bytes, .first = first, .last = last};
    *ret_place = (ki_place){.buffer = (int)plan->n_buffers++};
    return KITH_OK;
}

static void read_at(ki_plan *plan, ki_place place, int time) {
    if (place.buffer >= 0 && plan->buffer[place.buffer].last < time) plan->buffer[place.buffer].last = time;
}

/* Bytes from the start of a sliced concat's buffer to the first channel of one of its sources. */
static size_t slice_offset(const ki_step *concat, const ki_step *src) {
    return concat->edge.bytes / (size_t)ki_shape_count(&concat->edge.shape) * (size_t)src->slice_at;
}

/* The output of step s, written from time s on. */
static kith_status add_output(ki_plan *plan, int s, kith_error *err) {
    ki_step *step = &plan->steps.step[s];
    ki_step *holder = step->slice_of < 0 ? step : &plan->steps.step[step->slice_of];
    if (holder->dst.buffer < 0) {
        /* The input is written before time 0 and stays, so that a step can be run again. */
        const bool stays = holder->is_tap || holder->node->kind == KI_OP_INPUT;
        KI_TRY(add_buffer(plan, holder->edge.bytes, stays ? 0 : s, stays ? end_time(plan) : s, &holder->dst,
                          err));
    }
    if (step != holder) step->dst = (ki_place){holder->dst.buffer, slice_offset(holder, step)};
    return KITH_OK;
}

/* Outputs and workspaces, with all their readers. */
static kith_status plan_forward_buffers(ki_plan *plan, kith_error *err) {
    for (int s = 0; s < plan->steps.n; s++) {
        ki_step *step = &plan->steps.step[s];
        KI_TRY(add_output(plan, s, err));
        if (step->info.workspace_bytes && !step->infers)
            KI_TRY(add_buffer(plan, step->info.workspace_bytes, s,
                              step->runs_backward ? backward_time(plan, s) : s, &step->workspace, err));
        for (int k = 0; k < step->n_src; k++) read_at(plan, plan->steps.step[step->src[k]].dst, s);
        if (!step->runs_backward) continue;
        const int back = ki_step_is_late(step) ? late_time(plan, s) : backward_time(plan, s);
        const int n_read = step->info.shares_added ? 1 : step->n_src;
        for (int k = 0; step->info.backward_reads_src && k < n_read; k++)
            read_at(plan, plan->steps.step[step->src[k]].dst, back);
        if (step->info.backward_reads_dst || (step->info.mask_in_join && !step->mask_done))
            read_at(plan, step->dst, backward_time(plan, s));
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

/* Whether every source of a sliced concat sums the parts of its gradient itself: then the parts need not be
 * summed for the concat. */
static bool sources_join(const ki_plan *plan, const ki_step *concat) {
    bool all = concat->is_sliced && !concat->info.mask_in_join;
    for (int k = 0; all && k < concat->n_src; k++) {
        const ki_step *src = &plan->steps.step[concat->src[k]];
        all = src->info.joins && src->runs_backward;
    }
    return all;
}

/* Where the gradient at a step's output is: one of its parts as it is, a part that the sum overwrites, or a
 * separate buffer if others also read all the parts. */
static kith_status plan_join(ki_plan *plan, int s, kith_error *err) {
    ki_step *step = &plan->steps.step[s];
    const int back = backward_time(plan, s);
    for (int p = 0; p < step->n_parts; p++) read_at(plan, step->part[p].place, back);
    step->hands_parts = sources_join(plan, step);
    if (step->hands_parts) return KITH_OK;
    const bool masks = step->info.mask_in_join && !step->mask_done;
    /* The sources of a sliced concat may mask their slices in place, so nothing else may read them. */
    const bool copies = step->is_sliced && step->part[0].shared;
    step->joins = masks || copies || (step->n_parts > 1 && !step->info.joins);
    if (!step->joins) {
        step->diff = step->part[0].place;
        step->diff_shared = step->part[0].shared;
        return KITH_OK;
    }
    for (int p = 0; p < step->n_parts; p++) {
        if (!step->part[p].shared) {
            step->diff = step->part[p].place;
            return KITH_OK;
        }
    }
    return add_buffer(plan, step->edge.bytes, back, back, &step->diff, err);
}

/* The gradient of a view is its slice of the merged step's, which has that one part. */
static kith_status give_view(ki_plan *plan, int s, int k, kith_error *err) {
    ki_step *step = &plan->steps.step[s];
    const ki_step *view = &plan->steps.step[step->src[k]];
    ki_step *whole = &plan->steps.step[view->slice_of];
    if (whole->n_parts == 0) {
        ki_part part = {.shared = false};
        KI_TRY(add_buffer(plan, whole->edge.bytes, backward_time(plan, s),
                          backward_time(plan, view->slice_of), &part.place, err));
        KI_TRY(add_part(whole, part, err));
    }
    const ki_place all = whole->part[0].place;
    step->diff_src[k] = (ki_place){all.buffer, all.offset + slice_offset(whole, view)};
    return KITH_OK;
}

/* Does a step add the part of its source's gradient that is there to its own, so that they need not be joined? */
static bool takes_part(const ki_plan *plan, const ki_step *step, const ki_step *src) {
    return step->info.takes_part && !plan->backend->options.plain_plan && src->n_parts == 1 &&
           !src->is_grad_tap && !src->is_sliced && src->slice_of < 0 && !src->info.joins;
}

/* The gradient that step s gives to its k-th source. */
static kith_status give_part(ki_plan *plan, int s, int k, kith_error *err) {
    ki_step *step = &plan->steps.step[s], *src = &plan->steps.step[step->src[k]];
    const int src_back = backward_time(plan, step->src[k]);
    if (src->is_view) return give_view(plan, s, k, err);
    if (step->adds_diff) {
        if (src->n_parts == 0 || src->part[0].shared)
            return ki_fail(err, KITH_EINTERNAL, "node %s adds to a gradient that is not there",
                           step->node->name);
        step->diff_src[k] = src->part[0].place;
        return KITH_OK;
    }
    for (int p = 0; step->hands_parts && p < step->n_parts; p++) {
        const ki_place all = step->part[p].place;
        const ki_place slice = {all.buffer, all.offset + slice_offset(step, src)};
        read_at(plan, slice, src_back);
        KI_TRY(add_part(src, (ki_part){slice, true}, err));
    }
    if (step->hands_parts) return KITH_OK;
    if (step->is_sliced) {
        const ki_place slice = {step->diff.buffer, step->diff.offset + slice_offset(step, src)};
        read_at(plan, slice, src_back);
        return add_part(src, (ki_part){slice, false}, err);
    }
    if (step->info.shares_diff || (step->info.shares_added && k == 1)) {
        read_at(plan, step->diff, src_back);
        step->diff_shared = true;
        return add_part(src, (ki_part){step->diff, true}, err);
    }
    if (takes_part(plan, step, src)) {
        step->added = src->part[--src->n_parts].place;
        read_at(plan, step->added, backward_time(plan, s));
    }
    KI_TRY(add_buffer(plan, src->edge.bytes, backward_time(plan, s), src_back, &step->diff_src[k], err));
    return add_part(src, (ki_part){step->diff_src[k], false}, err);
}

static kith_status plan_late(ki_plan *plan, int s, kith_error *err) {
    ki_step *step = &plan->steps.step[s];
    const int late = late_time(plan, s);
    if (step->info.late_reads_diff_dst) read_at(plan, step->diff, late);
    if (step->info.late_bytes == 0) return KITH_OK;
    return add_buffer(plan, step->info.late_bytes, backward_time(plan, s), late, &step->late, err);
}

static kith_status plan_backward_buffers(ki_plan *plan, kith_error *err) {
    for (int s = plan->steps.n - 1; s >= 0; s--) {
        ki_step *step = &plan->steps.step[s];
        if (!step->live || !step->useful) continue;
        if (step->is_grad_tap) {
            KI_TRY(add_buffer(plan, step->edge.bytes, 0, backward_time(plan, s), &step->grad, err));
            KI_TRY(add_part(step, (ki_part){step->grad, false}, err));
        }
        if (step->n_parts == 0 || step->is_view) continue;
        KI_TRY(plan_join(plan, s, err));
        if (ki_step_is_late(step)) KI_TRY(plan_late(plan, s, err));
        if (step->node->kind == KI_OP_INPUT) {
            read_at(plan, step->diff, end_time(plan));
            continue;
        }
        for (int k = 0; k < step->n_src; k++) {
            if (plan->steps.step[step->src[k]].useful) KI_TRY(give_part(plan, s, k, err));
        }
    }
    return KITH_OK;
}

kith_status ki_plan_buffers(ki_plan *plan, kith_error *err) {
    KI_TRY(plan_forward_buffers(plan, err));
    return plan_backward_buffers(plan, err);
}
