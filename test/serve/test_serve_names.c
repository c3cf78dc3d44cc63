/* Decisions about names by HTTP: who may, from where, how large, and that they are seen at once, also while another program writes. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kith/names.h"
#include "support/http.h"
#include "support/served.h"
#include "support/testing.h"

#define JSON "Content-Type: application/json\r\n"
#define ANNA "Authorization: Bearer annaannaannaannaanna\r\n"
#define BERT "Authorization: Bearer bertbertbertbertbert\r\n"
#define ALL "Authorization: Bearer aaaaaaaaaaaaaaaaaaaaaaaa\r\n"
#define READER "Authorization: Bearer bbbbbbbbbbbbbbbbbbbbbbbb\r\n"

static int set_up(void **state) {
    (void)state;
    char output[4096];
    if (testing_run(output, sizeof output, "cd '%s' && rm -rf *", testing_folder()) != 0)
        fail_msg("%s", output);
    served_make();
    return 0;
}

static ki_server *start(bool has_tokens, bool edits, int *port) {
    static char path[1024];
    ki_serve_options o = served_options();
    o.edit = edits;
    if (has_tokens) {
        snprintf(path, sizeof path, "%s/tokens", testing_folder());
        testing_write(path,
                      "token aaaaaaaaaaaaaaaaaaaaaaaa\nread-only bbbbbbbbbbbbbbbbbbbbbbbb\n"
                      "write anna annaannaannaannaanna\nwrite bert bertbertbertbertbert\n");
        assert_int_equal(chmod(path, 0600), 0);
        o.token_file = path;
    }
    return served_start(&o, port);
}

static http_answer post(int port, const char *path, const char *headers, const char *body) {
    return http_ask(port, "POST", path, headers, body, strlen(body));
}

static const char give[] = "{\"ids\": [3], \"was\": [\"glyph00000\"], \"name\": \"Otto\"}";

static void test_who_may(void **state) {
    (void)state;
    int port = 0;
    ki_server *server = start(true, true, &port);
    static const struct {
        const char *path, *headers;
        int status;
    } row[] = {
        {"/api/v1/decide", JSON, 401},
        {"/api/v1/decide", JSON READER, 403},
        {"/api/v1/decide", JSON ALL, 403},
        {"/api/v1/undo", JSON READER, 403},
        {"/api/v1/undo", JSON ALL, 403},
        {"/api/v1/decide", ANNA, 415},
        {"/api/v1/decide", ANNA "Content-Type: text/plain\r\n", 415},
        {"/api/v1/decide", ANNA "Content-Type: application/x-www-form-urlencoded\r\n", 415},
        {"/api/v1/decide", ANNA JSON "Origin: http://evil.example\r\n", 403},
        {"/api/v1/decide", ANNA JSON "Sec-Fetch-Site: cross-site\r\n", 403},
        {"/api/v1/decide", ANNA JSON "Host: evil.example\r\n", 403},
    };
    for (size_t i = 0; i < N_ROWS(row); i++) {
        http_answer a = post(port, row[i].path, row[i].headers, give);
        if (a.status != row[i].status)
            fail_msg("%zu: status %d, wanted %d: %s", i, a.status, row[i].status, a.body);
        http_release(&a);
    }
    static const char *const reads[] = {"/api/v1/names", "/api/v1/queue", "/api/v1/history",
                                        "/api/v1/export.csv"};
    static const int status[][3] = {{200, 200, 200}, {403, 403, 200}, {403, 200, 200}, {403, 200, 200}};
    static const char *const who[] = {READER, ALL, ANNA};
    for (size_t i = 0; i < N_ROWS(reads); i++) {
        for (size_t k = 0; k < 3; k++) {
            http_answer a = http_ask(port, "GET", reads[i], who[k], NULL, 0);
            if (a.status != status[i][k]) fail_msg("%s, %zu: status %d", reads[i], k, a.status);
            http_release(&a);
        }
    }
    http_answer a = http_ask(port, "GET", "/api/v1/info", ANNA, NULL, 0);
    assert_holds(a.body, "\"can_name\": true, \"who\": \"anna\"");
    http_release(&a);
    a = http_ask(port, "GET", "/api/v1/info", READER, NULL, 0);
    assert_holds(a.body, "\"can_name\": false, \"who\": null");
    http_release(&a);
    /* Nothing of it was carried out. */
    a = http_ask(port, "GET", "/api/v1/history", ANNA, NULL, 0);
    assert_holds(a.body, "{\"n_decisions\": 0, \"decisions\": []}");
    http_release(&a);
    ki_server_free(server);
    /* A server without --edit takes no decision from anybody. */
    server = start(true, false, &port);
    assert_status(post(port, "/api/v1/decide", JSON ANNA, give), 403);
    assert_status(http_ask(port, "GET", "/api/v1/queue", ANNA, NULL, 0), 403);
    ki_server_free(server);
    server = start(false, false, &port);
    assert_status(post(port, "/api/v1/decide", JSON, give), 403);
    ki_server_free(server);
}

