/* Regularizers on the device against the host's: every method with its options, on batches of odd sizes, of
 * one class, of singletons; the same bits twice; a captured step that meets other labels and another step. */
#include <math.h>

#include "objective/both.h"
#include "support/op_check.h"

static ki_backend *backend;

static int open_device(void **state) {
    (void)state;
    backend = op_backend("cuda", NULL);
    return 0;
}

static int close_device(void **state) {
    (void)state;
    ki_backend_close(backend);
    return 0;
}

static int32_t fours(int64_t i) { return (int32_t)(i / 4 * 7 % DEVICE_CLASSES); }
static int32_t uneven(int64_t i) { return (int32_t)(i * i % 13 % 6 + 3); }
static int32_t one(int64_t i) { return (int32_t)(5 + 0 * i); }
static int32_t all_distinct(int64_t i) { return (int32_t)((i * 17 + 3) % DEVICE_CLASSES); }

typedef struct shape {
    const char *name;
    int64_t m, dim, c, h, w;
    int32_t (*label_of)(int64_t i);
} shape;

static const shape shapes[] = {
    {"fours", 24, 16, 12, 3, 3, fours},    {"uneven", 37, 70, 33, 2, 5, uneven},
    {"one class", 9, 5, 7, 1, 3, one},     {"singletons", 33, 8, 6, 2, 2, all_distinct},
    {"a single item", 1, 3, 4, 1, 1, one}, {"as in training", 130, 512, 300, 1, 1, fours},
};

/* Regularizers that read no map. The loss beside them is none, so that a tap's gradient is theirs alone. */
static const char *const regs[] = {
    "{name: density, weight: 2}",
    "{name: density, correlation: false}",
    "{name: density, relative: true, weight: 3}",
    "{name: density, eta: 2, alpha: 0.1, weight: 10}",
    "{name: density, d0: batch, weight: 2}",
    "{name: density, d0: batch, d0_unit: true, relative: true}",
    "{name: density, d0: batch, correlation: false}",
    "{name: density, lr_multiplier: 0, normalize: false}",
    "{name: energy_confusion}",
    "{name: energy_confusion, form: linear, weight: 0.3}",
    "{name: energy_confusion, form: log, weight: 0.13}",
    "{name: energy_confusion, form: log1p, reduction: sum, normalize: true}",
    "{name: energy_confusion, form: linear, reduction: sum, stops_at_embedding: false}",
    "{name: energy_confusion, pairs: 64}",
    "{name: energy_confusion, pairs: 1000, form: log, weight: 0.5}",
    "{name: energy_confusion, pairs: 7, form: linear, reduction: sum}",
    "{name: entropy}",
    /* Normalised only: else squared distances are near 140, and a last bit of one is 1e-5 of e^-140. */
    "{name: entropy, eta: 0.1}",
    "{name: global_orthogonal, weight: 0.5}",
    "{name: global_orthogonal, normalize: false}",
    "{name: intra_class}",
    "{name: intra_class, weight: 3, warmup: 4}",
    "{name: joint_similarity}",
    "{name: joint_similarity, layers: [embedding]}",
    "{name: joint_similarity, layers: [pooled, embedding], kernels: {kind: laplace, n: 2}}",
    "{name: joint_similarity, layers: [embedding, logits], kernels: [{kind: poly, degree: 3}, {kind: mgf}]}",
    "{name: joint_similarity, layers: [logits, pooled], kernels: [{bandwidth: 0.7}, {n: 5, bandwidth: 2}]}",
    "{name: joint_mmd, weight: 0.1}",
    "{name: joint_mmd, layers: [embedding], normalize: false}",
    "{name: joint_mmd, layers: [pooled, logits], kernels: [{kind: exp}, laplace]}",
    "{name: norm_l2, weight: 0.25}",
    "{name: row_norm_penalty, lam: 2, weight: 0.5}",
    "{name: relational}",
    "{name: relational, teacher: 1, weight: 0.4, warmup: 6}",
    "{name: relational, form: softmax, temperature: 0.2}",
    "{name: relational, form: softmax, normalize: false, temperature: 20, teacher_temperature: 0.1}",
    "{name: relational, stops_at_embedding: true}",
    "{name: match}",
    "{name: match, teacher: 1, weight: 0.4, warmup: 6}",
    "{name: match, form: squared, normalize: false}",
    "{name: match, form: squared, lr_multiplier: 0, weight: 2}",
};

static void run_case(const char *recipe, const shape *s, double tolerance) {
    char where[512];
    device_batch b = device_batch_new(s->m, s->dim, s->c, s->h, s->w, s->label_of);
    made host = made_of(recipe, &b.sizes), device = made_of(recipe, &b.sizes);
    /* Density's correlation says nothing while d0 is 0. */
    for (int i = 0; i < 2; i++) {
        ki_state *d0 = ki_objective_param_named(i ? host.objective : device.objective, "density.d0");
        for (int64_t c = 0; d0 && c < d0->count; c++) d0->value[c] = (ki_real)(0.2 + 0.05 * (double)(c % 11));
    }
    device_run run;
    snprintf(where, sizeof where, "%s, %s", recipe, s->name);
    device_run_open(&run, backend, device.objective, &b);
    device_evaluate(&run);
    device_compare(&run, host.objective, where, tolerance);
    device_run_close(&run);
    made_free(&host);
    made_free(&device);
    device_batch_free(&b);
}

/* The gradient of an L1 distance jumps where two items have the same coordinate. Of millions of pairs of coordinates some are the same but
 * for rounding, and then host and device may be on two sides. */
static bool has_kinks(const char *recipe, const shape *s) {
    return strstr(recipe, "laplace") && s->m * s->m * s->dim > 1000000;
}

