/* Handles: making and opening collections, what they are. */
#include "collection/collection.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/log.h"
#include "base/path.h"
#include "collection/cache.h"
#include "collection/remember.h"
#include "collection/source.h"
#include "model/handle.h"
#include "search/files/sweep.h"
#include "search/index_handle.h"
#include "search/notes.h"

KI_OPTIONS_INIT(kith_collection_options, .recall = 0.99)
KI_OPTIONS_INIT(kith_collection_open_options, .mode = KITH_INDEX_READ)

/* ---- handles ---- */

static kith_status new_handle(const char *path, kith_index_mode mode, kith_collection **ret,
                              kith_error *err) {
    kith_collection *c = NULL;
    KI_TRY(ki_zalloc_or(&c, 1, sizeof *c, "a collection", err));
    c->mode = mode;
    c->duplicates_of = -1;
    c->path = ki_arena_strdup(&c->arena, path);
    kith_model_options_init(&c->how, sizeof c->how);
    *ret = c;
    return c->path ? KITH_OK : ki_fail_memory(err, strlen(path), "a path");
}

static int64_t generation_of(const kith_collection *c) {
    kith_index_info info;
    kith_index_info_get(c->index, &info);
    return info.generation;
}

static bool is_far(const kith_collection *c) { return ki_store_type_for(c->path)->is_far; }

/* Remove an index that was not finished, unless the caller has committed something into it; and its folder, if nothing else is there.
 * The handle still has the lock: what is there is its own. */
static void discard(const kith_collection *c) {
    if (is_far(c) || (!c->held && generation_of(c) != c->made_at)) return;
    ki_sweep_away(c->path);
    if (c->has_own_folder) rmdir(c->path);
}

void kith_collection_free(kith_collection *c) {
    if (!c) return;
    kith_duplicates_release(&c->duplicates);
    ki_free(c->naming);
    if (!c->is_model_lent) kith_model_free(c->model);
    if (c->is_new && c->is_failed) discard(c);
    kith_index_free(c->index);
    kith_index_free(c->held);
    ki_arena_release(&c->remembered);
    ki_arena_release(&c->arena);
    ki_free(c);
}

kith_status ki_collection_ready(kith_collection *c, kith_error *err) {
    if (c->index) return KITH_OK;
    if (!c->is_new) return kith_index_open(c->path, c->mode, &c->index, err);
    ki_fail(err, KITH_EINVAL, "%s: the collection could not be made", c->path);
    return ki_hint(err, KITH_EINVAL, "free it, and make it again");
}

kith_status ki_collection_has_index(const kith_collection *c, kith_error *err) {
    if (c->index) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "%.300s could not be opened again after a change that failed", c->path);
    return ki_hint(err, KITH_EINVAL, "free the collection, and open it again");
}

/* What kept a writer away after a failed change, such as a full disk, may be gone. */
static kith_status open_for_writing(kith_collection *c, kith_error *err) {
    kith_index *writer = NULL;
    if (!c->is_only_read) return KITH_OK;
    KI_TRY(kith_index_open(c->path, c->mode, &writer, err));
    kith_index_free(c->index);
    c->index = writer;
    c->is_only_read = false;
    return KITH_OK;
}

kith_status ki_collection_begin(kith_collection *c, kith_error *err) {
    KI_TRY(ki_collection_ready(c, err));
    KI_TRY(open_for_writing(c, err));
    /* The caller may have committed something into the index itself. */
    if (c->is_new && generation_of(c) != c->made_at) ki_collection_committed(c);
    return ki_index_writable(c->index, err);
}

void ki_collection_committed(kith_collection *c) { c->is_new = c->is_failed = false; }

void ki_collection_drop(kith_collection *c) {
    c->is_failed = c->is_new;
    if (c->is_new && !is_far(c))
        c->held = c->index;
    else
        kith_index_free(c->index);
    c->index = NULL;
    if (c->is_new || kith_index_open(c->path, c->mode, &c->index, NULL) == KITH_OK) return;
    /* There may be no room for what a writer does first. What is there can be read. */
    c->is_only_read = kith_index_open(c->path, KITH_INDEX_READ, &c->index, NULL) == KITH_OK;
    if (!c->is_only_read) c->index = NULL;
}

/* ---- making ---- */

