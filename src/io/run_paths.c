/* Finding the files of a run that was started elsewhere, or moved. */
#include "io/run_paths.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

#include "io/json.h"
#include "io/tar_file.h"

static kith_status working_folder(ki_path *ret, kith_error *err) {
    if (getcwd(ret->s, sizeof ret->s)) return KITH_OK;
    return ki_fail(err, KITH_EIO, "the working folder has no name: %s", strerror(errno));
}

static kith_status join(const char *folder, const char *path, ki_path *ret, kith_error *err) {
    if (*path == '/') return ki_path_print(ret, err, "%s", path);
    return ki_path_print(ret, err, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, path);
}

kith_status ki_path_absolute(const char *path, ki_path *ret, kith_error *err) {
    ki_path here;
    if (*path == '/') return ki_path_print(ret, err, "%s", path);
    KI_TRY(working_folder(&here, err));
    return join(here.s, path, ret, err);
}

/* Of a folder that exists, with links followed. */
static kith_status real_folder(const char *path, ki_path *ret, kith_error *err) {
    char real[PATH_MAX];
    if (!realpath(path, real)) return ki_fail(err, KITH_EIO, "%s: %s", path, strerror(errno));
    return ki_path_print(ret, err, "%s", real);
}

kith_status ki_run_paths_write(const char *folder, const ki_run_paths *origin, kith_error *err) {
    kith_status status;
    kith_json *json = NULL;
    ki_path now, from, file;
    KI_TRY(real_folder(folder, &now, err));
    if (origin && origin->is_there)
        from = origin->from;
    else
        KI_TRY(working_folder(&from, err));
    KI_TRY(ki_path_print(&file, err, "%s/" KI_RUN_PATHS_FILE, folder));
    KI_TRY(kith_json_new(&json, err));
    kith_json_object_begin(json);
    kith_json_key(json, "folder");
    kith_json_string(json, now.s);
    kith_json_key(json, "relative_to");
    kith_json_string(json, from.s);
    kith_json_object_end(json);
    status = ki_json_save(json, file.s, err);
    kith_json_free(json);
    return status;
}

static const char *absolute_at(const ki_value *map, const char *key) {
    const ki_value *v = map->kind == KI_VALUE_MAP ? ki_value_get(map, key) : NULL;
    return v && v->kind == KI_VALUE_SCALAR && *v->text == '/' ? v->text : NULL;
}

kith_status ki_run_paths_beside(const char *path, ki_run_paths *ret, kith_error *err) {
    kith_status status;
    ki_arena arena = {0};
    ki_value *root = NULL;
    ki_run_paths paths = {0};
    ki_path folder, file, here;
    const char *slash = strrchr(path, '/');
    *ret = paths;
    KI_TRY(ki_path_print(&folder, err, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : "."));
    KI_TRY(ki_path_print(&file, err, "%s/" KI_RUN_PATHS_FILE, folder.s));
    if (!ki_is_file("%s", file.s)) return KITH_OK;
    KI_CHECK(ki_json_read(file.s, &arena, &root, err));
    const char *was = absolute_at(root, "folder"), *from = absolute_at(root, "relative_to");
    if (!was || !from) {
        ki_fail(err, KITH_EFORMAT, "%s: wanted the absolute paths \"folder\" and \"relative_to\"", file.s);
        status = ki_hint(err, KITH_EFORMAT, "without the file, paths are relative to the working folder");
        goto done;
    }
    KI_CHECK(ki_path_print(&paths.was, err, "%s", was));
    KI_CHECK(ki_path_print(&paths.from, err, "%s", from));
    KI_CHECK(real_folder(folder.s, &paths.now, err));
    KI_CHECK(working_folder(&here, err));
    paths.is_there = true;
    paths.is_here = strcmp(paths.now.s, paths.was.s) == 0 && strcmp(here.s, paths.from.s) == 0;
    *ret = paths;
done:
    ki_arena_release(&arena);
    return status;
}

/* "a/./b/../c" is a/c; only the text is looked at, not the file system. */
static void tidy(char *path) {
    char *to = path;
    for (const char *from = path; *from;) {
        const size_t n = strcspn(from + 1, "/") + 1; /* "/name" */
        if (n == 1 || (n == 2 && from[1] == '.')) {
        } else if (n == 3 && from[1] == '.' && from[2] == '.') {
            while (to > path && *--to != '/') {
            }
        } else {
            memmove(to, from, n);
            to += n;
        }
        from += n;
    }
    *to = '\0';
}

