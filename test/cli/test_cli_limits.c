/* Commands with too little of something: memory (ulimit -v), threads. Each must end by itself, and soon: with its
 * result, or with lines of its own that say what is missing. The libraries below it hang, crash or end the process
 * when they get no memory, so what they need is looked for first. */
#include <stdio.h>
#include <string.h>

#include "base/sanitizer.h"
#include "support/testing.h"

static char output[65536], folder[256];

#define run(...) testing_run(output, sizeof output, __VA_ARGS__)

enum { SECONDS = 100, TIMED_OUT = 124 };

static int make_run(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "%s", testing_folder());
    const int status = run(
        "cd %s && k=%s && \"$k\" synth glyphs --classes 12 --images 4 && "
        "\"$k\" train %s/recipes/quickstart.yaml --out run --set data.root=glyphs --set "
        "input.resize=squash32 "
        "--set input.crop=28 --set optim.steps=3 --set batch.images=2 && \"$k\" embed run glyphs -o e.npy",
        folder, testing_program(), testing_source());
    if (status != 0) print_error("%s\n", output);
    return status;
}

/* Every line on stderr is the program's own. */
static bool has_only_own_lines(const char *text) {
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (*line && strncmp(line, "kith: ", 6) != 0) return false;
    }
    return true;
}

static void check_with_memory(const char *command) {
    if (KI_ASAN || KI_TSAN) skip(); /* they take terabytes of addresses */
    int n_failed = 0, n_done = 0;
    for (int mib = 200; mib <= 1000; mib += 160) {
        const int status = run("cd %s && ulimit -v %d && timeout %d %s %s 2>&1 >/dev/null", folder,
                               mib * 1024, SECONDS, testing_program(), command);
        if (status == TIMED_OUT)
            fail_msg("kith %s in %d MiB is still running after %d s", command, mib, SECONDS);
        if (status != 0 && status != 1)
            fail_msg("kith %s in %d MiB: exit status %d: %s", command, mib, status, output);
        if (status == 1 && (!*output || !has_only_own_lines(output)))
            fail_msg("kith %s in %d MiB says:\n%s", command, mib, output);
        n_failed += status == 1;
        n_done += status == 0;
    }
    print_message("kith %s: %d refused, %d done\n", command, n_failed, n_done);
    assert_true(n_failed > 0); /* else the limits were not tight enough to test anything */
    assert_true(n_done > 0);
}

static void test_version_in_little_memory(void **state) {
    (void)state;
    check_with_memory("--version");
}

static void test_embed_in_little_memory(void **state) {
    (void)state;
    check_with_memory("embed run glyphs -o f.npy");
}

static void test_map_in_little_memory(void **state) {
    (void)state;
    check_with_memory("map e.npy --components 10 --perplexity 5 --iterations 20 -o m.svg");
}

static void test_report_in_little_memory(void **state) {
    (void)state;
    check_with_memory("report run -o r.html");
}

static void test_step_in_little_memory(void **state) {
    (void)state;
    check_with_memory(
        "bench train --backbone convnet4 --size 28 --batch 8 --steps 2 --objective '{loss: {name: raw}}'");
}

/* OpenMP's runtime would print a line of its own and end the process. */
static void test_too_many_threads(void **state) {
    (void)state;
    const char *train = "train recipes/quickstart.yaml --out other --set threads=4096 --set data.root=";
    assert_int_equal(run("cd %s && %s %s%s/glyphs", testing_source(), testing_program(), train, folder), 1);
    assert_non_null(strstr(output, "threads is '4096'"));
    assert_non_null(strstr(output, "0 … 256"));
    if (KI_ASAN || KI_TSAN) return;
    assert_int_equal(
        run("cd %s && ulimit -v 1500000 && timeout %d %s bench train --backbone convnet4 --size 28 "
            "--batch 8 --steps 2 --threads 250",
            folder, SECONDS, testing_program()),
        1);
    assert_true(has_only_own_lines(output));
    assert_non_null(strstr(output, "250 threads were asked for, and the system gives "));
}

static void test_threads_of_the_environment(void **state) {
    (void)state;
    const char *bench = "bench train --backbone convnet4 --size 28 --batch 4 --steps 2";
    for (int n = 1; n <= 3; n++) {
        char wanted[32];
        snprintf(wanted, sizeof wanted, ", %d threads,", n);
        assert_int_equal(run("OMP_NUM_THREADS=%d %s %s", n, testing_program(), bench), 0);
        if (!strstr(output, wanted)) fail_msg("OMP_NUM_THREADS=%d: %s", n, output);
    }
}

/* The program starts itself anew so that its threads do not spin, unless it is told how they wait. */
static void test_waiting_is_chosen_once(void **state) {
    (void)state;
    static const struct {
        const char *set, *wanted;
    } rows[] = {{"", "10000"}, {"GOMP_SPINCOUNT=7", "7"}, {"OMP_WAIT_POLICY=passive", "0"}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        /* gcc's runtime says what it is set to each time it is loaded. */
        assert_int_equal(
            run("env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT OMP_DISPLAY_ENV=verbose %s %s list backbones 2>&1 "
                ">/dev/null | sed -n \"s/.*GOMP_SPINCOUNT = '\\(.*\\)'/\\1/p\" | tail -n 1 | tr -d '\\n'",
                rows[i].set, testing_program()),
            0);
        if (!*output) skip(); /* another runtime */
        assert_string_equal(output, rows[i].wanted);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version_in_little_memory),   cmocka_unit_test(test_embed_in_little_memory),
        cmocka_unit_test(test_map_in_little_memory),       cmocka_unit_test(test_report_in_little_memory),
        cmocka_unit_test(test_step_in_little_memory),      cmocka_unit_test(test_too_many_threads),
        cmocka_unit_test(test_threads_of_the_environment), cmocka_unit_test(test_waiting_is_chosen_once),
    };
    return cmocka_run_group_tests(tests, make_run, testing_tear_down);
}
