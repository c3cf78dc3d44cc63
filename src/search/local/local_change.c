/* Changing an index in a folder, and committing. */
#include "base/alloc.h"
#include "search/local/encode.h"
#include "search/local/local.h"

/* The store says what its writer says. */
static kith_status settle(ki_local *l, kith_status status) {
    l->store.is_changed |= l->writer->is_changed;
    l->store.is_broken |= l->writer->is_broken;
    return status;
}

kith_status ki_local_add(ki_store *store, const float *rows, int64_t n, const kith_index_item *items,
                         int64_t *ret_first_id, kith_error *err) {
    ki_local *l = ki_local_of(store);
    return settle(l, ki_writer_add(l->writer, rows, n, items, ret_first_id, err));
}

static kith_status remove_items(ki_writer *w, const int64_t *ids, int64_t n, bool excludes, kith_error *err) {
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = ki_writer_row(w, ids[i]); /* -1: the id is in the list twice */
        if (row >= 0 && excludes) KI_TRY(ki_writer_exclude_row(w, ids[i], row, err));
        if (row >= 0 && !excludes) ki_writer_remove(w, row);
    }
    return KITH_OK;
}

kith_status ki_local_remove(ki_store *store, const int64_t *ids, int64_t n, bool excludes, kith_error *err) {
    ki_local *l = ki_local_of(store);
    for (int64_t i = 0; i < n; i++) {
        if (ki_writer_row(l->writer, ids[i]) < 0) return ki_store_fail_id(store, ids[i], err);
    }
    return settle(l, remove_items(l->writer, ids, n, excludes, err));
}

kith_status ki_local_restamp(ki_store *store, int64_t id, int64_t bytes, int64_t mtime_ns, kith_error *err) {
    ki_local *l = ki_local_of(store);
    const int64_t row = ki_writer_row(l->writer, id);
    if (row < 0) return ki_store_fail_id(store, id, err);
    return settle(l, ki_writer_stamp(l->writer, &(ki_stamp){row, bytes, mtime_ns}, err));
}

kith_status ki_local_move(ki_store *store, const ki_file_record *move, int64_t bytes, int64_t mtime_ns,
                          kith_error *err) {
    ki_local *l = ki_local_of(store);
    if (ki_writer_row(l->writer, move->id) < 0) return ki_store_fail_id(store, move->id, err);
    KI_TRY(ki_writer_move(l->writer, move, err));
    return ki_local_restamp(store, move->id, bytes, mtime_ns, err);
}

kith_status ki_local_set(ki_store *store, const ki_new_values *values, kith_error *err) {
    ki_local *l = ki_local_of(store);
    for (int64_t i = 0; i < values->n; i++) {
        if (ki_writer_row(l->writer, values->ids[i]) < 0) return ki_store_fail_id(store, values->ids[i], err);
    }
    return settle(l, ki_writer_update(l->writer, values, err));
}

kith_status ki_local_exclude_file(ki_store *store, const ki_file_record *file, kith_error *err) {
    ki_local *l = ki_local_of(store);
    return settle(l, ki_writer_exclude(l->writer, file, err));
}

kith_status ki_local_column_add(ki_store *store, const char *name, kith_value_type type, kith_error *err) {
    ki_local *l = ki_local_of(store);
    return settle(l, ki_writer_column_add(l->writer, name, type, err));
}

kith_status ki_local_commit(ki_store *store, bool compact, ki_tally *tally, kith_error *err) {
    ki_local *l = ki_local_of(store);
    const ki_writer_hook hook = {.encode = ki_encode, .rows = ki_encode_rows, .tally = tally};
    ki_view *view = NULL;
    ki_snapshot *old = NULL;
    l->writer->is_changed |= store->is_changed;
    kith_status status = ki_writer_commit(l->writer, compact, &hook, &old, err);
    store->is_changed = l->writer->is_changed;
    if (!old) return settle(l, status);
    if (status == KITH_OK) status = ki_view_new(l->writer->now, &view, err);
    if (status == KITH_OK) {
        ki_view_free(l->view);
        ki_snapshot_free(old);
        l->view = view;
        store->committed = &view->snapshot->manifest;
    } else {
        l->writer->is_broken = true;
        l->own = old; /* what the view is of */
    }
    return settle(l, status);
}
