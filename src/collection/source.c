/* Sources: taken from callers, written into notes of the index and read from them. */
#include "collection/source.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "data/dataset/dataset.h"
#include "search/notes.h"

void ki_source_release(ki_source *source) {
    ki_arena_release(&source->arena);
    *source = (ki_source){0};
}

static bool is_recipe(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && (strcasecmp(dot, ".yaml") == 0 || strcasecmp(dot, ".yml") == 0);
}

kith_status ki_source_add(ki_source *source, const char *path, kith_error *err) {
    const char **more = ki_arena_alloc(&source->arena, (size_t)source->n + 1, sizeof *more);
    const char *copy = ki_arena_strdup(&source->arena, path);
    if (!more || !copy) return ki_fail_memory(err, strlen(path), "the sources");
    if (source->n > 0) memcpy(more, source->path, (size_t)source->n * sizeof *more);
    more[source->n++] = copy;
    source->path = more;
    return KITH_OK;
}

static kith_status add_whole(ki_source *source, const char *path, kith_error *err) {
    char whole[PATH_MAX];
    if (!realpath(path, whole))
        return ki_fail(err, errno == ENOMEM ? KITH_ENOMEM : KITH_EIO,
                       errno == ENOENT ? "%s: there is no such file or folder" : "%s cannot be read", path);
    if (!strchr(whole, '\n')) return ki_source_add(source, whole, err);
    ki_fail(err, KITH_EINVAL, "the name of %.300s holds a line break", path);
    return ki_hint(err, KITH_EINVAL, "rename it");
}

/* A pattern of tar files is kept as the files that it names now. */
static kith_status add_any(ki_source *source, const char *path, kith_error *err) {
    char **paths = NULL;
    size_t n = 0;
    if (!ki_names_tars(path) || ki_is_file("%s", path)) return add_whole(source, path, err);
    kith_status status = ki_shards_list(path, &source->arena, &paths, &n, err);
    for (size_t i = 0; i < n && status == KITH_OK; i++) status = add_whole(source, paths[i], err);
    ki_free(paths);
    return status;
}

kith_status ki_source_take(ki_source *source, const kith_sources *given, kith_error *err) {
    KI_TRY(ki_need_strings(given->paths, given->n, "paths", err));
    if (given->n == 0)
        return ki_fail(err, KITH_EINVAL, "no files and folders are named; wanted at least one");
    source->split = given->split;
    if (given->kind) {
        source->kind = ki_arena_strdup(&source->arena, given->kind);
        if (!source->kind) return ki_fail_memory(err, strlen(given->kind), "the sources");
    }
    for (int64_t i = 0; i < given->n; i++) {
        KI_TRY(add_any(source, given->paths[i], err));
        if (given->n > 1 && (given->kind || is_recipe(given->paths[i])))
            return ki_fail(err, KITH_EINVAL, "%.300s and %lld more are given; wanted one data set",
                           given->paths[i], (long long)given->n - 1);
    }
    return KITH_OK;
}

kith_split ki_source_split(const kith_index *index) {
    const char *name = ki_index_note(index, KI_NOTE_SPLIT);
    for (int i = 0; name && i < KITH_N_SPLITS; i++) {
        if (strcmp(name, kith_split_name((kith_split)i)) == 0) return (kith_split)i;
    }
    return KITH_SPLIT_ALL;
}

kith_status ki_source_recall(ki_source *source, const kith_index *index, kith_error *err) {
    const char *kind = ki_index_note(index, KI_NOTE_DATASET);
    KI_TRY(ki_index_note_paths(index, KI_NOTE_SOURCES, &source->arena, &source->path, &source->n, err));
    source->split = ki_source_split(index);
    if (!kind || !*kind) return KITH_OK;
    source->kind = ki_arena_strdup(&source->arena, kind);
    return source->kind ? KITH_OK : ki_fail_memory(err, strlen(kind), "the sources");
}

kith_status ki_source_remember(const ki_source *source, kith_index *index, kith_error *err) {
    KI_TRY(ki_index_note_paths_set(index, KI_NOTE_SOURCES, source->path, source->n, err));
    /* Also "": folders may take the place of a data set. */
    KI_TRY(ki_index_note_set(index, KI_NOTE_DATASET, source->kind ? source->kind : "", err));
    return ki_index_note_set(index, KI_NOTE_SPLIT, kith_split_name(source->split), err);
}

const char *ki_source_dataset(const ki_source *source) {
    const char *recipe = source->n == 1 && is_recipe(source->path[0]) ? source->path[0] : NULL;
    return source->kind ? source->kind : recipe;
}

kith_status ki_source_open(const ki_source *source, kith_dataset **ret_dataset, kith_error *err) {
    if (source->n == 1 && is_recipe(source->path[0]))
        return kith_dataset_open_recipe(source->path[0], ret_dataset, err);
    if (source->kind) return kith_dataset_open(source->kind, source->path[0], ret_dataset, err);
    return kith_dataset_open_files(source->path, source->n, ret_dataset, err);
}
