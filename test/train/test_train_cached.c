/* batch.cached as a user types it: the same run as with whole batches up to rounding, also where it meets other keys; a stopped run
 * ends in the same bits; what it does not go with is refused in one line. */
#include "train/rank_runs.h"
#include "train/whole.h"

/* Batches of 6 in chunks of 4 and 2. */
#define WHOLE "--set model.bn=frozen --set optim.lr=1e-3 --set optim.steps=12 --set eval.select=last "
#define CACHED WHOLE "--set batch.cached=true --set batch.chunk=4 "

static void check(const char *name, const char *arguments, double most) {
    char whole[64], cached[64], with[2][4600];
    snprintf(whole, sizeof whole, "whole-%s", name);
    snprintf(cached, sizeof cached, "cached-%s", name);
    snprintf(with[0], sizeof with[0], WHOLE "%s", arguments);
    snprintf(with[1], sizeof with[1], CACHED "%s", arguments);
    rank_runs_train("", 1, whole, with[0]);
    rank_runs_train("", 1, cached, with[1]);
    rank_runs_near(cached, whole, most);
}

static void test_same_run(void **state) {
    (void)state;
    check("plain", "", 1e-4);
    /* Features are images of one number each. */
    check("frozen", "--set model.frozen=true --set model.views=2", 1e-4);
    check("sides", "--set input.sides='[16, 20]' --set input.augment=resized", 1e-4);
    check("taught", rank_runs_taught(), 1e-4);
    check("heads",
          "--set model.heads=2 --set model.map_channels=12 --set model.embedding_bias=false "
          "--set 'objective={loss: {name: contrastive, form: horde}, regularizers: [{name: head_divergence, "
          "weight: 0.5}, {name: horde, weight: 0.25, orders: 2, dimension: 16, embedding: 8}]}'",
          1e-4);
}

static const char *const sets[] = {"model.bn=frozen",
                                   "batch={classes: 3, images: 2, cached: true, chunk: 4}"};

static kith_status train_cached(const char *out, bool resume, stopper stop, kith_error *err) {
    return train_sets(out, resume, stop, sets, (int64_t)N_ROWS(sets), err);
}

static void test_resume(void **state) {
    (void)state;
    kith_error err;
    static const int64_t stops[] = {1, 9};
    assert_ok(train_cached("never", false, never, &err), &err);
    for (size_t i = 0; i < N_ROWS(stops); i++) {
        char out[32];
        snprintf(out, sizeof out, "stopped-%d", (int)stops[i]);
        assert_int_equal(train_cached(out, false, (stopper){.stop_at = stops[i]}, &err), KITH_ECANCELED);
        assert_ok(train_cached(out, true, never, &err), &err);
        assert_same_end("never", out);
    }
}

/* One line each, and nothing is left behind. */
static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *arguments, *line;
    } rows[] = {
        {"--set batch.cached=true", "the batch norms of convnet4 use the statistics of a batch"},
        {"--set batch.chunk=4", "batch: chunk 4 without cached"},
        {"--set batch.cached=maybe", "batch: cached is 'maybe'"},
        {"--set batch.cached=true --set batch.chunk=0",
         "batch: chunk is '0' (wanted a whole number: 1 … 1000000)"},
        {"--set batch.cached=true --set batch.chunks=4", "batch: unknown option 'chunks'"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        if (rank_runs_try("", 1, "refused", rows[i].arguments) == 0)
            fail_msg("%s was taken", rows[i].arguments);
        if (!strstr(rank_runs_said, rows[i].line) || tiny_count_lines(rank_runs_said) != 1)
            fail_msg("%s: %s; wanted %s", rows[i].arguments, rank_runs_said, rows[i].line);
        if (tiny_exists("refused", "recipe.yaml")) fail_msg("%s leaves a run folder", rows[i].arguments);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_run), cmocka_unit_test(test_resume),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