/* Who makes a collection a second time most likely wants it to hold what the folders hold now. */
static kith_status check_new(const char *path, kith_error *err) {
    kith_index *index = NULL;
    if (ki_store_type_for(path)->is_far || kith_index_open(path, KITH_INDEX_READ, &index, NULL) != KITH_OK)
        return KITH_OK;
    kith_index_free(index);
    ki_fail(err, KITH_EINVAL, "%.300s is an index already", path);
    return ki_hint(err, KITH_EINVAL, "open it and sync it, or give another name");
}

static kith_status open_model(kith_collection *c, const kith_collection_options *o, kith_index_options *to,
                              kith_error *err) {
    kith_model_identity who;
    if (!o->model) return KITH_OK;
    KI_TRY(kith_model_open(o->model, &c->model, err));
    KI_TRY(kith_model_identify(c->model, &who, err));
    if (o->dim > 0 && o->dim != who.dim) {
        ki_fail(err, KITH_ESHAPE, "the vectors have %lld values, the model makes %lld", (long long)o->dim,
                (long long)who.dim);
        return ki_hint(err, KITH_ESHAPE, "name the model that made the vectors");
    }
    to->dim = who.dim;
    to->model = who.hash;
    to->preprocess = who.preprocess;
    return KITH_OK;
}

/* A later release may bring another model of that name. Whoever names a file looks after it. */
static void keep_general(kith_model *model) {
    ki_path cache;
    kith_error err;
    kith_model_identity who;
    if (!model->is_general) return;
    kith_status status = kith_model_identify(model, &who, &err);
    if (status == KITH_OK) status = ki_cache_folder(NULL, &cache, &err);
    if (status == KITH_OK) status = ki_cache_keep_model(cache.s, who.file, who.hash, &err);
    if (status != KITH_OK) ki_log(KITH_LOG_DEBUG, "the model is not kept in the cache: %s", err.message);
}

static kith_status remember_folder(kith_index *index, const char *folder, kith_error *err) {
    char whole[PATH_MAX];
    if (!realpath(folder, whole))
        return ki_fail(err, KITH_EIO, errno == ENOENT ? "%s: there is no such folder" : "%s cannot be read",
                       folder);
    return ki_index_note_set(index, KI_NOTE_FOLDER, whole, err);
}

kith_status kith_collection_create(const char *path, const kith_collection_options *options,
                                   kith_collection **ret_collection, kith_error *err) {
    KI_NEED(err, path, ret_collection);
    KI_OPTIONS_TAKE(kith_collection_options, o, options, err);
    KITH_OPTIONS(kith_index_options, to);
    kith_status status;
    kith_collection *c = NULL;
    KI_CHECK(check_new(path, err));
    KI_CHECK(new_handle(path, KITH_INDEX_WRITE, &c, err));
    to.dim = o.dim;
    to.metric = o.metric;
    to.recall = o.recall;
    to.first = o.first;
    to.columns = o.columns;
    to.n_columns = o.n_columns;
    KI_CHECK(open_model(c, &o, &to, err));
    c->has_own_folder = !ki_is_folder("%s", path);
    KI_CHECK(kith_index_create(path, &to, &c->index, err));
    c->is_new = c->is_failed = true;
    c->made_at = generation_of(c);
    if (c->model) KI_CHECK(ki_remember_model(c->index, c->model, err));
    if (c->model) keep_general(c->model);
    if (o.folder) KI_CHECK(remember_folder(c->index, o.folder, err));
    c->is_failed = false;
    *ret_collection = c;
    c = NULL;
done:
    kith_collection_free(c);
    return status;
}

/* ---- opening ---- */

static kith_status keep(ki_arena *arena, const char **text, kith_error *err) {
    if (!*text) return KITH_OK;
    const char *copy = ki_arena_strdup(arena, *text);
    if (!copy) return ki_fail_memory(err, strlen(*text), "an option");
    *text = copy;
    return KITH_OK;
}

/* Those that count for a model that the index remembers. */
static kith_status keep_options(kith_collection *c, const kith_model_options *options, kith_error *err) {
    KI_OPTIONS_TAKE(kith_model_options, o, options, err);
    c->how.weights = o.weights;
    c->how.device = o.device;
    c->how.precision = o.precision;
    c->how.tf32 = o.tf32;
    c->how.batch = o.batch;
    KI_TRY(keep(&c->arena, &c->how.weights, err));
    KI_TRY(keep(&c->arena, &c->how.device, err));
    return keep(&c->arena, &c->how.precision, err);
}

