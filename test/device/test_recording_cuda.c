/* Work that is queued again and again is queued twice, recorded once and then launched. */
#include <stdlib.h>

#include "device/recording.h"
#include "support/testing.h"

typedef struct work {
    ki_backend *backend;
    void *from, *to;
    int n_calls;
    kith_status status;
} work;

/* A copy inside the device's memory, which a recording repeats. */
static kith_status queue(void *user, kith_error *err) {
    work *w = user;
    w->n_calls++;
    if (w->status != KITH_OK) return w->status;
    return w->backend->type->memory.zero(w->backend, w->to, sizeof(float), err);
}

static float value_of(const work *w) {
    float value = 0;
    kith_error err = {0};
    assert_ok(w->backend->type->memory.download(w->backend, w->to, &value, sizeof value, &err), &err);
    assert_ok(w->backend->type->memory.sync(w->backend, &err), &err);
    return value;
}

static void spoil(const work *w) {
    static const float spoilt = 7;
    kith_error err = {0};
    assert_ok(w->backend->type->memory.upload(w->backend, w->to, &spoilt, sizeof spoilt, &err), &err);
    assert_ok(w->backend->type->memory.sync(w->backend, &err), &err);
    assert_true(value_of(w) == 7);
}

static void test_recording(void **state) {
    (void)state;
    kith_error err = {0};
    ki_recording recording = {0};
    work w = {0};
    if (ki_backend_open("cuda", NULL, &w.backend, &err) != KITH_OK) skip();
    assert_ok(w.backend->type->memory.alloc(w.backend, sizeof(float), &w.to, &err), &err);
    for (int run = 0; run < 6; run++) {
        assert_int_equal(ki_recording_is_due(&recording, w.backend), run == KI_RECORDING_WARM_UPS);
        assert_int_equal(ki_recording_is_ready(&recording, w.backend), run > KI_RECORDING_WARM_UPS);
        spoil(&w);
        assert_ok(ki_recording_run(&recording, w.backend, queue, &w, &err), &err);
        if (value_of(&w) != 0) fail_msg("run %d did nothing", run);
        assert_int_equal(w.n_calls, run <= KI_RECORDING_WARM_UPS ? run + 1 : KI_RECORDING_WARM_UPS + 1);
    }
    /* While somebody measures, every run is queued. */
    ki_probe probe = {0};
    w.backend->probe = &probe;
    assert_ok(ki_recording_run(&recording, w.backend, queue, &w, &err), &err);
    assert_int_equal(w.n_calls, KI_RECORDING_WARM_UPS + 2);
    w.backend->probe = NULL;
    ki_recording_release(&recording, w.backend);

    ki_recording off = {.is_off = true};
    w.n_calls = 0;
    for (int run = 0; run < 5; run++) assert_ok(ki_recording_run(&off, w.backend, queue, &w, &err), &err);
    assert_int_equal(w.n_calls, 5);

    /* A failure while it is recorded is the work's, and leaves nothing behind. */
    ki_recording fails = {0};
    for (int run = 0; run < KI_RECORDING_WARM_UPS; run++)
        assert_ok(ki_recording_run(&fails, w.backend, queue, &w, &err), &err);
    w.status = KITH_ESHAPE;
    assert_int_equal(ki_recording_run(&fails, w.backend, queue, &w, &err), KITH_ESHAPE);
    assert_false(ki_recording_is_ready(&fails, w.backend));
    w.status = KITH_OK;
    assert_ok(ki_recording_run(&fails, w.backend, queue, &w, &err), &err);
    assert_true(ki_recording_is_ready(&fails, w.backend));
    ki_recording_release(&fails, w.backend);
    w.backend->type->memory.free(w.backend, w.to);
    ki_backend_close(w.backend);
}

/* A backend that cannot record queues every run. */
static void test_without_capture(void **state) {
    (void)state;
    kith_error err = {0};
    ki_recording recording = {0};
    float value = 7;
    work w = {.to = &value};
    assert_ok(ki_backend_open("ref", NULL, &w.backend, &err), &err);
    for (int run = 0; run < 5; run++)
        assert_ok(ki_recording_run(&recording, w.backend, queue, &w, &err), &err);
    assert_int_equal(w.n_calls, 5);
    assert_true(value == 0);
    ki_recording_release(&recording, w.backend);
    ki_backend_close(w.backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_recording),
                                       cmocka_unit_test(test_without_capture)};
    return cmocka_run_group_tests_name("device/recording", tests, NULL, NULL);
}