kith_status ki_path_moved(const char *from, const char *now, const char *path, ki_path *ret,
                          kith_error *err) {
    ki_path was, tidied;
    char up[2048] = "";
    size_t common = 0, used = 0;
    KI_TRY(ki_path_print(&was, err, "%s", from));
    KI_TRY(ki_path_print(&tidied, err, "%s", path));
    tidy(was.s);
    tidy(tidied.s);
    for (size_t i = 0;; i++) {
        const bool ends_a = !was.s[i] || was.s[i] == '/', ends_b = !tidied.s[i] || tidied.s[i] == '/';
        if (ends_a && ends_b) common = i;
        if (was.s[i] != tidied.s[i] || !was.s[i]) break;
    }
    for (const char *c = was.s + common; *c; c++) {
        if (*c == '/' && used + 4 < sizeof up)
            used += (size_t)ki_snprintf(up + used, sizeof up - used, "/..");
    }
    KI_TRY(ki_path_print(ret, err, "%s%s%s", now, up, tidied.s + common));
    tidy(ret->s);
    return KITH_OK;
}

static bool is_there(const char *path) {
    ki_path file;
    const char *hash = strrchr(path, '#');
    if (access(path, F_OK) == 0 || ki_member_look(path, NULL, NULL)) return true;
    if (!hash || strspn(hash + 1, "0123456789") != strlen(hash + 1)) return false;
    return ki_path_print(&file, NULL, "%.*s", (int)(hash - path), path) == KITH_OK &&
           access(file.s, F_OK) == 0;
}

kith_status ki_run_paths_find(const ki_run_paths *p, const char *path, ki_path *ret, kith_error *err) {
    ki_path was, moved;
    if (!p->is_there || p->is_here) return ki_path_print(ret, err, "%s", path);
    KI_TRY(join(p->from.s, path, &was, err));
    KI_TRY(ki_path_moved(p->was.s, p->now.s, was.s, &moved, err));
    const bool has_moved = strcmp(p->now.s, p->was.s) != 0 && is_there(moved.s);
    const bool prefers_old = *path == '/' && is_there(was.s);
    *ret = has_moved && !prefers_old ? moved : was;
    return KITH_OK;
}

/* One name of a text; absolute if it is of no run. */
static kith_status find_name(const ki_run_paths *p, const char *name, ki_path *ret, kith_error *err) {
    return p ? ki_run_paths_find(p, name, ret, err) : ki_path_absolute(name, ret, err);
}

/* All names of a text, with "::" between them again. What is a file with "::" in its name is one name. */
static kith_status find_names(const ki_run_paths *p, const char *text, ki_path *ret, kith_error *err) {
    ki_path name, found, before;
    ret->s[0] = '\0';
    for (const char *at = text;; at += 2) {
        const bool is_one = find_name(p, at, &found, NULL) == KITH_OK && is_there(found.s);
        const char *next = is_one ? NULL : strstr(at, "::");
        const size_t n = next ? (size_t)(next - at) : strlen(at);
        if (n) {
            KI_TRY(ki_path_print(&name, err, "%.*s", (int)n, at));
            KI_TRY(find_name(p, name.s, &found, err));
            before = *ret;
            KI_TRY(ki_path_print(ret, err, "%s%s%s", before.s, *before.s ? "::" : "", found.s));
        }
        if (!next) return KITH_OK;
        at = next;
    }
}

kith_status ki_paths_absolute(const char *text, ki_path *ret, kith_error *err) {
    return find_names(NULL, text, ret, err);
}

kith_status ki_run_paths_resolve(const ki_run_paths *p, ki_arena *arena, const ki_value *map, const char *key,
                                 kith_error *err) {
    ki_value *v = map ? (ki_value *)ki_value_get(map, key) : NULL;
    ki_path path;
    if (!p->is_there || !v || v->kind != KI_VALUE_SCALAR || !*v->text) return KITH_OK;
    KI_TRY(find_names(p, v->text, &path, err));
    v->text = ki_arena_strdup(arena, path.s);
    return v->text ? KITH_OK : ki_fail_memory(err, strlen(path.s), "a path");
}
