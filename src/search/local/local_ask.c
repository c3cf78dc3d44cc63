/* Items of an index in a folder: which there are, what is known of them, their vectors. */
#include "base/alloc.h"
#include "search/local/local.h"

static const ki_snapshot *snapshot_of(ki_store *store) { return ki_local_of(store)->view->snapshot; }

static kith_status row_of(ki_store *store, int64_t id, int64_t *ret_row, kith_error *err) {
    *ret_row = ki_snapshot_row(snapshot_of(store), id);
    return *ret_row >= 0 ? KITH_OK : ki_store_fail_id(store, id, err);
}

kith_status ki_local_excluded(ki_store *store, ki_records *ret_excluded, kith_error *err) {
    return ki_snapshot_excluded(snapshot_of(store), ret_excluded, err);
}

kith_status ki_local_ids(ki_store *store, const ki_where *where, int64_t **ret_ids, int64_t *ret_n,
                         kith_error *err) {
    kith_status status = KITH_OK;
    const ki_snapshot *s = snapshot_of(store);
    ki_allowed allowed = {0};
    int64_t *ids = NULL, n_ids = 0;
    KI_CHECK(ki_view_allowed(ki_local_of(store)->view, where, &allowed, err));
    KI_CHECK(ki_alloc_or(&ids, (size_t)allowed.n, sizeof *ids, "ids", err));
    for (int64_t i = 0; i < s->n_rows; i++) {
        if (ki_bit(allowed.bits, i)) ids[n_ids++] = s->ids[i];
    }
    *ret_ids = ids;
    *ret_n = n_ids;
done:
    ki_free(allowed.own);
    return status;
}

/* A text is told once for a segment. */
static kith_status count_texts(const ki_cells *c, const uint64_t *bits, int64_t first, ki_count_fn *fn,
                               void *user, kith_error *err) {
    kith_status status = KITH_OK;
    int64_t *n = NULL;
    KI_TRY(ki_zalloc_or(&n, (size_t)c->n_texts + 1, sizeof *n, "counts", err));
    for (int64_t i = 0; i < c->n; i++) n[c->code[i]] += ki_bit(bits, first + i);
    for (int64_t i = 0; i < c->n_texts && status == KITH_OK; i++) {
        const kith_value value = ki_text_value(ki_cells_text(c, i));
        if (n[i + 1] > 0) status = fn(user, &value, n[i + 1], err);
    }
    ki_free(n);
    return status;
}

kith_status ki_local_count(ki_store *store, const ki_where *where, int64_t column, ki_count_fn *fn,
                           void *user, int64_t *ret_n_allowed, kith_error *err) {
    kith_status status = KITH_OK;
    ki_view *view = ki_local_of(store)->view;
    const ki_snapshot *s = view->snapshot;
    ki_allowed allowed = {0};
    KI_CHECK(ki_view_allowed(view, where, &allowed, err));
    for (int64_t i = 0; i < s->manifest.n_segments; i++) {
        const ki_cells *c = NULL;
        KI_CHECK(ki_columns_get(&view->columns, i, column, &c, err));
        if (c->type == KITH_VALUE_TEXT) KI_CHECK(count_texts(c, allowed.bits, s->first[i], fn, user, err));
        for (int64_t j = 0; c->type != KITH_VALUE_TEXT && j < c->n; j++) {
            const kith_value value = ki_cells_get(c, j);
            if (value.type != KITH_VALUE_NONE && ki_bit(allowed.bits, s->first[i] + j))
                KI_CHECK(fn(user, &value, 1, err));
        }
    }
    *ret_n_allowed = allowed.n;
done:
    ki_free(allowed.own);
    return status;
}

kith_status ki_local_item(ki_store *store, int64_t id, kith_value *ret_cells, kith_error *err) {
    const ki_snapshot *s = snapshot_of(store);
    int64_t row = 0;
    KI_TRY(row_of(store, id, &row, err));
    for (int64_t i = 0; i < KI_COLUMN_FIRST + s->manifest.n_columns; i++)
        KI_TRY(ki_snapshot_cell(s, i, row, &ret_cells[i], err));
    return KITH_OK;
}

