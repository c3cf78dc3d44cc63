/* Reading the `data:` section. */
#include "data/section.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/argument.h"
#include "io/run_paths.h"
#include "io/yaml.h"

typedef struct settings {
    const char *dataset, *root, *features, *labels, *split;
    int64_t train_classes, folds, fold, split_seed;
    double validation;
} settings;

const ki_option ki_data_options[] = {
    KI_OPTION_TEXT(settings, dataset, "auto", "the layout (see `kith list datasets`), or auto to find out",
                   "ours"),
    KI_OPTION_TEXT(settings, root, "", "the folder or list file", "ours"),
    KI_OPTION_LATER(TEXT, settings, features, "",
                    "instead of root: features made elsewhere, a .npy of float32 or float16 [rows, numbers]",
                    "ours"),
    KI_OPTION_LATER(TEXT, settings, labels, "",
                    "a label for each row of features: .npy, .txt or .csv; empty: NAME.labels.* beside them",
                    "ours"),
    KI_OPTION_INT(settings, train_classes, 0, 0, INT32_MAX,
                  "the first so many classes train; 0: the set's own split", "ours"),
    KI_OPTION_REAL(settings, validation, 0, 0, 0.9, "part of the training classes held out for validation",
                   "ours"),
    KI_OPTION_INT(settings, folds, 0, 0, 1000, "cross-validation: parts of the training classes", "ours"),
    KI_OPTION_INT(settings, fold, 0, 0, 999, "cross-validation: the part held out, from 0", "ours"),
    KI_OPTION_INT(settings, split_seed, 0, 0, 0x1p53, "which classes are held out", "ours"),
    KI_OPTION_TEXT(settings, split, "", "a split file (class,split) instead of drawing one", "ours"),
    KI_OPTION_END};

const char *const ki_data_places[KI_N_DATA_PLACES] = {"root", "features", "labels", "split"};

static kith_status apply_splits(kith_dataset *set, const settings *s, kith_error *err) {
    if (s->train_classes > 0) KI_TRY(kith_dataset_split_first(set, (int32_t)s->train_classes, err));
    if (*s->split) return kith_dataset_split_read(set, s->split, err);
    if (s->folds > 0)
        return kith_dataset_hold_out_fold(set, (int)s->folds, (int)s->fold, (uint64_t)s->split_seed, err);
    if (s->validation > 0) return kith_dataset_hold_out(set, s->validation, (uint64_t)s->split_seed, err);
    return KITH_OK;
}

static kith_status check_source(const settings *s, kith_error *err) {
    if (*s->features && *s->root) {
        ki_fail(err, KITH_EINVAL, "data: both root and features are given; wanted one of them");
        return ki_hint(err, KITH_EINVAL, "root is for images, features for vectors made elsewhere");
    }
    if (*s->labels && !*s->features)
        return ki_fail(err, KITH_EINVAL, "data: labels without features; images have their own classes");
    if (*s->features && strcmp(s->dataset, "auto") != 0 && strcmp(s->dataset, "features") != 0)
        return ki_fail(err, KITH_EINVAL, "data: dataset is %s, and features are given; wanted one of them",
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
    ki_fail(err, KITH_EINVAL, "data: both %s and folds are given; wanted one of them", other);
    return ki_hint(err, KITH_EINVAL, "each of the %lld folds holds out a part of the training classes itself",
                   (long long)folds);
}

bool ki_data_is_features(const ki_value *section) {
    settings s;
    return ki_options_parse(ki_data_options, section, NULL, "data", &s, NULL) == KITH_OK &&
           (*s.features || strcmp(s.dataset, "features") == 0);
}

kith_status ki_data_check(const ki_value *section, int64_t n_folds, kith_error *err) {
    settings s;
    KI_TRY(ki_options_parse(ki_data_options, section, NULL, "data", &s, err));
    return check(&s, n_folds, err);
}

kith_status ki_data_open(const ki_value *section, kith_dataset **ret_set, kith_error *err) {
    settings s;
    kith_dataset *set = NULL;
    KI_TRY(ki_options_parse(ki_data_options, section, NULL, "data", &s, err));
    if (!*s.root && !*s.features) {
        ki_fail(err, KITH_EINVAL, "data: there is no root");
        return ki_hint(err, KITH_EINVAL,
                       "say where the data is, as in data: {dataset: cub, root: data/CUB_200_2011}");
    }
    KI_TRY(check(&s, 1, err));
    if (*s.features)
        KI_TRY(kith_dataset_open_features(s.features, *s.labels ? s.labels : NULL, &set, err));
    else
        KI_TRY(kith_dataset_open(s.dataset, s.root, &set, err));
    const kith_status status = apply_splits(set, &s, err);
    if (status != KITH_OK) {
        kith_dataset_free(set);
        return ki_prefix(err, status, "data");
    }
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
    for (size_t i = 0; i < KI_N_DATA_PLACES; i++)
        KI_CHECK(ki_run_paths_resolve(&paths, &arena, section, ki_data_places[i], err));
    status = section ? ki_data_open(section, ret_set, err)
                     : ki_fail(err, KITH_EINVAL, "there is no data: section");
    if (status != KITH_OK) ki_prefix(err, status, "%s", recipe_path);
done:
    ki_arena_release(&arena);
    return status;
}
