/* Several data sets as one: items one set after the other, classes and names under the number of their set. */
#include <string.h>

#include "base/alloc.h"
#include "base/path.h"
#include "data/dataset/dataset.h"

/* The record of what is not in table.def: nobody finds or reads it. */
static const ki_dataset_kind several = {.name = "several", .summary = "several data sets"};
static const ki_dataset_kind unlabelled = {.name = "unlabelled", .summary = "images without classes"};

static const char no_class[] = "no class";

/* ---- a set without classes ---- */

typedef struct walk {
    kith_dataset *set;
    size_t n_root;
} walk;

static kith_status add_image(void *context, const char *path, kith_error *err) {
    const walk *w = context;
    return ki_dataset_add(w->set, NULL, path, strlen(path), 0, KITH_SPLIT_TRAIN, NULL, err);
}

/* The training images of a layout, in one class that is none. */
static kith_status drop_classes(kith_dataset *set, kith_error *err) {
    int32_t label = 0;
    size_t kept = 0;
    KI_TRY(ki_dataset_class(set, no_class, strlen(no_class), &label, err));
    for (size_t i = 0; i < set->n_items; i++) {
        if (set->item[i].split != KITH_SPLIT_TRAIN) continue;
        set->item[kept] = set->item[i];
        set->item[kept++].label = 0;
    }
    if (kept == 0) return ki_fail(err, KITH_EINVAL, "%s has no training images", set->root);
    set->n_items = kept;
    set->class_[0] = set->class_[label];
    set->class_[0].is_none = true;
    set->class_[0].n_images = (int64_t)kept;
    set->n_classes = 1;
    return KITH_OK;
}

static kith_status open_tars(const char *root, kith_dataset **ret_set, kith_error *err) {
    kith_dataset *set = NULL;
    KI_TRY(kith_dataset_open_files(&root, 1, &set, err));
    for (size_t i = 0; i < set->n_items; i++) set->item[i].split = KITH_SPLIT_TRAIN;
    const kith_status status = drop_classes(set, err);
    if (status == KITH_OK)
        *ret_set = set;
    else
        kith_dataset_free(set);
    return status;
}

static kith_status walk_folder(const char *root, kith_dataset **ret_set, kith_error *err) {
    kith_status status = KITH_OK;
    kith_dataset *set = NULL;
    int32_t label = 0;
    if (ki_dataset_tar.found(root)) return open_tars(root, ret_set, err);
    if (!ki_is_folder("%s", root)) {
        ki_fail(err, KITH_EIO, "%s: there is no such folder", root);
        return ki_hint(err, KITH_EIO,
                       "without labels wanted a folder of images, with folders inside or without");
    }
    KI_CHECK(ki_dataset_new(&unlabelled, root, &set, err));
    KI_CHECK(ki_dataset_class(set, no_class, strlen(no_class), &label, err));
    walk w = {.set = set};
    KI_CHECK(ki_walk_images(root, set, add_image, &w, err));
    if (set->n_items == 0) {
        status = ki_fail(err, KITH_EIO, "%s: no images found", root);
        goto done;
    }
    KI_CHECK(ki_dataset_drop_missing(set, err));
    KI_CHECK(ki_dataset_settle(set, err));
    set->class_[0].is_none = true;
    *ret_set = set;
    set = NULL;
done:
    kith_dataset_free(set);
    return status;
}

kith_status ki_dataset_open_unlabelled(const char *kind, const char *root, kith_dataset **ret_set,
                                       kith_error *err) {
    kith_dataset *set = NULL;
    if (strcmp(kind, "auto") == 0) return walk_folder(root, ret_set, err);
    KI_TRY(kith_dataset_open(kind, root, &set, err));
    const kith_status status = drop_classes(set, err);
    if (status == KITH_OK)
        *ret_set = set;
    else
        kith_dataset_free(set);
    return status;
}

/* ---- several ---- */

static kith_status check(const kith_dataset *part, size_t p, kith_error *err) {
    if (!part->rows && !part->pixels) return KITH_OK;
    ki_fail(err, KITH_EUNSUPPORTED, "data.%zu: %s is %s, and several data sets are files of images", p,
            part->root, part->rows ? "features" : "one file of many images");
    return ki_hint(err, KITH_EUNSUPPORTED, "train on it alone, or write its images as files");
}

