/* Who waits for a decoder, for how long, and for what. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "serve/decode/decoders.h"
#include "support/hostile.h"
#include "support/served.h"
#include "support/testing.h"

enum { MOST_JOBS = 8 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_ended = PTHREAD_COND_INITIALIZER;
static const ki_decode_job *ended[MOST_JOBS]; /* in the order in which they did */
static int n_ended;
static atomic_uint_least64_t n_failures;

static void note_end(ki_decode_job *job) {
    pthread_mutex_lock(&lock);
    ended[n_ended++] = job;
    pthread_cond_broadcast(&has_ended);
    pthread_mutex_unlock(&lock);
}

/* Until so many jobs have ended, or the seconds are over: how many have. */
static int wait_for(int n, double seconds) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    const double end = (double)until.tv_sec + 1e-9 * (double)until.tv_nsec + seconds;
    until = (struct timespec){(time_t)end, (long)((end - (double)(time_t)end) * 1e9)};
    int failed = 0;
    pthread_mutex_lock(&lock);
    while (n_ended < n && failed == 0) failed = pthread_cond_timedwait(&has_ended, &lock, &until);
    const int found = n_ended;
    pthread_mutex_unlock(&lock);
    return found;
}

static ki_decoders *start(int64_t n, int64_t most_decoded) {
    ki_decoders *d = NULL;
    kith_error err;
    const ki_decoders_options o = {.program = testing_program_path(),
                                   .n = n,
                                   .memory_bytes = (uint64_t)2 << 30,
                                   .most_decoded = most_decoded,
                                   .seconds = 20,
                                   .n_failures = &n_failures};
    n_ended = 0;
    assert_ok(ki_decoders_new(&o, &d, &err), &err);
    return d;
}

/* A client's question about the whole image; resized, or as it is. */
static ki_decode_job make_job(int client, const hostile_file *file, bool as_it_is) {
    ki_decode_job job = {.file = file->bytes, .done = note_end, .until = ki_seconds_now() + 60};
    kith_transform_init(&job.question.transform, sizeof job.question.transform);
    if (as_it_is) {
        job.question.transform.resize = KITH_RESIZE_NONE;
        job.question.transform.crop_to = 4096;
    }
    job.turn.client.byte[15] = (uint8_t)client;
    job.turn.cost = 1;
    job.question.n_bytes = file->n;
    job.question.want = KI_WANT_PIXELS;
    job.question.most_pixels = KI_IMAGE_MOST_PIXELS;
    job.question.n_views = 1;
    return job;
}

static void assert_decoded(ki_decode_job *job, int side) {
    assert_ok(job->status, &job->err);
    assert_ok(job->reply.status, &job->reply.err);
    assert_int_equal(job->reply.view[0].w, side);
    assert_int_equal(job->reply.n_bytes, 3 * side * side);
    ki_free(job->bytes);
}

/* A client's second question comes after the first of another, which came later. */
static void test_clients_take_turns(void **state) {
    (void)state;
    pid_t process[4];
    ki_decoders *d = start(1, 1 << 30);
    hostile_file file = hostile_png(300, 0);
    ki_decode_job job[6];
    static const int client[] = {1, 1, 1, 2, 2, 3}, order[] = {0, 3, 5, 1, 4, 2};
    assert_int_equal(served_decoders(process, 4), 1);
    kill(process[0], SIGSTOP);
    for (int i = 0; i < 6; i++) {
        job[i] = make_job(client[i], &file, false);
        ki_decoders_ask(d, &job[i]);
    }
    kill(process[0], SIGCONT);
    assert_int_equal(wait_for(6, 30), 6);
    for (int i = 0; i < 6; i++) {
        if (ended[i] != &job[order[i]])
            fail_msg("number %d was question %d, wanted %d", i, (int)(ended[i] - job), order[i]);
        assert_decoded(&job[i], 256);
    }
    free(file.bytes);
    ki_decoders_free(d);
}

