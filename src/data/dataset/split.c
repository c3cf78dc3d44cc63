/* Which classes train, validate and test. Held-out classes are drawn from the training classes that have
 * images, by a shuffle that depends on the seed and the number of those classes alone. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/atomic.h"
#include "base/rng.h"
#include "data/dataset/dataset.h"
#include "data/dataset/table.h"

kith_status kith_dataset_split_first(kith_dataset *set, int64_t n_train, kith_error *err) {
    KI_NEED(err, set);
    if (n_train < 1 || (size_t)n_train > set->n_classes)
        return ki_fail(err, KITH_EINVAL, "%lld training classes asked of %zu; wanted 1 … %zu",
                       (long long)n_train, set->n_classes, set->n_classes);
    ki_dataset_split_at(set, (int32_t)n_train);
    return KITH_OK;
}

/* Training and validation classes with images, in order; validation items become training. */
static kith_status list_classes(kith_dataset *set, int64_t **ret_classes, int64_t *ret_n, kith_error *err) {
    int64_t *classes = NULL, n = 0;
    KI_TRY(ki_zalloc_or(&classes, set->n_classes, sizeof *classes, "classes", err));
    for (size_t i = 0; i < set->n_items; i++) {
        if (set->item[i].split == KITH_SPLIT_TEST) continue;
        set->item[i].split = KITH_SPLIT_TRAIN;
        classes[set->item[i].label] = 1;
    }
    for (size_t c = 0; c < set->n_classes; c++) {
        if (classes[c]) classes[n++] = (int64_t)c;
    }
    *ret_classes = classes;
    *ret_n = n;
    return KITH_OK;
}

/* Classes whose place in the seed's shuffle is in [begin, end) validate. */
static kith_status hold_out(kith_dataset *set, uint64_t seed, int64_t *classes, int64_t n, int64_t begin,
                            int64_t end, kith_error *err) {
    bool *held = NULL;
    KI_TRY(ki_zalloc_or(&held, set->n_classes, sizeof *held, "classes", err));
    ki_rng rng = ki_rng_at(seed, KI_RNG_SPLIT, 0, 0);
    ki_rng_shuffle(&rng, classes, n);
    for (int64_t i = begin; i < end; i++) held[classes[i]] = true;
    for (size_t i = 0; i < set->n_items; i++) {
        ki_item *item = &set->item[i];
        if (item->split == KITH_SPLIT_TRAIN && held[item->label]) item->split = KITH_SPLIT_VALIDATION;
    }
    ki_free(held);
    return KITH_OK;
}

kith_status kith_dataset_hold_out(kith_dataset *set, double fraction, uint64_t seed, kith_error *err) {
    KI_NEED(err, set);
    kith_status status = KITH_OK;
    int64_t *classes = NULL, n = 0;
    if (!(fraction > 0 && fraction < 1))
        return ki_fail(err, KITH_EINVAL, "the validation fraction is %g; wanted a number between 0 and 1",
                       fraction);
    KI_CHECK(list_classes(set, &classes, &n, err));
    if (n < 2) {
        status = ki_fail(err, KITH_EINVAL, "%s has %jd training classes; wanted at least 2 to hold one out",
                         set->root, (intmax_t)n);
        goto done;
    }
    int64_t n_held = (int64_t)llrint(fraction * (double)n);
    n_held = n_held < 1 ? 1 : n_held > n - 1 ? n - 1 : n_held;
    KI_CHECK(hold_out(set, seed, classes, n, 0, n_held, err));
done:
    ki_free(classes);
    return status;
}

kith_status kith_dataset_hold_out_fold(kith_dataset *set, int64_t n_folds, int64_t fold, uint64_t seed,
                                       kith_error *err) {
    KI_NEED(err, set);
    kith_status status = KITH_OK;
    int64_t *classes = NULL, n = 0;
    if (n_folds < 2 || fold < 0 || fold >= n_folds)
        return ki_fail(err, KITH_EINVAL, "fold %lld of %lld; wanted at least 2 folds and a fold from 0",
                       (long long)fold, (long long)n_folds);
    KI_CHECK(list_classes(set, &classes, &n, err));
    if (n < n_folds) {
        status = ki_fail(err, KITH_EINVAL,
                         "%s has %jd training classes; wanted at least one for each of %lld folds", set->root,
                         (intmax_t)n, (long long)n_folds);
        goto done;
    }
    KI_CHECK(hold_out(set, seed, classes, n, n * fold / n_folds, n * (fold + 1) / n_folds, err));
done:
    ki_free(classes);
    return status;
}

