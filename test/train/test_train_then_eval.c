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

static void test_eval_finds_what_training_found(void **state) {
    (void)state;
    const char *folder = testing_folder(), *kith = testing_program();
    char result[400], card[400];
    if (run("'%s' synth '%s/glyphs' --classes 12 --images 8", kith, folder) != 0) fail_msg("%s", output);
    if (run("'%s' train '%s/recipes/quickstart.yaml' --set data.root=%s/glyphs --set optim.steps=6 "
            "--set eval.every=0 --set input.resize=squash40 --set input.crop=32 --quiet --no-report --out "
            "'%s/run'",
            kith, KITH_SOURCE_DIR, folder, folder) != 0)
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
    assert_non_null(strstr(text, "squash40"));
    free(text);
    /* The cards of both say that they may be compared. */
    if (run("'%s' eval --compare '%s' '%s'", kith, result, card) != 0) fail_msg("%s", output);
    if (!strstr(output, "Yes: network, input")) fail_msg("%s", output);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_eval_finds_what_training_found)};
    const int n_failed = cmocka_run_group_tests_name("train/then eval", tests, NULL, NULL);
    testing_clean_up();
    return n_failed;
}
