/* HORDE on the device: against the host in float32 and in bf16, its blocks, and running out of memory. */
#include <math.h>

#include "backend/cuda/cuda.h"
#include "objective/both.h"
#include "objective/cuda/moments.h"
#include "objective/reg/moments.h"
#include "support/op_check.h"

static ki_backend *backend, *half; /* float32, bf16 */

static int open_devices(void **state) {
    (void)state;
    backend = op_backend("cuda", NULL);
    half = op_backend("cuda", &(ki_backend_options){.precision = KI_BF16});
    return 0;
}

static int close_devices(void **state) {
    (void)state;
    ki_backend_close(backend);
    ki_backend_close(half);
    return 0;
}

static int32_t fours(int64_t i) { return (int32_t)(i / 4); }
static int32_t uneven(int64_t i) { return (int32_t)(i * i % 13 % 6 + 3); }
static int32_t one(int64_t i) { return (int32_t)(5 + 0 * i); }

typedef struct shape {
    const char *name;
    int64_t m, dim, c, h, w;
    int32_t (*label_of)(int64_t i);
    int64_t pitch;
} shape;

static const shape shapes[] = {
    {"fours", 16, 8, 24, 3, 3, fours, 0},
    {"uneven", 13, 5, 7, 2, 3, uneven, 0},
    {"one class", 5, 4, 8, 1, 1, one, 0},
    {"a slice", 12, 4, 8, 2, 2, fours, 24},
};

static const char *const recipes[] = {
    "loss: {name: binomial}\nregularizers: [{name: horde, dimension: 40, embedding: 6}]",
    "loss: {name: contrastive}\nregularizers: [{name: horde, orders: 2, dimension: 13, embedding: 3}]",
    "loss: {name: binomial}\n"
    "regularizers: [{name: horde, orders: 4, dimension: 24, embedding: 5, cascaded: false, weight: 0.5}]",
    "loss: {name: raw}\n"
    "regularizers: [{name: horde, orders: 3, dimension: 300, embedding: 16, trained: false, warmup: 7}]",
    "loss: {name: triplet}\nregularizers: [{name: horde, orders: 3, dimension: 21, embedding: 0}]",
    "loss: {name: binomial}\nminer: {name: vthm}\n"
    "regularizers: [{name: horde, orders: 8, dimension: 16, embedding: 8, lr_multiplier: 2}]",
    "loss: {name: amsoftmax}\nregularizers: [{name: horde, orders: 3, dimension: 32, embedding: 8}]",
    "loss: {name: margin}\nregularizers: [{name: horde, orders: 3, dimension: 32, embedding: 8}]",
    /* The second adds to the map's gradient. */
    "loss: {name: binomial}\nregularizers: [{name: horde, orders: 3, dimension: 20, embedding: 4},\n"
    "  {name: horde, orders: 3, dimension: 20, embedding: 4, weight: 0.3}]",
};

static void run_case(ki_backend *on, const char *recipe, const shape *s, double tolerance) {
    char where[512];
    device_batch b = device_batch_new(s->m, s->dim, s->c, s->h, s->w, s->label_of);
    made host = made_of(recipe, &b.sizes), device = made_of(recipe, &b.sizes);
    device_run run;
    b.pitch = s->pitch;
    snprintf(where, sizeof where, "%s, %s", recipe, s->name);
    device_run_open(&run, on, device.objective, &b);
    device_evaluate(&run);
    device_compare(&run, host.objective, where, tolerance);
    device_run_close(&run);
    made_free(&host);
    made_free(&device);
    device_batch_free(&b);
}

