/* What device/backend.h promises, on cuda: gradients accumulate, the same bits every time, optimizers as ref's, sums of
 * squares, captured steps that read the clock when they run, one line when memory is out. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/op_check.h"
#include "support/testing.h"

#ifdef KI_EMULATE_TESTS
#include "emulate/emulated.h"
#endif

static ki_backend *cuda[2], *ref;

static int open_all(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++)
        cuda[i] = op_backend(
            "cuda", &(ki_backend_options){.precision = i ? KI_BF16 : KI_FLOAT32, .deterministic = true});
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

static void test_parameter_gradients_accumulate(void **state) {
    (void)state;
    assert_true(op_check_accumulates(cuda[0], "cuda") >= 8);
}

/* Large enough for several blocks. */
static const char *const split[] = {
    "conv2d mb3 ic8 ih14 oc12 kh3 ph1 bias",
    "batch_norm mb4 ic24 ih28 relu",
    "pool mb3 ic24 ih28 max k3 s2 ceil",
    "lrn mb3 ic24 ih14",
    "linear mb8 ic256 oc200 bias",
    "global_pool mb4 ic256 ih7 both",
    "l2_norm mb200 ic256",
    "layer_norm mb200 ic256",
    "attend mb3 ic24 ih14 heads3",
    "attention mb2 ic64 nt100 heads2",
    "attention mb1 ic64 heads2 window7 h2 shift3",
};

static void test_same_bits_every_time(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(split); i++) {
        for (int precision = 0; precision < 2; precision++) {
            op_case c;
            op_run a, b;
            kith_error err;
            op_case_parse(split[i], &c);
            if (!cuda[0]->type->kernels.of[c.kind]) continue;
            assert_ok(op_run_init(&a, &c, cuda[precision], &err), &err);
            assert_ok(op_run_init(&b, &c, cuda[precision], &err), &err);
            op_run_step(&a);
            op_run_step(&b);
            op_check_same(&a, &b, precision ? "bf16" : "float32");
            op_run_release(&a);
            op_run_release(&b);
        }
    }
}

static void test_join(void **state) {
    (void)state;
    enum { C = 20, N = 2 * C * 5 * 5 };
    const ki_backend_type *type = cuda[0]->type;
    kith_error err;
    /* As it is; and a slice of a wider map, at an odd place. */
    for (int gap = 0; gap <= 3; gap += 3) {
        ki_edge edge = {.shape = KI_SHAPE4(2, C, 5, 5), .layout = KI_NATIVE};
        edge.bytes = type->memory.edge_bytes(cuda[0], &edge.shape, edge.layout);
        edge.pitch = gap ? C + gap : 0;
        void *part[4], *memory[4];
        ki_real host[4][N], got[N];
        for (int p = 0; p < 4; p++) {
            for (int i = 0; i < N; i++) host[p][i] = (ki_real)((i * 7 + p * 3) % 11) - 5;
            assert_ok(type->memory.alloc(cuda[0], 2 * edge.bytes, &memory[p], &err), &err);
            part[p] = (float *)memory[p] + gap;
            assert_ok(type->memory.import(cuda[0], &edge, part[p], host[p], &err), &err);
        }
        /* The sum overwrites part 1; part 3 is the mask. */
        assert_ok(type->kernels.join(cuda[0], &edge, 3, (const void *const *)part, part[3], part[1], &err),
                  &err);
        assert_ok(type->memory.export(cuda[0], &edge, part[1], got, &err), &err);
        assert_ok(type->memory.sync(cuda[0], &err), &err);
        for (int i = 0; i < N; i++) {
            const ki_real wanted = host[3][i] > 0 ? host[0][i] + host[1][i] + host[2][i] : 0;
            if (got[i] != wanted)
                fail_msg("gap %d: join[%d] is %g, wanted %g", gap, i, (double)got[i], (double)wanted);
        }
        for (int p = 0; p < 4; p++) type->memory.free(cuda[0], memory[p]);
    }
}

/* Runs of many lengths and settings on one backend: values, gradients, moments, clock, norms. */
enum { N_RUNS = 150, LONGEST = 3000 };

typedef struct store {
    ki_backend *backend;
    float *memory; /* device: value, diff, m, v of all runs */
    double *norms;
    ki_optim_clock *clock;
    ki_optim_run run[N_RUNS];
    int64_t n;
} store;

