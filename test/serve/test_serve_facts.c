/* Facts of photos are private: the server keeps date, camera and place back unless it is told to show them, in answers, filters, errors and
 * facets alike. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/made_exif.h"
#include "kith/index.h"
#include "support/http.h"
#include "support/served.h"
#include "support/testing.h"

enum { ALL = (1 << KITH_N_FACTS) - 1, CAMERA = 1 << 1 };

/* A photo in Helgoland, one without a place. */
static void put_photo(const char *name, int year, bool has_place) {
    made_exif x = {0};
    uint8_t block[MADE_EXIF_BYTES];
    char from[4096], to[1024], taken[32];
    snprintf(taken, sizeof taken, "%04d:05:03 14:07:22", year);
    made_ascii(&x, 0, 0x110, "SecretCam");
    made_ascii(&x, 1, 0x9003, taken);
    if (has_place) {
        made_ascii(&x, 2, 1, "N");
        made_rational(&x, 2, 2, (uint32_t[]){5418123, 100000, 0, 1, 0, 1}, 3);
        made_ascii(&x, 2, 3, "E");
        made_rational(&x, 2, 4, (uint32_t[]){788765, 100000, 0, 1, 0, 1}, 3);
    }
    snprintf(from, sizeof from, "%s/test/corpus/image/ok_exif_1.jpg", KITH_SOURCE_DIR);
    snprintf(to, sizeof to, "%s/photos/glyph00001/%s", testing_folder(), name);
    assert_true(made_jpeg(from, block, made_block(&x, block), to));
}

static int set_up(void **state) {
    (void)state;
    char output[8192];
    served_make();
    put_photo("a.jpg", 1987, true);
    put_photo("b.jpg", 1988, false);
    const int status = testing_run(
        output, sizeof output,
        "cd '%s' && printf 'path,shelf\\nglyph00001/a.jpg,7\\nglyph00001/b.jpg,9\\n' > t.csv && " TESTING_K
        " && $K index p.kith --sync --meta t.csv",
        testing_folder(), testing_program());
    if (status != 0) fail_msg("%s", output);
    return 0;
}

static const char *const paths[] = {"/api/v1/info",     "/api/v1/items/16",   "/api/v1/items/17",
                                    "/api/v1/progress", "/api/v1/duplicates", "/api/v1/facets?column=shelf"};

/* All that the server says of the photos, one after the other. */
static char *everything(int port) {
    static char text[1 << 20];
    static const char query[] = "{\"images\": [{\"id\": 16}], \"k\": 30}";
    size_t n = 0;
    for (size_t i = 0; i <= N_ROWS(paths); i++) {
        http_answer a =
            i < N_ROWS(paths) ? http_get(port, paths[i]) : http_post_json(port, "/api/v1/search", query);
        assert_int_equal(a.status, 200);
        assert_true(n + a.n_body + 1 < sizeof text);
        memcpy(text + n, a.body, a.n_body + 1);
        n += a.n_body;
        http_release(&a);
    }
    return text;
}

static const char *const secrets[] = {"54.18", "7.88", "latitude", "longitude", "1987", "taken"};

static void assert_silent(const char *text) {
    for (size_t i = 0; i < N_ROWS(secrets); i++) {
        if (strstr(text, secrets[i])) fail_msg("'%s' in %s", secrets[i], text);
    }
}

/* One request with a filter; 200 only where its column is shown. */
static void assert_filter(int port, const char *where, int status) {
    char query[512], path[512];
    snprintf(query, sizeof query, "{\"images\": [{\"id\": 16}], \"where\": \"%s\"}", where);
    http_answer a = http_post_json(port, "/api/v1/search", query);
    if (a.status != status) fail_msg("%s: %d: %s", where, a.status, a.body);
    if (status != 200) assert_holds(a.body, "where: character");
    if (status != 200) assert_null(strstr(a.body, "did you mean"));
    http_release(&a);
    snprintf(path, sizeof path, "/api/v1/facets?column=shelf&where=%s", where);
    for (char *c = path; *c; c++) *c = *c == ' ' ? '+' : *c;
    assert_status(http_get(port, path), status);
}

static void test_nothing_is_said(void **state) {
    (void)state;
    int port = 0;
    ki_serve_options o = served_options();
    assert_int_equal(o.hidden, ALL);
    ki_server *server = served_start(&o, &port);
    const char *text = everything(port);
    assert_silent(text);
    assert_null(strstr(text, "SecretCam"));
    assert_holds(text, "\"shelf\": 7"); /* what a table says is there */
    assert_filter(port, "latitude > 50", 400);
    assert_filter(port, "taken < '1990'", 400);
    assert_filter(port, "camera = SecretCam", 400);
    assert_filter(port, "shelf = 7", 200);
    assert_status(http_get(port, "/api/v1/facets?column=latitude"), 400);
    assert_status(http_get(port, "/api/v1/facets?column=taken"), 400);
    assert_status(http_get(port, "/api/v1/facets"), 400);
    assert_status(http_get(port, "/api/v1/facets?column=shelf&most=0"), 400);
    http_answer a = http_get(port, "/api/v1/facets?column=label&most=2&where=shelf+>+0");
    assert_int_equal(a.status, 200);
    assert_holds(a.body, "\"text\": \"glyph00001\", \"items\": 2}");
    http_release(&a);
    ki_server_free(server);
}

static void test_what_is_named_is_shown(void **state) {
    (void)state;
    int port = 0;
    ki_serve_options o = served_options();
    o.hidden = ALL & ~CAMERA;
    ki_server *server = served_start(&o, &port);
    const char *text = everything(port);
    assert_silent(text);
    assert_holds(text, "\"camera\": \"SecretCam\"");
    assert_filter(port, "camera = SecretCam", 200);
    assert_filter(port, "latitude > 50", 400);
    http_answer a = http_get(port, "/api/v1/facets?column=camera");
    assert_holds(a.body, "{\"text\": \"SecretCam\", \"items\": 2}");
    http_release(&a);
    ki_server_free(server);
    o.hidden = 0;
    server = served_start(&o, &port);
    text = everything(port);
    for (size_t i = 0; i < N_ROWS(secrets); i++) assert_holds(text, secrets[i]);
    assert_filter(port, "latitude > 50", 200);
    a = http_get(port, "/api/v1/facets?column=taken");
    assert_holds(a.body, "{\"text\": \"1987-05-03\", \"items\": 1}");
    http_release(&a);
    ki_server_free(server);
}

static void test_the_option(void **state) {
    (void)state;
    char output[8192];
    const int status =
        testing_run(output, sizeof output, "cd '%s' && " TESTING_K " && $K serve p.kith --show camera,place",
                    testing_folder(), testing_program());
    assert_int_equal(status, 2);
    assert_holds(output, "--show is 'place'; wanted taken, camera");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing_is_said),
                                       cmocka_unit_test(test_what_is_named_is_shown),
                                       cmocka_unit_test(test_the_option)};
    return cmocka_run_group_tests(tests, set_up, testing_tear_down);
}
