/* Several data sets as one, and sets without labels: items, classes, names, splits and the hash. */
#include "base/alloc.h"
#include "base/arena.h"
#include "data/dataset/dataset.h"
#include "data/miniature.h"
#include "data/section.h"
#include "io/yaml.h"

static ki_arena arena;

static void make_sets(void) {
    static const char *const files[] = {
        "birds/rook/1.jpg", "birds/rook/2.jpg",   "birds/jay/1.jpg", "birds/jay/2.jpg", "birds/wren/1.jpg",
        "birds/wren/2.jpg", "cars/jay/1.jpg",     "cars/jay/7.jpg",  "cars/van/1.jpg",  "cars/van/2.jpg",
        "flat/1.jpg",       "flat/deep/er/2.jpg", "empty/readme.txt"};
    for (size_t i = 0; i < N_ROWS(files); i++) put_text(in_folder("%s", files[i]), "looked for, not read");
}

static kith_status open_try(const char *section, kith_dataset **ret, kith_error *err) {
    char text[4096];
    const char *f = testing_folder();
    ki_value *root = NULL;
    snprintf(text, sizeof text, section, f, f, f, f);
    assert_ok(ki_yaml_parse(text, strlen(text), "recipe", &arena, &root, err), err);
    *ret = NULL;
    return ki_data_open(root, ret, err);
}

static kith_dataset *open_set(const char *section) {
    kith_dataset *set = NULL;
    kith_error err = {0};
    assert_ok(open_try(section, &set, &err), &err);
    return set;
}

static const char three[] =
    "[{root: %s/birds, test: false, validation: 0.3}, {root: %s/cars}, {root: %s/flat, labels: false}]";

static void test_items_and_classes(void **state) {
    (void)state;
    kith_dataset *set = open_set(three);
    static const char *const names[] = {"0/jay/1.jpg",  "0/jay/2.jpg",  "0/rook/1.jpg", "0/rook/2.jpg",
                                        "0/wren/1.jpg", "0/wren/2.jpg", "1/jay/1.jpg",  "1/jay/7.jpg",
                                        "1/van/1.jpg",  "1/van/2.jpg",  "2/1.jpg",      "2/deep/er/2.jpg"};
    static const char *const classes[] = {"0/jay", "0/rook", "0/wren", "1/jay", "1/van", "2/no class"};
    assert_int_equal(set->n_items, N_ROWS(names));
    assert_int_equal(set->n_classes, N_ROWS(classes));
    for (size_t i = 0; i < N_ROWS(names); i++) {
        assert_string_equal(ki_dataset_item_name(set, i), names[i]);
        assert_int_equal(set->item[i].label, i < 10 ? i / 2 : 5);
        assert_true(strncmp(set->item[i].path, testing_folder(), strlen(testing_folder())) == 0);
    }
    for (size_t c = 0; c < N_ROWS(classes); c++) {
        assert_string_equal(kith_dataset_class_name(set, (int64_t)c), classes[c]);
        assert_int_equal(kith_dataset_class_count(set, (int64_t)c), 2);
        assert_int_equal(ki_dataset_is_class(set, (int32_t)c), c < 5);
    }
    size_t first = 0, n = 0;
    ki_dataset_part(set, 2, &first, &n);
    assert_int_equal(first, 10);
    assert_int_equal(n, 2);
    kith_dataset_free(set);
}

static int64_t count(const kith_dataset *set, kith_split split, size_t from, size_t to) {
    int64_t n = 0;
    for (size_t i = from; i < to; i++) n += set->item[i].split == split;
    return n;
}

/* Each set has its own: the first tests nothing and holds a class out, the second tests its second half, the third trains. */
static void test_splits_are_of_each_set(void **state) {
    (void)state;
    kith_dataset *set = open_set(three);
    assert_int_equal(count(set, KITH_SPLIT_VALIDATION, 0, 6), 2);
    assert_int_equal(count(set, KITH_SPLIT_TEST, 0, 6), 0);
    assert_int_equal(count(set, KITH_SPLIT_TEST, 6, 10), 2);
    assert_int_equal(count(set, KITH_SPLIT_VALIDATION, 6, 10), 0);
    assert_int_equal(count(set, KITH_SPLIT_TRAIN, 10, 12), 2);
    kith_dataset_free(set);
}

