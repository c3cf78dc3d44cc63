/* Variants: parts of rows scored as if they were alone, after a PCA, and whitened, each against the same by hand. */
#include "judge/variants.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "kith/knn.h"
#include "support/testing.h"

enum { N = 40, CLASSES = 4, EMBEDDING = 2, WIDTH = 3, WIDE = EMBEDDING + 2 * WIDTH, COMPONENTS = 4 };

static const int64_t ks[] = {1, 2};
/* An embedding of 2 and two parts of 3. */
static const ki_variants_options options = {.k = ks,
                                            .n_k = 2,
                                            .parts = {.n = 3, .width = {EMBEDDING, WIDTH, WIDTH}},
                                            .embedding = COMPONENTS,
                                            .has_clustering = true};

/* Rows around the centres of their classes. */
static ki_vectors vectors_of(uint32_t salt, int64_t dim) {
    ki_vectors v = {0};
    kith_error err = {0};
    assert_ok(ki_vectors_init(NULL, false, N, dim, &v, &err), &err);
    for (int64_t i = 0; i < N; i++) {
        v.label[i] = 10 * (i % CLASSES);
        v.item[i] = i;
        ki_rng rng = ki_rng_at(1, KI_RNG_TEST, salt, (uint32_t)i);
        for (int64_t k = 0; k < dim; k++) {
            ki_rng centre = ki_rng_at(2, KI_RNG_TEST, (uint32_t)(i % CLASSES), (uint32_t)k);
            v.host[i * dim + k] = (float)(ki_rng_normal(&centre) + 0.7 * ki_rng_normal(&rng));
        }
    }
    v.n = N;
    return v;
}

static ki_scores score(ki_vectors *v) {
    kith_error err = {0};
    ki_scores found = {0};
    assert_ok(ki_judge_scores(v, ks, 2, NULL, &found, NULL, &err), &err);
    return found;
}

/* Some columns of rows, alone. */
static ki_scores score_columns(const ki_vectors *rows, int64_t from, int64_t width) {
    ki_vectors part = vectors_of(6, width);
    for (int64_t i = 0; i < N; i++)
        memcpy(part.host + i * width, rows->host + i * rows->dim + from, (size_t)width * sizeof(float));
    const ki_scores found = score(&part);
    ki_vectors_release(&part);
    return found;
}

static void assert_same(const ki_scores *found, const ki_scores *wanted) {
    assert_true(found->is_there);
    if (found->map_at_r != wanted->map_at_r || found->recall[1] != wanted->recall[1])
        fail_msg("MAP@R %.17g, R@2 %.17g; wanted %.17g, %.17g", found->map_at_r, found->recall[1],
                 wanted->map_at_r, wanted->recall[1]);
}

/* Scores of rows after a PCA that was fitted on others. */
static ki_scores score_pca(const ki_vectors *fitted, const ki_vectors *test, bool whiten) {
    kith_pca pca;
    kith_array projected;
    kith_error err = {0};
    const kith_array rows[2] = {{KITH_F32, 2, {N, fitted->dim}, fitted->host},
                                {KITH_F32, 2, {N, test->dim}, test->host}};
    const kith_pca_options wanted = {.size = sizeof wanted, .n_components = COMPONENTS};
    assert_ok(kith_pca_fit(&rows[0], &wanted, &pca, &err), &err);
    pca.whiten = whiten;
    assert_ok(kith_pca_apply(&pca, &rows[1], &projected, &err), &err);
    ki_vectors v = *test;
    v.dim = COMPONENTS;
    v.host = projected.data;
    const ki_scores found = score(&v);
    kith_pca_release(&pca);
    kith_array_release(&projected);
    return found;
}

/* Columns from .. from + width of rows, whitened on those of others: over the root of the variance and a tenth of the mean one,
 * then `length` long. By hand, in double. */
