/* A decision about names: checked, carried out, noted, committed.
 *
 * The items as they are decide, not what the caller remembers of them: a request may say which name it was made from, and is refused if
 * that is not the name any more. So two people lose nothing of each other's. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/text.h"
#include "collection/collection.h"
#include "collection/decisions.h"

enum { MOST_WHO_BYTES = 100 };

KI_OPTIONS_INIT(kith_name_request, .act = KITH_NAME_GIVE)

/* One decision on its way. */
typedef struct deciding {
    kith_index *index;
    kith_name_request o;
    ki_decisions names;
    ki_name_entry entry;
    int64_t *ids, n;               /* items that get another state, … */
    ki_name_state *before, *after; /* [n] */
    kith_name_result *result;
} deciding;

/* ---- what is asked for ---- */

static kith_status check_text(const char *text, const char *what, size_t most, kith_error *err) {
    const size_t n = text ? strlen(text) : 0;
    bool is_blank = true, is_plain = true;
    for (size_t i = 0; i < n; i++) {
        is_blank &= text[i] == ' ';
        is_plain &= (unsigned char)text[i] >= ' ' && text[i] != 0x7f;
    }
    if (is_blank) return ki_fail(err, KITH_EINVAL, "%s is missing; wanted a text", what);
    if (n > most) return ki_fail(err, KITH_EINVAL, "%s has %zu bytes; at most %zu are kept", what, n, most);
    if (!is_plain || !ki_is_utf8(text))
        return ki_fail(err, KITH_EINVAL, "%s is not a line of UTF-8 without control characters", what);
    return KITH_OK;
}

