/* Plain sockets: a server's tests should not depend on a library that is polite on their behalf. */
#include "support/http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "support/testing.h"

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void http_release(http_answer *answer) {
    free(answer->head);
    free(answer->body);
    *answer = (http_answer){0};
}

int http_port(const char *url) {
    const char *colon = strrchr(url, ':');
    return colon ? (int)strtol(colon + 1, NULL, 10) : 0;
}

int http_connect(int port, const char *from) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    /* A test that hangs says nothing. */
    const struct timeval most = {.tv_sec = 60};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
    if (from) {
        struct sockaddr_in here = {.sin_family = AF_INET};
        inet_pton(AF_INET, from, &here.sin_addr);
        if (bind(fd, (struct sockaddr *)&here, sizeof here) != 0) fail_msg("cannot bind %s", from);
    }
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0) return fd;
    close(fd);
    return -1;
}

int http_send(int fd, const void *bytes, size_t n) {
    const char *at = bytes;
    while (n > 0) {
        const ssize_t m = send(fd, at, n, MSG_NOSIGNAL);
        if (m <= 0) return 0;
        at += m;
        n -= (size_t)m;
    }
    return 1;
}

http_answer http_receive(int fd) {
    http_answer answer = {0};
    size_t n = 0, room = 1 << 16;
    char *all = malloc(room);
    if (!all) abort();
    for (ssize_t m; (m = recv(fd, all + n, room - 1 - n, 0)) > 0;) {
        n += (size_t)m;
        if (n == room - 1 && !(all = realloc(all, room *= 2))) abort();
    }
    close(fd);
    all[n] = '\0';
    char *end = strstr(all, "\r\n\r\n");
    if (end && strncmp(all, "HTTP/1.", 7) == 0) {
        const size_t n_head = (size_t)(end - all) + 2;
        answer.status = (int)strtol(all + 9, NULL, 10);
        answer.n_body = n - n_head - 2;
        answer.head = strndup(all, n_head);
        answer.body = malloc(answer.n_body + 1);
        if (!answer.head || !answer.body) abort();
        memcpy(answer.body, end + 4, answer.n_body + 1);
    }
    free(all);
    if (!answer.head) answer.head = strdup("");
    if (!answer.body) answer.body = strdup("");
    return answer;
}

static _Thread_local const char *source;

void http_from(const char *from) { source = from; }

http_answer http_ask(int port, const char *method, const char *path, const char *headers, const void *body,
                     size_t n_body) {
    char head[4096];
    const double began = now();
    const int fd = http_connect(port, source);
    if (fd < 0) fail_msg("nothing listens on port %d", port);
    const int n = snprintf(head, sizeof head, "%s %s HTTP/1.1\r\n%s%s%sConnection: close\r\n", method, path,
                           headers ? headers : "",
                           headers && strcasestr(headers, "Host:") ? "" : "Host: localhost\r\n", "");
    int m = n;
    if (body) m += snprintf(head + n, sizeof head - (size_t)n, "Content-Length: %zu\r\n", n_body);
    m += snprintf(head + m, sizeof head - (size_t)m, "\r\n");
    if (http_send(fd, head, (size_t)m) && body) http_send(fd, body, n_body);
    http_answer answer = http_receive(fd);
    answer.seconds = now() - began;
    return answer;
}

http_answer http_get(int port, const char *path) { return http_ask(port, "GET", path, NULL, NULL, 0); }

http_answer http_post_json(int port, const char *path, const char *json) {
    return http_ask(port, "POST", path, "Content-Type: application/json\r\n", json, strlen(json));
}

http_answer http_post_form(int port, const char *path, const char *query, const void *file, size_t n_file) {
    static const char first[] = "--b\r\nContent-Disposition: form-data; name=\"query\"\r\n\r\n",
                      second[] =
                          "\r\n--b\r\nContent-Disposition: form-data; name=\"f0\"; filename=\"x\"\r\n\r\n",
                      last[] = "\r\n--b--\r\n";
    char *body = malloc(strlen(first) + strlen(query) + strlen(second) + n_file + sizeof last);
    if (!body) abort();
    size_t n = (size_t)sprintf(body, "%s%s", first, query);
    if (file) {
        n += (size_t)sprintf(body + n, "%s", second);
        memcpy(body + n, file, n_file);
        n += n_file;
    }
    n += (size_t)sprintf(body + n, "%s", last);
    http_answer answer =
        http_ask(port, "POST", path, "Content-Type: multipart/form-data; boundary=b\r\n", body, n);
    free(body);
    return answer;
}

void assert_holds(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("no '%s' in: %s", part, text);
}

void assert_status(http_answer answer, int status) {
    if (answer.status != status) fail_msg("status %d, wanted %d: %s", answer.status, status, answer.body);
    http_release(&answer);
}

void wait_seconds(double seconds) {
    const struct timespec moment = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&moment, NULL);
}
