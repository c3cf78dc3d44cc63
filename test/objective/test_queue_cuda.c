/* Objectives on memory of the device (kith_objective_queue), against the host's: values, gradients, what is learned, the order
 * beside another stream, and what is refused. */
#include <cuda_runtime_api.h>
#include <string.h>

#include "base/rng.h"
#include "device/backend.h"
#include "kith/objective.h"
#include "objective/device.h"

enum { ROWS = 24, DIM = 12, CLASSES = 6, STEPS = 5 };

/* A batch on the host, and the same on the device. */
typedef struct both {
    ki_backend *backend;
    kith_objective *host, *placed;
    int64_t wide[ROWS];
    int32_t label[ROWS];
    float x[ROWS * DIM], gradient[ROWS * DIM], stopped[ROWS * DIM];
    void *on_device[7]; /* labels, x, pooled, their gradients … as take() hands them out */
    int n_taken;
    kith_device_batch batch;
} both;

static void *take(both *b, size_t bytes) {
    kith_error err = {0};
    void *ptr = NULL;
    assert_in_range(b->n_taken, 0, 6);
    assert_ok(b->backend->type->memory.alloc(b->backend, bytes, &ptr, &err), &err);
    return b->on_device[b->n_taken++] = ptr;
}

static void begin(both *b, const char *recipe) {
    const kith_objective_sizes sizes = {.n_classes = CLASSES, .embedding = DIM};
    kith_error err = {0};
    memset(b, 0, sizeof *b);
    assert_ok(ki_backend_open("cuda", NULL, &b->backend, &err), &err);
    assert_ok(kith_objective_new(recipe, &sizes, 5, &b->host, &err), &err);
    assert_ok(kith_objective_new(recipe, &sizes, 5, &b->placed, &err), &err);
    assert_ok(kith_objective_place(b->placed, "cuda", &err), &err);
    kith_device_batch_init(&b->batch, sizeof b->batch);
    b->batch.n = ROWS;
    b->batch.labels = take(b, sizeof b->label);
    b->batch.tap[KITH_TAP_EMBEDDING] = (kith_batch_tap){take(b, sizeof b->x), ROWS, DIM, 0, 0};
    b->batch.gradient[KITH_TAP_EMBEDDING] = take(b, sizeof b->x);
    b->batch.stopped = take(b, sizeof b->x);
    b->batch.total = take(b, sizeof(double));
    b->batch.total_f32 = take(b, sizeof(float));
}

static void end(both *b) {
    kith_objective_free(b->host);
    kith_objective_free(b->placed);
    for (int i = 0; i < b->n_taken; i++) b->backend->type->memory.free(b->backend, b->on_device[i]);
    ki_backend_close(b->backend);
}

static void upload(both *b, const void *dst, const void *src, size_t bytes) {
    kith_error err = {0};
    void *to = NULL;
    memcpy(&to, &dst, sizeof to);
    assert_ok(b->backend->type->memory.upload(b->backend, to, src, bytes, &err), &err);
    assert_ok(b->backend->type->memory.sync(b->backend, &err), &err);
}

/* Results are there for the stream of the batch; the backend copies on one of its own. */
static void download(both *b, const void *src, void *dst, size_t bytes) {
    kith_error err = {0};
    assert_int_equal(cudaStreamSynchronize(b->batch.stream), cudaSuccess);
    assert_ok(b->backend->type->memory.download(b->backend, src, dst, bytes, &err), &err);
    assert_ok(b->backend->type->memory.sync(b->backend, &err), &err);
}

static void draw(both *b, uint32_t step) {
    ki_rng rng = ki_rng_at(step, KI_RNG_TEST, 7, 0);
    for (int i = 0; i < ROWS; i++) b->wide[i] = b->label[i] = (int32_t)((i + (int)step) % CLASSES);
    for (int i = 0; i < ROWS * DIM; i++)
        b->x[i] = (float)(ki_rng_normal(&rng) + (b->label[i / DIM] == i % DIM ? 2 : 0));
    b->batch.step = step;
    upload(b, b->batch.labels, b->label, sizeof b->label);
    upload(b, b->batch.tap[KITH_TAP_EMBEDDING].data, b->x, sizeof b->x);
}

