/* Reading the `data:` section. */
#include "data/section.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/argument.h"
#include "base/text.h"
#include "data/dataset/dataset.h"
#include "io/run_paths.h"
#include "io/yaml.h"

typedef struct settings {
    const char *dataset, *root, *features, *labels, *split;
    int64_t train_classes, folds, fold, split_seed;
    double validation, weight;
    bool test;
} settings;

const ki_option ki_data_options[] = {
    KI_OPTION_TEXT(settings, dataset, "auto", "the layout (see `kith list datasets`), or auto to find out",
                   "ours"),
    KI_OPTION_TEXT(settings, root, "", "the folder or list file", "ours"),
    KI_OPTION_LATER(TEXT, settings, features, "",
                    "instead of root: features made elsewhere, a .npy of float32 or float16 [rows, numbers]",
                    "ours"),
    KI_OPTION_LATER(
        TEXT, settings, labels, "",
        "a label for each row of features: .npy, .txt or .csv; empty: NAME.labels.* beside them. false: the "
        "images have no classes",
        "ours"),
    KI_OPTION_INT(settings, train_classes, 0, 0, INT32_MAX,
                  "the first so many classes train; 0: the set's own split", "ours"),
    KI_OPTION_REAL(settings, validation, 0, 0, 0.9, "part of the training classes held out for validation",
                   "ours"),
    KI_OPTION_INT(settings, folds, 0, 0, 1000, "cross-validation: parts of the training classes", "ours"),
    KI_OPTION_INT(settings, fold, 0, 0, 999, "cross-validation: the part held out, from 0", "ours"),
    KI_OPTION_INT(settings, split_seed, 0, 0, 0x1p53, "which classes are held out", "ours"),
    KI_OPTION_TEXT(settings, split, "", "a split file (class,split) instead of drawing one", "ours"),
    KI_OPTION_LATER(BOOL, settings, test, 1, "score the set's test classes; false: they train, too", "ours"),
    KI_OPTION_LATER(
        REAL, settings, weight, 0, 0, 1e9,
        "of several sets: its part of every batch, over the sum of all weights, above 0; not given: its "
        "number of training images",
        "ours"),
    KI_OPTION_END};

enum { MOST_SETS = 64 };

const char *const ki_data_places[KI_N_DATA_PLACES] = {"root", "features", "labels", "split"};

bool ki_data_lacks_labels(const ki_value *section) {
    const ki_value *labels = ki_value_get(section, "labels");
    return labels && labels->kind == KI_VALUE_SCALAR && strcmp(labels->text, "false") == 0;
}

static bool lacks_labels(const settings *s) { return strcmp(s->labels, "false") == 0; }

static kith_status apply_splits(kith_dataset *set, const settings *s, kith_error *err) {
    if (lacks_labels(s)) return KITH_OK;
    if (s->train_classes > 0) KI_TRY(kith_dataset_split_first(set, s->train_classes, err));
    for (size_t i = 0; i < set->n_items && !s->test; i++) set->item[i].split = KITH_SPLIT_TRAIN;
    if (*s->split) return kith_dataset_split_read(set, s->split, err);
    if (s->folds > 0)
        return kith_dataset_hold_out_fold(set, (int)s->folds, (int)s->fold, (uint64_t)s->split_seed, err);
    if (s->validation > 0) return kith_dataset_hold_out(set, s->validation, (uint64_t)s->split_seed, err);
    return KITH_OK;
}

/* What a set without labels cannot have. */
static kith_status check_unlabelled(const settings *s, kith_error *err) {
    const char *key = s->train_classes > 0 ? "train_classes"
                      : s->folds > 0       ? "folds"
                      : *s->split          ? "split"
                      : s->validation > 0  ? "validation"
                                           : NULL;
    if (!lacks_labels(s)) return KITH_OK;
    if (*s->features)
        return ki_fail(err, KITH_EINVAL,
                       "labels is false, and the data is features; without labels wanted images");
    if (!key) return KITH_OK;
    ki_fail(err, KITH_EINVAL,
            "labels is false, and %s is given; without classes there is nothing to hold out", key);
    return ki_hint(err, KITH_EINVAL, "leave %s out: all images of the set train", key);
}