/* One client gets three of four decoders. */
static void test_the_last_decoder_is_for_others(void **state) {
    (void)state;
    pid_t process[8];
    ki_decoders *d = start(4, 1 << 30);
    hostile_file file = hostile_png(300, 0);
    ki_decode_job job[6];
    assert_int_equal(served_decoders(process, 8), 4);
    for (int i = 0; i < 4; i++) kill(process[i], SIGSTOP);
    for (int i = 0; i < 6; i++) {
        job[i] = make_job(i < 5 ? 1 : 2, &file, false);
        ki_decoders_ask(d, &job[i]);
    }
    kill(process[3], SIGCONT);
    assert_int_equal(wait_for(1, 20), 1);
    assert_ptr_equal(ended[0], &job[5]);
    assert_int_equal(wait_for(2, 0.3), 1);
    for (int i = 0; i < 3; i++) kill(process[i], SIGCONT);
    assert_int_equal(wait_for(6, 30), 6);
    for (int i = 0; i < 6; i++) assert_decoded(&job[i], 256);
    free(file.bytes);
    ki_decoders_free(d);
}

/* What does not fit beside what others have waits for it to go; what can never fit is told so. */
static void test_waiting_for_memory(void **state) {
    (void)state;
    enum { SIDE = 1000, PIXELS = 3 * SIDE * SIDE, NEEDED = 4 * SIDE * SIDE + 2 * PIXELS };
    ki_decoders *d = start(2, NEEDED + PIXELS - 1);
    hostile_file file = hostile_png(SIDE, 0), small = hostile_png(64, 0);
    ki_decode_job first = make_job(1, &file, true), second = make_job(2, &file, true),
                  third = make_job(3, &small, true), never = make_job(1, &file, true),
                  late = make_job(4, &file, true);
    ki_decoders_ask(d, &first);
    assert_int_equal(wait_for(1, 20), 1);
    assert_int_equal(ki_decoders_bytes(d), PIXELS);
    ki_decoders_ask(d, &second);
    ki_decoders_ask(d, &third); /* is not held up by it */
    assert_int_equal(wait_for(2, 20), 2);
    assert_ptr_equal(ended[1], &third);
    assert_int_equal(wait_for(3, 0.3), 2);
    never.n_held = PIXELS;
    ki_decoders_ask(d, &never);
    assert_int_equal(wait_for(3, 20), 3);
    assert_int_equal(never.status, KITH_EINVAL);
    /* Nobody waits for ever. */
    late.until = ki_seconds_now() - 1;
    ki_decoders_ask(d, &late);
    for (int i = 0; i < 200 && wait_for(4, 0.1) < 4; i++) ki_decoders_tick(d, ki_seconds_now());
    assert_int_equal(late.status, KITH_ECANCELED);
    ki_decoders_release(d, first.n_counted);
    assert_int_equal(wait_for(5, 20), 5);
    assert_decoded(&first, SIDE);
    assert_decoded(&second, SIDE);
    assert_decoded(&third, 64);
    ki_decoders_release(d, second.n_counted + third.n_counted);
    assert_int_equal(ki_decoders_bytes(d), 0);
    free(file.bytes);
    free(small.bytes);
    ki_decoders_free(d);
}

/* At the end, who waits is told, and what is under way is finished. */
static void test_the_end(void **state) {
    (void)state;
    pid_t process[4];
    ki_decoders *d = start(1, 1 << 30);
    hostile_file file = hostile_png(300, 0);
    ki_decode_job job[3];
    assert_int_equal(served_decoders(process, 4), 1);
    kill(process[0], SIGSTOP);
    for (int i = 0; i < 2; i++) {
        job[i] = make_job(1, &file, false);
        ki_decoders_ask(d, &job[i]);
    }
    ki_decoders_end(d);
    assert_int_equal(wait_for(1, 20), 1);
    assert_ptr_equal(ended[0], &job[1]);
    assert_int_equal(job[1].status, KITH_ECANCELED);
    job[2] = make_job(1, &file, false);
    ki_decoders_ask(d, &job[2]);
    assert_int_equal(job[2].status, KITH_ECANCELED);
    kill(process[0], SIGCONT);
    assert_int_equal(wait_for(3, 20), 3);
    assert_decoded(&job[0], 256);
    free(file.bytes);
    ki_decoders_free(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clients_take_turns),
        cmocka_unit_test(test_the_last_decoder_is_for_others),
        cmocka_unit_test(test_waiting_for_memory),
        cmocka_unit_test(test_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
