/* Columns that are kept once they were read. */
#include "search/files/columns.h"

#include "base/alloc.h"

kith_status ki_columns_init(ki_columns *c, const ki_snapshot *snapshot, kith_error *err) {
    *c = (ki_columns){.snapshot = snapshot, .n_columns = KI_COLUMN_FIRST + snapshot->manifest.n_columns};
    const size_t n = (size_t)(snapshot->manifest.n_segments * c->n_columns);
    KI_TRY(ki_zalloc_or(&c->cells, n, sizeof *c->cells, "columns", err));
    if (pthread_mutex_init(&c->lock, NULL) == 0) return KITH_OK;
    ki_free(c->cells);
    c->cells = NULL;
    return ki_fail_memory(err, sizeof c->lock, "a lock");
}

void ki_columns_release(ki_columns *c) {
    if (!c->cells) return;
    for (int64_t i = 0; i < c->snapshot->manifest.n_segments * c->n_columns; i++) {
        if (c->cells[i]) ki_cells_release(c->cells[i]);
        ki_free(c->cells[i]);
    }
    ki_free(c->cells);
    pthread_mutex_destroy(&c->lock);
    *c = (ki_columns){0};
}

static kith_status read_column(ki_columns *c, int64_t segment, int64_t column, ki_cells **ret_cells,
                               kith_error *err) {
    ki_cells *cells = NULL;
    KI_TRY(ki_zalloc_or(&cells, 1, sizeof *cells, "a column", err));
    const ki_snapshot *s = c->snapshot;
    kith_status status = ki_segment_column(&s->segments[segment], column, cells, err);
    if (status == KITH_OK) {
        const int64_t *ids = s->ids + s->first[segment];
        status = ki_records_apply(&s->moves, column, ids, cells, err);
        if (status == KITH_OK) status = ki_updates_apply(&s->updates, column, ids, cells, err);
        if (status != KITH_OK) ki_cells_release(cells);
    }
    if (status == KITH_OK)
        *ret_cells = cells;
    else
        ki_free(cells);
    return status;
}

kith_status ki_columns_get(ki_columns *c, int64_t segment, int64_t column, const ki_cells **ret_cells,
                           kith_error *err) {
    kith_status status = KITH_OK;
    ki_cells **place = &c->cells[segment * c->n_columns + column];
    pthread_mutex_lock(&c->lock);
    if (!*place) status = read_column(c, segment, column, place, err);
    if (status == KITH_OK) *ret_cells = *place;
    pthread_mutex_unlock(&c->lock);
    return status;
}
