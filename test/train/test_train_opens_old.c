/* Models, finished runs and result cards made before 0.2 (test/golden/run-0.1) still open. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/array.h"
#include "kith/card.h"
#include "support/testing.h"

enum { OUTPUT = 1 << 16 };
static char output[OUTPUT];

/* A command in the test's folder, where old/run is the old run and tiny its data; fails when it does. */
#define run(...)                                                                                      \
    do {                                                                                              \
        char command_[2048];                                                                          \
        snprintf(command_, sizeof command_, __VA_ARGS__);                                             \
        const int status_ = testing_run(output, OUTPUT, "cd '%s' && %s", testing_folder(), command_); \
        if (status_ != 0) fail_msg("%s: status %d: %s", command_, status_, output);                   \
    } while (0)

static const char *at(const char *name) {
    static char path[2][1024];
    static int which;
    which = !which;
    snprintf(path[which], sizeof path[which], "%s/%s", testing_folder(), name);
    return path[which];
}

static int set_up(void **state) {
    (void)state;
    run("'%s' synth tiny --classes 12 --images 6 --size 24", testing_program_path());
    run("cp -r '%s/test/golden/run-0.1' old", KITH_SOURCE_DIR);
    return 0;
}

static double number_at(const char *file, const char *key) {
    kith_card *result = NULL;
    kith_error err = {0};
    double value = NAN;
    assert_ok(kith_card_read(at(file), &result, &err), &err);
    if (!kith_card_real(result, key, &value)) fail_msg("%s has no %s", file, key);
    kith_card_free(result);
    return value;
}

static void assert_same(const char *a, const char *key_a, const char *b, const char *key_b) {
    const double x = number_at(a, key_a), y = number_at(b, key_b);
    if (!(fabs(x - y) < 1e-9)) fail_msg("%s of %s is %.12g, %s of %s %.12g", key_a, a, x, key_b, b, y);
}

/* The model's embeddings of the test images are those that the old program wrote beside it. */
static void test_model(void **state) {
    (void)state;
    kith_array old = {0}, now = {0};
    kith_error err = {0};
    run("'%s' eval old/run --data tiny --save-embedding now.npy --json > now.json", testing_program_path());
    assert_ok(kith_npy_read(at("old/run/test/embedding.npy"), &old, &err), &err);
    assert_ok(kith_npy_read(at("now.npy"), &now, &err), &err);
    assert_int_equal(kith_array_count(&old), kith_array_count(&now));
    const double apart = testing_relative_l2(now.data, old.data, kith_array_count(&old));
    if (!(apart < 1e-5)) fail_msg("the embeddings are %g apart", apart);
    static const char *const keys[] = {
        "recall.1", "map_at_r", "mrr", "queries", "classes", "nmi", "intervals.recall.1.0"};
    for (size_t i = 0; i < N_ROWS(keys); i++) assert_same("now.json", keys[i], "old/eval.json", keys[i]);
    kith_array_release(&old);
    kith_array_release(&now);
}

/* A run that was finished says its result; its folder still makes a report. */
static void test_finished_run(void **state) {
    (void)state;
    run("'%s' train old/run --resume --no-report", testing_program_path());
    assert_non_null(strstr(output, "R@1     16.67  (95 % interval: 5.56 to 27.78)  untrained 16.67"));
    assert_non_null(strstr(output, "model of step 8 of 8"));
    run("'%s' report old/run", testing_program_path());
    char *page = testing_read(at("old/run/report.html"));
    assert_non_null(strstr(page, "16.67")); /* R@1 */
    assert_non_null(strstr(page, "36"));    /* test images */
    free(page);
}

/* An old run is compared query by query, from the test embeddings in its folder; without them it has no such interval. */
static void test_compared(void **state) {
    (void)state;
    run("'%s' eval old/run --data tiny --json > again.json", testing_program_path());
    run("'%s' eval --compare old/run again.json", testing_program_path());
    assert_non_null(strstr(output, "a paired bootstrap over the same 36 queries."));
    assert_non_null(strstr(output, "+0.00  (+0.00 to +0.00)  the same"));
    run("cp -r old/run bare && rm -r bare/test && '%s' eval --compare bare again.json",
        testing_program_path());
    assert_non_null(strstr(output, "No intervals of the differences: bare/result.json does not say"));
}

/* A checkpoint of that time is refused in one line, and nothing is changed. */
static void test_interrupted_run(void **state) {
    (void)state;
    run("cp -r old/run cut && rm cut/result.json cut/model.safetensors cut/pairs.json && rm -r cut/test");
    run("! '%s' train cut --resume --no-report && ls cut/checkpoints", testing_program_path());
    assert_non_null(strstr(output, "a checkpoint of format 3; this kith reads 5"));
    assert_non_null(strstr(output, "\nstep-00000004.safetensors\n"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_model), cmocka_unit_test(test_finished_run),
                                       cmocka_unit_test(test_compared),
                                       cmocka_unit_test(test_interrupted_run)};
    return cmocka_run_group_tests_name("train/opens old", tests, set_up, testing_tear_down);
}
