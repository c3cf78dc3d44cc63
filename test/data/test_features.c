/* Sets of features: rows, labels, classes and splits. */
#include <math.h>
#include <unistd.h>

#include "data/dataset/dataset.h"
#include "data/features_file.h"
#include "data/loader/loader.h"

static kith_dataset *open_features(const char *features, const char *labels) {
    kith_error err;
    kith_dataset *set = NULL;
    assert_ok(kith_dataset_open_features(features_path(features), labels ? features_path(labels) : NULL, &set,
                                         &err),
              &err);
    return set;
}

/* Numbers are classes in rising order, whatever comes first in the file. */
static void test_numbers(void **state) {
    (void)state;
    kith_error err;
    kith_array labels;
    static const int64_t ids[] = {7, -2, 7, 30, -2, 8};
    features_write("a.npy", KITH_F32, 3, 2, 4);
    assert_ok(kith_array_init(KITH_I64, 1, (int64_t[]){6}, &labels, &err), &err);
    memcpy(labels.data, ids, sizeof ids);
    assert_ok(kith_npy_write(features_path("y.npy"), &labels, &err), &err);
    kith_array_release(&labels);
    kith_dataset *set = open_features("a.npy", "y.npy");
    assert_string_equal(kith_dataset_kind(set), "features");
    assert_int_equal(kith_dataset_count(set), 6);
    assert_int_equal(kith_dataset_n_features(set), 4);
    assert_int_equal(kith_dataset_n_classes(set), 4);
    static const char *const names[] = {"-2", "7", "8", "30"};
    for (int i = 0; i < 4; i++) assert_string_equal(kith_dataset_class_name(set, i), names[i]);
    static const int64_t wanted[] = {1, 0, 1, 3, 0, 2};
    for (int i = 0; i < 6; i++) {
        const kith_item item = kith_dataset_item(set, i);
        assert_int_equal(item.label, wanted[i]);
        /* The first half of the classes trains. */
        assert_int_equal(item.split, wanted[i] < 2 ? KITH_SPLIT_TRAIN : KITH_SPLIT_TEST);
    }
    assert_int_equal(kith_dataset_class_count(set, 0), 2);
    assert_non_null(strstr(kith_dataset_item(set, 5).path, "a.npy#5"));
    assert_ok(kith_dataset_split_first(set, 3, &err), &err);
    assert_int_equal(kith_dataset_item(set, 5).split, KITH_SPLIT_TRAIN);
    assert_int_equal(kith_dataset_item(set, 3).split, KITH_SPLIT_TEST);
    kith_dataset_free(set);
}

/* Names are classes in the order in which they appear; a file beside the features is found. */
static void test_names_beside(void **state) {
    (void)state;
    kith_error err;
    kith_dataset *set = NULL;
    features_write("b.npy", KITH_F16, 2, 2, 3);
    testing_write(features_path("b.labels.txt"), "oak\nelm\noak\nelm\n");
    set = open_features("b.npy", NULL);
    assert_string_equal(kith_dataset_class_name(set, 0), "oak");
    assert_string_equal(kith_dataset_class_name(set, 1), "elm");
    kith_dataset_free(set);
    assert_ok(kith_dataset_open("auto", features_path("b.npy"), &set, &err), &err);
    assert_string_equal(kith_dataset_kind(set), "features");
    assert_int_equal(kith_dataset_item(set, 3).label, 1);
    kith_dataset_free(set);
}

/* Where the rows lie and what their file is called is not what the data is. */
static void test_identity(void **state) {
    (void)state;
    char a[65], b[65], c[65];
    features_write("one.npy", KITH_F32, 2, 3, 4);
    features_write("two.npy", KITH_F32, 2, 3, 4);
    features_write_labels("y.npy", 2, 3, 0);
    features_write_labels("z.npy", 2, 3, 5);
    kith_dataset *first = open_features("one.npy", "y.npy"), *second = open_features("two.npy", "y.npy");
    kith_dataset *other = open_features("two.npy", "z.npy");
    kith_dataset_hash(first, KITH_SPLIT_ALL, a);
    kith_dataset_hash(second, KITH_SPLIT_ALL, b);
    kith_dataset_hash(other, KITH_SPLIT_ALL, c);
    assert_string_equal(a, b);
    kith_dataset_free(first);
    kith_dataset_free(second);
    kith_dataset_free(other);
}

