/* Training over tar files of which one is cut off: it says which, how much of it is read, and trains on the rest. */
#include <string.h>

#include "train/tiny.h"

static char output[TINY_OUTPUT];

static int shell(const char *command) {
    return testing_run(output, sizeof output, "cd %s && " TESTING_K " && %s", testing_folder(),
                       testing_program(), command);
}

static void assert_said(const char *text) {
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

/* 18 classes in three tar files of six, and the same without what is lost of the second. */
static int begin(void **state) {
    (void)state;
    tiny_make();
    return shell(
        "rm -rf cut rest && mkdir cut rest && cd tiny && "
        "for k in 0 1 2; do tar cf ../cut/$k.tar $(ls | awk \"NR % 3 == $k\"); done && cd ../cut && "
        "cp 0.tar 2.tar ../rest && head -c $(($(wc -c < 1.tar) / 2)) 1.tar > half && mv half 1.tar");
}

static void test_a_recipe(void **state) {
    (void)state;
    if (shell("$K train tiny.yaml --set data.root=cut --out cut-run --no-report") != 0)
        fail_msg("%s", output);
    assert_said("warning: not read: 1 damaged or missing tar file; the first is cut/1.tar: damaged at byte ");
    assert_said("images before that are read");
    assert_said("30 steps, in cut-run");
    /* What is left: two tar files of six classes of eight, and whole images of the third. */
    assert_int_equal(0, shell("$K data cut --json"));
    assert_said("\"images\": ");
    const int n = (int)strtol(strstr(output, "\"images\": ") + 10, NULL, 10);
    if (n <= 96 || n >= 144) fail_msg("%d images", n);
    char *result = tiny_read("cut-run", "result.json");
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\"n_unreadable\": 0");
    if (!strstr(result, wanted)) fail_msg("%s", result);
    free(result);
    if (shell("$K train cut-run --resume --no-report") != 0) fail_msg("%s", output);
}

/* The search lists the file with what it found in the photos. */
static void test_photos(void **state) {
    (void)state;
    if (shell("$K embed --backbone convnet4 --settings width=8 --generate 1 --save start.safetensors -o "
              "x.npy && "
              "$K train cut --model start.safetensors --minutes 0.1 --no-report -o search") != 0)
        fail_msg("%s", output);
    assert_said("only noted: a tar file that cannot be read whole: ");
    assert_said("cut/1.tar: damaged at byte ");
    char *found = tiny_read("search", "tune.json");
    if (!strstr(found, "\"kind\": \"unreadable\"") || !strstr(found, "1.tar: damaged at byte "))
        fail_msg("%s", found);
    free(found);
}

/* Nothing is left of it: the others are trained on. */
static void test_nothing_left(void **state) {
    (void)state;
    if (shell(
            "truncate -s 100 cut/1.tar && $K train tiny.yaml --set data.root=cut --out short --no-report && "
            "$K train tiny.yaml --set data.root=rest --out rest-run --no-report -q && cmp "
            "short/model.safetensors "
            "rest-run/model.safetensors") != 0)
        fail_msg("%s", output);
    assert_said("cut/1.tar: damaged at byte 0");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_a_recipe, begin),
                                       cmocka_unit_test_setup(test_photos, begin),
                                       cmocka_unit_test_setup(test_nothing_left, begin)};
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
