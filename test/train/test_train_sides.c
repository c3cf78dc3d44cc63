/* input.sides as a user types it: every batch has one of the sides, a stopped run ends in the same bits, one worker or several load the
 * same images, and what it does not go with is refused in one line. */
#include "train/rank_runs.h"
#include "train/whole.h"

/* The data set's own crop is 16. */
#define SIDES "input.sides=[16, 20, 24]"
#define AUGMENT "input.augment=resized"

static kith_status run(const char *out, const char *third, bool resume, stopper stop, kith_error *err) {
    const char *const sets[] = {SIDES, AUGMENT, third};
    return train_sets(out, resume, stop, sets, (int64_t)N_ROWS(sets), err);
}

static void test_resume(void **state) {
    (void)state;
    kith_error err;
    static const int64_t stops[] = {1, 9};
    assert_ok(run("never", "seed=0", false, never, &err), &err);
    for (size_t i = 0; i < N_ROWS(stops); i++) {
        char out[32];
        snprintf(out, sizeof out, "stopped-%d", (int)stops[i]);
        const stopper stop = {.stop_at = stops[i]};
        assert_int_equal(run(out, "seed=0", false, stop, &err), KITH_ECANCELED);
        assert_ok(run(out, "seed=0", true, never, &err), &err);
        assert_same_end("never", out);
    }
}

static void test_any_workers(void **state) {
    (void)state;
    kith_error err;
    assert_ok(run("one", "loader.workers=1", false, never, &err), &err);
    assert_ok(run("three", "loader.workers=3", false, never, &err), &err);
    assert_same_tensors("one", "three", "model.safetensors");
}

/* The sides are seen: training with them ends elsewhere than training without. */
static void test_sides_matter(void **state) {
    (void)state;
    rank_runs_train("", 1, "with", "--set eval.select=last --set '" SIDES "' --set " AUGMENT);
    rank_runs_train("", 1, "without", "--set eval.select=last --set " AUGMENT);
    rank_runs_train("", 1, "own", "--set eval.select=last --set 'input.sides=[16]' --set " AUGMENT);
    if (rank_runs_apart("without", "own") != 0) fail_msg("the crop alone is another training");
    const double off = rank_runs_apart("with", "without");
    if (!(off > 1e-3)) fail_msg("the sides change the embeddings by %g", off);
}

/* One line each, and nothing is left behind. */
static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *arguments, *line;
    } rows[] = {
        {"--set input.sides=16", "input: sides is '16'; wanted 1 to 8 rising whole numbers"},
        {"--set 'input.sides=[20, 16]'", "wanted 1 to 8 rising whole numbers"},
        {"--set 'input.sides=[16, 16.5]'", "wanted 1 to 8 rising whole numbers"},
        {"--set 'input.sides=[20, 24]'", "input: crop is 16 and no batch has it"},
        {"--set 'input.sides=[16, 20]' --set model.frozen=true", "input.sides: its features are of one size"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        if (rank_runs_try("", 1, "refused", rows[i].arguments) == 0)
            fail_msg("%s was taken", rows[i].arguments);
        if (!strstr(rank_runs_said, rows[i].line))
            fail_msg("%s: %s; wanted %s", rows[i].arguments, rank_runs_said, rows[i].line);
        if (tiny_exists("refused", "recipe.yaml")) fail_msg("%s leaves a run folder", rows[i].arguments);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_resume), cmocka_unit_test(test_any_workers),
                                       cmocka_unit_test(test_sides_matter), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