static void test_refusals(void **state) {
    (void)state;
    kith_error err = {0};
    kith_dataset *set = NULL;
    features_write("lone.npy", KITH_F32, 2, 2, 3);
    assert_int_equal(kith_dataset_open_features(features_path("lone.npy"), NULL, &set, &err), KITH_EIO);
    assert_non_null(strstr(err.message, "lone.npy: there are no labels for its rows"));
    assert_int_equal(kith_dataset_open("features", features_path("lone.npy"), &set, &err), KITH_EIO);
    assert_non_null(strstr(err.message, "there are no labels for its rows"));
    testing_write(features_path("few.txt"), "a\nb\na\n");
    assert_int_equal(
        kith_dataset_open_features(features_path("lone.npy"), features_path("few.txt"), &set, &err),
        KITH_ESHAPE);
    assert_non_null(strstr(err.message, "holds 3 labels for the 4 rows of"));
    features_write("none.npy", KITH_F32, 0, 0, 3);
    features_write_labels("none.labels.npy", 0, 0, 0);
    assert_int_equal(kith_dataset_open_features(features_path("none.npy"), NULL, &set, &err), KITH_EFORMAT);
    assert_non_null(strstr(err.message, "has no rows; wanted at least one"));
    assert_null(set);
    /* Pictures of rows, and readers of images. */
    features_write_labels("lone.labels.npy", 2, 2, 0);
    set = open_features("lone.npy", NULL);
    ki_bytes bytes = {0};
    ki_image image = {0};
    assert_int_equal(ki_dataset_pixels(set, 1, &(ki_decode){0}, &bytes, &image, &err), KITH_EUNSUPPORTED);
    assert_non_null(strstr(err.message, "lone.npy#1 is a row of features; wanted an image"));
    kith_image_reader *reader = NULL;
    KITH_OPTIONS(kith_transform, transform);
    assert_int_equal(kith_image_reader_dataset(set, KITH_SPLIT_ALL, &transform, NULL, &reader, &err),
                     KITH_EUNSUPPORTED);
    kith_dataset_free(set);
}

/* Without labels rows can still be embedded: the data set of files has no classes. */
static void test_without_labels(void **state) {
    (void)state;
    kith_error err;
    kith_dataset *set = NULL;
    features_write("bare.npy", KITH_F32, 2, 2, 3);
    const char *path = features_path("bare.npy");
    assert_ok(kith_dataset_open_files(&path, 1, &set, &err), &err);
    assert_int_equal(kith_dataset_count(set), 4);
    assert_int_equal(kith_dataset_item(set, 2).label, -1);
    kith_dataset_free(set);
}

enum { N = 20, DIM = 5 };

/* A row with a number that is not finite is left out and named; the others come in order. */
static void test_loader(void **state) {
    (void)state;
    kith_error err;
    kith_array rows;
    features_write("nan.npy", KITH_F32, 2, N / 2, DIM);
    features_write_labels("nan.labels.npy", 2, N / 2, 0);
    assert_ok(kith_npy_read(features_path("nan.npy"), &rows, &err), &err);
    float *x = rows.data;
    x[7 * DIM + 3] = NAN;
    assert_ok(kith_npy_write(features_path("nan.npy"), &rows, &err), &err);
    kith_dataset *set = open_features("nan.npy", NULL);
    int64_t items[N];
    for (int i = 0; i < N; i++) items[i] = i;
    for (int64_t workers = 1; workers <= 3; workers++) {
        ki_loader *loader = NULL;
        const ki_loader_settings settings = {.n_workers = workers, .most_bad = -1};
        int64_t seen = 0;
        assert_ok(ki_loader_new_once(set, items, N, 8, &settings, &loader, &err), &err);
        for (;;) {
            ki_loader_batch batch;
            assert_ok(ki_loader_next(loader, &batch, &err), &err);
            if (batch.n == 0) break;
            for (int64_t i = 0; i < batch.n; i++, seen++) {
                const int64_t item = seen < 7 ? seen : seen + 1;
                assert_int_equal(batch.item[i], item);
                assert_int_equal(batch.label[i], item / (N / 2));
                assert_memory_equal((const float *)batch.data + i * DIM, x + item * DIM, DIM * sizeof *x);
            }
        }
        assert_int_equal(seen, N - 1);
        assert_int_equal(ki_loader_n_bad(loader), 1);
        assert_non_null(strstr(ki_loader_bad(loader, 0), "nan.npy#7 holds nan at 3; wanted finite numbers"));
        ki_loader_free(loader);
    }
    kith_scan scan = {0};
    assert_ok(kith_dataset_scan(set, true, NULL, NULL, &scan, &err), &err);
    assert_int_equal(scan.n_bad, 1);
    assert_int_equal(scan.n_read, N - 1);
    assert_int_equal(scan.width[1], DIM);
    kith_scan_release(&scan);
    ki_loader *loader = NULL;
    const ki_loader_settings bytes = {.format = KI_BATCH_BYTES};
    assert_int_equal(ki_loader_new_once(set, items, N, 8, &bytes, &loader, &err), KITH_EINVAL);
    kith_dataset_free(set);
    kith_array_release(&rows);
}

