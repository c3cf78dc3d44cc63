/* Cars196, in both layouts: cars_annos.mat with car_ims/, or devkit/ (cars_train_annos.mat,
 * cars_test_annos_withlabels.mat, cars_meta.mat) with cars_train/ and cars_test/. The metric-learning
 * split is by class over all 16,185 images: 1-98 train, 99-196 test; the lists' own train and test
 * marks are not used. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "data/dataset/dataset.h"
#include "io/file.h"
#include "io/mat.h"

enum { LAST_TRAINING_CLASS = 98, MOST_CLASSES = 100000 };
static const size_t most_list_bytes = (size_t)256 << 20;

/* The parts of an annotation that are read. */
enum { PATH, CLASS, X1, Y1, X2, Y2, N_FIELDS };

static kith_status class_of(kith_dataset *set, int64_t id, int32_t *ret_label, kith_error *err) {
    char key[24];
    const int n = ki_snprintf(key, sizeof key, "%jd", (intmax_t)id);
    return ki_dataset_class(set, key, (size_t)n, ret_label, err);
}

static kith_status add_one(kith_dataset *set, const ki_mat_array field[N_FIELDS], size_t i,
                           const char *path_field, const char *folder, kith_error *err) {
    char path[1024];
    double class_id = 0, corner[4];
    if (!ki_mat_text(&field[PATH], path, sizeof path))
        return ki_fail(err, KITH_EFORMAT, "annotation %zu has no %s", i + 1, path_field);
    if (!ki_mat_number(&field[CLASS], &class_id) || !(class_id >= 1 && class_id <= (double)MOST_CLASSES)) {
        ki_fail(err, KITH_EFORMAT, "annotation %zu (%s) has no class from 1", i + 1, path);
        return ki_hint(err, KITH_EFORMAT, "the test list must be cars_test_annos_withlabels.mat");
    }
    bool has_box = true;
    for (int k = 0; k < 4; k++) has_box = has_box && ki_mat_number(&field[X1 + k], &corner[k]);
    int32_t label = 0;
    ki_item *item = NULL;
    KI_TRY(class_of(set, (int64_t)class_id, &label, err));
    KI_TRY(ki_dataset_add(set, folder, path, strlen(path), label,
                          class_id <= (double)LAST_TRAINING_CLASS ? KITH_SPLIT_TRAIN : KITH_SPLIT_TEST, &item,
                          err));
    item->has_box = has_box;
    if (has_box) { /* corners counted from 1, both inside */
        item->box[0] = (float)(corner[0] - 1);
        item->box[1] = (float)(corner[1] - 1);
        item->box[2] = (float)(corner[2] - corner[0] + 1);
        item->box[3] = (float)(corner[3] - corner[1] + 1);
    }
    return KITH_OK;
}

static kith_status read_annotations(kith_dataset *set, ki_mat *mat, const char *name, const char *path_field,
                                    const char *folder, kith_error *err) {
    const char *const field_names[N_FIELDS] = {path_field, "class",   "bbox_x1",
                                               "bbox_y1",  "bbox_x2", "bbox_y2"};
    ki_mat_array annotations;
    bool is_there = false;
    size_t place[N_FIELDS];
    KI_TRY(ki_mat_find(mat, "annotations", &annotations, &is_there, err));
    if (!is_there || annotations.kind != KI_MAT_STRUCT)
        return ki_fail(err, KITH_EFORMAT, "%s: there is no struct array 'annotations'", name);
    for (int k = 0; k < N_FIELDS; k++) place[k] = ki_mat_field(&annotations, field_names[k]);
    for (size_t i = 0; i < annotations.n_elements; i++) {
        ki_mat_array field[N_FIELDS] = {0};
        for (size_t f = 0; f < annotations.n_fields; f++) {
            ki_mat_array part;
            KI_TRY(ki_mat_next(&annotations, &part, err));
            for (int k = 0; k < N_FIELDS; k++) {
                if (place[k] == f) field[k] = part;
            }
        }
        const kith_status status = add_one(set, field, i, path_field, folder, err);
        if (status != KITH_OK) return ki_prefix(err, status, "%s", name);
    }
    return KITH_OK;
}