static void test_decided(void **state) {
    (void)state;
    int port = 0;
    ki_server *server = start(true, true, &port);
    http_answer a = post(port, "/api/v1/decide", JSON ANNA, give);
    if (a.status != 200) fail_msg("%d %s", a.status, a.body);
    assert_holds(a.body, "{\"number\": 1, \"items\": 1, \"generation\": ");
    assert_holds(a.body, ", \"before\": {\"items\": 16, \"named\": 16, \"decided\": 0, ");
    assert_holds(a.body, "\"after\": {\"items\": 16, \"named\": 16, \"decided\": 1, ");
    http_release(&a);
    /* At once. */
    a = http_ask(port, "GET", "/api/v1/items/3", ANNA, NULL, 0);
    assert_holds(a.body, "\"label\": \"Otto\"");
    assert_holds(a.body, "\"named_by\": \"anna\", \"named_kind\": \"person\"");
    http_release(&a);
    /* The other looked at it before. */
    a = post(port, "/api/v1/decide", JSON BERT,
             "{\"ids\": [3], \"was\": [\"glyph00000\"], \"name\": \"Emil\"}");
    assert_int_equal(a.status, 409);
    assert_holds(a.body, "item 3 is 'Otto' now");
    assert_holds(a.body, "anna decided that meanwhile");
    http_release(&a);
    /* Nobody undoes the last decision of another by chance, or decides in another's name. */
    assert_status(post(port, "/api/v1/undo", JSON BERT, "{}"), 404);
    assert_status(post(port, "/api/v1/undo", JSON BERT, "{\"who\": \"anna\"}"), 400);
    a = http_ask(port, "GET", "/api/v1/export.csv", ANNA, NULL, 0);
    assert_holds(a.head, "Content-Type: text/csv; charset=utf-8\r\n");
    assert_holds(a.body, ",Otto,anna,person\n");
    http_release(&a);
    a = post(port, "/api/v1/undo", JSON ANNA, "{}");
    assert_int_equal(a.status, 200);
    http_release(&a);
    assert_status(post(port, "/api/v1/undo", JSON ANNA, "{\"number\": 1}"), 400);
    a = http_ask(port, "GET", "/api/v1/history?limit=1&offset=1", ANNA, NULL, 0);
    assert_holds(a.body, "\"number\": 1, ");
    assert_holds(a.body, "\"undone_by\": 2, ");
    http_release(&a);
    ki_server_free(server);
}

static void test_without_tokens(void **state) {
    (void)state;
    int port = 0;
    ki_server *server = start(false, true, &port);
    assert_status(post(port, "/api/v1/decide", JSON, "{\"ids\": [3], \"name\": \"Otto\", \"who\": \"carl\"}"),
                  200);
    http_answer a = http_get(port, "/api/v1/items/3");
    assert_holds(a.body, "\"named_by\": \"carl\"");
    http_release(&a);
    ki_server_free(server);
}