/* A loader over all rows in random batches; `read_here`: the caller reads. */
static ki_loader *start(const kith_dataset *set, bool read_here) {
    kith_error err;
    int64_t items[N];
    int32_t labels[N];
    ki_sampler *sampler = NULL;
    ki_sampler_settings batches;
    ki_loader *loader = NULL;
    for (int i = 0; i < N; i++) items[i] = i, labels[i] = set->item[i].label;
    ki_options_default(ki_sampler_options, &batches);
    batches.classes = 2;
    batches.images = 3;
    const ki_loader_settings settings = {
        .caller_computes = read_here, .bad = KI_BAD_REPLACE, .n_workers = 2, .most_bad = -1};
    assert_ok(ki_sampler_new(&batches, 5, items, labels, N, &sampler, &err), &err);
    assert_ok(ki_loader_new(set, sampler, 6, &settings, &loader, &err), &err);
    return loader;
}

/* The same batches whoever reads, also where a row has to be replaced. */
static void test_the_caller_reads(void **state) {
    (void)state;
    kith_error err;
    kith_array rows;
    static const kith_dtype types[] = {KITH_F32, KITH_F16};
    for (size_t t = 0; t < N_ROWS(types); t++) {
        features_write("here.npy", types[t], 2, N / 2, DIM);
        features_write_labels("here.labels.npy", 2, N / 2, 0);
        for (int is_bad = 0; is_bad <= 1; is_bad++) {
            if (is_bad) {
                assert_ok(kith_npy_read(features_path("here.npy"), &rows, &err), &err);
                const size_t width = types[t] == KITH_F32 ? 4 : 2;
                memset((char *)rows.data + 7 * DIM * width, 0xff, width); /* NaN */
                assert_ok(kith_npy_write(features_path("here.npy"), &rows, &err), &err);
                kith_array_release(&rows);
            }
            kith_dataset *set = open_features("here.npy", NULL);
            ki_loader *by_workers = start(set, false), *here = start(set, true);
            for (int i = 0; i < 200; i++) {
                ki_loader_batch a, b;
                assert_ok(ki_loader_next(by_workers, &a, &err), &err);
                assert_ok(ki_loader_next(here, &b, &err), &err);
                assert_int_equal(a.n, b.n);
                assert_int_equal(a.number, b.number);
                assert_memory_equal(a.item, b.item, (size_t)a.n * sizeof *a.item);
                assert_memory_equal(a.label, b.label, (size_t)a.n * sizeof *a.label);
                assert_memory_equal(a.data, b.data, (size_t)a.n * DIM * sizeof(float));
            }
            assert_int_equal(ki_loader_n_bad(here), is_bad);
            if (!is_bad)
                assert_int_equal(ki_loader_stats_get(here).n_decoded, 200 * 6); /* none was read ahead */
            ki_loader_free(by_workers);
            ki_loader_free(here);
            kith_dataset_free(set);
        }
    }
}

/* Somebody shortens the file while a network learns from it: one line that names it, and no signal. */
static void test_a_file_that_shrinks(void **state) {
    (void)state;
    kith_error err;
    features_write("shrinks.npy", KITH_F32, 2, N / 2, DIM);
    features_write_labels("shrinks.labels.npy", 2, N / 2, 0);
    for (int read_here = 0; read_here <= 1; read_here++) {
        kith_dataset *set = open_features("shrinks.npy", NULL);
        ki_loader *loader = start(set, read_here);
        ki_loader_batch batch;
        kith_status status = KITH_OK;
        assert_ok(ki_loader_next(loader, &batch, &err), &err);
        assert_int_equal(truncate(features_path("shrinks.npy"), 130), 0);
        for (int i = 0; i < 20 && status == KITH_OK; i++) status = ki_loader_next(loader, &batch, &err);
        assert_int_equal(status, KITH_EIO);
        if (!strstr(err.message, "shrinks.npy: it became shorter") || strchr(err.message, '\n'))
            fail_msg("'%s'", err.message);
        assert_int_equal(ki_loader_n_bad(loader), 0);
        ki_loader_free(loader);
        kith_dataset_free(set);
        features_write("shrinks.npy", KITH_F32, 2, N / 2, DIM);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),          cmocka_unit_test(test_names_beside),
        cmocka_unit_test(test_identity),         cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_without_labels),   cmocka_unit_test(test_loader),
        cmocka_unit_test(test_the_caller_reads), cmocka_unit_test(test_a_file_that_shrinks),
    };
    return cmocka_run_group_tests_name("data/features", tests, NULL, testing_tear_down);
}
