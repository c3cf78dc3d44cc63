/* The data section of a recipe: what goes together, and which classes it leaves for training. */
#include "base/arena.h"
#include "data/miniature.h"
#include "data/section.h"
#include "io/yaml.h"

static ki_arena arena;

static const ki_value *section_of(const char *text) {
    ki_value *root = NULL;
    kith_error err = {0};
    assert_ok(ki_yaml_parse(text, strlen(text), "recipe", &arena, &root, &err), &err);
    return root;
}

static void test_check(void **state) {
    (void)state;
    static const struct {
        const char *section;
        int n_folds; /* of the recipe */
        const char *message;
    } rows[] = {
        {"{root: photos}", 1, NULL},
        {"{root: photos}", 2, NULL},
        {"{root: photos, validation: 0.2}", 1, NULL},
        {"{root: photos, split: list.csv}", 1, NULL},
        {"{root: photos, folds: 3, fold: 1}", 1, NULL},
        {"{root: photos, folds: 3}", 2, "data: both data.folds and folds are given; wanted one of them"},
        {"{root: photos, folds: 3, validation: 0.2}", 1, "data: both validation and folds are given"},
        {"{root: photos, validation: 0.2}", 2, "data: both validation and folds are given"},
        {"{root: photos, folds: 3, split: list.csv}", 1, "data: both split and folds are given"},
        {"{root: photos, split: list.csv}", 2, "data: both split and folds are given"},
        {"{rot: photos}", 1, "data: unknown option 'rot'"},
        {"{root: photos, validation: 1}", 1, "validation is '1'"},
        {"{root: photos, labels: false}", 1, NULL},
        {"{root: photos, labels: false, validation: 0.2}", 1,
         "data: labels is false, and validation is given"},
        {"{root: photos, labels: yes.txt}", 1, "data: labels without features"},
        {"{features: x.npy, labels: false}", 1, "data: labels is false, and the data is features"},
        {"{root: photos, weight: -1}", 1, "weight is '-1'"},
        {"[{root: a, validation: 0.2}, {root: b, labels: false}]", 1, NULL},
        {"[{root: a, weight: 2}, {root: b, weight: 1}]", 1, NULL},
        {"[{root: a, weight: 2}, {root: b}]", 1, "data: 1 of 2 sets have a weight; wanted all or none"},
        {"[{root: a, weight: 0}, {root: b, weight: 0}]", 1, "data.0: weight is 0"},
        {"[{root: a, weight: 2}, {root: b, weight: 0}]", 1, "data.1: weight is 0"},
        {"[{root: a}, {root: b}, {root: a, labels: false}]", 1, "data.0 and data.2 are the same: a"},
        {"[{root: /tmp}, {root: /tmp/../tmp/.}]", 1, "data.0 and data.1 are the same: /tmp/../tmp/."},
        {"[{root: a}, {rot: b}]", 1, "data.1: unknown option 'rot'"},
        {"[{root: a}, {validation: 0.2}]", 1, "data.1: there is no root"},
        {"[{root: a}, {features: b.npy}]", 1, "data.1: features; several data sets are files of images"},
        {"[{root: a}, {root: b}]", 3, "folds is 3, and data is a list"},
        {"[]", 1, "data lists 0 sets; wanted 1 to 64"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        const kith_status status = ki_data_check(section_of(rows[i].section), rows[i].n_folds, &err);
        if ((status != KITH_OK) != (rows[i].message != NULL))
            fail_msg("%s with %d folds: %s", rows[i].section, rows[i].n_folds,
                     status == KITH_OK ? "accepted" : err.message);
        if (rows[i].message && !strstr(err.message, rows[i].message))
            fail_msg("%s: \"%s\", wanted \"%s\"", rows[i].section, err.message, rows[i].message);
    }
    ki_arena_release(&arena);
}

/* Ten classes of two images: how many classes each split has. */
static void test_open(void **state) {
    (void)state;
    char list[4096] = "path,label\n", path[1024], section[2048];
    for (int i = 0; i < 20; i++) {
        char line[64];
        snprintf(line, sizeof line, "%d.jpg,class %d\n", i, i / 2);
        strcat(list, line);
        snprintf(path, sizeof path, "%s/%d.jpg", testing_folder(), i);
        put_text(path, "looked for, not read");
    }
    snprintf(path, sizeof path, "%s/list.csv", testing_folder());
    put_text(path, list);
    static const struct {
        const char *splits;
        int n_train, n_validation, n_test; /* classes */
    } rows[] = {
        {"train_classes: 6", 6, 0, 4},
        {"train_classes: 6, validation: 0.5", 3, 3, 4},
        {"train_classes: 6, folds: 3, fold: 2", 4, 2, 4},
        {"train_classes: 10, folds: 5", 8, 2, 0},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_dataset *set = NULL;
        kith_error err = {0};
        kith_split_summary s[3];
        snprintf(section, sizeof section, "{root: '%s', %s}", path, rows[i].splits);
        assert_ok(ki_data_open(section_of(section), &set, &err), &err);
        static const kith_split splits[] = {KITH_SPLIT_TRAIN, KITH_SPLIT_VALIDATION, KITH_SPLIT_TEST};
        for (int k = 0; k < 3; k++) assert_ok(kith_dataset_summary(set, splits[k], &s[k], &err), &err);
        if (s[0].n_classes != rows[i].n_train || s[1].n_classes != rows[i].n_validation ||
            s[2].n_classes != rows[i].n_test)
            fail_msg("%s: %d, %d and %d classes", rows[i].splits, (int)s[0].n_classes, (int)s[1].n_classes,
                     (int)s[2].n_classes);
        kith_dataset_free(set);
    }
    kith_dataset *set = NULL;
    kith_error err = {0};
    assert_int_equal(ki_data_open(section_of("{validation: 0.5}"), &set, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "data: there is no root"));
    snprintf(section, sizeof section, "{root: '%s', folds: 3, split: list.csv}", path);
    assert_int_equal(ki_data_open(section_of(section), &set, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "both split and folds"));
    assert_null(set);
    ki_arena_release(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_check), cmocka_unit_test(test_open)};
    return cmocka_run_group_tests_name("data/section", tests, NULL, testing_tear_down);
}
