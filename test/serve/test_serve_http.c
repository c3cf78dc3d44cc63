/* The server's doors: who is let in, how much is read, how long a request may take. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support/http.h"
#include "support/served.h"
#include "support/testing.h"

static int set_up(void **state) {
    (void)state;
    served_make();
    return 0;
}

static void test_page_and_health(void **state) {
    (void)state;
    int port = 0;
    const ki_serve_options o = served_options();
    ki_server *server = served_start(&o, &port);
    http_answer a = http_get(port, "/");
    assert_int_equal(a.status, 200);
    assert_holds(a.head, "Content-Type: text/html; charset=utf-8\r\n");
    assert_holds(a.head, "Content-Security-Policy: default-src 'none'; script-src 'self'; ");
    assert_holds(a.head, "X-Content-Type-Options: nosniff\r\n");
    assert_holds(a.head, "Referrer-Policy: no-referrer\r\n");
    assert_holds(a.body, "<!DOCTYPE html>");
    /* The same page is not sent twice. */
    char header[256];
    const char *etag = strstr(a.head, "ETag: ");
    assert_non_null(etag);
    snprintf(header, sizeof header, "If-None-Match: %.*s\r\n", (int)strcspn(etag + 6, "\r"), etag + 6);
    http_release(&a);
    a = http_ask(port, "GET", "/", header, NULL, 0);
    assert_int_equal(a.status, 304);
    assert_int_equal(a.n_body, 0);
    http_release(&a);
    a = http_get(port, "/healthz");
    assert_int_equal(a.status, 200);
    assert_string_equal(a.body, "{\"status\": \"ok\"}");
    http_release(&a);
    a = http_ask(port, "HEAD", "/healthz", NULL, NULL, 0);
    assert_int_equal(a.status, 200);
    assert_int_equal(a.n_body, 0);
    http_release(&a);
    ki_server_free(server);
}

static void test_info(void **state) {
    (void)state;
    int port = 0;
    const ki_serve_options o = served_options();
    ki_server *server = served_start(&o, &port);
    http_answer a = http_get(port, "/api/v1/info");
    assert_int_equal(a.status, 200);
    assert_holds(a.head, "Content-Type: application/json\r\n");
    assert_holds(a.head, "Cache-Control: no-store\r\n");
    assert_holds(a.body, "\"items\": 16, \"dim\": 16, \"metric\": \"cosine\", \"tier\": \"exact\"");
    assert_holds(a.body, "\"can_embed\": true");
    assert_holds(a.body,
                 "\"columns\": [{\"name\": \"label\", \"type\": \"text\", \"values\": "
                 "[\"glyph00000\", \"glyph00001\", \"glyph00002\", \"glyph00003\"]}]");
    assert_holds(a.body, "\"calibration\": {\"false_match_rate\": [1, ");
    http_release(&a);
    ki_server_free(server);
}

static void test_paths(void **state) {
    (void)state;
    int port = 0;
    const ki_serve_options o = served_options();
    ki_server *server = served_start(&o, &port);
    static const char *const none[] = {"/../../etc/passwd",
                                       "/..%2f..%2fetc/passwd",
                                       "/page/../../../etc/passwd",
                                       "/page/%2e%2e/index.html",
                                       "/api/v1/items/../info",
                                       "//etc/passwd",
                                       "/api/v1/items/1/image/../../../../etc/passwd",
                                       "/api/v2/info",
                                       "/api/v1/items/%00",
                                       "/index.html"};
    for (size_t i = 0; i < N_ROWS(none); i++) {
        http_answer a = http_get(port, none[i]);
        if (a.status != 404) fail_msg("%s: status %d", none[i], a.status);
        assert_holds(a.head, "Content-Type: application/problem+json\r\n");
        http_release(&a);
    }
    assert_status(http_ask(port, "DELETE", "/api/v1/info", NULL, NULL, 0), 405);
    assert_status(http_ask(port, "PUT", "/api/v1/items/1", NULL, "x", 1), 405);
    assert_status(http_get(port, "/api/v1/search"), 405);
    assert_status(http_get(port, "/api/v1/items/16"), 404);
    ki_server_free(server);
}

