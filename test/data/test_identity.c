/* Which items a set has, as a hash and as a list, and how two sets differ in words. */
#include "data/dataset/dataset.h"

#include <string.h>

#include "base/alloc.h"
#include "data/miniature.h"

#define HEAD "path,label,split\n"
static const char first[] =
    HEAD "a/1.png,a,train\na/2.png,a,train\nb/1.png,b,validation\nc/1.png,c,test\nc/2.png,c,test\n";

/* The images need not be there. */
static kith_dataset *make(const char *root, const char *manifest) {
    kith_dataset *set = NULL;
    kith_error err = {0};
    assert_ok(ki_dataset_new(&ki_dataset_csv, root, &set, &err), &err);
    assert_ok(ki_csv_parse(set, root, manifest, strlen(manifest), &err), &err);
    return set;
}

/* The values are those of kith 0.1: runs that it began are compared by them. */
static void test_hashes_stay(void **state) {
    (void)state;
    static const char all[] = "5d5c621eacc833fe9e1ba02f8f23dd2fb57ced2a17905aff1e16cc6faf4cb326";
    static const char test[] = "c8c12c4fe87f1949415698340a5effe37112f355e1154503a1dba60daa4813f7";
    static const char *const roots[] = {"root", "/moved/to another place"};
    for (size_t i = 0; i < N_ROWS(roots); i++) {
        char hex[65];
        kith_dataset *set = make(roots[i], first);
        kith_dataset_hash(set, -1, hex);
        assert_string_equal(hex, all);
        kith_dataset_hash(set, KITH_SPLIT_TEST, hex);
        assert_string_equal(hex, test);
        kith_dataset_free(set);
    }
}

static const char *list_of(const char *manifest) {
    kith_dataset *set = make("root", manifest);
    kith_error err = {0};
    assert_ok(ki_dataset_list_write(set, in_folder("list.csv"), &err), &err);
    kith_dataset_free(set);
    return in_folder("list.csv");
}

static void check(const char *then, const char *now, bool folds_differ, const char *wanted) {
    ki_buffer words = {0};
    kith_error err = {0};
    const char *list = list_of(then);
    kith_dataset *set = make("elsewhere", now);
    assert_ok(ki_dataset_compare(set, list, folds_differ, &words, &err), &err);
    ki_buffer_add(&words, "", 1);
    if (strcmp(words.data, wanted) != 0) fail_msg("'%s'; wanted '%s'", words.data, wanted);
    ki_buffer_release(&words);
    kith_dataset_free(set);
}

