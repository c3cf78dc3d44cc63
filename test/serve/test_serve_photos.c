/* kith serve on a folder of photos: indexed in the background, searched meanwhile, looked at again. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/http.h"
#include "support/testing.h"

enum { N_CLASSES = 30, N_IMAGES = 20, N_ALL = N_CLASSES * N_IMAGES };

static char output[65536];
static pid_t running[2]; /* 0: none; a test that fails must not leave a server behind */

#define shell(...)                                                                        \
    do {                                                                                  \
        if (testing_run(output, sizeof output, __VA_ARGS__) != 0) fail_msg("%s", output); \
    } while (0)

static int begin(void **state) {
    (void)state;
    shell("cd %s && rm -rf * && mkdir models && " TESTING_K
          " && $K synth photos --classes %d --images %d --size 32 && "
          "$K embed --backbone convnet4 --embedding 16 --generate 2 --save models/general.safetensors",
          testing_folder(), testing_program(), N_CLASSES, N_IMAGES);
    char path[1024];
    snprintf(path, sizeof path, "%s/models", testing_folder());
    setenv("KITH_MODELS", path, 1);
    snprintf(path, sizeof path, "%s/caches", testing_folder());
    return setenv("XDG_CACHE_HOME", path, 1);
}

static int end(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        if (running[i]) kill(running[i], SIGKILL);
        running[i] = 0;
    }
    return 0;
}

static void wait_shortly(void) {
    const struct timespec moment = {.tv_nsec = 20000000};
    nanosleep(&moment, NULL);
}

static const char *said(int which) {
    char path[1024];
    snprintf(path, sizeof path, "%s/said%d", testing_folder(), which);
    FILE *file = fopen(path, "rb");
    if (!file) return "";
    output[fread(output, 1, sizeof output - 1, file)] = '\0';
    fclose(file);
    return output;
}

static void wait_until_said(int which, const char *text) {
    for (int i = 0; i < 3000 && !strstr(said(which), text); i++) wait_shortly();
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

/* Serve the folder; returns the port. A larger side of the model's input takes longer. */
static int start_sized(int which, const char *folder, const char *rescan, const char *side) {
    char name[16], path[1100];
    snprintf(name, sizeof name, "said%d", which);
    snprintf(path, sizeof path, "%s/%s", testing_folder(), name);
    unlink(path); /* what the server before it said */
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const char *program = testing_program_path();
        if (chdir(testing_folder()) != 0) _exit(99);
        const int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(fd, STDERR_FILENO);
        dup2(fd, STDOUT_FILENO);
        execl(program, program, "serve", folder, "--port", "0", "--decoders", "2", "--rescan", rescan,
              side ? "--size" : (char *)NULL, side, (char *)NULL);
        _exit(98);
    }
    running[which] = pid;
    wait_until_said(which, " at http://127.0.0.1:");
    return (int)strtol(strstr(output, "127.0.0.1:") + strlen("127.0.0.1:"), NULL, 10);
}

static int start(int which, const char *folder, const char *rescan) {
    return start_sized(which, folder, rescan, NULL);
}

