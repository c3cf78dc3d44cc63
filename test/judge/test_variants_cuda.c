/* Variants of rows that lie on a device: the same scores as on the host, and parts are taken where the rows lie. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "judge/variants.h"
#include "support/testing.h"

enum { N = 60, CLASSES = 6, EMBEDDING = 4, WIDTH = 5, WIDE = EMBEDDING + 2 * WIDTH };

static const int64_t ks[] = {1, 2};
static const ki_variants_options options = {
    .k = ks, .n_k = 2, .parts = {.n = 3, .width = {EMBEDDING, WIDTH, WIDTH}}, .embedding = EMBEDDING};

static ki_knn_device device;

static int open_device(void **state) {
    (void)state;
    kith_error err;
    if (ki_knn_device_open("cuda", &device, &err) != KITH_OK) exit(77);
    return 0;
}

static int close_device(void **state) {
    (void)state;
    ki_knn_device_close(&device);
    return 0;
}

/* On the device, or on the host. */
static ki_vectors rows_of(uint32_t salt, bool there) {
    static float x[N * WIDE];
    ki_vectors v = {0};
    kith_error err = {0};
    assert_ok(ki_vectors_init(there ? device.backend : NULL, there, N, WIDE, &v, &err), &err);
    for (int64_t i = 0; i < N; i++) {
        ki_rng rng = ki_rng_at(1, KI_RNG_TEST, salt, (uint32_t)i);
        v.label[i] = i % CLASSES;
        v.item[i] = i;
        for (int64_t k = 0; k < WIDE; k++) {
            ki_rng centre = ki_rng_at(2, KI_RNG_TEST, (uint32_t)(i % CLASSES), (uint32_t)k);
            x[i * WIDE + k] = (float)(ki_rng_normal(&centre) + ki_rng_normal(&rng));
        }
    }
    v.n = N;
    if (!there) memcpy(v.host, x, sizeof x);
    if (there) {
        const ki_memory_type *memory = &device.backend->type->memory;
        assert_ok(memory->upload(device.backend, v.device, x, sizeof x, &err), &err);
        assert_ok(memory->sync(device.backend, &err), &err);
    }
    return v;
}

static void test_columns(void **state) {
    (void)state;
    ki_vectors here = rows_of(1, false), there = rows_of(1, true);
    float *part = NULL, found[N * WIDTH];
    kith_error err = {0};
    const ki_rows rows = {KITH_F32, N, WIDE, here.host, there.device};
    const ki_memory_type *memory = &device.backend->type->memory;
    assert_ok(device.type->columns(device.backend, &rows, EMBEDDING, WIDTH, &part, &err), &err);
    assert_ok(memory->download(device.backend, part, found, sizeof found, &err), &err);
    assert_ok(memory->sync(device.backend, &err), &err);
    for (int64_t i = 0; i < N; i++)
        assert_memory_equal(found + i * WIDTH, here.host + i * WIDE + EMBEDDING, WIDTH * sizeof(float));
    memory->free(device.backend, part);
    ki_vectors_release(&here);
    ki_vectors_release(&there);
}

static void test_scores(void **state) {
    (void)state;
    static const ki_variant list[] = {
        {"second", "a part", 2, 1, KI_CHANGE_NONE, KI_FITTED_NOTHING, KI_VARIANT_INTERVALS, 0, 0},
        {"all", "all", 0, 3, KI_CHANGE_NONE, KI_FITTED_NOTHING, 0, 0, 0},
        {"pca", "all", 0, 3, KI_CHANGE_PCA, KI_FITTED_TRAINING, 0, 0, 0},
        {"white", "all", 0, 3, KI_CHANGE_PCA_WHITE, KI_FITTED_TRAINING, 0, 0, 0},
        {"some", "the others", 1, 2, KI_CHANGE_PCA, KI_FITTED_TEST, 0, 3, 0},
        {"each", "all", 0, 3, KI_CHANGE_EACH_WHITE_PCA, KI_FITTED_TRAINING, 0, 0, 0},
        {"one", "a part", 1, 1, KI_CHANGE_WHITE, KI_FITTED_TRAINING, 0, 0, 0}};
    ki_variant_list found[2] = {{0}};
    ki_scores embedding[2] = {{0}};
    kith_error err = {0};
    for (int w = 0; w < 2; w++) {
        ki_vectors fitted = rows_of(2, w), test = rows_of(3, w);
        assert_ok(ki_judge_embedding(&test, &options, &embedding[w], &err), &err);
        assert_ok(ki_judge_variants(&fitted, &test, &options, list, N_ROWS(list), &found[w], &err), &err);
        assert_true(!w || test.device); /* they are where they were */
        ki_vectors_release(&fitted);
        ki_vectors_release(&test);
    }
    assert_true(embedding[0].map_at_r == embedding[1].map_at_r);
    for (size_t i = 0; i < N_ROWS(list); i++) {
        const ki_scores *here = &found[0].item[i].scores, *there = &found[1].item[i].scores;
        if (here->map_at_r != there->map_at_r || here->recall[0] != there->recall[0])
            fail_msg("%s: MAP@R %.17g on the host, %.17g on the device", list[i].name, here->map_at_r,
                     there->map_at_r);
    }
    for (int w = 0; w < 2; w++) ki_variant_list_release(&found[w]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_columns), cmocka_unit_test(test_scores)};
    return cmocka_run_group_tests_name("judge/variants_cuda", tests, open_device, close_device);
}
