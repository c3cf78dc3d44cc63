/* One client that takes what it can get: what it costs the server, and that others do not notice. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/sanitizer.h"
#include "support/hostile.h"
#include "support/http.h"
#include "support/served.h"
#include "support/testing.h"

static const char attacker[] = "127.0.0.66", other[] = "127.0.0.9";
static int port;

static int set_up(void **state) {
    (void)state;
    served_make();
    return 0;
}

static http_answer search_from(const char *from, const char *query, const void *file, size_t n) {
    http_from(from);
    http_answer a = http_post_form(port, "/api/v1/search", query, file, n);
    http_from(NULL);
    return a;
}

static const char one_image[] = "{\"images\": [{\"part\": \"f0\"}], \"k\": 1}";

/* ---- memory ---- */

/* The most memory that this process and its decoders have had, in MiB. */
static long most_memory(void) {
    pid_t process[16];
    long kib = 0;
    int n = served_decoders(process, 15);
    process[n++] = getpid();
    for (int i = 0; i < n; i++) {
        char path[64], line[256];
        snprintf(path, sizeof path, "/proc/%d/status", (int)process[i]);
        FILE *file = fopen(path, "r");
        while (file && fgets(line, sizeof line, file)) {
            if (strncmp(line, "VmHWM:", 6) == 0) kib += strtol(line + 6, NULL, 10);
        }
        if (file) fclose(file);
    }
    return kib / 1024;
}

/* A part is decoded once however often it is named, and only what the network takes of it leaves the decoder. */
static void test_one_part_named_often(void **state) {
    (void)state;
    enum { SIDE = 3000 }; /* 26 MiB of pixels: named and mirrored sixteen times, 0.8 GB */
    ki_serve_options o = served_options();
    o.deadline = 300; /* a sanitizer takes its time, and memory of its own */
    ki_server *server = served_start(&o, &port);
    char query[4096] = "{\"images\": [", image[64];
    snprintf(image, sizeof image, "{\"part\": \"f0\", \"crop\": [0, 0, %d, %d]}", SIDE, SIDE);
    for (int i = 0; i < 16; i++) snprintf(query + strlen(query), 100, "%s%s", i ? ", " : "", image);
    strcat(query, "], \"flips\": true}");
    hostile_file file = hostile_png(SIDE, 0);
    const long before = most_memory();
    http_answer a = search_from(attacker, query, file.bytes, file.n);
    const long taken = most_memory() - before;
    if (a.status != 200) fail_msg("status %d: %s", a.status, a.body);
    if (!KI_SANITIZED && taken > 120) fail_msg("%ld MiB for %zu bytes", taken, file.n);
    http_release(&a);
    free(file.bytes);
    ki_server_free(server);
}

static void test_decoded_bytes_have_a_limit(void **state) {
    (void)state;
    ki_serve_options o = served_options();
    o.most_decoded_bytes = 32 << 20;
    ki_server *server = served_start(&o, &port);
    static const struct { int side, status; } row[] = {{1000, 200}, {2500, 200}, {3000, 413}, {1000, 200}};
    for (size_t i = 0; i < N_ROWS(row); i++) {
        hostile_file file = hostile_png(row[i].side, 0);
        http_answer a = search_from(attacker, one_image, file.bytes, file.n);
        if (a.status != row[i].status) fail_msg("side %d: status %d: %s", row[i].side, a.status, a.body);
        if (a.status == 413) assert_holds(a.body, "decoding the image takes 34 MiB; at most 32 are taken");
        http_release(&a);
        free(file.bytes);
    }
    http_answer a = http_get(port, "/metrics");
    assert_holds(a.body, "\nkith_decoded_bytes 0\n");
    http_release(&a);
    ki_server_free(server);
}

/* ---- decoders ---- */

static atomic_int n_answered;

static void *search_as_attacker(void *context) {
    size_t n = 0;
    char *photo = served_photo("glyph00001/00002.png", &n);
    http_answer *answer = context;
    *answer = search_from(attacker, one_image, photo, n);
    n_answered++;
    free(photo);
    return NULL;
}