kith_status kith_collection_open(const char *path, const kith_collection_open_options *options,
                                 kith_collection **ret_collection, kith_error *err) {
    KI_NEED(err, path, ret_collection);
    KI_OPTIONS_TAKE(kith_collection_open_options, o, options, err);
    kith_status status;
    kith_collection *c = NULL;
    KI_CHECK(new_handle(path, o.mode, &c, err));
    c->shared = o.shared;
    KI_CHECK(keep_options(c, o.model, err));
    KI_CHECK(kith_index_open(path, o.mode, &c->index, err));
    *ret_collection = c;
    c = NULL;
done:
    kith_collection_free(c);
    return status;
}

kith_index *kith_collection_index(kith_collection *c) {
    return c && ki_collection_ready(c, NULL) == KITH_OK ? c->index : NULL;
}

kith_status kith_collection_model(kith_collection *collection, kith_model **ret_model, kith_error *err) {
    KI_NEED(err, collection, ret_model);
    kith_collection *c = collection;
    KI_TRY(ki_collection_ready(c, err));
    if (!c->model && c->shared && ki_expect_model(c->index, c->shared, NULL) == KITH_OK) {
        c->model = c->shared;
        c->is_model_lent = true;
    }
    if (!c->model) KI_TRY(ki_remembered_model(c->index, &c->how, &c->model, err));
    *ret_model = c->model;
    return KITH_OK;
}

kith_status ki_collection_model_if_any(kith_collection *c, kith_model **ret_model, kith_error *err) {
    *ret_model = c->model;
    if (!c->model && !c->how.weights && !ki_index_note(c->index, KI_NOTE_MODEL)) return KITH_OK;
    return kith_collection_model(c, ret_model, err);
}

kith_model *ki_collection_take_model(kith_collection *c) {
    c->is_model_lent = true;
    return c->model;
}

kith_status ki_collection_remember_file(kith_collection *c, kith_error *err) {
    if (!c->how.weights || c->is_model_lent) return KITH_OK;
    return ki_remember_file(c->index, c->model, err);
}

/* ---- what it is ---- */

/* Made anew when the note has changed, so that an earlier answer lives on. */
static kith_status list_sources(kith_collection *c, kith_error *err) {
    const char *note = ki_index_note(c->index, KI_NOTE_SOURCES);
    if (!note) note = "";
    if (c->listed && strcmp(c->listed, note) == 0) return KITH_OK;
    ki_arena_release(&c->remembered);
    c->listed = NULL;
    KI_TRY(ki_index_note_paths(c->index, KI_NOTE_SOURCES, &c->remembered, &c->sources, &c->n_sources, err));
    c->listed = ki_arena_strdup(&c->remembered, note);
    return c->listed ? KITH_OK : ki_fail_memory(err, strlen(note), "the sources");
}

kith_status kith_collection_info_get(kith_collection *collection, kith_collection_info *ret_info,
                                     kith_error *err) {
    KI_NEED(err, collection, ret_info);
    kith_collection *c = collection;
    KI_TRY(ki_collection_ready(c, err));
    KI_TRY(list_sources(c, err));
    const char *kind = ki_index_note(c->index, KI_NOTE_DATASET);
    *ret_info = (kith_collection_info){.model = ki_index_note(c->index, KI_NOTE_MODEL),
                                       .sources = c->sources,
                                       .n_sources = c->n_sources,
                                       .kind = kind && *kind ? kind : NULL,
                                       .split = ki_source_split(c->index),
                                       .folder = ki_index_note(c->index, KI_NOTE_FOLDER),
                                       .false_match_rates = kith_index_calibration(c->index)};
    kith_index_info_get(c->index, &ret_info->index);
    return KITH_OK;
}

kith_status kith_collection_check(const kith_collection *collection, const kith_work_options *options,
                                  int64_t *ret_bytes, kith_error *err) {
    KI_NEED(err, collection, ret_bytes);
    KI_TRY(ki_collection_has_index(collection, err));
    return kith_index_check(collection->index, options, ret_bytes, err);
}
