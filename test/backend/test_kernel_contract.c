/* What device/backend.h promises of every backend, checked on ref and cpu: parameter gradients
 * accumulate, results do not depend on the number of threads, join, adam and the sums of
 * gradients do what they say, and
 * running out of memory is an error that leaves nothing behind. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "kith/array.h"
#include "kith/log.h"
#include "support/op_check.h"
#include "support/testing.h"

static const char *const backends[] = {"ref", "cpu"};
enum { N_BACKENDS = N_ROWS(backends) };

static void test_parameter_gradients_accumulate(void **state) {
    (void)state;
    for (int b = 0; b < N_BACKENDS; b++) {
        ki_backend *backend = op_backend(backends[b], NULL);
        assert_true(op_check_accumulates(backend, backends[b]) > 10);
        ki_backend_close(backend);
    }
}

static void check_threads(const char *name, const op_case *c) {
    ki_backend *backend = op_backend(name, NULL);
    for (int n_threads = 2; n_threads <= 3; n_threads++) {
        op_run one, many;
        kith_error err;
        char how[64];
        ki_threads_set(1);
        assert_ok(op_run_init(&one, c, backend, &err), &err);
        op_run_step(&one);
        ki_threads_set(n_threads);
        assert_ok(op_run_init(&many, c, backend, &err), &err);
        op_run_step(&many);
        ki_threads_set(0);
        snprintf(how, sizeof how, "%s, with one thread and %d", name, n_threads);
        op_check_same(&one, &many, how);
        op_run_release(&one);
        op_run_release(&many);
    }
    ki_backend_close(backend);
}

/* Large enough that every op is really split. */
static const char *const split[] = {
    "conv2d mb3 ic8 ih14 oc12 kh3 ph1 bias",
    "batch_norm mb4 ic24 ih28",
    "relu mb4 ic24 ih28",
    "pool mb3 ic24 ih28 max k3 s2 ceil",
    "pool mb3 ic24 ih28 avg k3 s2 p1",
    "lrn mb3 ic24 ih14",
    "concat mb3 ih14 ca24 cb16",
    "add mb4 ic24 ih28",
    "linear mb8 ic256 oc200 bias",
    "linear mb4 nt800 ic32 oc200 bias",
    "linear mb300 ic700 oc500 bias",
    "dropout mb4 ic24 ih28 p0.4",
    "global_pool mb4 ic256 ih7 both",
    "global_pool mb4 ic256 ih7 gem",
    "l2_norm mb200 ic256",
    "layer_norm mb200 ic256",
    "layer_norm mb3 nt50 ic100",
    "layer_norm mb3 ic40 ih14",
    "act mb4 ic40 ih28 sigmoid",
    "glu mb4 nt50 ic500",
    "layer_scale mb4 nt50 ic200",
    "layer_scale mb3 ic40 ih28",
    "drop_path mb9 ic24 ih14 p0.4",
    "gate mb4 ic40 ih28",
    "grn mb4 ic40 ih28",
    "attend mb4 ic24 ih14 heads3",
    "attend mb4 ic32 ih14 heads3",
    "unfold mb4 ic24 ih14 heads3",
    "attention mb3 ic96 nt150 heads3",
    "attention mb2 ic64 heads2 window7 h2 shift3",
    "windows mb4 ic24 ih27 side7 shift3",
    "merge mb4 ic24 ih27",
    "tokens mb4 ic96 ih16 class classpos registers2 gh14",
    "grid mb4 ic96 ih14 skip3",
    "token mb64 ic512 nt9 at2",
    "probe mb64 ic512 nt9 n3",
};

static void test_threads_do_not_show(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(split); i++) {
        op_case c;
        op_case_parse(split[i], &c);
        check_threads("ref", &c);
        /* oneDNN may make the sums of these per thread; its batch norm does from three threads on. */
        if (c.kind != KI_OP_CONV2D && c.kind != KI_OP_BATCH_NORM) check_threads("cpu", &c);
    }
}

