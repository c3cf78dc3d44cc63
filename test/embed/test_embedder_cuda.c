/* Vectors made on a device are the host's, stay there, and are judged there with the host's result. */
#include <math.h>
#include <stdlib.h>

#include "embed/pictures.h"
#include "kith/card.h"

static int has_device(void **state) {
    (void)state;
    kith_model *model = NULL;
    kith_error err;
    const kith_model_options options = {
        .size = sizeof(kith_model_options), .backbone = "convnet4", .device = "cuda", .embedding = 2};
    if (kith_model_open(&options, &model, &err) != KITH_OK) exit(77);
    kith_model_free(model);
    return 0;
}

static kith_vectors *embed(kith_model *model, const kith_dataset *set, kith_split split, const char *tap) {
    kith_vectors *vectors = NULL;
    kith_error err = {0};
    kith_embed_options options = pictures_options;
    options.tap = tap;
    assert_ok(kith_model_embed_dataset(model, set, split, &options, &vectors, &err), &err);
    return vectors;
}

/* Every kind of tap, with a last batch that is not full; a second time, from a recording. */
static void test_values_are_the_hosts(void **state) {
    (void)state;
    static const char *const taps[] = {"embedding", "pooled", "map"};
    kith_dataset *set = pictures_set();
    kith_model *host = pictures_model("cpu", 6), *device = pictures_model("cuda", 6);
    kith_error err = {0};
    for (size_t t = 0; t < N_ROWS(taps); t++) {
        for (int round = 0; round < 2; round++) {
            kith_array a, b;
            kith_vectors *x = embed(host, set, KITH_SPLIT_TEST, taps[t]),
                         *y = embed(device, set, KITH_SPLIT_TEST, taps[t]);
            assert_ok(kith_vectors_array(x, &a, &err), &err);
            assert_ok(kith_vectors_array(y, &b, &err), &err);
            assert_int_equal(kith_array_count(&a), kith_array_count(&b));
            const double off = testing_relative_l2(b.data, a.data, kith_array_count(&a));
            if (!(off < 1e-3)) fail_msg("%s, round %d: values are %g off", taps[t], round, off);
            kith_vectors_free(x);
            kith_vectors_free(y);
        }
    }
    kith_model_free(host);
    kith_model_free(device);
    kith_dataset_free(set);
}

/* Ready-made floats in batches that are not full, and files. */
static void test_other_inputs(void **state) {
    (void)state;
    enum { N = 5 };
    static float images[N * 16 * 16], rows[2][N * DIM];
    kith_dataset *set = pictures_set();
    const char *paths[N];
    kith_error err = {0};
    for (int i = 0; i < N * 16 * 16; i++) images[i] = (float)(i % 37) / 37 - 0.5F;
    for (int i = 0; i < N; i++) paths[i] = kith_dataset_item(set, i).path;
    for (int w = 0; w < 2; w++) {
        kith_model *model = pictures_model(w ? "cuda" : "cpu", 3);
        assert_ok(kith_model_embed_floats(model, images, N, "embedding", rows[w], &err), &err);
        kith_model_free(model);
    }
    double off = testing_relative_l2(rows[1], rows[0], N * DIM);
    if (!(off < 1e-3)) fail_msg("floats: values are %g off", off);
    for (int w = 0; w < 2; w++) {
        kith_model *model = pictures_model(w ? "cuda" : "cpu", 3);
        assert_ok(kith_model_embed_files(model, paths, N, &pictures_options, rows[w], NULL, &err), &err);
        kith_model_free(model);
    }
    off = testing_relative_l2(rows[1], rows[0], N * DIM);
    if (!(off < 1e-3)) fail_msg("files: values are %g off", off);
    kith_dataset_free(set);
}

/* Judged where they lie, and on the host from the same bits. */
static void test_judged_where_they_lie(void **state) {
    (void)state;
    kith_dataset *set = NULL;
    kith_model *model = pictures_model("cuda", 6);
    kith_judgement there, here;
    kith_array values;
    kith_error err = {0};
    assert_ok(kith_dataset_open("folder", pictures_folder(), &set, &err), &err);
    assert_ok(kith_dataset_split_first(set, N_CLASSES, &err), &err);
    kith_vectors *vectors = embed(model, set, KITH_SPLIT_TRAIN, "embedding");
    KITH_OPTIONS(kith_judge_options, options);
    assert_ok(kith_vectors_judge(vectors, &options, &there, &err), &err);
    assert_ok(kith_vectors_array(vectors, &values, &err), &err);
    const kith_retrieval_input input = {
        .embedding = &values, .labels = kith_vectors_labels(vectors), .n_labels = N_FILES};
    assert_ok(kith_judge_run(&input, &options, &here, &err), &err);
    assert_memory_equal(here.retrieval.query, there.retrieval.query, N_FILES * sizeof *here.retrieval.query);
    assert_memory_equal(&here.intervals, &there.intervals, sizeof here.intervals);
    assert_true(here.retrieval.mean.map == there.retrieval.mean.map);
    assert_int_equal(here.kmeans.n_clusters, N_CLASSES);
    assert_true(here.has_clustering && there.has_clustering);
    if (fabs(here.clustering.nmi - there.clustering.nmi) > 1e-9)
        fail_msg("NMI %g on the host, %g on the device", here.clustering.nmi, there.clustering.nmi);
    kith_judgement_release(&here);
    kith_judgement_release(&there);
    kith_vectors_free(vectors);
    kith_model_free(model);
    kith_dataset_free(set);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values_are_the_hosts),
                                       cmocka_unit_test(test_other_inputs),
                                       cmocka_unit_test(test_judged_where_they_lie)};
    return cmocka_run_group_tests_name("embed/embedder on a device", tests, has_device, testing_tear_down);
}
