/* Cars196, in both layouts: cars_annos.mat with car_ims/, or devkit/ (cars_train_annos.mat,
 * cars_test_annos_withlabels.mat, cars_meta.mat) with cars_train/ and cars_test/. The metric-learning
 * split is by class over all 16,185 images: 1-98 train, 99-196 test; the lists' own train and test
 * marks are not used. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <matio.h>

#include "core/alloc.h"
#include "data/dataset/dataset.h"

enum { LAST_TRAINING_CLASS = 98, MOST_CLASSES = 100000 };

/* The numbers and strings of the annotations are 1x1 arrays of several types. */
static bool number_of(const matvar_t *v, double *ret) {
    if (!v || !v->data || v->nbytes == 0 || v->isComplex) return false;
    switch (v->class_type) {
    case MAT_C_DOUBLE: *ret = *(const double *)v->data; return true;
    case MAT_C_SINGLE: *ret = (double)*(const float *)v->data; return true;
    case MAT_C_INT8: *ret = *(const int8_t *)v->data; return true;
    case MAT_C_UINT8: *ret = *(const uint8_t *)v->data; return true;
    case MAT_C_INT16: *ret = *(const int16_t *)v->data; return true;
    case MAT_C_UINT16: *ret = *(const uint16_t *)v->data; return true;
    case MAT_C_INT32: *ret = *(const int32_t *)v->data; return true;
    case MAT_C_UINT32: *ret = *(const uint32_t *)v->data; return true;
    default: return false;
    }
}

/* ASCII text of a char array; names in the set are ASCII or Latin-1 stored one unit per character. */
static bool text_of(const matvar_t *v, char *buf, size_t buf_bytes) {
    if (!v || v->class_type != MAT_C_CHAR || !v->data || v->data_size < 1) return false;
    const size_t n = v->nbytes / (size_t)v->data_size;
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned unit = 0;
        if (v->data_size == 1)
            unit = ((const uint8_t *)v->data)[i];
        else if (v->data_size == 2)
            unit = ((const uint16_t *)v->data)[i];
        else
            return false;
        if (unit == 0) break;
        const bool wide = unit >= 0x80 && v->data_type != MAT_T_UTF8 && v->data_size == 2;
        if (used + 2 >= buf_bytes || unit > 0x7ff) return false;
        if (wide)
            buf[used++] = (char)(0xc0 | unit >> 6), buf[used++] = (char)(0x80 | (unit & 0x3f));
        else
            buf[used++] = (char)unit;
    }
    buf[used] = '\0';
    return used > 0;
}

static size_t count_of(const matvar_t *v) {
    size_t n = v && v->rank > 0 ? 1 : 0;
    for (int i = 0; v && i < v->rank; i++) n *= v->dims[i];
    return n;
}

static matvar_t *field(matvar_t *annotations, const char *name, size_t i) {
    return Mat_VarGetStructFieldByName(annotations, name, i);
}

static kith_status class_of(kith_dataset *set, int64_t id, int32_t *ret_label, kith_error *err) {
    char key[24];
    const int n = snprintf(key, sizeof key, "%jd", (intmax_t)id);
    return ki_dataset_class(set, key, (size_t)n, ret_label, err);
}

static kith_status add_one(kith_dataset *set, matvar_t *annotations, size_t i, const char *path_field,
                           const char *folder, kith_error *err) {
    static const char *const corner_names[4] = {"bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2"};
    char path[1024];
    double class_id = 0, corner[4];
    if (!text_of(field(annotations, path_field, i), path, sizeof path))
        return ki_fail(err, KITH_EFORMAT, "annotation %zu has no %s", i + 1, path_field);
    if (!number_of(field(annotations, "class", i), &class_id) ||
        !(class_id >= 1 && class_id <= MOST_CLASSES)) {
        ki_fail(err, KITH_EFORMAT, "annotation %zu (%s) has no class from 1", i + 1, path);
        return ki_hint(err, KITH_EFORMAT, "the test list must be cars_test_annos_withlabels.mat");
    }
    bool has_box = true;
    for (int k = 0; k < 4; k++)
        has_box = has_box && number_of(field(annotations, corner_names[k], i), &corner[k]);
    int32_t label = 0;
    ki_item *item = NULL;
    KI_TRY(class_of(set, (int64_t)class_id, &label, err));
    KI_TRY(ki_dataset_add(set, folder, path, strlen(path), label,
                          class_id <= LAST_TRAINING_CLASS ? KITH_SPLIT_TRAIN : KITH_SPLIT_TEST, &item, err));
    item->has_box = has_box;
    if (has_box) { /* corners counted from 1, both inside */
        item->box[0] = (float)(corner[0] - 1);
        item->box[1] = (float)(corner[1] - 1);
        item->box[2] = (float)(corner[2] - corner[0] + 1);
        item->box[3] = (float)(corner[3] - corner[1] + 1);
    }
    return KITH_OK;
}

