/* A folder per class: ROOT/CLASS/ with images at any depth, or ROOT/train/CLASS and ROOT/test/CLASS (and validation or val).
 * Without such parts the first half of the classes, by byte order of their names, trains and the rest
 * tests. */
#include <string.h>

#include "base/alloc.h"
#include "data/dataset/dataset.h"

typedef struct context {
    kith_dataset *set;
    int32_t label;
    kith_split split;
    size_t n_folder; /* bytes of the class's folder */
} context;

static const struct {
    const char *name;
    kith_split split;
} parts[] = {
    {"train", KITH_SPLIT_TRAIN},
    {"validation", KITH_SPLIT_VALIDATION},
    {"val", KITH_SPLIT_VALIDATION},
    {"test", KITH_SPLIT_TEST},
};
enum { N_PARTS = sizeof parts / sizeof parts[0] };

bool ki_part_named(const char *name, size_t n, kith_split *ret) {
    for (int i = 0; i < N_PARTS; i++) {
        if (strlen(parts[i].name) != n || memcmp(name, parts[i].name, n) != 0) continue;
        return *ret = parts[i].split, true;
    }
    return false;
}

/* A folder inside the class's own, which people may have meant to be a class: its images come one after the other. */
static kith_status note_nested(const context *c, const char *path, kith_error *err) {
    kith_dataset *set = c->set;
    const char *below = path + c->n_folder + 1, *end = strrchr(below, '/');
    if (!end) return KITH_OK;
    const size_t n = (size_t)(end - path);
    const char *last = set->n_nested > 0 ? set->last_nested : "";
    if (strlen(last) == n && memcmp(last, path, n) == 0) return KITH_OK;
    set->last_nested = ki_arena_strndup(&set->arena, path, n);
    if (!set->last_nested) return ki_fail_memory(err, n, "a path");
    if (set->n_nested < KI_MOST_NESTED_NAMED) set->nested[set->n_nested] = set->last_nested;
    set->n_nested++;
    return KITH_OK;
}

static kith_status add_image(void *user, const char *path, kith_error *err) {
    const context *c = user;
    KI_TRY(note_nested(c, path, err));
    return ki_dataset_add(c->set, NULL, path, strlen(path), c->label, c->split, NULL, err);
}

static kith_status read_classes(kith_dataset *set, const char *folder, kith_split split, kith_error *err) {
    kith_status status = KITH_OK;
    ki_arena arena = {0};
    char **names = NULL;
    size_t n = 0;
    context c = {.set = set, .split = split};
    KI_CHECK(ki_list_classes(folder, set, &arena, &names, &n, err));
    for (size_t i = 0; i < n; i++) {
        ki_path path;
        KI_CHECK(ki_path_print(&path, err, "%s/%s", folder, names[i]));
        c.n_folder = strlen(path.s);
        KI_CHECK(ki_dataset_class(set, names[i], strlen(names[i]), &c.label, err));
        KI_CHECK(ki_walk_images(path.s, set, add_image, &c, err));
    }
done:
    ki_free(names);
    ki_arena_release(&arena);
    return status;
}

bool ki_folder_has_parts(const char *root) {
    return ki_is_folder("%s/train", root) &&
           (ki_is_folder("%s/test", root) || ki_is_folder("%s/validation", root) ||
            ki_is_folder("%s/val", root));
}

const char *ki_folder_class(const char *path, bool has_parts, size_t *ret_n) {
    while (*path == '/') path++;
    const char *end = strchr(path, '/');
    for (int i = 0; has_parts && end && i < N_PARTS; i++) {
        const size_t n = strlen(parts[i].name);
        if ((size_t)(end - path) != n || memcmp(path, parts[i].name, n) != 0) continue;
        path = end + 1;
        end = strchr(path, '/');
        break;
    }
    if (!end) return NULL;
    *ret_n = (size_t)(end - path);
    return path;
}

static bool found(const char *root) {
    ki_arena arena = {0};
    char **names = NULL;
    size_t n = 0;
    const bool yes =
        ki_is_folder("%s", root) && ki_list_folders(root, &arena, &names, &n, NULL) == KITH_OK && n > 0;
    ki_free(names);
    ki_arena_release(&arena);
    return yes;
}

/* What lies beside train/ and test/ is not read. */
static kith_status note_beside(kith_dataset *set, const char *root, kith_error *err) {
    kith_status status = KITH_OK;
    ki_arena arena = {0};
    char **names = NULL;
    size_t n = 0;
    KI_CHECK(ki_list_classes(root, set, &arena, &names, &n, err));
    for (size_t i = 0; i < n; i++) {
        ki_path path;
        bool is_part = false;
        for (int k = 0; k < N_PARTS; k++) is_part |= strcmp(names[i], parts[k].name) == 0;
        if (is_part) continue;
        KI_CHECK(ki_path_print(&path, err, "%s/%s", root, names[i]));
        KI_CHECK(ki_unread_add(&set->unread, &set->arena, KI_UNREAD_BESIDE, path.s, err));
    }
done:
    ki_free(names);
    ki_arena_release(&arena);
    return status;
}

static kith_status read_folder(kith_dataset *set, const char *root, kith_error *err) {
    if (ki_folder_has_parts(root)) {
        KI_TRY(note_beside(set, root, err));
        for (int i = 0; i < N_PARTS; i++) {
            ki_path path;
            KI_TRY(ki_path_print(&path, err, "%s/%s", root, parts[i].name));
            if (ki_is_folder("%s", path.s)) KI_TRY(read_classes(set, path.s, parts[i].split, err));
        }
        return KITH_OK;
    }
    KI_TRY(read_classes(set, root, KITH_SPLIT_TRAIN, err));
    ki_dataset_split_at(set, (int32_t)(set->n_classes + 1) / 2);
    return KITH_OK;
}

const ki_dataset_kind ki_dataset_folder = {
    .name = "folder",
    .summary = "a folder of images per class, in train/ and test/ or else split in halves by class name",
    .found = found,
    .read = read_folder,
};