static kith_status check_source(const settings *s, kith_error *err) {
    if (*s->features && *s->root) {
        ki_fail(err, KITH_EINVAL, "both root and features are given; wanted one of them");
        return ki_hint(err, KITH_EINVAL, "root is for images, features for vectors made elsewhere");
    }
    KI_TRY(check_unlabelled(s, err));
    if (*s->labels && !lacks_labels(s) && !*s->features)
        return ki_fail(err, KITH_EINVAL, "labels without features; images have their own classes");
    if (*s->features && strcmp(s->dataset, "auto") != 0 && strcmp(s->dataset, "features") != 0)
        return ki_fail(err, KITH_EINVAL, "dataset is %s, and features are given; wanted one of them",
                       s->dataset);
    return KITH_OK;
}

static kith_status check(const settings *s, int64_t n_folds, kith_error *err) {
    KI_TRY(check_source(s, err));
    const int64_t folds = n_folds > 1 ? n_folds : s->folds;
    const char *other = NULL;
    if (n_folds > 1 && s->folds > 0) other = "data.folds";
    if (folds > 0 && s->validation > 0) other = "validation";
    if (folds > 0 && *s->split) other = "split";
    if (!other) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "both %s and folds are given; wanted one of them", other);
    return ki_hint(err, KITH_EINVAL, "each of the %lld folds holds out a part of the training classes itself",
                   (long long)folds);
}

/* Errors begin with the section's name. */
static kith_status read(const ki_value *section, const char *where, int64_t n_folds, settings *ret,
                        kith_error *err) {
    KI_TRY(ki_options_parse(ki_data_options, section, NULL, where, ret, err));
    const kith_status status = check(ret, n_folds, err);
    return status == KITH_OK ? status : ki_prefix(err, status, "%s", where);
}

static bool is_list(const ki_value *section) { return section && section->kind == KI_VALUE_LIST; }

/* "data", or "data.1" of an item of a list. */
static const char *name_item(bool is_one, size_t i, char *buf, size_t bytes) {
    if (is_one) return "data";
    ki_snprintf(buf, bytes, "data.%zu", i);
    return buf;
}

bool ki_data_is_features(const ki_value *section) {
    settings s;
    if (is_list(section)) return false;
    return ki_options_parse(ki_data_options, section, NULL, "data", &s, NULL) == KITH_OK &&
           (*s.features || strcmp(s.dataset, "features") == 0);
}

static const char *root_of(const ki_value *section) {
    const ki_value *root = ki_value_get(section, "root");
    return root && root->kind == KI_VALUE_SCALAR ? root->text : "";
}

/* The same folder, by whatever path. */
static bool is_same_place(const char *a, const char *b) {
    struct stat one, two;
    if (stat(a, &one) != 0 || stat(b, &two) != 0) return strcmp(a, b) == 0;
    return one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

/* Its images would be two images each: the nearest neighbour of every one its copy, and a class two classes. */
static kith_status check_twice(const ki_value *list, kith_error *err) {
    size_t i = 0;
    for (const ki_value *v = list->first; v; v = v->next, i++) {
        size_t k = 0;
        for (const ki_value *u = list->first; u != v; u = u->next, k++) {
            if (!*root_of(v) || !is_same_place(root_of(u), root_of(v))) continue;
            ki_fail(err, KITH_EINVAL, "data.%zu and data.%zu are the same: %.200s", k, i, root_of(v));
            return ki_hint(err, KITH_EINVAL,
                           "name each data set once; weight says how much of a batch it is");
        }
    }
    return KITH_OK;
}

static kith_status check_list(const ki_value *list, int64_t n_folds, kith_error *err) {
    if (list->n_items < 1 || list->n_items > MOST_SETS)
        return ki_fail(err, KITH_EINVAL, "data lists %zu sets; wanted 1 to %d", list->n_items, MOST_SETS);
    KI_TRY(check_twice(list, err));
    if (n_folds <= 1) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "folds is %lld, and data is a list; folds are parts of one data set",
            (long long)n_folds);
    return ki_hint(err, KITH_EINVAL, "give a set of the list folds and fold, one run for each");
}

/* A weight that is not said means something else than one of 0. */
static bool has_no_part(const ki_value *section, const settings *s) {
    const ki_value *weight = ki_value_get(section, "weight");
    return weight && weight->kind == KI_VALUE_SCALAR && !(s->weight > 0);
}

