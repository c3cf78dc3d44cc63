/* Folders as stores: opening, closing, what an index is. */
#include "search/local/local.h"

#include "base/alloc.h"
#include "base/cores.h"

enum { KEEP_PART = 8 }; /* of the memory: what vectors may take */

/* What no other store serves is a folder. */
static bool claims(const char *path) {
    (void)path;
    return true;
}

/* ---- opening ---- */

/* Vectors that a second look has read are likely to be read again. */
static kith_status open_reader(const char *path, ki_snapshot **ret_snapshot, kith_error *err) {
    KI_TRY(ki_snapshot_open(path, ret_snapshot, err));
    return ki_snapshot_keep(*ret_snapshot, ki_memory_allowed() / KEEP_PART, err);
}

static void close_store(ki_store *store) {
    ki_local *l = ki_local_of(store);
    ki_view_free(l->view);
    ki_writer_free(l->writer);
    ki_snapshot_free(l->own);
    ki_free(l);
}

static kith_status open_store(const char *path, bool writes, ki_store **ret_store, kith_error *err) {
    kith_status status = KITH_OK;
    ki_local *l = NULL;
    KI_TRY(ki_zalloc_or(&l, 1, sizeof *l, "an index", err));
    if (writes)
        KI_CHECK(ki_writer_open(path, &l->writer, err));
    else
        KI_CHECK(open_reader(path, &l->own, err));
    KI_CHECK(ki_view_new(writes ? l->writer->now : l->own, &l->view, err));
    l->store = (ki_store){.type = &ki_local_store,
                          .committed = &l->view->snapshot->manifest,
                          .pending = writes ? &l->writer->next : NULL};
    *ret_store = &l->store;
    l = NULL;
done:
    if (l) close_store(&l->store);
    return status;
}

static kith_status create(const char *path, const ki_manifest *manifest, ki_store **ret_store,
                          kith_error *err) {
    KI_TRY(ki_writer_create(path, manifest, err));
    return open_store(path, true, ret_store, err);
}

/* ---- what it is ---- */

static const char *folder_of(const ki_store *store) {
    return ((const ki_local *)store)->view->snapshot->folder;
}

static void info(ki_store *store, kith_index_info *to) {
    const ki_snapshot *s = ki_local_of(store)->view->snapshot;
    const ki_manifest_coding *coding = &s->manifest.coding;
    to->n_items = s->n_live;
    to->n_removed = s->n_rows - s->n_live;
    to->n_segments = s->manifest.n_segments;
    to->file_bytes = ki_snapshot_file_bytes(s);
    to->memory_bytes = ki_exact_memory(s) + s->n_rows * (int64_t)sizeof *s->ids;
    to->tier = KITH_TIER_EXACT;
    to->recall = 1;
    if (!ki_coded_is_there(s)) return;
    to->tier = coding->n_lists > 1 ? KITH_TIER_LISTS : KITH_TIER_SCAN;
    to->bits = coding->bits;
    to->n_lists = coding->n_lists > 1 ? coding->n_lists : 0;
    to->bytes_per_row = s->n_rows > 0 ? (double)ki_coded_bytes(s) / (double)s->n_rows : 0;
    to->recall = coding->recall;
    to->memory_bytes =
        ki_coded_bytes(s) + s->coder.bytes + s->n_rows * (int64_t)(sizeof *s->ids + sizeof *s->alive / 64);
}

static kith_status is_current(ki_store *store, bool *ret_is_current, kith_error *err) {
    const ki_snapshot *s = ki_local_of(store)->view->snapshot;
    ki_manifest now = {0};
    KI_TRY(ki_manifest_read(s->folder, &now, err));
    *ret_is_current = now.generation == s->manifest.generation && now.sum == s->manifest.sum;
    ki_manifest_release(&now);
    return KITH_OK;
}

static void keep(ki_store *store, int64_t most_bytes) {
    ki_local *l = ki_local_of(store);
    if (l->own) atomic_store(&l->own->keep.left, most_bytes);
}

const ki_store_type ki_local_store = {
    .claims = claims,
    .create = create,
    .open = open_store,
    .close = close_store,
    .name = folder_of,
    .folder = folder_of,
    .info = info,
    .is_current = is_current,
    .keep = keep,
    .add = ki_local_add,
    .remove = ki_local_remove,
    .move = ki_local_move,
    .restamp = ki_local_restamp,
    .set = ki_local_set,
    .count = ki_local_count,
    .exclude_file = ki_local_exclude_file,
    .column_add = ki_local_column_add,
    .commit = ki_local_commit,
    .excluded = ki_local_excluded,
    .ids = ki_local_ids,
    .item = ki_local_item,
    .vectors = ki_local_vectors,
    .labels = ki_local_labels,
    .stamps = ki_local_stamps,
    .search = ki_local_search,
    .check = ki_local_check,
};