/* Who waits for a decoder holds no thread of the pool, and no address can have all decoders. */
static void test_decoders_of_one_address(void **state) {
    (void)state;
    enum { N = 12 };
    pthread_t thread[N];
    http_answer answer[N];
    pid_t decoder[4];
    ki_serve_options o = served_options();
    o.n_workers = 2;
    ki_server *server = served_start(&o, &port);
    assert_int_equal(served_decoders(decoder, 4), 2);
    for (int i = 0; i < 2; i++) kill(decoder[i], SIGSTOP); /* as over images that take long */
    for (int i = 0; i < N; i++) pthread_create(&thread[i], NULL, search_as_attacker, &answer[i]);
    wait_seconds(0.5);
    http_from(other);
    http_answer a = http_get(port, "/api/v1/info");
    assert_int_equal(a.status, 200);
    /* Before those who wait, who are told after 10 s that decoding takes too long. */
    if (n_answered > 0) fail_msg("/api/v1/info after %g s", a.seconds);
    http_release(&a);
    kill(decoder[1], SIGCONT); /* the first is asked first: this one is left for others */
    size_t n = 0;
    char *photo = served_photo("glyph00001/00001.png", &n);
    for (int i = 0; i < 3; i++) {
        a = search_from(other, one_image, photo, n);
        assert_int_equal(a.status, 200);
        if (n_answered > 0) fail_msg("a photo after %g s", a.seconds);
        http_release(&a);
    }
    free(photo);
    kill(decoder[0], SIGCONT);
    for (int i = 0; i < N; i++) {
        pthread_join(thread[i], NULL);
        if (answer[i].status != 200) fail_msg("%d: status %d: %s", i, answer[i].status, answer[i].body);
        http_release(&answer[i]);
    }
    ki_server_free(server);
}

/* ---- uploads ---- */

/* Uploads that stall hold their address's share, and no more. */
static void test_stalled_uploads(void **state) {
    (void)state;
    enum { N = 24, BODY = 1 << 20, SENT = BODY - 1000 };
    int fd[N];
    char head[256], *bytes = calloc(1, SENT);
    ki_serve_options o = served_options();
    o.most_body_bytes = BODY;
    ki_server *server = served_start(&o, &port);
    assert_non_null(bytes);
    snprintf(
        head, sizeof head,
        "POST /api/v1/search HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n",
        BODY);
    for (int i = 0; i < N; i++) {
        fd[i] = http_connect(port, attacker);
        assert_true(http_send(fd[i], head, strlen(head)) && http_send(fd[i], bytes, SENT));
    }
    hostile_file photo = hostile_png(16, BODY / 2);
    for (int i = 0; i < 3; i++) {
        http_answer a = search_from(other, one_image, photo.bytes, photo.n);
        if (a.status != 200) fail_msg("status %d: %s", a.status, a.body);
        http_release(&a);
    }
    /* The last one was refused, as one's own doing; the first was not. */
    assert_true(http_send(fd[N - 1], bytes, BODY - SENT));
    http_answer a = http_receive(fd[N - 1]);
    if (a.status != 429) fail_msg("status %d: %s", a.status, a.body);
    assert_holds(a.head, "Retry-After: ");
    http_release(&a);
    assert_true(http_send(fd[0], bytes, BODY - SENT));
    a = http_receive(fd[0]);
    if (a.status != 400) fail_msg("status %d: %s", a.status, a.body);
    http_release(&a);
    for (int i = 1; i < N - 1; i++) close(fd[i]);
    free(photo.bytes);
    free(bytes);
    ki_server_free(server);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_part_named_often),
        cmocka_unit_test(test_decoded_bytes_have_a_limit),
        cmocka_unit_test(test_decoders_of_one_address),
        cmocka_unit_test(test_stalled_uploads),
    };
    return cmocka_run_group_tests(tests, set_up, testing_tear_down);
}
