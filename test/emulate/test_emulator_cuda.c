/* The emulator: blocks, warps, shared memory, graphs; and that it sees the mistakes it is there for. On a device
 * the first tests say that the samples themselves are right. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/cuda/cuda.h"
#include "emulate/samples.h"
#include "support/testing.h"

static ki_backend *backend;

static int open_device(void **state) {
    (void)state;
    kith_error err;
    /* The last device: nothing may assume the first. */
    int n = 0;
    if (cudaGetDeviceCount(&n) != cudaSuccess || n == 0) exit(77);
    const ki_backend_options options = {.device = n - 1};
    if (ki_backend_open("cuda", &options, &backend, &err) == KITH_OK) return 0;
    print_error("%s\n", err.message);
    return -1;
}

static int close_device(void **state) {
    (void)state;
    ki_backend_close(backend);
    return 0;
}

static void *device(size_t bytes) {
    void *ptr = NULL;
    kith_error err;
    assert_ok(backend->type->memory.alloc(backend, bytes, &ptr, &err), &err);
    return ptr;
}

static void up(void *to, const void *from, size_t bytes) {
    kith_error err;
    assert_ok(backend->type->memory.upload(backend, to, from, bytes, &err), &err);
}

static void down(void *to, const void *from, size_t bytes) {
    kith_error err;
    assert_ok(backend->type->memory.download(backend, from, to, bytes, &err), &err);
    assert_ok(backend->type->memory.sync(backend, &err), &err);
}

static void test_block_sums(void **state) {
    (void)state;
    enum { BLOCKS = 3, N = 1000 };
    float host[BLOCKS * N];
    double wanted[BLOCKS] = {0}, got[BLOCKS];
    for (int i = 0; i < BLOCKS * N; i++) wanted[i / N] += (double)(host[i] = (float)(i * 37 % 101) / 8);
    void *src = device(sizeof host), *dst = device(sizeof got);
    up(src, host, sizeof host);
    assert_int_equal(sample_block_sums(ki_cuda_of(backend)->stream, src, dst, BLOCKS, N), cudaSuccess);
    down(got, dst, sizeof got);
    for (int b = 0; b < BLOCKS; b++) {
        if (got[b] != wanted[b]) fail_msg("block %d sums to %g, wanted %g", b, got[b], wanted[b]);
    }
    ki_cuda_free(backend, src);
    ki_cuda_free(backend, dst);
}

static void test_captured_work_runs_when_launched(void **state) {
    (void)state;
    float host[100], got[100];
    void *src = device(sizeof host), *dst = device(sizeof host), *step = NULL;
    kith_error err;
    assert_ok(backend->type->recording.begin(backend, &err), &err);
    assert_int_equal(sample_reverse(ki_cuda_of(backend)->stream, src, dst, 100), cudaSuccess);
    assert_ok(backend->type->recording.end(backend, &step, &err), &err);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 100; i++) host[i] = (float)(i + 1000 * round);
        up(src, host, sizeof host);
        assert_ok(backend->type->recording.launch(backend, step, &err), &err);
        down(got, dst, sizeof got);
        for (int i = 0; i < 100; i++) {
            if (got[i] != host[99 - i])
                fail_msg("round %d: [%d] is %g, wanted %g", round, i, (double)got[i], (double)host[99 - i]);
        }
    }
    backend->type->recording.free(backend, step);
    ki_cuda_free(backend, src);
    ki_cuda_free(backend, dst);
}

static void test_ballots_and_atomics(void **state) {
    (void)state;
    float host[128];
    int got[2], wanted[2] = {0};
    for (int i = 0; i < 128; i++) wanted[i / 64] += (host[i] = (float)(i * 7 % 5) - 2) > 0;
    void *src = device(sizeof host), *counts = device(sizeof got);
    kith_error err;
    up(src, host, sizeof host);
    assert_ok(backend->type->memory.zero(backend, counts, sizeof got, &err), &err);
    assert_int_equal(sample_count(ki_cuda_of(backend)->stream, src, counts, 2), cudaSuccess);
    down(got, counts, sizeof got);
    assert_int_equal(got[0], wanted[0]);
    assert_int_equal(got[1], wanted[1]);
    ki_cuda_free(backend, src);
    ki_cuda_free(backend, counts);
}

static void test_blocks_wait_for_each_other(void **state) {
    (void)state;
    enum { BLOCKS = 3, N = BLOCKS * 64 };
    float got[N];
    unsigned counters[2];
    void *values = device(sizeof got), *dst = device(sizeof got);
    unsigned *const zeros = ki_cuda_of(backend)->counters;
    for (int time = 0; time < 2; time++) {
        assert_int_equal(sample_exchange(ki_cuda_of(backend)->stream, values, dst, zeros, BLOCKS, true),
                         cudaSuccess);
        down(got, dst, sizeof got);
        down(counters, zeros, sizeof counters);
        for (int i = 0; i < N; i++) {
            const float mirrored = (float)(i / 64 * 64 + 63 - i % 64);
            float wanted = mirrored + mirrored * mirrored;
            for (int b = 0; b < BLOCKS; b++) wanted += 2 * (float)(b * 64 + i % 64);
            if (got[i] != wanted)
                fail_msg("time %d: [%d] is %g, wanted %g", time, i, (double)got[i], (double)wanted);
        }
        assert_int_equal(counters[0], 0);
        assert_int_equal(counters[1], 0);
    }
    ki_cuda_free(backend, values);
    ki_cuda_free(backend, dst);
}

