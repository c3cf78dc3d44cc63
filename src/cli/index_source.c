/* Where the images of an index come from: folders, files, a data set, a recipe; remembered in the index as notes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/index.h"

static const char *const split_names[] = {"train", "validation", "test", "all"};
enum { N_SPLIT_NAMES = sizeof split_names / sizeof split_names[0] };

void index_source_release(index_source *source) {
    for (int64_t i = 0; i < source->n; i++) free(source->path[i]);
    free(source->path);
    *source = (index_source){0};
}

static bool is_recipe(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && (strcasecmp(dot, ".yaml") == 0 || strcasecmp(dot, ".yml") == 0);
}

/* The path from the root of the file system on: it must mean the same in whatever folder the next command is given. */
static kith_status add_path(index_source *source, const char *path, kith_error *err) {
    char *whole = realpath(path, NULL);
    if (!whole)
        return cli_error(err, errno == ENOMEM ? KITH_ENOMEM : KITH_EIO, NULL,
                         errno == ENOENT ? "%s: there is no such file or folder" : "%s cannot be read", path);
    if (strchr(whole, '\n')) {
        free(whole);
        return cli_error(err, KITH_EINVAL, "rename it", "the name of %.300s holds a line break", path);
    }
    source->path[source->n++] = whole;
    return KITH_OK;
}

static kith_status make_room(index_source *source, int64_t n, kith_error *err) {
    source->path = calloc((size_t)n + 1, sizeof *source->path);
    return source->path ? KITH_OK : cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the sources");
}

static kith_status take_operands(const index_request *r, index_source *source, kith_error *err) {
    kith_status status = make_room(source, r->n_operands, err);
    source->kind = r->kind;
    source->split = r->split;
    for (int64_t i = 0; status == KITH_OK && i < r->n_operands; i++) {
        status = add_path(source, r->operands[i], err);
        if (status == KITH_OK && r->n_operands > 1 && (r->kind || is_recipe(r->operands[i])))
            status = cli_error(err, KITH_EINVAL, NULL, "%.300s and %lld more are given; wanted one data set",
                               r->operands[i], (long long)r->n_operands - 1);
    }
    return status;
}

static kith_status take_notes(const kith_index *index, index_source *source, kith_error *err) {
    const char *paths = kith_index_note(index, "sources"), *split = kith_index_note(index, "split");
    if (!paths)
        return cli_error(err, KITH_EINVAL, "name the folders", "the index does not say where its images are");
    int64_t n = 0;
    for (const char *at = paths; *at; at++) n += *at == '\n';
    kith_status status = make_room(source, n + 1, err);
    for (const char *at = paths; status == KITH_OK && *at;) {
        const size_t length = strcspn(at, "\n");
        char *path = strndup(at, length);
        if (path)
            source->path[source->n++] = path;
        else
            status = cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the sources");
        at += length + (at[length] == '\n');
    }
    source->kind = kith_index_note(index, "dataset");
    if (source->kind && !*source->kind) source->kind = NULL;
    source->split = KITH_SPLIT_ALL;
    for (int i = 0; split && i < KITH_N_SPLITS; i++) {
        if (strcmp(split, split_names[i]) == 0) source->split = (kith_split)i;
    }
    return status;
}

kith_status index_source_take(const index_request *r, const kith_index *index, index_source *ret,
                              kith_error *err) {
    *ret = (index_source){0};
    const kith_status status = r->n_operands > 0 ? take_operands(r, ret, err) : take_notes(index, ret, err);
    if (status != KITH_OK) index_source_release(ret);
    return status;
}

kith_status index_source_remember(const index_source *source, kith_index *index, kith_error *err) {
    size_t n_bytes = 1;
    for (int64_t i = 0; i < source->n; i++) n_bytes += strlen(source->path[i]) + 1;
    char *paths = calloc(n_bytes, 1), *at = paths;
    if (!paths) return cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the sources");
    for (int64_t i = 0; i < source->n; i++) {
        const size_t n = strlen(source->path[i]);
        memcpy(at, source->path[i], n);
        at[n] = '\n';
        at += n + 1;
    }
    if (at > paths) at[-1] = '\0';
    kith_status status = kith_index_note_set(index, "sources", paths, err);
    free(paths);
    /* Also "": folders may take the place of a data set. */
    if (status == KITH_OK)
        status = kith_index_note_set(index, "dataset", source->kind ? source->kind : "", err);
    const int split = source->split == KITH_SPLIT_ALL ? N_SPLIT_NAMES - 1 : (int)source->split;
    return status == KITH_OK ? kith_index_note_set(index, "split", split_names[split], err) : status;
}

kith_status index_source_open(const index_source *source, kith_dataset **ret_dataset, kith_error *err) {
    if (source->n == 1 && is_recipe(source->path[0]))
        return kith_dataset_open_recipe(source->path[0], ret_dataset, err);
    if (source->kind) return kith_dataset_open(source->kind, source->path[0], ret_dataset, err);
    return kith_dataset_open_files((const char *const *)source->path, source->n, ret_dataset, err);
}
