/* Images made on the device: every pixel against the formula, in both precisions, and the second queue. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "base/shape.h"
#include "device/backend.h"
#include "support/op_check.h"
#include "support/testing.h"

enum { N = 3, MB = 4, H = 21, W = 25, OH = 13, OW = 18 };

static ki_backend *open_with(ki_precision precision) {
    return op_backend("cuda", &(ki_backend_options){.precision = precision});
}

static void *to_device(ki_backend *b, const void *host, size_t bytes) {
    void *ptr = NULL;
    kith_error err;
    assert_ok(b->type->memory.alloc(b, bytes, &ptr, &err), &err);
    assert_ok(b->type->memory.upload(b, ptr, host, bytes, &err), &err);
    return ptr;
}

static float rounded(float x, ki_precision precision) {
    return precision == KI_BF16 ? ki_bf16_to_float(ki_float_to_bf16(x)) : x;
}

static void check(ki_precision precision, int c, bool windows, bool bgr) {
    kith_error err;
    ki_backend *b = open_with(precision);
    const int h = windows ? H : OH, w = windows ? W : OW;
    static uint8_t pixels[N * H * W * 3];
    static float found[MB * 3 * OH * OW], before[MB * 3 * OH * OW];
    ki_rng rng = ki_rng_at(1, KI_RNG_TEST, (uint32_t)c, windows);
    for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (uint8_t)ki_rng_u32(&rng);
    /* The corners of what is possible. */
    const int32_t window[N * 3] = {0, 0, 0, W - OW, H - OH, 1, 3, 5, 1};
    ki_image_step step = {
        .n = N, .h = h, .w = w, .c = c, .bgr = bgr, .mean = {104, 117.5f, 123}, .factor = {1, 0.0173f, 0.5f}};
    void *device_pixels = to_device(b, pixels, (size_t)(N * h * w * c));
    void *device_window = to_device(b, window, sizeof window);
    step.pixels = device_pixels;
    step.window = windows ? device_window : NULL;
    ki_edge edge = {.shape = KI_SHAPE4(MB, c, OH, OW), .layout = KI_PLAIN};
    edge.bytes = b->type->memory.edge_bytes(b, &edge.shape, edge.layout);
    void *dst = NULL;
    assert_ok(b->type->memory.alloc(b, edge.bytes, &dst, &err), &err);
    for (size_t i = 0; i < N_ROWS(before); i++) before[i] = -7;
    assert_ok(b->type->memory.import(b, &edge, dst, before, &err), &err);
    assert_ok(b->type->kernels.images(b, &step, &edge, dst, &err), &err);
    assert_ok(b->type->memory.export(b, &edge, dst, found, &err), &err);
    assert_ok(b->type->memory.sync(b, &err), &err);
    for (int n = 0; n < MB; n++) {
        for (int k = 0; k < c; k++) {
            for (int y = 0; y < OH; y++) {
                for (int x = 0; x < OW; x++) {
                    float wanted = -7; /* an image that was not given stays */
                    if (n < N) {
                        const int32_t *at = window + 3 * n;
                        const int sx = !windows ? x : at[0] + (at[2] ? OW - 1 - x : x);
                        const int sy = !windows ? y : at[1] + y;
                        const uint8_t pixel = pixels[((n * h + sy) * w + sx) * c + (bgr ? c - 1 - k : k)];
                        const float difference = (float)pixel - step.mean[k];
                        wanted = rounded(difference * step.factor[k], precision);
                    }
                    const float is = found[((n * c + k) * OH + y) * OW + x];
                    if (is != wanted)
                        fail_msg("image %d channel %d at %d, %d is %g, wanted %g", n, k, x, y, (double)is,
                                 (double)wanted);
                }
            }
        }
    }
    step.n = MB + 1;
    assert_int_equal(b->type->kernels.images(b, &step, &edge, dst, &err), KITH_ESHAPE);
    step.n = N, step.c = c + 1;
    assert_int_equal(b->type->kernels.images(b, &step, &edge, dst, &err), KITH_ESHAPE);
    b->type->memory.free(b, dst);
    b->type->memory.free(b, device_pixels);
    b->type->memory.free(b, device_window);
    ki_backend_close(b);
}

static void test_float32(void **state) {
    (void)state;
    check(KI_FLOAT32, 3, true, true);
    check(KI_FLOAT32, 3, false, false);
    check(KI_FLOAT32, 1, true, false);
}

static void test_bf16(void **state) {
    (void)state;
    check(KI_BF16, 3, true, true);
    check(KI_BF16, 3, false, true);
    check(KI_BF16, 1, false, false);
}

/* Copies on the second queue, ordered by marks. */
static void test_queues(void **state) {
    (void)state;
    enum { BYTES = 1 << 20, ROUNDS = 20 };
    kith_error err;
    ki_backend *b = open_with(KI_FLOAT32);
    const ki_queue_type *q = b->type->queues;
    assert_non_null(q);
    void *host = NULL, *back = NULL, *staging = NULL, *dst = NULL;
    ki_mark *copied = NULL, *consumed = NULL;
    assert_ok(q->host_alloc(b, BYTES, &host, &err), &err);
    assert_ok(q->host_alloc(b, BYTES, &back, &err), &err);
    assert_ok(b->type->memory.alloc(b, BYTES, &staging, &err), &err);
    assert_ok(b->type->memory.alloc(b, BYTES, &dst, &err), &err);
    assert_ok(q->mark_new(b, &copied, &err), &err);
    assert_ok(q->mark_new(b, &consumed, &err), &err);
    for (int i = 0; i < ROUNDS; i++) {
        memset(host, i, BYTES);
        assert_ok(q->mark_follow(b, consumed, KI_QUEUE_COPY, &err), &err);
        assert_ok(q->copy(b, KI_QUEUE_COPY, staging, host, BYTES, &err), &err);
        assert_ok(q->mark_set(b, copied, KI_QUEUE_COPY, &err), &err);
        assert_ok(q->mark_follow(b, copied, KI_QUEUE_MAIN, &err), &err);
        assert_ok(q->copy(b, KI_QUEUE_MAIN, dst, staging, BYTES, &err), &err);
        assert_ok(q->mark_set(b, consumed, KI_QUEUE_MAIN, &err), &err);
        assert_ok(q->mark_wait(b, copied, &err), &err);
        if (i % 7 != 0) continue;
        assert_ok(q->copy(b, KI_QUEUE_MAIN, back, dst, BYTES, &err), &err);
        assert_ok(b->type->memory.sync(b, &err), &err);
        assert_memory_equal(back, host, BYTES);
    }
    double seconds = -1;
    assert_ok(q->mark_wait(b, consumed, &err), &err);
    assert_ok(q->mark_seconds(b, copied, consumed, &seconds, &err), &err);
    assert_true(seconds >= 0 && seconds < 10);
    size_t used = 0, all = 0;
    assert_ok(q->memory(b, &used, &all, &err), &err);
    assert_true(used >= 2 * BYTES && used <= all);
    q->mark_free(b, copied);
    q->mark_free(b, consumed);
    q->host_free(b, host);
    q->host_free(b, back);
    b->type->memory.free(b, staging);
    b->type->memory.free(b, dst);
    ki_backend_close(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_float32), cmocka_unit_test(test_bf16),
                                       cmocka_unit_test(test_queues)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
