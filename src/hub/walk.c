/* One folder, its names in order. */
#include "hub/walk.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "io/file.h"

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Names first: the visitor may remove them. */
static kith_status read_names(DIR *dir, const char *folder, ki_arena *arena, const char ***ret, size_t *ret_n,
                              kith_error *err) {
    size_t capacity = 0;
    int why = 0;
    for (const char *name; (name = ki_dir_next(dir, &why));) {
        KI_TRY(ki_grow(ret, &capacity, *ret_n + 1, sizeof **ret, "names of files", err));
        const char *copy = ki_arena_strdup(arena, name);
        if (!copy) return ki_fail_memory(err, strlen(name), "a name");
        (*ret)[(*ret_n)++] = copy;
    }
    if (why) return ki_fail(err, KITH_EIO, "cannot read %s: %s", folder, strerror(why));
    if (*ret_n > 0) qsort(*ret, *ret_n, sizeof **ret, by_name);
    return KITH_OK;
}

kith_status ki_hub_walk(const char *folder, bool follows, ki_hub_visit_fn *visit, void *user,
                        kith_error *err) {
    kith_status status = KITH_OK;
    ki_arena arena = {0};
    const char **names = NULL;
    size_t n = 0;
    DIR *dir = opendir(folder);
    if (!dir && (errno == ENOENT || errno == ENOTDIR)) return KITH_OK;
    if (!dir) return ki_fail(err, KITH_EIO, "cannot read %s: %s", folder, strerror(errno));
    KI_CHECK(read_names(dir, folder, &arena, &names, &n, err));
    for (size_t i = 0; i < n; i++) {
        ki_path path;
        struct stat info;
        KI_CHECK(ki_path_print(&path, err, "%s/%s", folder, names[i]));
        if ((follows ? stat(path.s, &info) : lstat(path.s, &info)) != 0) continue;
        KI_CHECK(visit(user, path.s, names[i], &info, err));
    }
done:
    closedir(dir);
    ki_free(names);
    ki_arena_release(&arena);
    return status;
}
