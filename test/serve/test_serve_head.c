/* Heads of requests as no library sends them: several lines of one header, two lengths, NULs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <microhttpd.h>

#include "support/http.h"
#include "support/served.h"
#include "support/testing.h"

static int set_up(void **state) {
    (void)state;
    served_make();
    return 0;
}

/* Bytes as they are; the server must end the connection by itself. */
static http_answer send_raw(int port, const char *bytes, size_t n) {
    const int fd = http_connect(port, NULL);
    assert_true(http_send(fd, bytes, n));
    return http_receive(fd);
}

typedef struct raw_request {
    const char *bytes;
    size_t n;
    int status;
} raw_request;
#define RAW(text, status) \
    { text, sizeof(text) - 1, status }
/* 400, or, by libmicrohttpd 1 itself, an end without an answer. */
enum { REFUSED = 1 };
#define END "Connection: close\r\n\r\n"

static void assert_rows(int port, const raw_request *row, size_t n) {
    for (size_t i = 0; i < n; i++) {
        http_answer a = send_raw(port, row[i].bytes, row[i].n);
        const bool is_ended = row[i].status == REFUSED && a.status == 0 && MHD_VERSION >= 0x01000000;
        if (a.status != (row[i].status == REFUSED ? 400 : row[i].status) && !is_ended)
            fail_msg("row %zu: status %d, wanted %d: %s", i, a.status, row[i].status, a.body);
        http_release(&a);
    }
}

