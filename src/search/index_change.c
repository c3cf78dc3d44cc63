/* Making an index and changing it. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/argument.h"
#include "knn/rows.h"
#include "search/encode.h"
#include "search/index_handle.h"

static kith_status check_options(const kith_index_options *o, kith_error *err) {
    if (o->dim < 1 || o->dim > KI_MOST_DIM)
        return ki_fail(err, KITH_EINVAL, "dim is %lld; wanted 1 to %d", (long long)o->dim, KI_MOST_DIM);
    if ((unsigned)o->metric > KITH_SQEUCLIDEAN)
        return ki_fail(err, KITH_EINVAL, "metric %d is none", (int)o->metric);
    if (!(o->recall > 0 && o->recall < 1))
        return ki_fail(err, KITH_EINVAL, "recall is %g; wanted more than 0 and less than 1", o->recall);
    if (o->exact_numbers < 0)
        return ki_fail(err, KITH_EINVAL, "exact_numbers is %lld; wanted 0 or more",
                       (long long)o->exact_numbers);
    if (o->n_columns < 0 || (o->n_columns > 0 && !o->columns))
        return ki_fail(err, KITH_EINVAL, "columns is NULL and n_columns %lld", (long long)o->n_columns);
    return KITH_OK;
}

kith_status kith_index_create(const char *path, const kith_index_options *options, kith_index **ret_index,
                              kith_error *err) {
    KI_NEED(err, path, ret_index);
    KI_OPTIONS_TAKE(kith_index_options, o, options, err);
    KI_TRY(check_options(&o, err));
    kith_status status = KITH_OK;
    kith_index *index = NULL;
    ki_manifest m = {.generation = 1,
                     .dim = o.dim,
                     .next_file = 1,
                     .metric = o.metric,
                     .model = o.model ? o.model : "",
                     .preprocess = o.preprocess ? o.preprocess : "",
                     .recall = o.recall,
                     .exact_numbers = o.exact_numbers};
    for (int64_t i = 0; i < o.n_columns; i++) {
        if (!o.columns[i].name) {
            status = ki_fail(err, KITH_EINVAL, "column %lld has no name", (long long)i);
            goto done;
        }
        KI_CHECK(ki_manifest_column_add(&m, o.columns[i].name, o.columns[i].type, err));
    }
    if (ki_is_address(path)) {
        KI_CHECK(ki_zalloc_or(&index, 1, sizeof *index, "an index", err));
        KI_CHECK(ki_remote_create(path, &m, &index->remote, err));
        *ret_index = index;
        index = NULL;
        goto done;
    }
    KI_CHECK(ki_store_create(path, &m, err));
    KI_CHECK(kith_index_open(path, KITH_INDEX_WRITE, ret_index, err));
done:
    ki_free(index);
    ki_manifest_release(&m);
    return status;
}

kith_status ki_index_writable(const kith_index *index, kith_error *err) {
    const ki_remote *r = index->remote;
    if (r ? !r->writes : !index->store)
        return ki_fail(err, KITH_EINVAL, "%s was opened for reading", ki_index_name(index));
    if (r ? !r->is_broken : !index->store->is_broken) return KITH_OK;
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
    if (index->remote)
        KI_CHECK(ki_remote_add(index->remote, data, checked.n, items, &first, err));
    else
        KI_CHECK(ki_store_add(index->store, data, checked.n, items, &first, err));
    for (int64_t i = 0; ret_ids && i < checked.n; i++) ret_ids[i] = first + i;
done:
    ki_arena_release(&arena);
    kith_array_release(&converted);
    return status;
}

/* ---- removing and the rest ---- */

kith_status ki_index_fail_id(const kith_index *index, int64_t id, kith_error *err) {
    return ki_fail(err, KITH_ENOTFOUND, "%s has no item with id %lld", ki_index_name(index), (long long)id);
}

kith_status kith_index_remove(kith_index *index, const int64_t *ids, int64_t n, kith_error *err) {
    KI_NEED(err, index, ids);
    KI_NEED_COUNT(err, n);
    KI_TRY(ki_index_writable(index, err));
    if (index->remote) return ki_remote_remove(index->remote, ids, n, false, err);
    for (int64_t i = 0; i < n; i++) {
        if (ki_store_row(index->store, ids[i]) < 0) return ki_index_fail_id(index, ids[i], err);
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = ki_store_row(index->store, ids[i]); /* -1: the id is in the list twice */
        if (row >= 0) ki_store_remove(index->store, row);
    }
    return KITH_OK;
}

kith_status kith_index_restamp(kith_index *index, int64_t id, int64_t bytes, int64_t mtime_ns,
                               kith_error *err) {
    KI_NEED(err, index);
    KI_NEED_COUNT(err, id);
    KI_NEED_COUNT(err, bytes);
    KI_TRY(ki_index_writable(index, err));
    if (mtime_ns == KI_NO_INTEGER) return ki_fail(err, KITH_EINVAL, "mtime_ns is out of range");
    if (index->remote) return ki_remote_restamp(index->remote, id, bytes, mtime_ns, err);
    const int64_t row = ki_store_row(index->store, id);
    if (row < 0) return ki_index_fail_id(index, id, err);
    return ki_store_stamp(index->store, &(ki_stamp){row, bytes, mtime_ns}, err);
}

static void set_changed(kith_index *index) {
    if (index->remote)
        index->remote->is_changed = true;
    else
        index->store->is_changed = true;
}

kith_status kith_index_column_add(kith_index *index, const char *name, kith_value_type type,
                                  kith_error *err) {
    KI_NEED(err, index, name);
    KI_TRY(ki_index_writable(index, err));
    if (!index->remote) return ki_store_column_add(index->store, name, type, err);
    set_changed(index);
    return ki_manifest_column_add(&index->remote->next, name, type, err);
}

kith_status kith_index_note_set(kith_index *index, const char *name, const char *text, kith_error *err) {
    KI_NEED(err, index, name, text);
    KI_TRY(ki_index_writable(index, err));
    char *was = NULL;
    KI_TRY(ki_index_place_note_take(index->place, name, text, &was, err));
    const kith_status status = ki_manifest_note_set(ki_index_pending(index), name, was ? was : text, err);
    ki_free(was);
    if (status == KITH_OK) set_changed(index);
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
    set_changed(index);
    return KITH_OK;
}

/* ---- commits ---- */

static kith_status commit(kith_index *index, bool compact, const kith_work_options *o, kith_error *err) {
    KI_TRY(ki_index_writable(index, err));
    ki_threads_before before;
    KI_TRY(ki_threads_for(o->n_threads, &before, err));
    ki_tally tally = {.progress = o->progress, .user = o->user};
    if (index->remote) {
        const kith_status committed = ki_remote_commit_now(index->remote, compact, &tally, err);
        ki_threads_back(before);
        return committed;
    }
    const kith_status noted = ki_index_place_remember(index, err);
    if (noted != KITH_OK) {
        ki_threads_back(before);
        return noted;
    }
    const ki_store_hook hook = {.encode = ki_encode, .rows = ki_encode_rows, .tally = &tally};
    ki_view *view = NULL;
    ki_snapshot *old = NULL;
    kith_status status = ki_store_commit(index->store, compact, &hook, &old, err);
    ki_threads_back(before);
    if (!old) return status;
    if (status == KITH_OK) status = ki_view_new(index->store->now, &view, err);
    if (status == KITH_OK) {
        ki_view_free(index->view);
        ki_snapshot_free(old);
        index->view = view;
    } else {
        index->store->is_broken = true;
        index->own = old; /* what the view is of */
    }
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
