/* What was decided about names stays, whatever happens to files and models: for syncs and renewals. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "collection/decisions.h"
#include "search/index_handle.h"
#include "search/notes.h"

static bool has_column(const kith_index *index, const char *name) {
    kith_column column;
    for (int64_t i = 0; (column = kith_index_column(index, i)).name; i++) {
        if (strcmp(column.name, name) == 0) return column.type == KITH_VALUE_TEXT;
    }
    return false;
}

kith_status ki_decisions_decided(const kith_index *index, int64_t **ret_ids, int64_t *ret_n,
                                 kith_error *err) {
    *ret_ids = NULL;
    *ret_n = 0;
    if (!has_column(index, KI_NAMED_BY)) return KITH_OK;
    return kith_index_ids(index, KI_NAMED_BY " != ''", ret_ids, ret_n, err);
}

/* The place of an id, or -1. */
static int64_t find_id(const int64_t *ids, int64_t n, int64_t id) {
    int64_t low = 0, high = n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && ids[low] == id ? low : -1;
}

bool ki_decisions_has(const int64_t *ids, int64_t n, int64_t id) { return find_id(ids, n, id) >= 0; }

/* ---- other ids ---- */

typedef struct mapping {
    const int64_t *from, *to;
    int64_t n;
    bool drops_others; /* an id that is not of `from` is gone */
} mapping;

/* -1: gone. */
static int64_t mapped(const mapping *m, int64_t id) {
    const int64_t at = find_id(m->from, m->n, id);
    return at >= 0 ? m->to[at] : m->drops_others ? -1 : id;
}

static int64_t map_ids(const mapping *m, int64_t *ids, int64_t n) {
    int64_t n_kept = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t id = mapped(m, ids[i]);
        if (id >= 0) ids[n_kept++] = id;
    }
    return n_kept;
}

static void map_entry(const mapping *m, ki_name_entry *e) {
    for (int64_t i = 0; i < e->n_changes; i++)
        e->changes[i].n = map_ids(m, e->changes[i].ids, e->changes[i].n);
    e->n_ids = map_ids(m, e->ids, e->n_ids);
}

/* The lists are in order of ids: they are made again. */
static kith_status map_names(const mapping *m, ki_decisions *n, kith_error *err) {
    for (int64_t i = 0; i < n->n_entries; i++) map_entry(m, &n->entries[i]);
    const ki_name_rejected *rejected = n->rejected;
    const ki_name_pair *apart = n->apart;
    const int64_t n_rejected = n->n_rejected, n_apart = n->n_apart;
    n->rejected = NULL;
    n->apart = NULL;
    n->n_rejected = n->n_apart = n->rejected_room = n->apart_room = 0;
    for (int64_t i = 0; i < n_rejected; i++) {
        const int64_t id = mapped(m, rejected[i].id);
        if (id >= 0) KI_TRY(ki_decisions_reject(n, id, rejected[i].name, false, err));
    }
    for (int64_t i = 0; i < n_apart; i++) {
        const int64_t a = mapped(m, apart[i].a), b = mapped(m, apart[i].b);
        if (a >= 0 && b >= 0) KI_TRY(ki_decisions_tell_apart(n, a, b, false, err));
    }
    return KITH_OK;
}

static kith_status write_mapped(const kith_index *from, kith_index *to, const mapping *m, kith_error *err) {
    ki_decisions names = {0};
    if (!ki_index_note(from, KI_NOTE_DECISIONS)) return KITH_OK;
    kith_status status = ki_decisions_read(&names, from, err);
    if (status == KITH_OK) status = map_names(m, &names, err);
    if (status == KITH_OK) status = ki_decisions_write(&names, to, err);
    ki_decisions_drop(&names);
    return status;
}

kith_status ki_decisions_follow(kith_index *index, const int64_t *from, const int64_t *to, int64_t n,
                                kith_error *err) {
    const mapping m = {from, to, n, false};
    return n > 0 ? write_mapped(index, index, &m, err) : KITH_OK;
}

/* ---- another index ---- */

/* Items of both, with what was decided of them. */
typedef struct carrying {
    const kith_index *from;
    kith_index *to;
    int64_t *ids, n; /* of `from` */
    kith_index_item *items;
    kith_file_stamp *stamps;
    int64_t *new_ids;
} carrying;

/* The items of the new index with the paths of the old one's. */
static kith_status find_items(carrying *c, kith_error *err) {
    kith_status status;
    int64_t *gone = NULL, n_gone = 0, n = 0;
    kith_file_state *states = NULL;
    KI_CHECK(kith_index_ids(c->from, NULL, &c->ids, &c->n, err));
    KI_CHECK(ki_zalloc_or(&c->items, (size_t)c->n + 1, sizeof *c->items, "items", err));
    KI_CHECK(ki_zalloc_or(&c->stamps, (size_t)c->n + 1, sizeof *c->stamps, "items", err));
    KI_CHECK(ki_zalloc_or(&c->new_ids, (size_t)c->n + 1, sizeof *c->new_ids, "items", err));
    KI_CHECK(ki_zalloc_or(&states, (size_t)c->n + 1, sizeof *states, "items", err));
    for (int64_t i = 0; i < c->n; i++) {
        kith_index_item *item = &c->items[n];
        KI_CHECK(kith_index_item_get(c->from, c->ids[i], item, err));
        if (!item->path) {
            kith_index_item_release(item);
            continue;
        }
        c->stamps[n] = (kith_file_stamp){item->path, item->bytes, item->mtime_ns};
        c->ids[n++] = item->id;
    }
    c->n = n;
    status = kith_index_compare(c->to, c->stamps, n, states, c->new_ids, &gone, &n_gone, err);
done:
    kith_ids_free(gone);
    ki_free(states);
    return status;
}

static kith_value text_value(const char *text) {
    return (kith_value){.type = text ? KITH_VALUE_TEXT : KITH_VALUE_NONE, .text = text};
}

static kith_status carry_decided(const carrying *c, kith_error *err) {
    static const char *const columns[] = {KI_NAMED_BY, KI_NAMED_KIND};
    if (!has_column(c->from, KI_NAMED_BY)) return KITH_OK;
    for (int i = 0; i < 2; i++) KI_TRY(kith_index_column_add(c->to, columns[i], KITH_VALUE_TEXT, err));
    for (int64_t i = 0; i < c->n; i++) {
        const ki_name_state state = ki_name_state_of(c->from, &c->items[i]);
        const kith_value values[2] = {text_value(state.by), text_value(state.kind)};
        if (!state.by || c->new_ids[i] < 0) continue;
        KI_TRY(kith_index_label(c->to, &c->new_ids[i], 1, &state.name, err));
        KI_TRY(kith_index_set(c->to, &c->new_ids[i], 1, columns, 2, values, err));
    }
    return KITH_OK;
}

kith_status ki_decisions_carry(const kith_index *from, kith_index *to, kith_error *err) {
    carrying c = {.from = from, .to = to};
    if (!ki_index_note(from, KI_NOTE_DECISIONS) && !has_column(from, KI_NAMED_BY)) return KITH_OK;
    kith_status status = find_items(&c, err);
    const mapping m = {c.ids, c.new_ids, c.n, true};
    if (status == KITH_OK) status = carry_decided(&c, err);
    if (status == KITH_OK) status = write_mapped(from, to, &m, err);
    for (int64_t i = 0; c.items && i < c.n; i++) kith_index_item_release(&c.items[i]);
    kith_ids_free(c.ids);
    ki_free(c.items);
    ki_free(c.stamps);
    ki_free(c.new_ids);
    return status;
}
