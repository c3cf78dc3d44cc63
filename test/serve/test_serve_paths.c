/* Paths in answers are relative to the index's folders, and an index that was copied with its photos is at home there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/http.h"
#include "support/served.h"
#include "support/testing.h"

static char output[65536];

static void sh(const char *command) {
    const int status = testing_run(output, sizeof output, "cd '%s' && k() { %s \"$@\"; } && { %s; }",
                                   testing_folder(), testing_program(), command);
    if (status != 0) fail_msg("%s: status %d: %s", command, status, output);
}

static int set_up(void **state) {
    (void)state;
    served_make();
    sh("cp photos/glyph00001/00002.png photos/glyph00001/twice.png && k index p.kith --sync");
    return 0;
}

static void assert_lacks(const char *text, const char *part) {
    if (strstr(text, part)) fail_msg("'%s' in: %s", part, text);
}

/* The answer, which names no folder of this machine; to be freed. */
static char *body_of(http_answer answer, int status) {
    if (answer.status != status) fail_msg("status %d, wanted %d: %s", answer.status, status, answer.body);
    assert_lacks(answer.body, testing_folder());
    assert_lacks(answer.body, "/tmp/");
    char *body = answer.body;
    answer.body = NULL;
    http_release(&answer);
    return body;
}

static void assert_found(int port, const char *where, const char *wanted) {
    char query[512];
    snprintf(query, sizeof query, "{\"images\": [{\"id\": 6}], \"k\": 1, \"where\": \"%s\"}", where);
    char *body = body_of(http_post_json(port, "/api/v1/search", query), 200);
    if (!strstr(body, wanted)) fail_msg("%s: no '%s' in: %s", where, wanted, body);
    free(body);
}

static ki_server *start(const char *index, int *ret_port) {
    static char path[2048];
    ki_serve_options o = served_options();
    snprintf(path, sizeof path, "%s/%s", testing_folder(), index);
    o.index = path;
    return served_start(&o, ret_port);
}

static void test_answers(void **state) {
    (void)state;
    int port = 0;
    ki_server *server = start("p.kith", &port);
    char *body =
        body_of(http_post_json(port, "/api/v1/search", "{\"images\": [{\"id\": 6}], \"k\": 2}"), 200);
    assert_holds(body, "\"path\": \"glyph00001/00002.png\"");
    free(body);
    body = body_of(http_get(port, "/api/v1/items/0"), 200);
    assert_holds(body, "\"path\": \"glyph00000/00000.png\"");
    free(body);
    body = body_of(http_get(port, "/api/v1/duplicates"), 200);
    assert_holds(body, "\"path\": \"glyph00001/twice.png\"");
    free(body);
    free(body_of(http_get(port, "/api/v1/info"), 200));
    free(body_of(http_get(port, "/metrics"), 200));
    ki_server_free(server);
}

/* Failures, too: an item that is not there, and files of the index that are damaged while it is served. */
static void test_failures(void **state) {
    (void)state;
    int port = 0;
    sh("rm -rf hurt.kith && cp -r p.kith hurt.kith");
    ki_server *server = start("hurt.kith", &port);
    char *body = body_of(http_post_json(port, "/api/v1/search", "{\"images\": [{\"id\": 99}]}"), 404);
    assert_holds(body, "there is no item 99");
    free(body);
    body = body_of(http_get(port, "/api/v1/items/99"), 404);
    free(body);
    sh("for f in hurt.kith/*; do case $f in *manifest*) ;; *) truncate -s 0 \"$f\" ;; esac; done");
    body = body_of(http_get(port, "/api/v1/items/1"), 500);
    assert_holds(body, "its log says why");
    free(body);
    body = body_of(http_post_json(port, "/api/v1/search", "{\"images\": [{\"id\": 1}]}"), 500);
    free(body);
    ki_server_free(server);
}

/* A filter sees what is shown: it finds it, and cannot be used to guess the rest letter by letter. */
static void test_filters(void **state) {
    (void)state;
    int port = 0;
    ki_server *server = start("p.kith", &port);
    assert_found(port, "path = 'glyph00001/00002.png'", "\"n_allowed\": 1,");
    assert_found(port, "path like 'glyph00002/%'", "\"n_allowed\": 4,");
    assert_found(port, "not path like 'glyph00002/%'", "\"n_allowed\": 13,");
    assert_found(port, "path like '/%'", "\"n_allowed\": 0,");
    assert_found(port, "path like '%photos%'", "\"n_allowed\": 0,");
    assert_found(port, "path < 'glyph00001/'", "\"n_allowed\": 4,");
    ki_server_free(server);
}