static void test_bodies(void **state) {
    (void)state;
    int port = 0;
    ki_server *server = start(false, true, &port);
    static const struct {
        const char *body;
        int status;
    } row[] = {{"", 400},
               {"[]", 400},
               {"{\"ids\": 3, \"name\": \"x\"}", 400},
               {"{\"ids\": [-1], \"name\": \"x\"}", 400},
               {"{\"ids\": [\"3\"], \"name\": \"x\"}", 400},
               {"{\"ids\": [3.5], \"name\": \"x\"}", 400},
               {"{\"ids\": [3, 3], \"name\": \"x\"}", 400},
               {"{\"ids\": [3]}", 400},
               {"{\"ids\": [3], \"name\": \"a\\nb\"}", 400},
               {"{\"ids\": [3], \"name\": \"x\", \"was\": []}", 400},
               {"{\"ids\": [3], \"name\": \"x\", \"was\": [1]}", 400},
               {"{\"ids\": [3], \"nam\": \"x\"}", 400},
               {"{\"ids\": [3], \"name\": \"x\", \"act\": \"undo\"}", 400},
               {"{\"act\": \"merge\", \"from\": \"nobody\", \"name\": \"glyph00001\"}", 404},
               {"{\"act\": \"rename\", \"from\": \"glyph00000\", \"name\": \"glyph00001\"}", 400},
               {"{\"act\": \"apart\", \"ids\": [3]}", 400},
               {"{\"ids\": [99], \"name\": \"x\"}", 409}};
    for (size_t i = 0; i < N_ROWS(row); i++) {
        http_answer a = post(port, "/api/v1/decide", JSON, row[i].body);
        if (a.status != row[i].status) fail_msg("%s: status %d: %s", row[i].body, a.status, a.body);
        http_release(&a);
    }
    const size_t n = (1 << 20) + 100;
    char *large = malloc(n + 1);
    memset(large, ' ', n);
    memcpy(large, give, strlen(give));
    large[n] = '\0';
    assert_status(post(port, "/api/v1/decide", JSON, large), 413);
    free(large);
    http_answer a = http_get(port, "/api/v1/history");
    assert_holds(a.body, "{\"n_decisions\": 0, ");
    http_release(&a);
    ki_server_free(server);
}

/* While another program writes, a decision is refused and can be sent again; afterwards it is carried out. */
static void test_another_writer(void **state) {
    (void)state;
    int port = 0;
    char path[1024];
    kith_error err;
    kith_index *index = NULL;
    ki_server *server = start(false, true, &port);
    snprintf(path, sizeof path, "%s/p.kith", testing_folder());
    assert_ok(kith_index_open(path, KITH_INDEX_WRITE, &index, &err), &err);
    http_answer a = post(port, "/api/v1/decide", JSON, give);
    assert_int_equal(a.status, 503);
    assert_holds(a.head, "Retry-After: 2\r\n");
    http_release(&a);
    kith_index_free(index);
    assert_status(post(port, "/api/v1/decide", JSON, give), 200);
    /* And the server has let go of it. */
    assert_ok(kith_index_open(path, KITH_INDEX_WRITE, &index, &err), &err);
    kith_index_free(index);
    ki_server_free(server);
}

/* ---- many at once ---- */

enum { N_CLIENTS = 4, N_EACH = 8 };

typedef struct client {
    int port, number, n_done, n_refused;
} client;

/* Everybody names the same photo, from the name that it had when they looked. */
static void *name_it(void *context) {
    client *c = context;
    for (int i = 0; i < N_EACH; i++) {
        char body[256], was[64] = "";
        http_answer a = http_get(c->port, "/api/v1/items/3");
        const char *label = strstr(a.body, "\"label\": \"");
        if (label) sscanf(label + 10, "%63[^\"]", was);
        http_release(&a);
        snprintf(body, sizeof body,
                 "{\"ids\": [3], \"was\": [\"%s\"], \"name\": \"%d.%d\", \"who\": \"c%d\"}", was, c->number,
                 i, c->number);
        a = post(c->port, "/api/v1/decide", JSON, body);
        c->n_done += a.status == 200;
        c->n_refused += a.status == 409;
        http_release(&a);
    }
    return NULL;
}

