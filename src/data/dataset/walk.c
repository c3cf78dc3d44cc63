/* Folders, in an order that does not depend on the file system. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "data/dataset/dataset.h"
#include "io/file.h"

enum { MOST_DEPTH = 32 };

/* Is the name's ending one of the words? */
static bool has_ending(const char *name, const char *endings) {
    const char *dot = strrchr(name, '.');
    if (!dot || dot == name) return false;
    const size_t n = strlen(dot);
    for (const char *at = endings; *at; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " ");
        if (length == n && strncasecmp(dot, at, n) == 0) return true;
        at += length;
    }
    return false;
}

/* A picture that is not read: counted, and the first ones named. */
static kith_status note_unread(kith_dataset *set, const char *path, kith_error *err) {
    if (set->n_unread < KI_MOST_MISSING_NAMED) {
        set->unread[set->n_unread] = ki_arena_strdup(&set->arena, path);
        if (!set->unread[set->n_unread]) return ki_fail_memory(err, strlen(path), "a file name");
    }
    set->n_unread++;
    return KITH_OK;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Every visible name in the folder, sorted by bytes. */
static kith_status list_names(const char *folder, ki_arena *arena, char ***ret_names, size_t *ret_n,
                              kith_error *err) {
    kith_status status = KITH_OK;
    char **names = NULL;
    size_t n = 0, capacity = 0;
    DIR *dir = opendir(folder);
    if (!dir) return ki_fail(err, KITH_EIO, "%s: %s", folder, strerror(errno));
    int why = 0;
    for (const char *name; (name = ki_dir_next(dir, &why));) {
        if (name[0] == '.') continue; /* .DS_Store and its like */
        KI_CHECK(ki_grow(&names, &capacity, n + 1, sizeof *names, "file names", err));
        names[n] = ki_arena_strdup(arena, name);
        if (!names[n]) {
            status = ki_fail_memory(err, strlen(name), "a file name");
            goto done;
        }
        n++;
    }
    if (why) {
        status = ki_fail(err, KITH_EIO, "%s: %s", folder, strerror(why));
        goto done;
    }
    if (n) qsort(names, n, sizeof *names, compare_names);
    *ret_names = names;
    *ret_n = n;
    names = NULL;
done:
    closedir(dir);
    ki_free(names);
    return status;
}

/* What a name is that was just listed. A file that has been removed since, or a broken link, is ignored. One that
 * cannot be examined is an error; otherwise its images would be missing without a message. */
static kith_status look(const char *path, bool *ret_is_folder, kith_error *err) {
    struct stat info;
    *ret_is_folder = false;
    if (stat(path, &info) == 0)
        *ret_is_folder = S_ISDIR(info.st_mode);
    else if (errno != ENOENT && errno != ELOOP)
        return ki_fail(err, KITH_EIO, "%s: %s", path, strerror(errno));
    return KITH_OK;
}

kith_status ki_list_folders(const char *folder, ki_arena *arena, char ***ret_names, size_t *ret_n,
                            kith_error *err) {
    kith_status status = KITH_OK;
    char **names = NULL;
    size_t n = 0, kept = 0;
    KI_CHECK(list_names(folder, arena, &names, &n, err));
    for (size_t i = 0; i < n; i++) {
        ki_path path;
        bool is_folder = false;
        KI_CHECK(ki_path_print(&path, err, "%s/%s", folder, names[i]));
        KI_CHECK(look(path.s, &is_folder, err));
        if (is_folder) names[kept++] = names[i];
    }
    *ret_names = names;
    *ret_n = kept;
    names = NULL;
done:
    ki_free(names);
    return status;
}

static kith_status walk(const char *folder, int depth, kith_dataset *set, ki_walk_fn fn, void *context,
                        kith_error *err) {
    kith_status status = KITH_OK;
    ki_arena arena = {0};
    char **names = NULL;
    size_t n = 0;
    if (depth > MOST_DEPTH) /* links may form a cycle */
        return ki_fail(err, KITH_EINVAL, "%s: folders are nested more than %d deep", folder, MOST_DEPTH);
    KI_CHECK(list_names(folder, &arena, &names, &n, err));
    for (size_t i = 0; i < n; i++) {
        ki_path path;
        bool is_folder = false;
        KI_CHECK(ki_path_print(&path, err, "%s/%s", folder, names[i]));
        KI_CHECK(look(path.s, &is_folder, err));
        if (is_folder)
            KI_CHECK(walk(path.s, depth + 1, set, fn, context, err));
        else if (has_ending(names[i], KI_IMAGE_ENDINGS))
            KI_CHECK(fn(context, path.s, err));
        else if (has_ending(names[i], KI_IMAGE_FOREIGN))
            KI_CHECK(note_unread(set, path.s, err));
    }
done:
    ki_free(names);
    ki_arena_release(&arena);
    return status;
}

kith_status ki_walk_images(const char *folder, kith_dataset *set, ki_walk_fn fn, void *context,
                           kith_error *err) {
    return walk(folder, 0, set, fn, context, err);
}