static kith_status on_host(both *b, kith_objective_result *ret, kith_error *err) {
    const kith_batch batch = {.n = ROWS,
                              .labels = b->wide,
                              .step = b->batch.step,
                              .tap[KITH_TAP_EMBEDDING] = {.data = b->x, .rows = ROWS, .cols = DIM}};
    return kith_objective_evaluate(b->host, &batch, ret, err);
}

/* Several batches: from the third on the evaluation is launched from a recording. */
static void compare_steps(const char *recipe) {
    both b;
    kith_error err = {0};
    begin(&b, recipe);
    for (uint32_t step = 0; step < STEPS; step++) {
        kith_objective_result wanted, found;
        double total = 0;
        float total_f32 = 0;
        draw(&b, step);
        kith_objective_clear_gradients(b.host);
        kith_objective_clear_gradients(b.placed);
        assert_ok(on_host(&b, &wanted, &err), &err);
        assert_ok(kith_objective_queue(b.placed, &b.batch, &err), &err);
        download(&b, b.batch.gradient[KITH_TAP_EMBEDDING], b.gradient, sizeof b.gradient);
        download(&b, b.batch.total, &total, sizeof total);
        download(&b, b.batch.total_f32, &total_f32, sizeof total_f32);
        if (wanted.stopped) {
            download(&b, b.batch.stopped, b.stopped, sizeof b.stopped);
            for (int i = 0; i < ROWS * DIM; i++) b.gradient[i] += b.stopped[i];
        }
        device_bad = 0;
        device_compare(recipe, "embedding", b.gradient, wanted.gradient[KITH_TAP_EMBEDDING], ROWS * DIM, 1e-5,
                       1e-7);
        if (fabs(total - wanted.total) > 1e-5 * fabs(wanted.total))
            fail_msg("%s, step %u: total %.9g, wanted %.9g", recipe, step, total, wanted.total);
        assert_ok(kith_objective_read(b.placed, &found, &err), &err);
        assert_true(found.total == total);
        if (total_f32 != (float)total)
            fail_msg("%s, step %u: total_f32 %.9g, wanted %.9g", recipe, step, (double)total_f32, total);
        assert_int_equal(found.n_terms, wanted.n_terms);
        assert_int_equal(found.n_positive, wanted.n_positive);
        assert_null(found.gradient[KITH_TAP_EMBEDDING]);
        kith_objective_param one, other;
        for (int i = 0; kith_objective_param_at(b.host, i, &one); i++) {
            assert_true(kith_objective_param_at(b.placed, i, &other));
            device_compare(recipe, one.name, other.value, one.value, one.n, 1e-6, 0);
            if (!one.gradient) continue;
            device_compare(recipe, one.name, other.gradient, one.gradient, one.n, 1e-5, 1e-7);
            for (int64_t k = 0; k < one.n; k++) /* a step, as an optimizer would take it */
                one.value[k] -= 0.1f * one.gradient[k], other.value[k] -= 0.1f * one.gradient[k];
        }
        assert_int_equal(device_bad, 0);
    }
    end(&b);
}

static void test_values_and_gradients(void **state) {
    (void)state;
    compare_steps("{loss: {name: binomial, beta: 40}, miner: {name: vthm}}");
    compare_steps("{loss: {name: raw}, regularizers: [{name: norm_l2, weight: 0.1}]}");
}

static void test_what_is_learned(void **state) {
    (void)state;
    compare_steps("{loss: {name: proxy_anchor}}");
    compare_steps("{loss: {name: contrastive}, memory: {size: 40, warmup: 1}}");
}

static void test_what_stops_at_the_embedding(void **state) {
    (void)state;
    compare_steps("{loss: {name: binomial}, regularizers: [{name: energy_confusion, weight: 0.5}]}");
}

