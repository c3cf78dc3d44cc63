/* Images named one by one, or found below folders that were named. */
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "data/dataset/dataset.h"
#include "io/tar_file.h"

static bool found_nothing(const char *root) { return (void)root, false; }

static kith_status read_nothing(kith_dataset *set, const char *root, kith_error *err) {
    (void)set, (void)root, (void)err;
    return KITH_OK;
}

/* Not in the table: made from a list in memory. */
static const ki_dataset_kind kind_list = {
    .name = "list", .summary = "images named one by one", .found = found_nothing, .read = read_nothing};

static kith_status add_image(kith_dataset *set, const char *path, kith_error *err) {
    return ki_dataset_add(set, NULL, path, strlen(path), -1, KITH_SPLIT_TEST, NULL, err);
}

/* Tar files, a pattern of them, or a folder with them. */
static kith_status add_tars(const char *root, kith_dataset *set, kith_error *err) {
    ki_arena arena = {0};
    char **paths = NULL;
    size_t n = 0;
    const size_t before = set->n_items;
    kith_status status = ki_shards_list(root, &arena, &paths, &n, err);
    if (status == KITH_OK) status = ki_dataset_add_tars(set, paths, n, NULL, err);
    for (size_t i = before; status == KITH_OK && i < set->n_items; i++) {
        set->item[i].split = KITH_SPLIT_TEST;
        if (set->item[i].label >= 0) set->class_[set->item[i].label].n_images++;
    }
    ki_free(paths);
    ki_arena_release(&arena);
    return status;
}

/* A folder that is walked. */
typedef struct walked {
    kith_dataset *set;
    size_t n_root; /* bytes of its own path, which every path below begins with */
    bool has_parts;
} walked;

static kith_status add_below(void *context, const char *path, kith_error *err) {
    const walked *w = context;
    size_t n = 0;
    int32_t label = -1;
    const char *name = ki_folder_class(path + w->n_root, w->has_parts, &n);
    if (name) KI_TRY(ki_dataset_class(w->set, name, n, &label, err));
    KI_TRY(ki_dataset_add(w->set, NULL, path, strlen(path), label, KITH_SPLIT_TEST, NULL, err));
    if (name) w->set->class_[label].n_images++;
    return KITH_OK;
}

static kith_status add_all(const char *const *paths, size_t n_paths, kith_dataset *set, kith_error *err) {
    for (size_t i = 0; i < n_paths; i++) {
        if (ki_dataset_tar.found(paths[i])) {
            KI_TRY(add_tars(paths[i], set, err));
        } else if (ki_is_folder("%s", paths[i])) {
            const size_t before = set->n_items;
            walked w = {set, strlen(paths[i]), ki_folder_has_parts(paths[i])};
            KI_TRY(ki_walk_images(paths[i], set, add_below, &w, err));
            if (set->n_items == before) {
                ki_fail(err, KITH_EIO, "%s holds no images", paths[i]);
                if (set->unread.n == 0)
                    return ki_hint(err, KITH_EIO, "wanted files that end in one of " KI_IMAGE_ENDINGS);
                return ki_hint(err, KITH_EIO, "not read is %.300s; read are " KI_IMAGE_FORMATS,
                               set->unread.name[0]);
            }
        } else if (ki_is_file("%s", paths[i]) || ki_member_look(paths[i], NULL, NULL)) {
            KI_TRY(add_image(set, paths[i], err));
        } else {
            return ki_fail(err, KITH_EIO, "%s: there is no such file or folder", paths[i]);
        }
    }
    if (set->n_items == 0) return ki_fail(err, KITH_EINVAL, "no images were named");
    return KITH_OK;
}

static kith_status add_each(const char *const *paths, size_t n_paths, kith_dataset *set, kith_error *err) {
    for (size_t i = 0; i < n_paths; i++) KI_TRY(add_image(set, paths[i], err));
    return KITH_OK;
}

static kith_status make(const char *const *paths, size_t n_paths, bool walks, kith_dataset **ret_set,
                        kith_error *err) {
    kith_dataset *set = NULL;
    KI_TRY(ki_dataset_new(&kind_list, "the list", &set, err));
    kith_status status = walks ? add_all(paths, n_paths, set, err) : add_each(paths, n_paths, set, err);
    if (status == KITH_OK) status = ki_dataset_settle(set, err);
    if (status == KITH_OK)
        *ret_set = set;
    else
        kith_dataset_free(set);
    return status;
}

kith_status kith_dataset_open_files(const char *const *paths, int64_t n_paths, kith_dataset **ret_dataset,
                                    kith_error *err) {
    KI_NEED(err, paths, ret_dataset);
    KI_TRY(ki_need_strings(paths, n_paths, "paths", err));
    const ki_dataset_kind *kind = n_paths == 1 ? ki_dataset_kind_at(paths[0]) : NULL;
    if (kind == &ki_dataset_features) return ki_dataset_of_features(paths[0], NULL, true, ret_dataset, err);
    if (kind && kind != &ki_dataset_folder && kind != &ki_dataset_tar)
        return kith_dataset_open(kind->name, paths[0], ret_dataset, err);
    return make(paths, (size_t)n_paths, true, ret_dataset, err);
}

kith_status ki_dataset_of_paths(const char *const *paths, size_t n_paths, kith_dataset **ret_set,
                                kith_error *err) {
    return make(paths, n_paths, false, ret_set, err);
}