static void run_product(bool across, bool waits, float *got) {
    uint16_t left[256], right[256];
    for (int i = 0; i < 256; i++) {
        left[i] = ki_float_to_bf16((float)(i * 7 % 23 - 11));
        right[i] = ki_float_to_bf16((float)(i * 5 % 19 - 9));
    }
    void *a = device(sizeof left), *b = device(sizeof right), *dst = device(256 * sizeof *got);
    up(a, left, sizeof left);
    up(b, right, sizeof right);
    assert_int_equal(sample_product(ki_cuda_of(backend)->stream, a, b, dst, across, waits), cudaSuccess);
    down(got, dst, 256 * sizeof *got);
    ki_cuda_free(backend, a);
    ki_cuda_free(backend, b);
    ki_cuda_free(backend, dst);
}

static void test_products_of_a_warp(void **state) {
    (void)state;
    float got[256];
    for (int across = 0; across < 2; across++) {
        run_product(across, true, got);
        for (int i = 0; i < 256; i++) {
            int wanted = 0;
            for (int k = 0; k < 16; k++) {
                const int at = across ? i % 16 * 16 + k : k * 16 + i % 16;
                wanted += ((i / 16 * 16 + k) * 7 % 23 - 11) * (at * 5 % 19 - 9);
            }
            if (got[i] != (float)wanted)
                fail_msg("across %d: [%d] is %g, wanted %d", across, i, (double)got[i], wanted);
        }
    }
}

#ifdef KI_EMULATE_HEADERS

/* In every other block. */
static void test_copies_must_be_waited_for(void **state) {
    (void)state;
    float got[256];
    bool has_all[2];
    for (int i = 0; i < 2; i++) {
        run_product(false, false, got);
        has_all[i] = !isnan(got[0]);
    }
    assert_true(has_all[0] != has_all[1]);
}

/* Does `run` stop the program? */
static void assert_stops(cudaError_t (*run)(void)) {
    const pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr)) _exit(3);
        run();
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static float *room;
static cudaError_t run_skipped_barrier(void) { return sample_skipped_barrier(ki_cuda_of(backend)->stream); }
static cudaError_t run_skipped_shuffle(void) {
    return sample_skipped_shuffle(ki_cuda_of(backend)->stream, room);
}

static cudaError_t run_lonely_blocks(void) {
    return sample_exchange(ki_cuda_of(backend)->stream, room, room, ki_cuda_of(backend)->counters, 2, false);
}

static void test_divergence_stops(void **state) {
    (void)state;
    room = device(2 * 64 * sizeof *room);
    assert_stops(run_skipped_barrier);
    assert_stops(run_skipped_shuffle);
    assert_stops(run_lonely_blocks);
    ki_cuda_free(backend, room);
}

static cudaError_t run_writes_beside(void) {
    float *const dst = device(3 * sizeof *dst);
    const cudaError_t error = sample_reverse(ki_cuda_of(backend)->stream, room, dst, 4);
    ki_cuda_free(backend, dst);
    return error;
}

static cudaError_t run_writes_before(void) {
    float *const dst = device(4 * sizeof *dst);
    const cudaError_t error = sample_reverse(ki_cuda_of(backend)->stream, room, dst - 1, 4);
    ki_cuda_free(backend, dst);
    return error;
}

static void test_writing_beside_memory_stops(void **state) {
    (void)state;
    static const float zeros[4];
    room = device(sizeof zeros);
    up(room, zeros, sizeof zeros);
    assert_stops(run_writes_beside);
    assert_stops(run_writes_before);
    ki_cuda_free(backend, room);
}

static void test_unwritten_shared_memory_is_nan(void **state) {
    (void)state;
    float got[64];
    void *dst = device(sizeof got);
    assert_int_equal(sample_unwritten(ki_cuda_of(backend)->stream, dst), cudaSuccess);
    down(got, dst, sizeof got);
    assert_true(got[0] == 1 && isnan(got[32]));
    ki_cuda_free(backend, dst);
}

static void test_too_many_blocks_together_are_refused(void **state) {
    (void)state;
    assert_int_equal(sample_exchange(ki_cuda_of(backend)->stream, NULL, NULL, NULL, 1000, true),
                     cudaErrorCooperativeLaunchTooLarge);
    assert_int_equal(cudaGetLastError(), cudaErrorCooperativeLaunchTooLarge);
}

static void test_a_stream_of_another_device_is_refused(void **state) {
    (void)state;
    assert_int_equal(cudaSetDevice(0), cudaSuccess);
    assert_int_equal(sample_skipped_barrier(ki_cuda_of(backend)->stream), cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaSetDevice(ki_cuda_of(backend)->device), cudaSuccess);
}

#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block_sums),
        cmocka_unit_test(test_captured_work_runs_when_launched),
        cmocka_unit_test(test_ballots_and_atomics),
        cmocka_unit_test(test_blocks_wait_for_each_other),
        cmocka_unit_test(test_products_of_a_warp),
#ifdef KI_EMULATE_HEADERS
        cmocka_unit_test(test_copies_must_be_waited_for),
        cmocka_unit_test(test_divergence_stops),
        cmocka_unit_test(test_writing_beside_memory_stops),
        cmocka_unit_test(test_unwritten_shared_memory_is_nan),
        cmocka_unit_test(test_too_many_blocks_together_are_refused),
        cmocka_unit_test(test_a_stream_of_another_device_is_refused),
#endif
    };
    return cmocka_run_group_tests_name("emulate", tests, open_device, close_device);
}
