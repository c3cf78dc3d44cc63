/* Checks of a batch before anything is computed from it. */
#include "objective/check.h"

static const char *const tap_names[] = {"map",     "pooled",    "embedding", "logits",   "weight",
                                        "teacher", "teacher_1", "teacher_2", "teacher_3"};
_Static_assert(sizeof tap_names / sizeof tap_names[0] == KI_N_TAPS, "a name for every tap");

const char *ki_tap_name(ki_tap tap) { return tap_names[tap]; }

static kith_status check_finite(ki_tap tap, const ki_tap_data *data, kith_error *err) {
    const int64_t n = data->rows * data->cols;
    if (ki_vec_get()->finite(data->data, n)) return KITH_OK;
    for (int64_t i = 0; i < n; i++) {
        if (isfinite(data->data[i])) continue;
        ki_fail(err, KITH_ENUMERIC, "%s[%lld, %lld] is %s", ki_tap_name(tap), (long long)(i / data->cols),
                (long long)(i % data->cols), isnan(data->data[i]) ? "NaN" : "infinite");
        return ki_hint(err, KITH_ENUMERIC,
                       "look for a learning rate that is too high or an unreadable input");
    }
    return KITH_OK;
}

static kith_status check_tap(const ki_objective *o, const ki_batch *batch, ki_tap tap, kith_error *err) {
    const ki_tap_data *data = &batch->tap[tap];
    if (!data->data) {
        ki_fail(err, KITH_EINVAL, "the objective reads %s, which the batch does not have", ki_tap_name(tap));
        return ki_hint(err, KITH_EINVAL, "give it, or leave out the term that reads it");
    }
    if (data->cols < 1 || (tap != KI_TAP_WEIGHT && data->rows != batch->m))
        return ki_fail(err, KITH_ESHAPE, "%s is [%lld, %lld]; wanted %lld rows, one for each label",
                       ki_tap_name(tap), (long long)data->rows, (long long)data->cols, (long long)batch->m);
    const int64_t wanted = tap == KI_TAP_EMBEDDING  ? o->sizes.embedding
                           : tap == KI_TAP_POOLED   ? o->sizes.pooled
                           : ki_tap_is_teacher(tap) ? o->sizes.teacher[tap - KI_TAP_TEACHER]
                                                    : 0;
    if (wanted && data->cols != wanted)
        return ki_fail(err, KITH_ESHAPE, "%s has %lld columns; the objective was made for %lld",
                       ki_tap_name(tap), (long long)data->cols, (long long)wanted);
    if (tap == KI_TAP_MAP && (data->c < 1 || data->hw < 1 || data->c * data->hw != data->cols))
        return ki_fail(err, KITH_ESHAPE, "map has %lld numbers for an item; wanted c * h * w = %lld * %lld",
                       (long long)data->cols, (long long)data->c, (long long)data->hw);
    if (tap == KI_TAP_MAP && o->sizes.map && data->c != o->sizes.map)
        return ki_fail(err, KITH_ESHAPE, "map has %lld channels; the objective was made for %lld",
                       (long long)data->c, (long long)o->sizes.map);
    return KITH_OK;
}

static bool reads(const ki_objective *o, ki_tap tap) {
    return tap != KI_TAP_LOGITS && (o->taps & KI_TAP_BIT(tap)) != 0;
}

kith_status ki_batch_check_shapes(const ki_objective *o, const ki_batch *batch, kith_error *err) {
    if (batch->m < (ki_comm_is_alone(batch->comm) ? 1 : 0) || batch->m > INT32_MAX)
        return ki_fail(err, KITH_ESHAPE, "the batch has %lld items; wanted at least 1", (long long)batch->m);
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        if (reads(o, tap)) KI_TRY(check_tap(o, batch, tap, err));
    }
    return ki_nested_check(&o->nested, batch->tap[KI_TAP_EMBEDDING].cols, err);
}

kith_status ki_batch_check_taps(const ki_objective *o, const ki_batch *batch, kith_error *err) {
    KI_TRY(ki_batch_check_shapes(o, batch, err));
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        if (reads(o, tap)) KI_TRY(check_finite(tap, &batch->tap[tap], err));
    }
    return KITH_OK;
}

int64_t ki_batch_labelled(const ki_batch *batch) {
    int64_t n = 0;
    while (n < batch->m && batch->label[n] >= 0) n++;
    return n;
}

/* The embedding layer's weights have no row for an item. */
static bool reads_classes(const ki_reg_use *reg) {
    return !reg->record->counts_all && (reg->taps & ~KI_TAP_BIT(KI_TAP_WEIGHT)) != 0;
}

const char *ki_objective_reads_classes(const ki_objective *o) {
    if (o->loss.record) return o->loss.record->method.name;
    for (size_t i = 0; i < o->n_regs; i++) {
        if (reads_classes(&o->reg[i])) return o->reg[i].record->method.name;
    }
    return NULL;
}

kith_status ki_batch_check_labelled(const ki_objective *o, int64_t m, int64_t n_labelled, kith_error *err) {
    const char *name = ki_objective_reads_classes(o);
    if (n_labelled == m) return KITH_OK;
    if (n_labelled == 0 && name) {
        ki_fail(err, KITH_EINVAL, "no item of the batch has a class, and %s counts only those that have",
                name);
        return ki_hint(err, KITH_EINVAL, "add data with classes, or leave %s out", name);
    }
    for (size_t i = 0; i < o->n_regs; i++) {
        const ki_reg_use *reg = &o->reg[i];
        if (!reads_classes(reg) || !(reg->taps & KI_TAP_BIT(KI_TAP_MAP))) continue;
        ki_fail(err, KITH_EUNSUPPORTED,
                "%s reads the map of items with classes alone, and %lld of %lld have none",
                reg->record->method.name, (long long)(m - n_labelled), (long long)m);
        return ki_hint(err, KITH_EUNSUPPORTED, "leave it out, or train on data with classes alone");
    }
    return KITH_OK;
}

kith_status ki_batch_check_classes(const ki_objective *o, const ki_batch *batch, kith_error *err) {
    const int64_t n = ki_batch_labelled(batch);
    for (int64_t i = n; i < batch->m; i++) {
        if (batch->label[i] < 0) continue;
        ki_fail(err, KITH_EINVAL, "label[%lld] is -1, and label[%lld] is %d", (long long)n, (long long)i,
                batch->label[i]);
        return ki_hint(err, KITH_EINVAL, "put items without a class at the end of the batch");
    }
    return ki_batch_check_labelled(o, batch->m, n, err);
}

kith_status ki_batch_check(const ki_objective *o, const ki_batch *batch, kith_error *err) {
    KI_TRY(ki_batch_check_taps(o, batch, err));
    for (int64_t i = 0; i < batch->m; i++) {
        const int32_t label = batch->label[i];
        if (label == -1) continue;
        if (label >= 0 && (!o->sizes.n_classes || label < o->sizes.n_classes)) continue;
        ki_fail(err, KITH_EINVAL, "label[%lld] is %d; wanted a class id from 0 to %lld", (long long)i, label,
                (long long)(o->sizes.n_classes ? o->sizes.n_classes - 1 : INT32_MAX));
        return ki_hint(err, KITH_EINVAL, "proxies and per-class parameters have one row for each class id");
    }
    return ki_comm_is_alone(batch->comm) ? ki_batch_check_classes(o, batch, err) : KITH_OK;
}
