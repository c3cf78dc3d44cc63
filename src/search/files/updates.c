/* Lists of new values: collecting, ordering, the file, and what they change in a column. */
#include "search/files/updates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

void ki_updates_release(ki_updates *u) {
    ki_arena_release(&u->arena);
    ki_cells_release(&u->texts);
    ki_free(u->update);
    *u = (ki_updates){0};
}

kith_status ki_updates_add(ki_updates *u, const ki_update *update, bool borrow, kith_error *err) {
    ki_update own = *update;
    if (!borrow && own.value.type == KITH_VALUE_TEXT) {
        own.value.text = ki_arena_strdup(&u->arena, update->value.text);
        if (!own.value.text) return ki_fail_memory(err, strlen(update->value.text) + 1, "a text");
    }
    KI_TRY(ki_grow(&u->update, &u->capacity, (size_t)u->n + 1, sizeof *u->update, "values", err));
    u->update[u->n++] = own;
    return KITH_OK;
}

/* ---- order ---- */

typedef struct placed {
    ki_update update;
    int64_t order;
} placed;

static int compare(const ki_update *x, int64_t column, int64_t id) {
    if (x->column != column) return x->column < column ? -1 : 1;
    return (x->id > id) - (x->id < id);
}

static int compare_placed(const void *a, const void *b) {
    const placed *x = a, *y = b;
    const int found = compare(&x->update, y->update.column, y->update.id);
    return found ? found : (x->order > y->order) - (x->order < y->order);
}

kith_status ki_updates_order(ki_updates *u, kith_error *err) {
    placed *all = NULL;
    const int64_t n = u->n;
    if (n == 0) return KITH_OK;
    KI_TRY(ki_alloc_or(&all, (size_t)n, sizeof *all, "values", err));
    for (int64_t i = 0; i < n; i++) all[i] = (placed){u->update[i], i};
    qsort(all, (size_t)n, sizeof *all, compare_placed);
    u->n = 0;
    for (int64_t i = 0; i < n; i++) {
        const ki_update *next = i + 1 < n ? &all[i + 1].update : NULL;
        if (!next || compare(next, all[i].update.column, all[i].update.id) != 0)
            u->update[u->n++] = all[i].update;
    }
    ki_free(all);
    return KITH_OK;
}

