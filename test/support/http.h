/* A small HTTP client for the tests of the search server: one request, the whole answer. */
#ifndef KITH_TESTING_HTTP_H
#define KITH_TESTING_HTTP_H

#include <stddef.h>

/* Owned; http_release. */
typedef struct http_answer {
    int status; /* 0: the connection was cut before there was an answer */
    char *head; /* the lines before the body */
    char *body; /* ends with a 0 that does not count */
    size_t n_body;
    double seconds; /* from sending to the last byte */
} http_answer;

void http_release(http_answer *answer);

/* The port in "http://127.0.0.1:8017/". */
int http_port(const char *url);

/* A connection to 127.0.0.1, from the address `from` (NULL: any); -1 on failure. */
int http_connect(int port, const char *from);
/* Send bytes as they are; returns 0 when the other side is gone. */
int http_send(int fd, const void *bytes, size_t n);
/* Read to the end of the stream and close. */
http_answer http_receive(int fd);

/* Whole requests of this thread come from this address from now on; NULL: any. It is not copied. */
void http_from(const char *from);

/* A whole request. `headers` are lines that end with \r\n, or NULL; Host is added unless they have it, as is Connection: close. */
http_answer http_ask(int port, const char *method, const char *path, const char *headers, const void *body,
                     size_t n_body);
http_answer http_get(int port, const char *path);
/* JSON to a path. */
http_answer http_post_json(int port, const char *path, const char *json);
/* multipart/form-data: the part "query" and, if file is not NULL, the part "f0" with these bytes. */
http_answer http_post_form(int port, const char *path, const char *query, const void *file, size_t n_file);

/* Is `part` in a head or a body? */
void assert_holds(const char *text, const char *part);
/* The answer is released. */
void assert_status(http_answer answer, int status);
void wait_seconds(double seconds);

#endif
