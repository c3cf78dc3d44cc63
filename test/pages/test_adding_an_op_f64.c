/* The gradient of the op of docs/adding-an-op.md against central differences, in double. */
#include <string.h>

#include "base/parallel.h"
#include "pages/op_lines.h"
#include "support/differences.h"

static void op_forward(void *context, double *dst) {
    op_run *run = context;
    kith_error err;
    assert_ok(op_run_forward(run, &err), &err);
    memcpy(dst, run->dst, (size_t)run->n_dst * sizeof *dst);
}

static void check(const op_case *c, void *user) {
    op_run run;
    kith_error err;
    subject *s = user;
    ki_backend *backend = NULL;
    assert_ok(ki_backend_open("ref", NULL, &backend, &err), &err);
    assert_ok(op_run_init(&run, c, backend, &err), &err);
    assert_ok(op_run_forward(&run, &err), &err);
    assert_ok(op_run_backward(&run, &err), &err);
    s->name = c->line;
    s->context = &run;
    s->n_dst = run.n_dst;
    s->diff_dst = run.diff_dst;
    check_tensor(s, "src", run.src[0], run.diff_src[0], run.n_src[0]);
    op_run_release(&run);
    ki_backend_close(backend);
}

static void test_gradient(void **state) {
    (void)state;
    subject total = {.name = "leaky_relu", .forward = op_forward, .max_coordinates = 400};
    op_lines("small", "leaky_relu", 2, check, &total);
    report(&total);
}

int main(void) {
    ki_threads_set(1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradient)};
    return cmocka_run_group_tests_name("docs/adding-an-op in double", tests, NULL, NULL);
}
