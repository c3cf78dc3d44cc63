/* Names and decisions, as callers see them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "collection/collection.h"
#include "collection/decisions.h"
#include "search/index_handle.h"

/* What a kith_names points into. */
typedef struct listing {
    ki_decisions noted; /* with the arena of all the rest */
} listing;

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The different ones among n texts, and how often each is there. */
static kith_status count_names(listing *l, const char **labels, int64_t n, kith_names *ret, kith_error *err) {
    int64_t n_named = 0, n_names = 0;
    for (int64_t i = 0; i < n; i++) {
        if (labels[i]) labels[n_named++] = labels[i];
    }
    if (n_named > 0) qsort(labels, (size_t)n_named, sizeof *labels, by_text);
    int64_t *counts = ki_arena_alloc(&l->noted.arena, (size_t)n_named + 1, sizeof *counts);
    if (!counts) return ki_fail_memory(err, (size_t)n_named * sizeof *counts, "names");
    for (int64_t i = 0; i < n_named; i++) {
        if (n_names == 0 || strcmp(labels[n_names - 1], labels[i]) != 0) labels[n_names++] = labels[i];
        counts[n_names - 1]++;
    }
    ret->n_items = n;
    ret->n_named = n_named;
    ret->n_names = n_names;
    ret->names = labels;
    ret->counts = counts;
    return KITH_OK;
}

static kith_status list_names(listing *l, const kith_index *index, kith_names *ret, kith_error *err) {
    kith_status status;
    int64_t *ids = NULL, n = 0, *decided = NULL, n_decided = 0;
    KI_CHECK(kith_index_ids(index, NULL, &ids, &n, err));
    const char **labels = ki_arena_alloc(&l->noted.arena, (size_t)n + 1, sizeof *labels);
    if (!labels) {
        status = ki_fail_memory(err, (size_t)n * sizeof *labels, "names");
        goto done;
    }
    KI_CHECK(ki_index_labels(index, ids, n, &l->noted.arena, labels, err));
    KI_CHECK(ki_decisions_decided(index, &decided, &n_decided, err));
    ret->n_decided = 0;
    for (int64_t i = 0; i < n; i++)
        ret->n_decided += labels[i] && ki_decisions_has(decided, n_decided, ids[i]);
    status = count_names(l, labels, n, ret, err);
done:
    kith_ids_free(ids);
    kith_ids_free(decided);
    return status;
}

static kith_status list_items(listing *l, const ki_name_entry *e, kith_name_decision *to, kith_error *err) {
    ki_arena *arena = &l->noted.arena;
    int64_t n = 0;
    to->ids = e->ids;
    to->n_ids = e->n_ids;
    for (int64_t i = 0; i < e->n_changes; i++) n += e->changes[i].n;
    if (n == 0 && e->n_ids == 0) return KITH_OK;
    const int64_t most = n > e->n_ids ? n : e->n_ids;
    const char **before = ki_arena_alloc(arena, (size_t)most, sizeof *before);
    const char **after = ki_arena_alloc(arena, (size_t)most, sizeof *after);
    int64_t *ids = ki_arena_alloc(arena, (size_t)most, sizeof *ids);
    if (!before || !after || !ids) return ki_fail_memory(err, (size_t)most * sizeof *ids, "decisions");
    to->before = before;
    to->after = after;
    if (n == 0) return KITH_OK;
    n = 0;
    for (int64_t i = 0; i < e->n_changes; i++) {
        const ki_name_change *c = &e->changes[i];
        for (int64_t k = 0; k < c->n; k++) {
            before[n] = c->before.name;
            after[n] = c->after.name;
            ids[n++] = c->ids[k];
        }
    }
    to->ids = ids;
    to->n_ids = n;
    return KITH_OK;
}

static kith_status list_decisions(listing *l, kith_names *ret, kith_error *err) {
    const ki_decisions *n = &l->noted;
    kith_name_decision *list = ki_arena_alloc(&l->noted.arena, (size_t)n->n_entries + 1, sizeof *list);
    if (!list) return ki_fail_memory(err, (size_t)n->n_entries * sizeof *list, "decisions");
    for (int64_t i = 0; i < n->n_entries; i++) {
        const ki_name_entry *e = &n->entries[n->n_entries - 1 - i];
        list[i] = (kith_name_decision){.number = e->number,
                                       .time = e->time,
                                       .who = e->who,
                                       .by_model = e->by_model,
                                       .act = e->act,
                                       .name = e->name,
                                       .from = e->from,
                                       .undoes = e->of,
                                       .undone_by = ki_decisions_undone_by(n, e->number)};
        KI_TRY(list_items(l, e, &list[i], err));
    }
    ret->decisions = list;
    ret->n_decisions = n->n_entries;
    return KITH_OK;
}

static kith_status list_all(listing *l, const kith_index *index, kith_names *ret, kith_error *err) {
    KI_TRY(ki_decisions_read(&l->noted, index, err));
    KI_TRY(list_names(l, index, ret, err));
    ret->n_checked = l->noted.n_checked;
    ret->n_wrong = l->noted.n_wrong;
    ki_decisions_rate(ret->n_checked, ret->n_wrong, &ret->rate, &ret->low, &ret->high);
    return list_decisions(l, ret, err);
}

kith_status kith_collection_names(const kith_collection *collection, kith_names *ret_names, kith_error *err) {
    KI_NEED(err, collection, ret_names);
    listing *l = NULL;
    kith_names names = {0};
    KI_TRY(ki_collection_has_index(collection, err));
    KI_TRY(ki_zalloc_or(&l, 1, sizeof *l, "names", err));
    names.memory = l;
    const kith_status status = list_all(l, collection->index, &names, err);
    if (status == KITH_OK)
        *ret_names = names;
    else
        kith_names_release(&names);
    return status;
}

void kith_names_release(kith_names *names) {
    if (!names) return;
    listing *l = names->memory;
    if (l) ki_decisions_drop(&l->noted);
    ki_free(l);
    *names = (kith_names){0};
}
