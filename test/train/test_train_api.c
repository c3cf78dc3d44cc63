/* kith/train.h from C: the example, the calls without a command line, and what happens without memory. */
#include <math.h>

#include "base/alloc.h"
#include "judge/estimate.h"
#include "kith/train.h"
#include "train/tiny.h"

static char output[TINY_OUTPUT];

static const char *path_of(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", testing_folder(), name);
    return path;
}

static void test_the_example_trains(void **state) {
    (void)state;
    char program[4096];
    snprintf(program, sizeof program, "%s", testing_program_path());
    char *slash = strrchr(program, '/');
    snprintf(slash, sizeof program - (size_t)(slash - program), "/examples/train");
    assert_int_equal(0,
                     testing_run(output, sizeof output, "%s synth %s/forty --classes 40 --images 8 --size 32",
                                 testing_program(), testing_folder()));
    if (testing_run(output, sizeof output, "'%s' %s/forty %s/example", program, testing_folder(),
                    testing_folder()) != 0)
        fail_msg("%s", output);
    double after = 0, before = 0;
    const char *line = strstr(output, "unseen classes: R@1 ");
    if (!line || sscanf(line, "unseen classes: R@1 %lf %%, before training %lf", &after, &before) != 2)
        fail_msg("no figures: %s", output);
    if (!(after > before)) fail_msg("R@1 from %g to %g", before, after);
    if (!strstr(output, "nearest to test image 0")) fail_msg("%s", output);
    /* Once more: it is done, and says the same. */
    assert_int_equal(0, testing_run(output, sizeof output, "'%s' %s/forty %s/example", program,
                                    testing_folder(), testing_folder()));
    double again = 0;
    line = strstr(output, "unseen classes: R@1 ");
    assert_true(line && sscanf(line, "unseen classes: R@1 %lf", &again) == 1);
    assert_true(again == after);
}

typedef struct seen {
    int n[KITH_TRAIN_BUSY + 1];
    int64_t last_step;
    int64_t n_judged[3]; /* images of validation, test, seen: as counted when all were done */
    bool is_good;
} seen;

static int on_event(void *user, const kith_train_event *event) {
    seen *s = user;
    s->n[event->kind]++;
    if (event->kind == KITH_TRAIN_STEP) {
        s->is_good = s->is_good && event->step == s->last_step + 1 && event->n_steps == 30;
        s->last_step = event->step;
    }
    if (event->kind == KITH_TRAIN_BUSY) {
        s->is_good = s->is_good && event->n_done >= 0 && event->n_done <= event->n_all;
        const int split = !event->split ? -1 : event->split[0] == 'v' ? 0 : event->split[0] == 't' ? 1 : 2;
        if (split >= 0 && event->n_done == event->n_all) s->n_judged[split] = event->n_all;
    }
    return 0;
}

static void test_events_and_result(void **state) {
    (void)state;
    seen s = {.is_good = true};
    kith_error err;
    kith_train_result result;
    const kith_train_options options = {.size = sizeof(kith_train_options),
                                        .recipe = tiny_make(),
                                        .out = path_of("api"),
                                        .no_report = true,
                                        .notify = on_event,
                                        .user = &s};
    assert_ok(kith_train_run(&options, &result, &err), &err);
    assert_true(s.is_good);
    assert_int_equal(s.n[KITH_TRAIN_STEP], 30);
    assert_int_equal(s.n[KITH_TRAIN_BEGIN], 1);
    assert_int_equal(s.n[KITH_TRAIN_EVAL],
                     4 * 2 + 2); /* validation and seen, four times; test at both ends */
    assert_int_equal(s.n_judged[0], 2 * 8);
    assert_int_equal(s.n_judged[1], 9 * 8);
    assert_int_equal(s.n_judged[2], 7 * 8);
    assert_int_equal(result.n_runs, 1);
    assert_int_equal(result.n_steps, 30);
    assert_int_equal(result.test.recall_at_1.n, 1);
    const kith_estimate *recall = &result.test.recall_at_1;
    assert_true(recall->low <= recall->mean && recall->mean <= recall->high && recall->low < recall->high);
    assert_true(result.test.nmi.n == 1 && result.test.nmi.mean > 0 && isnan(result.test.nmi.low));
    assert_true(isnan(result.seen.recall_at_1.low));
    assert_string_equal(result.selection, "validation");
    assert_int_equal(kith_train_last_checkpoint(path_of("api")), 30);
    assert_int_equal(kith_train_last_checkpoint(path_of("nowhere")), -1);
}

