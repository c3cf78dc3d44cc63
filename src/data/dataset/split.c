/* Which classes train, validate and test. Held-out classes are drawn from the training classes that have
 * images, by a shuffle that depends on the seed and the number of those classes alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/atomic.h"
#include "base/rng.h"
#include "base/text.h"
#include "data/dataset/dataset.h"
#include "data/dataset/table.h"

kith_status kith_dataset_split_first(kith_dataset *set, int64_t n_train, kith_error *err) {
    KI_NEED(err, set);
    if (n_train < 1 || (size_t)n_train > set->n_classes)
        return ki_fail(err, KITH_EINVAL, "%lld training classes asked of %zu; wanted 1 … %zu",
                       (long long)n_train, set->n_classes, set->n_classes);
    ki_dataset_split_at(set, (int32_t)n_train);
    return ki_dataset_check_groups(set, err);
}

/* What is held out together: a class, or several that share groups. */
typedef struct unit {
    int64_t first; /* the lowest of its classes */
    int64_t n;     /* classes */
} unit;

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

/* The units of the training classes, shuffled by the seed. *ret_unit: of every class. */
static kith_status list_units(kith_dataset *set, uint64_t seed, unit **ret_units, int64_t *ret_n_units,
                              int64_t *ret_n_classes, int32_t **ret_unit, kith_error *err) {
    kith_status status = KITH_OK;
    int64_t *classes = NULL, n = 0, n_units = 0;
    int32_t *unit_of = NULL;
    unit *units = NULL;
    KI_CHECK(list_classes(set, &classes, &n, err));
    KI_CHECK(ki_dataset_units(set, false, &unit_of, err));
    KI_CHECK(ki_zalloc_or(&units, set->n_classes, sizeof *units, "classes", err));
    for (int64_t i = 0; i < n; i++) units[unit_of[classes[i]]].n++;
    for (int64_t i = 0; i < n; i++) {
        if (unit_of[classes[i]] == classes[i]) classes[n_units++] = classes[i];
    }
    ki_rng rng = ki_rng_at(seed, KI_RNG_SPLIT, 0, 0);
    ki_rng_shuffle(&rng, classes, n_units);
    int64_t *size = NULL;
    KI_CHECK(ki_alloc_or(&size, (size_t)n_units + 1, sizeof *size, "classes", err));
    for (int64_t i = 0; i < n_units; i++) size[i] = units[classes[i]].n;
    for (int64_t i = 0; i < n_units; i++) units[i] = (unit){classes[i], size[i]};
    ki_free(size);
    *ret_units = units;
    *ret_n_units = n_units;
    *ret_n_classes = n;
    *ret_unit = unit_of;
    units = NULL;
    unit_of = NULL;
done:
    ki_free(classes);
    ki_free(unit_of);
    ki_free(units);
    return status;
}

/* Classes of the units that are marked validate. */
static void move_held(kith_dataset *set, const int32_t *unit_of, const bool *is_held) {
    for (size_t i = 0; i < set->n_items; i++) {
        ki_item *item = &set->item[i];
        if (item->split == KITH_SPLIT_TRAIN && is_held[unit_of[item->label]])
            item->split = KITH_SPLIT_VALIDATION;
    }
}

/* Units in their order, as far as they fit into n_held classes, at least one. */
static void take_part(const unit *units, int64_t n_units, int64_t n_held, bool *is_held) {
    int64_t n = 0, smallest = 0;
    for (int64_t i = 0; i < n_units; i++) {
        if (units[i].n < units[smallest].n) smallest = i;
        if (n + units[i].n > n_held) continue;
        is_held[units[i].first] = true;
        n += units[i].n;
    }
    if (n == 0) is_held[units[smallest].first] = true;
}

static int by_size(const void *a, const void *b) {
    const unit *x = *(const unit *const *)a, *y = *(const unit *const *)b;
    if (x->n != y->n) return x->n > y->n ? -1 : 1;
    return (x > y) - (x < y);
}