static void test_foreign_hosts_and_origins(void **state) {
    (void)state;
    int port = 0;
    static const char *const names[] = {"search.example.org"};
    ki_serve_options o = served_options();
    o.names = names;
    o.n_names = 1;
    ki_server *server = served_start(&o, &port);
    static const struct {
        const char *headers;
        int status;
    } row[] = {
        {"Host: evil.example\r\n", 403},
        {"Host: localhost\r\nHost: evil.example\r\n", 403},
        {"Host: localhost.evil.example\r\n", 403},
        {"Host: search.example.org\r\n", 200},
        {"Host: 127.0.0.1:99\r\n", 200},
        {"Host: localhost:1\r\nOrigin: http://localhost:1\r\n", 200},
        {"Host: localhost:1\r\nOrigin: http://localhost:2\r\n", 403},
        {"Origin: http://evil.example\r\n", 403},
        {"Origin: null\r\n", 403},
        {"Sec-Fetch-Site: cross-site\r\n", 403},
        {"Sec-Fetch-Site: same-origin\r\n", 200},
    };
    for (size_t i = 0; i < N_ROWS(row); i++) {
        http_answer a = http_ask(port, "GET", "/api/v1/info", row[i].headers, NULL, 0);
        if (a.status != row[i].status)
            fail_msg("%s: status %d, wanted %d", row[i].headers, a.status, row[i].status);
        http_release(&a);
    }
    ki_server_free(server);
}

static void test_tokens(void **state) {
    (void)state;
    int port = 0;
    const char *path = served_tokens();
    kith_error err;
    ki_serve_options o = served_options();
    o.token_file = path;
    ki_server *server = served_start(&o, &port);
    const char *all = SERVED_TOKEN "\r\n", *some = SERVED_READ_ONLY "\r\n",
               *none = "Authorization: Bearer aaaaaaaaaaaaaaaaaaaaaaab\r\n";
    assert_status(http_get(port, "/"), 200);
    assert_status(http_get(port, "/healthz"), 200);
    http_answer a = http_get(port, "/api/v1/info");
    assert_int_equal(a.status, 401);
    assert_holds(a.head, "WWW-Authenticate: Bearer\r\n");
    http_release(&a);
    assert_status(http_ask(port, "GET", "/api/v1/info", none, NULL, 0), 401);
    assert_status(http_get(port, "/api/v1/info?token=aaaaaaaaaaaaaaaaaaaaaaaa"), 401);
    assert_status(http_ask(port, "GET", "/api/v1/info", all, NULL, 0), 200);
    assert_status(http_ask(port, "GET", "/api/v1/items/1", some, NULL, 0), 200);
    assert_status(http_ask(port, "GET", "/metrics", all, NULL, 0), 200);
    assert_status(http_ask(port, "GET", "/metrics", some, NULL, 0), 403);
    assert_status(http_ask(port, "GET", "/metrics", none, NULL, 0), 401);
    /* Another file takes effect; a bad one does not. */
    testing_write(path, "token cccccccccccccccccccccccc\n");
    assert_ok(ki_server_reload(server, &err), &err);
    assert_status(http_ask(port, "GET", "/api/v1/info", all, NULL, 0), 401);
    testing_write(path, "token short\n");
    assert_int_equal(ki_server_reload(server, &err), KITH_EFORMAT);
    assert_status(
        http_ask(port, "GET", "/api/v1/info", "Authorization: Bearer cccccccccccccccccccccccc\r\n", NULL, 0),
        200);
    ki_server_free(server);
}

/* The environment of a decoder, as a program that stands before it sees it. */
static void test_a_decoder_knows_no_password(void **state) {
    (void)state;
    int port = 0;
    char program[1200], seen[1200], script[4096];
    snprintf(program, sizeof program, "%s/decoder", testing_folder());
    snprintf(seen, sizeof seen, "%s/environment", testing_folder());
    snprintf(script, sizeof script, "#!/bin/sh\n/usr/bin/env > '%s'\nexec %s \"$@\"\n", seen,
             testing_program());
    testing_write(program, script);
    assert_int_equal(chmod(program, 0700), 0);
    assert_int_equal(setenv("PGPASSWORD", "seeecret", 1), 0);
    ki_serve_options o = served_options();
    o.program = program;
    o.n_decoders = 1;
    ki_server *server = served_start(&o, &port);
    ki_server_free(server);
    unsetenv("PGPASSWORD");
    char *text = testing_read(seen);
    if (strstr(text, "PGPASSWORD") || strstr(text, "HOME=")) fail_msg("%s", text);
    assert_holds(text, "OMP_NUM_THREADS=1\n");
    free(text);
}

