/* Parallel loops: every item once, nesting, thread counts. */
#include "base/parallel.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cores.h"
#include "base/sanitizer.h"
#include "kith/log.h"
#include "support/testing.h"

enum { MOST_ITEMS = 1000 };

typedef struct visit {
    atomic_int count[MOST_ITEMS];
    atomic_int n_runs;
    atomic_llong least;
} visit;

static void visit_range(void *context, int64_t begin, int64_t end) {
    visit *v = context;
    atomic_fetch_add(&v->n_runs, 1);
    long long least = atomic_load(&v->least);
    while (end - begin < least && !atomic_compare_exchange_weak(&v->least, &least, end - begin)) {
    }
    for (int64_t i = begin; i < end; i++) atomic_fetch_add(&v->count[i], 1);
}

/* Every item once, no run below the grain (unless all items together are), no more runs than
 * threads: over sizes and grains around the places where the cuts fall. */
static void test_every_item_once(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 2, 3, 7, 10, 16, 17, 999, 1000}, grains[] = {0, 1, 2, 6, 8, 500, 2000};
    for (int threads = 1; threads <= 4; threads++) {
        ki_threads_set(threads);
        for (size_t s = 0; s < N_ROWS(sizes); s++) {
            for (size_t g = 0; g < N_ROWS(grains); g++) {
                static visit v;
                memset(&v, 0, sizeof v);
                atomic_store(&v.least, MOST_ITEMS + 1);
                ki_parallel_for(sizes[s], grains[g], visit_range, &v);
                for (int64_t i = 0; i < MOST_ITEMS; i++) assert_int_equal(v.count[i], i < sizes[s]);
                assert_in_range(v.n_runs, 1, threads);
                const int64_t wanted = sizes[s] < grains[g] ? sizes[s] : grains[g];
                if (v.least < wanted)
                    fail_msg("%d items, grain %d, %d threads: a run of %d", (int)sizes[s], (int)grains[g],
                             threads, (int)v.least);
            }
        }
    }
    ki_threads_set(0);
}

static void test_nothing_to_do(void **state) {
    (void)state;
    static visit v;
    ki_parallel_for(0, 1, visit_range, &v);
    ki_parallel_for(-5, 1, visit_range, &v);
    assert_int_equal(v.n_runs, 0);
}

static void nested(void *context, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) ki_parallel_for(10, 1, visit_range, context);
}

static void test_nesting_runs_in_place(void **state) {
    (void)state;
    static visit v;
    atomic_store(&v.least, MOST_ITEMS);
    ki_threads_set(2);
    ki_parallel_for(4, 1, nested, &v);
    ki_threads_set(0);
    for (int i = 0; i < 10; i++) assert_int_equal(v.count[i], 4);
    assert_int_equal(v.n_runs, 4);
}

static void test_thread_count(void **state) {
    (void)state;
    ki_threads_set(3);
    assert_int_equal(ki_threads(), 3);
    ki_threads_set(0);
    assert_true(ki_threads() >= 1);
}

static void test_zero_is_what_the_environment_says(void **state) {
    (void)state;
    setenv("OMP_NUM_THREADS", "5", 1);
    ki_threads_set(2);
    ki_threads_set(0);
    assert_int_equal(ki_threads(), 5);
    unsetenv("OMP_NUM_THREADS");
    ki_threads_set(0);
}

static void test_a_number_that_is_not_sane(void **state) {
    (void)state;
    kith_error err = {0};
    ki_threads_set(2);
    assert_int_equal(ki_threads_ask(4096, &err), KITH_EINVAL);
    assert_string_equal(err.message, "4096 threads; wanted 0 to 256");
    assert_int_equal(ki_threads_ask(-1, &err), KITH_EINVAL);
    assert_int_equal(ki_threads(), 2);
    assert_ok(ki_threads_ask(3, &err), &err);
    assert_int_equal(ki_threads(), 3);
    ki_threads_set(0);
}

/* Threads need stacks. The runtime would end the process here, with a message of its own. */
static void keep_line(void *user, kith_log_level level, const char *line) {
    if (level == KITH_LOG_WARNING) snprintf(user, 256, "%s", line);
}

/* They are given, and a line says what that costs. */
static void test_more_threads_than_cores(void **state) {
    (void)state;
    char line[256] = "", wanted[64];
    kith_error err = {0};
    const int before = ki_threads();
    kith_log_set(keep_line, line, KITH_LOG_WARNING);
    for (int more = 0; more < 2; more++) {
        assert_ok(ki_threads_ask(ki_cores_allowed() + more, &err), &err);
        assert_int_equal(ki_threads(), ki_cores_allowed() + more);
        snprintf(wanted, sizeof wanted, "%d threads were asked for, and %d fit", ki_cores_allowed() + more,
                 ki_cores_allowed());
        if ((strstr(line, wanted) != NULL) != more) fail_msg("%d more: '%s'", more, line);
    }
    kith_log_set(NULL, NULL, KITH_LOG_WARNING);
    ki_threads_set(before);
}

static void test_threads_that_cannot_be_made(void **state) {
    (void)state;
    if (KI_ASAN || KI_TSAN) skip(); /* they take terabytes of addresses */
    kith_error err = {0};
    struct rlimit before, tight;
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    tight = before;
    tight.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)400 << 20);
    ki_threads_set(2);
    assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
    const kith_status status = ki_threads_ask(250, &err);
    ki_threads_set(250); /* nobody asked for exactly that many: as many as there are */
    const int given = ki_threads();
    static visit v;
    ki_parallel_for(MOST_ITEMS, 1, visit_range, &v);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    ki_threads_set(0);
    assert_int_equal(status, KITH_ENOMEM);
    assert_non_null(strstr(err.message, "250 threads were asked for, and the system gives "));
    assert_in_range(given, 2, 249);
    for (int i = 0; i < MOST_ITEMS; i++) assert_int_equal(v.count[i], 1);
}

/* OpenMP's threads do not exist in a child, which would wait for them for ever: after a fork both processes compute. */
static void test_a_forked_child_computes(void **state) {
    (void)state;
    if (KI_TSAN) skip(); /* its runtime starts no threads in a child */
    static visit v;
    ki_threads_set(3);
    v = (visit){.least = MOST_ITEMS};
    ki_parallel_for(MOST_ITEMS, 1, visit_range, &v);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20); /* ends a child that hangs */
        v = (visit){.least = MOST_ITEMS};
        ki_parallel_for(MOST_ITEMS, 1, visit_range, &v);
        _exit(v.count[0] == 1 && v.count[MOST_ITEMS - 1] == 1 && v.n_runs == 3 ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0) fail_msg("the child ended with status %d", status);
    v = (visit){.least = MOST_ITEMS};
    ki_parallel_for(MOST_ITEMS, 1, visit_range, &v);
    assert_int_equal(v.n_runs, 3);
    ki_threads_set(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_item_once),
        cmocka_unit_test(test_a_forked_child_computes),
        cmocka_unit_test(test_nothing_to_do),
        cmocka_unit_test(test_nesting_runs_in_place),
        cmocka_unit_test(test_thread_count),
        cmocka_unit_test(test_zero_is_what_the_environment_says),
        cmocka_unit_test(test_a_number_that_is_not_sane),
        cmocka_unit_test(test_more_threads_than_cores),
        cmocka_unit_test(test_threads_that_cannot_be_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
