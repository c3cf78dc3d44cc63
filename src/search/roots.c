/* The folders of an index, and what of a path is shown. */
#include "search/roots.h"

#include <stdlib.h>
#include <string.h>

static size_t name_of(const char *path, size_t n) {
    while (n > 0 && path[n - 1] != '/') n--;
    return n;
}

static int longest_first(const void *a, const void *b) {
    const ki_root *x = a, *y = b;
    if (x->n_path != y->n_path) return x->n_path > y->n_path ? -1 : 1;
    return strcmp(x->path, y->path);
}

kith_status ki_roots_init(ki_roots *ret, const char *sources, ki_arena *arena, kith_error *err) {
    int64_t n = 0;
    *ret = (ki_roots){0};
    for (const char *at = sources; at && *at; n++) {
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    ki_root *root = ki_arena_alloc(arena, (size_t)n + 1, sizeof *root);
    if (!root) return ki_fail_memory(err, (size_t)n * sizeof *root, "folders");
    for (int64_t i = 0; i < n; i++) {
        const size_t length = strcspn(sources, "\n");
        const char *path = ki_arena_printf(arena, "%.*s", (int)length, sources);
        if (!path) return ki_fail_memory(err, length, "folders");
        const size_t n_path = length > 0 && path[length - 1] == '/' ? length - 1 : length;
        root[i] = (ki_root){path, n_path, n > 1 ? name_of(path, n_path) : n_path + 1};
        sources += length + (sources[length] == '\n');
    }
    if (n > 0) qsort(root, (size_t)n, sizeof *root, longest_first);
    *ret = (ki_roots){root, n};
    return KITH_OK;
}

static const ki_root *root_of(const ki_roots *roots, const char *path) {
    for (int64_t i = 0; i < roots->n; i++) {
        const ki_root *r = &roots->root[i];
        if (strncmp(path, r->path, r->n_path) != 0) continue;
        if (path[r->n_path] == '/' || path[r->n_path] == '\0') return r;
    }
    return NULL;
}

const char *ki_roots_shown(const ki_roots *roots, const char *path) {
    const ki_root *root = root_of(roots, path);
    const size_t n = strlen(path), name = name_of(path, n);
    if (root) return path + (root->n_hidden <= name ? root->n_hidden : name);
    if (path[0] != '/') return path;
    return path + (name > 1 ? name_of(path, name - 1) : name);
}
