/* Changing an index: what is the same for every store. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "knn/rows.h"
#include "search/index_handle.h"

kith_status ki_index_writable(const kith_index *index, kith_error *err) {
    if (!index->store->pending)
        return ki_fail(err, KITH_EINVAL, "%s was opened for reading", ki_index_name(index));
    if (!index->store->is_broken) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "an earlier change of %s failed", ki_index_name(index));
    return ki_hint(err, KITH_EINVAL, "close the index and open it again: it is as it was at the last commit");
}

/* ---- adding ---- */

static kith_status check_value(const kith_column *column, const kith_value *value, int64_t item,
                               kith_error *err) {
    if (value->type == KITH_VALUE_NONE) return KITH_OK;
    if (value->type != column->type)
        return ki_fail(err, KITH_EINVAL, "item %lld: column '%s' holds values of type %s; found %s",
                       (long long)item, column->name, kith_value_type_name(column->type),
                       kith_value_type_name(value->type));
    const bool is_bad = (value->type == KITH_VALUE_REAL && !isfinite(value->real)) ||
                        (value->type == KITH_VALUE_INT && value->integer == KI_NO_INTEGER) ||
                        (value->type == KITH_VALUE_TEXT && !value->text);
    if (!is_bad) return KITH_OK;
    return ki_fail(err, KITH_EINVAL, "item %lld: column '%s' has a value that cannot be stored",
                   (long long)item, column->name);
}

static kith_status check_items(const ki_manifest *m, const kith_index_item *items, int64_t n,
                               kith_error *err) {
    for (int64_t i = 0; items && i < n; i++) {
        if (items[i].bytes < -1 || items[i].mtime_ns == KI_NO_INTEGER)
            return ki_fail(err, KITH_EINVAL, "item %lld: %lld bytes; wanted -1 or more", (long long)i,
                           (long long)items[i].bytes);
        for (int64_t j = 0; items[i].values && j < m->n_columns; j++)
            KI_TRY(check_value(&m->columns[j], &items[i].values[j], i, err));
    }
    return KITH_OK;
}

/* Items with their paths as the index keeps them, in the arena. */
static kith_status keep_paths(const kith_index *index, int64_t n, const kith_index_item **items,
                              ki_arena *arena, kith_error *err) {
    if (!index->place || !*items) return KITH_OK;
    kith_index_item *kept = ki_arena_alloc(arena, (size_t)n + 1, sizeof *kept);
    if (!kept) return ki_fail_memory(err, (size_t)n * sizeof *kept, "items");
    for (int64_t i = 0; i < n; i++) {
        ki_path buf;
        kept[i] = (*items)[i];
        if (!kept[i].path) continue;
        kept[i].path = ki_arena_strdup(arena, ki_index_place_was(index->place, kept[i].path, &buf));
        if (!kept[i].path) return ki_fail_memory(err, 1, "a path");
    }
    *items = kept;
    return KITH_OK;
}

kith_status kith_index_add(kith_index *index, const kith_array *rows, const kith_index_item *items,
                           int64_t *ret_ids, kith_error *err) {
    KI_NEED(err, index, rows);
    kith_status status = KITH_OK;
    kith_array converted = {0};
    ki_arena arena = {0};
    ki_rows checked;
    int64_t first = 0;
    KI_TRY(ki_index_writable(index, err));
    KI_TRY(ki_rows_init(rows, "rows", &checked, err));
    const ki_manifest *m = ki_index_manifest(index);
    if (checked.dim != m->dim)
        return ki_fail(err, KITH_ESHAPE, "rows have %lld values; the index has %lld", (long long)checked.dim,
                       (long long)m->dim);
    KI_TRY(check_items(m, items, checked.n, err));
    if (rows->dtype != KITH_F32) KI_CHECK(kith_array_convert(rows, KITH_F32, &converted, err));
    const float *data = rows->dtype == KITH_F32 ? rows->data : converted.data;
    KI_CHECK(keep_paths(index, checked.n, &items, &arena, err));
    KI_CHECK(index->store->type->add(index->store, data, checked.n, items, &first, err));
    for (int64_t i = 0; ret_ids && i < checked.n; i++) ret_ids[i] = first + i;
done:
    ki_arena_release(&arena);
    kith_array_release(&converted);
    return status;
}

/* ---- removing and the rest ---- */

static kith_status remove_items(kith_index *index, const int64_t *ids, int64_t n, bool excludes,
                                kith_error *err) {
    KI_NEED(err, index, ids);
    KI_NEED_COUNT(err, n);
    KI_TRY(ki_index_writable(index, err));
    return index->store->type->remove(index->store, ids, n, excludes, err);
}

kith_status kith_index_remove(kith_index *index, const int64_t *ids, int64_t n, kith_error *err) {
    return remove_items(index, ids, n, false, err);
}

kith_status kith_index_exclude(kith_index *index, const int64_t *ids, int64_t n, kith_error *err) {
    return remove_items(index, ids, n, true, err);
}

kith_status kith_index_restamp(kith_index *index, int64_t id, int64_t bytes, int64_t mtime_ns,
                               kith_error *err) {
    KI_NEED(err, index);
    KI_NEED_COUNT(err, id);
    KI_NEED_COUNT(err, bytes);
    KI_TRY(ki_index_writable(index, err));
    if (mtime_ns == KI_NO_INTEGER) return ki_fail(err, KITH_EINVAL, "mtime_ns is out of range");
    return index->store->type->restamp(index->store, id, bytes, mtime_ns, err);
}

/* ---- other values ---- */

