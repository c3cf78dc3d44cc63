/* Handles: opening, closing, what an index is. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/argument.h"
#include "core/cores.h"
#include "core/parallel.h"
#include "search/filter.h"
#include "search/index_handle.h"

enum { KEEP_PART = 8 }; /* of the memory: what vectors may take */

static const char *const tier_names[] = {"exact", "scan", "lists", "graph"};
const char *kith_index_tier_name(kith_index_tier tier) { return (unsigned)tier < 4 ? tier_names[tier] : "?"; }

KI_OPTIONS_INIT(kith_index_options, .recall = 0.99, .exact_numbers = KI_EXACT_NUMBERS)
KI_OPTIONS_INIT(kith_work_options, 0)
KI_OPTIONS_INIT(kith_search_options, .k = 10)

/* ---- views ---- */

kith_status ki_view_new(const ki_snapshot *snapshot, ki_view **ret_view, kith_error *err) {
    kith_status status = KITH_OK;
    ki_view *view = NULL;
    KI_CHECK(ki_zalloc_or(&view, 1, sizeof *view, "an index", err));
    view->snapshot = snapshot;
    KI_CHECK(ki_zalloc_or(&view->alive, (size_t)ki_exact_words(snapshot), sizeof *view->alive, "rows", err));
    memcpy(view->alive, snapshot->alive, (size_t)ki_bit_words(snapshot->n_rows) * sizeof *view->alive);
    KI_CHECK(ki_columns_init(&view->columns, snapshot, err));
    KI_CHECK(ki_exact_init(&view->exact, snapshot, err));
    KI_CHECK(ki_coded_init(&view->coded, snapshot, err));
    *ret_view = view;
    view = NULL;
done:
    ki_view_free(view);
    return status;
}

void ki_view_free(ki_view *view) {
    if (!view) return;
    ki_columns_release(&view->columns);
    ki_exact_release(&view->exact);
    ki_coded_release(&view->coded);
    ki_free(view->alive);
    ki_free(view);
}

kith_status ki_view_allowed(ki_view *view, const char *where, const ki_roots *shown, ki_allowed *ret_allowed,
                            kith_error *err) {
    kith_status status = KITH_OK;
    const ki_snapshot *s = view->snapshot;
    ki_where *filter = NULL;
    uint64_t *bits = NULL;
    if (!where) {
        *ret_allowed = (ki_allowed){.bits = view->alive, .n = s->n_live};
        return KITH_OK;
    }
    KI_CHECK(ki_where_parse(where, s->manifest.columns, s->manifest.n_columns, &filter, err));
    ki_where_show(filter, shown);
    KI_CHECK(ki_zalloc_or(&bits, (size_t)ki_exact_words(s), sizeof *bits, "rows", err));
    KI_CHECK(ki_where_run(filter, &view->columns, bits, err));
    int64_t n = 0;
    for (int64_t i = 0; i < ki_bit_words(s->n_rows); i++) {
        bits[i] &= s->alive[i];
        n += __builtin_popcountll(bits[i]);
    }
    *ret_allowed = (ki_allowed){.bits = bits, .own = bits, .n = n};
    bits = NULL;
done:
    ki_free(bits);
    ki_where_free(filter);
    return status;
}

/* ---- handles ---- */

/* Vectors that a second look has read are likely to be read again. */
static kith_status open_reader(const char *path, ki_snapshot **ret_snapshot, kith_error *err) {
    KI_TRY(ki_snapshot_open(path, ret_snapshot, err));
    return ki_snapshot_keep(*ret_snapshot, ki_memory_allowed() / KEEP_PART, err);
}

kith_status kith_index_keep(kith_index *index, int64_t most_bytes, kith_error *err) {
    KI_NEED(err, index);
    KI_NEED_COUNT(err, most_bytes);
    if (index->own) atomic_store(&index->own->keep.left, most_bytes);
    return KITH_OK;
}

