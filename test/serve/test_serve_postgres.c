/* kith serve of an index on PostgreSQL: the answers of one in a folder, newer commits, and a server that is restarted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/http.h"
#include "support/postgres.h"
#include "support/served.h"
#include "support/testing.h"

static char postgres[32], address[POSTGRES_ADDRESS_BYTES], output[65536];
static ki_server *here, *there;
static int port_here, port_there;

/* In the test's folder, with $K the program and $A the address. */
static int run_here(const char *command) {
    return testing_run(output, sizeof output, "cd %s && " TESTING_K " && A='%s' && %s", testing_folder(),
                       testing_program(), address, command);
}

static void assert_runs(const char *command) {
    if (run_here(command) != 0) fail_msg("%s: %s", command, output);
}

static int set_up(void **state) {
    (void)state;
    snprintf(postgres, sizeof postgres, "s%d", (int)getpid());
    snprintf(address, sizeof address, "%.1000s", postgres_start(postgres, ""));
    served_make();
    if (run_here("$K index photos --to \"$A\" --model m.safetensors 2>&1") != 0) {
        if (strstr(output, "there is no plugin")) postgres_skip(output);
        fail_msg("%s", output);
    }
    assert_runs("$K index \"$A\" --calibrate photos");
    ki_serve_options o = served_options();
    here = served_start(&o, &port_here);
    o.index = address;
    there = served_start(&o, &port_there);
    return 0;
}

static int tear_down(void **state) {
    ki_server_free(here);
    ki_server_free(there);
    return testing_tear_down(state);
}

static http_answer search(int port, const char *query) {
    size_t n = 0;
    char *bytes = served_photo("glyph00001/00002.png", &n);
    const http_answer a = http_post_form(port, "/api/v1/search", query, bytes, n);
    free(bytes);
    return a;
}

/* The list of hits, as text. */
static const char *hits_of(const http_answer *a) {
    const char *at = a->body ? strstr(a->body, "\"hits\"") : NULL;
    if (a->status != 200 || !at) fail_msg("status %d: %s", a->status, a->body ? a->body : "");
    return at;
}

static void assert_same(const char *query) {
    http_answer a = search(port_here, query), b = search(port_there, query);
    const char *x = hits_of(&a), *y = hits_of(&b);
    const size_t n = strcspn(x, "]");
    if (n != strcspn(y, "]") || strncmp(x, y, n) != 0) fail_msg("%s\nis not\n%s", y, x);
    http_release(&a);
    http_release(&b);
}

static void test_same_answers(void **state) {
    (void)state;
    assert_same("{\"images\": [{\"part\": \"f0\"}], \"k\": 5}");
    assert_same("{\"images\": [{\"part\": \"f0\"}], \"k\": 16}");
    assert_same("{\"images\": [{\"part\": \"f0\"}], \"k\": 5, \"where\": \"not label = glyph00001\"}");
    /* Filters see the paths that are shown. */
    assert_same("{\"images\": [{\"part\": \"f0\"}], \"where\": \"path = 'glyph00001/00002.png'\"}");
    assert_same("{\"images\": [{\"part\": \"f0\"}], \"where\": \"not path like 'glyph00001/%'\"}");
    assert_same("{\"images\": [{\"part\": \"f0\"}], \"where\": \"path < 'glyph00001/'\"}");
    assert_same("{\"images\": [{\"part\": \"f0\"}], \"where\": \"path like '/%'\"}");
}

/* As many hits as wanted, within some seconds. */
static bool finds(int wanted) {
    char text[32];
    snprintf(text, sizeof text, "\"items\": %d,", wanted);
    for (int i = 0; i < 100; i++) {
        http_answer a = http_get(port_there, "/api/v1/info");
        const bool is_there = a.status == 200 && strstr(a.body, text);
        if (i == 99) fprintf(stderr, "%d: %s\n", a.status, a.body ? a.body : "");
        http_release(&a);
        if (is_there) return true;
        usleep(100000);
    }
    return false;
}

static void test_a_newer_commit_is_seen(void **state) {
    (void)state;
    postgres_needs_server(address);
    assert_true(finds(16));
    assert_runs("cp photos/glyph00001/00002.png photos/glyph00001/copy.png && $K index \"$A\" --sync");
    assert_true(finds(17));
    assert_runs("$K index \"$A\" --remove copy.png");
    assert_true(finds(16));
}

static void test_postgres_is_restarted(void **state) {
    (void)state;
    postgres_needs_server(address);
    assert_int_equal(
        testing_run(output, sizeof output, "%s/scripts/postgres.sh restart %s", testing_source(), postgres),
        0);
    assert_same("{\"images\": [{\"part\": \"f0\"}], \"k\": 5}");
    assert_true(finds(16));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_answers),
        cmocka_unit_test(test_a_newer_commit_is_seen),
        cmocka_unit_test(test_postgres_is_restarted),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