/* The numbers of columns of these names. */
static kith_status find_columns(const kith_index *index, const char *const *names, int64_t n,
                                int64_t *ret_numbers, kith_error *err) {
    const ki_manifest *m = ki_index_manifest(index);
    for (int64_t i = 0; i < n; i++) {
        int64_t j = 0;
        if (!names[i]) return ki_fail(err, KITH_EINVAL, "columns[%lld] is NULL", (long long)i);
        while (j < m->n_columns && strcmp(m->columns[j].name, names[i]) != 0) j++;
        if (j == m->n_columns) {
            ki_fail(err, KITH_ENOTFOUND, "%s has no column '%.80s'", ki_index_name(index), names[i]);
            return ki_hint(err, KITH_ENOTFOUND, "kith_index_column_add makes one");
        }
        ret_numbers[i] = KI_COLUMN_FIRST + j;
    }
    return KITH_OK;
}

static kith_status check_ids(const int64_t *ids, int64_t n, kith_error *err) {
    for (int64_t i = 0; i < n; i++) {
        if (ids[i] < 0) return ki_fail(err, KITH_EINVAL, "id %lld; wanted 0 or more", (long long)ids[i]);
    }
    return KITH_OK;
}

kith_status kith_index_set(kith_index *index, const int64_t *ids, int64_t n, const char *const *columns,
                           int64_t n_columns, const kith_value *values, kith_error *err) {
    KI_NEED(err, index, ids, columns, values);
    KI_NEED_COUNT(err, n);
    KI_NEED_COUNT(err, n_columns);
    KI_TRY(ki_index_writable(index, err));
    kith_status status = KITH_OK;
    int64_t *numbers = NULL;
    const ki_manifest *m = ki_index_manifest(index);
    KI_TRY(check_ids(ids, n, err));
    KI_TRY(ki_alloc_or(&numbers, (size_t)n_columns, sizeof *numbers, "columns", err));
    KI_CHECK(find_columns(index, columns, n_columns, numbers, err));
    for (int64_t i = 0; n_columns > 0 && i < n * n_columns; i++)
        KI_CHECK(check_value(&m->columns[numbers[i % n_columns] - KI_COLUMN_FIRST], &values[i],
                             ids[i / n_columns], err));
    const ki_new_values set = {ids, n, numbers, n_columns, values};
    KI_CHECK(index->store->type->set(index->store, &set, err));
done:
    ki_free(numbers);
    return status;
}

kith_status kith_index_label(kith_index *index, const int64_t *ids, int64_t n, const char *const *labels,
                             kith_error *err) {
    static const int64_t column = KI_COLUMN_LABEL;
    KI_NEED(err, index, ids, labels);
    KI_NEED_COUNT(err, n);
    KI_TRY(ki_index_writable(index, err));
    kith_value *values = NULL;
    KI_TRY(check_ids(ids, n, err));
    KI_TRY(ki_alloc_or(&values, (size_t)n, sizeof *values, "labels", err));
    for (int64_t i = 0; i < n; i++) values[i] = ki_text_value(labels[i]);
    const ki_new_values set = {ids, n, &column, 1, values};
    const kith_status status = index->store->type->set(index->store, &set, err);
    ki_free(values);
    return status;
}

kith_status kith_index_column_add(kith_index *index, const char *name, kith_value_type type,
                                  kith_error *err) {
    KI_NEED(err, index, name);
    KI_TRY(ki_index_writable(index, err));
    return index->store->type->column_add(index->store, name, type, err);
}

kith_status kith_index_note_set(kith_index *index, const char *name, const char *text, kith_error *err) {
    KI_NEED(err, index, name, text);
    KI_TRY(ki_index_writable(index, err));
    char *was = NULL;
    KI_TRY(ki_index_place_note_take(index->place, name, text, &was, err));
    const kith_status status = ki_manifest_note_set(ki_index_pending(index), name, was ? was : text, err);
    ki_free(was);
    if (status == KITH_OK) index->store->is_changed = true;
    return status;
}

kith_status kith_index_calibrate(kith_index *index, const kith_calibration *calibration, kith_error *err) {
    KI_NEED(err, index);
    KI_TRY(ki_index_writable(index, err));
    ki_manifest *m = ki_index_pending(index);
    kith_calibration *copy = NULL;
    if (calibration) {
        KI_TRY(kith_calibration_check(calibration, err));
        if (calibration->metric != m->metric)
            return ki_fail(err, KITH_EINVAL, "the curve is of scores by %s, the index has %s",
                           kith_metric_name(calibration->metric), kith_metric_name(m->metric));
        copy = ki_arena_alloc(&m->arena, 1, sizeof *copy);
        if (!copy) return ki_fail_memory(err, sizeof *copy, "a curve");
        *copy = *calibration;
    }
    m->calibration = copy;
    index->store->is_changed = true;
    return KITH_OK;
}

/* ---- commits ---- */

static kith_status commit(kith_index *index, bool compact, const kith_work_options *o, kith_error *err) {
    KI_TRY(ki_index_writable(index, err));
    ki_threads_before before;
    KI_TRY(ki_threads_for(o->n_threads, &before, err));
    ki_tally tally = {.progress = o->progress, .user = o->user};
    kith_status status = ki_index_place_remember(index, err);
    if (status == KITH_OK) status = index->store->type->commit(index->store, compact, &tally, err);
    ki_threads_back(before);
    return status;
}

kith_status kith_index_commit(kith_index *index, const kith_work_options *options, kith_error *err) {
    KI_NEED(err, index);
    KI_OPTIONS_TAKE(kith_work_options, o, options, err);
    return commit(index, false, &o, err);
}

kith_status kith_index_compact(kith_index *index, const kith_work_options *options, kith_error *err) {
    KI_NEED(err, index);
    KI_OPTIONS_TAKE(kith_work_options, o, options, err);
    return commit(index, true, &o, err);
}
