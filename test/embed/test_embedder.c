/* Images to vectors through the public API: every input gives the same values, in order; what cannot be read is said of
 * each file. */
#include <math.h>

#include "base/alloc.h"
#include "data/image/image.h"
#include "embed/pictures.h"

/* A list with every second file backwards, one that is not there and one that is no image. */
enum { N_LIST = 9, MISSING = 2, BROKEN = 5 };

static const char *const *make_list(const kith_dataset *set) {
    static char broken[1024];
    static const char *list[N_LIST];
    snprintf(broken, sizeof broken, "%s/broken.png", testing_folder());
    testing_write(broken, "no image");
    for (int i = 0; i < N_LIST; i++) list[i] = kith_dataset_item(set, N_FILES - 1 - 2 * i).path;
    list[MISSING] = "/nowhere/at/all.png";
    list[BROKEN] = broken;
    return list;
}

static void assert_row(const float *found, const float *wanted, const char *what, int i) {
    const double off = testing_relative_l2(found, wanted, DIM);
    if (!(off < 1e-5)) fail_msg("%s, image %d: values are %g off", what, i, off);
}

static void test_files_keep_their_order(void **state) {
    (void)state;
    kith_dataset *set = pictures_set();
    const char *const *list = make_list(set);
    kith_model *many = pictures_model("cpu", 4), *one = pictures_model("cpu", 1);
    float rows[N_LIST * DIM], alone[DIM];
    const float zeros[DIM] = {0};
    kith_status status[N_LIST];
    kith_error err = {0};
    memset(rows, 0x55, sizeof rows);
    assert_ok(kith_model_embed_files(many, list, N_LIST, &pictures_options, rows, status, &err), &err);
    for (int i = 0; i < N_LIST; i++) {
        if (i == MISSING || i == BROKEN) {
            assert_int_equal(status[i], i == MISSING ? KITH_EIO : KITH_EUNSUPPORTED);
            assert_memory_equal(rows + i * DIM, zeros, sizeof zeros);
            continue;
        }
        assert_int_equal(status[i], KITH_OK);
        assert_ok(kith_model_embed_files(one, &list[i], 1, &pictures_options, alone, NULL, &err), &err);
        assert_row(rows + i * DIM, alone, "in a list and alone", i);
    }
    /* Without statuses an unreadable file is an error that names it. */
    assert_true(kith_model_embed_files(many, list, N_LIST, &pictures_options, rows, NULL, &err) != KITH_OK);
    assert_true(strstr(err.message, "nowhere") || strstr(err.message, "broken"));
    /* When none can be read each says so. */
    assert_ok(kith_model_embed_files(many, &list[MISSING], 1, &pictures_options, rows, status, &err), &err);
    assert_int_equal(status[0], KITH_EIO);
    assert_memory_equal(rows, zeros, sizeof zeros);
    kith_model_free(many);
    kith_model_free(one);
    kith_dataset_free(set);
}

/* Files, floats that a reader made of them, and their pixels. */
static void test_inputs_agree(void **state) {
    (void)state;
    kith_dataset *set = pictures_set();
    kith_model *model = pictures_model("cpu", 8);
    float by_file[N_FILES * DIM], by_float[N_FILES * DIM], by_pixel[N_FILES * DIM];
    const char *paths[N_FILES];
    ki_image images[N_FILES] = {{0}};
    kith_pixels pixels[N_FILES];
    kith_error err = {0};
    for (int i = 0; i < N_FILES; i++) {
        ki_bytes bytes = {0};
        paths[i] = kith_dataset_item(set, i).path;
        assert_ok(ki_bytes_read(&bytes, paths[i], &err), &err);
        assert_ok(ki_image_decode(bytes.data, bytes.n, &(ki_decode){0}, &images[i], &err), &err);
        pixels[i] = (kith_pixels){images[i].w, images[i].h, images[i].channels, images[i].data};
        ki_bytes_release(&bytes);
    }
    assert_ok(kith_model_embed_files(model, paths, N_FILES, &pictures_options, by_file, NULL, &err), &err);
    assert_ok(kith_model_embed_pixels(model, pixels, N_FILES, &pictures_options, by_pixel, &err), &err);
    assert_memory_equal(by_file, by_pixel, sizeof by_file);

    kith_model_info info;
    kith_image_reader *reader = NULL;
    kith_image_batch batch;
    kith_model_info_get(model, &info);
    KITH_OPTIONS(kith_transform, t);
    t.resize_to = 20, t.crop_to = 16, t.channels = 1;
    t.pixel_scale = info.preprocess.scale;
    t.mean[0] = info.preprocess.mean[0], t.std[0] = info.preprocess.std[0];
    const kith_image_reader_options all = {.size = sizeof(kith_image_reader_options), .batch = N_FILES};
    assert_ok(kith_image_reader_new(paths, N_FILES, &t, &all, &reader, &err), &err);
    assert_ok(kith_image_reader_next(reader, &batch, &err), &err);
    assert_int_equal(batch.n, N_FILES);
    assert_ok(kith_model_embed_floats(model, batch.data, N_FILES, "embedding", by_float, &err), &err);
    assert_memory_equal(by_file, by_float, sizeof by_file);

    pixels[1].channels = 2;
    assert_int_equal(kith_model_embed_pixels(model, pixels, N_FILES, NULL, by_pixel, &err), KITH_ESHAPE);
    assert_non_null(strstr(err.message, "image 1 is 24 x 24 with 2 channels"));
    pixels[1] = (kith_pixels){.width = 4, .height = 4, .channels = 3};
    assert_int_equal(kith_model_embed_pixels(model, pixels, 2, NULL, by_pixel, &err), KITH_EINVAL);
    for (int i = 0; i < N_FILES; i++) ki_image_release(&images[i]);
    kith_image_reader_free(reader);
    kith_model_free(model);
    kith_dataset_free(set);
}