/* class_names is a cell array of strings; without it classes are called by their number. */
static kith_status read_names(kith_dataset *set, ki_mat *mat, kith_error *err) {
    ki_mat_array names;
    bool is_there = false;
    KI_TRY(ki_mat_find(mat, "class_names", &names, &is_there, err));
    const size_t n = is_there && names.kind == KI_MAT_CELL ? names.n_parts : 0;
    for (size_t i = 0; i < n && i < MOST_CLASSES; i++) {
        ki_mat_array part;
        char name[512];
        int32_t label = 0;
        KI_TRY(ki_mat_next(&names, &part, err));
        if (!ki_mat_text(&part, name, sizeof name)) continue;
        KI_TRY(class_of(set, (int64_t)i + 1, &label, err));
        KI_TRY(ki_dataset_name_class(set, label, name, strlen(name), err));
    }
    return KITH_OK;
}

kith_status ki_cars_parse(kith_dataset *set, const char *folder, const char *name, const void *bytes,
                          size_t n, const char *path_field, kith_error *err) {
    kith_status status = KITH_OK;
    ki_mat *mat = NULL;
    KI_CHECK(ki_mat_parse(bytes, n, name, &mat, err));
    KI_CHECK(read_names(set, mat, err));
    if (path_field) KI_CHECK(read_annotations(set, mat, name, path_field, folder, err));
done:
    ki_mat_free(mat);
    return status;
}

typedef struct list {
    const char *mat, *path_field, *folder;
} list;

/* NULL path_field: the file holds only names. */
static kith_status read_list(kith_dataset *set, const char *root, const list *l, kith_error *err) {
    ki_path path, folder;
    char *bytes = NULL;
    size_t n = 0;
    KI_TRY(ki_path_print(&path, err, "%s/%s", root, l->mat));
    KI_TRY(ki_path_print(&folder, err, "%s%s", root, l->folder));
    if (!ki_is_file("%s", path.s)) return ki_fail(err, KITH_EIO, "%s is not there", path.s);
    KI_TRY(ki_file_read(path.s, most_list_bytes, &bytes, &n, err));
    const kith_status status = ki_cars_parse(set, folder.s, path.s, bytes, n, l->path_field, err);
    ki_free(bytes);
    return status;
}

static const list one = {"cars_annos.mat", "relative_im_path", ""};
static const list meta = {"devkit/cars_meta.mat", NULL, ""};
static const list train = {"devkit/cars_train_annos.mat", "fname", "/cars_train"};
static const list test[] = {{"devkit/cars_test_annos_withlabels.mat", "fname", "/cars_test"},
                            {"cars_test_annos_withlabels.mat", "fname", "/cars_test"}};

static bool has(const char *root, const list *l) { return ki_is_file("%s/%s", root, l->mat); }

static bool found(const char *root) { return has(root, &one) || has(root, &train); }

static kith_status read_devkit(kith_dataset *set, const char *root, kith_error *err) {
    if (has(root, &meta)) KI_TRY(read_list(set, root, &meta, err));
    KI_TRY(read_list(set, root, &train, err));
    return read_list(set, root, has(root, &test[1]) ? &test[1] : &test[0], err);
}

/* A root may contain the lists of both layouts, but the images of only one. */
static kith_status read_cars(kith_dataset *set, const char *root, kith_error *err) {
    if (!has(root, &one)) return read_devkit(set, root, err);
    if (!has(root, &train)) return read_list(set, root, &one, err);
    const bool one_is_whole = ki_is_folder("%s/car_ims", root);
    const bool devkit_is_whole = (has(root, &test[0]) || has(root, &test[1])) &&
                                 ki_is_folder("%s/cars_train", root) && ki_is_folder("%s/cars_test", root);
    const bool takes_devkit = devkit_is_whole && !one_is_whole;
    ki_log(KITH_LOG_INFO, "%s holds both layouts of Cars196; read is %s", root,
           takes_devkit ? "devkit/ with cars_train/ and cars_test/" : "cars_annos.mat with car_ims/");
    return takes_devkit ? read_devkit(set, root, err) : read_list(set, root, &one, err);
}

const ki_dataset_kind ki_dataset_cars = {
    .name = "cars",
    .summary =
        "Cars196 (cars_annos.mat and car_ims/, or devkit/ with cars_train/ and cars_test/); classes 1-98 "
        "train",
    .found = found,
    .read = read_cars,
};
