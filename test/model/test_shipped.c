/* The file of the model `general` that is in the tree: what it is, and that it finds the same thing again on pictures drawn here. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kith/model.h"
#include "support/testing.h"

enum { N_CLASSES = 10, N_EACH = 4, N = N_CLASSES * N_EACH, DIM = 256, MOST_BYTES = 12000000 };

static const char folder[] = KITH_TESTING_SOURCE_DIR "/models";
static const char file[] = KITH_TESTING_SOURCE_DIR "/models/general.safetensors";
static char paths[N][512];
static float vectors[N * DIM];

static int set_up(void **state) {
    (void)state;
    char glyphs[256];
    kith_error err;
    KITH_OPTIONS(kith_synth_options, drawn);
    drawn.n_classes = N_CLASSES;
    drawn.n_images = N_EACH;
    snprintf(glyphs, sizeof glyphs, "%s/glyphs", testing_folder());
    assert_ok(kith_synth_write(glyphs, &drawn, NULL, NULL, &err), &err);
    for (int i = 0; i < N; i++)
        snprintf(paths[i], sizeof paths[i], "%s/glyph%05d/%05d.png", glyphs, i / N_EACH, i % N_EACH);
    return setenv("KITH_MODELS", folder, 1);
}

static void skip_without_it(void) {
    struct stat s;
    if (stat(file, &s) == 0) return;
    print_message("skipped: there is no %s\n", file);
    skip();
}

static kith_model *open_at(int64_t side) {
    kith_error err;
    kith_model *model = NULL;
    KITH_OPTIONS(kith_model_options, o);
    o.side = side;
    assert_ok(kith_model_open(&o, &model, &err), &err);
    assert_int_equal(kith_model_dim(model), DIM);
    return model;
}

static void embed(kith_model *model, int n, float *ret) {
    kith_error err;
    const char *each[N];
    for (int i = 0; i < n; i++) each[i] = paths[i];
    assert_ok(kith_model_embed_files(model, each, n, NULL, ret, NULL, &err), &err);
}

static double cosine(const float *a, const float *b) {
    double ab = 0, aa = 0, bb = 0;
    for (int k = 0; k < DIM; k++) {
        ab += (double)a[k] * (double)b[k];
        aa += (double)a[k] * (double)a[k];
        bb += (double)b[k] * (double)b[k];
    }
    return ab / sqrt(aa * bb);
}

static void test_the_file(void **state) {
    (void)state;
    skip_without_it();
    struct stat s;
    assert_int_equal(stat(file, &s), 0);
    assert_in_range(s.st_size, 1, MOST_BYTES);
    char title[256];
    kith_model *model = open_at(0);
    kith_model_title(model, title, sizeof title);
    if (strncmp(title, "general (", 9) != 0) fail_msg("%s", title);
    kith_model_free(model);
}

/* Of 39 other pictures 3 have the same glyph: by chance 3 in 40 find one first. */
static void test_it_finds_the_same_glyph(void **state) {
    (void)state;
    skip_without_it();
    kith_model *model = open_at(0);
    embed(model, N, vectors);
    kith_model_free(model);
    int n_right = 0;
    for (int i = 0; i < N; i++) {
        double best = -2;
        int nearest = i;
        for (int j = 0; j < N; j++) {
            const double score = j == i ? -2 : cosine(vectors + i * DIM, vectors + j * DIM);
            if (score > best) best = score, nearest = j;
        }
        n_right += nearest / N_EACH == i / N_EACH;
    }
    print_message("%d of %d find a picture of their glyph first\n", n_right, N);
    if (n_right < N / 2) fail_msg("%d of %d find a picture of their glyph first", n_right, N);
}

/* Its curve is of its own size: at another one there is none. */
static void test_other_sizes(void **state) {
    (void)state;
    skip_without_it();
    static const int64_t sides[] = {0, 128, 224};
    static float of[N_ROWS(sides)][DIM];
    kith_error err;
    kith_calibration curve;
    for (size_t i = 0; i < N_ROWS(sides); i++) {
        kith_model *model = open_at(sides[i]);
        const kith_status wanted = sides[i] ? KITH_ENOTFOUND : KITH_OK;
        assert_int_equal(kith_model_calibration(model, &curve, &err), wanted);
        embed(model, 1, of[i]);
        kith_model_free(model);
        const double score = cosine(of[0], of[i]);
        if (!(score > 0.5) || (i && !(score < 0.99999)))
            fail_msg("side %lld: cosine %g with the vector of the file's side", (long long)sides[i], score);
    }
}

static void test_the_curve(void **state) {
    (void)state;
    skip_without_it();
    kith_error err;
    kith_calibration curve;
    kith_model *model = open_at(0);
    assert_ok(kith_model_curve(model, KITH_COSINE, &curve, &err), &err);
    kith_model_free(model);
    assert_ok(kith_calibration_check(&curve, &err), &err);
    const double at = kith_calibration_threshold(&curve, 1e-4);
    if (!(at > 0 && at < 1)) fail_msg("the threshold of one false match in 10,000 is %g", at);
}

static int hits_at(const char *rate) {
    char output[8192];
    const int status = testing_run(output, sizeof output,
                                   "cd %s && " TESTING_K
                                   " && export XDG_CACHE_HOME=\"$PWD/caches\" && { [ -e g.kith ] || $K index "
                                   "glyphs -o g.kith; } 2>&1 && "
                                   "$K search g.kith glyphs/glyph00003/00001.png -k %d --same %s 2>&1",
                                   testing_folder(), testing_program(), (int)N, rate);
    if (status != 0) fail_msg("exit status %d: %s", status, output);
    if (!strstr(output, "1.0000") || !strstr(output, "such hits is wrong"))
        fail_msg("no rates, or not the picture itself: %s", output);
    int n = 0; /* the first such line is the query */
    for (const char *at = output; (at = strstr(at, ".png\n")); at++) n++;
    return n - 1;
}

/* As a user types it: rates work at once on an index that was made without a word about models. */
static void test_the_same_on_an_index(void **state) {
    (void)state;
    skip_without_it();
    const int strict = hits_at("0.0001"), loose = hits_at("0.01");
    if (strict < 2 || strict > N / 4 || loose <= strict)
        fail_msg("%d hits at a rate of 0.0001, %d at 0.01", strict, loose);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_file),
        cmocka_unit_test(test_it_finds_the_same_glyph),
        cmocka_unit_test(test_other_sizes),
        cmocka_unit_test(test_the_curve),
        cmocka_unit_test(test_the_same_on_an_index),
    };
    return cmocka_run_group_tests_name("model/shipped", tests, set_up, testing_tear_down);
}