static int stop_at_second(void *user, int64_t n_done, int64_t n_all) {
    int *n_calls = user;
    assert_int_equal(n_all, N_FILES);
    assert_true(n_done >= 0 && n_done <= n_all);
    return ++*n_calls == 2;
}

/* The rows of a data set with labels, and an embedder that is as good as new after a stop. */
static void test_data_set(void **state) {
    (void)state;
    kith_dataset *set = NULL;
    kith_model *model = pictures_model("cpu", 6); /* the last batch is not full */
    kith_vectors *vectors = NULL;
    kith_array values;
    kith_error err = {0};
    float alone[DIM];
    int n_calls = 0;
    kith_embed_options options = pictures_options;
    assert_ok(kith_dataset_open("folder", pictures_folder(), &set, &err), &err);
    assert_ok(kith_dataset_split_first(set, N_CLASSES, &err), &err); /* all train */
    options.progress = stop_at_second;
    options.user = &n_calls;
    assert_int_equal(kith_model_embed_dataset(model, set, KITH_SPLIT_TRAIN, &options, &vectors, &err),
                     KITH_ECANCELED);
    assert_null(vectors);
    options.progress = NULL;
    assert_ok(kith_model_embed_dataset(model, set, KITH_SPLIT_TRAIN, &options, &vectors, &err), &err);
    assert_int_equal(kith_vectors_count(vectors), N_FILES);
    assert_int_equal(kith_vectors_n_bad(vectors), 0);
    assert_null(kith_vectors_bad(vectors, 0));
    assert_ok(kith_vectors_array(vectors, &values, &err), &err);
    assert_int_equal(values.n_dims, 2);
    assert_int_equal(values.dim[1], DIM);
    for (int i = 0; i < N_FILES; i++) {
        const kith_item item = kith_dataset_item(set, kith_vectors_items(vectors)[i]);
        assert_int_equal(kith_vectors_items(vectors)[i], i);
        assert_int_equal(kith_vectors_labels(vectors)[i], item.label);
        assert_ok(kith_model_embed_files(model, &item.path, 1, &pictures_options, alone, NULL, &err), &err);
        assert_row((const float *)values.data + i * DIM, alone, "of a data set and alone", i);
    }
    assert_int_equal(kith_model_embed_dataset(model, set, KITH_SPLIT_VALIDATION, NULL, &vectors, &err),
                     KITH_EINVAL);
    assert_non_null(strstr(err.message, "no validation images"));
    kith_vectors_free(vectors);
    kith_model_free(model);
    kith_dataset_free(set);
}

/* What a model cannot be asked. */
static void test_refusals(void **state) {
    (void)state;
    kith_dataset *set = pictures_set();
    const char *path = kith_dataset_item(set, 0).path;
    kith_model *model = pictures_model("cpu", 2);
    float row[DIM];
    kith_error err = {0};
    kith_embed_options options = {.size = sizeof(kith_embed_options), .resize = "huge"};
    assert_int_equal(kith_model_embed_files(model, &path, 1, &options, row, NULL, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "resize is 'huge'"));
    options = (kith_embed_options){.size = sizeof(kith_embed_options), .tap = "nose"};
    assert_int_equal(kith_model_embed_files(model, &path, 1, &options, row, NULL, &err), KITH_ENOTFOUND);
    assert_string_equal(kith_model_tap(model, NULL), "embedding");
    kith_model_free(model);
    kith_dataset_free(set);
}

/* Any allocation may fail: an error, and the next call is as if nothing had been. */
static void test_out_of_memory(void **state) {
    (void)state;
    kith_dataset *set = pictures_set();
    kith_model *model = pictures_model("cpu", 8);
    kith_status status = KITH_ENOMEM;
    int n = 0, n_failures = 0;
    for (; status != KITH_OK && n < 5000; n += 1 + n / 8) {
        kith_vectors *vectors = NULL;
        kith_error err = {0};
        ki_alloc_fail_after(n);
        status = kith_model_embed_dataset(model, set, KITH_SPLIT_TEST, &pictures_options, &vectors, &err);
        const bool has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        if (status != KITH_OK) {
            if (!has_failed || !err.message[0]) fail_msg("%d: %s", (int)status, err.message);
            n_failures++;
        }
        kith_vectors_free(vectors);
    }
    assert_int_equal(status, KITH_OK);
    assert_true(n_failures > 5);
    kith_model_free(model);
    kith_dataset_free(set);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files_keep_their_order),
                                       cmocka_unit_test(test_inputs_agree), cmocka_unit_test(test_data_set),
                                       cmocka_unit_test(test_refusals), cmocka_unit_test(test_out_of_memory)};
    return cmocka_run_group_tests_name("embed/embedder", tests, NULL, testing_tear_down);
}
