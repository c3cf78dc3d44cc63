/* The curve of false-match rates of an index, measured on its own items. */
#include "base/alloc.h"
#include "base/argument.h"
#include "base/text.h"
#include "judge/verification.h"
#include "search/index_handle.h"
#include "search/labelled.h"

enum {
    LEAST_CLASSES = 10,
    LEAST_PAIRS = 10000 /* of two classes: a rate of 1 % is a hundred of them */
};

/* ---- the curve ---- */

static kith_status check_enough(const kith_index *index, const ki_labelled *s, kith_error *err) {
    if (s->n_classes >= LEAST_CLASSES && s->n_different >= LEAST_PAIRS && s->n_same > 0) return KITH_OK;
    ki_fail(
        err, KITH_ENOTFOUND,
        "%s has %lld labels, %lld pairs of items with the same and %lld with different ones; wanted %d, 1 "
        "and %d",
        ki_index_name(index), (long long)s->n_classes, (long long)s->n_same, (long long)s->n_different,
        LEAST_CLASSES, LEAST_PAIRS);
    return ki_hint(err, KITH_ENOTFOUND, "measure the false-match rates on other images with classes");
}

static kith_status measure(const kith_index *index, const ki_labelled *s, kith_calibration *ret,
                           kith_error *err) {
    kith_status status;
    const ki_manifest *m = ki_index_committed(index);
    float *rows = NULL;
    kith_verification *found = NULL;
    KITH_OPTIONS(kith_verification_options, options);
    options.metric = m->metric;
    options.has_intervals = false;
    KI_CHECK(ki_zalloc_or(&found, 1, sizeof *found, "a curve", err));
    KI_CHECK(ki_alloc_or(&rows, (size_t)(s->n * m->dim), sizeof *rows, "vectors", err));
    KI_CHECK(kith_index_vectors(index, s->id, s->n, rows, err));
    const kith_array embedding = {KITH_F32, 2, {s->n, m->dim}, rows};
    const kith_retrieval_input input = {.embedding = &embedding, .labels = s->class_of, .n_labels = s->n};
    KI_CHECK(kith_verification_run(&input, &options, found, err));
    *ret = found->curve;
    ki_snprintf(ret->source, sizeof ret->source, "index");
done:
    ki_free(found);
    ki_free(rows);
    return status;
}

static kith_status check_beside(const kith_index *index, const kith_calibration *beside, kith_error *err) {
    const kith_metric metric = ki_index_committed(index)->metric;
    if (!beside) return KITH_OK;
    KI_TRY(kith_calibration_check(beside, err));
    if (beside->metric == metric) return KITH_OK;
    return ki_fail(err, KITH_EINVAL, "the curve beside is of scores by %s, the index has %s",
                   kith_metric_name(beside->metric), kith_metric_name(metric));
}

kith_status kith_index_calibrate_own(kith_index *index, const kith_calibration *beside,
                                     kith_calibration *ret_calibration, kith_error *err) {
    KI_NEED(err, index, ret_calibration);
    kith_status status;
    ki_labelled s = {0};
    kith_calibration curve;
    KI_TRY(ki_index_writable(index, err));
    KI_TRY(check_beside(index, beside, err));
    KI_CHECK(ki_labelled_take(index, ki_labelled_most(ki_index_committed(index)->dim), &s, err));
    KI_CHECK(check_enough(index, &s, err));
    KI_CHECK(measure(index, &s, &curve, err));
    if (beside) ki_calibration_stricter(&curve, beside, &curve);
    KI_CHECK(kith_index_calibrate(index, &curve, err));
    *ret_calibration = curve;
done:
    ki_labelled_release(&s);
    return status;
}