static int by_number(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static kith_status check_ids(const kith_name_request *o, kith_error *err) {
    int64_t *sorted = NULL;
    if (o->n_ids < 1) return ki_fail(err, KITH_EINVAL, "no item is named; wanted at least one");
    if (o->n_ids > KITH_NAMES_MOST_ITEMS)
        return ki_fail(err, KITH_EINVAL, "%lld items; one decision has at most %d", (long long)o->n_ids,
                       KITH_NAMES_MOST_ITEMS);
    if (o->act == KITH_NAME_APART && o->n_ids != 2)
        return ki_fail(err, KITH_EINVAL, "%lld items are told apart; wanted two", (long long)o->n_ids);
    if (!o->ids)
        return ki_fail(err, KITH_EINVAL, "%lld items are to be decided about, and ids is NULL",
                       (long long)o->n_ids);
    KI_TRY(ki_alloc_or(&sorted, (size_t)o->n_ids, sizeof *sorted, "ids", err));
    memcpy(sorted, o->ids, (size_t)o->n_ids * sizeof *sorted);
    qsort(sorted, (size_t)o->n_ids, sizeof *sorted, by_number);
    kith_status status = KITH_OK;
    for (int64_t i = 1; i < o->n_ids && status == KITH_OK; i++) {
        if (sorted[i] == sorted[i - 1])
            status = ki_fail(err, KITH_EINVAL, "item %lld is there twice", (long long)sorted[i]);
    }
    ki_free(sorted);
    return status;
}

static bool has_name(kith_name_act act) {
    return act != KITH_NAME_TAKE && act != KITH_NAME_APART && act != KITH_NAME_UNDO;
}

static bool is_of_a_name(kith_name_act act) { return act == KITH_NAME_RENAME || act == KITH_NAME_MERGE; }

static kith_status check(const kith_name_request *o, kith_error *err) {
    if ((unsigned)o->act >= KITH_N_NAME_ACTS)
        return ki_fail(err, KITH_EINVAL, "%d is no decision about names", (int)o->act);
    KI_TRY(check_text(o->who, "who decides", MOST_WHO_BYTES, err));
    if (has_name(o->act)) KI_TRY(check_text(o->name, "the name", KITH_NAME_MOST_BYTES, err));
    if (is_of_a_name(o->act) && !o->from) return ki_fail(err, KITH_EINVAL, "the old name is missing");
    if (is_of_a_name(o->act) && strcmp(o->from, o->name) == 0)
        return ki_fail(err, KITH_EINVAL, "the old and the new name are both '%.80s'", o->name);
    if (o->act == KITH_NAME_UNDO && o->number < 0)
        return ki_fail(err, KITH_EINVAL, "decision %lld; wanted a number from 1, or 0 for the last one",
                       (long long)o->number);
    if (o->act == KITH_NAME_UNDO || is_of_a_name(o->act)) return KITH_OK;
    return check_ids(o, err);
}

/* ---- items ---- */

/* The value of a column of the index; NULL: none. */
static const char *text_of(const kith_index *index, const kith_index_item *item, const char *column) {
    kith_column c;
    for (int64_t i = 0; item->values && (c = kith_index_column(index, i)).name; i++) {
        if (strcmp(c.name, column) == 0 && item->values[i].type == KITH_VALUE_TEXT)
            return item->values[i].text;
    }
    return NULL;
}

ki_name_state ki_name_state_of(const kith_index *index, const kith_index_item *item) {
    return (ki_name_state){item->label, text_of(index, item, KI_NAMED_BY),
                           text_of(index, item, KI_NAMED_KIND)};
}

static bool is_same(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

static bool is_same_state(const ki_name_state *a, const ki_name_state *b) {
    return is_same(a->name, b->name) && is_same(a->by, b->by) && is_same(a->kind, b->kind);
}

static kith_status keep(ki_arena *arena, const char **text, kith_error *err) {
    if (!*text) return KITH_OK;
    const char *copy = ki_arena_strdup(arena, *text);
    if (!copy) return ki_fail_memory(err, strlen(*text), "a name");
    *text = copy;
    return KITH_OK;
}

static kith_status keep_state(ki_arena *arena, ki_name_state *state, kith_error *err) {
    KI_TRY(keep(arena, &state->name, err));
    KI_TRY(keep(arena, &state->by, err));
    return keep(arena, &state->kind, err);
}

static kith_status get_state(deciding *d, int64_t id, ki_name_state *ret, kith_error *err) {
    kith_index_item item;
    const kith_status found = kith_index_item_get(d->index, id, &item, err);
    if (found == KITH_ENOTFOUND) {
        d->result->conflict = id;
        return ki_fail(err, KITH_ENOTFOUND, "there is no item %lld", (long long)id);
    }
    if (found != KITH_OK) return found;
    *ret = ki_name_state_of(d->index, &item);
    const kith_status status = keep_state(&d->names.arena, ret, err);
    kith_index_item_release(&item);
    return status;
}

static kith_status refuse(deciding *d, int64_t id, const ki_name_state *now, kith_error *err) {
    d->result->conflict = id;
    if (!now->name)
        return ki_fail(err, KITH_EINVAL, "item %lld has no name now: look at it again", (long long)id);
    ki_fail(err, KITH_EINVAL, "item %lld is '%.120s' now", (long long)id, now->name);
    return ki_hint(err, KITH_EINVAL, "%s%.100s decided that meanwhile: look at it again",
                   now->by ? "" : "somebody", now->by ? now->by : "");
}

static kith_status reserve(deciding *d, int64_t n, kith_error *err) {
    d->ids = ki_arena_alloc(&d->names.arena, (size_t)n + 1, sizeof *d->ids);
    d->before = ki_arena_alloc(&d->names.arena, (size_t)n + 1, sizeof *d->before);
    d->after = ki_arena_alloc(&d->names.arena, (size_t)n + 1, sizeof *d->after);
    return d->ids && d->before && d->after ? KITH_OK
                                           : ki_fail_memory(err, (size_t)n * sizeof *d->ids, "items");
}

/* All of these get this name (NULL: none) by who decides. */
static kith_status name_items(deciding *d, const int64_t *ids, int64_t n, const char *name, kith_error *err) {
    const kith_name_request *o = &d->o;
    const ki_name_state after = {name, o->who, o->by_model ? "model" : "person"};
    KI_TRY(reserve(d, n, err));
    for (int64_t i = 0; i < n; i++) {
        ki_name_state before = {0};
        KI_TRY(get_state(d, ids[i], &before, err));
        if (o->was && !is_same(o->was[i], before.name)) return refuse(d, ids[i], &before, err);
        if (is_same_state(&before, &after)) continue;
        d->ids[d->n] = ids[i];
        d->before[d->n] = before;
        d->after[d->n++] = after;
    }
    return KITH_OK;
}

/* ---- kinds of decisions ---- */

static kith_status give(deciding *d, kith_error *err) {
    const kith_name_request *o = &d->o;
    const bool is_confirmed = o->act == KITH_NAME_CONFIRM || (o->proposed && is_same(o->proposed, o->name));
    if (!o->by_model && (is_confirmed || o->proposed)) d->entry.n_checked = o->n_ids;
    if (!o->by_model && !is_confirmed && o->proposed) d->entry.n_wrong = o->n_ids;
    return name_items(d, o->ids, o->n_ids, o->act == KITH_NAME_TAKE ? NULL : o->name, err);
}

/* Names stay; the items have to be there. */
static kith_status note_items(deciding *d, kith_error *err) {
    const kith_name_request *o = &d->o;
    for (int64_t i = 0; i < o->n_ids; i++) {
        ki_name_state now = {0};
        KI_TRY(get_state(d, o->ids[i], &now, err));
        if (o->was && !is_same(o->was[i], now.name)) return refuse(d, o->ids[i], &now, err);
    }
    d->entry.n_ids = o->n_ids;
    d->entry.ids = ki_arena_alloc(&d->names.arena, (size_t)o->n_ids, sizeof *d->entry.ids);
    if (!d->entry.ids) return ki_fail_memory(err, (size_t)o->n_ids * sizeof *o->ids, "ids");
    memcpy(d->entry.ids, o->ids, (size_t)o->n_ids * sizeof *o->ids);
    if (o->act == KITH_NAME_REJECT && !o->by_model) d->entry.n_checked = d->entry.n_wrong = o->n_ids;
    return KITH_OK;
}

/* The items that have a name. */
static kith_status find_named(deciding *d, const char *name, int64_t **ret_ids, int64_t *ret_n,
                              kith_error *err) {
    ki_buffer where = {.err = err};
    ki_buffer_put(&where, "label = \"");
    for (const char *at = name; *at; at++)
        ki_buffer_add(&where, *at == '"' ? "\"\"" : at, *at == '"' ? 2 : 1);
    ki_buffer_add(&where, "\"", 2);
    kith_status status = where.status;
    if (status == KITH_OK) status = kith_index_ids(d->index, where.data, ret_ids, ret_n, err);
    ki_buffer_release(&where);
    return status;
}

static kith_status rename_all(deciding *d, kith_error *err) {
    const kith_name_request *o = &d->o;
    kith_status status;
    int64_t *ids = NULL, *there = NULL, n = 0, n_there = 0;
    KI_CHECK(find_named(d, o->from, &ids, &n, err));
    KI_CHECK(find_named(d, o->name, &there, &n_there, err));
    if (n == 0) status = ki_fail(err, KITH_ENOTFOUND, "no item has the name '%.120s'", o->from);
    if (n > 0 && o->act == KITH_NAME_MERGE && n_there == 0)
        status = ki_fail(err, KITH_ENOTFOUND, "no item has the name '%.120s' to merge with", o->name);
    if (n > 0 && o->act == KITH_NAME_RENAME && n_there > 0) {
        status = ki_fail(err, KITH_EINVAL, "%lld items have the name '%.120s' already", (long long)n_there,
                         o->name);
        ki_hint(err, status, "merge the two names if they are the same");
    }
    if (status == KITH_OK && n > KITH_NAMES_MOST_ITEMS)
        status = ki_fail(err, KITH_EINVAL, "%lld items have the name '%.120s'; one decision has at most %d",
                         (long long)n, o->from, KITH_NAMES_MOST_ITEMS);
    if (status == KITH_OK) status = name_items(d, ids, n, o->name, err);
done:
    kith_ids_free(ids);
    kith_ids_free(there);
    return status;
}

static const ki_name_entry *last_of(const deciding *d) {
    for (int64_t i = d->names.n_entries - 1; i >= 0; i--) {
        const ki_name_entry *e = &d->names.entries[i];
        if (e->act != KITH_NAME_UNDO && strcmp(e->who, d->o.who) == 0 &&
            ki_decisions_undone_by(&d->names, e->number) == 0)
            return e;
    }
    return NULL;
}

/* What the decision made of the items has to be what they are; those that are gone are passed over. */
static kith_status undo_changes(deciding *d, const ki_name_entry *e, kith_error *err) {
    int64_t n = 0;
    for (int64_t i = 0; i < e->n_changes; i++) n += e->changes[i].n;
    KI_TRY(reserve(d, n, err));
    for (int64_t i = 0; i < e->n_changes; i++) {
        const ki_name_change *c = &e->changes[i];
        for (int64_t k = 0; k < c->n; k++) {
            ki_name_state now = {0};
            const kith_status status = get_state(d, c->ids[k], &now, err);
            d->result->conflict = -1;
            if (status == KITH_ENOTFOUND) continue;
            KI_TRY(status);
            if (!is_same_state(&now, &c->after)) return refuse(d, c->ids[k], &now, err);
            d->ids[d->n] = c->ids[k];
            d->before[d->n] = now;
            d->after[d->n++] = c->before;
        }
    }
    return KITH_OK;
}

static kith_status undo(deciding *d, kith_error *err) {
    const ki_name_entry *e = d->o.number > 0 ? ki_decisions_find(&d->names, d->o.number) : last_of(d);
    if (!e && d->o.number > 0)
        return ki_fail(err, KITH_ENOTFOUND, "decision %lld is not remembered", (long long)d->o.number);
    if (!e) return ki_fail(err, KITH_ENOTFOUND, "%.100s has decided nothing that could be undone", d->o.who);
    const int64_t by = ki_decisions_undone_by(&d->names, e->number);
    if (by > 0)
        return ki_fail(err, KITH_EINVAL, "decision %lld was undone already, by decision %lld",
                       (long long)e->number, (long long)by);
    d->entry.of = e->number;
    d->entry.root = e->root;
    d->entry.is_back = !e->is_back;
    d->entry.name = e->name;
    d->entry.from = e->from;
    d->entry.ids = e->ids;
    d->entry.n_ids = e->n_ids;
    d->entry.n_checked = -e->n_checked;
    d->entry.n_wrong = -e->n_wrong;
    return undo_changes(d, e, err);
}

/* ---- carrying it out ---- */

static kith_status find_out(deciding *d, kith_error *err) {
    d->entry.root = d->o.act;
    d->entry.name = has_name(d->o.act) ? d->o.name : NULL;
    d->entry.from = is_of_a_name(d->o.act) ? d->o.from : NULL;
    switch (d->o.act) {
    case KITH_NAME_UNDO: return undo(d, err);
    case KITH_NAME_REJECT:
    case KITH_NAME_APART: return note_items(d, err);
    case KITH_NAME_RENAME:
    case KITH_NAME_MERGE: return rename_all(d, err);
    default: return give(d, err);
    }
}

static kith_value text_value(const char *text) {
    return (kith_value){.type = text ? KITH_VALUE_TEXT : KITH_VALUE_NONE, .text = text};
}

static kith_status set_items(deciding *d, kith_error *err) {
    static const char *const columns[] = {KI_NAMED_BY, KI_NAMED_KIND};
    kith_status status;
    const char **labels = NULL;
    kith_value *values = NULL;
    if (d->n == 0) return KITH_OK;
    for (int i = 0; i < 2; i++) KI_TRY(kith_index_column_add(d->index, columns[i], KITH_VALUE_TEXT, err));
    KI_CHECK(ki_alloc_or(&labels, (size_t)d->n, sizeof *labels, "names", err));
    KI_CHECK(ki_alloc_or(&values, (size_t)d->n, 2 * sizeof *values, "names", err));
    for (int64_t i = 0; i < d->n; i++) {
        labels[i] = d->after[i].name;
        values[2 * i] = text_value(d->after[i].by);
        values[2 * i + 1] = text_value(d->after[i].kind);
    }
    KI_CHECK(kith_index_label(d->index, d->ids, d->n, labels, err));
    status = kith_index_set(d->index, d->ids, d->n, columns, 2, values, err);
done:
    ki_free(labels);
    ki_free(values);
    return status;
}

/* Neighbours with the same states are one change: most decisions have one. */
static kith_status list_changes(deciding *d, kith_error *err) {
    ki_name_entry *e = &d->entry;
    e->changes = ki_arena_alloc(&d->names.arena, (size_t)d->n + 1, sizeof *e->changes);
    if (!e->changes) return ki_fail_memory(err, (size_t)d->n * sizeof *e->changes, "changes");
    for (int64_t i = 0; i < d->n; i++) {
        ki_name_change *last = e->n_changes > 0 ? &e->changes[e->n_changes - 1] : NULL;
        if (last && is_same_state(&last->before, &d->before[i]) && is_same_state(&last->after, &d->after[i]))
            last->n++;
        else
            e->changes[e->n_changes++] = (ki_name_change){d->before[i], d->after[i], &d->ids[i], 1};
    }
    return KITH_OK;
}

static kith_status note(deciding *d, kith_error *err) {
    ki_decisions *n = &d->names;
    ki_name_entry *e = &d->entry;
    KI_TRY(list_changes(d, err));
    for (int64_t i = 0; i < e->n_ids && e->root == KITH_NAME_REJECT; i++)
        KI_TRY(ki_decisions_reject(n, e->ids[i], e->name, e->is_back, err));
    if (e->root == KITH_NAME_APART && e->n_ids == 2)
        KI_TRY(ki_decisions_tell_apart(n, e->ids[0], e->ids[1], e->is_back, err));
    e->number = ++n->n_made;
    e->time = (int64_t)time(NULL);
    e->who = d->o.who;
    e->by_model = d->o.by_model;
    e->act = d->o.act;
    n->n_checked += e->n_checked;
    n->n_wrong += e->n_wrong;
    if (!n->entries) {
        n->entries = ki_arena_alloc(&n->arena, 1, sizeof *n->entries);
        if (!n->entries) return ki_fail_memory(err, sizeof *n->entries, "a decision");
    }
    n->entries[n->n_entries++] = *e;
    return ki_decisions_write(n, d->index, err);
}

kith_status kith_collection_name(kith_collection *collection, const kith_name_request *request,
                                 kith_name_result *ret_result, kith_error *err) {
    KI_NEED(err, collection, request, ret_result);
    KI_OPTIONS_TAKE(kith_name_request, o, request, err);
    kith_status status;
    bool is_begun = false;
    kith_name_result result = {.conflict = -1};
    deciding d = {.o = o, .result = &result};
    KI_CHECK(check(&o, err));
    KI_CHECK(ki_collection_begin(collection, err));
    d.index = collection->index;
    KI_CHECK(ki_decisions_read(&d.names, d.index, err));
    KI_CHECK(find_out(&d, err));
    is_begun = true;
    KI_CHECK(set_items(&d, err));
    KI_CHECK(note(&d, err));
    KI_CHECK(kith_index_commit(d.index, NULL, err));
    ki_collection_committed(collection);
    result.number = d.entry.number;
    result.n_items = d.n;
done:
    if (status != KITH_OK && is_begun) ki_collection_drop(collection);
    ki_decisions_drop(&d.names);
    *ret_result = result;
    return status;
}