/* What begins behind a request that can be read in two ways is not taken for another one. */
static void test_lengths(void **state) {
    (void)state;
    int port = 0;
    const ki_serve_options o = served_options();
    ki_server *server = served_start(&o, &port);
#define POST "POST /api/v1/search HTTP/1.1\r\nHost: localhost\r\n"
#define INNER "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    static const raw_request row[] = {
        RAW(POST "Content-Length: 4\r\nContent-Length: 47\r\n\r\nabcd" INNER, 400),
        RAW(POST "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" INNER, 400),
        RAW(POST "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" INNER, 400),
        RAW(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" INNER, 400),
        RAW(POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" INNER, 400),
        RAW(POST "Content-Length: 4, 47\r\n\r\nabcd" INNER, 400),
        RAW(POST "Content-Length: +4\r\n\r\nabcd" INNER, 400),
        RAW("GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n",
            400),
        /* Lines that some read as a length and others do not. */
        RAW(POST "Content-Length : 42\r\n\r\n" INNER, 400),
        RAW(POST "Content-Length\t: 42\r\n\r\n" INNER, 400),
        RAW(POST "\013Content-Length: 42\r\n\r\n" INNER, 400),
        RAW(POST "Transfer-Encoding : chunked\r\n\r\n" INNER, 400),
        RAW(POST "X: y\rContent-Length: 42\r\n\r\n" INNER, 400),
        RAW(POST "Transfer-Encoding:\013chunked\r\n\r\n" INNER, 400),
        RAW("POST /api/v1/search HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n"
            "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" INNER,
            400),
        /* The same twice says one thing. */
        RAW("GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nContent-Length: 0\r\n" END,
            200),
    };
    for (size_t i = 0; i < N_ROWS(row); i++) {
        http_answer a = send_raw(port, row[i].bytes, row[i].n);
        const bool is_ended = row[i].status == REFUSED && a.status == 0 && MHD_VERSION >= 0x01000000;
        if (a.status != (row[i].status == REFUSED ? 400 : row[i].status) && !is_ended)
            fail_msg("row %zu: status %d, wanted %d: %s", i, a.status, row[i].status, a.body);
        if (a.status != 200 && strstr(a.body, "HTTP/1.1 200"))
            fail_msg("row %zu: a second answer: %s%s", i, a.head, a.body);
        http_release(&a);
    }
    ki_server_free(server);
}

static void test_nul(void **state) {
    (void)state;
    int port = 0;
    ki_serve_options o = served_options();
    o.token_file = served_tokens();
    ki_server *server = served_start(&o, &port);
    static const raw_request row[] = {
        RAW("GET /healthz HTTP/1.1\r\nHost: localhost\0.evil.example\r\n\r\n", 400),
        RAW("GET /healthz HTTP/1.1\r\nHost: localhost\0\r\n\r\n", 400),
        RAW("GET /healthz HTTP/1.1\r\nHost: localhost\0\0evil\r\n\r\n", 400),
        RAW("GET /healthz HTTP/1.1\r\nHost: localhost\0evil\r\nX: y\r\n\r\n", 400),
        RAW("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n", 400),
        RAW("GET /healthz\0x HTTP/1.1\r\nHost: localhost\r\n\r\n", REFUSED),
        RAW("GET /healthz\0HTTP/1.1 HTTP/1.1\r\nHost: localhost\r\n\r\n", REFUSED),
        RAW("GET /healthz?a\0b HTTP/1.1\r\nHost: localhost\r\n\r\n", REFUSED),
        RAW("GET /api/v1/info HTTP/1.1\r\nHost: localhost\r\n" SERVED_TOKEN "\0x\r\n\r\n", 400),
        RAW("GET /api/v1/info HTTP/1.1\r\n" SERVED_TOKEN "\0x\r\nHost: localhost\r\n\r\n", 400),
        RAW("GET /healthz HTTP/1.1\r\nHo\0st: localhost\r\n\r\n", 400),
        /* libmicrohttpd 1 joins a line that is continued: then it is the name of another host. */
        RAW("GET /healthz HTTP/1.1\r\nHost: evil\r\n localhost\r\nX: y\r\n\r\n",
            MHD_VERSION >= 0x01000000 ? 403 : 400),
        RAW("GET /api/v1/info HTTP/1.1\r\nHost: localhost\r\n" SERVED_TOKEN "\r\n" END, 200),
        RAW("GET /api/v1/info HTTP/1.1\r\n" SERVED_TOKEN "\r\nX:\r\nY: \r\nHost: localhost\r\n" END, 200),
        RAW("GET /healthz?a=b&c=%20 HTTP/1.1\r\nHost: localhost\r\n" END, 200),
        RAW("GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n", 200),
    };
    assert_rows(port, row, N_ROWS(row));
    /* Two tokens are none. */
    static const raw_request tokens[] = {
        RAW("GET /api/v1/info HTTP/1.1\r\nHost: localhost\r\n" SERVED_TOKEN
            "\r\nAuthorization: Bearer x\r\n" END,
            401),
    };
    assert_rows(port, tokens, N_ROWS(tokens));
    ki_server_free(server);
}

/* A long head, in pieces, and the second request of a connection: what is in order stays so. */
static void test_long_heads(void **state) {
    (void)state;
    int port = 0;
    const ki_serve_options o = served_options();
    ki_server *server = served_start(&o, &port);
    const int fd = http_connect(port, NULL);
    static const char first[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert_true(http_send(fd, first, sizeof first - 1));
    char *line = malloc(2000);
    assert_non_null(line);
    assert_true(http_send(fd, "GET /healthz HTTP/1.1\r\n", 23));
    for (int i = 0; i < 14; i++) {
        const int n = snprintf(line, 2000, "X-%d: %01500d  \r\n", i, i);
        assert_true(http_send(fd, line, (size_t)n / 2));
        usleep(2000); /* so that it comes in two pieces; either way it must be read */
        assert_true(http_send(fd, line + n / 2, (size_t)(n - n / 2)));
    }
    assert_true(http_send(fd, "Host: localhost\r\n" END, sizeof "Host: localhost\r\n" END - 1));
    http_answer a = http_receive(fd);
    assert_int_equal(a.status, 200);
    const char *second = strstr(a.body, "HTTP/1.1 200");
    if (!second) fail_msg("no second answer: %s", a.body);
    http_release(&a);
    free(line);
    ki_server_free(server);
}

/* The address that a trusted proxy appended counts, on whichever line it put it. */
static void test_forwarded_on_two_lines(void **state) {
    (void)state;
    int port = 0;
    static const char *const proxies[] = {"127.0.0.1"};
    ki_serve_options o = served_options();
    o.rate = 0.01;
    o.burst = 3;
    o.proxies = proxies;
    o.n_proxies = 1;
    ki_server *server = served_start(&o, &port);
    for (int i = 0; i < 5; i++) {
        char head[128];
        snprintf(head, sizeof head, "X-Forwarded-For: 1.2.3.%d\r\nX-Forwarded-For: 5.6.7.8\r\n", i);
        http_answer a = http_ask(port, "GET", "/healthz", head, NULL, 0);
        if (a.status != (i < 3 ? 200 : 429)) fail_msg("request %d: status %d", i, a.status);
        http_release(&a);
    }
    ki_server_free(server);
}

static void test_origin_on_two_lines(void **state) {
    (void)state;
    int port = 0;
    const ki_serve_options o = served_options();
    ki_server *server = served_start(&o, &port);
    static const struct {
        const char *headers;
        int status;
    } row[] = {
        {"Host: localhost:1\r\nOrigin: http://localhost:1\r\n", 200},
        {"Host: localhost:1\r\nOrigin: http://localhost:1\r\nOrigin: http://evil.example\r\n", 403},
        {"Host: localhost\r\nSec-Fetch-Site: same-origin\r\nSec-Fetch-Site: cross-site\r\n", 403},
        {"Host: localhost\r\nHost: localhost\r\n", 403},
    };
    for (size_t i = 0; i < N_ROWS(row); i++) {
        http_answer a = http_ask(port, "GET", "/api/v1/info", row[i].headers, NULL, 0);
        if (a.status != row[i].status) fail_msg("%s: status %d", row[i].headers, a.status);
        http_release(&a);
    }
    ki_server_free(server);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_nul),
        cmocka_unit_test(test_long_heads),
        cmocka_unit_test(test_forwarded_on_two_lines),
        cmocka_unit_test(test_origin_on_two_lines),
    };
    return cmocka_run_group_tests(tests, set_up, testing_tear_down);
}