static void test_every_method_and_option(void **state) {
    (void)state;
    int n_kinked = 0;
    for (size_t r = 0; r < N_ROWS(regs); r++) {
        char recipe[512];
        snprintf(recipe, sizeof recipe, "loss: {name: none}\nregularizers: [%s]", regs[r]);
        for (size_t s = 0; s < N_ROWS(shapes); s++) {
            if (has_kinks(recipe, &shapes[s]))
                n_kinked++;
            else
                run_case(recipe, &shapes[s], 1e-5);
        }
    }
    print_message("%d large batches left out for their kinks\n", n_kinked);
}

/* Terms side by side add up where they read the same tap. */
static void test_several_terms(void **state) {
    (void)state;
    run_case(
        "loss: {name: binomial}\n"
        "regularizers: [{name: entropy, weight: 0.4}, {name: energy_confusion, form: log, weight: 0.13},\n"
        "  {name: row_norm_penalty}, {name: joint_similarity, weight: 0.7}, {name: density, weight: 0.1}]",
        &shapes[0], 1e-5);
}

/* Everything the engine wrote, in one array. */
static ki_real *everything(device_run *run, int64_t *ret_n) {
    const ki_engine_type *type = ki_engine_of(backend);
    ki_engine_param param;
    int64_t n = 0, room = 1 << 20;
    ki_real *all = ki_alloc((size_t)room, sizeof *all);
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        if (!run->in.diff[tap]) continue;
        const ki_edge edge = device_edge(run, tap);
        const int64_t count = ki_shape_count(&edge.shape);
        ki_real *diff = device_diff(run, tap);
        assert_true(n + count <= room);
        memcpy(all + n, diff, (size_t)count * sizeof *diff);
        ki_free(diff);
        n += count;
    }
    for (size_t i = 0; type->param_at(run->engine, i, &param); i++) {
        if (!param.diff) continue;
        ki_real *diff = device_reals(run, param.diff, param.n);
        assert_true(n + param.n <= room);
        memcpy(all + n, diff, (size_t)param.n * sizeof *diff);
        ki_free(diff);
        n += param.n;
    }
    *ret_n = n;
    return all;
}

static void test_same_bits_twice(void **state) {
    (void)state;
    static const char recipe[] =
        "loss: {name: binomial}\n"
        "regularizers: [{name: density}, {name: entropy}, {name: energy_confusion, pairs: 50, form: log},\n"
        "  {name: joint_mmd, layers: [embedding]}, {name: horde, orders: 4, dimension: 70, embedding: 9}]";
    device_batch b = device_batch_new(37, 20, 12, 3, 3, uneven);
    made m = made_of(recipe, &b.sizes);
    device_run run;
    device_run_open(&run, backend, m.objective, &b);
    ki_real *first = NULL;
    int64_t n_first = 0;
    for (int round = 0; round < 2; round++) {
        int64_t n = 0;
        device_evaluate(&run);
        ki_real *all = everything(&run, &n);
        if (round == 0) {
            first = all;
            n_first = n;
            continue;
        }
        assert_int_equal(n, n_first);
        assert_memory_equal(all, first, (size_t)n * sizeof *all);
        ki_free(all);
    }
    ki_free(first);
    device_run_close(&run);
    made_free(&m);
    device_batch_free(&b);
}

/* A step recorded once runs on whatever labels and step number it finds: classes, draws and warm-up weights
 * are the device's business. */
static void test_captured_step(void **state) {
    (void)state;
    static const char recipe[] =
        "loss: {name: binomial}\n"
        "regularizers: [{name: energy_confusion, pairs: 40}, {name: density, warmup: 10},\n"
        "  {name: joint_similarity, layers: [embedding]}, {name: intra_class, weight: 2, warmup: 5},\n"
        "  {name: horde, orders: 3, dimension: 20, embedding: 6, warmup: 20}]";
    static int32_t (*const labels[])(int64_t i) = {fours, uneven, one, all_distinct};
    device_batch b = device_batch_new(30, 12, 5, 2, 2, fours);
    made device = made_of(recipe, &b.sizes);
    const ki_engine_type *type = ki_engine_of(backend);
    device_run run;
    kith_error err = {0};
    void *step = NULL;
    device_run_open(&run, backend, device.objective, &b);
    device_evaluate(&run); /* what is looked up once is looked up before */
    assert_ok(backend->type->memory.sync(backend, &err), &err);
    assert_ok(backend->type->recording.begin(backend, &err), &err);
    assert_ok(type->clear_diffs(run.engine, &err), &err);
    assert_ok(type->evaluate(run.engine, &err), &err);
    assert_ok(backend->type->recording.end(backend, &step, &err), &err);
    for (size_t round = 0; round < N_ROWS(labels); round++) {
        char where[64];
        made host = made_of(recipe, &b.sizes);
        for (int64_t i = 0; i < b.m; i++) b.label[i] = labels[round](i);
        b.batch.step = 2 + 3 * round;
        device_upload(&run, run.in.label, b.label, (size_t)b.m * sizeof *b.label);
        device_upload(&run, run.in.step, &b.batch.step, sizeof b.batch.step);
        assert_ok(backend->type->recording.launch(backend, step, &err), &err);
        snprintf(where, sizeof where, "round %zu", round);
        device_compare(&run, host.objective, where, 1e-5);
        made_free(&host);
    }
    backend->type->recording.free(backend, step);
    device_run_close(&run);
    made_free(&device);
    device_batch_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_method_and_option),
        cmocka_unit_test(test_several_terms),
        cmocka_unit_test(test_same_bits_twice),
        cmocka_unit_test(test_captured_step),
    };
    return cmocka_run_group_tests_name("objective/cuda regularizers", tests, open_device, close_device);
}
