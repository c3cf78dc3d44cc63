/* What happens to the files of items: one is moved, one is removed by hand and stays out. */
#include "core/alloc.h"
#include "core/argument.h"
#include "core/text.h"
#include "search/index_handle.h"

kith_status kith_index_move(kith_index *index, int64_t id, const char *path, const char *label, int64_t bytes,
                            int64_t mtime_ns, kith_error *err) {
    KI_NEED(err, index, path);
    KI_NEED_COUNT(err, id);
    KI_TRY(ki_index_writable(index, err));
    if (bytes < -1 || mtime_ns == KI_NO_INTEGER)
        return ki_fail(err, KITH_EINVAL, "%lld bytes; wanted -1 or more", (long long)bytes);
    ki_path was;
    const ki_file_record move = {
        .id = id, .path = ki_index_place_was(index->place, path, &was), .label = label};
    if (index->remote) return ki_remote_move(index->remote, &move, bytes, mtime_ns, err);
    const int64_t row = ki_store_row(index->store, id);
    if (row < 0) return ki_index_fail_id(index, id, err);
    KI_TRY(ki_store_move(index->store, &move, err));
    return ki_store_stamp(index->store, &(ki_stamp){row, bytes, mtime_ns}, err);
}

kith_status kith_index_exclude(kith_index *index, const int64_t *ids, int64_t n, kith_error *err) {
    KI_NEED(err, index, ids);
    KI_NEED_COUNT(err, n);
    KI_TRY(ki_index_writable(index, err));
    if (index->remote) return ki_remote_remove(index->remote, ids, n, true, err);
    for (int64_t i = 0; i < n; i++) {
        if (ki_store_row(index->store, ids[i]) < 0) return ki_index_fail_id(index, ids[i], err);
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = ki_store_row(index->store, ids[i]); /* -1: the id is in the list twice */
        if (row >= 0) KI_TRY(ki_store_exclude_row(index->store, ids[i], row, err));
    }
    return KITH_OK;
}

kith_status ki_index_excluded(const kith_index *index, ki_records *ret_excluded, kith_error *err) {
    if (ki_index_committed(index)->n_excluded == 0) return KITH_OK;
    if (index->remote) return ki_remote_excluded(index->remote, ret_excluded, err);
    kith_status status = KITH_OK;
    ki_records found = {0};
    KI_CHECK(ki_snapshot_excluded(index->view->snapshot, &found, err));
    for (int64_t i = 0; i < found.n; i++) {
        ki_path now;
        ki_file_record file = found.record[i];
        file.path = ki_index_place_now(index->place, file.path, &now);
        KI_CHECK(ki_records_add(ret_excluded, &file, false, err));
    }
done:
    if (status != KITH_OK) ki_records_release(ret_excluded);
    ki_records_release(&found);
    return status;
}

kith_status ki_index_exclude_file(kith_index *index, const ki_file_record *file, kith_error *err) {
    KI_TRY(ki_index_writable(index, err));
    ki_path was;
    ki_file_record kept = *file;
    kept.path = ki_index_place_was(index->place, kept.path, &was);
    return index->remote ? ki_remote_exclude_file(index->remote, &kept, err)
                         : ki_store_exclude(index->store, &kept, err);
}

bool ki_index_keeps_text(const kith_index *index, const char *text) {
    return !index->remote || !text || ki_is_utf8(text);
}