kith_status ki_local_vectors(ki_store *store, const int64_t *ids, int64_t n, float *ret_rows,
                             kith_error *err) {
    kith_status status = KITH_OK;
    int64_t *rows = NULL;
    KI_CHECK(ki_alloc_or(&rows, (size_t)n, sizeof *rows, "rows", err));
    for (int64_t i = 0; i < n; i++) KI_CHECK(row_of(store, ids[i], &rows[i], err));
    KI_CHECK(ki_snapshot_read(snapshot_of(store), rows, n, ret_rows, err));
done:
    ki_free(rows);
    return status;
}

static const char *text_of(const ki_cells *cells, int64_t row) {
    const kith_value value = ki_cells_get(cells, row);
    return value.type == KITH_VALUE_TEXT ? value.text : NULL;
}

/* Labels live as long as the view's columns; the arena is not needed. */
kith_status ki_local_labels(ki_store *store, const int64_t *ids, int64_t n, ki_arena *arena,
                            const char **ret_labels, kith_error *err) {
    (void)arena;
    ki_view *view = ki_local_of(store)->view;
    for (int64_t i = 0; i < n; i++) {
        const ki_cells *cells = NULL;
        const int64_t row = ki_snapshot_row(view->snapshot, ids[i]);
        ret_labels[i] = NULL;
        if (row < 0) continue;
        const int64_t segment = ki_snapshot_segment(view->snapshot, row);
        KI_TRY(ki_columns_get(&view->columns, segment, KI_COLUMN_LABEL, &cells, err));
        ret_labels[i] = text_of(cells, row - view->snapshot->first[segment]);
    }
    return KITH_OK;
}

/* ---- stamps ---- */

/* Behind *n stamps those of a segment's rows that are there, as they were when it was written. */
static kith_status list_segment(ki_view *view, int64_t i, ki_item_stamp *stamps, int64_t *n,
                                kith_error *err) {
    kith_status status = KITH_OK;
    const ki_snapshot *s = view->snapshot;
    const ki_cells *paths = NULL;
    ki_cells bytes = {0}, mtimes = {0};
    KI_CHECK(ki_columns_get(&view->columns, i, KI_COLUMN_PATH, &paths, err));
    KI_CHECK(ki_segment_column(&s->segments[i], KI_COLUMN_BYTES, &bytes, err));
    KI_CHECK(ki_segment_column(&s->segments[i], KI_COLUMN_MTIME, &mtimes, err));
    for (int64_t j = 0; j < s->segments[i].n; j++) {
        const int64_t row = s->first[i] + j;
        if (!ki_bit(s->alive, row)) continue;
        stamps[(*n)++] = (ki_item_stamp){s->ids[row], bytes.integer[j], mtimes.integer[j], text_of(paths, j)};
    }
done:
    ki_cells_release(&bytes);
    ki_cells_release(&mtimes);
    return status;
}

/* Files that were touched since; both lists are in the order of rows, which is that of ids. */
static void touch(const ki_snapshot *s, ki_item_stamp *stamps, int64_t n) {
    int64_t at = 0;
    for (int64_t i = 0; i < s->changes.n_stamps; i++) {
        const ki_stamp *new = &s->changes.stamps[i];
        while (at < n && stamps[at].id < s->ids[new->row]) at++;
        if (at == n || stamps[at].id != s->ids[new->row]) continue;
        stamps[at].bytes = new->bytes;
        stamps[at].mtime_ns = new->mtime_ns;
    }
}

/* Paths live as long as the view's columns; the arena is not needed. */
kith_status ki_local_stamps(ki_store *store, ki_arena *arena, ki_item_stamp **ret_stamps, int64_t *ret_n,
                            kith_error *err) {
    (void)arena;
    kith_status status = KITH_OK;
    const ki_snapshot *s = snapshot_of(store);
    ki_item_stamp *stamps = NULL;
    int64_t n = 0;
    KI_TRY(ki_alloc_or(&stamps, (size_t)s->n_live, sizeof *stamps, "items", err));
    for (int64_t i = 0; i < s->manifest.n_segments; i++)
        KI_CHECK(list_segment(ki_local_of(store)->view, i, stamps, &n, err));
    touch(s, stamps, n);
    *ret_stamps = stamps;
    *ret_n = n;
    stamps = NULL;
done:
    ki_free(stamps);
    return status;
}