/* Finding duplicates reads every picture: who may only read gets what was found, and does not start it. */
static void test_duplicates_with_a_read_only_token(void **state) {
    (void)state;
    int port = 0;
    ki_serve_options o = served_options();
    o.token_file = served_tokens();
    ki_server *server = served_start(&o, &port);
    static const char query[] = "{\"images\": [{\"id\": 1}], \"hide_duplicates\": true}",
                      some[] = SERVED_READ_ONLY "\r\nContent-Type: application/json\r\n",
                      all[] = SERVED_TOKEN "\r\n";
    http_answer a = http_ask(port, "POST", "/api/v1/search", some, query, sizeof query - 1);
    if (a.status != 403) fail_msg("status %d: %s", a.status, a.body);
    assert_holds(a.body, "the read-only token does not allow a search for duplicates");
    http_release(&a);
    assert_status(http_ask(port, "GET", "/api/v1/duplicates", all, NULL, 0), 200);
    assert_status(http_ask(port, "POST", "/api/v1/search", some, query, sizeof query - 1), 200);
    ki_server_free(server);
}

static void test_other_addresses_want_a_token(void **state) {
    (void)state;
    kith_error err;
    ki_server *server = NULL;
    ki_serve_options o = served_options();
    o.host = "0.0.0.0";
    assert_int_equal(ki_server_start(&o, &server, &err), KITH_EINVAL);
    assert_holds(err.hint, "--token-file");
    o.host = "not a name";
    assert_int_equal(ki_server_start(&o, &server, &err), KITH_EINVAL);
}

static void test_a_port_that_is_taken(void **state) {
    (void)state;
    int port = 0;
    kith_error err;
    ki_server *second = NULL;
    ki_serve_options o = served_options();
    ki_server *server = served_start(&o, &port);
    o.port = port;
    assert_int_equal(ki_server_start(&o, &second, &err), KITH_EIO);
    ki_server_free(server);
}

static void test_bodies_that_are_too_long(void **state) {
    (void)state;
    int port = 0;
    ki_serve_options o = served_options();
    o.most_body_bytes = 1000;
    ki_server *server = served_start(&o, &port);
    char *body = calloc(1, 100000);
    assert_non_null(body);
    http_answer a = http_ask(port, "POST", "/api/v1/search", NULL, body, 1001);
    assert_int_equal(a.status, 413);
    assert_holds(a.body, "1001 bytes; at most 1000");
    http_release(&a);
    assert_status(http_ask(port, "POST", "/api/v1/search", NULL, body, 1000), 400);
    /* A length that is not said beforehand. */
    const int fd = http_connect(port, NULL);
    static const char head[] =
        "POST /api/v1/search HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: "
        "chunked\r\n\r\n";
    assert_true(http_send(fd, head, sizeof head - 1));
    for (int i = 0; i < 20; i++) {
        http_send(fd, "64\r\n", 4);
        http_send(fd, body, 100);
        http_send(fd, "\r\n", 2);
    }
    http_send(fd, "0\r\n\r\n", 5);
    assert_status(http_receive(fd), 413);
    free(body);
    ki_server_free(server);
}