static void test_intervals_are_students(void **state) {
    (void)state;
    /* Mean 2, standard deviation 1 over three values: half-width 4.3027 / sqrt(3). */
    const double three[] = {1, 2, 3}, one[] = {5}, gap[] = {1, NAN, 3};
    kith_estimate e = ki_estimate_mean(three, 3);
    assert_true(e.n == 3 && fabs(e.mean - 2) < 1e-12);
    if (!(fabs(e.high - 2 - 4.3027 / sqrt(3)) < 1e-9)) fail_msg("high is %.10g", e.high);
    e = ki_estimate_mean(one, 1);
    assert_true(e.n == 1 && e.mean == 5 && isnan(e.low));
    e = ki_estimate_mean(gap, 3);
    assert_true(e.n == 2 && e.mean == 2);
    e = ki_estimate_mean(NULL, 0);
    assert_true(e.n == 0 && isnan(e.mean));
    /* Beyond the table, against tables of Student's t: 2.0395 at 31, 1.9840 at 100, 1.9623 at 1000. */
    static const struct {
        int freedom;
        double t;
    } rows[] = {{1, 12.7062}, {30, 2.0423}, {31, 2.0395}, {100, 1.9840}, {1000, 1.9623}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        const int n = rows[i].freedom + 1;
        double *values = malloc((size_t)n * sizeof *values), squares = 0;
        for (int k = 0; k < n; k++) values[k] = k;
        for (int k = 0; k < n; k++) squares += (k - (n - 1) / 2.0) * (k - (n - 1) / 2.0);
        e = ki_estimate_mean(values, n);
        const double t = (e.high - e.mean) / sqrt(squares / (n - 1) / n);
        if (!(fabs(t - rows[i].t) < 5e-4))
            fail_msg("t of %d is %g; wanted %g", rows[i].freedom, t, rows[i].t);
        free(values);
    }
}

/* Any allocation may fail: the run ends with the error, and another one goes on from what is there. */
static void test_no_memory(void **state) {
    (void)state;
    static const char *const sets[] = {"optim.steps=2", "eval.every=0", "data.validation=0",
                                       "checkpoint.every=1"};
    kith_error err;
    kith_train_options options = {.size = sizeof(kith_train_options),
                                  .recipe = tiny_make(),
                                  .sets = sets,
                                  .n_sets = 4,
                                  .out = path_of("memory-whole"),
                                  .resume = true,
                                  .no_report = true};
    assert_ok(kith_train_run(&options, NULL, &err), &err);
    options.out = path_of("memory");
    int n_failures = 0;
    bool is_done = false;
    /* Not every allocation: there are thousands. */
    for (int64_t n = 0; !is_done; n += 1 + n / 3) {
        ki_alloc_fail_after(n);
        const kith_status status = kith_train_run(&options, NULL, &err);
        const bool has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        if (status == KITH_OK)
            is_done = true;
        else {
            if (!has_failed || !err.message[0]) fail_msg("%d: %s", (int)status, err.message);
            n_failures++;
        }
        if (n > 100000000) fail_msg("it never ended");
    }
    assert_true(n_failures > 10);
    tiny_assert_same("memory-whole", "memory", "model.safetensors");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_example_trains),
        cmocka_unit_test(test_events_and_result),
        cmocka_unit_test(test_intervals_are_students),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
