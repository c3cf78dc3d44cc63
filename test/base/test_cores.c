/* How many threads fit: cgroups, affinity and OMP_NUM_THREADS. */
#include "base/cores.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/testing.h"

static char output[4096];

static void put(const char *path, const char *text) {
    char full[512];
    snprintf(full, sizeof full, "%s/%s", testing_folder(), path);
    if (testing_run(output, sizeof output, "mkdir -p $(dirname %s)", full) != 0) fail_msg("%s", output);
    testing_write(full, text);
}

static void empty(void) {
    if (testing_run(output, sizeof output, "rm -rf %s/*", testing_folder()) != 0) fail_msg("%s", output);
}

static int quota(void) { return ki_cores_quota(testing_folder()); }

static void test_no_groups(void **state) {
    (void)state;
    empty();
    assert_int_equal(quota(), 0);
    put("proc/self/cgroup", "0::/\n");
    assert_int_equal(quota(), 0);
}

/* Half a core still needs a thread, one and a half need two. */
static void test_version_2(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int cores;
    } rows[] = {{"max 100000\n", 0},    {"50000 100000\n", 1},
                {"100000 100000\n", 1}, {"150000 100000\n", 2},
                {"800000 100000\n", 8}, {"\n", 0},
                {"100000\n", 0},        {"1 0\n", 0},
                {"-1 100000\n", 0},     {"9999999999999999999 1\n", 0}};
    empty();
    put("proc/self/cgroup", "0::/box\n");
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        put("sys/fs/cgroup/box/cpu.max", rows[i].text);
        if (quota() != rows[i].cores)
            fail_msg("%s is %d cores; wanted %d", rows[i].text, quota(), rows[i].cores);
    }
}

static void test_the_least_of_the_groups_above(void **state) {
    (void)state;
    empty();
    put("proc/self/cgroup", "0::/a/b/c\n");
    put("sys/fs/cgroup/a/b/c/cpu.max", "400000 100000\n");
    assert_int_equal(quota(), 4);
    put("sys/fs/cgroup/a/cpu.max", "200000 100000\n");
    put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    assert_int_equal(quota(), 2);
    /* Inside a container the group's own folder is the mount. */
    put("sys/fs/cgroup/cpu.max", "100000 100000\n");
    assert_int_equal(quota(), 1);
}

static void test_version_1(void **state) {
    (void)state;
    empty();
    put("proc/self/cgroup", "5:cpuset:/x\n4:cpu,cpuacct:/x\n1:name=systemd:/\n");
    assert_int_equal(quota(), 0);
    put("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n");
    put("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
    assert_int_equal(quota(), 0);
    put("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "250000\n");
    assert_int_equal(quota(), 3);
    put("proc/self/cgroup", "5:cpuset:/x\n");
    assert_int_equal(quota(), 0);
}

static int64_t memory(void) { return ki_memory_quota(testing_folder()); }

static void test_memory(void **state) {
    (void)state;
    empty();
    assert_int_equal(memory(), 0);
    put("proc/self/cgroup", "0::/a/b\n");
    put("sys/fs/cgroup/a/b/memory.max", "max\n");
    assert_int_equal(memory(), 0);
    put("sys/fs/cgroup/a/b/memory.max", "9000000000\n");
    assert_int_equal(memory(), 9000000000);
    put("sys/fs/cgroup/a/memory.max", "5000000000\n");
    assert_int_equal(memory(), 5000000000);
    put("proc/self/cgroup", "5:cpuset:/x\n4:memory:/x\n");
    assert_int_equal(memory(), 0);
    put("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "7000000000\n");
    assert_int_equal(memory(), 7000000000);
    assert_true(ki_memory_allowed() > 1 << 20);
}

static void test_the_environment_goes_first(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool is_number;
        int n;
    } rows[] = {{"7", true, 7},   {"5,2", true, 5},   {"0", false, 0},
                {"-3", false, 0}, {"many", false, 0}, {"", false, 0}};
    unsetenv("OMP_NUM_THREADS");
    const int cores = ki_cores_allowed();
    assert_in_range(cores, 1, omp_get_num_procs());
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        setenv("OMP_NUM_THREADS", rows[i].text, 1);
        assert_int_equal(ki_cores_allowed(), rows[i].is_number ? rows[i].n : cores);
    }
    unsetenv("OMP_NUM_THREADS");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_groups),
        cmocka_unit_test(test_version_2),
        cmocka_unit_test(test_the_least_of_the_groups_above),
        cmocka_unit_test(test_version_1),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_the_environment_goes_first),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
