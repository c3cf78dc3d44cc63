/* Nothing is lost: stopped, killed, out of disk, and the run still ends in the same bits. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "base/sanitizer.h"
#include "train/whole.h"

static char output[TINY_OUTPUT];

static void test_stopped_anywhere(void **state) {
    (void)state;
    static const int64_t stops[] = {0, 1, 4, 7, 10, 29, 30};
    make_whole();
    for (size_t i = 0; i < N_ROWS(stops); i++) {
        char out[32];
        kith_error err;
        snprintf(out, sizeof out, "stopped-%d", (int)stops[i]);
        const kith_status status = train(out, false, (stopper){.stop_at = stops[i]}, NULL, &err);
        if (stops[i] < 30) assert_int_equal(status, KITH_ECANCELED);
        assert_ok(train(out, true, never, NULL, &err), &err);
        assert_same_end("whole", out);
    }
}

static void test_the_log_goes_on_where_the_checkpoint_is(void **state) {
    (void)state;
    kith_error err;
    make_whole();
    assert_int_equal(train("log", false, (stopper){.stop_at = 20}, NULL, &err), KITH_ECANCELED);
    /* Lines of steps that were lost with the process. */
    FILE *log = fopen(strcat(strcpy(output, path_of("log")), "/log.jsonl"), "a");
    fputs("{\"kind\":\"step\",\"step\":21}\n{\"kind\":\"st", log);
    fclose(log);
    assert_ok(train("log", true, never, NULL, &err), &err);
    assert_same_log("whole", "log");
}

/* An evaluation that was stopped half way is made again, and logs its splits once. */
static void test_stopped_inside_an_evaluation(void **state) {
    (void)state;
    static const struct {
        const char *out;
        stopper at;
        int n_lines; /* of evaluations when it has stopped */
    } rows[] = {{"inside-0", {.stop_at = 0, .inside = "seen"}, 0},
                {"inside-0-test", {.stop_at = 0, .inside = "test"}, 0},
                {"inside-10", {.stop_at = 10, .inside = "seen"}, 3}};
    make_whole();
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err;
        assert_int_equal(train(rows[i].out, false, rows[i].at, NULL, &err), KITH_ECANCELED);
        testing_run(output, sizeof output, "grep -c '\"eval\"' %s/log.jsonl", path_of(rows[i].out));
        assert_int_equal(rows[i].n_lines, atoi(output));
        assert_ok(train(rows[i].out, true, never, NULL, &err), &err);
        assert_same_end("whole", rows[i].out);
        assert_same_log("whole", rows[i].out);
    }
}

static void test_a_finished_run_is_not_run_again(void **state) {
    (void)state;
    kith_error err;
    struct stat before, after;
    char path[4096];
    make_whole();
    snprintf(path, sizeof path, "%s/result.json", path_of("whole"));
    assert_int_equal(0, stat(path, &before));
    assert_ok(train("whole", true, never, NULL, &err), &err);
    assert_int_equal(0, stat(path, &after));
    assert_true(before.st_ino == after.st_ino);
}

/* Several views of an image in a batch: other numbers than without, and the same after a stop. */
static void test_views_go_on(void **state) {
    (void)state;
    kith_error err;
    assert_ok(train("views", false, never, "batch.views=2", &err), &err);
    assert_int_equal(train("views-stopped", false, (stopper){.stop_at = 17}, "batch.views=2", &err),
                     KITH_ECANCELED);
    assert_ok(train("views-stopped", true, never, "batch.views=2", &err), &err);
    assert_same_end("views", "views-stopped");
    make_whole();
    assert_int_not_equal(0,
                         testing_run(output, sizeof output, "cmp %s/model.safetensors %s/model.safetensors",
                                     path_of("whole"), path_of("views")));
    testing_run(output, sizeof output, "grep -o '\"n_pos\": [0-9]*' %s/log.jsonl | tail -1",
                path_of("views"));
    assert_string_equal(output, "\"n_pos\": 36\n"); /* 3 classes of 4 views: 3 * 4 * 3 */
}

/* ---- processes ---- */

/* With stdout and stderr going to `fd`. */
static pid_t start_to(int fd, const char *out, const char *set, const char *more) {
    const char *recipe = tiny_make();
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) return pid;
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    const char *arguments[] = {testing_program_path(), "train", recipe, "--out", path_of(out),
                               "--no-report",          "--set", set,    more,    NULL};
    execv(arguments[0], (char *const *)(void *)arguments);
    _exit(127);
}

