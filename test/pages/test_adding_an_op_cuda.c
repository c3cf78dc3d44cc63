/* The op of docs/adding-an-op.md on the device against the reference: float32 and bf16, whole maps and slices of wider ones. */
#include "pages/op_lines.h"
#include "support/op_check.h"

typedef struct side {
    const char *name;
    ki_precision precision;
    int64_t gap;
    double tolerance;
} side;

static ki_backend *ref, *cuda[2];

static int open_all(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++)
        cuda[i] = op_backend("cuda", &(ki_backend_options){.precision = i ? KI_BF16 : KI_FLOAT32});
    ref = op_backend("ref", NULL);
    return 0;
}

static int close_all(void **state) {
    (void)state;
    ki_backend_close(cuda[0]);
    ki_backend_close(cuda[1]);
    ki_backend_close(ref);
    return 0;
}

static void compare(const op_case *c, void *user) {
    const side *s = user;
    op_run a, b;
    kith_error err;
    double worst = 0;
    assert_ok(op_run_init_sliced(&a, c, cuda[s->precision], s->gap, &err), &err);
    assert_ok(op_run_init(&b, c, ref, &err), &err);
    op_run_step(&a);
    op_run_step(&b);
    op_check_near(&a, &b, s->name, s->tolerance, &worst);
    if (!op_run_gaps_are_intact(&a)) fail_msg("%s in %s: written between the pixels", c->line, s->name);
    op_run_release(&a);
    op_run_release(&b);
}

static void test_cuda_against_ref(void **state) {
    (void)state;
    static side sides[] = {
        {"float32", KI_FLOAT32, 0, 1e-6},
        {"float32 in slices", KI_FLOAT32, 8, 1e-6},
        {"float32 in odd slices", KI_FLOAT32, 3, 1e-6},
        {"bf16", KI_BF16, 0, 2e-2},
        {"bf16 in slices", KI_BF16, 8, 2e-2},
    };
    for (size_t i = 0; i < N_ROWS(sides); i++) {
        op_lines("leaky_relu", "leaky_relu", 5, compare, &sides[i]);
        op_lines("small", "leaky_relu", 2, compare, &sides[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cuda_against_ref)};
    return cmocka_run_group_tests_name("docs/adding-an-op on the device", tests, open_all, close_all);
}
