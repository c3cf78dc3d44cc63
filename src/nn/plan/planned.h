/* What the files of a plan share: plan.c makes it, slice.c and buffers.c lay out its memory, run.c runs
 * it.
 *
 * Time in a plan: step s runs forward at time s and backward at 2n - 1 - s. Every buffer lives from
 * the time it is written to the last time it is read; ki_memory_plan turns that into addresses. */
#ifndef KI_PLANNED_H
#define KI_PLANNED_H

#include "nn/plan/memory.h"
#include "nn/plan/steps.h"

struct ki_plan {
    ki_backend *backend;
    ki_params *params;
    ki_plan_options options;
    ki_steps steps;
    ki_node *merged, *merged_norms; /* nodes of merged convolutions and batch norms */
    ki_node *swapped;               /* of pools that changed places */
    int n_swapped;
    ki_plan_buffer *buffer;
    size_t n_buffers, buffer_capacity;
    char *block;     /* device memory of all buffers, followed by the scratchpad */
    ki_real *wasted; /* device memory for gradients that nobody reads; NULL: no kernel needs it */
    size_t block_bytes, scratch_bytes, room; /* room: bytes of the block's memory */
    bool is_guest;                           /* the block is another plan's */
    uint64_t *
        step; /* backend memory: the step and the place of the first image; NULL: not read, or options.step */
    uint64_t step_number, first; /* what `step` is written from */
    uint64_t packed_version;
    bool is_packed, updates_stats, wants_step, has_run;
    double forward_flops;
    /* [steps + 1] with options.ready: steps before s write gradients only before number unfinished[s] of the slab. */
    int64_t *unfinished;
};

/* The parameters of step b begin where those of a end. */
bool ki_plan_follows(const ki_plan *plan, const ki_step *a, const ki_step *b);
/* The first step that reads what step s writes; NULL: none. */
const ki_step *ki_plan_consumer(const ki_plan *plan, int s);
/* Move average pools after the 1x1 convolution that follows them, where that is possible. */
kith_status ki_plan_swap_pools(ki_plan *plan, kith_error *err);
/* Replace the batch norms before a concat by one after it, where that is possible; steps are renumbered. */
kith_status ki_plan_merge_norms(ki_plan *plan, kith_error *err);
/* Merge convolutions of one source into one, where that is possible; steps are renumbered. */
kith_status ki_plan_merge(ki_plan *plan, kith_error *err);
/* Decide which concats are made of slices: their steps get slice_of, slice_at and a pitch. Edges must
 * have their shapes; kernels come after. */
void ki_plan_slice(ki_plan *plan);
/* Give every step its buffers. */
kith_status ki_plan_buffers(ki_plan *plan, kith_error *err);

/* Fill in `unfinished`. */
kith_status ki_plan_find_unfinished(ki_plan *plan, kith_error *err);

/* The late work of so many steps may run beside the steps after them. */
enum { KI_LATE_STEPS = 4 };

static inline bool ki_step_is_late(const ki_step *step) {
    return step->runs_backward && step->kernel && step->info.is_late;
}

/* Backward runs through parameters that do not learn: its kernel gets memory for their gradients that nobody reads, unless it can do
 * without. */
static inline bool ki_step_wastes_diffs(const ki_step *step) {
    return step->runs_backward && step->node->n_params > 0 && !ki_step_is_trained(step);
}

static inline void *ki_plan_address(const ki_plan *plan, ki_place place) {
    return place.buffer < 0 ? NULL : plan->block + plan->buffer[place.buffer].offset + place.offset;
}

#endif
