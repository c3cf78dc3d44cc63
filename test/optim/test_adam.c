/* Adam by rules on names, against the formula written out here, on both CPU backends. */
#include "optim/adam.h"

#include <math.h>
#include <string.h>

#include "core/parallel.h"
#include "net/hashed.h"
#include "support/testing.h"

enum { N_A = 37, N_B = 5, N_C = 11, N = N_A + N_B + N_C, STEPS = 4 };

static const ki_optim_rule rules[] = {
    {.layer = "embedding", .lr = 10, .decay = 1},
    {.role = ".bias", .lr = 2, .decay = 0},
};

typedef struct expected {
    double value[N], m[N], v[N];
} expected;

static void expected_step(expected *e, const float *diff, const double *lr, const double *decay,
                          const ki_adam_options *o, int t) {
    for (int i = 0; i < N; i++) {
        e->value[i] -= lr[i] * o->decoupled * (decay[i] > 0) * e->value[i];
        const double g = (double)diff[i] + decay[i] * o->decay * e->value[i];
        e->m[i] = 0.9 * e->m[i] + 0.1 * g;
        e->v[i] = 0.999 * e->v[i] + 0.001 * g * g;
        const double m = e->m[i] / (1 - pow(0.9, t)), v = e->v[i] / (1 - pow(0.999, t));
        e->value[i] -= lr[i] * m / (sqrt(v) + 1e-8);
    }
}

typedef struct fixture {
    ki_backend *backend;
    float *value, *diff; /* device memory; the CPU's is the host's */
    ki_optim_param params[3];
} fixture;

static void set_up(fixture *f, const char *device) {
    kith_error err = {0};
    assert_ok(ki_backend_open(device, NULL, &f->backend, &err), &err);
    void *ptr = NULL;
    assert_ok(f->backend->type->alloc(f->backend, N * sizeof(float), &ptr, &err), &err);
    f->value = ptr;
    assert_ok(f->backend->type->alloc(f->backend, N * sizeof(float), &ptr, &err), &err);
    f->diff = ptr;
    hashed_fill("value", f->value, N, -1, 1);
    hashed_fill("diff", f->diff, N, -1, 1);
    f->params[0] = (ki_optim_param){"conv1.weight", N_A, f->value, f->diff};
    f->params[1] = (ki_optim_param){"conv1.bias", N_B, f->value + N_A, f->diff + N_A};
    f->params[2] = (ki_optim_param){"embedding.weight", N_C, f->value + N_A + N_B, f->diff + N_A + N_B};
}

static void tear_down(fixture *f) {
    f->backend->type->free(f->backend, f->value);
    f->backend->type->free(f->backend, f->diff);
    ki_backend_close(f->backend);
}

static void check(const char *device, double decay, double decoupled) {
    kith_error err = {0};
    fixture f;
    set_up(&f, device);
    const ki_adam_options options = {.decay = decay, .decoupled = decoupled, .n_rules = 2, .rules = rules};
    ki_adam *adam = NULL;
    assert_ok(ki_adam_new(f.backend, f.params, 3, &options, &adam, &err), &err);
    assert_int_equal(ki_adam_n_runs(adam), 3);
    expected e = {.value = {0}};
    double lr[N], decays[N];
    for (int i = 0; i < N; i++) {
        e.value[i] = (double)f.value[i];
        lr[i] = 1e-2 * (i < N_A ? 1 : i < N_A + N_B ? 2 : 10);
        decays[i] = i >= N_A && i < N_A + N_B ? 0 : 1;
    }
    for (int t = 1; t <= STEPS; t++) {
        expected_step(&e, f.diff, lr, decays, &options, t);
        assert_ok(ki_adam_update(adam, 1e-2, &err), &err);
        assert_ok(f.backend->type->sync(f.backend, &err), &err);
    }
    for (int i = 0; i < N; i++) {
        if (!(fabs((double)f.value[i] - e.value[i]) < 1e-6))
            fail_msg("%s: value %d is %.9g, wanted %.9g", device, i, (double)f.value[i], e.value[i]);
    }
    assert_int_equal(ki_adam_steps(adam), STEPS);
    ki_adam_free(adam);
    tear_down(&f);
}