/* Descriptors for test time; without labels and without an evaluation before. */
static void describe_case(ki_backend *on, const char *recipe, const shape *s, double tolerance) {
    char where[512];
    kith_error err = {0};
    device_batch b = device_batch_new(s->m, s->dim, s->c, s->h, s->w, s->label_of);
    made host = made_of(recipe, &b.sizes), device = made_of(recipe, &b.sizes);
    device_run run;
    ki_real *wanted = NULL;
    int64_t dim = 0;
    b.pitch = s->pitch;
    snprintf(where, sizeof where, "%s, %s", recipe, s->name);
    device_run_open(&run, on, device.objective, &b);
    assert_ok(ki_objective_describe(host.objective, &b.batch, &wanted, &dim, &err), &err);
    assert_int_equal(ki_objective_describe_dim(host.objective), dim);
    ki_real *found = ki_alloc((size_t)(b.m * dim), sizeof *found);
    void *there = NULL;
    const size_t bytes = (size_t)(b.m * dim) * sizeof *found;
    assert_ok(on->type->memory.alloc(on, bytes, &there, &err), &err);
    assert_ok(ki_engine_of(on)->describe(run.engine, there, &err), &err);
    assert_ok(on->type->memory.download(on, there, found, bytes, &err), &err);
    assert_ok(on->type->memory.sync(on, &err), &err);
    on->type->memory.free(on, there);
    device_same("descriptors", where, found, wanted, b.m * dim, tolerance);
    ki_free(found);
    ki_free(wanted);
    device_run_close(&run);
    made_free(&host);
    made_free(&device);
    device_batch_free(&b);
}

static void test_describe(void **state) {
    (void)state;
    static const shape large = {"bf16", 24, 16, 64, 7, 7, fours, 72};
    for (size_t r = 0; r < N_ROWS(recipes); r++) {
        for (size_t s = 0; s < N_ROWS(shapes); s++) describe_case(backend, recipes[r], &shapes[s], 1e-5);
    }
    describe_case(half,
                  "loss: {name: binomial}\nregularizers: [{name: horde, dimension: 512, embedding: 64}]",
                  &large, 2e-2);
}

static void test_float32(void **state) {
    (void)state;
    for (size_t r = 0; r < N_ROWS(recipes); r++) {
        for (size_t s = 0; s < N_ROWS(shapes); s++) run_case(backend, recipes[r], &shapes[s], 1e-5);
    }
}

/* bf16 products. As many positions as a real map has: pooling averages their roundings, which the loss (a
 * slope of 50 over similarities) then multiplies. */
static void test_bf16(void **state) {
    (void)state;
    static const shape large = {"bf16", 24, 16, 64, 7, 7, fours, 72};
    run_case(half, "loss: {name: binomial}\nregularizers: [{name: horde, dimension: 512, embedding: 64}]",
             &large, 2e-2);
    run_case(half,
             "loss: {name: binomial}\n"
             "regularizers: [{name: horde, orders: 4, dimension: 250, embedding: 31, cascaded: false}]",
             &large, 2e-2);
    run_case(half,
             "loss: {name: binomial}\n"
             "regularizers: [{name: horde, orders: 3, dimension: 250, embedding: 0, trained: false}]",
             &large, 2e-2);
}

/* A map that bf16 holds as it is. */
static void make_exact(device_batch *b) {
    for (int64_t i = 0; i < b->m * b->c * b->h * b->w; i++) {
        uint32_t bits;
        memcpy(&bits, &b->tap[KI_TAP_MAP][i], sizeof bits);
        bits &= 0xffff0000u;
        memcpy(&b->tap[KI_TAP_MAP][i], &bits, sizeof bits);
    }
}

/* In bf16 only the operands of the products with the map are rounded. Where those are exact (the map above, projections of
 * +-1) nothing is left that bf16 could have touched: projected positions, their products and sums, the moments, and the
 * products with E are as good as the host's. Rounding any one of them to bf16 costs 1e-3. */