static void test_many_at_once(void **state) {
    (void)state;
    int port = 0, n_done = 0, n_refused = 0;
    ki_server *server = start(false, true, &port);
    client clients[N_CLIENTS];
    pthread_t threads[N_CLIENTS];
    for (int i = 0; i < N_CLIENTS; i++) {
        clients[i] = (client){port, i, 0, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, name_it, &clients[i]), 0);
    }
    for (int i = 0; i < N_CLIENTS; i++) {
        pthread_join(threads[i], NULL);
        n_done += clients[i].n_done;
        n_refused += clients[i].n_refused;
    }
    assert_int_equal(n_done + n_refused, N_CLIENTS * N_EACH);
    assert_true(n_done > 0);
    /* Every decision that was answered is there, and each was made from what the one before it left. */
    char path[1024];
    kith_error err;
    kith_names names;
    kith_collection *c = NULL;
    KITH_OPTIONS(kith_collection_open_options, how);
    snprintf(path, sizeof path, "%s/p.kith", testing_folder());
    assert_ok(kith_collection_open(path, &how, &c, &err), &err);
    assert_ok(kith_collection_names(c, &names, &err), &err);
    assert_int_equal(names.n_decisions, n_done);
    for (int64_t i = 0; i + 1 < names.n_decisions; i++)
        assert_string_equal(names.decisions[i].before[0], names.decisions[i + 1].after[0]);
    kith_names_release(&names);
    kith_collection_free(c);
    ki_server_free(server);
}

/* ---- the queue ---- */

static void test_queue(void **state) {
    (void)state;
    int port = 0;
    ki_server *server = start(false, true, &port);
    http_answer a = http_get(port, "/api/v1/queue");
    assert_holds(a.body, "\"unnamed\": 0, ");
    assert_holds(a.body, "\"questions\": []");
    http_release(&a);
    assert_status(post(port, "/api/v1/decide", JSON, "{\"act\": \"take\", \"ids\": [0, 5]}"), 200);
    a = http_get(port, "/api/v1/queue");
    assert_holds(a.body, "\"unnamed\": 2, ");
    assert_holds(a.body, "\"items\": [{\"id\": 0, \"label\": null, ");
    assert_holds(a.body, "\"proposal\": \"glyph");
    http_release(&a);
    /* What was turned down is not proposed again: after all four names nothing is. */
    for (int i = 0; i < SERVED_CLASSES; i++) {
        char body[128];
        snprintf(body, sizeof body, "{\"act\": \"reject\", \"ids\": [0, 5], \"name\": \"glyph%05d\"}", i);
        assert_status(post(port, "/api/v1/decide", JSON, body), 200);
    }
    a = http_get(port, "/api/v1/queue");
    assert_holds(a.body, "\"proposal\": null");
    if (strstr(a.body, "\"proposal\": \"")) fail_msg("%s", a.body);
    assert_holds(a.body, "\"checked\": 8, \"wrong\": 8, \"rate\": 1, ");
    http_release(&a);
    assert_status(http_get(port, "/api/v1/queue?limit=0"), 400);
    ki_server_free(server);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_who_may, set_up),
        cmocka_unit_test_setup(test_decided, set_up),
        cmocka_unit_test_setup(test_without_tokens, set_up),
        cmocka_unit_test_setup(test_bodies, set_up),
        cmocka_unit_test_setup(test_another_writer, set_up),
        cmocka_unit_test_setup(test_many_at_once, set_up),
        cmocka_unit_test_setup(test_queue, set_up),
    };
    return cmocka_run_group_tests_name("serve_names", tests, NULL, testing_tear_down);
}