/* "birds + snapshots", for lines to read. */
static kith_status name_root(kith_dataset *const *sets, size_t n, ki_path *ret, kith_error *err) {
    size_t used = 0;
    ret->s[0] = '\0';
    for (size_t p = 0; p < n; p++) {
        const size_t room = sizeof ret->s - used, wanted = strlen(sets[p]->root) + 4;
        if (wanted + 4 >= room) return ki_path_print(ret, err, "%zu data sets", n);
        if (p) memcpy(ret->s + used, " + ", 4), used += 3;
        memcpy(ret->s + used, sets[p]->root, wanted - 3);
        used += wanted - 4;
    }
    return KITH_OK;
}

static kith_status add_classes(kith_dataset *set, const kith_dataset *part, size_t p, kith_error *err) {
    for (size_t c = 0; c < part->n_classes; c++) {
        ki_path key;
        int32_t label = 0;
        KI_TRY(ki_path_print(&key, err, "%zu/%s", p, part->class_[c].key));
        KI_TRY(ki_dataset_class(set, key.s, strlen(key.s), &label, err));
        KI_TRY(ki_path_print(&key, err, "%zu/%s", p, part->class_[c].name));
        KI_TRY(ki_dataset_name_class(set, label, key.s, strlen(key.s), err));
        set->class_[label].n_images = part->class_[c].n_images;
        set->class_[label].is_none = part->class_[c].is_none;
    }
    return KITH_OK;
}

/* The strings of the items stay with their sets. */
static kith_status add_items(kith_dataset *set, const kith_dataset *part, size_t p, kith_error *err) {
    const int32_t first = (int32_t)(set->n_classes - part->n_classes);
    for (size_t i = 0; i < part->n_items; i++) {
        ki_item *item = &set->item[set->n_items];
        *item = part->item[i];
        item->label += first;
        if (item->group) item->group += (int32_t)set->n_groups;
        set->name[set->n_items] = ki_arena_printf(&set->arena, "%zu/%s", p, ki_dataset_item_name(part, i));
        if (!set->name[set->n_items++]) return ki_fail_memory(err, 64, "names of images");
    }
    set->n_groups += part->n_groups;
    for (int64_t i = 0; i < part->n_missing && i < KI_MOST_MISSING_NAMED; i++) {
        if (set->n_missing + i < KI_MOST_MISSING_NAMED) set->missing[set->n_missing + i] = part->missing[i];
    }
    set->n_missing += part->n_missing;
    return KITH_OK;
}

static kith_status fill(kith_dataset *set, kith_error *err) {
    size_t n = 0;
    for (size_t p = 0; p < set->n_parts; p++) {
        KI_TRY(check(set->part[p], p, err));
        n += set->part[p]->n_items;
    }
    KI_TRY(ki_grow(&set->item, &set->item_capacity, n, sizeof *set->item, "items", err));
    KI_TRY(ki_zalloc_or(&set->name, n, sizeof *set->name, "names of images", err));
    for (size_t p = 0; p < set->n_parts; p++) {
        KI_TRY(add_classes(set, set->part[p], p, err));
        KI_TRY(add_items(set, set->part[p], p, err));
    }
    return ki_dataset_settle(set, err);
}

kith_status ki_dataset_join(kith_dataset *const *sets, size_t n_sets, kith_dataset **ret_set,
                            kith_error *err) {
    kith_status status = KITH_OK;
    kith_dataset *set = NULL, **part = NULL;
    ki_path root;
    KI_CHECK(name_root(sets, n_sets, &root, err));
    KI_CHECK(ki_alloc_or(&part, n_sets, sizeof *part, "data sets", err));
    KI_CHECK(ki_dataset_new(&several, root.s, &set, err));
    memcpy(part, sets, n_sets * sizeof *part);
    set->part = part;
    set->n_parts = n_sets;
    part = NULL;
    KI_CHECK(fill(set, err));
    *ret_set = set;
    return KITH_OK;
done:
    ki_free(part);
    for (size_t p = 0; p < n_sets && !set; p++) kith_dataset_free(sets[p]);
    kith_dataset_free(set);
    return status;
}

void ki_dataset_part(const kith_dataset *set, size_t p, size_t *ret_first, size_t *ret_n) {
    *ret_first = 0;
    *ret_n = set->n_parts ? set->part[p]->n_items : set->n_items;
    for (size_t k = 0; k < p; k++) *ret_first += set->part[k]->n_items;
}