static void test_bf16_sums_in_float32(void **state) {
    (void)state;
    static const char recipe[] =
        "loss: {name: binomial}\n"
        "regularizers: [{name: horde, orders: 5, dimension: 512, embedding: 64, trained: false}]";
    kith_error err = {0};
    device_batch b = device_batch_new(24, 16, 64, 7, 7, fours);
    make_exact(&b);
    made host = made_of(recipe, &b.sizes), device = made_of(recipe, &b.sizes);
    device_run run;
    ki_real *wanted = NULL;
    int64_t dim = 0;
    void *there = NULL;
    device_run_open(&run, half, device.objective, &b);
    assert_ok(ki_objective_describe(host.objective, &b.batch, &wanted, &dim, &err), &err);
    ki_real *found = ki_alloc((size_t)(b.m * dim), sizeof *found);
    const size_t bytes = (size_t)(b.m * dim) * sizeof *found;
    assert_ok(half->type->memory.alloc(half, bytes, &there, &err), &err);
    assert_ok(ki_engine_of(half)->describe(run.engine, there, &err), &err);
    assert_ok(half->type->memory.download(half, there, found, bytes, &err), &err);
    assert_ok(half->type->memory.sync(half, &err), &err);
    device_same("descriptors", "exact operands", found, wanted, b.m * dim, 1e-5);
    device_evaluate(&run);
    ki_result result;
    assert_ok(ki_objective_evaluate(host.objective, &b.batch, &result, &err), &err);
    int n_compared = 0;
    for (size_t i = 0; ki_objective_param(host.objective, i); i++) {
        const ki_state *param = ki_objective_param(host.objective, i);
        ki_engine_param on_device;
        if (strncmp(param->name, "horde.e", 7) != 0) continue;
        assert_true(ki_engine_of(half)->param_at(run.engine, i, &on_device));
        ki_real *diff = device_reals(&run, on_device.diff, on_device.n);
        device_same(param->name, "exact operands", diff, param->diff, on_device.n, 1e-4);
        ki_free(diff);
        n_compared++;
    }
    assert_int_equal(n_compared, 4);
    half->type->memory.free(half, there);
    ki_free(found);
    ki_free(wanted);
    device_run_close(&run);
    made_free(&host);
    made_free(&device);
    device_batch_free(&b);
}

/* Moments and their gradients alone, with a budget for projected positions. */
enum { M = 6, C = 10, HW = 6, DIMENSION = 701, K = 4, MOST_W = 9, PITCH = C + 3 };

typedef struct result {
    ki_real g[K + 1][M * DIMENSION], diff_map[M * C * HW], diff_w[MOST_W][C * DIMENSION];
} result;

static ki_real map[M * C * HW], w[MOST_W][C * DIMENSION]; /* the map as positions: [M, HW, C] */

static ki_real slope_at(int k, int64_t i) { return (ki_real)(0.3 * k + (double)(i % 7) - 3); }

