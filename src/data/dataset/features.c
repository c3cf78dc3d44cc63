/* Features made elsewhere: the rows of a .npy file, and a label for each in a second file. Rows are read when they are asked
 * for; of a row the set itself only holds its name, FILE#ROW, and its class. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/sanitizer.h"
#include "base/text.h"
#include "data/dataset/dataset.h"
#include "kith/labels.h"

static bool ends_in_npy(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && strcasecmp(dot, ".npy") == 0;
}

/* birds.npy has its labels in birds.labels.npy, .txt or .csv; `kith embed` writes the second. */
static bool find_labels(const char *features, ki_path *ret_path) {
    static const char *const endings[] = {".labels.npy", ".labels.txt", ".labels.csv"};
    const size_t n = strlen(features) - (ends_in_npy(features) ? strlen(".npy") : 0);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (ki_path_print(ret_path, NULL, "%.*s%s", (int)n, features, endings[i]) == KITH_OK &&
            ki_is_file("%s", ret_path->s))
            return true;
    }
    return false;
}

static int compare_ids(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Numbers become classes in rising order, names in the order in which they first appear. Returns the class of each row. */
static kith_status make_classes(kith_dataset *set, const kith_labels *labels, const kith_array *ids,
                                int32_t *ret_class, kith_error *err) {
    kith_status status;
    int64_t *sorted = NULL;
    const int64_t n = ids->dim[0], *id = ids->data;
    const bool are_names = kith_labels_n_names(labels) > 0;
    int64_t n_classes = 0;
    KI_CHECK(ki_alloc_or(&sorted, (size_t)n, sizeof *sorted, "labels", err));
    if (n > 0) memcpy(sorted, id, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, compare_ids);
    for (int64_t i = 0; i < n; i++) {
        if (n_classes == 0 || sorted[i] != sorted[n_classes - 1]) sorted[n_classes++] = sorted[i];
    }
    for (int64_t c = 0; c < n_classes; c++) {
        char number[24];
        int32_t made = 0;
        ki_snprintf(number, sizeof number, "%lld", (long long)sorted[c]);
        const char *key = are_names ? kith_labels_name(labels, sorted[c]) : number;
        KI_CHECK(ki_dataset_class(set, key, strlen(key), &made, err));
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t *found = bsearch(&id[i], sorted, (size_t)n_classes, sizeof *sorted, compare_ids);
        ret_class[i] = (int32_t)(found - sorted);
    }
done:
    ki_free(sorted);
    return status;
}

static kith_status read_labels(kith_dataset *set, const char *path, int32_t *ret_class, kith_error *err) {
    kith_status status;
    kith_labels *labels = NULL;
    kith_array ids = {0};
    KI_CHECK(kith_labels_new(&labels, err));
    KI_CHECK(kith_labels_read(labels, path, &ids, err));
    if (ids.dim[0] != ki_npy_rows_count(set->rows)) {
        status = ki_fail(err, KITH_ESHAPE, "%s holds %lld labels for the %lld rows of %s", path,
                         (long long)ids.dim[0], (long long)ki_npy_rows_count(set->rows), set->root);
        ki_hint(err, status, "wanted a label for each row, in their order");
        goto done;
    }
    KI_CHECK(make_classes(set, labels, &ids, ret_class, err));
done:
    kith_array_release(&ids);
    kith_labels_free(labels);
    return status;
}

static kith_status add_items(kith_dataset *set, const int32_t *class_of, kith_error *err) {
    const int64_t n = ki_npy_rows_count(set->rows);
    for (int64_t i = 0; i < n; i++) {
        ki_path path;
        KI_TRY(ki_path_print(&path, err, "%s#%lld", set->root, (long long)i));
        KI_TRY(ki_dataset_add(set, NULL, path.s, strlen(path.s), class_of[i], KITH_SPLIT_TEST, NULL, err));
    }
    if (set->n_classes > 0) ki_dataset_split_at(set, (int32_t)(set->n_classes + 1) / 2);
    return KITH_OK;
}

static kith_status fail_labels(const char *features, kith_error *err) {
    ki_fail(err, KITH_EIO, "%s: there are no labels for its rows", features);
    return ki_hint(err, KITH_EIO,
                   "name their file, or put it beside the features as NAME.labels.npy, .txt or .csv");
}

/* Without labels (NULL) no row has a class. */
static kith_status fill(kith_dataset *set, const char *labels, kith_error *err) {
    kith_status status;
    int32_t *class_of = NULL;
    KI_CHECK(ki_npy_rows_open(set->root, &set->rows, err));
    const int64_t n = ki_npy_rows_count(set->rows);
    KI_CHECK(ki_alloc_or(&class_of, (size_t)n + 1, sizeof *class_of, "labels", err));
    for (int64_t i = 0; i < n; i++) class_of[i] = -1;
    if (labels) KI_CHECK(read_labels(set, labels, class_of, err));
    KI_CHECK(add_items(set, class_of, err));
done:
    ki_free(class_of);
    return status;
}

kith_status ki_dataset_of_features(const char *features, const char *labels, bool may_lack_labels,
                                   kith_dataset **ret_set, kith_error *err) {
    kith_status status;
    kith_dataset *set = NULL;
    ki_path beside;
    if (!labels && find_labels(features, &beside)) labels = beside.s;
    KI_CHECK(ki_dataset_new(&ki_dataset_features, features, &set, err));
    KI_CHECK(fill(set, labels, err));
    if (!labels && !may_lack_labels) {
        status = fail_labels(features, err);
        goto done;
    }
    if (set->n_items == 0) {
        status = ki_fail(err, KITH_EFORMAT, "%s has no rows; wanted at least one", features);
        goto done;
    }
    for (size_t i = 0; labels && i < set->n_items; i++) set->class_[set->item[i].label].n_images++;
    KI_CHECK(ki_dataset_settle(set, err));
    *ret_set = set;
    set = NULL;
done:
    kith_dataset_free(set);
    return status;
}

kith_status kith_dataset_open_features(const char *features, const char *labels, kith_dataset **ret_dataset,
                                       kith_error *err) {
    KI_NEED(err, features, ret_dataset);
    return ki_dataset_of_features(features, labels, false, ret_dataset, err);
}

int64_t kith_dataset_n_features(const kith_dataset *set) {
    return set && set->rows ? ki_npy_rows_dim(set->rows) : 0;
}

/* Every row of a training run passes here, so that the loop has no branch and is vectorised. Without its sign, the bits of a float
 * are a whole number that rises with it; infinity and NaN have the largest. */
KI_CLONES("avx512f", "avx2")
static bool are_finite(const float *values, int64_t n) {
    int32_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        bits &= INT32_MAX;
        most = bits > most ? bits : most;
    }
    return most < 0x7f800000;
}
/* Of its own: clang's clones have no name outside of their file. */
bool ki_are_finite(const float *values, int64_t n) { return are_finite(values, n); }

