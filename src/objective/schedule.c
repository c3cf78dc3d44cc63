/* Making the schedule of an objective, and running it. */
#include "objective/schedule.h"

#include "objective/state.h"

/* A step for every slot, every term, every width, and the four around the logits, the loss and the embedding. */
enum { MOST_STEPS = KI_N_SLOTS + 8 + KI_NESTED_MOST };

static bool reads(unsigned taps, ki_tap tap) { return (taps & KI_TAP_BIT(tap)) != 0; }

static ki_slot slot_of(const ki_reg_use *reg, ki_tap tap) {
    if (tap != KI_TAP_EMBEDDING) return (ki_slot)tap;
    if (reg->normalize) return reg->stops ? KI_SLOT_UNIT_STOPPED : KI_SLOT_UNIT;
    return reg->stops ? KI_SLOT_STOPPED : KI_SLOT_EMBEDDING;
}

static void make_terms(const ki_objective *o, ki_objective_schedule *s) {
    for (size_t i = 0; i < o->n_regs; i++) {
        const ki_reg_use *reg = &o->reg[i];
        ki_schedule_term *term = &s->term[i];
        term->reads_unit = reg->normalize && reads(reg->taps, KI_TAP_EMBEDDING);
        term->assigns_map = reads(reg->taps, KI_TAP_MAP) && !s->has_slot[KI_SLOT_MAP];
        s->uses_unit |= term->reads_unit;
        for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
            if (!reads(reg->taps, tap) || ki_tap_is_teacher(tap)) continue;
            term->to[tap] = slot_of(reg, tap);
            s->has_slot[term->to[tap]] = true;
        }
    }
}

static void put(ki_objective_schedule *s, ki_schedule_step step) { s->step[s->n_steps++] = step; }

static void put_clear(ki_objective_schedule *s, ki_slot slot) {
    if (s->has_slot[slot]) put(s, (ki_schedule_step){.kind = KI_DO_CLEAR, .slot = slot});
}

static void put_loss(const ki_objective *o, ki_objective_schedule *s, ki_slot slot) {
    if (o->loss.record && o->nested.n == 0) put(s, (ki_schedule_step){.kind = KI_DO_LOSS, .slot = slot});
    for (size_t i = 0; i < (size_t)o->nested.n; i++)
        put(s, (ki_schedule_step){.kind = KI_DO_NESTED, .slot = slot, .term = i});
}

static void make_steps(const ki_objective *o, ki_objective_schedule *s) {
    const bool has_embedding = reads(o->taps, KI_TAP_EMBEDDING), has_logits = s->has_slot[KI_SLOT_LOGITS];
    const bool has_unit = s->has_slot[KI_SLOT_UNIT], adds_raw = s->has_slot[KI_SLOT_EMBEDDING];
    const ki_slot by_loss = o->loss.normalize ? KI_SLOT_UNIT : KI_SLOT_EMBEDDING;
    const bool assigns = o->loss.record && o->nested.n == 0;
    if (has_embedding) put(s, (ki_schedule_step){.kind = KI_DO_NORMALIZE});
    put_clear(s, KI_SLOT_POOLED);
    if (!assigns || by_loss != KI_SLOT_UNIT) put_clear(s, KI_SLOT_UNIT);
    /* Without a clear the loss assigns it, or the chain rule of the normalisation does. */
    s->has_slot[KI_SLOT_EMBEDDING] = has_embedding;
    if ((!assigns || by_loss != KI_SLOT_EMBEDDING) && (adds_raw || !has_unit))
        put_clear(s, KI_SLOT_EMBEDDING);
    put_clear(s, KI_SLOT_STOPPED);
    put_clear(s, KI_SLOT_UNIT_STOPPED);
    put_clear(s, KI_SLOT_LOGITS);
    if (has_logits) put(s, (ki_schedule_step){.kind = KI_DO_LOGITS});
    put_loss(o, s, by_loss);
    for (size_t i = 0; i < o->n_regs; i++) put(s, (ki_schedule_step){.kind = KI_DO_TERM, .term = i});
    if (has_logits) put(s, (ki_schedule_step){.kind = KI_DO_LOGITS_BACKWARD});
    if (has_unit)
        put(s, (ki_schedule_step){.kind = KI_DO_NORMALIZE_BACKWARD,
                                  .slot = KI_SLOT_UNIT,
                                  .to = KI_SLOT_EMBEDDING,
                                  .adds = adds_raw});
    if (s->has_slot[KI_SLOT_UNIT_STOPPED])
        put(s, (ki_schedule_step){.kind = KI_DO_NORMALIZE_BACKWARD,
                                  .slot = KI_SLOT_UNIT_STOPPED,
                                  .to = KI_SLOT_STOPPED,
                                  .adds = true});
}

kith_status ki_objective_schedule_make(ki_objective *o, kith_error *err) {
    ki_objective_schedule *s = &o->schedule;
    *s = (ki_objective_schedule){0};
    const size_t most = MOST_STEPS + o->n_regs;
    s->step = ki_arena_alloc(&o->arena, most, sizeof *s->step);
    s->term = ki_arena_alloc(&o->arena, o->n_regs + 1, sizeof *s->term);
    if (!s->step || !s->term) return ki_fail_memory(err, most * sizeof *s->step, "steps");
    make_terms(o, s);
    if (o->loss.record) s->has_slot[o->loss.normalize ? KI_SLOT_UNIT : KI_SLOT_EMBEDDING] = true;
    s->has_slot[KI_SLOT_UNIT] |= s->has_slot[KI_SLOT_LOGITS];
    s->has_slot[KI_SLOT_STOPPED] |= s->has_slot[KI_SLOT_UNIT_STOPPED];
    s->stops = s->has_slot[KI_SLOT_STOPPED];
    /* A description begins with the normalised embedding, head by head. */
    s->uses_unit |= s->has_slot[KI_SLOT_UNIT] || (reads(o->taps, KI_TAP_EMBEDDING) && o->sizes.heads > 1);
    make_steps(o, s);
    return KITH_OK;
}

static kith_status run_step(const ki_schedule_step *step, const ki_actions *type, void *user,
                            kith_error *err) {
    switch (step->kind) {
    case KI_DO_NORMALIZE: return type->normalize(user, err);
    case KI_DO_CLEAR: return type->clear(user, step->slot, err);
    case KI_DO_LOGITS: return type->logits(user, err);
    case KI_DO_LOSS: return type->loss(user, step->slot, err);
    case KI_DO_NESTED: return type->nested(user, step->term, step->slot, err);
    case KI_DO_TERM: return type->term(user, step->term, err);
    case KI_DO_LOGITS_BACKWARD: return type->logits_backward(user, err);
    case KI_DO_NORMALIZE_BACKWARD:
        return type->normalize_backward(user, step->slot, step->to, step->adds, err);
    }
    return ki_fail(err, KITH_EINTERNAL, "a step of kind %d", (int)step->kind);
}

kith_status ki_objective_schedule_run(const ki_objective_schedule *schedule, const ki_actions *type,
                                      void *user, kith_error *err) {
    for (size_t i = 0; i < schedule->n_steps; i++) KI_TRY(run_step(&schedule->step[i], type, user, err));
    return KITH_OK;
}
