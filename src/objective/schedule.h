/* The schedule of an objective: what runs when, and which gradient goes where, the same on every device.
 *
 * It is made once, when the objective is built. An engine (engine.h) runs the list with its own kernels:
 *
 *     normalize ─► clear … ─► logits ─► loss ─► term, term, … ─► logits backward ─► normalize backward …
 *
 * Gradients are summed in slots. Terms that read the normalised embedding and terms that read it as it is have slots of
 * their own: the chain rule of the normalisation is applied once, to the sum. So do terms whose gradient stops at the
 * embedding layer. The first writer of a slot assigns it, or a clear comes before it; all others add. */
#ifndef KI_OBJECTIVE_SCHEDULE_H
#define KI_OBJECTIVE_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "objective/reg/tap.h"

typedef struct ki_objective ki_objective;

/* The first ones are the gradients at the taps, under the taps' numbers. */
typedef enum ki_slot {
    KI_SLOT_MAP = KI_TAP_MAP,
    KI_SLOT_POOLED = KI_TAP_POOLED,
    KI_SLOT_EMBEDDING = KI_TAP_EMBEDDING, /* at the embedding as it is */
    KI_SLOT_LOGITS = KI_TAP_LOGITS,
    KI_SLOT_WEIGHT = KI_TAP_WEIGHT, /* added to, never cleared here: it is the gradient of a layer */
    KI_SLOT_UNIT = KI_N_TAPS,       /* at the normalised embedding */
    KI_SLOT_STOPPED,                /* as EMBEDDING and UNIT, from terms that stop at the embedding layer */
    KI_SLOT_UNIT_STOPPED,
    KI_N_SLOTS,
} ki_slot;

typedef enum ki_action {
    KI_DO_NORMALIZE, /* the embedding's rows: lengths, and unit vectors where the schedule `uses_unit` */
    KI_DO_CLEAR,     /* `slot`, which others add to */
    KI_DO_LOGITS,    /* cosines of embedding and proxies */
    KI_DO_LOSS,      /* assigns its gradient to `slot` */
    KI_DO_NESTED,    /* the loss on the first numbers of the embedding, width number `term`; adds to `slot` */
    KI_DO_TERM,      /* regularizer number `term`; adds to the slots of its record below */
    KI_DO_LOGITS_BACKWARD,    /* from LOGITS to UNIT and to the proxies (added) */
    KI_DO_NORMALIZE_BACKWARD, /* from `slot` to `to`: added if `adds`, else assigned */
} ki_action;

typedef struct ki_schedule_step {
    ki_action kind;
    ki_slot slot, to;
    bool adds;
    size_t term;
} ki_schedule_step;

/* What a regularizer reads and where its gradients go. */
typedef struct ki_schedule_term {
    ki_slot to[KI_N_TAPS]; /* for the taps it reads, except teachers */
    bool reads_unit;       /* its embedding tap is the normalised one */
    bool assigns_map;      /* it is the first that writes MAP: assign, do not add */
} ki_schedule_term;

typedef struct ki_objective_schedule {
    ki_schedule_step *step;
    size_t n_steps;
    ki_schedule_term *term;    /* one for each regularizer */
    bool has_slot[KI_N_SLOTS]; /* the slots that the steps write: they need memory */
    bool uses_unit;            /* some step, or a description, reads the normalised embedding */
    bool stops;                /* some gradient stops at the embedding layer: STOPPED is wanted */
} ki_objective_schedule;

/* From a parsed objective, into its arena. */
kith_status ki_objective_schedule_make(ki_objective *objective, kith_error *err);

/* The weight of a term at a step: it grows from 0 over the first `warmup` steps. */
static inline double ki_weight_at(double weight, int64_t warmup, uint64_t step) {
    if (warmup <= 0 || step >= (uint64_t)warmup) return weight;
    return weight * (double)step / (double)warmup;
}

/* How an engine takes the steps. All pointers are required. */
typedef struct ki_actions {
    kith_status (*normalize)(void *user, kith_error *err);
    kith_status (*clear)(void *user, ki_slot slot, kith_error *err);
    kith_status (*logits)(void *user, kith_error *err);
    kith_status (*loss)(void *user, ki_slot to, kith_error *err);
    kith_status (*nested)(void *user, size_t width, ki_slot to, kith_error *err);
    kith_status (*term)(void *user, size_t term, kith_error *err);
    kith_status (*logits_backward)(void *user, kith_error *err);
    kith_status (*normalize_backward)(void *user, ki_slot from, ki_slot to, bool adds, kith_error *err);
} ki_actions;

/* Runs the steps in order, up to the first failure. */
kith_status ki_objective_schedule_run(const ki_objective_schedule *schedule, const ki_actions *type,
                                      void *user, kith_error *err);

#endif