kith_status ki_dataset_row(const kith_dataset *set, int64_t item, float *ret_values, kith_error *err) {
    if (set->views)
        KI_TRY(ki_dataset_view_row(set, item, 0, ret_values, err));
    else
        KI_TRY(ki_npy_rows_read(set->rows, item, ret_values, err));
    return ki_dataset_check_row(set, item, ret_values, err);
}

kith_status ki_dataset_check_row(const kith_dataset *set, int64_t item, const float *values,
                                 kith_error *err) {
    const int64_t dim = ki_npy_rows_dim(set->rows);
    if (are_finite(values, dim)) return KITH_OK;
    if (set->views) /* kept features of images: a row of NaN is one that could not be read */
        return ki_fail(err, KITH_ENUMERIC, "%s could not be read when its features were made",
                       set->item[item].path);
    for (int64_t i = 0; i < dim; i++) {
        if (!isfinite(values[i]))
            return ki_fail(err, KITH_ENUMERIC, "%s holds %g at %lld; wanted finite numbers",
                           set->item[item].path, (double)values[i], (long long)i);
    }
    return KITH_OK;
}

bool ki_dataset_rows(const kith_dataset *set, const int64_t *items, int64_t n, float *ret_values) {
    const bool are_there = set->views ? ki_dataset_view_rows(set, items, NULL, n, ret_values)
                                      : ki_npy_rows_gather(set->rows, items, n, ret_values);
    return are_there && are_finite(ret_values, n * ki_npy_rows_dim(set->rows));
}

static bool found(const char *root) { return ends_in_npy(root) && ki_is_file("%s", root); }

/* The rows of the set that kith_dataset_open finishes. */
static kith_status read_features(kith_dataset *set, const char *root, kith_error *err) {
    ki_path labels;
    if (!find_labels(root, &labels)) return fail_labels(root, err);
    return fill(set, labels.s, err);
}

const ki_dataset_kind ki_dataset_features = {
    .name = "features",
    .summary = "rows of a .npy file made elsewhere, with labels beside it (NAME.labels.npy, .txt or .csv)",
    .found = found,
    .read = read_features,
};