static void test_several_folders(void **state) {
    (void)state;
    int port = 0;
    sh("mkdir -p two && cp -r photos/glyph00000 two/a && cp -r photos/glyph00001 two/b && "
       "k index two/a two/b photos/glyph00003/00003.png -o two.kith --model m.safetensors");
    ki_server *server = start("two.kith", &port);
    assert_found(port, "path = 'a/00001.png'", "\"path\": \"a/00001.png\"");
    assert_found(port, "path = 'b/00001.png'", "\"path\": \"b/00001.png\"");
    assert_found(port, "path = '00003.png'", "\"path\": \"00003.png\"");
    ki_server_free(server);
}

/* Vectors with a table: its paths are the user's own words. */
static void test_a_table(void **state) {
    (void)state;
    int port = 0;
    sh("k embed photos --model m.safetensors -o e.npy > /dev/null 2>&1 || k embed photos --weights "
       "m.safetensors -o e.npy > /dev/null && { echo path; find photos -name '*.png' | sort; } > items.csv "
       "&& "
       "k index e.npy --meta items.csv -o table.kith --model m.safetensors");
    ki_server *server = start("table.kith", &port);
    assert_found(port, "path = 'photos/glyph00001/00001.png'", "\"image\": true");
    ki_server_free(server);
}

/* Copied with photos and model, and the first place is gone. */
static void test_a_copy(void **state) {
    (void)state;
    int port = 0;
    sh("rm -rf first second && mkdir first && cp -a photos first/ && cp m.safetensors first/ && cd first && "
       "k index photos -o p.kith --model m.safetensors && cd .. && cp -a first second && mv first gone");
    ki_server *server = start("second/p.kith", &port);
    assert_found(port, "path = 'glyph00001/00002.png'", "\"image\": true");
    assert_status(http_get(port, "/api/v1/items/6/thumb"), 200);
    char *body = body_of(http_get(port, "/api/v1/info"), 200);
    assert_holds(body, "\"can_embed\": true");
    free(body);
    ki_server_free(server);
    sh("k search second/p.kith second/photos/glyph00001/00002.png -k 1 --json");
    assert_holds(output, "/second/photos/glyph00001/00002.png\"");
    assert_lacks(output, "/first/");
    sh("k index second/p.kith --info");
    assert_holds(output, "/second/photos\n");
    sh("k index second/p.kith --sync");
    assert_holds(output, "17 items of 16 values; 17 as before");
    sh("cp second/photos/glyph00000/00000.png second/photos/new.png && k index second/p.kith --sync");
    assert_holds(output, "1 added, 17 as before");
    /* And once more, with what was added in the second place. */
    sh("mv second third && k index third/p.kith --sync");
    assert_holds(output, "18 items of 16 values; 18 as before");
    sh("k search third/p.kith --duplicates");
    assert_holds(output, "third/photos/new.png");
    sh("rm third/photos/new.png && k index third/p.kith --remove glyph00003 && k index third/p.kith --check");
}

/* A copy beside the original is its own. */
static void test_a_copy_beside(void **state) {
    (void)state;
    sh("rm -rf one other && mkdir one && cp -a photos m.safetensors one/ && cd one && "
       "k index photos -o p.kith --model m.safetensors && cd .. && cp -a one other && "
       "rm other/photos/glyph00000/00000.png && k index other/p.kith --sync && k index one/p.kith --sync");
    assert_holds(output, "16 items of 16 values; 1 removed, 16 as before");
    assert_holds(output, "17 items of 16 values; 17 as before");
}

/* Moved alone, also to where other photos have the same names. */
static void test_moved_alone(void **state) {
    (void)state;
    int port = 0;
    sh("rm -rf alone && mkdir -p alone && cp -a p.kith alone/q.kith && cp -a m.safetensors alone/");
    ki_server *server = start("alone/q.kith", &port);
    assert_status(http_get(port, "/api/v1/items/6/thumb"), 200);
    ki_server_free(server);
    sh("mkdir -p alone/photos && cp -r photos/glyph00000 alone/photos/ && for i in alone/photos/*/*; do echo "
       "x >> "
       "$i; done && k index alone/q.kith --sync");
    assert_holds(output, "17 as before");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),       cmocka_unit_test(test_failures),
        cmocka_unit_test(test_filters),       cmocka_unit_test(test_several_folders),
        cmocka_unit_test(test_a_table),       cmocka_unit_test(test_a_copy),
        cmocka_unit_test(test_a_copy_beside), cmocka_unit_test(test_moved_alone),
    };
    return cmocka_run_group_tests(tests, set_up, testing_tear_down);
}
