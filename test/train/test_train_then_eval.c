/* A trained model's file says how images are made ready for it: kith eval, told nothing but the model and the
 * data, finds what training found. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/testing.h"

static char output[65536];

#define run(...) testing_run(output, sizeof output, __VA_ARGS__)

/* The number behind `key` after `part` in a file. */
static double number_in(const char *path, const char *part, const char *key) {
    char *text = testing_read(path);
    const char *at = strstr(text, part);
    if (at) at = strstr(at, key);
    if (!at) fail_msg("%s has no %s after %s: %s", path, key, part, text);
    const double number = strtod(at + strlen(key), NULL);
    free(text);
    return number;
}

/* Train with these settings of the input, then eval: the card must have `words`. */
static void check(const char *input, const char *const *words) {
    const char *folder = testing_folder(), *kith = testing_program_path();
    char result[400], card[400];
    if (run("rm -rf '%s'/* && '%s' synth '%s/glyphs' --classes 12 --images 8", folder, kith, folder) != 0)
        fail_msg("%s", output);
    if (run("'%s' train '%s/recipes/quickstart.yaml' --set data.root=%s/glyphs --set optim.steps=6 "
            "--set eval.every=0 --set input.crop=32 %s --quiet --no-report --out '%s/run'",
            kith, KITH_SOURCE_DIR, folder, input, folder) != 0)
        fail_msg("%s", output);
    if (run("'%s' eval '%s/run' --data '%s/glyphs' --metrics retrieval --bootstrap 0 "
            "--json "
            "> '%s/card.json' 2> /dev/null",
            kith, folder, folder, folder) != 0)
        fail_msg("%s", output);
    snprintf(result, sizeof result, "%s/run/result.json", folder);
    snprintf(card, sizeof card, "%s/card.json", folder);
    const double trained = number_in(result, "\"test\": ", "\"map_at_r\": "),
                 judged = number_in(card, "\"recall\": ", "\"map_at_r\": ");
    if (!(trained > 0 && trained - judged < 1e-9 && judged - trained < 1e-9))
        fail_msg("MAP@R was %.12g in training and is %.12g to kith eval", trained, judged);
    char *text = testing_read(card);
    for (; *words; words++)
        if (!strstr(text, *words)) fail_msg("no %s in %s", *words, text);
    free(text);
    /* The cards of both say that they may be compared. */
    if (run("'%s' eval --compare '%s' '%s'", kith, result, card) != 0) fail_msg("%s", output);
    if (!strstr(output, "Yes: network, input")) fail_msg("%s", output);
}

static void test_squashed(void **state) {
    (void)state;
    check("--set input.resize=squash40", (const char *const[]){"squash40", NULL});
}

/* Everything of it that differs from the usual travels with the model. */
static void test_padded(void **state) {
    (void)state;
    check("--set input.resize=pad24 --set input.filter=bicubic --set input.background=[255,200,9]",
          (const char *const[]){"pad24", "bicubic, background (255, 200, 9)", NULL});
}

/* Tests on larger images than those of training: the model takes these. */
static void test_larger(void **state) {
    (void)state;
    check("--set input.resize=squash40 --set input.test_resize=squash56 --set input.test_crop=48",
          (const char *const[]){"squash56", "\"crop\": 48", NULL});
}

/* A window that is higher than the images: background above and below, the same in training's tests and afterwards. */
static void test_larger_than_the_shorter_side(void **state) {
    (void)state;
    check("--set input.resize=squash40 --set input.test_resize=shorter40 --set input.test_crop=48",
          (const char *const[]){"shorter40", "\"crop\": 48", NULL});
}

/* The folder of a run stands for its model, as it does everywhere; one without a model is said in one line. */
static void test_from_a_run(void **state) {
    (void)state;
    const char *folder = testing_folder(), *kith = testing_program_path();
    static const char *const names[] = {"run", "run/model.safetensors"};
    if (run("rm -rf '%s'/* && '%s' synth '%s/glyphs' --classes 12 --images 8", folder, kith, folder) != 0)
        fail_msg("%s", output);
    for (int i = -1; i < 2; i++) {
        char weights[400] = "", path[400];
        if (i >= 0)
            snprintf(weights, sizeof weights, "--set model.weights='%s/%s' --seed 7", folder, names[i]);
        if (run("'%s' train '%s/recipes/quickstart.yaml' --set data.root='%s/glyphs' --set optim.steps=3 "
                "--set eval.every=0 --set input.crop=32 %s --quiet --no-report --out '%s/%s'",
                kith, KITH_SOURCE_DIR, folder, weights, folder,
                i < 0    ? "run"
                : i == 0 ? "a"
                         : "b") != 0)
            fail_msg("%s", output);
        snprintf(path, sizeof path, "cmp '%s/a/model.safetensors' '%s/b/model.safetensors'", folder, folder);
        if (i == 1 && run("%s", path) != 0) fail_msg("%s", output);
    }
    assert_int_not_equal(run("'%s' train '%s/recipes/quickstart.yaml' --set data.root='%s/glyphs' "
                             "--set model.weights='%s/glyphs' --out '%s/c'",
                             kith, KITH_SOURCE_DIR, folder, folder, folder),
                         0);
    if (!strstr(output, "has neither a model.safetensors nor a best.safetensors")) fail_msg("%s", output);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_squashed), cmocka_unit_test(test_padded),
                                       cmocka_unit_test(test_larger), cmocka_unit_test(test_from_a_run),
                                       cmocka_unit_test(test_larger_than_the_shorter_side)};
    const int n_failed = cmocka_run_group_tests_name("train/then eval", tests, NULL, NULL);
    testing_clean_up();
    return n_failed;
}
