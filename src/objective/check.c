/* Checks of a batch before anything is computed from it. */
#include "objective/check.h"

static const char *const tap_names[] = {"map", "pooled", "embedding", "logits", "weight"};

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
    const int64_t wanted = tap == KI_TAP_EMBEDDING ? o->sizes.embedding
                           : tap == KI_TAP_POOLED  ? o->sizes.pooled
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
    return KITH_OK;
}

kith_status ki_batch_check_taps(const ki_objective *o, const ki_batch *batch, kith_error *err) {
    KI_TRY(ki_batch_check_shapes(o, batch, err));
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        if (reads(o, tap)) KI_TRY(check_finite(tap, &batch->tap[tap], err));
    }
    return KITH_OK;
}

kith_status ki_batch_check(const ki_objective *o, const ki_batch *batch, kith_error *err) {
    KI_TRY(ki_batch_check_taps(o, batch, err));
    for (int64_t i = 0; i < batch->m; i++) {
        const int32_t label = batch->label[i];
        if (label >= 0 && (!o->sizes.n_classes || label < o->sizes.n_classes)) continue;
        ki_fail(err, KITH_EINVAL, "label[%lld] is %d; wanted a class id from 0 to %lld", (long long)i, label,
                (long long)(o->sizes.n_classes ? o->sizes.n_classes - 1 : INT32_MAX));
        return ki_hint(err, KITH_EINVAL, "proxies and per-class parameters have one row for each class id");
    }
    return KITH_OK;
}
