/* The calls of a comm, on ranks that are threads, and how parts are dealt out. */
#include "comm/calls.h"
#include "support/thread_ranks.h"

typedef struct heard {
    calls_found found[THREAD_RANKS_MOST];
} heard;

static void call(ki_comm *comm, void *user) { calls_check(comm, &((heard *)user)->found[comm->rank]); }

static void test_calls(void **state) {
    (void)state;
    for (int size = 1; size <= 5; size++) {
        heard h = {0};
        thread_ranks_run(size, call, &h);
        for (int r = 0; r < size; r++) {
            if (*h.found[r].wrong) fail_msg("rank %d of %d: %s", r, size, h.found[r].wrong);
        }
    }
}

static void test_parts(void **state) {
    (void)state;
    for (int64_t n = 0; n < 20; n++) {
        for (int size = 1; size < 6; size++) {
            int64_t next = 0;
            for (int r = 0; r < size; r++) {
                int64_t first = -1, n_own = -1;
                ki_comm_part(n, r, size, &first, &n_own);
                if (first != next || n_own < n / size || n_own > (n + size - 1) / size)
                    fail_msg("rank %d of %d has %lld of %lld from %lld; %lld are dealt out", r, size,
                             (long long)n_own, (long long)n, (long long)first, (long long)next);
                next += n_own;
            }
            assert_int_equal(next, n);
        }
    }
}

/* Without a starter there is one rank. */
static void test_alone(void **state) {
    (void)state;
    ki_comm *comm = NULL;
    kith_error err = {0};
    calls_found found = {0};
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("PMI_SIZE");
    assert_ok(ki_comm_open(&comm, &err), &err);
    assert_int_equal(comm->size, 1);
    calls_check(comm, &found);
    if (*found.wrong) fail_msg("%s", found.wrong);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_calls), cmocka_unit_test(test_parts),
                                       cmocka_unit_test(test_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