/* A client that sends a little now and then is cut all the same. */
static void test_slow_requests_are_cut(void **state) {
    (void)state;
    int port = 0;
    ki_serve_options o = served_options();
    o.deadline = 1;
    ki_server *server = served_start(&o, &port);
    const int head = http_connect(port, NULL), body = http_connect(port, NULL);
    static const char first[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n",
                      second[] =
                          "POST /api/v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n";
    struct timespec began, now;
    clock_gettime(CLOCK_MONOTONIC, &began);
    assert_true(http_send(head, first, sizeof first - 1));
    assert_true(http_send(body, second, sizeof second - 1));
    bool is_cut = false;
    double seconds = 0;
    while (!is_cut && seconds < 20) {
        wait_seconds(0.05);
        const int one = http_send(head, "X: y\r\n", 6), two = http_send(body, "x", 1);
        is_cut = !one && !two;
        clock_gettime(CLOCK_MONOTONIC, &now);
        seconds = (double)(now.tv_sec - began.tv_sec) + 1e-9 * (double)(now.tv_nsec - began.tv_nsec);
    }
    if (!(is_cut && seconds > 0.8 && seconds < 10)) fail_msg("cut %d after %g s", is_cut, seconds);
    close(head);
    close(body);
    assert_status(http_get(port, "/healthz"), 200);
    ki_server_free(server);
}

static void test_limits_per_address(void **state) {
    (void)state;
    int port = 0;
    static const char *const proxies[] = {"127.0.0.1"};
    ki_serve_options o = served_options();
    o.rate = 0.01;
    o.burst = 3;
    ki_server *server = served_start(&o, &port);
    for (int i = 0; i < 3; i++) assert_status(http_get(port, "/healthz"), 200);
    http_answer a = http_get(port, "/healthz");
    assert_int_equal(a.status, 429);
    assert_holds(a.head, "Retry-After: ");
    http_release(&a);
    /* What such a client says of itself does not help it. */
    assert_status(http_ask(port, "GET", "/healthz", "X-Forwarded-For: 1.2.3.4\r\n", NULL, 0), 429);
    ki_server_free(server);
    o.proxies = proxies;
    o.n_proxies = 1;
    server = served_start(&o, &port);
    for (int i = 0; i < 3; i++)
        assert_status(http_ask(port, "GET", "/healthz", "X-Forwarded-For: 1.2.3.4\r\n", NULL, 0), 200);
    assert_status(http_ask(port, "GET", "/healthz", "X-Forwarded-For: 1.2.3.4\r\n", NULL, 0), 429);
    assert_status(http_ask(port, "GET", "/healthz", "X-Forwarded-For: 1.2.3.5\r\n", NULL, 0), 200);
    ki_server_free(server);
}

static void test_connections_of_one_address(void **state) {
    (void)state;
    int port = 0, fd[4];
    ki_serve_options o = served_options();
    o.n_per_address = 3;
    ki_server *server = served_start(&o, &port);
    for (int i = 0; i < 4; i++) fd[i] = http_connect(port, "127.0.0.9");
    static const char ask[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    http_send(fd[3], ask, sizeof ask - 1);
    assert_status(http_receive(fd[3]), 0);
    http_send(fd[2], ask, sizeof ask - 1);
    assert_status(http_receive(fd[2]), 200);
    assert_status(http_get(port, "/healthz"), 200); /* from another address */
    close(fd[0]);
    close(fd[1]);
    ki_server_free(server);
}

static long open_connections(int port) {
    static const char name[] = "\nkith_connections ";
    http_answer a = http_get(port, "/metrics");
    assert_int_equal(a.status, 200);
    const char *at = strstr(a.body, name);
    assert_non_null(at);
    const long n = strtol(at + strlen(name), NULL, 10) - 1; /* this one */
    http_release(&a);
    return n;
}

/* Whoever closes a connection in the middle of a request is gone, long before the deadline. */
static void test_half_requests_that_are_closed(void **state) {
    (void)state;
    enum { N = 60 };
    static const char *const half[] = {
        "",
        "GET /api/v1/info HT",
        "GET /api/v1/info HTTP/1.1\r\nHost: loc",
        "POST /api/v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n",
        "POST /api/v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nabc",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"};
    int port = 0;
    const ki_serve_options o = served_options();
    ki_server *server = served_start(&o, &port);
    for (int i = 0; i < N; i++) {
        const char *text = half[i % (int)N_ROWS(half)];
        const int fd = http_connect(port, "127.0.0.9");
        assert_true(http_send(fd, text, strlen(text)));
        close(fd);
    }
    long n_open = N;
    for (int i = 0; i < 20 && n_open > 0; i++) {
        wait_seconds(0.1);
        n_open = open_connections(port);
    }
    if (n_open > 0) fail_msg("%ld of %d are open", n_open, N);
    ki_server_free(server);
}

static void *ask_slowly(void *context) {
    size_t n = 0;
    char *photo = served_photo("glyph00001/00002.png", &n);
    http_answer *answer = malloc(sizeof *answer);
    if (!answer) abort();
    *answer =
        http_post_form(*(int *)context, "/api/v1/search", "{\"images\": [{\"part\": \"f0\"}]}", photo, n);
    free(photo);
    return answer;
}

static int joined_status(pthread_t thread) {
    void *result = NULL;
    pthread_join(thread, &result);
    http_answer *answer = result;
    const int status = answer->status;
    http_release(answer);
    free(answer);
    return status;
}

/* With its one place taken, the server says when to come back, and what needs no work is answered all the same. */
static void test_a_full_queue(void **state) {
    (void)state;
    int port = 0;
    pid_t decoder[4];
    pthread_t thread;
    ki_serve_options o = served_options();
    o.n_queue = 1;
    o.n_decoders = 1;
    ki_server *server = served_start(&o, &port);
    assert_int_equal(served_decoders(decoder, 4), 1);
    kill(decoder[0], SIGSTOP);
    pthread_create(&thread, NULL, ask_slowly, &port);
    http_answer a = {0};
    for (int i = 0; i < 500 && a.status != 503; i++) { /* until the other request is in work */
        http_release(&a);
        wait_seconds(0.01);
        a = http_get(port, "/api/v1/info");
    }
    assert_int_equal(a.status, 503);
    assert_holds(a.head, "Retry-After: 1\r\n");
    http_release(&a);
    assert_status(http_get(port, "/healthz"), 200);
    kill(decoder[0], SIGCONT);
    assert_int_equal(joined_status(thread), 200);
    assert_status(http_get(port, "/api/v1/info"), 200);
    ki_server_free(server);
}

/* A client that has said all it wants to say, and says so, still gets its answer. */
static void test_a_connection_that_is_half_closed(void **state) {
    (void)state;
    int port = 0;
    pid_t decoder[4];
    ki_serve_options o = served_options();
    o.n_decoders = 1;
    ki_server *server = served_start(&o, &port);
    assert_int_equal(served_decoders(decoder, 4), 1);
    kill(decoder[0], SIGSTOP);
    const int fd = http_connect(port, NULL);
    static const char ask[] =
        "GET /api/v1/items/1/thumb HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert_true(http_send(fd, ask, sizeof ask - 1));
    shutdown(fd, SHUT_WR);
    wait_seconds(0.7); /* the server has looked several times */
    kill(decoder[0], SIGCONT);
    assert_status(http_receive(fd), 200);
    ki_server_free(server);
}

/* What is under way is answered; nobody new is let in. */
static void test_draining(void **state) {
    (void)state;
    int port = 0;
    pid_t decoder[4];
    pthread_t thread;
    ki_serve_options o = served_options();
    o.n_decoders = 1;
    ki_server *server = served_start(&o, &port);
    assert_int_equal(served_decoders(decoder, 4), 1);
    kill(decoder[0], SIGSTOP);
    pthread_create(&thread, NULL, ask_slowly, &port);
    wait_seconds(0.5);
    char command[128], output[64];
    snprintf(command, sizeof command, "(sleep 1; kill -CONT %d) >/dev/null 2>&1 &", (int)decoder[0]);
    testing_run(output, sizeof output, "%s", command);
    ki_server_drain(server);
    assert_int_equal(http_connect(port, NULL), -1);
    assert_int_equal(joined_status(thread), 200);
    ki_server_free(server);
}

static void test_the_access_log(void **state) {
    (void)state;
    int port = 0, ends[2];
    assert_int_equal(pipe(ends), 0);
    ki_serve_options o = served_options();
    o.access_log = ends[1];
    ki_server *server = served_start(&o, &port);
    assert_status(http_ask(port, "POST", "/api/v1/search?secret", "Content-Type: application/json\r\n",
                           "{\"images\": [{\"id\": 1}], \"where\": \"label = hidden\"}", 50),
                  200);
    assert_status(http_get(port, "/\"x\\"), 404);
    ki_server_free(server);
    close(ends[1]);
    char lines[4096];
    const ssize_t n = read(ends[0], lines, sizeof lines - 1);
    assert_true(n > 0);
    lines[n] = '\0';
    close(ends[0]);
    assert_holds(
        lines,
        "\"address\": \"127.0.0.1\", \"method\": \"POST\", \"path\": \"/api/v1/search\", \"status\": "
        "200, \"received\": 50, \"sent\": ");
    assert_holds(lines, "\"path\": \"/\\\"x\\\\\", \"status\": 404");
    if (strstr(lines, "secret") || strstr(lines, "hidden"))
        fail_msg("what was asked is in the log: %s", lines);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page_and_health),
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_foreign_hosts_and_origins),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_duplicates_with_a_read_only_token),
        cmocka_unit_test(test_a_decoder_knows_no_password),
        cmocka_unit_test(test_other_addresses_want_a_token),
        cmocka_unit_test(test_a_port_that_is_taken),
        cmocka_unit_test(test_bodies_that_are_too_long),
        cmocka_unit_test(test_slow_requests_are_cut),
        cmocka_unit_test(test_limits_per_address),
        cmocka_unit_test(test_connections_of_one_address),
        cmocka_unit_test(test_half_requests_that_are_closed),
        cmocka_unit_test(test_a_connection_that_is_half_closed),
        cmocka_unit_test(test_a_full_queue),
        cmocka_unit_test(test_draining),
        cmocka_unit_test(test_the_access_log),
    };
    return cmocka_run_group_tests(tests, set_up, testing_tear_down);
}