/* The map's gradient is written into rows of PITCH numbers; those behind C are to stay as they are. */
static void moments_on_device(size_t most_bytes, int64_t block, bool cascaded, result *ret) {
    const int n_w = ki_moments_projections(K, cascaded);
    const ki_backend_type *type = backend->type;
    kith_error err = {0};
    void *device_map = NULL, *device_w = NULL, *device_diff_w = NULL, *device_diff = NULL, *scratch = NULL,
         *diff_g = NULL;
    const size_t w_count = C * DIMENSION;
    ki_cuda_moments o = {.backend = backend,
                         .stream = ki_cuda_of(backend)->stream,
                         .m = M,
                         .hw = HW,
                         .c = C,
                         .dim = DIMENSION,
                         .orders = K,
                         .cascaded = cascaded,
                         .f_pitch = C,
                         .type = KI_NUMBER_FLOAT,
                         .most_bytes = most_bytes};
    ki_cuda_scratch room = {0};
    static float wide[M * HW * PITCH];
    ki_cuda_moments_place(&o, &room);
    assert_int_equal(o.block, block);
    assert_ok(type->memory.alloc(backend, room.used, &scratch, &err), &err);
    assert_ok(type->memory.alloc(backend, sizeof map, &device_map, &err), &err);
    assert_ok(type->memory.alloc(backend, sizeof wide, &device_diff, &err), &err);
    assert_ok(type->memory.zero(backend, device_diff, sizeof wide, &err), &err);
    assert_ok(type->memory.alloc(backend, sizeof w, &device_w, &err), &err);
    assert_ok(type->memory.alloc(backend, sizeof w, &device_diff_w, &err), &err);
    assert_ok(type->memory.alloc(backend, (K + 1) * M * DIMENSION * sizeof(float), &diff_g, &err), &err);
    assert_ok(type->memory.upload(backend, device_map, map, sizeof map, &err), &err);
    assert_ok(type->memory.upload(backend, device_w, w, sizeof w, &err), &err);
    assert_ok(type->memory.zero(backend, device_diff_w, sizeof w, &err), &err);
    float *slopes = ki_alloc((K + 1) * M * DIMENSION, sizeof *slopes), *diff_w[MOST_W], *diff_gs[K + 1];
    for (int k = 0; k <= K; k++) {
        for (int64_t i = 0; i < M * DIMENSION; i++) slopes[k * M * DIMENSION + i] = slope_at(k, i);
        diff_gs[k] = (float *)diff_g + k * M * DIMENSION;
    }
    assert_ok(type->memory.upload(backend, diff_g, slopes, (K + 1) * M * DIMENSION * sizeof *slopes, &err),
              &err);
    for (int t = 0; t < n_w; t++) {
        o.w[t] = (float *)device_w + (size_t)t * w_count;
        diff_w[t] = (float *)device_diff_w + (size_t)t * w_count;
    }
    o.f = device_map;
    room = (ki_cuda_scratch){.base = scratch};
    ki_cuda_moments_place(&o, &room);
    assert_ok(ki_cuda_moments_forward(&o, &err), &err);
    for (int k = 2; k <= K; k++) {
        float *g = ki_alloc((size_t)(M * o.padded), sizeof *g);
        assert_ok(type->memory.download(backend, o.g[k], g, (size_t)(M * o.padded) * sizeof *g, &err), &err);
        assert_ok(type->memory.sync(backend, &err), &err);
        for (int i = 0; i < M; i++)
            memcpy(ret->g[k] + i * DIMENSION, g + i * o.padded, DIMENSION * sizeof *g);
        ki_free(g);
    }
    assert_ok(ki_cuda_moments_backward(&o, diff_gs, DIMENSION, diff_w, false, device_diff, PITCH, &err),
              &err);
    assert_ok(type->memory.download(backend, device_diff, wide, sizeof wide, &err), &err);
    assert_ok(type->memory.download(backend, device_diff_w, ret->diff_w, sizeof w, &err), &err);
    assert_ok(type->memory.sync(backend, &err), &err);
    for (int row = 0; row < M * HW; row++) {
        memcpy(ret->diff_map + row * C, wide + row * PITCH, C * sizeof *wide);
        for (int c = C; c < PITCH; c++) assert_true(wide[row * PITCH + c] == 0);
    }
    void *all[] = {device_map, device_w, device_diff_w, device_diff, scratch, diff_g};
    for (size_t i = 0; i < N_ROWS(all); i++) type->memory.free(backend, all[i]);
    ki_free(slopes);
}