/* The split of each class; -1 for a class that is only in test. A class may be in test and training at once
 * (idx files): then training counts. */
static kith_status class_splits(const kith_dataset *set, int8_t **ret, kith_error *err) {
    int8_t *split = NULL;
    KI_TRY(ki_alloc_or(&split, set->n_classes, sizeof *split, "classes", err));
    memset(split, -1, set->n_classes);
    for (size_t i = 0; i < set->n_items; i++) {
        if (set->item[i].split != KITH_SPLIT_TEST) split[set->item[i].label] = (int8_t)set->item[i].split;
    }
    *ret = split;
    return KITH_OK;
}

kith_status kith_dataset_split_write(const kith_dataset *set, const char *path, kith_error *err) {
    KI_NEED(err, set, path);
    kith_status status = KITH_OK;
    int8_t *split = NULL;
    ki_buffer text = {.err = err};
    KI_CHECK(class_splits(set, &split, err));
    ki_buffer_put(&text, "class,split\n");
    for (size_t c = 0; c < set->n_classes; c++) {
        if (split[c] < 0) continue;
        ki_table_put(&text, set->class_[c].key);
        ki_buffer_put(&text, ",%s\n", kith_split_name((kith_split)split[c]));
    }
    KI_CHECK(text.status);
    KI_CHECK(ki_file_write(path, text.data, text.n, err));
done:
    ki_buffer_release(&text);
    ki_free(split);
    return status;
}

static int32_t find_class(const kith_dataset *set, ki_text key) {
    for (size_t c = 0; c < set->n_classes; c++) {
        if (ki_text_is(key, set->class_[c].key)) return (int32_t)c;
    }
    return -1;
}

static kith_status parse_split(const kith_dataset *set, const char *text, size_t n, int8_t *split,
                               kith_error *err) {
    kith_status status = KITH_OK;
    ki_table t = ki_table_of("split", text, n);
    bool more = false;
    KI_CHECK(ki_table_next(&t, &more, err));
    const int class_column = more ? ki_table_column(&t, "class") : -1;
    const int split_column = more ? ki_table_column(&t, "split") : -1;
    if (class_column < 0 || split_column < 0) {
        status = ki_lines_fail(&t.lines, t.line, "a header with the columns class and split", err);
        goto done;
    }
    for (;;) {
        KI_CHECK(ki_table_next(&t, &more, err));
        if (!more) break;
        const ki_text value = ki_table_field(&t, split_column);
        const int32_t label = find_class(set, ki_table_field(&t, class_column));
        const bool validates = ki_text_is(value, "validation");
        if (label < 0)
            status = ki_lines_fail(&t.lines, t.line, "a class of this data set", err);
        else if (!validates && !ki_text_is(value, "train"))
            status = ki_lines_fail(&t.lines, t.line, "train or validation as split", err);
        if (status != KITH_OK) goto done;
        split[label] = validates ? KITH_SPLIT_VALIDATION : KITH_SPLIT_TRAIN;
    }
done:
    ki_table_release(&t);
    return status;
}

kith_status kith_dataset_split_read(kith_dataset *set, const char *path, kith_error *err) {
    KI_NEED(err, set, path);
    kith_status status = KITH_OK;
    ki_bytes bytes = {0};
    int8_t *split = NULL;
    KI_CHECK(ki_bytes_read(&bytes, path, err));
    KI_CHECK(ki_alloc_or(&split, set->n_classes, sizeof *split, "classes", err));
    memset(split, -1, set->n_classes);
    status = parse_split(set, (const char *)bytes.data, bytes.n, split, err);
    for (size_t i = 0; status == KITH_OK && i < set->n_items; i++) {
        const ki_item *item = &set->item[i];
        if (item->split != KITH_SPLIT_TEST && split[item->label] < 0)
            status =
                ki_fail(err, KITH_EINVAL, "the class '%s' is not in the file", set->class_[item->label].key);
    }
    if (status != KITH_OK) {
        ki_prefix(err, status, "%s", path);
        goto done;
    }
    for (size_t i = 0; i < set->n_items; i++) {
        ki_item *item = &set->item[i];
        if (item->split != KITH_SPLIT_TEST) item->split = (uint8_t)split[item->label];
    }
done:
    ki_bytes_release(&bytes);
    ki_free(split);
    return status;
}
