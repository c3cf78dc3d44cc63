/* A store in memory (search/store_type.h): what an index needs of whoever keeps it, in the fewest lines.
 *
 * Items are two arrays, committed and pending; a commit copies one over the other. Texts and vectors are in an arena that only
 * grows. One handle: nothing is locked. */
#ifndef KITH_TEST_MEMORY_STORE_H
#define KITH_TEST_MEMORY_STORE_H

#include <string.h>

#include "base/alloc.h"
#include "search/exact_list.h"
#include "search/files/snapshot.h"
#include "search/filter_tree.h"
#include "search/hit_list.h"
#include "search/index_handle.h"

typedef struct mem_item {
    kith_value cell[KI_COLUMN_FIRST + 8]; /* more columns than the tests have */
    float *row;
} mem_item;

typedef struct mem_items {
    mem_item *item; /* [n], ids ascending */
    size_t n, capacity;
    ki_records out; /* excluded files */
} mem_items;

typedef struct mem_store {
    ki_store store;
    ki_manifest committed, pending;
    mem_items now, next;
    ki_arena arena;
} mem_store;

static const char *mem_name(const ki_store *store) { return store ? "memory" : NULL; }
static mem_store *mem_of(ki_store *store) { return (mem_store *)store; }
static kith_value mem_int(int64_t value) { return (kith_value){.type = KITH_VALUE_INT, .integer = value}; }
static int64_t mem_id(const mem_item *item) { return item->cell[KI_COLUMN_ID].integer; }

static mem_item *mem_find(const mem_items *items, int64_t id) {
    size_t i = 0;
    while (i < items->n && mem_id(&items->item[i]) != id) i++;
    return i < items->n ? &items->item[i] : NULL;
}

/* A value of its own, in the arena. */
static kith_value mem_copy(mem_store *m, kith_value value) {
    if (value.type == KITH_VALUE_TEXT) value.text = ki_arena_strdup(&m->arena, value.text);
    return value;
}

static void mem_info(ki_store *store, kith_index_info *info) {
    info->n_items = (int64_t)mem_of(store)->now.n;
    info->recall = 1;
}

static void mem_close(ki_store *store) {
    mem_store *m = mem_of(store);
    ki_manifest_release(&m->committed);
    ki_manifest_release(&m->pending);
    ki_free(m->next.item);
    ki_records_release(&m->now.out);
    ki_records_release(&m->next.out);
    ki_arena_release(&m->arena);
    ki_free(m);
}

/* A path that is added again is not excluded any more. */
static void mem_include(ki_records *out, const char *path) {
    int64_t n = 0;
    for (int64_t i = 0; i < out->n; i++) {
        if (!path || strcmp(out->record[i].path, path) != 0) out->record[n++] = out->record[i];
    }
    out->n = n;
}

static kith_status mem_add(ki_store *store, const float *rows, int64_t n, const kith_index_item *items,
                           int64_t *ret_first_id, kith_error *err) {
    mem_store *m = mem_of(store);
    mem_items *next = &m->next;
    const int64_t dim = m->pending.dim;
    *ret_first_id = m->pending.next_id;
    KI_TRY(ki_grow(&next->item, &next->capacity, next->n + (size_t)n, sizeof *next->item, "items", err));
    for (int64_t i = 0; i < n; i++) {
        const kith_index_item nothing = {.bytes = -1, .mtime_ns = -1}, *from = items ? &items[i] : &nothing;
        mem_item *to = &next->item[next->n++];
        mem_include(&next->out, from->path);
        *to = (mem_item){.cell = {[KI_COLUMN_ID] = mem_int(m->pending.next_id++),
                                  [KI_COLUMN_BYTES] = mem_int(from->bytes),
                                  [KI_COLUMN_MTIME] = mem_int(from->mtime_ns),
                                  [KI_COLUMN_PATH] = mem_copy(m, ki_text_value(from->path)),
                                  [KI_COLUMN_LABEL] = mem_copy(m, ki_text_value(from->label)),
                                  [KI_COLUMN_HASH] = mem_copy(m, ki_text_value(from->hash))},
                         .row = ki_arena_alloc(&m->arena, (size_t)dim, sizeof *rows)};
        memcpy(to->row, rows + i * dim, (size_t)dim * sizeof *rows);
        for (int64_t j = 0; from->values && j < m->pending.n_columns; j++)
            to->cell[KI_COLUMN_FIRST + j] = mem_copy(m, from->values[j]);
    }
    store->is_changed = true;
    return KITH_OK;
}

static kith_status mem_exclude_file(ki_store *store, const ki_file_record *file, kith_error *err) {
    store->is_changed = true;
    return ki_records_add(&mem_of(store)->next.out, file, false, err);
}

