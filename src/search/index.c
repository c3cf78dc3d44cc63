/* Handles: making, opening, closing, what an index is. */
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/parallel.h"
#include "search/exact_list.h"
#include "search/index_handle.h"
#include "search/notes.h"

static const char *const tier_names[] = {"exact", "scan", "lists", "graph"};
const char *kith_index_tier_name(kith_index_tier tier) { return (unsigned)tier < 4 ? tier_names[tier] : "?"; }

KI_OPTIONS_INIT(kith_index_options, .recall = 0.99, .exact_numbers = KI_EXACT_NUMBERS)
KI_OPTIONS_INIT(kith_work_options, 0)
KI_OPTIONS_INIT(kith_search_options, .k = 10)

/* ---- handles ---- */

kith_status ki_index_wrap(ki_store *store, kith_index **ret_index, kith_error *err) {
    kith_index *index = NULL;
    kith_status status = ki_zalloc_or(&index, 1, sizeof *index, "an index", err);
    if (status != KITH_OK) {
        store->type->close(store);
        return status;
    }
    index->store = store;
    status = ki_index_place_find(index, &index->place, err);
    if (status == KITH_OK)
        *ret_index = index;
    else
        kith_index_free(index);
    return status;
}

static kith_status check_options(const kith_index_options *o, kith_error *err) {
    if (o->dim < 1 || o->dim > KI_MOST_DIM)
        return ki_fail(err, KITH_EINVAL, "dim is %lld; wanted 1 to %d", (long long)o->dim, KI_MOST_DIM);
    if ((unsigned)o->metric > KITH_SQEUCLIDEAN)
        return ki_fail(err, KITH_EINVAL, "metric %d is none", (int)o->metric);
    if (!(o->recall > 0 && o->recall < 1))
        return ki_fail(err, KITH_EINVAL, "recall is %g; wanted more than 0 and less than 1", o->recall);
    if (o->exact_numbers < 0)
        return ki_fail(err, KITH_EINVAL, "exact_numbers is %lld; wanted 0 or more",
                       (long long)o->exact_numbers);
    if (o->first < 0 || o->first > o->dim)
        return ki_fail(err, KITH_EINVAL, "first is %lld values of %lld; wanted 1 to %lld, or 0 for all",
                       (long long)o->first, (long long)o->dim, (long long)o->dim);
    if (o->n_columns < 0 || (o->n_columns > 0 && !o->columns))
        return ki_fail(err, KITH_EINVAL, "columns is NULL and n_columns %lld", (long long)o->n_columns);
    return KITH_OK;
}

kith_status kith_index_create(const char *path, const kith_index_options *options, kith_index **ret_index,
                              kith_error *err) {
    KI_NEED(err, path, ret_index);
    KI_OPTIONS_TAKE(kith_index_options, o, options, err);
    KI_TRY(check_options(&o, err));
    kith_status status = KITH_OK;
    ki_store *store = NULL;
    ki_manifest m = {.generation = 1,
                     .dim = o.dim,
                     .next_file = 1,
                     .metric = o.metric,
                     .model = o.model ? o.model : "",
                     .preprocess = o.preprocess ? o.preprocess : "",
                     .recall = o.recall,
                     .exact_numbers = o.exact_numbers,
                     .first = o.first < o.dim ? o.first : 0};
    for (int64_t i = 0; i < o.n_columns; i++) {
        if (!o.columns[i].name) {
            status = ki_fail(err, KITH_EINVAL, "column %lld has no name", (long long)i);
            goto done;
        }
        KI_CHECK(ki_manifest_column_add(&m, o.columns[i].name, o.columns[i].type, err));
    }
    KI_CHECK(ki_store_type_for(path)->create(path, &m, &store, err));
    KI_CHECK(ki_index_wrap(store, ret_index, err));
done:
    ki_manifest_release(&m);
    return status;
}

kith_status kith_index_open(const char *path, kith_index_mode mode, kith_index **ret_index, kith_error *err) {
    KI_NEED(err, path, ret_index);
    ki_store *store = NULL;
    if (mode != KITH_INDEX_READ && mode != KITH_INDEX_WRITE)
        return ki_fail(err, KITH_EINVAL, "mode %d; wanted KITH_INDEX_READ or KITH_INDEX_WRITE", (int)mode);
    KI_TRY(ki_store_type_for(path)->open(path, mode == KITH_INDEX_WRITE, &store, err));
    return ki_index_wrap(store, ret_index, err);
}

void kith_index_free(kith_index *index) {
    if (!index) return;
    index->store->type->close(index->store);
    ki_index_place_free(index->place);
    if (index->shown) ki_arena_release(&index->shown->arena);
    ki_free(index->shown);
    ki_free(index);
}