static void test_join(void **state) {
    (void)state;
    enum { N = 2 * 20 * 5 * 5 };
    for (int b = 0; b < N_BACKENDS; b++) {
        ki_backend *backend = op_backend(backends[b], NULL);
        const ki_backend_type *type = backend->type;
        kith_error err;
        ki_edge edge = {.shape = KI_SHAPE4(2, 20, 5, 5), .layout = KI_NATIVE};
        edge.bytes = type->memory.edge_bytes(backend, &edge.shape, edge.layout);
        void *part[4];
        ki_real host[4][N], got[N];
        for (int p = 0; p < 4; p++) {
            for (int i = 0; i < N; i++) host[p][i] = (ki_real)((i * 7 + p * 3) % 11) - 5;
            assert_ok(type->memory.alloc(backend, edge.bytes, &part[p], &err), &err);
            assert_ok(type->memory.import(backend, &edge, part[p], host[p], &err), &err);
        }
        /* The sum overwrites part 1; part 3 is the mask. */
        assert_ok(type->kernels.join(backend, &edge, 3, (const void *const *)part, part[3], part[1], &err),
                  &err);
        assert_ok(type->memory.export(backend, &edge, part[1], got, &err), &err);
        assert_ok(type->memory.sync(backend, &err), &err);
        for (int i = 0; i < N; i++) {
            const ki_real wanted = host[3][i] > 0 ? host[0][i] + host[1][i] + host[2][i] : 0;
            if (got[i] != wanted)
                fail_msg("%s: join[%d] is %g, wanted %g", backends[b], i, (double)got[i], (double)wanted);
        }
        const void *const again[] = {part[0], part[2]};
        assert_ok(type->kernels.join(backend, &edge, 2, again, NULL, part[3], &err), &err);
        assert_ok(type->memory.export(backend, &edge, part[3], got, &err), &err);
        assert_ok(type->memory.sync(backend, &err), &err);
        for (int i = 0; i < N; i++) {
            if (got[i] != host[0][i] + host[2][i])
                fail_msg("%s: unmasked join[%d] is %g, wanted %g", backends[b], i, (double)got[i],
                         (double)(host[0][i] + host[2][i]));
        }
        for (int p = 0; p < 4; p++) type->memory.free(backend, part[p]);
        ki_backend_close(backend);
    }
}

static const float *golden(const kith_tensors *tensors, const char *name, int64_t n) {
    kith_array view;
    kith_error err;
    assert_ok(kith_tensors_get(tensors, name, &view, &err), &err);
    assert_int_equal(kith_array_count(&view), n);
    return view.data;
}

/* Against torch.optim.Adam with weight_decay and torch.optim.AdamW, five steps. */
static void check_adam(const char *backend_name, const kith_tensors *tensors, bool is_adamw) {
    enum { N = 40, STEPS = 5 };
    ki_backend *backend = op_backend(backend_name, NULL);
    const ki_backend_type *type = backend->type;
    kith_error err;
    void *device[4]; /* value, diff, m, v */
    for (int i = 0; i < 4; i++) {
        assert_ok(type->memory.alloc(backend, N * sizeof(ki_real), &device[i], &err), &err);
        assert_ok(type->memory.zero(backend, device[i], N * sizeof(ki_real), &err), &err);
    }
    void *clock = NULL;
    assert_ok(type->memory.alloc(backend, sizeof(ki_optim_clock), &clock, &err), &err);
    const float *diffs = golden(tensors, is_adamw ? "adamw|diffs" : "adam|diffs", (int64_t)N * STEPS);
    const float *value = golden(tensors, is_adamw ? "adamw|value" : "adam|value", N);
    assert_ok(type->memory.upload(backend, device[0], value, N * sizeof(ki_real), &err), &err);
    for (int t = 1; t <= STEPS; t++) {
        assert_ok(type->memory.upload(backend, device[1], diffs + (t - 1) * N, N * sizeof(ki_real), &err),
                  &err);
        const ki_optim_clock now = {.lr = 0.01, .t = t};
        assert_ok(type->memory.upload(backend, clock, &now, sizeof now, &err), &err);
        const ki_optim_run run = {.n = N,
                                  .value = device[0],
                                  .diff = device[1],
                                  .m = device[2],
                                  .v = device[3],
                                  .lr = 1,
                                  .decay = is_adamw ? 0 : 0.1,
                                  .decoupled = is_adamw ? 0.1 : 0};
        const ki_optim_step step = {.kind = KI_OPTIM_ADAM,
                                    .beta1 = 0.9,
                                    .beta2 = 0.99,
                                    .eps = 1e-3,
                                    .diff_scale = 1,
                                    .clock = clock,
                                    .n_runs = 1,
                                    .runs = &run};
        assert_ok(type->optimizers.update(backend, &step, &err), &err);
    }
    type->memory.free(backend, clock);
    ki_real got[N];
    assert_ok(type->memory.download(backend, device[0], got, sizeof got, &err), &err);
    assert_ok(type->memory.sync(backend, &err), &err);
    const double error =
        op_relative_l2(got, golden(tensors, is_adamw ? "adamw|new_value" : "adam|new_value", N), N);
    if (!(error < 1e-6))
        fail_msg("%s on %s is off by %.3g", is_adamw ? "AdamW" : "Adam", backend_name, error);
    for (int i = 0; i < 4; i++) type->memory.free(backend, device[i]);
    ki_backend_close(backend);
}

