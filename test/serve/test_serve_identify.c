/* Names by the server: the same as kith identify, by images and by items, and what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/http.h"
#include "support/served.h"
#include "support/testing.h"

static ki_server *server, *few;
static int port, few_port;

static int set_up(void **state) {
    (void)state;
    char output[4096];
    static char path[1200];
    served_make();
    const int status = testing_run(output, sizeof output,
                                   "cd '%s' && " TESTING_K
                                   " && $K synth many --classes 24 --images 12 --size 32 && "
                                   "$K index many -o many.kith --model m.safetensors",
                                   testing_folder(), testing_program());
    if (status != 0) fail_msg("%s", output);
    ki_serve_options o = served_options();
    few = served_start(&o, &few_port);
    snprintf(path, sizeof path, "%s/many.kith", testing_folder());
    o.index = path;
    server = served_start(&o, &port);
    return 0;
}

static int tear_down(void **state) {
    ki_server_free(server);
    ki_server_free(few);
    return testing_tear_down(state);
}

static http_answer identify(const char *query, const char *photo) {
    size_t n = 0;
    char *bytes = photo ? served_photo(photo, &n) : NULL;
    http_answer a = photo ? http_post_form(port, "/api/v1/identify", query, bytes, n)
                          : http_post_json(port, "/api/v1/identify", query);
    free(bytes);
    return a;
}

/* What lies between `from` and `to` of a text. */
static void part_of(const char *text, const char *from, const char *to, char *ret, size_t bytes) {
    const char *begin = strstr(text, from), *end = begin ? strstr(begin, to) : NULL;
    if (!end) fail_msg("no %s … %s in %s", from, to, text);
    snprintf(ret, bytes, "%.*s", (int)(end - begin), begin);
}

static void test_the_same_as_kith_identify(void **state) {
    (void)state;
    char output[65536], ours[1024], theirs[1024];
    http_answer a = identify("{\"images\": [{\"part\": \"f0\"}], \"k\": 2, \"error\": 0.4}",
                             "../many/glyph00003/00001.png");
    if (a.status != 200) fail_msg("%d: %s", a.status, a.body);
    const int status =
        testing_run(output, sizeof output,
                    "cd %s && %s identify many.kith many/glyph00003/00001.png -k 2 --error 0.4 --json",
                    testing_folder(), testing_program());
    if (status != 0) fail_msg("%s", output);
    part_of(a.body, "\"name\"", "\"path\"", ours, sizeof ours);
    part_of(output, "\"name\"", "\"path\"", theirs, sizeof theirs);
    assert_string_equal(ours, theirs);
    assert_non_null(strstr(a.body, "\"n_names\": 24"));
    http_release(&a);
}

static void test_items(void **state) {
    (void)state;
    http_answer a = identify("{\"images\": [{\"id\": 37}, {\"id\": 38}], \"error\": 0.4, \"k\": 3}", NULL);
    if (a.status != 200) fail_msg("%d: %s", a.status, a.body);
    assert_non_null(strstr(a.body, "\"error\": 0.4"));
    assert_null(strstr(a.body, "\"score\": 1,")); /* not themselves */
    http_release(&a);
}

static void assert_refused(int to, const char *query, int wanted, const char *words) {
    http_answer a = http_post_json(to, "/api/v1/identify", query);
    if (a.status != wanted || !strstr(a.body, words))
        fail_msg("%s: %d, wanted %d: %s", query, a.status, wanted, a.body);
    http_release(&a);
}

static void test_refused(void **state) {
    (void)state;
    assert_refused(few_port, "{\"images\": [{\"id\": 3}]}", 404, "cannot be promised");
    assert_refused(port, "{\"images\": [{\"id\": 99999}], \"error\": 0.4}", 404, "99999");
    assert_refused(port, "{\"images\": [{\"id\": 3}], \"error\": 0}", 400, "error");
    assert_refused(port, "{\"images\": [{\"id\": 3}], \"error\": 2}", 400, "error");
    assert_refused(port, "{\"images\": []}", 400, "images");
    assert_refused(port, "{\"images\": [{\"part\": \"f0\"}]}", 400, "f0");
    http_answer a = http_post_form(port, "/api/v1/identify",
                                   "{\"images\": [{\"part\": \"f0\"}], \"error\": 0.4}", "nonsense", 8);
    assert_int_equal(a.status, 415);
    http_release(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_as_kith_identify),
        cmocka_unit_test(test_items),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