static pid_t start(const char *out, bool resume, const char *set) {
    const int null = open("/dev/null", O_WRONLY);
    const pid_t pid = start_to(null, out, set ? set : "seed=0", resume ? "--resume" : NULL);
    close(null);
    return pid;
}

static int finish(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void sleep_ms(double ms) {
    const int64_t us = (int64_t)(1e3 * ms);
    const struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

static bool is_there(const char *out, const char *name) {
    char path[4096];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", path_of(out), name);
    return stat(path, &info) == 0;
}

/* Twenty SIGKILLs at random moments, from before the first step to the writing of the result. */
static void test_killed_twenty_times(void **state) {
    (void)state;
    make_whole();
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    assert_int_equal(0, finish(start("timed", false, NULL)));
    clock_gettime(CLOCK_MONOTONIC, &end);
    const double whole_ms =
        1e3 * (double)(end.tv_sec - begin.tv_sec) + 1e-6 * (double)(end.tv_nsec - begin.tv_nsec);
    /* The moments differ from run to run: the seed is the clock, and is printed when it fails. */
    const uint64_t seed = (uint64_t)end.tv_nsec;
    ki_rng rng = ki_rng_at(seed, KI_RNG_TEST, 0, 0);
    int n_killed = 0;
    for (int i = 0; i < 20; i++) {
        const pid_t pid = start("killed", true, NULL);
        sleep_ms(whole_ms * ki_rng_double(&rng));
        kill(pid, SIGKILL);
        const int status = finish(pid);
        n_killed += status == 128 + SIGKILL;
        if (status != 0 && status != 128 + SIGKILL)
            fail_msg("seed %llu: status %d", (unsigned long long)seed, status);
        /* Done already: from the beginning once more. */
        if (is_there("killed", "result.json"))
            testing_run(output, sizeof output, "rm -r %s", path_of("killed"));
    }
    if (n_killed < 5) fail_msg("only %d of 20 runs were killed in time", n_killed);
    assert_int_equal(0, finish(start("killed", true, NULL)));
    assert_same_end("whole", "killed");
    assert_same_log("whole", "killed");
    /* Nothing half-written is left. */
    assert_int_equal(1, testing_run(output, sizeof output, "ls %s %s/checkpoints | grep tmp-",
                                    path_of("killed"), path_of("killed")));
}

/* What a killed process leaves half-written goes, wherever in the run folder it lies. */
static void test_half_written_files_go(void **state) {
    (void)state;
    kith_error err;
    make_whole();
    assert_int_equal(train("half", false, (stopper){.stop_at = 7}, NULL, &err), KITH_ECANCELED);
    assert_int_equal(0,
                     testing_run(output, sizeof output,
                                 "cd %s && mkdir test && touch model.safetensors.tmp-1-0 "
                                 "checkpoints/step-00000008.safetensors.tmp-1-0 test/embedding.npy.tmp-1-0",
                                 path_of("half")));
    assert_ok(train("half", true, never, NULL, &err), &err);
    testing_run(output, sizeof output, "cd %s && find . -name '*.tmp-*'", path_of("half"));
    assert_string_equal(output, "");
}

static void test_signals_finish_the_step_and_save(void **state) {
    (void)state;
    static const struct {
        int signal;
        const char *out;
    } rows[] = {{SIGINT, "int"}, {SIGTERM, "term"}, {SIGHUP, "hup"}, {SIGPIPE, "pipe"}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        const int status = testing_run(output, sizeof output,
                                       "%s train %s --out %s --no-report -s optim.steps=1000000 & pid=$!; "
                                       "while ! ls %s/checkpoints 2>&1 | grep -q step-; do sleep 0.02; done; "
                                       "kill -%d $pid; wait $pid",
                                       testing_program(), tiny_make(), path_of(rows[i].out),
                                       path_of(rows[i].out), rows[i].signal);
        if (status != 128 + rows[i].signal) fail_msg("status %d: %s", status, output);
        if (!strstr(output, "resume it with: kith train ") || !strstr(output, "--resume"))
            fail_msg("no word of how to go on: %s", output);
        const int64_t saved = kith_train_last_checkpoint(path_of(rows[i].out));
        char wanted[64];
        snprintf(wanted, sizeof wanted, "at step %lld of", (long long)saved);
        if (!strstr(output, wanted)) fail_msg("the last checkpoint is %lld: %s", (long long)saved, output);
    }
}

/* … in words that can be typed. */
static void test_how_to_go_on_with_an_odd_folder(void **state) {
    (void)state;
    char wanted[4300];
    const int status =
        testing_run(output, sizeof output,
                    "%s train %s --out '%s' --no-report -s optim.steps=1000000 & pid=$!; "
                    "while ! ls '%s/checkpoints' 2>&1 | grep -q step-; do sleep 0.02; done; "
                    "kill -TERM $pid; wait $pid",
                    testing_program(), tiny_make(), path_of("odd & run"), path_of("odd & run"));
    if (status != 128 + SIGTERM) fail_msg("status %d: %s", status, output);
    snprintf(wanted, sizeof wanted, "resume it with: kith train '%s' --resume", path_of("odd & run"));
    if (!strstr(output, wanted)) fail_msg("no '%s' in: %s", wanted, output);
}

static void test_a_second_signal_stops_at_once(void **state) {
    (void)state;
    /* A step of a million batches: nobody waits for its end. */
    const pid_t pid = start("twice", false, "optim.accumulate=1000000");
    for (int i = 0; i < 1000 && !is_there("twice", "best.safetensors"); i++) sleep_ms(10);
    sleep_ms(50);
    kill(pid, SIGINT);
    sleep_ms(100);
    assert_int_equal(0, waitpid(pid, NULL, WNOHANG));
    kill(pid, SIGINT);
    assert_int_equal(finish(pid), 130);
}

/* The run goes on to the end from what was left, as if nothing had been. */
static void check_saved(const char *out) {
    kith_error err;
    make_whole();
    const int64_t saved = kith_train_last_checkpoint(path_of(out));
    if (saved < 0) fail_msg("%s: the last checkpoint is %lld: %s", out, (long long)saved, output);
    assert_ok(train(out, true, never, NULL, &err), &err);
    assert_same_end("whole", out);
    assert_same_log("whole", out);
}

/* A terminal that closes may send it more than once; a service manager sends it after SIGTERM. Two that wait
 * together come in any order, so the run may name either. */
static void test_hanging_up_does_not_hurry(void **state) {
    (void)state;
    static const struct {
        const char *out;
        int signals[2];
    } rows[] = {{"hup-hup", {SIGHUP, SIGHUP}}, {"term-hup", {SIGTERM, SIGHUP}}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        const pid_t pid = start(rows[i].out, false, "checkpoint.every=1");
        while (!is_there(rows[i].out, "checkpoints/step-00000001.safetensors")) sleep_ms(1);
        for (int k = 0; k < 2; k++) kill(pid, rows[i].signals[k]);
        const int status = finish(pid);
        if (status != 128 + rows[i].signals[0] && status != 128 + rows[i].signals[1])
            fail_msg("%s: exit status %d; wanted 128 and one of %d, %d", rows[i].out, status,
                     rows[i].signals[0], rows[i].signals[1]);
        check_saved(rows[i].out);
    }
}

/* Nobody reads the lines: the first one is a SIGPIPE, and so are those after it. */
static void test_a_reader_that_is_gone(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(0, pipe(ends));
    close(ends[0]);
    const pid_t pid = start_to(ends[1], "reader", "checkpoint.every=1000", NULL);
    close(ends[1]);
    assert_int_equal(finish(pid), 128 + SIGPIPE);
    check_saved("reader");
}

/* A quiet run has only its result to tell. It is there, whoever wants to hear it or not. */
static void test_a_result_for_nobody(void **state) {
    (void)state;
    int ends[2];
    make_whole();
    assert_int_equal(0, pipe(ends));
    close(ends[0]);
    const pid_t pid = start_to(ends[1], "nobody", "seed=0", "-q");
    close(ends[1]);
    assert_int_equal(finish(pid), 128 + SIGPIPE);
    assert_true(is_there("nobody", "result.json"));
    assert_same_end("whole", "nobody");
}

/* nohup and the like: what the parent ignores is none of ours. */
static void test_ignored_signals_stay_ignored(void **state) {
    (void)state;
    const int status = testing_run(
        output, sizeof output,
        "trap '' HUP; %s train %s --out %s --no-report -q & pid=$!; "
        "while ! ls %s/checkpoints 2>&1 | grep -q step-; do sleep 0.02; done; kill -HUP $pid; wait $pid",
        testing_program(), tiny_make(), path_of("nohup"), path_of("nohup"));
    if (status != 0) fail_msg("status %d: %s", status, output);
    make_whole();
    tiny_assert_same("whole", "nohup", "model.safetensors");
}

/* Without standard error nothing is written in its place. */
static void test_closed_streams(void **state) {
    (void)state;
    make_whole();
    const int status = testing_run(output, sizeof output, "%s train %s --out %s --no-report 2>&- > %s",
                                   testing_program(), tiny_make(), path_of("closed"), path_of("closed.txt"));
    if (status != 0) fail_msg("status %d: %s", status, output);
    tiny_assert_same("whole", "closed", "model.safetensors");
    assert_same_log("whole", "closed");
    char *lock = tiny_read("closed", "lock");
    if (strchr(lock, '\n') != lock + strlen(lock) - 1) fail_msg("the lock holds: %s", lock);
    free(lock);
}

/* ---- disks and files ---- */

static void check_line(int status, const char *wanted) {
    if (status != 1 || !strstr(output, wanted))
        fail_msg("status %d: %s; wanted '%s'", status, output, wanted);
    if (tiny_count_lines(output) != 1) fail_msg("%d lines; wanted one: %s", tiny_count_lines(output), output);
}

static void test_a_full_disk(void **state) {
    (void)state;
    if (KI_TSAN) skip(); /* it maps files of its own, which the limit cuts short: nothing starts */
    kith_error err;
    make_whole();
    assert_int_equal(train("full", false, (stopper){.stop_at = 9}, NULL, &err), KITH_ECANCELED);
    /* Files of at most 20 kB: the log fits, a checkpoint does not. */
    const int status =
        testing_run(output, sizeof output, "ulimit -f 40; exec %s train %s --out %s --resume -q --no-report",
                    testing_program(), tiny_make(), path_of("full"));
    check_line(status, "cannot write");
    assert_true(is_there("full", "checkpoints/step-00000009.safetensors"));
    assert_int_equal(1, testing_run(output, sizeof output, "ls %s/checkpoints | grep tmp-", path_of("full")));
    assert_ok(train("full", true, never, NULL, &err), &err);
    assert_same_end("whole", "full");
}

static void test_a_folder_that_becomes_read_only(void **state) {
    (void)state;
    kith_error err;
    char folder[4096];
    make_whole();
    testing_run(output, sizeof output, "mkdir %s; chmod 777 %s; chmod 755 %s", path_of("readonly"),
                path_of("readonly"), testing_folder());
    snprintf(folder, sizeof folder, "%s/checkpoints", path_of("readonly"));
    const pid_t pid = fork();
    if (pid == 0) {
        /* Root may write anywhere; nobody may not. */
        if (getuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(77);
        const kith_status status =
            train("readonly", false, (stopper){.stop_at = 6, .chmod_at_stop = folder}, NULL, &err);
        if (status == KITH_EIO && strstr(err.message, "cannot write") && !strchr(err.message, '\n')) _exit(0);
        fprintf(stderr, "%s\n", err.message);
        _exit(1);
    }
    assert_int_equal(0, finish(pid));
    assert_true(is_there("readonly", "checkpoints/step-00000004.safetensors"));
    testing_run(output, sizeof output, "chmod 777 %s", folder);
    assert_ok(train("readonly", true, never, NULL, &err), &err);
    assert_same_end("whole", "readonly");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stopped_anywhere),
        cmocka_unit_test(test_the_log_goes_on_where_the_checkpoint_is),
        cmocka_unit_test(test_stopped_inside_an_evaluation),
        cmocka_unit_test(test_views_go_on),
        cmocka_unit_test(test_a_finished_run_is_not_run_again),
        cmocka_unit_test(test_killed_twenty_times),
        cmocka_unit_test(test_half_written_files_go),
        cmocka_unit_test(test_signals_finish_the_step_and_save),
        cmocka_unit_test(test_how_to_go_on_with_an_odd_folder),
        cmocka_unit_test(test_a_second_signal_stops_at_once),
        cmocka_unit_test(test_hanging_up_does_not_hurry),
        cmocka_unit_test(test_a_reader_that_is_gone),
        cmocka_unit_test(test_a_result_for_nobody),
        cmocka_unit_test(test_ignored_signals_stay_ignored),
        cmocka_unit_test(test_closed_streams),
        cmocka_unit_test(test_a_full_disk),
        cmocka_unit_test(test_a_folder_that_becomes_read_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