static void test_adam(void **state) {
    (void)state;
    kith_tensors *tensors = NULL;
    kith_error err;
    assert_ok(kith_tensors_open(KITH_SOURCE_DIR "/test/golden/nn/ops.safetensors", &tensors, &err), &err);
    for (int b = 0; b < N_BACKENDS; b++) {
        check_adam(backends[b], tensors, false);
        check_adam(backends[b], tensors, true);
    }
    kith_tensors_free(tensors);
}

/* Lengths around the block of the sums, and one of several blocks of blocks. */
static void test_sum_squares(void **state) {
    (void)state;
    enum { N_RUNS = 6, LONG = 5000001 };
    const int64_t n[N_RUNS] = {0, 1, 17, 8192, 8193, LONG};
    kith_error err;
    for (int b = 0; b < N_BACKENDS; b++) {
        ki_backend *backend = op_backend(backends[b], NULL);
        const ki_backend_type *type = backend->type;
        void *x = NULL, *dst = NULL;
        assert_ok(type->memory.alloc(backend, LONG * sizeof(float), &x, &err), &err);
        assert_ok(type->memory.alloc(backend, N_RUNS * sizeof(double), &dst, &err), &err);
        float *host = malloc(LONG * sizeof *host);
        assert_non_null(host);
        for (int64_t i = 0; i < LONG; i++) host[i] = (float)((i * 7919) % 1013) / 512 - 1;
        assert_ok(type->memory.upload(backend, x, host, LONG * sizeof(float), &err), &err);
        ki_optim_run runs[N_RUNS] = {0};
        double one[N_RUNS], many[N_RUNS];
        for (int r = 0; r < N_RUNS; r++) runs[r] = (ki_optim_run){.n = n[r], .diff = x};
        for (int n_threads = 1; n_threads <= 3; n_threads += 2) {
            ki_threads_set(n_threads);
            assert_ok(type->optimizers.sum_squares(backend, N_RUNS, runs, dst, &err), &err);
            double *got = n_threads == 1 ? one : many;
            assert_ok(type->memory.download(backend, dst, got, sizeof one, &err), &err);
            assert_ok(type->memory.sync(backend, &err), &err);
        }
        ki_threads_set(0);
        double wanted = 0;
        int64_t i = 0;
        for (int r = 0; r < N_RUNS; r++) {
            for (; i < n[r]; i++) wanted += (double)host[i] * (double)host[i];
            if (!(fabs(one[r] - wanted) <= 1e-12 * wanted))
                fail_msg("%s: the sum of %lld squares is %.17g, wanted %.17g", backends[b], (long long)n[r],
                         one[r], wanted);
            if (memcmp(&one[r], &many[r], sizeof one[r]) != 0)
                fail_msg("%s: the sum of %lld squares is %.17g with one thread and %.17g with 3", backends[b],
                         (long long)n[r], one[r], many[r]);
        }
        free(host);
        type->memory.free(backend, x);
        type->memory.free(backend, dst);
        ki_backend_close(backend);
    }
}