static void whiten_by_hand(const ki_vectors *fitted, const ki_vectors *rows, int64_t from, int64_t width,
                           double length, int64_t to_dim, float *to) {
    kith_pca pca;
    kith_error err = {0};
    kith_array columns;
    assert_ok(kith_array_init(KITH_F32, 2, (int64_t[]){N, width}, &columns, &err), &err);
    float *x = columns.data;
    for (int64_t i = 0; i < N; i++)
        memcpy(x + i * width, fitted->host + i * fitted->dim + from, (size_t)width * sizeof *x);
    assert_ok(
        kith_pca_fit(&columns, &(kith_pca_options){.size = sizeof(kith_pca_options), .n_components = width},
                     &pca, &err),
        &err);
    const double *variance = pca.variance.data, *mean = pca.mean.data, *axis = pca.components.data;
    double mean_variance = 0;
    for (int64_t j = 0; j < width; j++) mean_variance += variance[j] / (double)width;
    for (int64_t i = 0; i < N; i++) {
        double white[8], sum = 0;
        for (int64_t j = 0; j < width; j++) {
            white[j] = 0;
            for (int64_t c = 0; c < width; c++)
                white[j] += axis[j * width + c] * ((double)rows->host[i * rows->dim + from + c] - mean[c]);
            white[j] /= sqrt(variance[j] + 0.1 * mean_variance);
            sum += white[j] * white[j];
        }
        for (int64_t j = 0; j < width; j++)
            to[i * to_dim + from + j] = (float)(length * white[j] / sqrt(sum));
    }
    kith_array_release(&columns);
    kith_pca_release(&pca);
}

/* As they are: each part as if it were alone, and all of them. */
static void test_parts(void **state) {
    (void)state;
    ki_vectors test = vectors_of(6, WIDE);
    kith_error err = {0};
    ki_variant_list found = {0};
    ki_scores embedding = {0};
    const ki_variant list[] = {{.name = "second", .first_part = 2, .n_parts = 1, .has = KI_VARIANT_INTERVALS},
                               {.name = "all", .n_parts = 3, .has = KI_VARIANT_CLUSTERS},
                               {.name = "none", .first_part = 3, .n_parts = 1},
                               {.name = "first_1", .n_parts = 1, .first = 1},
                               {.name = "first_9", .n_parts = 1, .first = 9}};
    assert_ok(ki_judge_embedding(&test, &options, &embedding, &err), &err);
    assert_ok(ki_judge_variants(NULL, &test, &options, list, 5, &found, &err), &err);
    const ki_scores first = score_columns(&test, 0, EMBEDDING), second = score_columns(&test, 5, WIDTH),
                    all = score(&test), one = score_columns(&test, 0, 1);
    assert_same(&embedding, &first);
    assert_true(embedding.n_query == N && embedding.alike == first.alike);
    assert_int_equal(found.n, 5);
    assert_string_equal(found.item[0].variant.name, "second");
    assert_same(&found.item[0].scores, &second);
    assert_true(found.item[0].intervals.recall[0].high > found.item[0].intervals.recall[0].low);
    assert_false(found.item[0].clustered.is_there);
    assert_same(&found.item[1].scores, &all);
    assert_true(found.item[1].clustered.is_there && found.item[1].dim[0] == WIDE &&
                found.item[1].dim[1] == WIDE);
    assert_false(found.item[2].scores.is_there); /* a part that the rows do not have */
    assert_same(&found.item[3].scores, &one);
    assert_int_equal(found.item[3].dim[1], 1);
    assert_same(&found.item[4].scores, &first); /* no more than there are */
    ki_variant_list_release(&found);
    ki_vectors_release(&test);
}