kith_status ki_data_check(const ki_value *section, int64_t n_folds, kith_error *err) {
    settings s;
    char where[32];
    size_t i = 0, n_weights = 0;
    if (!is_list(section)) return read(section, "data", n_folds, &s, err);
    KI_TRY(check_list(section, n_folds, err));
    for (const ki_value *v = section->first; v; v = v->next) {
        KI_TRY(read(v, name_item(false, i, where, sizeof where), 1, &s, err));
        if (!*s.root && !*s.features) {
            ki_fail(err, KITH_EINVAL, "data.%zu: there is no root", i);
            return ki_hint(err, KITH_EINVAL, "say where the images are, as in --set data.%zu.root=photos", i);
        }
        if (has_no_part(v, &s)) {
            ki_fail(err, KITH_EINVAL, "data.%zu: weight is 0; wanted more, as this is its part of a batch",
                    i);
            return ki_hint(err, KITH_EINVAL, "leave the set out, or leave out all weights");
        }
        n_weights += s.weight > 0;
        if (*s.features)
            return ki_fail(err, KITH_EUNSUPPORTED,
                           "data.%zu: features; several data sets are files of images", i);
        i++;
    }
    if (n_weights == 0 || n_weights == i) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "data: %zu of %zu sets have a weight; wanted all or none", n_weights, i);
    return ki_hint(err, KITH_EINVAL, "without weights a set's part of a batch is by its number of images");
}

static kith_status open_one(const ki_value *section, const char *where, kith_dataset **ret_set,
                            kith_error *err) {
    settings s;
    kith_dataset *set = NULL;
    KI_TRY(read(section, where, 1, &s, err));
    if (!*s.root && !*s.features) {
        ki_fail(err, KITH_EINVAL, "%s: there is no root", where);
        return ki_hint(err, KITH_EINVAL,
                       "say where the data is, as in data: {dataset: cub, root: data/CUB_200_2011}");
    }
    if (*s.features)
        KI_TRY(kith_dataset_open_features(s.features, *s.labels ? s.labels : NULL, &set, err));
    else if (lacks_labels(&s))
        KI_TRY(ki_dataset_open_unlabelled(s.dataset, s.root, &set, err));
    else
        KI_TRY(kith_dataset_open(s.dataset, s.root, &set, err));
    const kith_status status = apply_splits(set, &s, err);
    if (status != KITH_OK) {
        kith_dataset_free(set);
        return ki_prefix(err, status, "%s", where);
    }
    set->weight = s.weight;
    *ret_set = set;
    return KITH_OK;
}

static kith_status open_list(const ki_value *section, kith_dataset **ret_set, kith_error *err) {
    kith_dataset *set[MOST_SETS] = {0};
    char where[32];
    size_t n = 0;
    kith_status status = check_list(section, 1, err);
    for (const ki_value *v = section->first; v && status == KITH_OK; v = v->next) {
        status = open_one(v, name_item(false, n, where, sizeof where), &set[n], err);
        n += status == KITH_OK;
    }
    if (status == KITH_OK) return ki_dataset_join(set, n, ret_set, err);
    for (size_t i = 0; i < n; i++) kith_dataset_free(set[i]);
    return status;
}

/* A set without labels is one of a list of one: the same sampler takes from it. */
kith_status ki_data_open(const ki_value *section, kith_dataset **ret_set, kith_error *err) {
    kith_dataset *set = NULL;
    if (is_list(section)) return open_list(section, ret_set, err);
    KI_TRY(open_one(section, "data", &set, err));
    if (ki_data_lacks_labels(section)) return ki_dataset_join(&set, 1, ret_set, err);
    *ret_set = set;
    return KITH_OK;
}

kith_status kith_dataset_open_recipe(const char *recipe_path, kith_dataset **ret_set, kith_error *err) {
    KI_NEED(err, recipe_path, ret_set);
    kith_status status = KITH_OK;
    ki_arena arena = {0};
    ki_value *root = NULL;
    ki_run_paths paths = {0};
    KI_CHECK(ki_yaml_read(recipe_path, &arena, &root, err));
    ki_value_drop_nothings(root);
    const ki_value *section = ki_value_get(root, "data");
    KI_CHECK(ki_run_paths_beside(recipe_path, &paths, err));
    for (size_t i = 0; i < KI_N_DATA_PLACES; i++) {
        const ki_value *first = is_list(section) ? section->first : section;
        for (const ki_value *v = first; v; v = is_list(section) ? v->next : NULL) {
            if (strcmp(ki_data_places[i], "labels") == 0 && ki_data_lacks_labels(v)) continue;
            KI_CHECK(ki_run_paths_resolve(&paths, &arena, v, ki_data_places[i], err));
        }
    }
    status = section ? ki_data_open(section, ret_set, err)
                     : ki_fail(err, KITH_EINVAL, "there is no data: section");
    if (status != KITH_OK) ki_prefix(err, status, "%s", recipe_path);
done:
    ki_arena_release(&arena);
    return status;
}
