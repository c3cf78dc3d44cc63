/* Folders, in an order that does not depend on the file system. What cannot be an item is noted, and the walk goes on. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "data/dataset/dataset.h"
#include "io/file.h"

enum { MOST_DEPTH = 32, MOST_PATH = 4000 };

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bool ki_is_litter(const char *name) {
    static const char *const litter[] = {"@eaDir", "__MACOSX", "#recycle", "$RECYCLE.BIN", "lost+found"};
    for (size_t i = 0; i < sizeof litter / sizeof litter[0]; i++) {
        if (strcmp(name, litter[i]) == 0) return true;
    }
    return name[0] == '.';
}

/* Every name in the folder that counts, sorted by bytes. */
static kith_status list_names(const char *folder, ki_arena *arena, char ***ret_names, size_t *ret_n,
                              kith_error *err) {
    kith_status status = KITH_OK;
    char **names = NULL;
    size_t n = 0, capacity = 0;
    DIR *dir = opendir(folder);
    if (!dir) return ki_fail(err, KITH_EIO, "%s: %s", folder, strerror(errno));
    int why = 0;
    for (const char *name; (name = ki_dir_next(dir, &why));) {
        if (ki_is_litter(name)) continue;
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

/* ---- one name ---- */

typedef enum entry_kind { ENTRY_GONE, ENTRY_FILE, ENTRY_FOLDER, ENTRY_LINK } entry_kind;

typedef struct entry_look {
    entry_kind kind; /* ENTRY_LINK: one in a circle or to nowhere */
    dev_t dev;
    ino_t ino;
} entry_look;

/* What a name is that was just listed. A file that has been removed since is ignored. One that cannot be examined is an error;
 * otherwise its images would be missing without a message. */
static kith_status look(const char *path, entry_look *ret, kith_error *err) {
    struct stat info;
    *ret = (entry_look){.kind = ENTRY_GONE};
    if (stat(path, &info) == 0) {
        *ret = (entry_look){S_ISDIR(info.st_mode) ? ENTRY_FOLDER : ENTRY_FILE, info.st_dev, info.st_ino};
        return KITH_OK;
    }
    const bool is_circle = errno == ELOOP;
    if (errno != ENOENT && !is_circle) return ki_fail(err, KITH_EIO, "%s: %s", path, strerror(errno));
    const bool is_meant = is_circle || ki_is_image_name(path);
    if (is_meant && lstat(path, &info) == 0 && S_ISLNK(info.st_mode)) ret->kind = ENTRY_LINK;
    return KITH_OK;
}

static bool is_odd(const char *folder, const char *name) {
    for (const char *at = name; *at; at++) {
        if ((unsigned char)*at < 0x20) return true;
    }
    return strlen(folder) + 1 + strlen(name) > MOST_PATH;
}

static kith_status note(kith_dataset *set, ki_unread_kind kind, const char *folder, const char *name,
                        kith_error *err) {
    ki_path path;
    /* Cut where it is too long. */
    if (ki_path_print(&path, NULL, "%s/%s", folder, name) != KITH_OK)
        return ki_unread_add(&set->unread, &set->arena, kind, folder, err);
    return ki_unread_add(&set->unread, &set->arena, kind, path.s, err);
}

/* A name that is no folder: noted where it is a picture of a kind that is not read. */
static kith_status note_file(kith_dataset *set, const char *folder, const char *name, kith_error *err) {
    const ki_unread_kind kind = ki_unread_kind_of(name);
    return kind == KI_UNREAD_NONE ? KITH_OK : note(set, kind, folder, name, err);
}

/* ---- the folders of a folder ---- */

kith_status ki_list_folders(const char *folder, ki_arena *arena, char ***ret_names, size_t *ret_n,
                            kith_error *err) {
    return ki_list_classes(folder, NULL, arena, ret_names, ret_n, err);
}

kith_status ki_list_classes(const char *folder, kith_dataset *set, ki_arena *arena, char ***ret_names,
                            size_t *ret_n, kith_error *err) {
    kith_status status = KITH_OK;
    char **names = NULL;
    size_t n = 0, kept = 0;
    KI_CHECK(list_names(folder, arena, &names, &n, err));
    for (size_t i = 0; i < n; i++) {
        ki_path path;
        entry_look found;
        if (is_odd(folder, names[i])) {
            if (set) KI_CHECK(note(set, KI_UNREAD_NAME, folder, names[i], err));
            continue;
        }
        KI_CHECK(ki_path_print(&path, err, "%s/%s", folder, names[i]));
        KI_CHECK(look(path.s, &found, err));
        if (found.kind == ENTRY_FOLDER)
            names[kept++] = names[i];
        else if (set && found.kind == ENTRY_LINK)
            KI_CHECK(note(set, KI_UNREAD_LINK, folder, names[i], err));
        else if (set && ki_is_image_name(names[i]))
            KI_CHECK(note(set, KI_UNREAD_OUTSIDE, folder, names[i], err));
        else if (set)
            KI_CHECK(note_file(set, folder, names[i], err));
    }
    *ret_names = names;
    *ret_n = kept;
    names = NULL;
done:
    ki_free(names);
    return status;
}

int64_t ki_count_images(const char *folder) {
    ki_arena arena = {0};
    char **names = NULL;
    size_t n = 0;
    int64_t n_images = 0;
    if (ki_is_folder("%s", folder) && list_names(folder, &arena, &names, &n, NULL) == KITH_OK) {
        for (size_t i = 0; i < n; i++) n_images += ki_is_image_name(names[i]);
    }
    ki_free(names);
    ki_arena_release(&arena);
    return n_images;
}

/* ---- to the bottom ---- */

/* A folder that the walk is in, and those it came through. */
typedef struct walk_place {
    const struct walk_place *above;
    dev_t dev;
    ino_t ino;
    int depth;
} walk_place;

static bool is_above(const walk_place *place, const entry_look *found) {
    for (; place; place = place->above) {
        if (place->dev == found->dev && place->ino == found->ino) return true;
    }
    return false;
}

typedef struct walker {
    kith_dataset *set;
    ki_walk_fn fn;
    void *context;
} walker;

static kith_status walk(const walker *w, const char *folder, const walk_place *place, kith_error *err);

static kith_status visit(const walker *w, const char *folder, const char *name, const walk_place *place,
                         kith_error *err) {
    ki_path path;
    entry_look found;
    if (is_odd(folder, name)) return note(w->set, KI_UNREAD_NAME, folder, name, err);
    KI_TRY(ki_path_print(&path, err, "%s/%s", folder, name));
    KI_TRY(look(path.s, &found, err));
    if (found.kind == ENTRY_GONE) return KITH_OK;
    if (found.kind == ENTRY_LINK) return note(w->set, KI_UNREAD_LINK, folder, name, err);
    if (found.kind == ENTRY_FILE)
        return ki_is_image_name(name) ? w->fn(w->context, path.s, err) : note_file(w->set, folder, name, err);
    if (is_above(place, &found)) return note(w->set, KI_UNREAD_LINK, folder, name, err);
    if (place->depth == MOST_DEPTH) return note(w->set, KI_UNREAD_DEPTH, folder, name, err);
    const walk_place below = {place, found.dev, found.ino, place->depth + 1};
    return walk(w, path.s, &below, err);
}

static kith_status walk(const walker *w, const char *folder, const walk_place *place, kith_error *err) {
    kith_status status = KITH_OK;
    ki_arena arena = {0};
    char **names = NULL;
    size_t n = 0;
    KI_CHECK(list_names(folder, &arena, &names, &n, err));
    for (size_t i = 0; i < n; i++) KI_CHECK(visit(w, folder, names[i], place, err));
done:
    ki_free(names);
    ki_arena_release(&arena);
    return status;
}

kith_status ki_walk_images(const char *folder, kith_dataset *set, ki_walk_fn fn, void *context,
                           kith_error *err) {
    const walker w = {set, fn, context};
    entry_look root, parent, found;
    ki_path above;
    KI_TRY(ki_path_print(&above, err, "%s", folder));
    char *slash = strrchr(above.s, '/');
    *(slash ? slash : above.s) = '\0';
    /* A class folder is walked by itself: a link back to the root, or to its part, is a circle, too. */
    KI_TRY(look(set->root, &root, err));
    KI_TRY(look(above.s, &parent, err));
    KI_TRY(look(folder, &found, err));
    const walk_place top = {NULL, root.dev, root.ino, 0}, middle = {&top, parent.dev, parent.ino, 0};
    const bool is_class = slash && strncmp(folder, set->root, strlen(set->root)) == 0;
    const walk_place first = {is_class ? &middle : NULL, found.dev, found.ino, 0};
    return walk(&w, folder, &first, err);
}