kith_status kith_index_open(const char *path, kith_index_mode mode, kith_index **ret_index, kith_error *err) {
    KI_NEED(err, path, ret_index);
    kith_status status = KITH_OK;
    kith_index *index = NULL;
    if (mode != KITH_INDEX_READ && mode != KITH_INDEX_WRITE)
        return ki_fail(err, KITH_EINVAL, "mode %d; wanted KITH_INDEX_READ or KITH_INDEX_WRITE", (int)mode);
    KI_CHECK(ki_zalloc_or(&index, 1, sizeof *index, "an index", err));
    if (ki_is_address(path)) {
        KI_CHECK(ki_remote_open(path, mode == KITH_INDEX_WRITE, &index->remote, err));
        *ret_index = index;
        return KITH_OK;
    }
    if (mode == KITH_INDEX_WRITE)
        KI_CHECK(ki_store_open(path, &index->store, err));
    else
        KI_CHECK(open_reader(path, &index->own, err));
    KI_CHECK(ki_view_new(index->store ? index->store->now : index->own, &index->view, err));
    KI_CHECK(ki_index_place_find(index, &index->place, err));
    *ret_index = index;
    index = NULL;
done:
    kith_index_free(index);
    return status;
}

void kith_index_free(kith_index *index) {
    if (!index) return;
    ki_remote_free(index->remote);
    ki_view_free(index->view);
    ki_store_free(index->store);
    ki_snapshot_free(index->own);
    ki_index_place_free(index->place);
    if (index->shown) ki_arena_release(&index->shown->arena);
    ki_free(index->shown);
    ki_free(index);
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
    KI_TRY(ki_roots_init(&s->kept, kept_note(index, "sources"), &s->arena, err));
    KI_TRY(ki_roots_init(&s->now, kith_index_note(index, "sources"), &s->arena, err));
    if (index->remote) index->remote->shown = &s->kept;
    return KITH_OK;
}

const char *ki_index_shown(const kith_index *index, const char *path) {
    return path && index->shown ? ki_roots_shown(&index->shown->now, path) : path;
}

const ki_manifest *ki_index_manifest(const kith_index *index) {
    if (index->remote) return index->remote->writes ? &index->remote->next : &index->remote->now;
    return index->store ? &index->store->next : &index->own->manifest;
}

ki_manifest *ki_index_pending(kith_index *index) {
    return index->remote ? &index->remote->next : &index->store->next;
}

const ki_manifest *ki_index_committed(const kith_index *index) {
    return index->remote ? &index->remote->now : &index->view->snapshot->manifest;
}

const char *ki_index_name(const kith_index *index) {
    return index->remote ? ki_remote_name(index->remote) : index->view->snapshot->folder;
}

kith_status kith_index_is_current(const kith_index *index, bool *ret_is_current, kith_error *err) {
    KI_NEED(err, index, ret_is_current);
    if (index->remote) return ki_remote_is_current(index->remote, ret_is_current, err);
    const ki_snapshot *s = index->view->snapshot;
    ki_manifest now = {0};
    KI_TRY(ki_manifest_read(s->folder, &now, err));
    *ret_is_current = now.generation == s->manifest.generation && now.sum == s->manifest.sum;
    ki_manifest_release(&now);
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
    if (index->remote) {
        ki_remote_info(index->remote, ret_info);
        return;
    }
    const ki_snapshot *s = index->view->snapshot;
    const ki_manifest *m = &s->manifest;
    *ret_info = (kith_index_info){
        .format = ki_manifest_format(&s->manifest),
        .generation = m->generation,
        .n_items = s->n_live,
        .n_removed = s->n_rows - s->n_live,
        .n_segments = m->n_segments,
        .n_columns = m->n_columns,
        .dim = m->dim,
        .metric = m->metric,
        .model = m->model,
        .preprocess = m->preprocess,
        .file_bytes = ki_snapshot_file_bytes(s),
        .memory_bytes = ki_exact_memory(s) + s->n_rows * (int64_t)sizeof *s->ids,
        .tier = KITH_TIER_EXACT,
        .recall_wanted = m->recall,
        .recall = 1,
        .is_calibrated = m->calibration != NULL,
        .n_excluded = m->n_excluded,
    };
    if (!ki_coded_is_there(s)) return;
    ret_info->tier = m->coding.n_lists > 1 ? KITH_TIER_LISTS : KITH_TIER_SCAN;
    ret_info->bits = m->coding.bits;
    ret_info->n_lists = m->coding.n_lists > 1 ? m->coding.n_lists : 0;
    ret_info->bytes_per_row = s->n_rows > 0 ? (double)ki_coded_bytes(s) / (double)s->n_rows : 0;
    ret_info->recall = m->coding.recall;
    ret_info->memory_bytes =
        ki_coded_bytes(s) + s->coder.bytes + s->n_rows * (int64_t)(sizeof *s->ids + sizeof *s->alive / 64);
}

const kith_calibration *kith_index_calibration(const kith_index *index) {
    return index ? ki_index_manifest(index)->calibration : NULL;
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