/* The caller's stream writes the batch late, and reads the gradient when nobody has waited for anything. */
static void test_the_order_of_streams(void **state) {
    (void)state;
    both b;
    kith_error err = {0};
    kith_objective_result wanted;
    cudaStream_t stream = NULL;
    int least = 0, greatest = 0;
    begin(&b, "{loss: {name: binomial}}");
    draw(&b, 0);
    assert_ok(on_host(&b, &wanted, &err), &err);
    assert_int_equal(cudaDeviceGetStreamPriorityRange(&least, &greatest), cudaSuccess);
    assert_int_equal(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, least), cudaSuccess);
    float *x = NULL;
    memcpy(&x, &b.batch.tap[KITH_TAP_EMBEDDING].data, sizeof x);
    const float nothing[ROWS * DIM] = {0};
    upload(&b, x, nothing, sizeof nothing);
    assert_int_equal(cudaMemcpyAsync(x, b.x, sizeof b.x, cudaMemcpyHostToDevice, stream), cudaSuccess);
    b.batch.stream = stream;
    assert_ok(kith_objective_queue(b.placed, &b.batch, &err), &err);
    assert_int_equal(cudaMemcpyAsync(b.gradient, b.batch.gradient[KITH_TAP_EMBEDDING], sizeof b.gradient,
                                     cudaMemcpyDeviceToHost, stream),
                     cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    device_bad = 0;
    device_compare("streams", "embedding", b.gradient, wanted.gradient[KITH_TAP_EMBEDDING], ROWS * DIM, 1e-5,
                   1e-7);
    assert_int_equal(device_bad, 0);
    assert_int_equal(cudaStreamDestroy(stream), cudaSuccess);
    end(&b);
}

static void assert_refused(both *b, kith_status wanted, const char *text) {
    kith_error err = {0};
    const kith_status status = kith_objective_queue(b->placed, &b->batch, &err);
    if (status != wanted || !strstr(err.message, text))
        fail_msg("%s: %s; wanted %s with '%s'", kith_status_name(status), err.message,
                 kith_status_name(wanted), text);
}

static void test_what_is_refused(void **state) {
    (void)state;
    both b;
    kith_error err = {0};
    kith_objective_result result;
    begin(&b, "{loss: {name: proxy_anchor}}");
    assert_int_equal(kith_objective_read(b.placed, &result, &err), KITH_EINVAL);
    draw(&b, 0);
    b.batch.n = ROWS - 1;
    assert_refused(&b, KITH_ESHAPE, "wanted 23 rows");
    b.batch.n = ROWS;
    float *const gradient = b.batch.gradient[KITH_TAP_EMBEDDING];
    b.batch.gradient[KITH_TAP_EMBEDDING] = NULL;
    assert_refused(&b, KITH_EINVAL, "no memory for the gradient of embedding");
    b.batch.gradient[KITH_TAP_EMBEDDING] = gradient;
    b.label[3] = CLASSES;
    upload(&b, b.batch.labels, b.label, sizeof b.label);
    assert_ok(kith_objective_queue(b.placed, &b.batch, &err), &err);
    assert_int_equal(kith_objective_read(b.placed, &result, &err), KITH_EINVAL);
    draw(&b, 1);
    b.x[5] = NAN;
    upload(&b, b.batch.tap[KITH_TAP_EMBEDDING].data, b.x, sizeof b.x);
    assert_ok(kith_objective_queue(b.placed, &b.batch, &err), &err);
    assert_int_equal(kith_objective_read(b.placed, &result, &err), KITH_ENUMERIC);
    assert_ok(kith_objective_place(b.placed, "cpu", &err), &err);
    assert_refused(&b, KITH_EINVAL, "evaluated on the host");
    end(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_and_gradients),
        cmocka_unit_test(test_what_is_learned),
        cmocka_unit_test(test_what_stops_at_the_embedding),
        cmocka_unit_test(test_the_order_of_streams),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests_name("objective/queue_cuda", tests, NULL, NULL);
}
