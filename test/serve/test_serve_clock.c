/* A clock of the machine that is set back puts off nothing: deadlines and looks at the index follow the monotonic one. */
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "support/http.h"
#include "support/served.h"
#include "support/testing.h"

#define TESTING_ALONE /* the clock below is that of the whole program */

/* In the place of the C library's: the time of day is an hour ahead of the kernel's, as if the clock were set back by an hour after each
 * question. Whoever waits until some time of day waits for an hour longer. */
int clock_gettime(clockid_t id, struct timespec *ret) {
    const long status = syscall(SYS_clock_gettime, id, ret);
    if (status == 0 && id == CLOCK_REALTIME) ret->tv_sec += 3600;
    return (int)status;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void wait_shortly(void) {
    const struct timespec moment = {.tv_nsec = 50000000};
    nanosleep(&moment, NULL);
}

static int set_up(void **state) {
    (void)state;
    served_make();
    return 0;
}

static void test_deadlines(void **state) {
    (void)state;
    int port = 0;
    ki_serve_options o = served_options();
    o.deadline = 1;
    ki_server *server = served_start(&o, &port);
    const int fd = http_connect(port, NULL);
    static const char head[] =
        "POST /api/v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n";
    const double began = now();
    assert_true(http_send(fd, head, sizeof head - 1));
    while (http_send(fd, "x", 1) && now() < began + 15) wait_shortly();
    const double seconds = now() - began;
    close(fd);
    if (!(seconds > 0.8 && seconds < 10)) fail_msg("cut after %g s, wanted 1", seconds);
    ki_server_free(server);
}

static void test_the_index_is_looked_at(void **state) {
    (void)state;
    int port = 0;
    char output[2048];
    const ki_serve_options o = served_options();
    ki_server *server = served_start(&o, &port);
    const int status = testing_run(output, sizeof output, "cd '%s' && %s index p.kith --remove glyph00003",
                                   testing_folder(), testing_program());
    if (status != 0) fail_msg("%s", output);
    bool is_seen = false;
    for (const double end = now() + 15; !is_seen && now() < end;) {
        http_answer a = http_get(port, "/api/v1/info");
        is_seen = strstr(a.body, "\"items\": 12,");
        http_release(&a);
        if (!is_seen) wait_shortly();
    }
    assert_true(is_seen);
    ki_server_free(server);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deadlines),
        cmocka_unit_test(test_the_index_is_looked_at),
    };
    return cmocka_run_group_tests(tests, set_up, testing_tear_down);
}