static void moments_on_host(bool cascaded, result *ret) {
    static ki_real turned[M * C * HW], diff_turned[M * C * HW];
    const int n_w = ki_moments_projections(K, cascaded);
    ki_work work = {0};
    kith_error err = {0};
    ki_real *diff_w[KI_MOST_PROJECTIONS] = {0};
    for (int at = 0; at < M * HW * C; at++) turned[(at / (HW * C) * C + at % C) * HW + at / C % HW] = map[at];
    const ki_tap_data data = {.data = turned, .rows = M, .cols = C * HW, .c = C, .hw = HW};
    ki_moments o = {
        .m = M, .c = C, .hw = HW, .dim = DIMENSION, .orders = K, .cascaded = cascaded, .work = &work};
    memset(ret->diff_w, 0, sizeof ret->diff_w);
    memset(diff_turned, 0, sizeof diff_turned);
    for (int t = 0; t < n_w; t++) o.w[t] = w[t], diff_w[t] = ret->diff_w[t];
    assert_ok(ki_moments_forward(&o, &data, &err), &err);
    for (int k = 2; k <= K; k++) {
        memcpy(ret->g[k], o.g[k], sizeof ret->g[k]);
        for (int64_t i = 0; i < M * DIMENSION; i++) o.g[k][i] = slope_at(k, i);
    }
    assert_ok(ki_moments_backward(&o, diff_turned, diff_w, &err), &err);
    for (int at = 0; at < M * HW * C; at++)
        ret->diff_map[at] = diff_turned[(at / (HW * C) * C + at % C) * HW + at / C % HW];
    ki_work_release(&work);
}

/* Dimension 701, filled up to 704, is one block, two or three: as many columns as the budget allows, in steps of 256. */
static void test_blocks(void **state) {
    (void)state;
    static result host, device;
    static const struct {
        size_t columns; /* that the budget has room for */
        int64_t block;
    } budgets[] = {{1000000, 704}, {704, 704}, {703, 512}, {352, 512}, {351, 256}, {1, 256}};
    ki_rng rng = ki_rng_at(5, KI_RNG_TEST, 0, 0);
    for (size_t i = 0; i < N_ROWS(map); i++) map[i] = (ki_real)ki_rng_normal(&rng);
    for (int t = 0; t < MOST_W; t++) {
        for (size_t i = 0; i < N_ROWS(w[t]); i++) w[t][i] = (ki_real)(0.5 * ki_rng_normal(&rng));
    }
    for (int cascaded = 0; cascaded < 2; cascaded++) {
        moments_on_host(cascaded, &host);
        for (size_t i = 0; i < N_ROWS(budgets); i++) {
            char where[64];
            const size_t column = sizeof(float) * M * HW * (size_t)ki_moments_projections(K, cascaded);
            snprintf(where, sizeof where, "cascaded %d, room for %zu columns", cascaded, budgets[i].columns);
            moments_on_device(budgets[i].columns * column, budgets[i].block, cascaded, &device);
            for (int k = 2; k <= K; k++) device_same("g", where, device.g[k], host.g[k], M * DIMENSION, 1e-5);
            device_same("the map", where, device.diff_map, host.diff_map, M * C * HW, 1e-5);
            for (int t = 0; t < ki_moments_projections(K, cascaded); t++)
                device_same("w", where, device.diff_w[t], host.diff_w[t], C * DIMENSION, 1e-5);
        }
    }
}

/* Every allocation of open may fail: one line, nothing left behind. */
static void test_out_of_memory(void **state) {
    (void)state;
    device_batch b = device_batch_new(8, 4, 6, 2, 2, fours);
    made m = made_of(recipes[6], &b.sizes);
    device_run run;
    device_run_prepare(&run, backend, m.objective, &b);
    kith_status status = KITH_ENOMEM;
    int n = 0;
    for (; status != KITH_OK && n < 500; n++) {
        kith_error err = {0};
        ki_alloc_fail_after(n);
        status = ki_engine_of(backend)->open(backend, m.objective, &run.in, b.m, &run.engine, &err);
        ki_alloc_fail_after(-1);
        if (status != KITH_OK) {
            assert_int_equal(status, KITH_ENOMEM);
            assert_true(err.message[0] != 0);
        }
    }
    assert_int_equal(status, KITH_OK);
    assert_true(n > 1);
    device_run_close(&run);
    made_free(&m);
    device_batch_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_float32),
        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_bf16_sums_in_float32),
        cmocka_unit_test(test_describe),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests_name("objective/cuda horde", tests, open_devices, close_devices);
}
