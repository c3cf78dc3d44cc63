/* Items with a label, all of them or a sample. */
#include "search/labelled.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "search/index_handle.h"

enum {
    MOST_ITEMS = 10000,
    MOST_NUMBERS = 32000000, /* of all vectors that are measured, 128 MB */
    N_BUCKETS = 1 << 16
};

void ki_labelled_release(ki_labelled *s) {
    kith_ids_free(s->id);
    ki_free(s->class_of);
}

/* ---- which items ---- */

int64_t ki_labelled_most(int64_t dim) {
    return MOST_NUMBERS / dim < MOST_ITEMS ? MOST_NUMBERS / dim : MOST_ITEMS;
}

static uint32_t bucket_of(int64_t id) {
    ki_rng rng = ki_rng_at(0, KI_RNG_SEARCH, (uint32_t)id, (uint32_t)((uint64_t)id >> 32));
    return ki_rng_u32(&rng) >> 16;
}

/* Keep `most` of the ids, as if drawn: those in the first buckets. Every n-th id would leave one item of each class where classes
 * are small and lie in a row. */
static kith_status thin(ki_labelled *s, int64_t most, kith_error *err) {
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
static void number(ki_labelled *s, labelled *order) {
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

static kith_status classify(const kith_index *index, ki_labelled *s, kith_error *err) {
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

kith_status ki_labelled_take(const kith_index *index, int64_t most, ki_labelled *ret, kith_error *err) {
    kith_status status;
    ki_labelled s = {0};
    KI_CHECK(kith_index_ids(index, "label != ''", &s.id, &s.n, err));
    KI_CHECK(thin(&s, most, err));
    KI_CHECK(classify(index, &s, err));
    *ret = s;
    s = (ki_labelled){0};
done:
    ki_labelled_release(&s);
    return status;
}