/* The first one that is not before the column and id. */
static int64_t lower(const ki_updates *u, int64_t column, int64_t id) {
    int64_t low = 0, high = u->n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (compare(&u->update[middle], column, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const ki_update *at(const ki_updates *u, int64_t i, int64_t column, int64_t id) {
    return i < u->n && compare(&u->update[i], column, id) == 0 ? &u->update[i] : NULL;
}

const ki_update *ki_updates_find(const ki_updates *u, int64_t column, int64_t id) {
    return at(u, lower(u, column, id), column, id);
}

void ki_updates_cut(ki_updates *u, int64_t first_id) {
    int64_t n = 0;
    for (int64_t i = 0; i < u->n; i++) {
        if (u->update[i].id < first_id) u->update[n++] = u->update[i];
    }
    u->n = n;
}

/* ---- the file ---- */

static kith_status put(ki_segment_writer *w, const ki_update *u, kith_error *err) {
    const bool is_none = u->value.type == KITH_VALUE_NONE;
    kith_value values[KI_COLUMN_FIRST] = {
        [KI_COLUMN_ID] = {.type = KITH_VALUE_INT, .integer = u->id},
        [KI_COLUMN_BYTES] = {.type = KITH_VALUE_INT, .integer = is_none ? -u->column : u->column},
        [KI_COLUMN_MTIME] = {.type = KITH_VALUE_INT},
    };
    if (u->value.type == KITH_VALUE_INT) values[KI_COLUMN_MTIME].integer = u->value.integer;
    if (u->value.type == KITH_VALUE_REAL)
        memcpy(&values[KI_COLUMN_MTIME].integer, &u->value.real, sizeof u->value.real);
    if (u->value.type == KITH_VALUE_TEXT) values[KI_COLUMN_PATH] = ki_text_value(u->value.text);
    for (int64_t i = 0; i < KI_COLUMN_FIRST; i++) KI_TRY(ki_cells_add(&w->columns[i], &values[i], err));
    return KITH_OK;
}

kith_status ki_updates_write(const ki_updates *u, const char *path, ki_blocks_seal *ret_seal,
                             kith_error *err) {
    kith_status status = KITH_OK;
    ki_segment_writer w = {0};
    KI_CHECK(ki_segment_create(&w, path, 0, NULL, 0, err));
    for (int64_t i = 0; i < u->n; i++) KI_CHECK(put(&w, &u->update[i], err));
    w.n_rows = u->n;
    KI_CHECK(ki_segment_finish(&w, ret_seal, err));
done:
    ki_segment_discard(&w);
    return status;
}

/* The value of a row of the file; false: it cannot be one of its column. */
static bool take_value(const kith_value *text, int64_t number, kith_value_type type, kith_value *ret_value) {
    kith_value value = {.type = type};
    if ((text->type == KITH_VALUE_TEXT) != (type == KITH_VALUE_TEXT)) return false;
    if (type == KITH_VALUE_INT) value.integer = number;
    if (type == KITH_VALUE_REAL) memcpy(&value.real, &number, sizeof value.real);
    if (type == KITH_VALUE_TEXT) value.text = text->text;
    *ret_value = value;
    return !(type == KITH_VALUE_INT && number == KI_NO_INTEGER) && isfinite(value.real);
}

/* What a file says, a row at a time. */
typedef struct source {
    const int64_t *id, *column, *number;
    const ki_cells *texts;
    int64_t next_id, n_types;
    const kith_value_type *types;
} source;

static bool take(const source *s, int64_t i, ki_update *ret) {
    const bool is_none = s->column[i] < 0;
    const kith_value text = ki_cells_get(s->texts, i);
    if (s->column[i] == INT64_MIN) return false;
    *ret = (ki_update){.id = s->id[i], .column = is_none ? -s->column[i] : s->column[i]};
    if (ret->id < 0 || ret->id >= s->next_id) return false;
    if (ret->column != KI_COLUMN_LABEL &&
        (ret->column < KI_COLUMN_FIRST || ret->column - KI_COLUMN_FIRST >= s->n_types))
        return false;
    return is_none || take_value(&text, s->number[i], ki_column_type(ret->column, s->types), &ret->value);
}

static kith_status take_all(ki_updates *u, const source *s, int64_t n, const char *path, kith_error *err) {
    for (int64_t i = 0; i < n; i++) {
        ki_update update;
        if (!take(s, i, &update) || (i > 0 && compare(&u->update[i - 1], update.column, update.id) >= 0)) {
            ki_fail(err, KITH_EFORMAT,
                    "%s: row %lld is not a value of an item of this index, or out of order", path,
                    (long long)i);
            return ki_hint(err, KITH_EFORMAT, "copy the index back from a backup, or make it again");
        }
        KI_TRY(ki_updates_add(u, &update, true, err));
    }
    return KITH_OK;
}

kith_status ki_updates_read(const char *path, ki_blocks_seal seal, int64_t next_id,
                            const kith_value_type *types, int64_t n_types, ki_updates *ret_updates,
                            kith_error *err) {
    kith_status status = KITH_OK;
    ki_segment segment = {0};
    ki_cells id = {0}, column = {0}, number = {0};
    ki_updates u = {0};
    KI_CHECK(ki_segment_open(&segment, path, seal, 0, NULL, 0, err));
    KI_CHECK(ki_segment_column(&segment, KI_COLUMN_ID, &id, err));
    KI_CHECK(ki_segment_column(&segment, KI_COLUMN_BYTES, &column, err));
    KI_CHECK(ki_segment_column(&segment, KI_COLUMN_MTIME, &number, err));
    KI_CHECK(ki_segment_column(&segment, KI_COLUMN_PATH, &u.texts, err));
    const source s = {id.integer, column.integer, number.integer, &u.texts, next_id, n_types, types};
    KI_CHECK(take_all(&u, &s, segment.n, path, err));
    *ret_updates = u;
    u = (ki_updates){0};
done:
    ki_updates_release(&u);
    ki_cells_release(&id);
    ki_cells_release(&column);
    ki_cells_release(&number);
    ki_segment_close(&segment);
    return status;
}

/* ---- columns ---- */

kith_status ki_updates_apply(const ki_updates *u, int64_t column, const int64_t *ids, ki_cells *cells,
                             kith_error *err) {
    if (u->n == 0 || cells->n == 0) return KITH_OK;
    int64_t next = lower(u, column, ids[0]);
    if (next == u->n || u->update[next].column != column || u->update[next].id > ids[cells->n - 1])
        return KITH_OK;
    ki_cells anew = {.type = cells->type};
    for (int64_t i = 0; i < cells->n; i++) {
        while (next < u->n && compare(&u->update[next], column, ids[i]) < 0) next++;
        const ki_update *found = at(u, next, column, ids[i]);
        const kith_value value = found ? found->value : ki_cells_get(cells, i);
        const kith_status status = ki_cells_add(&anew, &value, err);
        if (status == KITH_OK) continue;
        ki_cells_release(&anew);
        return status;
    }
    ki_cells_release(cells);
    *cells = anew;
    return KITH_OK;
}