static void test_words(void **state) {
    (void)state;
    static const struct {
        const char *then, *now, *wanted;
        bool folds_differ;
    } rows[] = {
        {first, first, "", false},
        {first, first, "", true},
        /* Another order. */
        {HEAD "a/1,a,train\na/2,a,train\n", HEAD "a/2,a,train\na/1,a,train\n", "", false},
        {HEAD "a/1,a,train\nb/1,b,test\n", HEAD "a/1,a,train\n", "1 class removed (b)", false},
        {HEAD "a/1,a,train\n", HEAD "a/1,a,train\nb/1,b,test\nc/1,c,test\n", "2 classes added (b, c)", false},
        {HEAD "a/1,a,train\na/2,a,train\n", HEAD "a/1,a,train\n", "1 image removed (a/2)", false},
        {HEAD "a/1,a,train\n", HEAD "a/1,a,train\na/2,a,train\n", "1 image added (a/2)", false},
        {HEAD "a/1,a,train\nb/1,b,test\n", HEAD "a/1,a,test\nb/1,b,test\n",
         "1 class moved (a from train to test)", false},
        {HEAD "a/1,a,train\na/2,a,train\n", HEAD "a/1,a,train\na/2,a,test\n",
         "1 class moved (a from train to train and test)", false},
        {HEAD "a/1,a,train\na/2,a,test\na/3,a,test\n", HEAD "a/1,a,test\na/2,a,train\na/3,a,test\n",
         "2 images in another class or split (a/1, a/2)", false},
        {HEAD "x,a,train\ny,b,train\nz,b,train\n", HEAD "x,a,train\ny,a,train\nz,b,train\n",
         "1 image in another class or split (y)", false},
        /* What is held out counts, but between folds. */
        {HEAD "a/1,a,train\nb/1,b,validation\n", HEAD "a/1,a,validation\nb/1,b,train\n",
         "2 classes moved (a from train to validation, b from validation to train)", false},
        {HEAD "a/1,a,train\nb/1,b,validation\n", HEAD "a/1,a,validation\nb/1,b,train\n", "", true},
        /* Names a list must quote; an image that is listed twice. */
        {HEAD "\"a,\"\"1\"\"\",\"a, \"\"b\"\"\",train\n", HEAD "\"a,\"\"1\"\"\",\"a, \"\"b\"\"\",train\n", "",
         false},
        {HEAD "a/1,a,train\na/1,a,train\n", HEAD "a/1,a,train\n", "1 image removed (a/1)", false},
        {HEAD "x,a,train\nx,b,train\nx,c,train\ny,b,train\n", HEAD "x,a,train\nx,c,train\ny,b,train\n",
         "1 image removed (x)", false},
        {HEAD "a/1,a,train\na/2,a,train\nb/1,b,test\n", HEAD "a/1,a,test\nb/1,b,test\n",
         "1 class moved (a from train to test), 1 image removed (a/2)", false},
        {HEAD "1,a,train\n2,a,train\n3,a,train\n4,a,train\n5,a,train\n6,a,train\n", HEAD "6,a,train\n",
         "5 images removed (1, 2, 3 and 2 more)", false},
        {HEAD "a/1,a,train\n",
         HEAD "a/1,a,train\na/a-very-long-folder-name/with-another-one-inside/and-a-file.png,a,train\n",
         "1 image added (…r-name/with-another-one-inside/and-a-file.png)", false},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++)
        check(rows[i].then, rows[i].now, rows[i].folds_differ, rows[i].wanted);
}

/* A split file has the training classes alone. */
static void test_a_list_of_classes(void **state) {
    (void)state;
    ki_buffer words = {0};
    kith_error err = {0};
    kith_dataset *set = make("root", first);
    assert_ok(kith_dataset_split_write(set, in_folder("split.csv"), &err), &err);
    assert_ok(ki_dataset_compare(set, in_folder("split.csv"), false, &words, &err), &err);
    assert_int_equal(words.n, 0);
    kith_dataset_free(set);
    set = make("root", HEAD "a/1,a,train\nd/1,d,train\ne/1,e,test\n");
    assert_ok(ki_dataset_compare(set, in_folder("split.csv"), false, &words, &err), &err);
    ki_buffer_add(&words, "", 1);
    assert_string_equal(words.data, "1 class removed (b), 1 class added (d)");
    ki_buffer_release(&words);
    kith_dataset_free(set);
}

static void test_broken_lists(void **state) {
    (void)state;
    static const char *const lists[] = {"", "path,label\n", "a,b,c\n", HEAD "a,a,nowhere\n", HEAD "\"a"};
    kith_dataset *set = make("root", first);
    for (size_t i = 0; i < N_ROWS(lists); i++) {
        ki_buffer words = {0};
        kith_error err = {0};
        put_text(in_folder("broken.csv"), lists[i]);
        assert_int_equal(ki_dataset_compare(set, in_folder("broken.csv"), false, &words, &err), KITH_EFORMAT);
        ki_buffer_release(&words);
    }
    kith_dataset_free(set);
}

static void test_without_memory(void **state) {
    (void)state;
    const char *list = list_of(HEAD "a/1,a,train\nx/1,x,test\n");
    char path[4096];
    snprintf(path, sizeof path, "%s", list);
    kith_dataset *set = make("root", first);
    for (int64_t n = 0;; n++) {
        ki_buffer words = {0};
        kith_error err = {0};
        ki_alloc_fail_after(n);
        const kith_status status = ki_dataset_compare(set, path, false, &words, &err);
        const bool has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        ki_buffer_release(&words);
        if (!has_failed) {
            assert_ok(status, &err);
            break;
        }
        assert_int_equal(status, KITH_ENOMEM);
    }
    kith_dataset_free(set);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hashes_stay),       cmocka_unit_test(test_words),
        cmocka_unit_test(test_a_list_of_classes), cmocka_unit_test(test_broken_lists),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