static kith_status mem_remove(ki_store *store, const int64_t *ids, int64_t n, bool out, kith_error *err) {
    mem_items *items = &mem_of(store)->next;
    for (int64_t i = 0; i < n; i++) {
        if (!mem_find(items, ids[i])) return ki_store_fail_id(store, ids[i], err);
    }
    for (int64_t i = 0; i < n; i++) {
        mem_item *gone = mem_find(items, ids[i]);
        if (!gone) continue; /* the id is in the list twice */
        const ki_file_record file = {ids[i], gone->cell[KI_COLUMN_PATH].text, NULL,
                                     gone->cell[KI_COLUMN_HASH].text};
        if (out && file.path) KI_TRY(mem_exclude_file(store, &file, err));
        memmove(gone, gone + 1, (size_t)(items->item + items->n - gone - 1) * sizeof *gone);
        items->n--;
    }
    store->is_changed = true;
    return KITH_OK;
}

static kith_status mem_restamp(ki_store *store, int64_t id, int64_t bytes, int64_t mtime, kith_error *err) {
    mem_item *item = mem_find(&mem_of(store)->next, id);
    if (!item) return ki_store_fail_id(store, id, err);
    item->cell[KI_COLUMN_BYTES] = mem_int(bytes);
    item->cell[KI_COLUMN_MTIME] = mem_int(mtime);
    store->is_changed = true;
    return KITH_OK;
}

static kith_status mem_move(ki_store *store, const ki_file_record *move, int64_t bytes, int64_t mtime_ns,
                            kith_error *err) {
    mem_store *m = mem_of(store);
    KI_TRY(mem_restamp(store, move->id, bytes, mtime_ns, err));
    mem_item *item = mem_find(&m->next, move->id);
    item->cell[KI_COLUMN_PATH] = mem_copy(m, ki_text_value(move->path));
    item->cell[KI_COLUMN_LABEL] = mem_copy(m, ki_text_value(move->label));
    return KITH_OK;
}

static kith_status mem_column_add(ki_store *store, const char *name, kith_value_type type, kith_error *err) {
    store->is_changed = true;
    return ki_manifest_column_add(store->pending, name, type, err);
}

static kith_status mem_commit(ki_store *store, bool compact, ki_tally *tally, kith_error *err) {
    mem_store *m = mem_of(store);
    ki_records *out = &m->next.out;
    (void)tally;
    if (!store->is_changed && !compact) return KITH_OK;
    KI_TRY(ki_records_order(out, err));
    m->pending.n_excluded = out->n;
    m->pending.generation++;
    m->now.item = ki_arena_alloc(&m->arena, m->next.n + 1, sizeof *m->now.item);
    if (m->next.n > 0) memcpy(m->now.item, m->next.item, m->next.n * sizeof *m->now.item);
    m->now.n = m->next.n;
    ki_records_release(&m->now.out);
    for (int64_t i = 0; i < out->n; i++) KI_TRY(ki_records_add(&m->now.out, &out->record[i], false, err));
    ki_manifest_release(&m->committed);
    store->is_changed = false;
    return ki_manifest_copy(&m->pending, &m->committed, err);
}

static kith_status mem_excluded(ki_store *store, ki_records *ret_excluded, kith_error *err) {
    const ki_records *out = &mem_of(store)->now.out;
    for (int64_t i = 0; i < out->n; i++) KI_TRY(ki_records_add(ret_excluded, &out->record[i], false, err));
    return KITH_OK;
}

static bool mem_holds(const ki_where_node *node, const ki_roots *shown, const mem_item *item) {
    const bool left = node->left && mem_holds(node->left, shown, item);
    if (node->kind == KI_WHERE_NOT) return !left;
    if (node->kind == KI_WHERE_AND) return left && mem_holds(node->right, shown, item);
    if (node->kind == KI_WHERE_OR) return left || mem_holds(node->right, shown, item);
    kith_value value = item->cell[node->column];
    if (node->column == KI_COLUMN_PATH && shown && value.text) value.text = ki_roots_shown(shown, value.text);
    return ki_where_holds(node, &value);
}

static kith_status mem_ids(ki_store *store, const ki_where *where, int64_t **ret_ids, int64_t *ret_n,
                           kith_error *err) {
    const mem_items *items = &mem_of(store)->now;
    KI_TRY(ki_alloc_or(ret_ids, items->n, sizeof **ret_ids, "ids", err));
    *ret_n = 0;
    for (size_t i = 0; i < items->n; i++) {
        if (!where || mem_holds(where->root, where->shown, &items->item[i]))
            (*ret_ids)[(*ret_n)++] = mem_id(&items->item[i]);
    }
    return KITH_OK;
}