kith_status kith_index_keep(kith_index *index, int64_t most_bytes, kith_error *err) {
    KI_NEED(err, index);
    KI_NEED_COUNT(err, most_bytes);
    if (index->store->type->keep) index->store->type->keep(index->store, most_bytes);
    return KITH_OK;
}

/* ---- paths that are shown ---- */

static const char *kept_note(const kith_index *index, const char *name) {
    const ki_manifest *m = ki_index_manifest(index);
    for (int64_t i = 0; i < m->n_notes; i++) {
        if (strcmp(m->notes[i].name, name) == 0) return m->notes[i].text;
    }
    return NULL;
}

kith_status ki_index_show_paths(kith_index *index, kith_error *err) {
    ki_shown *s = NULL;
    if (index->shown) return KITH_OK;
    KI_TRY(ki_zalloc_or(&s, 1, sizeof *s, "folders", err));
    index->shown = s;
    KI_TRY(ki_roots_init(&s->kept, kept_note(index, ki_note_types[KI_NOTE_SOURCES].name), &s->arena, err));
    KI_TRY(ki_roots_init(&s->now, ki_index_note(index, KI_NOTE_SOURCES), &s->arena, err));
    return KITH_OK;
}

const char *ki_index_shown(const kith_index *index, const char *path) {
    return path && index->shown ? ki_roots_shown(&index->shown->now, path) : path;
}

/* ---- what it is ---- */

kith_status kith_index_is_current(const kith_index *index, bool *ret_is_current, kith_error *err) {
    KI_NEED(err, index, ret_is_current);
    const ki_store_type *type = index->store->type;
    if (type->is_current) return type->is_current(index->store, ret_is_current, err);
    *ret_is_current = true;
    return KITH_OK;
}

static kith_status expect_same(const char *what, const char *found, const char *wanted, const char *folder,
                               kith_error *err) {
    if (!wanted || strcmp(found, wanted) == 0) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "%s was made with %s %.64s; this one is %.64s", folder, what,
            *found ? found : "that is not known", *wanted ? wanted : "not known");
    return ki_hint(err, KITH_EINVAL, "use the %s the index was made with, or make the index again", what);
}

kith_status kith_index_expect(const kith_index *index, const char *model, const char *preprocess,
                              kith_error *err) {
    KI_NEED(err, index);
    const ki_manifest *m = ki_index_committed(index);
    KI_TRY(expect_same("model", m->model, model, ki_index_name(index), err));
    return expect_same("preprocessing", m->preprocess, preprocess, ki_index_name(index), err);
}

const char *kith_index_note(const kith_index *index, const char *name) {
    if (!index || !name) return NULL;
    const char *moved = ki_index_place_note(index->place, name);
    return moved ? moved : kept_note(index, name);
}

kith_column kith_index_column(const kith_index *index, int64_t i) {
    if (!index || i < 0 || i >= ki_index_manifest(index)->n_columns) return (kith_column){0};
    return ki_index_manifest(index)->columns[i];
}

void kith_index_info_get(const kith_index *index, kith_index_info *ret_info) {
    if (!index || !ret_info) return;
    const ki_manifest *m = ki_index_committed(index);
    *ret_info = (kith_index_info){.format = ki_manifest_format(m),
                                  .generation = m->generation,
                                  .n_columns = m->n_columns,
                                  .dim = m->dim,
                                  .metric = m->metric,
                                  .model = m->model,
                                  .preprocess = m->preprocess,
                                  .recall_wanted = m->recall,
                                  .is_calibrated = m->calibration != NULL,
                                  .n_excluded = m->n_excluded,
                                  .first = m->first};
    index->store->type->info(index->store, ret_info);
}

const kith_calibration *kith_index_calibration(const kith_index *index) {
    return index ? ki_index_manifest(index)->calibration : NULL;
}

kith_status kith_index_check(const kith_index *index, const kith_work_options *options, int64_t *ret_bytes,
                             kith_error *err) {
    KI_NEED(err, index, ret_bytes);
    KI_OPTIONS_TAKE(kith_work_options, o, options, err);
    ki_threads_before before;
    KI_TRY(ki_threads_for(o.n_threads, &before, err));
    const kith_status status = index->store->type->check(index->store, &o, ret_bytes, err);
    ki_threads_back(before);
    return status;
}

/* ---- threads ---- */

kith_status ki_threads_for(int64_t n, ki_threads_before *ret_before, kith_error *err) {
    *ret_before = (ki_threads_before){0};
    const int before = ki_threads();
    if (n == 0 || n == before) return KITH_OK;
    if (n > 0 && n < before) /* they are there; asking the system for them takes as long as a query */
        ki_threads_set((int)n);
    else
        KI_TRY(ki_threads_ask(n, err));
    ret_before->n = before;
    return KITH_OK;
}

void ki_threads_back(ki_threads_before before) {
    if (before.n > 0) ki_threads_set(before.n);
}