static kith_status read_annotations(kith_dataset *set, mat_t *mat, const char *path_field, const char *folder,
                                    kith_error *err) {
    kith_status status = KITH_OK;
    matvar_t *annotations = Mat_VarRead(mat, "annotations");
    if (!annotations || annotations->class_type != MAT_C_STRUCT) {
        status = ki_fail(err, KITH_EFORMAT, "there is no struct array 'annotations'");
        goto done;
    }
    const size_t n = count_of(annotations);
    for (size_t i = 0; i < n; i++) KI_CHECK(add_one(set, annotations, i, path_field, folder, err));
done:
    if (annotations) Mat_VarFree(annotations);
    return status;
}

/* class_names is a cell array of strings; without it classes are called by their number. */
static kith_status read_names(kith_dataset *set, mat_t *mat, kith_error *err) {
    kith_status status = KITH_OK;
    matvar_t *names = Mat_VarRead(mat, "class_names");
    const size_t n = names && names->class_type == MAT_C_CELL ? count_of(names) : 0;
    for (size_t i = 0; i < n && i < MOST_CLASSES; i++) {
        char name[512];
        int32_t label = 0;
        if (!text_of(Mat_VarGetCell(names, (int)i), name, sizeof name)) continue;
        KI_CHECK(class_of(set, (int64_t)i + 1, &label, err));
        KI_CHECK(ki_dataset_name_class(set, label, name, strlen(name), err));
    }
done:
    if (names) Mat_VarFree(names);
    return status;
}

static kith_status open_mat(const char *path, mat_t **ret, kith_error *err) {
    *ret = Mat_Open(path, MAT_ACC_RDONLY);
    if (*ret) return KITH_OK;
    if (!ki_is_file("%s", path)) return ki_fail(err, KITH_EIO, "%s is not there", path);
    return ki_fail(err, KITH_EFORMAT, "%s is not a MATLAB file", path);
}

typedef struct list {
    const char *mat, *path_field, *folder;
} list;

/* NULL path_field: the file holds only names. */
static kith_status read_list(kith_dataset *set, const char *root, const list *l, kith_error *err) {
    kith_status status = KITH_OK;
    mat_t *mat = NULL;
    ki_path path, folder;
    KI_TRY(ki_path_print(&path, err, "%s/%s", root, l->mat));
    KI_TRY(ki_path_print(&folder, err, "%s%s", root, l->folder));
    KI_TRY(open_mat(path.s, &mat, err));
    KI_CHECK(read_names(set, mat, err));
    if (l->path_field) KI_CHECK(read_annotations(set, mat, l->path_field, folder.s, err));
done:
    Mat_Close(mat);
    return status == KITH_OK ? status : ki_prefix(err, status, "%s", path.s);
}

static bool found(const char *root) {
    return ki_is_file("%s/cars_annos.mat", root) || ki_is_file("%s/devkit/cars_train_annos.mat", root);
}

static kith_status read_cars(kith_dataset *set, const char *root, kith_error *err) {
    static const list one = {"cars_annos.mat", "relative_im_path", ""};
    static const list meta = {"devkit/cars_meta.mat", NULL, ""};
    static const list train = {"devkit/cars_train_annos.mat", "fname", "/cars_train"};
    static const list test[] = {{"devkit/cars_test_annos_withlabels.mat", "fname", "/cars_test"},
                                {"cars_test_annos_withlabels.mat", "fname", "/cars_test"}};
    if (ki_is_file("%s/%s", root, one.mat)) return read_list(set, root, &one, err);
    if (ki_is_file("%s/%s", root, meta.mat)) KI_TRY(read_list(set, root, &meta, err));
    KI_TRY(read_list(set, root, &train, err));
    return read_list(set, root, ki_is_file("%s/%s", root, test[1].mat) ? &test[1] : &test[0], err);
}

const ki_dataset_kind ki_dataset_cars = {
    .name = "cars",
    .summary =
        "Cars196 (cars_annos.mat and car_ims/, or devkit/ with cars_train/ and cars_test/); classes 1-98 "
        "train",
    .found = found,
    .read = read_cars,
};
