/* kith serve as it is started by a user or a service: what it says, signals, its end. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/http.h"
#include "support/served.h"
#include "support/testing.h"

static char output[8192];
static pid_t running; /* 0: none; a test that fails must not leave a server behind */

static int set_up(void **state) {
    (void)state;
    served_make();
    return 0;
}

static int tear_down(void **state) {
    if (running) kill(running, SIGKILL);
    return testing_tear_down(state);
}

static void wait_shortly(void) {
    const struct timespec moment = {.tv_nsec = 20000000};
    nanosleep(&moment, NULL);
}

/* What the server has said so far. */
static const char *said(void) {
    char path[1024];
    snprintf(path, sizeof path, "%s/said", testing_folder());
    FILE *file = fopen(path, "rb");
    if (!file) return "";
    output[fread(output, 1, sizeof output - 1, file)] = '\0';
    fclose(file);
    return output;
}

static void wait_until_said(const char *text) {
    for (int i = 0; i < 1000 && !strstr(said(), text); i++) wait_shortly();
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

/* Start it in the test's folder with arguments after the index; returns its process, and the port when it listens. */
static pid_t start(const char *argument, const char *value, int *ret_port) {
    char path[1024];
    snprintf(path, sizeof path, "%s/said", testing_folder());
    unlink(path); /* what the server before it said */
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const char *program = testing_program_path();
        if (chdir(testing_folder()) != 0) _exit(99);
        const int fd = open("said", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(fd, STDERR_FILENO);
        dup2(fd, STDOUT_FILENO);
        execl(program, program, "serve", "p.kith", "--port", "0", "--decoders", "1", argument, value,
              (char *)NULL);
        _exit(98);
    }
    running = pid;
    wait_until_said("serving p.kith at http://127.0.0.1:");
    const char *colon = strstr(output, "127.0.0.1:");
    *ret_port = (int)strtol(colon + strlen("127.0.0.1:"), NULL, 10);
    return pid;
}

static int end_of(pid_t pid) {
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    running = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void test_signals(void **state) {
    (void)state;
    int port = 0;
    const char *path = served_tokens();
    const pid_t pid = start("--token-file", "tokens", &port);
    assert_status(http_get(port, "/api/v1/info"), 401);
    assert_status(http_ask(port, "GET", "/api/v1/info", SERVED_TOKEN "\r\n", NULL, 0), 200);
    testing_write(path, "token cccccccccccccccccccccccc\n");
    kill(pid, SIGHUP);
    wait_until_said("the tokens were read again");
    assert_status(
        http_ask(port, "GET", "/api/v1/info", "Authorization: Bearer cccccccccccccccccccccccc\r\n", NULL, 0),
        200);
    testing_write(path, "nonsense\n");
    kill(pid, SIGHUP);
    wait_until_said("the tokens stay as they were");
    assert_status(
        http_ask(port, "GET", "/api/v1/info", "Authorization: Bearer cccccccccccccccccccccccc\r\n", NULL, 0),
        200);
    kill(pid, SIGTERM);
    assert_int_equal(end_of(pid), 0);
    wait_until_said("finishing what is under way");
}

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int begin_upload(int port) {
    static const char head[] =
        "POST /api/v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{";
    const int fd = http_connect(port, NULL);
    assert_true(http_send(fd, head, sizeof head - 1));
    http_answer a = http_get(port, "/healthz"); /* the other one was read before */
    assert_int_equal(a.status, 200);
    http_release(&a);
    return fd;
}

/* An upload that has stopped is not waited for as long as a request may take. */
static void test_a_stalled_upload_at_the_end(void **state) {
    (void)state;
    int port = 0;
    const pid_t pid = start("--deadline", "60", &port);
    const int fd = begin_upload(port);
    const double began = seconds_now();
    kill(pid, SIGTERM);
    assert_int_equal(end_of(pid), 0);
    const double seconds = seconds_now() - began;
    if (seconds > 10) fail_msg("it took %g s to end", seconds);
    close(fd);
}

/* While it waits for an upload that goes on, a question to read the tokens again is none to end at once. */
static void test_hangup_at_the_end(void **state) {
    (void)state;
    int port = 0;
    const pid_t pid = start("--deadline", "60", &port);
    const int fd = begin_upload(port);
    kill(pid, SIGTERM);
    wait_until_said("finishing what is under way");
    kill(pid, SIGHUP);
    for (int i = 0; i < 999; i++) {
        if (i % 50 == 0) wait_shortly();
        if (!http_send(fd, "x", 1)) break;
    }
    http_answer a = http_receive(fd);
    if (a.status != 400) fail_msg("status %d: it was cut", a.status);
    http_release(&a);
    assert_int_equal(end_of(pid), 0);
}

static int count(const char *text, const char *part) {
    int n = 0;
    for (; (text = strstr(text, part)); text += strlen(part)) n++;
    return n;
}

/* The disk of the index is away for some seconds. */
static void test_a_missing_index(void **state) {
    (void)state;
    int port = 0;
    char here[1100], there[1100];
    snprintf(here, sizeof here, "%s/p.kith", testing_folder());
    snprintf(there, sizeof there, "%s/away.kith", testing_folder());
    const pid_t pid = start("--decoders", "1", &port);
    assert_int_equal(rename(here, there), 0);
    wait_until_said("the index cannot be read");
    for (int i = 0; i < 175; i++) wait_shortly(); /* it is looked at every second */
    const int n = count(said(), "the index cannot be read");
    assert_int_equal(rename(there, here), 0);
    if (n != 1) fail_msg("%d lines: %s", n, output);
    wait_until_said("the index can be read again");
    kill(pid, SIGTERM);
    assert_int_equal(end_of(pid), 0);
}

/* Bytes that cannot be in a line are written so that they can, and the line is there. */
static void test_the_log_of_odd_paths(void **state) {
    (void)state;
    int port = 0;
    char path[1024], request[800];
    snprintf(path, sizeof path, "%s/access", testing_folder());
    const pid_t pid = start("--access-log", "access", &port);
    int n = snprintf(request, sizeof request,
                     "GET /\x01\x02\"\xff\x1b[2J HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    int fd = http_connect(port, NULL);
    assert_true(http_send(fd, request, (size_t)n));
    assert_status(http_receive(fd), 404);
    n = snprintf(request, sizeof request,
                 "GET /%0600d HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 0);
    memset(request + 5, 1, 600);
    fd = http_connect(port, NULL);
    assert_true(http_send(fd, request, (size_t)n));
    assert_status(http_receive(fd), 404);
    kill(pid, SIGTERM);
    assert_int_equal(end_of(pid), 0);
    char *log = testing_read(path);
    if (count(log, "\n") != 2) fail_msg("%d lines: %s", count(log, "\n"), log);
    if (!strstr(log, "\"path\": \"/%01%02\\\"%FF%1B[2J\", \"status\": 404")) fail_msg("%s", log);
    if (!strstr(log, "\"path\": \"/%01%01%01%01")) fail_msg("%s", log);
    free(log);
}

/* A decoder does not outlive a server that is killed. */
static void test_killed(void **state) {
    (void)state;
    int port = 0;
    char line[64];
    const pid_t pid = start("--access-log", "-", &port);
    testing_run(line, sizeof line, "ps -o pid= --ppid %d", (int)pid);
    const pid_t decoder = (pid_t)strtol(line, NULL, 10);
    if (decoder <= 0) fail_msg("no decoder of %d: %s", (int)pid, line);
    assert_int_equal(kill(decoder, 0), 0);
    kill(pid, SIGKILL);
    assert_int_equal(end_of(pid), -SIGKILL);
    bool is_there = true;
    for (int i = 0; i < 1000 && is_there; i++) {
        wait_shortly();
        testing_run(line, sizeof line, "ps -o stat= -p %d | grep -v Z || true", (int)decoder);
        is_there = line[0] != '\0';
    }
    if (is_there) fail_msg("decoder %d is left", (int)decoder);
}

/* The index's model was moved: the server says so, and by which option it is named. */
static void test_a_missing_model(void **state) {
    (void)state;
    int port = 0;
    char folder[1024], here[1100], there[1100];
    snprintf(folder, sizeof folder, "%s", testing_folder());
    snprintf(here, sizeof here, "%s/m.safetensors", folder);
    snprintf(there, sizeof there, "%s/moved.safetensors", folder);
    assert_int_equal(rename(here, there), 0);
    pid_t pid = start("--decoders", "1", &port);
    wait_until_said("the index's model cannot be opened, so images cannot be searched with: ");
    wait_until_said("/m.safetensors");
    wait_until_said("--model");
    http_answer a = http_get(port, "/api/v1/info");
    if (!strstr(a.body, "/m.safetensors\", \"can_embed\": false") || strstr(a.body, folder))
        fail_msg("%s", a.body);
    http_release(&a);
    /* Nor does a search with an image name the folder. */
    a = http_post_form(port, "/api/v1/search", "{\"images\": [{\"part\": \"f0\"}]}", "x", 1);
    assert_int_equal(a.status, 400);
    if (!strstr(a.body, "--model") || strstr(a.body, folder)) fail_msg("%s", a.body);
    http_release(&a);
    kill(pid, SIGTERM);
    assert_int_equal(end_of(pid), 0);
    pid = start("--model", "moved.safetensors", &port);
    a = http_get(port, "/api/v1/info");
    if (!strstr(a.body, "\"missing_model\": null, \"can_embed\": true")) fail_msg("%s", a.body);
    http_release(&a);
    kill(pid, SIGTERM);
    assert_int_equal(end_of(pid), 0);
    assert_int_equal(rename(there, here), 0);
}

static void test_misuse(void **state) {
    (void)state;
    static const struct {
        const char *arguments;
        int status;
        const char *why;
    } row[] = {
        {"", 2, "INDEX"},
        {"none.kith --port 0", 1, "none.kith"},
        {"p.kith --port 70000", 2, "port"},
        {"p.kith --host 0.0.0.0 --port 0", 1, "(name a file of tokens: --token-file F (docs/serving.md))"},
        {"p.kith --model none.safetensors --port 0", 1, "none.safetensors"},
        {"p.kith --token-file none --port 0", 1, "none cannot be read"},
        {"p.kith --trusted-proxy 10.0.0.0/99 --port 0", 1, "10.0.0.0/99"},
    };
    for (size_t i = 0; i < N_ROWS(row); i++) {
        const int status = testing_run(output, sizeof output, "cd %s && timeout 20 %s serve %s",
                                       testing_folder(), testing_program(), row[i].arguments);
        if (status != row[i].status) fail_msg("%s: status %d: %s", row[i].arguments, status, output);
        if (!strstr(output, row[i].why))
            fail_msg("%s: no '%s' in '%s'", row[i].arguments, row[i].why, output);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_a_stalled_upload_at_the_end),
        cmocka_unit_test(test_hangup_at_the_end),
        cmocka_unit_test(test_a_missing_index),
        cmocka_unit_test(test_the_log_of_odd_paths),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_a_missing_model),
        cmocka_unit_test(test_misuse),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