static void hash_of(const char *section, char ret[65]) {
    kith_dataset *set = open_set(section);
    kith_dataset_hash(set, -1, ret);
    kith_dataset_free(set);
}

static void test_the_hash_tells_sets_apart(void **state) {
    (void)state;
    static const char *const others[] = {"[{root: %s/birds}, {root: %s/cars}]",
                                         "[{root: %s/cars}, {root: %s/birds}]",
                                         "[{root: %s/birds}, {root: %s/cars, labels: false}]",
                                         "[{root: %s/birds}]",
                                         "{root: %s/birds}",
                                         "{root: %s/birds, labels: false}"};
    char hash[N_ROWS(others)][65], again[65];
    for (size_t i = 0; i < N_ROWS(others); i++) {
        hash_of(others[i], hash[i]);
        for (size_t k = 0; k < i; k++) {
            if (strcmp(hash[i], hash[k]) == 0) fail_msg("%s and %s have one hash", others[i], others[k]);
        }
    }
    hash_of(others[0], again);
    assert_string_equal(hash[0], again);
}

/* data.csv says what is gone, of which set. */
static void test_differences_are_named(void **state) {
    (void)state;
    kith_error err = {0};
    ki_buffer words = {.err = &err};
    char list[4096];
    kith_dataset *set = open_set(three);
    snprintf(list, sizeof list, "%s", in_folder("data.csv"));
    assert_ok(ki_dataset_list_write(set, list, &err), &err);
    kith_dataset_free(set);
    assert_int_equal(0, remove(in_folder("cars/jay/7.jpg")));
    set = open_set(three);
    assert_ok(ki_dataset_compare(set, list, false, &words, &err), &err);
    if (words.n == 0 || !strstr(words.data, "1 image removed (1/jay/7.jpg)"))
        fail_msg("found: %.*s", (int)words.n, words.data ? words.data : "");
    ki_buffer_release(&words);
    kith_dataset_free(set);
    put_text(in_folder("cars/jay/7.jpg"), "there again");
}

/* A layout that is named gives its training images. */
static void test_a_layout_without_its_labels(void **state) {
    (void)state;
    put_text(in_folder("list.csv"),
             "path,label,split\nbirds/rook/1.jpg,a,train\nbirds/jay/1.jpg,b,train\n"
             "birds/wren/1.jpg,c,test\n");
    kith_dataset *set = open_set("{root: %s/list.csv, dataset: csv, labels: false}");
    assert_int_equal(set->n_items, 2);
    assert_int_equal(set->n_classes, 1);
    assert_false(ki_dataset_is_class(set, 0));
    kith_dataset_free(set);
}

static void test_mistakes(void **state) {
    (void)state;
    static const struct {
        const char *section, *line;
    } rows[] = {
        {"[{root: %s/birds}, {root: %s/nowhere}]", "nowhere: there is no such folder or file"},
        {"[{root: %s/birds}, {root: %s/nowhere, labels: false}]", "nowhere: there is no such folder"},
        {"[{root: %s/birds}, {root: %s/empty, labels: false}]", "empty: no images found"},
        {"[{root: %s/birds}, {root: %s/empty}]", "empty"},
        {"[{root: %s/birds}, {root: %s/cars, labels: false, validation: 0.5}]",
         "data.1: labels is false, and validation is given"},
        {"[{root: %s/birds}, {root: %s/cars, validation: 0.5, folds: 2}]",
         "data.1: both validation and folds are given"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_dataset *set = NULL;
        kith_error err = {0};
        if (open_try(rows[i].section, &set, &err) == KITH_OK) fail_msg("%s was taken", rows[i].section);
        if (!strstr(err.message, rows[i].line)) fail_msg("found: %s\nwanted: %s", err.message, rows[i].line);
        assert_null(set);
    }
}

static int set_up(void **state) {
    (void)state;
    make_sets();
    return 0;
}

static int tear_down(void **state) {
    ki_arena_release(&arena);
    return testing_tear_down(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items_and_classes),           cmocka_unit_test(test_splits_are_of_each_set),
        cmocka_unit_test(test_the_hash_tells_sets_apart),   cmocka_unit_test(test_differences_are_named),
        cmocka_unit_test(test_a_layout_without_its_labels), cmocka_unit_test(test_mistakes)};
    return cmocka_run_group_tests_name("data/join", tests, set_up, tear_down);
}