static void store_init(store *s, ki_backend *backend, const ki_optim_step *step) {
    kith_error err;
    void *memory = NULL;
    *s = (store){.backend = backend};
    for (int i = 0; i < N_RUNS; i++) {
        s->run[i].n = i == 7 ? 0 : i % 10 == 3 ? LONGEST : 1 + i % 37;
        s->n += s->run[i].n;
    }
    float *host = malloc((size_t)(4 * s->n) * sizeof *host);
    assert_non_null(host);
    for (int64_t i = 0; i < 4 * s->n; i++) host[i] = i < 2 * s->n ? (float)((i * 7919) % 1009) / 504 - 1 : 0;
    assert_ok(backend->type->memory.alloc(backend, (size_t)(4 * s->n) * sizeof *host, &memory, &err), &err);
    s->memory = memory;
    assert_ok(backend->type->memory.upload(backend, memory, host, (size_t)(4 * s->n) * sizeof *host, &err),
              &err);
    assert_ok(backend->type->memory.alloc(backend, N_RUNS * sizeof *s->norms, &memory, &err), &err);
    s->norms = memory;
    assert_ok(backend->type->memory.alloc(backend, sizeof *s->clock, &memory, &err), &err);
    s->clock = memory;
    assert_ok(backend->type->memory.sync(backend, &err), &err);
    free(host);
    int64_t at = 0;
    for (int i = 0; i < N_RUNS; at += s->run[i].n, i++) {
        ki_optim_run *run = &s->run[i];
        run->value = s->memory + at;
        run->diff = s->memory + s->n + at;
        const bool has_m = step->kind == KI_OPTIM_ADAM || step->beta1 > 0, has_v = step->kind != KI_OPTIM_SGD;
        run->m = has_m ? s->memory + 2 * s->n + at : NULL;
        run->v = has_v ? s->memory + 3 * s->n + at : NULL;
        run->lr = 1 + i % 3;
        run->decay = i % 4 == 0 ? 0.1 : 0;
        run->decoupled = i % 4 == 1 ? 0.1 : 0;
        run->start = i % 5 == 2 ? 2 : 0;
    }
}

static void store_release(store *s) {
    s->backend->type->memory.free(s->backend, s->memory);
    s->backend->type->memory.free(s->backend, s->norms);
    s->backend->type->memory.free(s->backend, s->clock);
}

static void store_tick(store *s, int64_t t) {
    kith_error err;
    const ki_optim_clock clock = {.lr = 0.01 / (double)t, .t = t};
    assert_ok(s->backend->type->memory.upload(s->backend, s->clock, &clock, sizeof clock, &err), &err);
    assert_ok(s->backend->type->memory.sync(s->backend, &err), &err);
}

static void store_step(store *s, ki_optim_step step) {
    kith_error err;
    step.clock = s->clock;
    step.n_runs = N_RUNS;
    step.runs = s->run;
    if (step.max_norm > 0) {
        assert_ok(s->backend->type->optimizers.sum_squares(s->backend, N_RUNS, s->run, s->norms, &err), &err);
        step.norm_sq = s->norms;
    }
    assert_ok(s->backend->type->optimizers.update(s->backend, &step, &err), &err);
}

static void compare_optim(const char *name, ki_optim_step step) {
    store a, b;
    kith_error err;
    step.diff_scale = 0.5;
    store_init(&a, cuda[0], &step);
    store_init(&b, ref, &step);
    store *const both[] = {&a, &b};
    for (int64_t t = 1; t <= 5; t++) {
        for (int i = 0; i < 2; i++) {
            store_tick(both[i], t);
            store_step(both[i], step);
        }
    }
    float *got = malloc((size_t)(4 * a.n) * sizeof *got),
          *wanted = malloc((size_t)(4 * a.n) * sizeof *wanted);
    assert_true(got && wanted);
    assert_ok(
        a.backend->type->memory.download(a.backend, a.memory, got, (size_t)(4 * a.n) * sizeof *got, &err),
        &err);
    assert_ok(
        b.backend->type->memory.download(b.backend, b.memory, wanted, (size_t)(4 * a.n) * sizeof *got, &err),
        &err);
    assert_ok(a.backend->type->memory.sync(a.backend, &err), &err);
    static const char *const what[] = {"values", "gradients", "first moments", "second moments"};
    for (int k = 0; k < 4; k++) {
        const double error = op_relative_l2(got + k * a.n, wanted + k * a.n, a.n);
        if (!(error < 1e-6)) fail_msg("%s: %s are off by %.3g relative L2", name, what[k], error);
    }
    free(got);
    free(wanted);
    store_release(&a);
    store_release(&b);
}