/* The gradients of linear, without its backward: added to what is there, with and without a bias. */
static void test_linear_grad(void **state) {
    (void)state;
    enum { MB = 7, IC = 19, OC = 5 };
    ki_real src[MB * IC], diff_dst[MB * OC];
    for (int i = 0; i < MB * IC; i++) src[i] = (ki_real)((i * 5) % 23) / 8 - 1;
    for (int i = 0; i < MB * OC; i++) diff_dst[i] = (ki_real)((i * 11) % 17) / 8 - 1;
    kith_error err;
    for (int b = 0; b < N_BACKENDS; b++) {
        ki_backend *backend = op_backend(backends[b], NULL);
        const ki_backend_type *type = backend->type;
        ki_edge edge = {.shape = KI_SHAPE2(MB, IC), .layout = KI_PLAIN};
        edge.bytes = type->memory.edge_bytes(backend, &edge.shape, edge.layout);
        ki_real grad[OC * IC + OC];
        for (int i = 0; i < OC * IC + OC; i++) grad[i] = (ki_real)i;
        void *device[3];
        assert_ok(type->memory.alloc(backend, edge.bytes, &device[0], &err), &err);
        assert_ok(type->memory.alloc(backend, sizeof diff_dst, &device[1], &err), &err);
        assert_ok(type->memory.alloc(backend, sizeof grad, &device[2], &err), &err);
        assert_ok(type->memory.import(backend, &edge, device[0], src, &err), &err);
        assert_ok(type->memory.upload(backend, device[1], diff_dst, sizeof diff_dst, &err), &err);
        assert_ok(type->memory.upload(backend, device[2], grad, sizeof grad, &err), &err);
        ki_real *weights = device[2];
        assert_ok(type->kernels.linear_grad(backend, &edge, device[0], device[1], OC, weights,
                                            weights + OC * IC, &err),
                  &err);
        assert_ok(type->kernels.linear_grad(backend, &edge, device[0], device[1], OC, weights, NULL, &err),
                  &err);
        assert_ok(type->memory.download(backend, device[2], grad, sizeof grad, &err), &err);
        assert_ok(type->memory.sync(backend, &err), &err);
        for (int i = 0; i < OC * IC + OC; i++) {
            double wanted = i;
            for (int n = 0; n < MB; n++)
                wanted += i < OC * IC ? 2 * (double)diff_dst[n * OC + i / IC] * (double)src[n * IC + i % IC]
                                      : (double)diff_dst[n * OC + i - OC * IC];
            if (!(fabs((double)grad[i] - wanted) < 1e-4))
                fail_msg("%s: gradient %d is %.9g, wanted %.9g", backends[b], i, (double)grad[i], wanted);
        }
        for (int i = 0; i < 3; i++) type->memory.free(backend, device[i]);
        ki_backend_close(backend);
    }
}

static void test_bf16_is_refused(void **state) {
    (void)state;
    for (int b = 0; b < N_BACKENDS; b++) {
        ki_backend *backend = NULL;
        kith_error err = {0};
        assert_int_equal(
            ki_backend_open(backends[b], &(ki_backend_options){.precision = KI_BF16}, &backend, &err),
            KITH_EUNSUPPORTED);
        assert_null(backend);
        assert_non_null(strstr(err.message, "precision bf16 on device "));
    }
}

static void test_ref_refuses_fusions(void **state) {
    (void)state;
    ki_backend *backend = op_backend("ref", NULL);
    ki_kernel_info info;
    ki_kernel *kernel = NULL;
    kith_error err;
    const ki_attr attr = {.bn = {1e-5, 0.1}};
    const ki_edge edge = {.shape = KI_SHAPE4(2, 3, 4, 4), .layout = KI_NATIVE, .bytes = 96 * sizeof(ki_real)};
    const ki_kernel_spec spec = {
        .kind = KI_OP_BATCH_NORM, .attr = &attr, .n_src = 1, .src = {edge}, .dst = edge, .has_relu = true};
    assert_int_equal(backend->type->kernels.of[spec.kind]->create(backend, &spec, &info, &kernel, &err),
                     KITH_EUNSUPPORTED);
    assert_null(kernel);
    ki_backend_close(backend);
}

/* Fail the first allocation, then the second, … until a kernel of every op can be made. */
static void test_out_of_memory(void **state) {
    (void)state;
    for (int b = 0; b < N_BACKENDS; b++) {
        for (size_t i = 0; i < N_ROWS(split); i++) {
            ki_backend *backend = op_backend(backends[b], NULL);
            op_case c;
            op_case_parse(split[i], &c);
            kith_memory_stats before, after;
            kith_memory_stats_get(&before);
            int n_failed = 0;
            for (bool done = false; !done; n_failed++) {
                op_run run;
                kith_error err = {0};
                ki_alloc_fail_after(n_failed);
                const kith_status status = op_run_init(&run, &c, backend, &err);
                done = !ki_alloc_failed();
                ki_alloc_fail_after(-1);
                op_run_release(&run);
                assert_int_equal(status, done ? KITH_OK : KITH_ENOMEM);
                if (!done) assert_true(strlen(err.message) > 0);
                kith_memory_stats_get(&after);
                if (after.live_bytes != before.live_bytes)
                    fail_msg("%s on %s: %lld bytes left behind when allocation %d fails", c.line, backends[b],
                             (long long)(after.live_bytes - before.live_bytes), n_failed + 1);
                assert_true(n_failed < 1000);
            }
            assert_true(n_failed > 3);
            ki_backend_close(backend);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameter_gradients_accumulate),
        cmocka_unit_test(test_threads_do_not_show),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_adam),
        cmocka_unit_test(test_sum_squares),
        cmocka_unit_test(test_linear_grad),
        cmocka_unit_test(test_bf16_is_refused),
        cmocka_unit_test(test_ref_refuses_fusions),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests_name("backend/contract", tests, NULL, NULL);
}
