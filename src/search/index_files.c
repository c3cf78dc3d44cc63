/* What happens to the files of items: one is moved, one that was removed by hand stays out. */
#include "base/alloc.h"
#include "base/argument.h"
#include "base/text.h"
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
    return index->store->type->move(index->store, &move, bytes, mtime_ns, err);
}

kith_status ki_index_excluded(const kith_index *index, ki_records *ret_excluded, kith_error *err) {
    if (ki_index_committed(index)->n_excluded == 0) return KITH_OK;
    if (!index->place) return index->store->type->excluded(index->store, ret_excluded, err);
    kith_status status = KITH_OK;
    ki_records found = {0};
    KI_CHECK(index->store->type->excluded(index->store, &found, err));
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
    return index->store->type->exclude_file(index->store, &kept, err);
}

bool ki_index_keeps_text(const kith_index *index, const char *text) {
    return !index->store->type->wants_utf8 || !text || ki_is_utf8(text);
}