static void test_optimizers(void **state) {
    (void)state;
    const ki_optim_step adam = {.kind = KI_OPTIM_ADAM, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
    const ki_optim_step clipped = {
        .kind = KI_OPTIM_ADAM, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-3, .max_norm = 2};
    const ki_optim_step sgd = {.kind = KI_OPTIM_SGD};
    const ki_optim_step momentum = {.kind = KI_OPTIM_SGD, .beta1 = 0.9, .max_norm = 1e9};
    const ki_optim_step nesterov = {.kind = KI_OPTIM_SGD, .beta1 = 0.9, .nesterov = true};
    const ki_optim_step rmsprop = {.kind = KI_OPTIM_RMSPROP, .beta2 = 0.99, .eps = 1e-8};
    const ki_optim_step rms_momentum = {
        .kind = KI_OPTIM_RMSPROP, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-4, .max_norm = 3};
    compare_optim("adam", adam);
    compare_optim("adam with clipping", clipped);
    compare_optim("sgd", sgd);
    compare_optim("sgd with momentum", momentum);
    compare_optim("sgd with Nesterov's momentum", nesterov);
    compare_optim("rmsprop", rmsprop);
    compare_optim("rmsprop with momentum and clipping", rms_momentum);
}

/* One captured update, launched for three steps, is three updates. */
static void test_a_captured_update_reads_the_clock(void **state) {
    (void)state;
    const ki_optim_step step = {
        .kind = KI_OPTIM_ADAM, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .diff_scale = 1, .max_norm = 5};
    store a, b;
    kith_error err;
    void *graph = NULL;
    store_init(&a, cuda[0], &step);
    store_init(&b, cuda[0], &step);
    assert_ok(cuda[0]->type->recording.begin(cuda[0], &err), &err);
    store_step(&a, step);
    assert_ok(cuda[0]->type->recording.end(cuda[0], &graph, &err), &err);
    for (int64_t t = 1; t <= 3; t++) {
        store_tick(&a, t);
        assert_ok(cuda[0]->type->recording.launch(cuda[0], graph, &err), &err);
        store_tick(&b, t);
        store_step(&b, step);
    }
    float got[LONGEST], wanted[LONGEST];
    assert_ok(cuda[0]->type->memory.download(cuda[0], a.run[3].value, got, sizeof got, &err), &err);
    assert_ok(cuda[0]->type->memory.download(cuda[0], b.run[3].value, wanted, sizeof wanted, &err), &err);
    assert_ok(cuda[0]->type->memory.sync(cuda[0], &err), &err);
    for (int i = 0; i < LONGEST; i++) {
        if (got[i] != wanted[i])
            fail_msg("value %d is %.9g, wanted %.9g", i, (double)got[i], (double)wanted[i]);
    }
    cuda[0]->type->recording.free(cuda[0], graph);
    store_release(&a);
    store_release(&b);
}

static void test_sum_squares(void **state) {
    (void)state;
    enum { N = 6, LONG = 300001 };
    const int64_t n[N] = {0, 1, 17, 8192, 8193, LONG};
    const ki_backend_type *type = cuda[0]->type;
    kith_error err;
    void *x = NULL, *dst = NULL;
    assert_ok(type->memory.alloc(cuda[0], (LONG + 1) * sizeof(float), &x, &err), &err);
    assert_ok(type->memory.alloc(cuda[0], N * sizeof(double), &dst, &err), &err);
    float *host = malloc((LONG + 1) * sizeof *host);
    assert_non_null(host);
    for (int64_t i = 0; i <= LONG; i++) host[i] = (float)((i * 7919) % 1013) / 512 - 1;
    assert_ok(type->memory.upload(cuda[0], x, host, (LONG + 1) * sizeof(float), &err), &err);
    for (int shift = 0; shift < 2; shift++) { /* aligned, and not */
        ki_optim_run runs[N] = {0};
        double got[N];
        for (int r = 0; r < N; r++) runs[r] = (ki_optim_run){.n = n[r], .diff = (float *)x + shift};
        assert_ok(type->optimizers.sum_squares(cuda[0], N, runs, dst, &err), &err);
        assert_ok(type->memory.download(cuda[0], dst, got, sizeof got, &err), &err);
        assert_ok(type->memory.sync(cuda[0], &err), &err);
        double wanted = 0;
        int64_t i = 0;
        for (int r = 0; r < N; r++) {
            for (; i < n[r]; i++) wanted += (double)host[i + shift] * (double)host[i + shift];
            if (!(fabs(got[r] - wanted) <= 1e-12 * wanted))
                fail_msg("the sum of %lld squares is %.17g, wanted %.17g", (long long)n[r], got[r], wanted);
        }
    }
    free(host);
    type->memory.free(cuda[0], x);
    type->memory.free(cuda[0], dst);
}

static void test_maps_come_back(void **state) {
    (void)state;
    float host[2 * 37 * 4 * 9], back[2 * 37 * 4 * 9];
    for (int i = 0; i < (int)N_ROWS(host); i++) host[i] = (float)(i % 200); /* whole numbers: bf16 has them */
    for (int precision = 0; precision < 2; precision++) {
        for (int plain = 0; plain < 2; plain++) {
            const ki_backend_type *type = cuda[precision]->type;
            kith_error err;
            ki_edge edge = {.shape = KI_SHAPE4(2, 37, 4, 9), .layout = plain ? KI_PLAIN : KI_NATIVE};
            void *ptr = NULL;
            edge.bytes = type->memory.edge_bytes(cuda[precision], &edge.shape, edge.layout);
            assert_int_equal(edge.bytes % 16, 0);
            assert_ok(type->memory.alloc(cuda[precision], edge.bytes, &ptr, &err), &err);
            assert_ok(type->memory.import(cuda[precision], &edge, ptr, host, &err), &err);
            memset(back, 0, sizeof back);
            assert_ok(type->memory.export(cuda[precision], &edge, ptr, back, &err), &err);
            assert_ok(type->memory.sync(cuda[precision], &err), &err);
            assert_memory_equal(host, back, sizeof host);
            type->memory.free(cuda[precision], ptr);
        }
    }
}

/* The last device there is, opened here and used by a thread that has only seen the first. */
static void *sum_elsewhere(void *context) {
    ki_backend *backend = context;
    const ki_backend_type *type = backend->type;
    static const float host[] = {1, 2, 3, 4};
    static float got[4];
    ki_edge edge = {.shape = KI_SHAPE2(2, 2), .layout = KI_PLAIN, .bytes = sizeof host};
    kith_error err;
    void *x = NULL;
    if (type->memory.alloc(backend, sizeof host, &x, &err) != KITH_OK) return NULL;
    const void *const parts[] = {x, x};
    bool ok = type->memory.upload(backend, x, host, sizeof host, &err) == KITH_OK &&
              type->kernels.join(backend, &edge, 2, parts, NULL, x, &err) == KITH_OK &&
              type->memory.download(backend, x, got, sizeof got, &err) == KITH_OK &&
              type->memory.sync(backend, &err) == KITH_OK;
    type->memory.free(backend, x);
    return ok ? got : NULL;
}

static void test_another_thread_and_device(void **state) {
    (void)state;
    ki_backend *backend = NULL;
    kith_error err = {0};
    int last = 0;
    while (ki_backend_open("cuda", &(ki_backend_options){.device = last + 1}, &backend, &err) == KITH_OK) {
        ki_backend_close(backend);
        last++;
    }
    assert_ok(ki_backend_open("cuda", &(ki_backend_options){.device = last}, &backend, &err), &err);
    pthread_t thread;
    void *got = NULL;
    assert_int_equal(pthread_create(&thread, NULL, sum_elsewhere, backend), 0);
    assert_int_equal(pthread_join(thread, &got), 0);
    assert_non_null(got);
    assert_true(((float *)got)[0] == 2 && ((float *)got)[3] == 8);
    ki_backend_close(backend);
}

static void test_a_device_that_is_not_there(void **state) {
    (void)state;
    ki_backend *backend = NULL;
    kith_error err = {0};
    assert_int_equal(ki_backend_open("cuda", &(ki_backend_options){.device = 99}, &backend, &err),
                     KITH_EINVAL);
    assert_null(backend);
    assert_non_null(strstr(err.message, "CUDA device 99; there are "));
}

static void test_out_of_memory_names_the_sizes(void **state) {
    (void)state;
    kith_error err = {0};
    void *ptr = NULL;
    assert_int_equal(cuda[0]->type->memory.alloc(cuda[0], (size_t)1 << 44, &ptr, &err), KITH_ENOMEM);
    if (!strstr(err.message, "16384.00 GiB wanted, ") || !strstr(err.message, " GiB free of "))
        fail_msg("the line is: %s", err.message);
    assert_true(err.hint[0] != '\0');
    /* And the device goes on. */
    assert_ok(cuda[0]->type->memory.alloc(cuda[0], 1 << 20, &ptr, &err), &err);
    assert_ok(cuda[0]->type->memory.zero(cuda[0], ptr, 1 << 20, &err), &err);
    assert_ok(cuda[0]->type->memory.sync(cuda[0], &err), &err);
    cuda[0]->type->memory.free(cuda[0], ptr);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameter_gradients_accumulate),
        cmocka_unit_test(test_same_bits_every_time),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_optimizers),
        cmocka_unit_test(test_a_captured_update_reads_the_clock),
        cmocka_unit_test(test_sum_squares),
        cmocka_unit_test(test_maps_come_back),
        cmocka_unit_test(test_another_thread_and_device),
        cmocka_unit_test(test_a_device_that_is_not_there),
        cmocka_unit_test(test_out_of_memory_names_the_sizes),
    };
    return cmocka_run_group_tests_name("backend/cuda contract", tests, open_all, close_all);
}
