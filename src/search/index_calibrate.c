/* The curve of false-match rates of an index, measured on its own items. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/rng.h"
#include "base/text.h"
#include "judge/verification.h"
#include "search/index_handle.h"

enum {
    MOST_ITEMS = 10000,
    MOST_NUMBERS = 32000000, /* of all vectors that are measured, 128 MB */
    LEAST_CLASSES = 10,
    LEAST_PAIRS = 10000, /* of two classes: a rate of 1 % is a hundred of them */
    N_BUCKETS = 1 << 16
};

/* Items that have a label. */
typedef struct sample {
    int64_t n, *id;
    int64_t *class_of; /* [n]: the number of its label */
    int64_t n_classes, n_same, n_different;
} sample;

static void sample_release(sample *s) {
    kith_ids_free(s->id);
    ki_free(s->class_of);
}

/* ---- which items ---- */

static int64_t most_items(int64_t dim) {
    return MOST_NUMBERS / dim < MOST_ITEMS ? MOST_NUMBERS / dim : MOST_ITEMS;
}

static uint32_t bucket_of(int64_t id) {
    ki_rng rng = ki_rng_at(0, KI_RNG_SEARCH, (uint32_t)id, (uint32_t)((uint64_t)id >> 32));
    return ki_rng_u32(&rng) >> 16;
}

/* Keep `most` of the ids, as if drawn: those in the first buckets. Every n-th id would leave one item of each class where classes
 * are small and lie in a row. */
static kith_status thin(sample *s, int64_t most, kith_error *err) {
    int64_t *count = NULL, n_first = 0, n_kept = 0;
    uint32_t last = 0; /* the bucket that is not taken as a whole */
    if (s->n <= most) return KITH_OK;
    KI_TRY(ki_zalloc_or(&count, N_BUCKETS, sizeof *count, "a sample", err));
    for (int64_t i = 0; i < s->n; i++) count[bucket_of(s->id[i])]++;
    while (n_first + count[last] <= most) n_first += count[last++];
    int64_t n_left = most - n_first;
    for (int64_t i = 0; i < s->n; i++) {
        const uint32_t bucket = bucket_of(s->id[i]);
        if (bucket < last || (bucket == last && n_left-- > 0)) s->id[n_kept++] = s->id[i];
    }
    s->n = n_kept;
    ki_free(count);
    return KITH_OK;
}

/* ---- their classes ---- */

typedef struct labelled {
    const char *label;
    int64_t at;
} labelled;

static int by_label(const void *a, const void *b) {
    return strcmp(((const labelled *)a)->label, ((const labelled *)b)->label);
}

/* Number the labels, and count the pairs. */
static void number(sample *s, labelled *order) {
    int64_t n_alike = 0; /* items before this one that have its label */
    if (s->n > 0) qsort(order, (size_t)s->n, sizeof *order, by_label);
    for (int64_t i = 0; i < s->n; i++) {
        const bool is_new = i == 0 || strcmp(order[i].label, order[i - 1].label) != 0;
        n_alike = is_new ? 0 : n_alike + 1;
        s->n_classes += is_new;
        s->n_same += n_alike;
        s->class_of[order[i].at] = s->n_classes - 1;
    }
    s->n_different = s->n * (s->n - 1) / 2 - s->n_same;
}

static kith_status classify(const kith_index *index, sample *s, kith_error *err) {
    kith_status status;
    ki_arena arena = {0};
    const char **labels = NULL;
    labelled *order = NULL;
    KI_CHECK(ki_zalloc_or(&labels, (size_t)s->n, sizeof *labels, "labels", err));
    KI_CHECK(ki_alloc_or(&order, (size_t)s->n, sizeof *order, "labels", err));
    KI_CHECK(ki_alloc_or(&s->class_of, (size_t)s->n, sizeof *s->class_of, "labels", err));
    KI_CHECK(ki_index_labels(index, s->id, s->n, &arena, labels, err));
    for (int64_t i = 0; i < s->n; i++) order[i] = (labelled){labels[i] ? labels[i] : "", i};
    number(s, order);
done:
    ki_free(labels);
    ki_free(order);
    ki_arena_release(&arena);
    return status;
}

/* ---- the curve ---- */

static kith_status check_enough(const kith_index *index, const sample *s, kith_error *err) {
    if (s->n_classes >= LEAST_CLASSES && s->n_different >= LEAST_PAIRS && s->n_same > 0) return KITH_OK;
    ki_fail(
        err, KITH_ENOTFOUND,
        "%s has %lld labels, %lld pairs of items with the same and %lld with different ones; wanted %d, 1 "
        "and %d",
        ki_index_name(index), (long long)s->n_classes, (long long)s->n_same, (long long)s->n_different,
        LEAST_CLASSES, LEAST_PAIRS);
    return ki_hint(err, KITH_ENOTFOUND, "measure the false-match rates on other images with classes");
}

static kith_status measure(const kith_index *index, const sample *s, kith_calibration *ret, kith_error *err) {
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
    sample s = {0};
    kith_calibration curve;
    KI_TRY(ki_index_writable(index, err));
    KI_TRY(check_beside(index, beside, err));
    KI_CHECK(kith_index_ids(index, "label != ''", &s.id, &s.n, err));
    KI_CHECK(thin(&s, most_items(ki_index_committed(index)->dim), err));
    KI_CHECK(classify(index, &s, err));
    KI_CHECK(check_enough(index, &s, err));
    KI_CHECK(measure(index, &s, &curve, err));
    if (beside) ki_calibration_stricter(&curve, beside, &curve);
    KI_CHECK(kith_index_calibrate(index, &curve, err));
    *ret_calibration = curve;
done:
    sample_release(&s);
    return status;
}
