/* model.whiten: the embedding layer of the result is the trained one times a map that follows from the training images. */
#include <math.h>

#include "base/alloc.h"
#include "kith/card.h"
#include "knn/whiten.h"
#include "train/tiny.h"

enum { DIM = 8 };

static char output[TINY_OUTPUT];

#define LAST "-q -s optim.steps=6 -s eval.every=3 -s eval.select=last "

static const char *path_of(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", testing_folder(), name);
    return path;
}

static double recall_of(const char *card) {
    kith_error err;
    kith_card *result = NULL;
    double value = NAN;
    assert_ok(kith_card_read(path_of(card), &result, &err), &err);
    if (!kith_card_real(result, "test.recall.1", &value) && !kith_card_real(result, "recall.1", &value))
        fail_msg("%s has no R@1", card);
    kith_card_free(result);
    return value;
}

static void trained(const char *out, const char *arguments) {
    if (tiny_train(output, out, arguments) != 0) fail_msg("%s", output);
}

static kith_tensors *model_of(const char *file) {
    kith_error err;
    kith_tensors *model = NULL;
    assert_ok(kith_tensors_open(path_of(file), &model, &err), &err);
    return model;
}

/* found = map before, [dim, width] each. */
static void check_product_of(const kith_array *found, const kith_array *before, const double *map,
                             int64_t dim) {
    const int64_t width = kith_array_count(before) / dim;
    const float *a = found->data, *b = before->data;
    assert_int_equal(kith_array_count(found), kith_array_count(before));
    for (int64_t r = 0; r < dim; r++) {
        for (int64_t c = 0; c < width; c++) {
            double wanted = 0;
            for (int64_t k = 0; k < dim; k++) wanted += map[r * dim + k] * (double)b[k * width + c];
            assert_float_equal(a[r * width + c], wanted, 1e-4);
        }
    }
}

static void test_the_layer(void **state) {
    (void)state;
    static double map[DIM * DIM];
    kith_error err;
    kith_array rows = {0}, a, b;
    trained("plain", LAST);
    trained("white", LAST "-s model.whiten=true");
    if (testing_run(
            output, sizeof output,
            "cd %s/tiny && awk -F, 'NR > 1 && $NF ~ /train/ {print $1}' ../plain/data.csv | xargs %s embed "
            "../plain/model.safetensors -o ../train.npy",
            testing_folder(), testing_program()) != 0)
        fail_msg("%s", output);
    assert_ok(kith_npy_read(path_of("train.npy"), &rows, &err), &err);
    assert_int_equal(rows.dim[0], 72);
    assert_int_equal(rows.dim[1], DIM);
    assert_ok(ki_whiten_map(rows.data, rows.dim[0], DIM, map, &err), &err);
    kith_tensors *plain = model_of("plain/model.safetensors"), *white = model_of("white/model.safetensors");
    assert_ok(kith_tensors_get(plain, "embedding.weight", &a, &err), &err);
    assert_ok(kith_tensors_get(white, "embedding.weight", &b, &err), &err);
    check_product_of(&b, &a, map, DIM);
    assert_ok(kith_tensors_get(plain, "embedding.bias", &a, &err), &err);
    assert_ok(kith_tensors_get(white, "embedding.bias", &b, &err), &err);
    check_product_of(&b, &a, map, DIM);
    /* Everything else is as it was trained. */
    assert_ok(kith_tensors_get(plain, "conv1.weight", &a, &err), &err);
    assert_ok(kith_tensors_get(white, "conv1.weight", &b, &err), &err);
    assert_memory_equal(a.data, b.data, (size_t)kith_array_count(&a) * sizeof(float));
    kith_tensors_free(plain);
    kith_tensors_free(white);
    kith_array_release(&rows);
    char *log = tiny_read("white", "log.jsonl");
    if (!strstr(log, "the embedding layer was whitened on 72 training images")) fail_msg("%s", log);
    free(log);
}

/* The file is a model like any other: what reads it gets the result's figure. */
static void test_the_model_has_the_result_s_score(void **state) {
    (void)state;
    trained("scored", LAST "-s model.whiten=true");
    if (testing_run(output, sizeof output, "%s eval %s --data %s/tiny --json > %s/eval.json",
                    testing_program(), path_of("scored"), testing_folder(), testing_folder()) != 0)
        fail_msg("%s", output);
    const double wanted = recall_of("scored/result.json"), found = recall_of("eval.json");
    if (found != wanted) fail_msg("R@1 is %.17g by kith eval, %.17g in the result", found, wanted);
}