/* The largest first, each to the fold that has the fewest classes. */
static kith_status take_fold(const unit *units, int64_t n_units, int64_t n_folds, int64_t fold, bool *is_held,
                             kith_error *err) {
    kith_status status = KITH_OK;
    const unit **order = NULL;
    int64_t *n = NULL;
    KI_CHECK(ki_alloc_or(&order, (size_t)n_units, sizeof *order, "classes", err));
    KI_CHECK(ki_zalloc_or(&n, (size_t)n_folds, sizeof *n, "folds", err));
    for (int64_t i = 0; i < n_units; i++) order[i] = &units[i];
    qsort(order, (size_t)n_units, sizeof *order, by_size);
    for (int64_t i = 0; i < n_units; i++) {
        int64_t to = 0;
        for (int64_t f = 1; f < n_folds; f++) {
            if (n[f] < n[to]) to = f;
        }
        n[to] += order[i]->n;
        if (to == fold) is_held[order[i]->first] = true;
    }
done:
    ki_free(order);
    ki_free(n);
    return status;
}

/* "12 training classes, which their groups join into 3"; "12 training classes". */
static const char *count_units(char *text, size_t bytes, int64_t n, int64_t n_units) {
    if (n_units == n)
        ki_snprintf(text, bytes, "%jd training classes", (intmax_t)n);
    else
        ki_snprintf(text, bytes, "%jd training classes, which their groups join into %jd", (intmax_t)n,
                    (intmax_t)n_units);
    return text;
}

/* n_folds 0: a fraction. */
static kith_status hold_out(kith_dataset *set, double fraction, int64_t n_folds, int64_t fold, uint64_t seed,
                            kith_error *err) {
    kith_status status = KITH_OK;
    unit *units = NULL;
    int32_t *unit_of = NULL;
    bool *is_held = NULL;
    int64_t n_units = 0, n = 0;
    char found[120];
    KI_CHECK(list_units(set, seed, &units, &n_units, &n, &unit_of, err));
    KI_CHECK(ki_zalloc_or(&is_held, set->n_classes, sizeof *is_held, "classes", err));
    count_units(found, sizeof found, n, n_units);
    if (n_folds == 0 && n_units < 2)
        status = ki_fail(err, KITH_EINVAL, "%s has %s; wanted at least 2 to hold one out", set->root, found);
    else if (n_units < n_folds)
        status = ki_fail(err, KITH_EINVAL, "%s has %s; wanted at least one for each of %lld folds", set->root,
                         found, (long long)n_folds);
    if (status != KITH_OK) goto done;
    if (n_folds == 0) {
        const int64_t n_held = (int64_t)llrint(fraction * (double)n);
        take_part(units, n_units, n_held < 1 ? 1 : n_held > n - 1 ? n - 1 : n_held, is_held);
    } else if (n_units == n) {
        for (int64_t i = n * fold / n_folds; i < n * (fold + 1) / n_folds; i++)
            is_held[units[i].first] = true;
    } else {
        KI_CHECK(take_fold(units, n_units, n_folds, fold, is_held, err));
    }
    move_held(set, unit_of, is_held);
done:
    ki_free(units);
    ki_free(unit_of);
    ki_free(is_held);
    return status;
}

kith_status kith_dataset_hold_out(kith_dataset *set, double fraction, uint64_t seed, kith_error *err) {
    KI_NEED(err, set);
    if (!(fraction > 0 && fraction < 1))
        return ki_fail(err, KITH_EINVAL, "the validation fraction is %g; wanted a number between 0 and 1",
                       fraction);
    return hold_out(set, fraction, 0, 0, seed, err);
}

kith_status kith_dataset_hold_out_fold(kith_dataset *set, int64_t n_folds, int64_t fold, uint64_t seed,
                                       kith_error *err) {
    KI_NEED(err, set);
    if (n_folds < 2 || fold < 0 || fold >= n_folds)
        return ki_fail(err, KITH_EINVAL, "fold %lld of %lld; wanted at least 2 folds and a fold from 0",
                       (long long)fold, (long long)n_folds);
    return hold_out(set, 0, n_folds, fold, seed, err);
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
    status = ki_dataset_check_groups(set, err);
    if (status != KITH_OK) ki_prefix(err, status, "%s", path);
done:
    ki_bytes_release(&bytes);
    ki_free(split);
    return status;
}