static void test_pca(void **state) {
    (void)state;
    ki_vectors fitted = vectors_of(5, WIDE), test = vectors_of(6, WIDE);
    kith_error err = {0};
    ki_variant_list found = {0};
    const ki_variant list[] = {
        {"a", "all", 0, 3, KI_CHANGE_PCA, KI_FITTED_TRAINING, KI_VARIANT_CLUSTERS, 0, 0},
        {"b", "all", 0, 3, KI_CHANGE_PCA_WHITE, KI_FITTED_TRAINING, 0, 0, 0},
        {"c", "all", 0, 3, KI_CHANGE_PCA_WHITE, KI_FITTED_TEST, 0, 0, 0},
        {"d", "all", 0, 3, KI_CHANGE_PCA, KI_FITTED_TRAINING, 0, 2, 0}};
    assert_ok(ki_judge_variants(&fitted, &test, &options, list, 4, &found, &err), &err);
    for (int i = 0; i < 3; i++) {
        const ki_scores wanted = score_pca(i == 2 ? &test : &fitted, &test, i > 0);
        assert_same(&found.item[i].scores, &wanted);
        assert_true(found.item[i].dim[0] == WIDE && found.item[i].dim[1] == COMPONENTS);
    }
    assert_int_equal(found.item[3].dim[1], 2);
    assert_true(found.item[0].clustered.is_there && !found.item[1].clustered.is_there);
    if (found.item[1].scores.map_at_r == found.item[2].scores.map_at_r)
        fail_msg("MAP@R is %g whether the PCA is fitted on the test rows or on others",
                 found.item[1].scores.map_at_r);
    ki_variant_list_release(&found);
    ki_vectors_release(&fitted);
    ki_vectors_release(&test);
}

/* Whitened one by one: the embedding is as long as the others together. */
static void test_white(void **state) {
    (void)state;
    ki_vectors fitted = vectors_of(5, WIDE), test = vectors_of(6, WIDE), by_hand[2];
    ki_vectors *const from[2] = {&fitted, &test};
    kith_error err = {0};
    ki_variant_list found = {0};
    const ki_variant list[] = {
        {"each", "all", 0, 3, KI_CHANGE_EACH_WHITE_PCA, KI_FITTED_TRAINING, KI_VARIANT_INTERVALS, 0, 0},
        {"one", "the second", 1, 1, KI_CHANGE_WHITE, KI_FITTED_TRAINING, 0, 0, 0},
        ki_variant_embedding_white,
        {"together", "all", 0, 3, KI_CHANGE_PCA_WHITE, KI_FITTED_TRAINING, 0, 0, 0}};
    for (int64_t i = 0; i < N; i++) fitted.host[i * WIDE + 3] *= 7, test.host[i * WIDE + 3] *= 7;
    for (int w = 0; w < 2; w++) {
        by_hand[w] = vectors_of(6, WIDE);
        whiten_by_hand(&fitted, from[w], 0, EMBEDDING, sqrt(2), WIDE, by_hand[w].host);
        whiten_by_hand(&fitted, from[w], EMBEDDING, WIDTH, 1, WIDE, by_hand[w].host);
        whiten_by_hand(&fitted, from[w], EMBEDDING + WIDTH, WIDTH, 1, WIDE, by_hand[w].host);
    }
    assert_ok(ki_judge_variants(&fitted, &test, &options, list, 4, &found, &err), &err);
    const ki_scores wanted[] = {score_pca(&by_hand[0], &by_hand[1], false),
                                score_columns(&by_hand[1], EMBEDDING, WIDTH),
                                score_columns(&by_hand[1], 0, EMBEDDING)};
    for (int i = 0; i < 3; i++) assert_float_equal(found.item[i].scores.map_at_r, wanted[i].map_at_r, 1e-9);
    if (found.item[0].scores.map_at_r == found.item[3].scores.map_at_r)
        fail_msg("MAP@R is %g whether parts are whitened one by one or together", wanted[0].map_at_r);
    ki_variant_list_release(&found);
    for (int w = 0; w < 2; w++) ki_vectors_release(&by_hand[w]);
    ki_vectors_release(&fitted);
    ki_vectors_release(&test);
}

static void test_rows_that_do_not_fit(void **state) {
    (void)state;
    ki_vectors test = vectors_of(6, WIDE + 1);
    kith_error err = {0};
    ki_variant_list found = {0};
    ki_scores scores;
    assert_int_equal(ki_judge_variants(NULL, &test, &options, NULL, 0, &found, &err), KITH_EINTERNAL);
    assert_int_equal(ki_judge_embedding(&test, &options, &scores, &err), KITH_EINTERNAL);
    ki_vectors_release(&test);
    test = vectors_of(6, WIDE);
    assert_int_equal(ki_judge_variants(NULL, &test, &options, &ki_variant_embedding_white, 1, &found, &err),
                     KITH_EINTERNAL);
    assert_non_null(strstr(err.message, "variant embedding_white has nothing to be fitted on"));
    ki_variants_options none = options;
    none.parts = (ki_parts){.n = 2, .width = {0, WIDE}};
    assert_int_equal(ki_judge_embedding(&test, &none, &scores, &err), KITH_EINTERNAL);
    ki_vectors_release(&test);
}