/* Checkpoints hold the layer as it is trained: a run that goes on ends as one that never stopped. */
static void test_resumed(void **state) {
    (void)state;
    trained("whole", LAST "-s model.whiten=true");
    trained("parts", LAST "-s model.whiten=true");
    if (testing_run(output, sizeof output,
                    "cd %s/parts && rm -f result.json model.safetensors "
                    "checkpoints/step-00000006.safetensors && %s train . "
                    "--resume --no-report -q",
                    testing_folder(), testing_program()) != 0)
        fail_msg("%s", output);
    tiny_assert_same("whole", "parts", "model.safetensors");
}

/* A run whose embeddings are all alike has its model, and a line says that it is as trained. */
static void test_nothing_to_whiten(void **state) {
    (void)state;
    trained("alike", LAST "-s model.embedding=1 -s model.whiten=true");
    char *log = tiny_read("alike", "log.jsonl");
    if (!strstr(log, "the embedding layer is not whitened: the rows to whiten by all have one direction"))
        fail_msg("%s", log);
    free(log);
    trained("alike-plain", LAST "-s model.embedding=1");
    tiny_assert_same("alike-plain", "alike", "model.safetensors");
}

/* The heads of an ensemble share the layer, so they share the map: it is that of all heads' vectors, and every head of the result
 * is the trained one times the map, normalised. */
static void test_heads(void **state) {
    (void)state;
    enum { HEADS = 2, HEAD = DIM / HEADS };
#define ENSEMBLE LAST "-s model.heads=2 -s model.map_channels=12 "
    static double map[HEAD * HEAD];
    kith_error err;
    kith_array train = {0}, before = {0}, after = {0}, a, b;
    trained("heads", ENSEMBLE);
    trained("heads-white", ENSEMBLE "-s model.whiten=true");
    if (testing_run(
            output, sizeof output,
            "cd %s/tiny && awk -F, 'NR > 1 && $NF ~ /train/ {print $1}' ../heads/data.csv | xargs %s embed "
            "../heads/model.safetensors -o ../heads.npy",
            testing_folder(), testing_program()) != 0)
        fail_msg("%s", output);
    assert_ok(kith_npy_read(path_of("heads.npy"), &train, &err), &err);
    assert_int_equal(train.dim[1], DIM);
    assert_ok(ki_whiten_map(train.data, HEADS * train.dim[0], HEAD, map, &err), &err);
    kith_tensors *plain = model_of("heads/model.safetensors"),
                 *white = model_of("heads-white/model.safetensors");
    assert_ok(kith_tensors_get(plain, "embedding.weight", &a, &err), &err);
    assert_ok(kith_tensors_get(white, "embedding.weight", &b, &err), &err);
    assert_int_equal(a.dim[0], HEAD);
    check_product_of(&b, &a, map, HEAD);
    assert_ok(kith_npy_read(path_of("heads/test/embedding.npy"), &before, &err), &err);
    assert_ok(kith_npy_read(path_of("heads-white/test/embedding.npy"), &after, &err), &err);
    for (int64_t h = 0; h < HEADS * before.dim[0]; h++) {
        const float *x = (const float *)before.data + h * HEAD, *found = (const float *)after.data + h * HEAD;
        double wanted[HEAD] = {0}, sum = 0;
        for (int64_t r = 0; r < HEAD; r++) {
            for (int64_t k = 0; k < HEAD; k++) wanted[r] += map[r * HEAD + k] * (double)x[k];
            sum += wanted[r] * wanted[r];
        }
        for (int64_t r = 0; r < HEAD; r++) assert_float_equal(found[r], (float)(wanted[r] / sqrt(sum)), 1e-5);
    }
    kith_tensors_free(plain);
    kith_tensors_free(white);
    kith_array_release(&train);
    kith_array_release(&before);
    kith_array_release(&after);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_layer), cmocka_unit_test(test_the_model_has_the_result_s_score),
        cmocka_unit_test(test_resumed),   cmocka_unit_test(test_nothing_to_whiten),
        cmocka_unit_test(test_heads),
    };
    return cmocka_run_group_tests_name("train/whiten", tests, NULL, NULL);
}