static int end_of(int which) {
    int status = 0;
    assert_int_equal(waitpid(running[which], &status, 0), running[which]);
    running[which] = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* A number of /api/v1/progress; -1: null. */
static long progress(int port, const char *key) {
    char quoted[64];
    http_answer a = http_get(port, "/api/v1/progress");
    assert_int_equal(a.status, 200);
    snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    const char *at = strstr(a.body, quoted);
    assert_non_null(at);
    at += strlen(quoted);
    const long value = strncmp(at, "null", 4) == 0 ? -1 : strtol(at, NULL, 10);
    http_release(&a);
    return value;
}

static bool is_state(int port, const char *state) {
    char quoted[64];
    http_answer a = http_get(port, "/api/v1/progress");
    snprintf(quoted, sizeof quoted, "\"state\": \"%s\"", state);
    const bool is = strstr(a.body, quoted) != NULL;
    http_release(&a);
    return is;
}

static void wait_for_state(int port, const char *state) {
    for (int i = 0; i < 3000 && !is_state(port, state); i++) wait_shortly();
    if (!is_state(port, state)) fail_msg("not %s: %s", state, http_get(port, "/api/v1/progress").body);
}

/* The catalog is opened anew a second or two after a commit. */
static void wait_for_ready(int port, long n) {
    for (int i = 0; i < 3000 && progress(port, "ready") != n; i++) wait_shortly();
    assert_int_equal(progress(port, "ready"), n);
}

/* Items found by a photo of the test's. */
static long find(int port) {
    char path[1100];
    static char bytes[1 << 16];
    snprintf(path, sizeof path, "%s/photos/glyph00003/00001.png", testing_folder());
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    http_answer a =
        http_post_form(port, "/api/v1/search", "{\"images\": [{\"part\": \"f0\"}], \"k\": 5}", bytes, n);
    if (a.status != 200) fail_msg("status %d: %s", a.status, a.body);
    const char *at = strstr(a.body, "\"n_allowed\": ");
    assert_non_null(at);
    const long found = strtol(at + strlen("\"n_allowed\": "), NULL, 10);
    http_release(&a);
    return found;
}

/* Searches are answered before all is in, with what is in. */
static void test_searched_while_it_is_indexed(void **state) {
    (void)state;
    const int port = start_sized(0, "photos", "30", "112");
    long n_ready = 0, n_found_early = 0;
    for (int i = 0; i < 6000 && n_ready < N_ALL; i++) {
        n_ready = progress(port, "ready");
        if (n_ready > 0 && n_ready < N_ALL) n_found_early = find(port);
        wait_shortly();
    }
    assert_int_equal(n_ready, N_ALL);
    /* A fast machine may have indexed all before the first catalog; test_photos sees it for certain. */
    if (n_found_early > 0 && n_found_early < 96)
        fail_msg("found among %ld; wanted at least 96", n_found_early);
    if (n_found_early == 0) print_message("all were in before the first search\n");
    wait_for_state(port, "ready");
    assert_int_equal(progress(port, "photos"), N_ALL);
    assert_int_equal(progress(port, "done"), N_ALL);
    assert_int_equal(find(port), N_ALL);
    assert_holds(said(0), "kith: model: general (convnet4, 112 px, ");
    kill(running[0], SIGTERM);
    assert_int_equal(end_of(0), 0);
}

/* kill -9 in the middle: the next server goes on, and says how many are new to it. */
static void test_killed_and_started_again(void **state) {
    (void)state;
    char wanted[128];
    int port = start(0, "photos", "30");
    for (int i = 0; i < 6000 && progress(port, "ready") == 0; i++) wait_shortly();
    kill(running[0], SIGKILL);
    assert_int_equal(end_of(0), -SIGKILL);
    shell("cd %s && " TESTING_K " && $K index caches/kith/photos/*/index --info --json", testing_folder(),
          testing_program());
    const char *at = strstr(output, "\"items\": ");
    assert_non_null(at);
    const long n_before = strtol(at + strlen("\"items\": "), NULL, 10);
    assert_true(n_before >= 96);
    port = start(0, "photos", "30");
    wait_for_ready(port, N_ALL);
    wait_for_state(port, "ready");
    snprintf(wanted, sizeof wanted, "%d photos: %ld added, 0 changed", N_ALL, N_ALL - n_before);
    if (n_before < N_ALL) wait_until_said(0, wanted);
    kill(running[0], SIGTERM);
    assert_int_equal(end_of(0), 0);
}

static void test_photos_come_and_go(void **state) {
    (void)state;
    shell("cd %s && mkdir few", testing_folder());
    const int port = start(0, "few", "0.2"); /* and none at first */
    wait_for_state(port, "ready");
    assert_int_equal(progress(port, "photos"), 0);
    assert_int_equal(find(port), 0);
    shell("cp -r %s/photos/glyph00001 %s/few", testing_folder(), testing_folder());
    wait_for_ready(port, N_IMAGES);
    assert_int_equal(find(port), N_IMAGES);
    shell("rm %s/few/glyph00001/00001.png", testing_folder());
    wait_for_ready(port, N_IMAGES - 1);
    /* A folder that is gone is said, without its name, and what was in it is served. */
    shell("mv %s/few %s/away", testing_folder(), testing_folder());
    wait_for_state(port, "failing");
    http_answer a = http_get(port, "/api/v1/progress");
    assert_holds(a.body, "\"problem\": \"the folder of photos cannot be read\"");
    assert_null(strstr(a.body, testing_folder()));
    http_release(&a);
    wait_until_said(0, "the photos cannot be indexed; what is ready is served");
    assert_int_equal(find(port), N_IMAGES - 1);
    shell("mv %s/away %s/few", testing_folder(), testing_folder());
    wait_for_state(port, "ready");
    wait_until_said(0, "the photos can be indexed again");
    kill(running[0], SIGTERM);
    assert_int_equal(end_of(0), 0);
}

/* The second server serves what the first has indexed, and goes on when that has ended. */
static void test_two_servers(void **state) {
    (void)state;
    char path[2048];
    const int first = start(0, "photos", "0.2");
    wait_for_ready(first, N_ALL);
    /* Hold the writer's lock as a process does that indexes for long. */
    shell("cd %s && echo caches/kith/photos/*/writer", testing_folder());
    output[strcspn(output, "\n")] = '\0';
    snprintf(path, sizeof path, "%s/%.900s", testing_folder(), output);
    kill(running[0], SIGTERM);
    assert_int_equal(end_of(0), 0);
    const int lock = open(path, O_RDWR | O_CLOEXEC);
    assert_true(lock >= 0);
    assert_int_equal(flock(lock, LOCK_EX | LOCK_NB), 0);
    const int second = start(0, "photos", "0.2");
    wait_for_state(second, "elsewhere");
    assert_int_equal(find(second), N_ALL);
    /* So does a search on the command line, with a line that says so. */
    shell("cd %s && " TESTING_K " && $K search photos photos/glyph00001/00001.png -k 1 2>&1",
          testing_folder(), testing_program());
    assert_holds(output, "another process is indexing these photos; searching the 600 that are ready");
    close(lock);
    wait_for_state(second, "ready");
    kill(running[0], SIGTERM);
    assert_int_equal(end_of(0), 0);
}

static void test_an_index_is_ready(void **state) {
    (void)state;
    shell("cd %s && " TESTING_K " && $K index photos/glyph00001 -o p.kith", testing_folder(),
          testing_program());
    const int port = start(0, "p.kith", "30");
    assert_true(is_state(port, "ready"));
    assert_int_equal(progress(port, "ready"), N_IMAGES);
    http_answer a = http_get(port, "/api/v1/info");
    assert_holds(a.body, "\"is_indexing\": false");
    http_release(&a);
    kill(running[0], SIGTERM);
    assert_int_equal(end_of(0), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_searched_while_it_is_indexed, begin, end),
        cmocka_unit_test_setup_teardown(test_killed_and_started_again, begin, end),
        cmocka_unit_test_setup_teardown(test_photos_come_and_go, begin, end),
        cmocka_unit_test_setup_teardown(test_two_servers, begin, end),
        cmocka_unit_test_setup_teardown(test_an_index_is_ready, begin, end),
    };
    return cmocka_run_group_tests_name("serve_photos", tests, NULL, testing_tear_down);
}