/* Every head of a row gets the length 1. */
static void test_normalize(void **state) {
    (void)state;
    enum { HEADS = 2, DIM = 6 };
    ki_vectors v = vectors_of(3, DIM);
    kith_error err = {0};
    for (int64_t k = 0; k < DIM / HEADS; k++) v.host[k] = 0;
    assert_ok(ki_judge_normalize(&v, HEADS, &err), &err);
    for (int64_t h = 0; h < N * HEADS; h++) {
        double sum = 0;
        for (int64_t k = 0; k < DIM / HEADS; k++) sum += pow((double)v.host[h * DIM / HEADS + k], 2);
        assert_float_equal(sum, h > 0, 1e-6);
    }
    ki_vectors_release(&v);
}

static void test_notes(void **state) {
    (void)state;
    char note[KI_VARIANT_NOTE];
    static const struct {
        ki_variant variant;
        const char *wanted;
    } rows[] = {{{"a", "parts", 0, 3, KI_CHANGE_PCA, KI_FITTED_TRAINING, 0, 0, 0},
                 "parts, 24 numbers, after a PCA to 8 fitted on training images"},
                {{"b", "parts", 0, 3, KI_CHANGE_PCA_WHITE, KI_FITTED_TEST, 0, 0, 0},
                 "transductive: parts, 24 numbers, after a whitening PCA to 8 fitted on the test images "
                 "themselves; not "
                 "comparable with the other blocks"},
                {{"c", "parts", 0, 3, KI_CHANGE_EACH_WHITE_PCA, KI_FITTED_TRAINING, 0, 0, 0},
                 "parts, each whitened by itself, 24 numbers, after a PCA to 8 fitted on training images"},
                {{"d", "a part", 1, 1, KI_CHANGE_WHITE, KI_FITTED_TRAINING, 0, 0, 0},
                 "a part, whitened on training images"},
                {{"e", "a part", 1, 1, KI_CHANGE_NONE, KI_FITTED_NOTHING, 0, 0, 0}, "a part, 24 numbers"}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        const ki_variant_scores v = {.variant = rows[i].variant, .dim = {24, 8}};
        assert_string_equal(ki_variant_note(&v, note), rows[i].wanted);
    }
}

/* A list that fails half-way leaves nothing behind, whichever allocation it is. */
static void test_without_memory(void **state) {
    (void)state;
    ki_vectors fitted = vectors_of(5, WIDE), test = vectors_of(6, WIDE);
    const ki_variant list[] = {{"each", "all", 0, 3, KI_CHANGE_EACH_WHITE_PCA, KI_FITTED_TRAINING, 0, 0, 0},
                               {"one", "all", 1, 1, KI_CHANGE_PCA, KI_FITTED_TEST, 0, 2, 0}};
    kith_status status = KITH_ENOMEM;
    for (int n = 0; status != KITH_OK; n++) {
        kith_error err = {0};
        ki_variant_list found = {0};
        ki_alloc_fail_after(n);
        status = ki_judge_variants(&fitted, &test, &options, list, 2, &found, &err);
        ki_alloc_fail_after(-1);
        if (status != KITH_OK) assert_int_equal(status, KITH_ENOMEM);
        assert_true((found.item != NULL) == (status == KITH_OK));
        ki_variant_list_release(&found);
    }
    ki_vectors_release(&fitted);
    ki_vectors_release(&test);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),         cmocka_unit_test(test_pca),
        cmocka_unit_test(test_white),         cmocka_unit_test(test_rows_that_do_not_fit),
        cmocka_unit_test(test_normalize),     cmocka_unit_test(test_notes),
        cmocka_unit_test(test_without_memory)};
    return cmocka_run_group_tests_name("judge/variants", tests, NULL, NULL);
}
