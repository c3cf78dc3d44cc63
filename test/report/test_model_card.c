/* MODEL.md: what it says of a result, what it does not claim, and that names of users are text in it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "kith/report.h"
#include "support/testing.h"

static char folder[512];

static const char *in_run(const char *name) {
    static char path[2][1024];
    static int next;
    char *to = path[next++ % 2];
    snprintf(to, sizeof path[0], "%s/%s", folder, name);
    return to;
}

/* The result of a run that has everything, but for what the arguments replace. */
static void make(const char *data, const char *selection, const char *test, const char *rates) {
    char text[4096];
    snprintf(folder, sizeof folder, "%s/model-card", testing_folder());
    mkdir(folder, 0777);
    snprintf(
        text, sizeof text,
        "{\"selection\": \"%s\", \"step\": 1200, \"steps\": 5000, %s"
        "\"validation\": {\"recall\": {\"1\": 0.5, \"4\": 0.75}, \"map_at_r\": 0.25, \"classes\": 50}, %s"
        "\"n_train_classes\": 50, \"n_train_images\": 2900, \"n_validation_images\": 2964, "
        "\"n_images\": 5924, \"n_unreadable\": 2, \"seconds\": 61.5, \"seed\": 3, \"kith\": \"0.2.0\", "
        "\"commit\": \"0123456789abcdef\", \"recipe_sha256\": \"aa\", \"data\": \"%s\", \"dataset\": "
        "\"cub\", \"backbone\": \"resnet50\", \"weights\": \"hub:resnet50\", \"weights_sha256\": "
        "\"5555555555555555\", \"pool\": \"avg\", \"resize\": \"squash256\", \"crop\": 227, "
        "\"embedding_size\": 512, \"device\": \"cpu\"}\n",
        selection, test, rates, data);
    testing_write(in_run("result.json"), text);
    testing_write(in_run("recipe.yaml"), "seed: 3\n# ``` and ```` in a comment\n");
}

#define TEST                                                                                              \
    "\"test\": {\"recall\": {\"1\": 0.625, \"4\": 0.8}, \"map_at_r\": 0.28, \"nmi\": 0.63, \"queries\": " \
    "5924, "                                                                                              \
    "\"classes\": 100, \"intervals\": {\"recall\": {\"1\": [0.56, 0.69]}}}, "
#define RATES                                                                                   \
    "\"error_rates\": {\"source\": \"validation\", \"classes\": 50, \"same_pairs\": 1225, "     \
    "\"different_pairs\": 60000, \"at\": [{\"false_match_rate\": 0.01, \"threshold\": 0.7125, " \
    "\"match_rate\": "                                                                          \
    "0.416}]}, "

static char *card(void) {
    kith_error err = {0};
    assert_ok(kith_model_card_write(folder, NULL, &err), &err);
    return testing_read(in_run("MODEL.md"));
}

static void assert_says(const char *text, const char *wanted) {
    if (!strstr(text, wanted)) fail_msg("no '%s' in:\n%s", wanted, text);
}

static void test_what_it_says(void **state) {
    (void)state;
    make("CUB_200_2011", "validation", TEST, RATES);
    char *text = card();
    static const char *const wanted[] = {
        "# resnet50, 512 numbers, trained on CUB\\_200\\_2011\n",
        "| start | hub\\:resnet50, SHA-256 `555555555555…` |\n",
        "| learned from | 2,900 items of 50 classes |\n",
        "| held out for choices | 2,964 items of 50 other classes |\n",
        "| tested on | 5,924 items of 100 classes that were not learned from |\n",
        "| model | of step 1,200 of 5,000, the best on validation classes |\n",
        "| made by | kith 0.2.0, commit `0123456789ab…`, on cpu, seed 3, 61.5 s of training |\n",
        "| classes never seen (test) | 62.5 (56.0 to 69.0) | 80.0 | 28.0 | 63.0 |\n",
        "| validation classes | 50.0 | 75.0 | 25.0 | |\n",
        "Of 1,225 pairs of one class and 60,000 pairs of two, of 50 validation classes.",
        "| 1 % | 0.7125 | 41.6 % |\n",
        "kith search photos.kith PHOTO.jpg\n",
        "* 2 images of its data could not be read",
        "\n`````yaml\nseed: 3\n# ``` and ```` in a comment\n`````\n"};
    for (size_t i = 0; i < N_ROWS(wanted); i++) assert_says(text, wanted[i]);
    assert_null(strstr(text, "before training"));
    assert_null(strstr(text, "?"));
    free(text);
}

/* A name cannot become a heading, a link, a row of the table or markup. */
static void test_names_are_text(void **state) {
    (void)state;
    make("a|b\\n# <script>[x](http://e)`*_\\\\", "validation", TEST, RATES);
    char *text = card();
    assert_says(text, "| data | a\\|b \\# \\<script\\>\\[x\\]\\(http\\://e\\)\\`\\*\\_\\\\ (cub)");
    free(text);
}

static void test_what_is_not_known_is_said(void **state) {
    (void)state;
    make("photos", "last", "", "");
    char *text = card();
    assert_says(text, "## Error rates\nNot known: no classes were held out");
    assert_says(text, "* It was not scored on test classes");
    assert_null(strstr(text, "tested on"));
    free(text);
    make("photos", "test", "\"test\": {\"map_at_r\": 0.5, \"queries\": 40, \"classes\": 8}, ", "");
    text = card();
    assert_says(text, "**the best on the test classes themselves**");
    assert_says(text, "the scores of these flatter it");
    assert_says(text, "tested on 8 classes only");
    free(text);
}

static void test_refusals(void **state) {
    (void)state;
    kith_error err = {0};
    make("photos", "last", TEST, "");
    char out[600];
    snprintf(out, sizeof out, "%s/none/MODEL.md", folder);
    assert_int_equal(kith_model_card_write(folder, out, &err), KITH_EIO);
    assert_int_equal(kith_model_card_write(testing_folder(), NULL, &err), KITH_EIO);
    assert_non_null(strstr(err.message, "result.json"));
    testing_write(in_run("result.json"), "[1]");
    assert_int_equal(kith_model_card_write(folder, NULL, &err), KITH_EFORMAT);
    make("photos", "last", TEST, RATES);
    for (int64_t n = 0;; n++) {
        ki_alloc_fail_after(n);
        const kith_status status = kith_model_card_write(folder, NULL, &err);
        const bool has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        if (!has_failed) break;
        assert_int_equal(status, KITH_ENOMEM);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_it_says), cmocka_unit_test(test_names_are_text),
        cmocka_unit_test(test_what_is_not_known_is_said), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