static void test_plain(void **state) { (void)state, check("ref", 0, 0), check("cpu", 0, 0); }
static void test_decay(void **state) { (void)state, check("ref", 0.1, 0), check("cpu", 0.1, 0); }
static void test_decoupled_decay(void **state) { (void)state, check("ref", 0, 0.1), check("cpu", 0, 0.1); }

static void test_one_run_without_rules(void **state) {
    (void)state;
    kith_error err = {0};
    fixture f;
    set_up(&f, "cpu");
    ki_adam *adam = NULL;
    assert_ok(ki_adam_new(f.backend, f.params, 3, &(ki_adam_options){0}, &adam, &err), &err);
    assert_int_equal(ki_adam_n_runs(adam), 1);
    ki_adam_free(adam);
    tear_down(&f);
}

/* Stop after two steps, carry the moments over to a new optimizer, go on: the same bits. */
static void test_resume(void **state) {
    (void)state;
    kith_error err = {0};
    float through[N], m[N], v[N];
    for (int resumed = 0; resumed < 2; resumed++) {
        fixture f;
        set_up(&f, "cpu");
        ki_adam *adam = NULL;
        assert_ok(ki_adam_new(f.backend, f.params, 3, &(ki_adam_options){0}, &adam, &err), &err);
        for (int t = 0; t < STEPS; t++) {
            if (resumed && t == 2) {
                assert_ok(ki_adam_get(adam, m, v, &err), &err);
                ki_adam_free(adam);
                assert_ok(ki_adam_new(f.backend, f.params, 3, &(ki_adam_options){0}, &adam, &err), &err);
                assert_int_equal(ki_adam_moments_n(adam), N);
                assert_ok(ki_adam_set(adam, 2, m, v, &err), &err);
            }
            assert_ok(ki_adam_update(adam, 1e-3, &err), &err);
        }
        if (!resumed)
            memcpy(through, f.value, sizeof through);
        else
            assert_memory_equal(through, f.value, sizeof through);
        ki_adam_free(adam);
        tear_down(&f);
    }
}

static void test_refusals(void **state) {
    (void)state;
    kith_error err = {0};
    fixture f;
    set_up(&f, "ref");
    ki_adam *adam = NULL;
    const ki_optim_rule unknown = {.layer = "embeding", .lr = 10, .decay = 1};
    const ki_optim_rule part = {.layer = "embed", .lr = 10, .decay = 1}; /* a layer's name is whole */
    const ki_optim_rule negative = {.lr = -1, .decay = 1};
    assert_int_equal(
        ki_adam_new(f.backend, f.params, 3, &(ki_adam_options){.n_rules = 1, .rules = &unknown}, &adam, &err),
        KITH_ENOTFOUND);
    assert_string_equal(err.message, "no parameter is called embeding");
    assert_int_equal(
        ki_adam_new(f.backend, f.params, 3, &(ki_adam_options){.n_rules = 1, .rules = &part}, &adam, &err),
        KITH_ENOTFOUND);
    assert_int_equal(ki_adam_new(f.backend, f.params, 3, &(ki_adam_options){.n_rules = 1, .rules = &negative},
                                 &adam, &err),
                     KITH_EINVAL);
    assert_int_equal(ki_adam_new(f.backend, f.params, 3, &(ki_adam_options){.beta1 = 1}, &adam, &err),
                     KITH_EINVAL);
    tear_down(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),           cmocka_unit_test(test_decay),
        cmocka_unit_test(test_decoupled_decay), cmocka_unit_test(test_one_run_without_rules),
        cmocka_unit_test(test_resume),          cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("optim/adam", tests, NULL, NULL);
}