static kith_status mem_get(ki_store *store, int64_t id, kith_value *ret_cells, kith_error *err) {
    const mem_item *item = mem_find(&mem_of(store)->now, id);
    if (!item) return ki_store_fail_id(store, id, err);
    for (int64_t i = 0; i < KI_COLUMN_FIRST + store->committed->n_columns; i++) {
        ret_cells[i] = item->cell[i];
        if (item->cell[i].type == KITH_VALUE_TEXT) ret_cells[i].text = ki_strdup(item->cell[i].text);
    }
    return KITH_OK;
}

static kith_status mem_vectors(ki_store *store, const int64_t *ids, int64_t n, float *ret, kith_error *err) {
    const int64_t dim = store->committed->dim;
    for (int64_t i = 0; i < n; i++) {
        const mem_item *item = mem_find(&mem_of(store)->now, ids[i]);
        if (!item) return ki_store_fail_id(store, ids[i], err);
        memcpy(ret + i * dim, item->row, (size_t)dim * sizeof *ret);
    }
    return KITH_OK;
}

static kith_status mem_labels(ki_store *store, const int64_t *ids, int64_t n, ki_arena *arena,
                              const char **ret_labels, kith_error *err) {
    (void)arena, (void)err;
    for (int64_t i = 0; i < n; i++) {
        const mem_item *item = mem_find(&mem_of(store)->now, ids[i]);
        ret_labels[i] = item ? item->cell[KI_COLUMN_LABEL].text : NULL;
    }
    return KITH_OK;
}

static kith_status mem_stamps(ki_store *store, ki_arena *arena, ki_item_stamp **ret_stamps, int64_t *ret_n,
                              kith_error *err) {
    const mem_items *items = &mem_of(store)->now;
    (void)arena;
    KI_TRY(ki_alloc_or(ret_stamps, items->n, sizeof **ret_stamps, "items", err));
    *ret_n = (int64_t)items->n;
    for (size_t i = 0; i < items->n; i++) {
        const kith_value *cell = items->item[i].cell;
        (*ret_stamps)[i] = (ki_item_stamp){cell[KI_COLUMN_ID].integer, cell[KI_COLUMN_BYTES].integer,
                                           cell[KI_COLUMN_MTIME].integer, cell[KI_COLUMN_PATH].text};
    }
    return KITH_OK;
}

static kith_status mem_search(ki_store *store, const kith_array *query, const ki_where *where,
                              const kith_search_options *o, kith_hits *ret_hits, kith_error *err) {
    kith_status status;
    kith_array rows = {0};
    int64_t *ids = NULL, n = 0;
    kith_neighbor *lists = NULL;
    ki_hit_list hits = {0};
    KI_CHECK(mem_ids(store, where, &ids, &n, err));
    KI_CHECK(ki_hit_list_init(&hits, o, store->committed->metric, query->dim[0], n, err));
    const int64_t k = hits.most + 1,
                  n_queries = ki_hit_list_wants(&hits) ? query->dim[0] : 0; /* 1: the query itself */
    KI_CHECK(kith_array_init(KITH_F32, 2, (int64_t[]){n, store->committed->dim}, &rows, err));
    KI_CHECK(ki_alloc_or(&lists, (size_t)(n_queries * k), sizeof *lists, "hits", err));
    KI_CHECK(mem_vectors(store, ids, n, rows.data, err));
    if (n_queries > 0) KI_CHECK(ki_exact_list(&rows, store->committed->metric, query, k, lists, err));
    for (int64_t q = 0; q < n_queries; q++) {
        kith_neighbor *list = lists + q * k;
        int64_t n_list = 0;
        for (int64_t i = 0; i < k && list[i].index >= 0; i++) {
            if (!o->self || ids[list[i].index] != o->self[q]) list[n_list++] = list[i];
        }
        KI_CHECK(ki_hit_list_add(&hits, q, list, n_list < hits.most ? n_list : hits.most, ids, err));
    }
    ki_hit_list_take(&hits, true, ret_hits);
done:
    ki_hit_list_release(&hits);
    kith_array_release(&rows);
    ki_free(ids);
    ki_free(lists);
    return status;
}

static kith_status mem_check(ki_store *store, const kith_work_options *o, int64_t *ret, kith_error *err) {
    (void)o, (void)err;
    *ret = (int64_t)mem_of(store)->now.n * store->committed->dim * (int64_t)sizeof(float);
    return KITH_OK;
}

static const ki_store_type mem_type = {
    .close = mem_close,
    .name = mem_name,
    .info = mem_info,
    .add = mem_add,
    .remove = mem_remove,
    .move = mem_move,
    .restamp = mem_restamp,
    .exclude_file = mem_exclude_file,
    .column_add = mem_column_add,
    .commit = mem_commit,
    .excluded = mem_excluded,
    .ids = mem_ids,
    .item = mem_get,
    .vectors = mem_vectors,
    .labels = mem_labels,
    .stamps = mem_stamps,
    .search = mem_search,
    .check = mem_check,
};

#endif
