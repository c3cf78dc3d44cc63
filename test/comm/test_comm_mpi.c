/* The calls of a comm over MPI: this program starts itself with mpirun, and each rank checks what it gets. */
#include "comm/calls.h"
#include "support/mpirun.h"

static int run_rank(void) {
    ki_comm *comm = NULL;
    kith_error err = {0};
    calls_found found = {0};
    if (ki_comm_open(&comm, &err) != KITH_OK) {
        printf("no comm: %s\n", err.message);
        return 1;
    }
    calls_check(comm, &found);
    if (*found.wrong) printf("rank %d of %d: %s\n", comm->rank, comm->size, found.wrong);
    printf("checked %d\n", comm->size);
    return *found.wrong != '\0';
}

static void test_calls(void **state) {
    (void)state;
    char output[8192];
    if (!mpirun_is_there()) skip();
    for (int size = 2; size <= 3; size++) {
        const int status =
            testing_run(output, sizeof output, MPIRUN " -np %d '%s' 2>&1", size, testing_self());
        if (status != 0) fail_msg("%d ranks: %s", size, output);
        int n = 0;
        for (const char *at = output; (at = strstr(at, "checked ")); at++) n++;
        assert_int_equal(n, size);
    }
}

int main(void) {
    if (getenv("OMPI_COMM_WORLD_SIZE")) return run_rank();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
